"""`run_experiment`: retrieve, evaluate, write. The same walk as `evaluate`, once for each dataset and system."""

from __future__ import annotations

import hashlib
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, GroupgtError, GroupgtWarning
from groupgt.evaluation.core import evaluate
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.slices import Slicer
from groupgt.evaluation.sources import as_ground_truth, as_run
from groupgt.experiment.config import Experiment, load
from groupgt.experiment.outcome import Outcome, Timing
from groupgt.experiment.outputs import write_results
from groupgt.formats.corpus import read_corpus
from groupgt.formats.detect import read_run
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Run
from groupgt.retrievers.base import Corpus, run_from
from groupgt.retrievers.registry import RETRIEVERS

__all__ = ["plan", "run_experiment"]

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class _Data:
    truth: GroundTruth
    corpus: Corpus | None
    qids: list[str]


def run_experiment(
    path: str | os.PathLike[str], *, output: str | os.PathLike[str] | None = None, say: Say | None = None
) -> Outcome:
    """Runs an experiment file and writes its results; raises `GroupgtError` with everything that is wrong.

    `output` replaces the folder of the file; `say` is told what is being done.
    """
    experiment = load(Path(path))
    tell = say or (lambda text: None)
    data = _read_all(experiment)
    _check_all(experiment, data)
    evaluations: dict[str, dict[str, Evaluation]] = {name: {} for name in experiment.config.datasets}
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    timings: list[Timing] = []
    for dataset, system in experiment.pairs():
        tell(f"{dataset}: {system}")
        run, own, timing = _retrieve(experiment, dataset, system, data[dataset])
        scores[dataset, system] = own
        timings.append(timing)
        section = experiment.config.evaluate
        evaluations[dataset][system] = evaluate(
            data[dataset].truth,
            run,
            list(experiment.metrics.values()),
            convention=experiment.config.convention,
            by=section.by,
            policy=experiment.policy,
            labeller=section.labeller.use,
            name=system,
        )
    ranked = {dataset: _ranked(experiment, found) for dataset, found in evaluations.items()}
    outcome = Outcome(experiment, ranked, scores, timings, digests=_digests(experiment))
    folder = Path(output) if output is not None else experiment.at(experiment.config.output.folder)
    written = write_results(outcome, folder)
    return Outcome(experiment, ranked, scores, timings, written, outcome.digests)


def plan(path: str | os.PathLike[str]) -> tuple[list[str], list[list[Any]]]:
    """Checks everything that can be checked without retrieving; headers and rows of what would be done."""
    experiment = load(Path(path))
    data = _read_all(experiment)
    _check_all(experiment, data)
    rows: list[list[Any]] = []
    for dataset, system in experiment.pairs():
        own = data[dataset]
        size = len(own.corpus) if own.corpus and experiment.config.systems[system].use != "results" else None
        rows.append(
            [dataset, system, experiment.config.systems[system].use, len(own.truth), size, len(experiment.metrics)]
        )
    return ["dataset", "system", "uses", "questions", "documents", "metrics"], rows


def _read_all(experiment: Experiment) -> dict[str, _Data]:
    """Reads every dataset; what is wrong with several is said at once."""
    faults = Faults()
    data: dict[str, _Data] = {}
    for name, dataset in experiment.config.datasets.items():
        try:
            whole = as_ground_truth(experiment.at(dataset.ground_truth), experiment.policy, dataset.format)
            truth = _where(whole, dataset.where, name)
            corpus = Corpus.of(read_corpus(experiment.at(dataset.corpus))) if dataset.corpus else None
            data[name] = _Data(truth, corpus, whole.qids)
            if corpus is not None:
                _warn_of_strangers(name, truth, corpus)
        except GroupgtError as error:
            for text in error.faults:
                faults.add("", text)
    faults.stop(DataError)
    return data


def _warn_of_strangers(dataset: str, truth: GroundTruth, corpus: Corpus) -> None:
    """Says which ids of the ground truth no search of the corpus can find."""
    known = set(corpus.ids)
    absent = sorted({name for name in truth.ids if name not in known})
    if absent:
        text = f"dataset {dataset!r}: {len(absent):,} ids of the ground truth are not in the corpus: "
        warnings.warn(text + ", ".join(absent[:3]) + (" …" if len(absent) > 3 else ""), GroupgtWarning, stacklevel=2)


