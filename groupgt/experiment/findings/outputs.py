"""The result folder of an experiment: what is written, and what the manifest says of it."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import groupgt
from groupgt.engines.rankings import all_rankings
from groupgt.experiment.findings.outcome import Outcome
from groupgt.experiment.findings.reports import as_dict, compared, means, per_query, report, times_dict
from groupgt.experiment.retrieval.retrieving import libraries
from groupgt.formats import jsonl, trec
from groupgt.formats.write import write_flat
from groupgt.render import tables
from groupgt.render.export import write_rows
from groupgt.retrievers.base import strictly_falling
from groupgt.store.folders import write_folder

__all__ = ["slug", "write_results"]

Writer = Callable[[Path], None]
# Formats that are the report in another style of tables.
STYLES = {
    "table": ("table.txt", tables.DEFAULT),
    "markdown": ("table.md", "github"),
    "latex": ("table.tex", "latex_booktabs"),
    "html": ("table.html", "html"),
}


def write_results(outcome: Outcome, folder: Path) -> Path:
    """Writes `<folder>/<name>/<time>-<digest>/`, whole or not at all, and returns it."""
    config = outcome.experiment.config
    formats = config.output.formats
    files: dict[str, Writer] = {}
    for name, style in (STYLES[each] for each in formats if each in STYLES):
        files[name] = _text(report(outcome, style) + "\n")
    if "json" in formats:
        files["results.json"] = _text(tables.json_text(as_dict(outcome)) + "\n")
    if "csv" in formats:
        files["means.csv"] = _text(tables.csv_text(*means(outcome)))
        files["per_query.csv"] = _text(tables.csv_text(*per_query(outcome)))
        if outcome.comparison:
            files["comparison.csv"] = _text(tables.csv_text(*compared(outcome)))
    if "parquet" in formats:
        files["per_query.parquet"] = lambda path: write_rows(path, *per_query(outcome), ".parquet")
    if "runs" in formats:
        for dataset, found in outcome.evaluations.items():
            for system in found:
                ending, write = _run(outcome, dataset, system)
                files[f"runs/{slug(dataset)}/{slug(system)}{ending}"] = write
            truth = next((each.truth for each in found.values()), None)
            if (
                truth is not None
                and not truth.forms
                and not any(name.split() != [name] for name in (*truth.qids, *truth.ids))
            ):
                files[f"truth/{slug(dataset)}.qrels"] = partial(write_flat, truth=truth)
    files["timings.json"] = _text(tables.json_text(times_dict(outcome)) + "\n")
    manifest = _manifest(outcome)
    files["manifest.json"] = _text(manifest)
    digest = hashlib.sha256(manifest.encode()).hexdigest()[:8]
    return write_folder(folder / slug(config.name), digest, files)


def _text(text: str) -> Writer:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8", newline="")

    return write


def _run(outcome: Outcome, dataset: str, system: str) -> tuple[str, Writer]:
    """A run in the order that was evaluated, TREC's or (for ids with blanks) JSON Lines, and the ending of its file.

    Equal scores are told apart in their last bit.
    """
    evaluation = outcome.evaluations[dataset][system]
    answers = outcome.answers.get((dataset, system))
    kept = (answers.scores if answers is not None else None) or {}

    def rows() -> Iterator[tuple[str, list[str], list[float]]]:
        for qid, (ids, scores) in all_rankings(evaluation.run, evaluation.policy):
            own = kept.get(qid) or scores or [1 / rank for rank in range(1, len(ids) + 1)]
            yield qid, ids, strictly_falling(own)

    found = answers.ids.items() if answers is not None else ()
    if any(" ".join([qid, *ids]).split() != [qid, *ids] for qid, ids in found):
        return ".jsonl", lambda path: jsonl.write_run(path, rows(), scored=True)
    return ".trec", lambda path: trec.write_run(path, rows(), slug(system))


def _manifest(outcome: Outcome) -> str:
    """What determines the results: digests of files, versions, the resolved configuration, the seed, the counts.

    What came from the environment stands there as the file has it.
    """
    experiment = outcome.experiment
    config, document = experiment.config, experiment.document
    manifest = {
        "groupgt": groupgt.__version__,
        "python": platform.python_version(),
        "libraries": libraries(list(experiment.systems.values())),
        "files": outcome.digests,
        "seed": config.seed,
        "ground_truth": {
            dataset: next(iter(found.values())).truth.digest for dataset, found in outcome.evaluations.items() if found
        },
        "metrics": [str(metric) for metric in experiment.metrics.values()],
        "policy": str(experiment.policy),
        "config": document.shown(config.model_dump(by_alias=True), ()),
        "systems": {name: _options(outcome, name) for name in experiment.chosen},
        "counts": {
            dataset: {system: each.counts for system, each in found.items()}
            for dataset, found in outcome.evaluations.items()
        },
    }
    return json.dumps(manifest, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _options(outcome: Outcome, name: str) -> dict[str, Any]:
    """The options of one system, defaults included."""
    system = outcome.experiment.systems[name]
    shown = outcome.experiment.document.shown
    options = {
        each.name: shown(getattr(system.options, each.name), system.paths.get(each.name, ()))
        for each in fields(system.options)
    }
    inputs = {"inputs": system.inputs} if system.inputs else {}
    return {"use": system.config.use, "options": options, **inputs, "files": slug(name)}


def slug(name: str) -> str:
    """A name for files: itself where it is harmless, else its letters and digits and a short hash.

    >>> slug("bm25"), slug("bm25[k1=0.9]")
    ('bm25', 'bm25-k1-0-9-a3d217')
    """
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80]
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
