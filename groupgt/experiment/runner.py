"""Turns an experiment file into an `Outcome` by reading data, retrieving, evaluating, comparing and checking gates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from groupgt.comparison.across import Across, Measured, across, mean_length, texts_of
from groupgt.comparison.compare import Comparison, comparison_of
from groupgt.comparison.outcomes import Outcomes, outcomes_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.trials import all_builds
from groupgt.errors import GroupgtError, MetricError, RetrieverError, collecting
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.stages import METRIC, Stages, stages_of
from groupgt.evaluation.trials import check_trials
from groupgt.experiment.answers import Progress, Silence, SystemAnswers
from groupgt.experiment.best import best_systems
from groupgt.experiment.cache import AnswerCache
from groupgt.experiment.config import AnswersConfig
from groupgt.experiment.datasets import Data, digests, read_all
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import shared_process
from groupgt.experiment.gates import judged
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.previous import Previous, against
from groupgt.experiment.systems import is_of_builds, placed
from groupgt.experiment.timing import Timing
from groupgt.formats.answers import read_answers
from groupgt.labellers.code import Code
from groupgt.metrics.language import parse_metric
from groupgt.model.run import Lists, Run
from groupgt.model.values import SCORE, TEXT
from groupgt.render.tables import counted
from groupgt.retrievers.base import Answers


class Running:
    """An experiment run in progress, with its data, system results and labeller verdicts."""

    def __init__(self, experiment: Experiment, progress: Progress, *, refresh: bool, reuse: bool) -> None:
        """Read all data sets, or raise `GroupgtError` with every error in them."""
        progress.doing(f"reading {counted(len(experiment.config.datasets), 'data set')}")
        cache = AnswerCache.of(experiment, refresh=refresh, reuse=reuse)
        self.experiment, self.progress, self.verdicts = experiment, progress, cache.verdicts()
        self.datasets = read_all(experiment, self.verdicts)
        self.answers = SystemAnswers(experiment, self.datasets, cache, progress)

    def begin(self, changes: Sequence[str], only: Sequence[str], *, resume: bool) -> None:
        """Prepare retrieval. With `resume`, continue the newest interrupted run, or raise `ConfigError`."""
        self.answers.begin(changes, only, self.verdicts, resume=resume)

    def outcome(self, changes: Sequence[str], jobs: int, previous: Previous | None = None) -> Outcome:
        """Retrieve in `jobs` processes, evaluate, and compare with the baseline and the previous run, if any."""
        _check_stored_trials(self.experiment, self.answers)
        self.answers.retrieve(changes, jobs)
        self.progress.doing(f"evaluating {counted(len(self.experiment.chosen), 'system')}")
        outcome = _evaluated(self.experiment, self.datasets, self.answers)
        if previous is not None:
            names = outcome.evaluations if previous.name else ()
            compared = {name: against(outcome, name, self.datasets[name], previous) for name in names}
            outcome = replace(outcome, previous=previous.name, against=compared)
        outcome = _concluded(outcome)
        labellers = [data.request.labeller for data in self.datasets.values()]
        judges = [labeller for labeller in labellers if isinstance(labeller, Code)]
        return replace(outcome, kept=self.answers.kept(judges, self.verdicts))

    def finish(self) -> None:
        """Mark results as written, so that the next run queries external code and services again."""
        self.answers.finish()
        self.verdicts.finish()


def outcome_of(path: Path) -> Outcome:
    """Run an experiment file as it is, and write no results."""
    with shared_process() as secrets:
        running = Running(load(path, secrets=secrets), Silence(), refresh=False, reuse=False)
        running.begin((), (), resume=False)
        outcome = running.outcome((), 1)
        running.finish()
    return outcome


def _evaluated(experiment: Experiment, datasets: Mapping[str, Data], system_answers: SystemAnswers) -> Outcome:
    """Evaluate every system on every data set, and record failures of systems with `on_error: skip`."""
    evaluations: dict[str, dict[str, Evaluated]] = {dataset: {} for dataset in experiment.config.datasets}
    failed: dict[str, dict[str, str]] = {}
    answers: dict[tuple[str, str], Answers] = {}
    timings: list[Timing] = []
    stages: dict[str, dict[str, Stages]] = {}
    answered: dict[str, dict[str, Outcomes]] = {}
    for dataset, name in experiment.pairs():
        system, data = experiment.systems[name], datasets[dataset]
        try:
            if system.is_stored:
                run = system_answers.run_of(dataset, name, experiment.engine)
                timing = _stored_timing(dataset, name, run)
            else:
                trials = system_answers.trials(dataset, name, experiment.config.evaluate.depth)
                answers[dataset, name], timing = trials[0][0], Timing.over([each for _, each in trials])
                is_build = is_of_builds(experiment.systems, name)
                run = Run.of_trials([replace(_run_of(name, each), is_build=is_build) for each, _ in trials])
            if timing is not None:
                timings.append(timing)
            with collecting(data.warnings):
                evaluation = evaluated(data, run, dataset, name)
                if system.config.stages:
                    stages.setdefault(dataset, {})[name] = _stages(system_answers, data, dataset, name, run)
            if system.config.answers is not None:
                outcomes = _answered(experiment, dataset, system.config.answers, evaluation)
                answered.setdefault(dataset, {})[name] = outcomes
            evaluations[dataset][name] = evaluation
        except GroupgtError as error:
            if system.config.on_error == "fail" and not system_answers.lacks_input(dataset, name):
                raise
            # Paths below the file's folder become relative, so that they are identical on every machine.
            why = str(error).replace(f"{experiment.path.parent.resolve()}{os.sep}", "")
            failed.setdefault(dataset, {})[name] = experiment.hide(why)
    return Outcome(
        experiment=experiment,
        evaluations={dataset: _ranked(experiment, by_system) for dataset, by_system in evaluations.items()},
        answers=answers,
        timings=timings,
        digests={experiment.hide(name): digest for name, digest in digests(experiment, dict(datasets)).items()},
        failed=failed,
        stages=stages,
        answered=answered,
        absent={name: data.absent for name, data in datasets.items() if data.absent},
        warnings={name: data.warnings for name, data in datasets.items()},
        truths={name: data.truth for name, data in datasets.items()},
        passages={name: data.request.lengths.texts for name, data in datasets.items() if data.request.lengths.texts},
    )


def _stored_timing(dataset: str, name: str, run: Run) -> Timing | None:
    """Return the times and costs that a file of results contains, or None if it contains none."""
    ms = [] if run.traces is None else list(run.traces.ms.values())
    costs = [cost for trial in run.each for cost in trial.costs.values()]
    return Timing(dataset, name, 0.0, ms, [], {}, costs) if ms or costs else None


def _run_of(name: str, answers: Answers) -> Run:
    """Return retrieved results in ranked order, with the scores that the retriever gave them."""
    columns: dict[str, Any] = {SCORE: answers.scores}
    if (texts := answers.texts) is not None:
        columns[TEXT] = {qid: texts.get(qid, []) for qid in answers.ids}
        if any(len(columns[TEXT][qid]) != len(ids) for qid, ids in answers.ids.items()):
            raise RetrieverError(f"system {name!r}: results have ids for some queries, but only text for others")
    fields: dict[str, Any] = {field: partial(dict, column) for field, column in columns.items() if column is not None}
    return Run(Lists(answers.ids, fields=fields), name=name, excluded=answers.excluded, has_ids=texts is None)


def _stages(system_answers: SystemAnswers, data: Data, dataset: str, name: str, run: Run) -> Stages:
    """Evaluate each stage of a pipeline. The first stage is the system itself, unless its stages already include it."""
    experiment = system_answers.experiment
    stages = experiment.stages(name, dataset)
    parts: list[tuple[str, Any, int | None]] = []
    # The file of a stage has the kind of scores that its system has.
    scores = {
        stage.name: experiment.systems[stage.source if stage.is_system else name].config.scores for stage in stages
    }
    if not any(stage.is_system and stage.source == name for stage in stages):
        parts.append((name, run, None))
        scores[name] = experiment.systems[name].config.scores
    for stage in stages:
        source: Any
        if not stage.is_system:
            source = experiment.at(stage.source)
        elif stage.source == name:
            source = run
        elif experiment.systems[stage.source].is_stored:
            source = system_answers.run_of(dataset, stage.source, experiment.engine)
        else:
            depth = experiment.config.evaluate.depth
            source = _run_of(stage.source, system_answers.answers(dataset, stage.source, depth)[0])
        parts.append((stage.name, source, stage.cutoff))
    metrics = {METRIC: parse_metric(METRIC)}
    how = replace(data.request, reading=data.request.reading.but(scores=scores), metrics=metrics, audit=None)
    return stages_of(replace(how, convention="coverage"), data.truth, parts)


def _answered(experiment: Experiment, dataset: str, config: AnswersConfig, evaluation: Evaluated) -> Outcomes:
    """Relate a system's answers to whether its results are complete at the primary metric's cutoff."""
    files = {key: read_answers(experiment.at(path), config.columns) for key, path in config.paths(dataset).items()}
    cutoff = evaluation.metrics[evaluation.text_of(experiment.primary)].cutoff
    return outcomes_of(evaluation, cutoff, files["file"], files.get("oracle"))


def _check_stored_trials(experiment: Experiment, system_answers: SystemAnswers) -> None:
    """Before calling anything, raise `MetricError` if a metric needs more trials than stored results have."""
    counting = [metric for metric in experiment.metrics.values() if metric.passes is not None]
    for dataset, name in experiment.pairs() if counting else ():
        system = experiment.systems[name]
        if system.is_stored and system.config.on_error == "fail":
            run = system_answers.run_of(dataset, name, experiment.engine)
            try:
                check_trials(counting, len(run.trials))
            except MetricError as error:
                raise placed(error, dataset, name, MetricError) from None


def evaluated(data: Data, run: Run, dataset: str, name: str) -> Evaluated:
    """Evaluate a system on a data set. Scores of 0 would hide a lack of results, so raise `RetrieverError`."""
    evaluation = evaluate_run(data.request, data.truth, run)
    judged = int(evaluation.populations.defined.sum())
    if judged and evaluation.counts["missing"] == judged:
        raise RetrieverError(
            f"dataset {dataset!r}: system {name!r} returned no results for any of "
            f"{counted(judged, 'query', 'queries')} that have ground truth. Check that its index is filled "
            "and that query ids match, and check its language, tokenizer, thresholds and filters"
        )
    return evaluation


def _concluded(outcome: Outcome) -> Outcome:
    """Add the best systems, comparisons with the baseline, and gate results to an outcome."""
    experiment = outcome.experiment
    compare = experiment.config.compare
    timings = {(timing.dataset, timing.system): timing for timing in outcome.timings}
    leaders, overall_leaders = best_systems(experiment.rule, outcome.evaluations, timings)
    comparison = {
        dataset: comparison_of(by_system, experiment.config.baseline, experiment.settings, compare.metrics)
        for dataset, by_system in outcome.evaluations.items()
        if compare is not None and experiment.config.baseline in by_system
    }
    compared = [name for name, by_system in outcome.evaluations.items() if by_system]
    return replace(
        outcome,
        comparison=comparison,
        across=_across(outcome),
        systems={name: _table(outcome, name, comparison.get(name)) for name in compared},
        gates=judged(outcome, timings),
        leaders=leaders,
        overall_leaders=overall_leaders,
    )


def _across(outcome: Outcome) -> Across | None:
    """Compare every data set with the baseline data set, if it has results."""
    experiment = outcome.experiment
    by_dataset = {name: by_system for name, by_system in outcome.evaluations.items() if by_system}
    baseline = experiment.across
    if baseline not in by_dataset or len(by_dataset) < 2 or experiment.config.compare is None:
        return None
    measured: dict[str, Measured] = {}
    for name, by_system in by_dataset.items():
        truth, values = outcome.truths[name], {system: each.values for system, each in by_system.items()}
        measured[name] = Measured(truth.qids, texts_of(truth), values, all_builds(by_system))
    return across(
        measured,
        baseline,
        next(iter(next(iter(by_dataset.values())).values())).metrics,
        experiment.settings,
        experiment.convention,
        requested=experiment.config.compare.metrics,
        primary=experiment.primary,
        sizes={name: mean_length(texts) for name, texts in outcome.passages.items() if name in by_dataset},
    )


def _table(outcome: Outcome, dataset: str, comparison: Comparison | None) -> Comparison:
    """Compare systems on the primary metric, with additional data. The baseline defaults to the best system."""
    experiment, evaluations = outcome.experiment, outcome.evaluations[dataset]
    if comparison is None:
        untested = comparison_of(evaluations, next(iter(evaluations)), Settings(seed=experiment.config.seed))
        comparison = replace(untested, is_baseline_named=False)
    return comparison.by(
        experiment.primary,
        passages=outcome.passages.get(dataset, {}),
        absent=frozenset(outcome.absent.get(dataset, [])),
        hide=experiment.hide,
        failed={name: why.partition("\n")[0] for name, why in outcome.failed.get(dataset, {}).items()},
    )


def _ranked(experiment: Experiment, evaluations: dict[str, Evaluated]) -> dict[str, Evaluated]:
    def worth(system: str) -> float:
        evaluation = evaluations[system]
        text = evaluation.text_of(experiment.primary)
        return evaluation.metrics[text].worth(evaluation.means[text])

    return {system: evaluations[system] for system in sorted(evaluations, key=worth, reverse=True)}
