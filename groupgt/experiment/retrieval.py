"""Runs a retriever: builds it, queries it in batches, measures times, and stores results as they arrive.

An interrupted run resumes from its partial results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from groupgt.errors import DataError, GroupgtError, RetrieverError
from groupgt.experiment.cache import (
    DAMAGE,
    AnswerCache,
    Done,
    Earlier,
    Task,
    answers_of,
    rows_of,
    timing_of,
    warn_of_failure,
)
from groupgt.experiment.fresh import Fresh, Here
from groupgt.experiment.systems import placed
from groupgt.experiment.timing import Timing, machine
from groupgt.retrievers.base import Answers, Corpus, Setting
from groupgt.runtime import raised
from groupgt.store.journal import SYNCED_EVERY_S, Journal, now
from groupgt.store.loaded import Trace


def retrieve(task: Task, keeper: AnswerCache, answered: Callable[[int], None] = lambda queries: None) -> Done:
    """Builds a system and runs all queries; raises `RetrieverError` if anything fails.

    Partial results are stored even if the run does not finish; if storing fails, a warning is issued. `answered` is
    called with the number of newly finished queries.
    """
    unfinished = Unfinished(keeper, task)
    system, data, experiment = task.system, task.data, task.experiment
    setting = Setting(data.corpus or Corpus([], []), data.qids, experiment.config.seed)
    folder = experiment.path.parent.resolve()
    try:
        source: Here | Fresh
        if system.kind.runs_code:
            source = Fresh(task.name, system.kind, task.options, folder, setting)
        else:
            source = Here(task.name, system.kind, task.options, setting)
        with closing(source):
            task.check_timed(singly=source.singly)
            done = _answered(task, source, unfinished, answered)
    except BaseException as error:
        unfinished.flush()
        if isinstance(error, KeyboardInterrupt):
            raise
        if isinstance(error, GroupgtError):
            raise placed(error, task.dataset, task.name, RetrieverError) from None
        # A library's panic and sys.exit in user code are not an `Exception`.
        raise placed(RetrieverError(raised(error)), task.dataset, task.name, RetrieverError) from error
    unfinished.end(done)
    return done


def _answered(task: Task, source: Here | Fresh, unfinished: Unfinished, answered: Callable[[int], None]) -> Done:
    """Runs the remaining queries in batches, then repeats some queries one by one if single queries must be timed."""
    begun, queries = unfinished.begun(source), task.data.queries
    spent_ms = 0.0
    answered(len(begun.answers.ids))
    size = 1 if source.singly and unfinished.every_batch else task.options.batch_size()
    for first in range(len(begun.answers.ids), len(queries), size):
        answers, spent, modules = source.ask(queries.part(first, first + size), task.depth)
        begun.add(answers, spent, modules)
        unfinished.add(answers, spent, modules)
        spent_ms += math.fsum(spent)
        answered(len(answers.ids))
    timing = begun.done
    if timing is None:
        single_ms = begun.single_ms
        if len(single_ms) < len(queries):
            single_ms = []
            count = task.repeats(singly=False)
            for number in range(count):  # evenly spaced
                position = number * len(queries) // count
                single_ms += source.ask(queries.part(position, position + 1), task.depth)[1]
                answered(1)
            spent_ms += math.fsum(single_ms)
        timing = Timing(task.dataset, task.name, source.build_s, single_ms, begun.batched_ms, machine())
    modules = {**source.modules, **begun.modules}
    return Done(begun.answers, timing, modules, source.build_s + spent_ms / 1000, begun.earlier)


# --- Unfinished tasks.


@dataclass(eq=False)
class Begun:
    """The results of a task so far, with milliseconds per query for batches and for single calls.

    `done` holds the timing of the complete task if an earlier run answered all queries.
    """

    answers: Answers = field(default_factory=lambda: Answers({}, {}))
    batched_ms: list[float] = field(default_factory=list)
    single_ms: list[float] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)
    earlier: Earlier | None = None
    done: Timing | None = None

    @classmethod
    def left(cls, task: Task, lines: Sequence[Any], trace: Trace) -> Begun | None:
        """Reads the entries of a journal; returns None if they do not match the task's queries in order."""
        begun, qids = cls(), task.data.queries.ids
        try:
            for line in lines:
                rows = line.get("rows", [])
                first = len(begun.answers.ids)
                if rows:
                    answers = answers_of(task, qids[first : first + len(rows)], rows)
                    begun.add(answers, [float(ms) for ms in line["spent"]], line["modules"])
                elif "timing" in line and first == len(qids):
                    begun.done = timing_of(task, line["timing"])
        except DAMAGE:
            return None
        if not begun.answers.ids:
            return None
        begun.earlier = Earlier(len(begun.answers.ids), trace.at, interrupted=True)
        return begun

    def add(self, answers: Answers, spent: Sequence[float], modules: Mapping[str, str]) -> None:
        """Adds the results of one batch, the milliseconds of each call, and the modules loaded during the batch."""
        if len(spent) == len(answers.ids):
            self.single_ms += spent
        self.answers.ids.update(answers.ids)
        are_scored = self.answers.scores is not None and answers.scores is not None
        scores = {**(self.answers.scores or {}), **(answers.scores or {})} if are_scored else None
        self.answers = Answers(self.answers.ids, scores)
        self.batched_ms.append(math.fsum(spent) / max(1, len(answers.ids)))
        self.modules |= modules


