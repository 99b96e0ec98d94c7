"""`run_experiment`: retrieve, evaluate, compare, judge, write. The same walk for each dataset and system."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from groupgt.comparison.result import comparison_of
from groupgt.comparison.tests import Settings
from groupgt.errors import GroupgtError
from groupgt.evaluation.evaluate import evaluate
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.answers import Progress, Retrieval, Silence
from groupgt.experiment.best import best_systems
from groupgt.experiment.cache import Keeper, cache_of
from groupgt.experiment.config import Experiment, load
from groupgt.experiment.datasets import Data, digests, read_all
from groupgt.experiment.gates import judged
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.results import write_results
from groupgt.experiment.timing import Timing
from groupgt.model.run import Run
from groupgt.retrievers.base import Answers


def run_experiment(
    path: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    jobs: int = 1,
    refresh: bool = False,
    allow_code: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Runs an experiment file and writes its results; raises `GroupgtError` with everything that is wrong.

    `output` replaces the folder of the file, `changes` single values (`evaluate.k=[5]`); `only` are patterns of the
    systems to report. `jobs` processes retrieve at once, `refresh` retrieves what is kept as well, `allow_code` lets
    the file run code of yours. A gate that fails is no error: see `Outcome.gates`.
    """
    experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code)
    data = read_all(experiment)
    keeper = Keeper(cache_of(experiment), refresh)
    retrieval = Retrieval(experiment, data, keeper, progress or Silence())
    retrieval.run(changes, jobs)
    outcome = _evaluated(experiment, data, retrieval)
    folder = Path(output) if output is not None else experiment.at(experiment.config.output.folder)
    return replace(outcome, folder=write_results(outcome, folder))


def _evaluated(experiment: Experiment, data: Mapping[str, Data], retrieval: Retrieval) -> Outcome:
    evaluations: dict[str, dict[str, Evaluation]] = {name: {} for name in experiment.config.datasets}
    failed: dict[str, dict[str, str]] = {}
    answers: dict[tuple[str, str], Answers] = {}
    timings: dict[tuple[str, str], Timing] = {}
    for dataset, name in experiment.pairs():
        system = experiment.systems[name]
        try:
            if system.is_stored:
                run = retrieval.run_of(dataset, name, experiment.engine)
            else:
                answers[dataset, name], timing = retrieval.answers(dataset, name, experiment.config.evaluate.depth)
                run = answers[dataset, name].run(name)
                if timing is not None:
                    timings[dataset, name] = timing
            evaluations[dataset][name] = _evaluation(experiment, data[dataset], run)
        except GroupgtError as error:
            if system.config.on_error == "fail" and not retrieval.lacks_input(dataset, name):
                raise
            # Paths below the file's folder stand there as the file would have them: the same bytes everywhere.
            failed.setdefault(dataset, {})[name] = str(error).replace(f"{experiment.path.parent.resolve()}{os.sep}", "")
    ranked = {dataset: _ranked(experiment, found) for dataset, found in evaluations.items()}
    compare, gates = experiment.config.compare, dict(enumerate(experiment.config.gate))
    settings = _settings(experiment)
    best, overall = best_systems(experiment.config, experiment.metrics, ranked, timings)
    return Outcome(
        experiment=experiment,
        evaluations=ranked,
        answers=answers,
        timings=list(timings.values()),
        digests=digests(experiment, dict(data)),
        failed=failed,
        comparison={
            dataset: comparison_of(found, compare.baseline, settings, compare.metrics)
            for dataset, found in ranked.items()
            if compare is not None and compare.baseline in found
        },
        gates=judged(gates, experiment.config, experiment.systems, ranked, failed, timings, settings),
        best=best,
        overall=overall,
        retrieved=len(retrieval.done) - retrieval.kept,
        cached=retrieval.kept,
        cached_live=retrieval.kept_live,
    )


def _settings(experiment: Experiment) -> Settings:
    """How systems are compared; nothing but deltas depends on it where the file compares none."""
    section, seed = experiment.config.compare, experiment.config.seed
    if section is None:
        return Settings(seed=seed)
    return Settings(**section.model_dump(exclude={"baseline", "metrics"}), seed=seed)


def _evaluation(experiment: Experiment, data: Data, run: Run) -> Evaluation:
    section = experiment.config.evaluate
    return evaluate(
        data.truth,
        run,
        list(experiment.metrics.values()),
        convention=experiment.config.convention,
        by=section.by,
        policy=experiment.policy,
        labeller=data.labeller,
        engine=experiment.engine,
        lengths=data.lengths,
        corpus=data.lengths.texts or None,
    )


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
