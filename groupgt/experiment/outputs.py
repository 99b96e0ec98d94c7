"""The result folder of an experiment: what is written, and what the manifest says of it."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import groupgt
from groupgt.engines.rankings import all_rankings
from groupgt.evaluation.many import means_and_slices, per_query_rows, population, side_by_side, slices_side_by_side
from groupgt.experiment.outcome import Outcome
from groupgt.formats.trec import write_run
from groupgt.render import tables
from groupgt.retrievers.base import strictly_falling
from groupgt.retrievers.registry import RETRIEVERS
from groupgt.store.folders import write_folder

__all__ = ["as_dict", "means", "report", "slug", "write_results"]

Writer = Callable[[Path], None]


def report(outcome: Outcome, style: str = tables.DEFAULT) -> str:
    """The tables of every dataset with their populations: what `groupgt run` prints."""
    convention = [outcome.experiment.config.convention]
    several = len(outcome.evaluations) > 1
    parts = []
    for dataset, found in outcome.evaluations.items():
        evaluations = list(found.values())
        if several:
            parts.append(f"dataset {dataset}")
        parts.append(tables.table(*side_by_side(evaluations, convention), style))
        parts += [tables.table(*grid, style) for grid in slices_side_by_side(evaluations)]
        parts.append("\n".join(population(evaluations, convention)))
        primary = outcome.experiment.config.evaluate.primary
        if primary is not None and len(evaluations) > 1:
            parts.append(f"best by {primary}: {outcome.best[dataset]}")
    return "\n\n".join(parts)


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """Everything as plain Python: what results.json holds and `--format json` prints."""
    return {
        "name": outcome.experiment.config.name,
        "datasets": {
            dataset: {"best": outcome.best.get(dataset), "systems": [each.to_dict() for each in found.values()]}
            for dataset, found in outcome.evaluations.items()
        },
    }


def write_results(outcome: Outcome, folder: Path) -> Path:
    """Writes `<folder>/<name>/<time>-<digest>/`, whole or not at all, and returns it."""
    config = outcome.experiment.config
    formats = config.output.formats
    files: dict[str, Writer] = {}
    if "table" in formats:
        files["table.txt"] = _text(report(outcome) + "\n")
    if "json" in formats:
        files["results.json"] = _text(tables.json_text(as_dict(outcome)) + "\n")
    if "csv" in formats:
        files["means.csv"] = _text(tables.csv_text(*means(outcome)))
        files["per_query.csv"] = _text(tables.csv_text(*_per_query(outcome)))
    if "runs" in formats:
        for dataset, found in outcome.evaluations.items():
            for system in found:
                files[f"runs/{slug(dataset)}/{slug(system)}.trec"] = _run(outcome, dataset, system)
    files["timings.json"] = _text(_timings(outcome))
    manifest = _manifest(outcome)
    files["manifest.json"] = _text(manifest)
    digest = hashlib.sha256(manifest.encode()).hexdigest()[:8]
    return write_folder(folder / slug(config.name), digest, files)


def _text(text: str) -> Writer:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8", newline="")

    return write


def means(outcome: Outcome) -> tuple[list[str], list[list[Any]]]:
    """Headers and a row for each mean, of the whole and of each slice: what means.csv holds."""
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, found in outcome.evaluations.items():
        own_headers, own_rows = means_and_slices(list(found.values()))
        headers = ["dataset", *own_headers]
        rows += [[dataset, *row] for row in own_rows]
    return headers, rows


def _per_query(outcome: Outcome) -> tuple[list[str], list[list[Any]]]:
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, found in outcome.evaluations.items():
        if found:
            own_headers, own_rows = per_query_rows(list(found.values()))
            headers = ["dataset", *own_headers]
            rows += [[dataset, *row] for row in own_rows]
    return headers, rows


def _run(outcome: Outcome, dataset: str, system: str) -> Writer:
    """A TREC run in the order that was evaluated; equal scores are told apart in their last bit."""
    evaluation = outcome.evaluations[dataset][system]
    kept = outcome.scores.get((dataset, system)) or {}

    def rows() -> Iterator[tuple[str, list[str], list[float]]]:
        for qid, (ids, scores) in all_rankings(evaluation.run, evaluation.policy):
            own = kept.get(qid) or scores or [1 / rank for rank in range(1, len(ids) + 1)]
            yield qid, ids, strictly_falling(own)

    return lambda path: write_run(path, rows(), slug(system))


def _timings(outcome: Outcome) -> str:
    machine = {"machine": platform.machine(), "system": platform.system(), "node": platform.node()}
    return tables.json_text({**machine, "systems": [vars(each) for each in outcome.timings]}) + "\n"


def _manifest(outcome: Outcome) -> str:
    """What determines the results: digests of files, versions, the resolved configuration, the seed, the counts."""
    config = outcome.experiment.config
    libraries = {RETRIEVERS[system.use].library for system in config.systems.values()} | {"numpy", "polars"}
    manifest = {
        "groupgt": groupgt.__version__,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in sorted(each for each in libraries if each)},
        "files": outcome.digests,
        "seed": config.seed,
        "config": config.model_dump(by_alias=True),
        "systems": {name: vars(options) for name, options in outcome.experiment.options.items()},
        "counts": {
            dataset: {system: each.counts for system, each in found.items()}
            for dataset, found in outcome.evaluations.items()
        },
    }
    return json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"


def slug(name: str) -> str:
    """A name for files: itself where it is harmless, else its letters and digits and a short hash.

    >>> slug("bm25"), slug("bm25[k1=0.9]")
    ('bm25', 'bm25-k1-0-9-a3d217')
    """
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