def _where(truth: GroundTruth, where: dict[str, list[Any]], dataset: str) -> GroundTruth:
    """The rows whose columns have one of the values asked."""
    keep = np.ones(len(truth), dtype=np.bool_)
    for column, values in where.items():
        if column not in truth.columns:
            known = ", ".join(truth.columns) or "none"
            raise ConfigError(f"dataset {dataset!r}: where: the ground truth has no column {column!r}; it has {known}")
        keep &= np.array([value in values for value in truth.columns[column]], dtype=np.bool_)
    if where and not keep.any():
        raise ConfigError(f"dataset {dataset!r}: where: no question is left")
    return truth.select(np.flatnonzero(keep).tolist()) if where else truth


def _check_all(experiment: Experiment, data: dict[str, _Data]) -> None:
    """What only the data can say: columns to slice by, texts of the questions."""
    faults = Faults()
    searching = {
        dataset for dataset, system in experiment.pairs() if RETRIEVERS[experiment.config.systems[system].use].build
    }
    for name, own in data.items():
        try:
            Slicer(own.truth, experiment.config.evaluate.by)
        except GroupgtError as error:
            faults.add(f"dataset {name!r}", str(error))
        if name in searching:
            texts = own.truth.texts or [None] * len(own.truth)
            absent = [qid for qid, text in zip(own.truth.qids, texts) if not text]
            if absent:
                shown = ", ".join(absent[:3])
                faults.add(
                    f"dataset {name!r}", f"{len(absent):,} questions have no text (query) to search with: {shown}"
                )
    faults.stop(ConfigError)


def _retrieve(
    experiment: Experiment, dataset: str, system: str, data: _Data
) -> tuple[Run, dict[str, list[float]], Timing]:
    config = experiment.config.systems[system]
    kind, options = RETRIEVERS[config.use], experiment.options[system]
    start = time.perf_counter()
    if kind.build is None:
        # Results without query ids follow the rows of the whole ground truth, whatever `where` leaves of it.
        stored = read_run(experiment.at(options.at(dataset)), options.format, qids=data.qids)
        run = as_run(stored, data.truth, name=system)
        return run, {}, Timing(dataset, system, 0.0, time.perf_counter() - start, len(data.truth))
    if data.corpus is None or data.truth.texts is None:
        raise ConfigError(f"system {system!r} searches a corpus, and dataset {dataset!r} has none")
    depth = experiment.config.evaluate.depth
    retriever = kind.build(data.corpus, options)
    built = time.perf_counter()
    rankings = retriever.retrieve([text or "" for text in data.truth.texts], depth)
    done = time.perf_counter()
    run, scores = run_from(system, data.truth.qids, rankings, depth)
    return run, scores, Timing(dataset, system, built - start, done - built, len(data.truth))


def _ranked(experiment: Experiment, found: dict[str, Evaluation]) -> dict[str, Evaluation]:
    """Best first by the primary metric; in the order of the file where there is none."""
    primary = experiment.config.evaluate.primary
    if primary is None:
        return found

    def worse(system: str) -> tuple[bool, float]:
        evaluation = found[system]
        text = evaluation.text_of(primary)
        mean = evaluation.means[text]
        return math.isnan(mean), -mean if evaluation.metrics[text].higher_is_better else mean

    return {system: found[system] for system in sorted(found, key=worse)}


def _digests(experiment: Experiment) -> dict[str, str]:
    """SHA-256 of the experiment file and of every data file it names."""
    paths = {str(experiment.path): experiment.path}
    for dataset in experiment.config.datasets.values():
        for given in (dataset.ground_truth, dataset.corpus):
            if given is not None and experiment.at(given).is_file():
                paths[given] = experiment.at(given)
    for name, system in experiment.pairs():
        if RETRIEVERS[experiment.config.systems[system].use].build is None:
            given = experiment.options[system].at(name)
            paths[given] = experiment.at(given)
    named = {name if name != str(experiment.path) else experiment.path.name: path for name, path in paths.items()}
    return {name: _sha256(path) for name, path in sorted(named.items())}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
