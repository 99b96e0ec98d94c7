"""Write result folders: the manifest, values per query, runs, ground truth, and the files that present results."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import groupgt
from groupgt.engines.calls import rankings_to_write
from groupgt.evaluation.runs import per_query_rows
from groupgt.experiment.cache import libraries
from groupgt.experiment.outcome import FAILED, Outcome
from groupgt.formats import jsonl, trec
from groupgt.formats.write import flat_fault, write_flat
from groupgt.metrics.own import facts_of
from groupgt.plugins import ours
from groupgt.render.exports import csv_text, write_rows
from groupgt.render.tables import Grid, stacked
from groupgt.results.manifest import Manifest
from groupgt.runtime import commit
from groupgt.store.files import file_name, slug
from groupgt.store.stamped import Writer, text_file, write_stamped


def write_results(outcome: Outcome, parent: Path, presented: Mapping[str, Writer]) -> Path:
    """Write `<parent>/<time>-<digest>/` atomically and return its path. `presented` adds files by name."""
    formats = outcome.experiment.config.output.formats
    writers = {**presented, **_runs(outcome, all_of_them="runs" in formats)}
    if "csv" in formats:
        writers["per_query.csv"] = text_file(csv_text(*per_query_grid(outcome)))
    if "parquet" in formats:
        writers["per_query.parquet"] = lambda path: write_rows(path, *per_query_grid(outcome), ".parquet")
    manifest = json.dumps(manifest_of(outcome), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    writers["manifest.json"] = text_file(manifest)
    return write_stamped(parent, hashlib.sha256(manifest.encode()).hexdigest()[:8], writers)


def manifest_of(outcome: Outcome) -> Any:
    """Build the contents of manifest.json, with the names of environment variables, not their values."""
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
        commit=commit(),
        python=platform.python_version(),
        libraries=libraries(list(experiment.systems.values()), "scipy"),
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
            if by_system
        },
        convention=experiment.convention,
        warnings={dataset: kept for dataset in outcome.evaluations if (kept := list(_warned(outcome, dataset)))},
        own_metrics={
            metric.name: facts_of(metric.definition)
            for metric in experiment.metrics.values()
            if metric.name not in ours("metric")
        },
    )
    return experiment.hide.sure(vars(manifest))


def _warned(outcome: Outcome, dataset: str) -> Iterator[str]:
    """Yield the warnings for readers of the folder: systems that failed, and warnings about the others."""
    for name, why in outcome.failed.get(dataset, {}).items():
        yield f"{name} {FAILED}: {why}"
    yield from (each.text for each in outcome.warnings.get(dataset, ()))


def per_query_grid(outcome: Outcome) -> Grid:
    """Return headers and one row per system and query, as in per_query.csv."""
    measured = {name: list(systems.values()) for name, systems in outcome.evaluations.items() if systems}
    return stacked((name, per_query_rows(evaluations)) for name, evaluations in measured.items())


def _runs(outcome: Outcome, *, all_of_them: bool) -> dict[str, Writer]:
    """Return writers for ground truth and plain results, or for all results and qrels if `all_of_them` is set."""
    writers: dict[str, Writer] = {}
    for dataset, by_system in outcome.evaluations.items():
        for system, evaluation in by_system.items():
            if all_of_them or evaluation.is_plain:
                writers[f"runs/{slug(dataset)}/{file_name(system)}.trec"] = _run(outcome, dataset, system)
        if dataset in outcome.truths:
            writers[f"truth/{slug(dataset)}.jsonl"] = partial(jsonl.write_ground_truth, truth=outcome.truths[dataset])
        for system, stages in outcome.stages.get(dataset, {}).items():
            writers[f"stages/{slug(dataset)}/{file_name(system)}.csv"] = text_file(csv_text(*stages.csv_rows()))
        for first in list(by_system.values())[:1]:
            if first.audit is not None:
                audit = partial(jsonl.write_ground_truth, truth=first.audit.truth)
                writers[f"truth/{slug(dataset)}.audit.jsonl"] = audit
            if all_of_them and not first.truth.forms and flat_fault(first.truth) is None:
                writers[f"truth/{slug(dataset)}.qrels"] = partial(write_flat, truth=first.truth)
    return writers


def _run(outcome: Outcome, dataset: str, system: str) -> Writer:
    """Return a writer for a run, in TREC format if that can store the entire run, and in JSON Lines otherwise."""
    evaluation = outcome.evaluations[dataset][system]
    read = partial(rankings_to_write, evaluation.results.by_original_ids, evaluation.policy)

    def write(path: Path) -> None:
        rankings, calls, trials = read()
        if calls or trials or trec.run_fault(rankings, in_single=True) is not None:
            jsonl.write_run(path.with_suffix(".jsonl"), read()[0], calls=calls, trials=trials)
        else:
            trec.write_run(path, read()[0], file_name(system))

    return write
