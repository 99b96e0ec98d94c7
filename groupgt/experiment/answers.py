"""Who hands out the answers of every system: retrieved or taken from the cache, combined, or read from files.

`runner` has a `Retrieval` retrieve everything that is needed, and then asks it for one system after the other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Protocol

from groupgt.engines.carriers import all_rankings
from groupgt.engines.choice import Engine
from groupgt.errors import ConfigError, DataError, GroupgtError, RetrieverError
from groupgt.evaluation.inputs import as_run
from groupgt.experiment.cache import AnswerCache
from groupgt.experiment.datasets import Data
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.retrieval import Done, Earlier, Task, check_timed, needed, repeats
from groupgt.experiment.timing import Timing, machine
from groupgt.model.run import Run
from groupgt.retrievers.base import Answers, check_ids, warn_of_doubts


class Progress(Protocol):
    """Who is told how far retrieval is."""

    def doing(self, what: str) -> None:
        """What is done now, apart from retrieving."""

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Systems to report, retrievals they need, how many of these are kept, and questions still to be asked."""

    def started(self, task: str) -> None:
        """A retrieval begins."""

    def answered(self, queries: int) -> None:
        """So many questions more are answered."""

    def ended(self) -> None:
        """All is retrieved, or given up."""


class Silence:
    """Nobody is told."""

    def doing(self, what: str) -> None:
        """Says nothing."""

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Says nothing."""

    def started(self, task: str) -> None:
        """Says nothing."""

    def answered(self, queries: int) -> None:
        """Says nothing."""

    def ended(self) -> None:
        """Says nothing."""


@dataclass(frozen=True)
class KeptAnswers:
    """Answers of one system that an earlier run was given: how many of all, and what `Earlier` says of them."""

    dataset: str
    system: str
    queries: int
    earlier: Earlier


@dataclass(frozen=True)
class Kept:
    """What a run was not to ask again: retrievals, answers of code of others and services, and verdicts.

    `seconds` is how long it waited for each system that is asked in every run; `changed` are modules of judges.
    """

    cached: int = 0
    retrieved: int = 0
    answers: Sequence[KeptAnswers] = ()
    verdicts: int = 0
    judged: int = 0
    changed: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Retrieval:
    """Retrieves what is needed and not kept, and hands out the answers of every system.

    `kept` counts the retrievals that were taken from the cache.
    """

    experiment: Experiment
    data: Mapping[str, Data]
    keeper: AnswerCache
    progress: Progress

    def __post_init__(self) -> None:
        self.done: dict[Task, Done] = {}
        self.failed: dict[tuple[str, str], GroupgtError] = {}
        self.kept = 0
        self._combined: dict[Task, tuple[Answers, Timing | None]] = {}
        self._stored: dict[tuple[str, str, str], Run] = {}

    # --- Retrieving.

    def run(self, changes: Sequence[str], jobs: int) -> None:
        """Retrieves everything; a system that must not fail ends it."""
        tasks = needed(self.experiment, self.data)
        for task in tasks:
            done = self.keeper.kept(self.experiment, self.data[task.dataset], task)
            if done is not None:
                self.done[task] = done
        self.kept = len(self.done)
        for task, done in self.done.items():
            if not done.timing.single_ms:
                check_timed(self.experiment, task, singly=False)
        waiting = [task for task in tasks if task not in self.done]
        queries = sum(map(self._questions, waiting))
        self.progress.planned(len(self.experiment.chosen), len(tasks), self.kept, queries)
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

    def _questions(self, task: Task) -> int:
        """How many questions a task asks, those included that it asks a second time."""
        once = len(self.data[task.dataset].truth)
        singly = self.experiment.systems[task.system].options.asks_singly()
        return once + repeats(self.experiment, task, once, singly=singly)

    def earlier(self) -> list[KeptAnswers]:
        """What code of others and services answered in earlier runs."""
        return [
            KeptAnswers(task.dataset, task.system, len(done.answers.ids), done.earlier)
            for task, done in self.done.items()
            if done.earlier is not None
        ]

    def seconds(self) -> dict[str, float]:
        """How long this run waited for each system that is asked in every run."""
        seconds: dict[str, float] = {}
        for task, done in self.done.items():
            if self.experiment.systems[task.system].is_asked_anew:
                seconds[task.system] = seconds.get(task.system, 0.0) + done.seconds
        return seconds

    def finish(self) -> None:
        """The run is finished, and its results are written."""
        self.keeper.finish(self.experiment, self.data, self.done)

    def _retrieved(
        self, tasks: Sequence[Task], changes: Sequence[str], jobs: int
    ) -> Iterator[tuple[Task, Done | GroupgtError]]:
        """Each task with what came of it, in this process or several."""
        if jobs > 1 and len(tasks) > 1:
            from groupgt.experiment.workers import in_parallel

            for task, outcome in in_parallel(self.experiment, changes, dict(self.data), self.keeper, tasks, jobs):
                self.progress.started(f"{task.dataset}: {task.system}")
                self.progress.answered(self._questions(task))
                yield task, outcome
            return
        for task in tasks:
            self.progress.started(f"{task.dataset}: {task.system}")
            data = self.data[task.dataset]
            try:
                yield task, self.keeper.retrieved(self.experiment, data, task, self.progress.answered)
            except (RetrieverError, ConfigError) as error:
                yield task, error

    def _check(self, task: Task, done: Done) -> None:
        """Warns of what is doubtful in answers; those that cannot be right are a failure of their system."""
        kind, known = self.experiment.systems[task.system].kind, self.data[task.dataset].known
        try:
            warn_of_doubts(task.system, done.answers, task.depth, known, counted=not kind.corpus)
        except RetrieverError as error:
            self._fail(task, RetrieverError(*(f"dataset {task.dataset!r}: {text}" for text in error.faults)))

    def _fail(self, task: Task, error: GroupgtError) -> None:
        """Notes why a system failed; raises it where the system must not."""
        if self.experiment.systems[task.system].config.on_error == "fail":
            raise error from None
        self.failed[task.dataset, task.system] = error

    # --- Handing out.

    def answers(self, dataset: str, name: str, depth: int) -> tuple[Answers, Timing | None]:
        """The answers of a system, those of a fusion made from its inputs' own; raises where one has failed."""
        if (dataset, name) in self.failed:
            raise self.failed[dataset, name]
        system, task = self.experiment.systems[name], Task(dataset, name, depth)
        if system.is_stored:
            return self._stored_answers(dataset, name), None
        if system.kind.build is not None:
            further = self.data[dataset].left_out
            done = self.done[replace(task, depth=depth + further)]
            return self._without_excluded(dataset, done.answers, depth) if further else done.answers, done.timing
        if task not in self._combined:
            self._combined[task] = self._fused(dataset, name, depth)
        return self._combined[task]

    def _without_excluded(self, dataset: str, answers: Answers, depth: int) -> Answers:
        """Answers without what the ground truth leaves out of them, cut to a depth."""
        truth, scores = self.data[dataset].truth, answers.scores
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
        return Answers(ids, None if scores is None else kept_scores, excluded=removed)

    def _fused(self, dataset: str, name: str, depth: int) -> tuple[Answers, Timing | None]:
        system = self.experiment.systems[name]
        fuse = system.kind.fuse
        if fuse is None:
            raise RetrieverError(f"{system.config.use} is no fusion")
        options = self.experiment.options(name, dataset)
        inputs = []
        for below in system.inputs:
            try:
                inputs.append(self.answers(dataset, below, options.depth or depth))
            except GroupgtError as error:
                self.failed[dataset, name] = RetrieverError(f"its input {below!r} failed: {error}")
                raise self.failed[dataset, name] from None
        least = [self.experiment.systems[below].options.least_score() for below in system.inputs]
        start = time.perf_counter()
        try:
            fused = fuse(options, [answers for answers, _ in inputs], least, depth)
        except GroupgtError as error:
            raise RetrieverError(*(f"dataset {dataset!r}: system {name!r}: {text}" for text in error.faults)) from None
        fused = replace(fused, excluded=sum(answers.excluded for answers, _ in inputs))
        fusion_ms = 1000 * (time.perf_counter() - start) / max(1, len(fused.ids))
        return fused, _fused_timing(dataset, name, [timing for _, timing in inputs], fusion_ms)

    def lacks_input(self, dataset: str, name: str) -> bool:
        """Whether a system may be passed over because one that it combines may be."""
        return any(
            (dataset, below) in self.failed
            and (self.experiment.systems[below].config.on_error == "skip" or self.lacks_input(dataset, below))
            for below in self.experiment.systems[name].inputs
        )

    def run_of(self, dataset: str, name: str, engine: Engine | None = None) -> Run:
        """Results that are read from files, as they are, by an engine; each is read once."""
        engine = engine or Engine()
        key = (dataset, name, engine.name)
        if key not in self._stored:
            self._stored[key] = self._read(dataset, name, engine)
        return self._stored[key]

    def _read(self, dataset: str, name: str, engine: Engine) -> Run:
        data, options = self.data[dataset], self.experiment.options(name, dataset)
        try:
            # Results without query ids follow the rows of the whole ground truth, whatever `where` leaves of it.
            run = as_run(options.path, data.truth, options.format, name, parts=True, qids=data.qids, engine=engine)
            if data.known and run.in_memory:
                rankings = all_rankings(run, self.experiment.policy)
                check_ids(name, Answers({qid: ids for qid, (ids, _) in rankings}), data.known)
        except GroupgtError as error:
            start = f"system {name!r}: "
            texts = (f"dataset {dataset!r}: {start}{text.removeprefix(start)}" for text in error.faults)
            raise DataError(*texts, total=error.total) from None
        return run

    def _stored_answers(self, dataset: str, name: str) -> Answers:
        """Results that are read from files, as a fusion needs them."""
        run = self.run_of(dataset, name)
        rankings = dict(all_rankings(run, self.experiment.policy))
        nothing: tuple[list[str], Sequence[float] | None] = ([], None)
        by_query = {qid: rankings.get(qid, nothing) for qid in self.data[dataset].truth.qids}
        ids = {qid: ranked for qid, (ranked, _) in by_query.items()}
        scores = {qid: list(values or ()) for qid, (_, values) in by_query.items()}
        are_scored = all(len(scores[qid]) == len(ranked) for qid, ranked in ids.items())
        return Answers(ids, scores if are_scored else None, run.excluded)


def _fused_timing(dataset: str, name: str, inputs: Sequence[Timing | None], fusion_ms: float) -> Timing | None:
    """The sum of what the inputs take, question by question, and the fusion itself."""
    known = [timing for timing in inputs if timing is not None]
    if len(known) < len(inputs):
        return None
    return Timing(
        dataset,
        name,
        math.fsum(timing.build_s for timing in known),
        _summed([timing.single_ms for timing in known], fusion_ms),
        _summed([timing.batched_ms for timing in known], fusion_ms),
        next((timing.machine for timing in known if timing.machine != machine()), machine()),
    )


def _summed(columns: Sequence[Sequence[float]], fusion_ms: float) -> list[float]:
    """Sums by position; where the inputs were asked in batches of different sizes, of their medians."""
    if not all(columns):
        return []
    if len({len(column) for column in columns}) > 1:
        return [fusion_ms + sum(sorted(column)[len(column) // 2] for column in columns)]
    return [fusion_ms + sum(row) for row in zip(*columns)]
