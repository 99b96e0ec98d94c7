"""`run_experiment`: an experiment from file to results.

The process, which code of the user's shares, is put back when the run ends.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from groupgt.comparison.compare import comparison_of
from groupgt.errors import GroupgtError, RetrieverError
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.answers import Kept, Progress, Retrieval, Silence
from groupgt.experiment.best import best_systems
from groupgt.experiment.cache import AnswerCache
from groupgt.experiment.datasets import Data, digests, read_all
from groupgt.experiment.display import Outcome
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.gates import Findings, judged
from groupgt.experiment.results import write_results
from groupgt.experiment.timing import Timing
from groupgt.labellers.code import Code
from groupgt.private import private_messages
from groupgt.render.tables import counted
from groupgt.retrievers.base import Answers
from groupgt.runtime import no_silent_exit
from groupgt.store.files import umask
from groupgt.store.verdicts import VerdictStore


@contextmanager
def shared_process() -> Iterator[dict[str, str]]:
    """Code of the user's may change the process while the run lasts, and end it only as an error.

    Modules put themselves on `sys.path`, change the umask, the working folder or standard output, and may count on it
    as long as the run lasts; then all of it is as it was. What they imported stays in `sys.modules`. What is added to
    the dict that it gives is taken out of errors and warnings.
    """
    secrets: dict[str, str] = {}
    path, mask, streams, folder = [*sys.path], umask(), (sys.stdout, sys.stderr), working_folder()
    try:
        with private_messages(secrets), _exit_as_error(), no_silent_exit():
            yield secrets
    finally:
        sys.path[:] = path
        os.umask(mask)
        sys.stdout, sys.stderr = streams
        if folder is not None and folder != working_folder():
            os.chdir(folder)


@contextmanager
def _exit_as_error() -> Iterator[None]:
    try:
        yield
    except SystemExit as error:
        ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
        raise GroupgtError(f"your code ended the run: {ended_by}") from None


def working_folder() -> str | None:
    """The current folder, None where it is there no more."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def run_experiment(
    path: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    jobs: int = 1,
    refresh: bool = False,
    reuse: bool = False,
    allow_code: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Runs an experiment file and writes its results; raises `GroupgtError` with everything that is wrong.

    A gate that fails is no error: see `Outcome.gates`.

    Args:
        path: The experiment file.
        output: The folder of results, in place of the one that the file names.
        changes: Single values of the file that are changed, such as `evaluate.k=[5]`.
        only: Patterns of the systems to report.
        jobs: How many processes retrieve at once.
        refresh: Retrieve what is kept as well, ask judges again, and make again what scripts have made.
        reuse: Use what services, judges and code of yours said in earlier runs instead of asking again.
        allow_code: Let the file run code of yours.
        progress: Who is told how far retrieval is.
    """
    with shared_process() as secrets:
        told = progress or Silence()
        experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code, secrets=secrets)
        told.doing(f"reading {counted(len(experiment.config.datasets), 'data set')}")
        cache = AnswerCache.of(experiment, refresh=refresh, reuse=reuse)
        judged = cache.verdicts()
        datasets = read_all(experiment, judged, refresh=refresh)
        retrieval = Retrieval(experiment, datasets, cache, told)
        retrieval.run(changes, jobs)
        told.doing(f"evaluating {counted(len(experiment.chosen), 'system')}")
        outcome = _concluded(_evaluated(experiment, datasets, retrieval))
        folder = Path(output) if output is not None else experiment.at(experiment.config.output.folder)
        outcome = replace(outcome, kept=_kept(retrieval, judged, datasets))
        outcome = replace(outcome, folder=write_results(outcome, folder))
        retrieval.finish()
        judged.finish()
        return outcome


def _kept(retrieval: Retrieval, judged: VerdictStore, datasets: Mapping[str, Data]) -> Kept:
    """What earlier runs had said already, and how long this one waited for code of the user's and services."""
    seconds = retrieval.seconds()
    for data in datasets.values():
        judge = data.request.labeller
        if isinstance(judge, Code) and not judge.options.version and judge.seconds:
            seconds["the labeller"] = seconds.get("the labeller", 0.0) + judge.seconds
    return Kept(
        cached=retrieval.kept,
        retrieved=len(retrieval.done) - retrieval.kept,
        answers=retrieval.earlier(),
        verdicts=judged.used,
        judged=judged.judged,
        changed=tuple(judged.changed),
        seconds=seconds,
    )


