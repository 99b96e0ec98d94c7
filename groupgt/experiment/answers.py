"""Collects the results of every system, whether fresh, cached, fused or read from files."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any, Protocol

from groupgt.engines.carriers import all_rankings
from groupgt.engines.choice import Engine
from groupgt.errors import ConfigError, DataError, GroupgtError, RetrieverError, collecting
from groupgt.experiment.cache import AnswerCache, Done, Earlier, Task, needed, run_key
from groupgt.experiment.datasets import Data
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.retrieval import Left, asked_together, left_by, resumed, retrieve
from groupgt.experiment.systems import placed, trials_of
from groupgt.experiment.timing import Timing, machine
from groupgt.formats.parts import are_parts
from groupgt.labellers.code import Code
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Run
from groupgt.retrievers.base import Answers, check_ids, warn_of_doubts
from groupgt.store.verdicts import VerdictStore

NONE_LEFT = (
    "--resume: nothing to continue, because no interrupted run of this file with the same options, --set, --only, "
    "queries and corpora stored answers from code, services or labellers. Run without --resume"
)


class Progress(Protocol):
    """Callbacks that report the progress of a run."""

    def doing(self, what: str) -> None:
        """Report the beginning of a step other than retrieval."""

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Before retrieval, report the number of systems, retrievals, cached retrievals and queries."""

    def started(self, task: str) -> None:
        """Report the start of a retrieval."""

    def answered(self, queries: int) -> None:
        """Report that `queries` more queries have been answered."""

    def ended(self) -> None:
        """Report that retrieval has finished or was aborted."""

    def left(self, left: Left) -> None:
        """Before retrieval, report that an interrupted run left answers that this run does not use."""


