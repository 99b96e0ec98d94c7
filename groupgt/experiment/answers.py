"""The answers of every system: retrieved or taken from the cache, combined, or read from files."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from groupgt.engines.choice import Engine
from groupgt.engines.rankings import all_rankings
from groupgt.errors import DataError, GroupgtError, RetrieverError
from groupgt.evaluation.request import as_run
from groupgt.experiment.cache import Keeper
from groupgt.experiment.datasets import Data
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.retrieval import Done, Task, needed
from groupgt.experiment.timing import Timing, machine
from groupgt.model.run import Run
from groupgt.retrievers.base import Answers, check_ids, warn_of_doubts


class Progress(Protocol):
    """Who is told how far retrieval is."""

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

    def planned(self, systems: int, tasks: int, kept: int, queries: int) -> None:
        """Says nothing."""

    def started(self, task: str) -> None:
        """Says nothing."""

    def answered(self, queries: int) -> None:
        """Says nothing."""

    def ended(self) -> None:
        """Says nothing."""


@dataclass(eq=False)
class Retrieval:
    """Retrieves what is needed and not kept, and hands out the answers of every system."""

    experiment: Experiment
    data: Mapping[str, Data]
    keeper: Keeper
    progress: Progress

    def __post_init__(self) -> None:
        self.done: dict[Task, Done] = {}
        self.failed: dict[tuple[str, str], GroupgtError] = {}
        self.combined: dict[Task, tuple[Answers, Timing | None]] = {}
        self.stored: dict[tuple[str, str, Engine], Run] = {}
        self.kept = self.kept_live = 0

    def run(self, changes: Sequence[str], jobs: int) -> None:
        """Retrieves everything; a system that must not fail ends it."""
        tasks = needed(self.experiment)
        for task in tasks:
            found = self.keeper.kept(self.experiment, self.data[task.dataset], task)
            if found is not None:
                self.done[task] = found
        self.kept = len(self.done)
        self.kept_live = sum(self.experiment.systems[task.system].kind.live for task in self.done)
        waiting = [task for task in tasks if task not in self.done]
        queries = sum(len(self.data[task.dataset].truth) for task in waiting)
        self.progress.planned(len(self.experiment.chosen), len(tasks), self.kept, queries)
        try:
            for task, outcome in self._all(waiting, changes, jobs):
                if isinstance(outcome, Done):
                    self.done[task] = outcome
                elif self.experiment.systems[task.system].config.on_error == "fail":
                    raise outcome
                else:
                    self.failed[task.dataset, task.system] = outcome
        finally:
            self.progress.ended()
        for task, done in self.done.items():
            try:
                system = self.experiment.systems[task.system]
                known = self.data[task.dataset].known
                warn_of_doubts(task.system, done.answers, task.depth, known, counted=not system.kind.corpus)
            except RetrieverError as error:
                placed = RetrieverError(*(f"dataset {task.dataset!r}: {text}" for text in error.faults))
                if system.config.on_error == "fail":
                    raise placed from None
                self.failed[task.dataset, task.system] = placed

    def _all(
        self, tasks: Sequence[Task], changes: Sequence[str], jobs: int
    ) -> Iterator[tuple[Task, Done | GroupgtError]]:
        if jobs > 1 and len(tasks) > 1:
            from groupgt.experiment.workers import in_parallel

            for task, found in in_parallel(self.experiment, changes, dict(self.data), self.keeper, tasks, jobs):
                self.progress.started(f"{task.dataset}: {task.system}")
                self.progress.answered(len(self.data[task.dataset].truth))
                yield task, found
            return
        for task in tasks:
            self.progress.started(f"{task.dataset}: {task.system}")
            try:
                yield (
                    task,
                    self.keeper.retrieved(self.experiment, self.data[task.dataset], task, self.progress.answered),
                )
            except RetrieverError as error:
                yield task, error

    def answers(self, dataset: str, name: str, depth: int) -> tuple[Answers, Timing | None]:
        """The answers of a system, those of a fusion made from its inputs' own; raises where one has failed."""
        if (dataset, name) in self.failed:
            raise self.failed[dataset, name]
        system = self.experiment.systems[name]
        if system.kind.build is not None:
            done = self.done[Task(dataset, name, depth)]
            return done.answers, done.timing
        if system.kind.fuse is None:
            return self._stored(dataset, name), None
        task = Task(dataset, name, depth)
        if task not in self.combined:
            self.combined[task] = self._fused(dataset, name, depth)
        return self.combined[task]

    def _fused(self, dataset: str, name: str, depth: int) -> tuple[Answers, Timing | None]:
        system = self.experiment.systems[name]
        fuse = system.kind.fuse
        if fuse is None:
            raise RetrieverError(f"{system.config.use} is no fusion")
        options = self.experiment.options(name, dataset)
        inputs = []
        for each in system.inputs:
            try:
                inputs.append(self.answers(dataset, each, options.depth or depth))
            except GroupgtError as error:
                self.failed[dataset, name] = RetrieverError(f"its input {each!r} failed: {error}")
                raise self.failed[dataset, name] from None
        least = [self.experiment.systems[each].options.least_score() for each in system.inputs]
        start = time.perf_counter()
        try:
            fused = fuse(options, [answers for answers, _ in inputs], least, depth)
        except GroupgtError as error:
            raise RetrieverError(*(f"dataset {dataset!r}: system {name!r}: {text}" for text in error.faults)) from None
        own = 1000 * (time.perf_counter() - start) / max(1, len(fused.ids))
        return fused, _fused_timing(dataset, name, [timing for _, timing in inputs], own)

    def lacks_input(self, dataset: str, name: str) -> bool:
        """Whether a system may be passed over because one that it combines may be."""
        inputs = self.experiment.systems[name].inputs
        return any(
            (dataset, each) in self.failed
            and (self.experiment.systems[each].config.on_error == "skip" or self.lacks_input(dataset, each))
            for each in inputs
        )

    def run_of(self, dataset: str, name: str, engine: Engine | None = None) -> Run:
        """Results that are read from files, as they are, by an engine."""
        data = self.data[dataset]
        options = self.experiment.options(name, dataset)
        # Results without query ids follow the rows of the whole ground truth, whatever `where` leaves of it.
        try:
            qids = data.qids
            run = as_run(options.path, data.truth, options.format, name, qids=qids, engine=engine or Engine())
            if data.known and run.in_memory:
                found = all_rankings(run, self.experiment.policy)
                check_ids(name, Answers({qid: ids for qid, (ids, _) in found}), data.known)
            return run
        except GroupgtError as error:
            own = f"system {name!r}: "
            texts = (f"dataset {dataset!r}: {own}{text.removeprefix(own)}" for text in error.faults)
            raise DataError(*texts, total=error.total) from None

    def _stored(self, dataset: str, name: str) -> Answers:
        """Results that are read from files, as a fusion needs them."""
        found = dict(all_rankings(self.run_of(dataset, name), self.experiment.policy))
        qids = self.data[dataset].truth.qids
        ids = {qid: found[qid][0] if qid in found else [] for qid in qids}
        scores = {qid: list(found[qid][1] or []) if qid in found else [] for qid in qids}
        scored = all(len(scores[qid]) == len(own) for qid, own in ids.items())
        return Answers(ids, scores if scored else None)


def _fused_timing(dataset: str, name: str, inputs: Sequence[Timing | None], own: float) -> Timing | None:
    """The sum of what the inputs take, question by question, and the fusion itself."""
    known = [timing for timing in inputs if timing is not None]
    if len(known) < len(inputs):
        return None
    away = next((timing.machine for timing in known if timing.machine != machine()), machine())
    single, batched = ([timing.single_ms for timing in known], [timing.batched_ms for timing in known])
    return Timing(
        dataset, name, math.fsum(timing.build_s for timing in known), _summed(single, own), _summed(batched, own), away
    )


def _summed(columns: Sequence[Sequence[float]], own: float) -> list[float]:
    """Sums by position; where the inputs were asked in batches of different sizes, of their medians."""
    if not all(columns):
        return []
    if len({len(column) for column in columns}) > 1:
        return [own + sum(sorted(column)[len(column) // 2] for column in columns)]
    return [own + sum(row) for row in zip(*columns)]
