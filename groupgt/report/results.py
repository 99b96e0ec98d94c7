"""Writes results.json and the other files of a result folder.

`schema` describes results.json; `folder` reads result folders.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import groupgt
from groupgt.engines.calls import rankings_to_write
from groupgt.evaluation.runs import per_query_rows
from groupgt.experiment.cache import libraries
from groupgt.experiment.outcome import Outcome
from groupgt.formats import jsonl, trec
from groupgt.formats.write import flat_fault, write_flat
from groupgt.render import tables
from groupgt.render.exports import csv_text, json_text, write_rows
from groupgt.render.tables import Grid
from groupgt.report import previous
from groupgt.report.gates import reason
from groupgt.report.means import means_and_slices
from groupgt.report.shapes import plain
from groupgt.report.times import from_cache
from groupgt.results.folder import Manifest, file_name, slug
from groupgt.store.stamped import write_stamped

# --- Their contents.


def results_of(outcome: Outcome) -> Any:
    """Builds the contents of results.json."""
    results: dict[str, Any] = {
        "name": outcome.experiment.title,
        "datasets": {dataset: _dataset(outcome, dataset) for dataset in outcome.evaluations},
    }
    if outcome.experiment.rule.is_timeless and outcome.overall is not None:
        results["best"] = outcome.overall
    if outcome.previous is not None:
        results["previous"] = outcome.previous or None
    if outcome.across is not None:
        results["across"] = outcome.across.to_dict()
    if outcome.experiment.config.gate:
        results["gates"] = _gates(outcome)
        results["idle_gates"] = outcome.idle_gates
    return outcome.experiment.hide.sure(results)


def _dataset(outcome: Outcome, dataset: str) -> dict[str, Any]:
    evaluations = [evaluation.to_dict() for evaluation in outcome.evaluations[dataset].values()]
    for evaluation in evaluations:
        evaluation["labeller"] = outcome.experiment.hide(evaluation["labeller"])
    best = {"best": outcome.best.get(dataset)} if outcome.experiment.rule.is_timeless else {}
    result: dict[str, Any] = {**best, "systems": evaluations}
    if dataset in outcome.failed:
        result["failed"] = outcome.failed[dataset]
    if doubts := [vars(doubt) for doubt in outcome.doubts.get(dataset, [])]:
        result["warnings"] = doubts
    if dataset in outcome.comparison:
        result["comparison"] = outcome.comparison[dataset].to_dict()
    if dataset in outcome.stages:
        result["stages"] = {
            system: {"groups": len(stages.groups), "kept": stages.kept, "stages": plain(list(stages.stages))}
            for system, stages in outcome.stages[dataset].items()
        }
    if dataset in outcome.against:
        result["previous"] = previous.results(outcome, dataset)
    return result


def _gates(outcome: Outcome) -> list[dict[str, Any]]:
    names = ("gate", "system", "dataset", "metric", "passed", "reason", "value", "skipped", "timed")
    return [
        {name: reason(gate) if name == "reason" else getattr(gate, name) for name in names} for gate in outcome.gates
    ]


def timings_of(outcome: Outcome, folder: Path | None = None) -> Any:
    """Builds the contents of timings.json, with all times and anything that depends on them."""
    timings: dict[str, Any] = {
        "experiment": None if folder is None else _way_back(outcome.experiment.path, folder),
        "systems": [timing.as_dict() for timing in outcome.timings],
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
    """Returns the path of the experiment file relative to a result folder in `folder`; None if on another drive."""
    try:
        return Path(os.path.relpath(experiment.resolve(), folder.resolve() / "stamp")).as_posix()
    except ValueError:
        return None


def manifest_of(outcome: Outcome) -> Any:
    """Builds the contents of manifest.json, with the names of environment variables, not their values."""
    experiment = outcome.experiment
    systems = {}
    for name in experiment.chosen:
        system = experiment.systems[name]
        inputs = {"inputs": system.inputs} if system.inputs else {}
        options = experiment.shown_options(name)
        scores = {} if system.config.scores == "descending" else {"scores": system.config.scores}
        systems[name] = {"use": system.config.use, "options": options, **scores, **inputs, "files": file_name(name)}
    manifest = Manifest(
        groupgt=groupgt.__version__,
        python=platform.python_version(),
        libraries=libraries(list(experiment.systems.values())),
        files=outcome.digests,
        seed=experiment.config.seed,
        ground_truth={
            dataset: next(iter(by_system.values())).truth.digest
            for dataset, by_system in outcome.evaluations.items()
            if by_system
        },
        metrics=[str(metric) for metric in experiment.metrics.values()],
        policy=str(experiment.policy),
        config=experiment.as_written,
        systems=systems,
        counts={
            dataset: {system: evaluation.counts for system, evaluation in by_system.items()}
            for dataset, by_system in outcome.evaluations.items()
        },
        convention=experiment.convention,
    )
    return experiment.hide.sure(vars(manifest))


def means_grid(outcome: Outcome) -> Grid:
    """Returns headers and one row per mean, overall and for each slice, as in means.csv."""
    return _stacked((name, means_and_slices(list(systems.values()))) for name, systems in outcome.evaluations.items())


def per_query_grid(outcome: Outcome) -> Grid:
    """Returns headers and one row per system and query, as in per_query.csv."""
    measured = {name: list(systems.values()) for name, systems in outcome.evaluations.items() if systems}
    return _stacked((name, per_query_rows(evaluations)) for name, evaluations in measured.items())


def _stacked(grids: Iterable[tuple[str, Grid]]) -> Grid:
    """Stacks the tables of all data sets; the first column names the data set."""
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, (dataset_headers, dataset_rows) in grids:
        headers = ["dataset", *dataset_headers]
        rows += [[dataset, *row] for row in dataset_rows]
    return headers, rows


# --- Writing.

# Writes a file at a path, or beside it with the ending of another format.
Writer = Callable[[Path], object]
# Formats that are the report with another table style.
STYLES = {
    "table": ("table.txt", tables.DEFAULT),
    "markdown": ("table.md", "github"),
    "latex": ("table.tex", "latex_booktabs"),
}


def write_results(outcome: Outcome, folder: Path) -> Path:
    """Writes `<folder>/<name>/<time>-<digest>/` atomically and returns its path."""
    formats = outcome.experiment.config.output.formats
    writers: dict[str, Writer] = {}
    for name, style in (STYLES[kind] for kind in formats if kind in STYLES):
        writers[name] = _text(outcome.text(style) + "\n")
    if "report" in formats:
        writers["report.html"] = outcome.to_html
    if "json" in formats:
        writers["results.json"] = _text(json_text(results_of(outcome)) + "\n")
    if "csv" in formats:
        writers["means.csv"] = _text(csv_text(*means_grid(outcome)))
        writers["per_query.csv"] = _text(csv_text(*per_query_grid(outcome)))
        if outcome.comparison:
            grid = _stacked((name, comparison.csv_rows()) for name, comparison in outcome.comparison.items())
            writers["comparison.csv"] = _text(csv_text(*grid))
    if "parquet" in formats:
        writers["per_query.parquet"] = lambda path: write_rows(path, *per_query_grid(outcome), ".parquet")
    writers |= _runs(outcome, all_of_them="runs" in formats)
    parent = folder / slug(outcome.experiment.title)
    writers["timings.json"] = _text(json_text(timings_of(outcome, parent)) + "\n")
    manifest = json.dumps(manifest_of(outcome), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    writers["manifest.json"] = _text(manifest)
    digest = hashlib.sha256(manifest.encode()).hexdigest()[:8]
    return write_stamped(parent, digest, writers)


def _text(text: str) -> Writer:
    return partial(Path.write_text, data=text, encoding="utf-8", newline="")


def _runs(outcome: Outcome, *, all_of_them: bool) -> dict[str, Writer]:
    """Returns writers for all results and ground truth, so that `folder` can measure them again.

    Results that are streamed, or that have more than ids and scores, are saved only if `all_of_them` is set. The same
    applies to qrels, which are intended for other tools.
    """
    writers: dict[str, Writer] = {}
    for dataset, by_system in outcome.evaluations.items():
        for system, evaluation in by_system.items():
            if all_of_them or evaluation.run.by_original_ids.is_plain:
                writers[f"runs/{slug(dataset)}/{file_name(system)}.trec"] = _run(outcome, dataset, system)
        if dataset in outcome.truths:
            writers[f"truth/{slug(dataset)}.jsonl"] = partial(jsonl.write_ground_truth, truth=outcome.truths[dataset])
        for system, stages in outcome.stages.get(dataset, {}).items():
            writers[f"stages/{slug(dataset)}/{file_name(system)}.csv"] = _text(csv_text(*stages.csv_rows()))
        for first in list(by_system.values())[:1]:
            if first.audit is not None:
                audit = partial(jsonl.write_ground_truth, truth=first.audit.truth)
                writers[f"truth/{slug(dataset)}.audit.jsonl"] = audit
            if all_of_them and not first.truth.forms and flat_fault(first.truth) is None:
                writers[f"truth/{slug(dataset)}.qrels"] = partial(write_flat, truth=first.truth)
    return writers


def _run(outcome: Outcome, dataset: str, system: str) -> Writer:
    """Returns a writer for a run, in TREC format if possible and in JSON Lines otherwise.

    TREC format cannot store unusual ids or search call numbers, and would sort a list by its scores; results without
    any scores get scores from their ranks.
    """
    evaluation = outcome.evaluations[dataset][system]
    read = partial(rankings_to_write, evaluation.run.by_original_ids, evaluation.policy)

    def write(path: Path) -> None:
        rankings, calls = read()
        if calls or trec.run_fault(rankings, in_single=True) is not None:
            jsonl.write_run(path.with_suffix(".jsonl"), read()[0], calls=calls)
        else:
            trec.write_run(path, read()[0], file_name(system))

    return write