def _evaluated(experiment: Experiment, datasets: Mapping[str, Data], retrieval: Retrieval) -> Outcome:
    """Every system on every data set, evaluated; what may be skipped and fails is told."""
    evaluations: dict[str, dict[str, Evaluation]] = {dataset: {} for dataset in experiment.config.datasets}
    failed: dict[str, dict[str, str]] = {}
    answers: dict[tuple[str, str], Answers] = {}
    timings: list[Timing] = []
    for dataset, name in experiment.pairs():
        system, data = experiment.systems[name], datasets[dataset]
        try:
            if system.is_stored:
                run = retrieval.run_of(dataset, name, experiment.engine)
            else:
                answers[dataset, name], timing = retrieval.answers(dataset, name, experiment.config.evaluate.depth)
                run = answers[dataset, name].run(name)
                if timing is not None:
                    timings.append(timing)
            evaluation = evaluate_run(data.request, data.truth, run)
            _check_found(evaluation, dataset, name)
            evaluations[dataset][name] = evaluation
        except GroupgtError as error:
            if system.config.on_error == "fail" and not retrieval.lacks_input(dataset, name):
                raise
            # Paths below the file's folder stand there as the file would have them: the same bytes everywhere.
            why = str(error).replace(f"{experiment.path.parent.resolve()}{os.sep}", "")
            failed.setdefault(dataset, {})[name] = experiment.hide(why)
    return Outcome(
        experiment=experiment,
        evaluations={dataset: _ranked(experiment, by_system) for dataset, by_system in evaluations.items()},
        answers=answers,
        timings=timings,
        digests={experiment.hide(name): digest for name, digest in digests(experiment, dict(datasets)).items()},
        failed=failed,
        absent={name: data.absent for name, data in datasets.items() if data.absent},
        truths={name: data.truth for name, data in datasets.items()},
        passages={name: data.request.lengths.texts for name, data in datasets.items() if data.request.lengths.texts},
    )


def _check_found(evaluation: Evaluation, dataset: str, name: str) -> None:
    """Raises `RetrieverError` for a system that found nothing at all: a fault, which zeros would hide."""
    judged = int(evaluation.truth.judgments.defined.sum())
    if judged and evaluation.counts["missing"] == judged:
        raise RetrieverError(
            f"dataset {dataset!r}: system {name!r} found nothing for any of "
            f"{counted(judged, 'query', 'queries')} that have ground truth; check that its index is filled, that query "
            "ids are the same, its language and tokenizer, and its thresholds and filters (`on_error: skip` goes on "
            "without it)"
        )


def _concluded(outcome: Outcome) -> Outcome:
    """What follows from evaluations: comparisons with the baseline, the best, and whether gates hold."""
    experiment = outcome.experiment
    compare, settings = experiment.config.compare, experiment.settings
    timings = {(timing.dataset, timing.system): timing for timing in outcome.timings}
    findings = Findings(experiment.systems, outcome.evaluations, outcome.failed, timings, settings, experiment.baseline)
    leaders, overall_leaders = best_systems(experiment.rule, outcome.evaluations, timings)
    return replace(
        outcome,
        comparison={
            dataset: comparison_of(by_system, compare.baseline, settings, compare.metrics)
            for dataset, by_system in outcome.evaluations.items()
            if compare is not None and compare.baseline in by_system
        },
        gates=judged(experiment.config.gate, findings),
        leaders=leaders,
        overall_leaders=overall_leaders,
    )


def _ranked(experiment: Experiment, evaluations: dict[str, Evaluation]) -> dict[str, Evaluation]:
    """Best first by the primary metric; in the order of the file where there is none."""
    primary = experiment.config.evaluate.primary
    if primary is None:
        return evaluations

    def worse(system: str) -> tuple[bool, float]:
        evaluation = evaluations[system]
        text = evaluation.text_of(primary)
        mean = evaluation.means[text]
        return math.isnan(mean), -mean if evaluation.metrics[text].higher_is_better else mean

    return {system: evaluations[system] for system in sorted(evaluations, key=worse)}