class Unfinished:
    """Partial results of a task, stored as they arrive until the task is done.

    Results from external code and services are stored after every batch and kept until the run has finished. For
    built-in retrievers, an interruption may lose a few seconds of results.
    """

    def __init__(self, keeper: AnswerCache, task: Task) -> None:
        self.task, self.keeper = task, keeper
        self.every_batch = task.system.kind.is_foreign
        self.waiting: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {}
        self.flushed = time.monotonic()
        self.journal = Journal(None)
        self.lines: list[Any] = []
        if keeper.cache is not None:
            with suppress(DataError):  # write errors are reported when the task is done
                journal = keeper.cache.journal(task.part_key, keeper.writer)
                self.lines = [] if keeper.refresh else list(journal.lines())
                self.journal = journal

    def begun(self, source: Here | Fresh) -> Begun:
        """Returns the results of an interrupted run, or nothing if modules it loaded have changed since."""
        trace = Trace(self.lines)
        is_trusted = not self.task.system.is_requeried or self.keeper.reuse
        same = is_trusted or trace.fits(source.modules, source.changed, shared=source.shared)
        begun = Begun.left(self.task, self.lines, trace) if same else None
        if begun is None:
            self.header = {"about": self.task.about, "built": source.modules, "process": source.process}
            self.journal.remove()
            return Begun()
        if self.keeper.reuse and begun.earlier is not None:
            begun.earlier = replace(begun.earlier, changed=tuple(source.changed(trace.modules)))
        return begun

    def add(self, answers: Answers, spent: Sequence[float], modules: Mapping[str, str]) -> None:
        """Adds the results of one batch; writes them immediately or every few seconds."""
        self.waiting.append({"rows": rows_of(answers), "spent": list(spent), "modules": dict(modules), "at": now()})
        if self.every_batch or time.monotonic() - self.flushed > SYNCED_EVERY_S:
            self.flush()

    def end(self, done: Done) -> None:
        """Finishes the task once all queries are answered; re-queried systems are finished at the end of the run."""
        if self.task.system.is_requeried:
            self.waiting.append({"timing": asdict(done.timing)})
            self.flush()
        else:
            self.keeper.finish(self.task, done)

    def flush(self) -> None:
        """Writes all pending results to the journal."""
        try:
            if self.waiting:
                self.journal.append(*([self.header] if self.header else []), *self.waiting)
                self.header = {}
        except DataError as error:
            self.journal = Journal(None)
            warn_of_failure(error)
        self.waiting, self.flushed = [], time.monotonic()


def left_behind(keeper: AnswerCache, task: Task) -> int:
    """Counts the results left by an interrupted run; returns 0 if its code has changed since."""
    lines = [] if keeper.cache is None or keeper.refresh else keeper.cache.left_behind(task.part_key)
    trace = Trace(lines)
    begun = Begun.left(task, lines, trace)
    return len(begun.answers.ids) if begun is not None and trace.is_recent else 0
