"""The files of a result folder that present an outcome: tables, report.html, results.json, timings.json and CSV."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from groupgt.evaluation.runs import means_and_slices
from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.render.columns import jsonable
from groupgt.render.exports import csv_text, json_text
from groupgt.render.tables import Grid, stacked
from groupgt.report import previous
from groupgt.report.decision import decisions
from groupgt.report.gates import reason
from groupgt.report.times import from_cache
from groupgt.report.trials import noise_dicts
from groupgt.store.stamped import Writer, text_file

# Formats that are the report with another table style.
STYLES = {"table": ("txt", tables.DEFAULT), "markdown": ("md", "github"), "latex": ("tex", "latex_booktabs")}


def results_of(outcome: Outcome) -> dict[str, Any]:
    """Build the contents of results.json."""
    datasets = {dataset: _dataset(outcome, dataset) for dataset in outcome.evaluations}
    for dataset, decision in decisions(outcome).items():
        datasets[dataset]["decision"] = decision.to_dict()
    results: dict[str, Any] = {"name": outcome.experiment.title, "datasets": datasets}
    if outcome.experiment.rule.is_timeless and outcome.overall is not None:
        results["best"] = outcome.overall
    if outcome.previous is not None:
        results["previous"] = outcome.previous or None
    if outcome.across is not None:
        results["across"] = outcome.across.to_dict()
    if outcome.experiment.config.gate:
        results["gates"] = _gates(outcome)
    hidden: dict[str, Any] = outcome.experiment.hide.sure(results)
    return hidden


def _dataset(outcome: Outcome, dataset: str) -> dict[str, Any]:
    evaluations: list[Any] = [evaluation.to_dict() for evaluation in outcome.evaluations[dataset].values()]
    for evaluation, measured in zip(evaluations, outcome.evaluations[dataset].values()):
        if measured.repeats:
            evaluation["trials"] = noise_dicts(measured, outcome.experiment.settings.confidence)
        evaluation["labeller"] = outcome.experiment.hide(evaluation["labeller"])
    result: dict[str, Any] = {"systems": evaluations}
    if outcome.experiment.rule.is_timeless:
        result = {"best": outcome.best.get(dataset), "systems": evaluations}
    if dataset in outcome.failed:
        result["failed"] = outcome.failed[dataset]
    if warnings := outcome.warnings.get(dataset):
        result["warnings"] = [{"kind": each.kind, "text": each.text} for each in warnings]
    if dataset in outcome.comparison:
        # The decision on the data set knows its gates.
        result["comparison"] = outcome.comparison[dataset].to_dict()
        del result["comparison"]["decision"]
        result["comparison"].pop("trials", None)  # each system has its own
    if dataset in outcome.stages:
        result["stages"] = {}
        for system, each in outcome.stages[dataset].items():
            told = {"groups": each.total, "kept": each.kept, "stages": jsonable(list(each.stages))}
            result["stages"][system] = told | ({"trials": each.trials} if each.trials > 1 else {})
    if dataset in outcome.answered:
        result["outcomes"] = {system: each.to_dict() for system, each in outcome.answered[dataset].items()}
    if dataset in outcome.against:
        result["previous"] = previous.results(outcome, dataset)
    return result


def _gates(outcome: Outcome) -> list[dict[str, Any]]:
    names = ("gate", "system", "dataset", "metric", "passed", "reason", "value", "skipped", "timed")
    return [
        {name: reason(gate) if name == "reason" else getattr(gate, name) for name in names} for gate in outcome.gates
    ]


def timings_of(outcome: Outcome, folder: Path | None = None) -> Any:
    """Build the contents of timings.json, with all times and anything that depends on them."""
    timings: dict[str, Any] = {
        "experiment": None if folder is None else _way_back(outcome.experiment.path, folder),
        "systems": [timing.as_dict() for timing in outcome.timings],
        "passed": outcome.passed,
    }
    if not outcome.experiment.rule.is_timeless:
        timings["best"] = outcome.best
        timings["overall"] = outcome.overall
    if timed := [gate for gate in _gates(outcome) if gate["timed"]]:
        timings["gates"] = timed
    if kept := from_cache(outcome):
        timings["kept"] = kept
    return outcome.experiment.hide.sure(timings)


def _way_back(experiment: Path, folder: Path) -> str | None:
    """Return the path of the experiment file relative to a result folder in `folder`, or None on another drive."""
    try:
        return Path(os.path.relpath(experiment.resolve(), folder.resolve() / "stamp")).as_posix()
    except ValueError:
        return None


def means_grid(outcome: Outcome) -> Grid:
    """Return headers and one row per mean, overall and for each slice, as in means.csv."""
    return stacked((name, means_and_slices(list(systems.values()))) for name, systems in outcome.evaluations.items())


def files_of(outcome: Outcome, parent: Path) -> dict[str, Writer]:
    """Return writers for the files that present an outcome, by name. `parent` will contain the result folder."""
    formats = outcome.experiment.config.output.formats
    files: dict[str, Writer] = {}
    for ending, style in (STYLES[kind] for kind in formats if kind in STYLES):
        files[f"table.{ending}"] = text_file(outcome.text(style) + "\n")
    if "report" in formats:
        files["report.html"] = outcome.to_html
    if "json" in formats:
        files["results.json"] = text_file(json_text(results_of(outcome)) + "\n")
    if "csv" in formats:
        files["means.csv"] = text_file(csv_text(*means_grid(outcome)))
        if outcome.comparison:
            grids = ((name, comparison.csv_rows()) for name, comparison in outcome.comparison.items())
            files["comparison.csv"] = text_file(csv_text(*stacked(grids)))
    files["timings.json"] = text_file(json_text(timings_of(outcome, parent)) + "\n")
    return files