class Silence:
    """Progress callbacks that do nothing."""

    def doing(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    planned = started = answered = ended = left = doing


@dataclass(frozen=True)
class KeptAnswers:
    """Results that one system reused from an earlier run. `earlier` describes that run."""

    dataset: str
    system: str
    queries: int
    earlier: Earlier


@dataclass(frozen=True)
class Kept:
    """The results and verdicts that a run reused, and the `seconds` spent on each system that is always queried."""

    cached: int = 0
    retrieved: int = 0
    answers: Sequence[KeptAnswers] = ()
    verdicts: int = 0
    judged: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class SystemAnswers:
    """Retrieves, caches and returns the results of every system. `done` maps each finished task to its results."""

    experiment: Experiment
    data: Mapping[str, Data]
    keeper: AnswerCache
    progress: Progress
    done: dict[Task, Done] = field(default_factory=dict)
    failed: dict[tuple[str, str], GroupgtError] = field(default_factory=dict)
    # Number of retrievals taken from the cache.
    cached: int = 0
    _combined: dict[Task, tuple[Answers, Timing | None]] = field(default_factory=dict)
    _stored: dict[tuple[str, str, str], Run] = field(default_factory=dict)

    # --- Retrieval.

    @cached_property
    def tasks(self) -> list[Task]:
        """All retrievals that the reported systems need."""
        return needed(self.experiment, self.data)

    def begin(self, changes: Sequence[str], only: Sequence[str], verdicts: VerdictStore, *, resume: bool) -> None:
        """Identify the run. With `resume`, continue an interrupted run, or raise `ConfigError` if there is none."""
        self.keeper = replace(self.keeper, run=run_key(self.tasks, changes, only))
        verdicts.about["run"] = self.keeper.run
        left = left_by(self.keeper, self.tasks, verdicts)
        if resume and left is None:
            raise ConfigError(NONE_LEFT)
        if resume and left is not None:
            self.keeper = resumed(self.keeper, self.tasks, verdicts, left)
            return
        if left is not None and not self.keeper.reuse:
            self.progress.left(left)
        for task in self.tasks:
            if not self.keeper.takes_any(task):
                # Without a trace of an earlier run in this process.
                self.keeper.journals(task).own.remove()

    def retrieve(self, changes: Sequence[str], jobs: int) -> None:
        """Run all missing retrievals in `jobs` processes, and stop if a system with `on_error: fail` fails."""
        kept = {task: self.keeper.kept(task) for task in self.tasks}
        self.done = {task: done for task, done in kept.items() if done is not None}
        self.cached = len(self.done)
        for task, done in self.done.items():
            if not done.timing.single_ms:
                task.check_timed(singly=False)
        waiting = [task for task in self.tasks if task not in self.done]
        self.progress.planned(len(self.experiment.chosen), len(self.tasks), self.cached, sum(map(_queries, waiting)))
        try:
            for task, outcome in self._retrieved(waiting, changes, jobs):
                if isinstance(outcome, Done):
                    self.done[task] = outcome
                else:
                    self._fail(task, outcome)
        finally:
            self.progress.ended()
        for task, done in self.done.items():
            self._check(task, done)

    def _retrieved(
        self, tasks: Sequence[Task], changes: Sequence[str], jobs: int
    ) -> Iterator[tuple[Task, Done | GroupgtError]]:
        """Yield each task with its results or error, using one process or several."""
        groups = asked_together(tasks)
        if jobs > 1 and len(groups) > 1:
            from groupgt.experiment.workers import in_parallel

            for task, outcome in in_parallel(self.experiment, changes, self.keeper, groups, jobs):
                self.progress.started(f"{task.dataset}: {task.name}")
                self.progress.answered(_queries(task))
                yield task, outcome
            return
        for group in groups:
            self.progress.started(f"{group[0].dataset}: {group[0].name}")
            try:
                yield from zip(group, retrieve(group, self.keeper, self.progress.answered))
            except (RetrieverError, ConfigError) as error:
                yield group[0], error

    def kept(self, judges: Iterable[Code], verdicts: VerdictStore) -> Kept:
        """Return the reused results and verdicts, and the time that this run spent in external code and services."""
        seconds: dict[str, float] = defaultdict(float)
        for task, done in self.done.items():
            if task.system.is_requeried:
                seconds[task.name] += done.seconds
        for judge in judges:
            if not judge.options.version and judge.seconds:
                seconds["the labeller"] += judge.seconds
        answers = [
            KeptAnswers(task.dataset, task.name, len(done.answers.ids), done.earlier)
            for task, done in self.done.items()
            if done.earlier is not None
        ]
        return Kept(
            cached=self.cached,
            retrieved=len(self.done) - self.cached,
            answers=answers,
            verdicts=verdicts.used,
            judged=verdicts.judged,
            seconds=seconds,
        )

    def finish(self) -> None:
        """Mark results as written, so that later runs use these retrievals only if `reuse` is set."""
        for task, done in self.done.items():
            if task.system.is_requeried and (done.earlier is None or done.earlier.interrupted):
                self.keeper.finish(task, done)

    def _check(self, task: Task, done: Done) -> None:
        """Warn about suspicious results, and record a failure if results are invalid."""
        kind = task.system.kind
        corpus_ids = None if done.answers.texts is not None else self.data[task.dataset].corpus_ids
        try:
            with collecting(self.data[task.dataset].warnings):
                warn_of_doubts(task.name, done.answers, task.depth, corpus_ids, counted=not kind.corpus)
        except RetrieverError as error:
            self._fail(task, placed(error, task.dataset, task.name, RetrieverError))

    def _fail(self, task: Task, error: GroupgtError) -> None:
        """Record why a system failed, and raise the error if the system has `on_error: fail`."""
        if task.system.config.on_error == "fail":
            raise error from None
        self.failed[task.dataset, task.name] = error

    # --- Access.

    def trials(self, dataset: str, name: str, depth: int) -> list[tuple[Answers, Timing | None]]:
        """Return the results and timing of a system's trials, or raise the error that made the system fail."""
        trials = range(1, trials_of(self.experiment.systems, name) + 1)
        return [self.answers(dataset, name, depth, trial) for trial in trials]

    def answers(self, dataset: str, name: str, depth: int, trial: int = 1) -> tuple[Answers, Timing | None]:
        """Return the results and timing of one trial of a system, or raise the error that made the system fail."""
        if (dataset, name) in self.failed:
            raise self.failed[dataset, name]
        system, data = self.experiment.systems[name], self.data[dataset]
        if system.is_stored:
            return self._stored_answers(dataset, name), None
        trial = min(trial, trials_of(self.experiment.systems, name))
        task = Task(dataset, name, depth, self.experiment, data, trial)
        if system.kind.fuse is None:
            done = self.done[replace(task, depth=depth + data.left_out)]
            answers = _without_excluded(data.truth, done.answers, depth) if data.left_out else done.answers
            return answers, done.timing
        if task not in self._combined:
            self._combined[task] = self._fused(task, system.kind.fuse)
        return self._combined[task]

    def _fused(self, task: Task, fuse: Callable[..., Answers]) -> tuple[Answers, Timing | None]:
        dataset, name, depth, system, options = task.dataset, task.name, task.depth, task.system, task.options
        inputs = []
        for below in system.inputs:
            try:
                answers, timing = self.answers(dataset, below, options.depth or depth, task.trial)
                if answers.texts is not None:
                    raise RetrieverError("expected results with ids for the fusion, found only text")
                inputs.append((self._falling(below, answers), timing))
            except GroupgtError as error:
                self.failed[dataset, name] = RetrieverError(f"its input {below!r} failed: {error}")
                raise self.failed[dataset, name] from None
        least = [self.experiment.systems[below].options.least_score() for below in system.inputs]
        start = time.perf_counter()
        try:
            fused = fuse(options, [answers for answers, _ in inputs], least, depth)
        except GroupgtError as error:
            raise placed(error, dataset, name, RetrieverError) from None
        fused = replace(fused, excluded=sum(answers.excluded for answers, _ in inputs))
        fusion_ms = 1000 * (time.perf_counter() - start) / max(1, len(fused.ids))
        return fused, _fused_timing(dataset, name, [timing for _, timing in inputs], fusion_ms)

    def _falling(self, name: str, answers: Answers) -> Answers:
        """Return results with higher scores for better results, as fusions require."""
        if answers.scores is None or not self.experiment.systems[name].ascending:
            return answers
        return replace(answers, scores={qid: [-score for score in row] for qid, row in answers.scores.items()})

    def lacks_input(self, dataset: str, name: str) -> bool:
        """Return whether a system can be skipped because one of its inputs was skipped."""
        return any(
            (dataset, below) in self.failed
            and (self.experiment.systems[below].config.on_error == "skip" or self.lacks_input(dataset, below))
            for below in self.experiment.systems[name].inputs
        )

    def run_of(self, dataset: str, name: str, engine: Engine | None = None) -> Run:
        """Read stored results with the given engine, without changing them. Each file is read once."""
        engine = engine or Engine()
        key = (dataset, name, engine.name)
        if key in self._stored:
            return self._stored[key]
        data, options = self.data[dataset], self.experiment.options(name, dataset)
        try:
            reading = data.request.reading.but(parts=are_parts(options.path), engine=engine, **options.how)
            reading.require_columns([options.path])
            with collecting(data.warnings):
                run = reading.run(options.path, data.truth, name)
                if data.corpus_ids and run.in_memory:
                    rankings = all_rankings(run, self.experiment.policy)
                    check_ids(name, Answers({qid: ids for qid, (ids, _) in rankings}), data.corpus_ids)
        except GroupgtError as error:
            raise placed(error, dataset, name, DataError) from None
        self._stored[key] = run
        return run

    def _stored_answers(self, dataset: str, name: str) -> Answers:
        """Read stored results, and return them in the form that fusion needs."""
        run = self.run_of(dataset, name)
        if run.trials:
            what = "expected one run to combine, found trials; give each trial its own file and system"
            raise placed(DataError(what), dataset, name, DataError)
        rankings = dict(all_rankings(run, self.experiment.policy))
        nothing: tuple[list[str], Sequence[float] | None] = ([], None)
        by_query = {qid: rankings.get(qid, nothing) for qid in self.data[dataset].truth.qids}
        ids = {qid: ranked for qid, (ranked, _) in by_query.items()}
        scores = {qid: list(values or ()) for qid, (_, values) in by_query.items()}
        are_scored = all(len(scores[qid]) == len(ranked) for qid, ranked in ids.items())
        return Answers(ids, scores if are_scored else None, run.excluded)


def _queries(task: Task) -> int:
    """Return the number of queries that a task runs, counting repeats."""
    return len(task.data.truth) + task.repeats(singly=task.system.options.asks_singly())


def _without_excluded(truth: GroundTruth, answers: Answers, depth: int) -> Answers:
    """Remove ids that the ground truth excludes and cut each ranking to the given depth."""
    scores = answers.scores
    ids: dict[str, list[str]] = {}
    kept_scores: dict[str, list[float]] = {}
    removed = 0
    for qid, excluded in zip(truth.qids, truth.excluded or ()):
        ranking = answers.ids[qid]
        kept = [name not in excluded for name in ranking]
        removed += len(kept) - sum(kept)
        ids[qid] = list(compress(ranking, kept))[:depth]
        if scores is not None:
            kept_scores[qid] = list(compress(scores[qid], kept))[:depth]
    texts = None if answers.texts is None else {qid: row[:depth] for qid, row in answers.texts.items()}
    return Answers(ids, None if scores is None else kept_scores, excluded=removed, texts=texts)


def _fused_timing(dataset: str, name: str, inputs: Sequence[Timing | None], fusion_ms: float) -> Timing | None:
    """Add up the times of all inputs and of the fusion itself, query by query."""
    timings = [timing for timing in inputs if timing is not None]
    if len(timings) < len(inputs):
        return None
    build_s = math.fsum(timing.build_s for timing in timings)
    single_ms = _summed([timing.single_ms for timing in timings], fusion_ms)
    batched_ms = _summed([timing.batched_ms for timing in timings], fusion_ms)
    where = next((timing.machine for timing in timings if timing.machine != machine()), machine())
    costs = [timing.costs for timing in timings]
    summed: list[float] = list(map(sum, zip(*costs))) if len(set(map(len, costs))) == 1 else []
    return Timing(dataset, name, build_s, single_ms, batched_ms, where, summed)


def _summed(columns: Sequence[Sequence[float]], fusion_ms: float) -> list[float]:
    """Add up times by position, or add up medians if the inputs used different batch sizes."""
    if not all(columns):
        return []
    if len({len(column) for column in columns}) > 1:
        return [fusion_ms + sum(sorted(column)[len(column) // 2] for column in columns)]
    return [fusion_ms + sum(row) for row in zip(*columns)]
