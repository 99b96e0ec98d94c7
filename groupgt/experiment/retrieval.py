"""Builds a retriever, queries it in batches, measures times, and stores results as they arrive.

Any run continues partial results of built-in retrievers and of systems with a version. With other code and services,
only a run that resumes the interrupted run or reuses all answers continues partial results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from groupgt.errors import DataError, GroupgtError, RetrieverError
from groupgt.experiment import cache
from groupgt.experiment.cache import AnswerCache, Done, Earlier, Task
from groupgt.experiment.fresh import Fresh, Here
from groupgt.experiment.systems import placed
from groupgt.experiment.timing import Timing, machine
from groupgt.retrievers.base import Answers, Corpus, Setting
from groupgt.runtime import raised
from groupgt.store.journal import Journal, now
from groupgt.store.verdicts import VerdictStore, scores_in

# Results are written to the journal at least this often.
FLUSHED_EVERY_S = 5.0


def asked_together(tasks: Iterable[Task]) -> list[list[Task]]:
    """Group the tasks that share a build: all trials of a system if they are runs, otherwise each task by itself."""
    groups: dict[Task, list[Task]] = {}
    for task in tasks:
        of_builds = task.system.config.trials.of == "builds"
        groups.setdefault(task if of_builds else replace(task, trial=1), []).append(task)
    return list(groups.values())


def retrieve(
    tasks: Sequence[Task], keeper: AnswerCache, answered: Callable[[int], None] = lambda queries: None
) -> list[Done]:
    """Build a system and run all queries, once for each task. Store results as they arrive, even if the run fails."""
    task, finished = tasks[0], []
    unfinished = Unfinished(keeper, task)
    system, data, experiment = task.system, task.data, task.experiment
    folder = experiment.path.parent.resolve()
    corpus, policy = data.corpus or Corpus([], []), experiment.policy
    setting = Setting(corpus, data.truth.file_order, task.seed, folder, system.ascending, policy)
    try:
        place: type[Here] | type[Fresh] = Fresh if system.kind.imports_target else Here
        with closing(place(task.name, system.kind, task.options, setting)) as source:
            task.check_timed(singly=source.singly)
            for each in tasks:
                unfinished = unfinished if each is task else Unfinished(keeper, each)
                finished.append(_answered(each, source, unfinished, answered))
                unfinished.end(finished[-1])
    except BaseException as error:
        unfinished.flush()
        if isinstance(error, KeyboardInterrupt):
            raise
        if isinstance(error, GroupgtError):
            raise placed(error, task.dataset, task.name, RetrieverError) from None
        # A library's panic and sys.exit in user code are not an `Exception`.
        raise placed(RetrieverError(raised(error)), task.dataset, task.name, RetrieverError) from error
    return finished


def _answered(task: Task, source: Here | Fresh, unfinished: Unfinished, answered: Callable[[int], None]) -> Done:
    """Run the remaining queries in batches, then repeat some queries one by one if single queries must be timed."""
    begun, queries = unfinished.begun(), task.data.queries.sending(source.sends, source.way)
    spent_ms = 0.0
    answered(len(begun.answers.ids))
    size = 1 if source.singly and unfinished.every_batch else task.options.batch_size()
    for first in range(len(begun.answers.ids), len(queries), size):
        answers, spent = source.ask(queries.part(first, first + size), task.depth)
        begun.add(answers, spent)
        unfinished.add(answers, spent)
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
        times = source.build_s, single_ms, begun.batched_ms, machine()
        timing = Timing(task.dataset, task.name, *times, list(begun.answers.costs.values()))
    return Done(begun.answers, timing, source.build_s + spent_ms / 1000, begun.earlier)


# --- Unfinished tasks.


@dataclass(eq=False)
class Begun:
    """The results of a task so far, with milliseconds per query, and the timing if the task is `done`."""

    answers: Answers = field(default_factory=lambda: Answers({}, {}))
    batched_ms: list[float] = field(default_factory=list)
    single_ms: list[float] = field(default_factory=list)
    earlier: Earlier | None = None
    done: Timing | None = None

    @classmethod
    def left(cls, task: Task, lines: Sequence[Any]) -> Begun | None:
        """Read the entries of a journal, or return None if they do not match the task's queries in order."""
        begun, qids, at = cls(), task.data.queries.ids, ""
        try:
            for line in lines:
                rows = line.get("rows", [])
                first = len(begun.answers.ids)
                if rows:
                    answers = cache.answers_of(qids[first : first + len(rows)], rows)
                    begun.add(answers, [float(ms) for ms in line["spent"]])
                    at = str(line["at"])
                elif "timing" in line and first == len(qids):
                    begun.done = cache.timing_of(task, line["timing"])
        except cache.DAMAGE:
            return None
        if not begun.answers.ids:
            return None
        begun.earlier = Earlier(len(begun.answers.ids), at, interrupted=True)
        return begun

    def add(self, answers: Answers, spent: Sequence[float]) -> None:
        """Add the results of one batch, and the milliseconds of each call."""
        if len(spent) == len(answers.ids):
            self.single_ms += spent
        self.answers.ids.update(answers.ids)
        are_scored = self.answers.scores is not None and answers.scores is not None
        scores = {**(self.answers.scores or {}), **(answers.scores or {})} if are_scored else None
        texts = {**(self.answers.texts or {}), **(answers.texts or {})}
        self.answers = Answers(self.answers.ids, scores, texts=texts or None, costs=self.answers.costs | answers.costs)
        self.batched_ms.append(math.fsum(spent) / max(1, len(answers.ids)))


class Unfinished:
    """Partial results of a task, stored after every batch for code and services, otherwise every few seconds."""

    def __init__(self, keeper: AnswerCache, task: Task) -> None:
        self.task, self.keeper = task, keeper
        self.every_batch = task.system.kind.is_foreign
        self.waiting: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {}
        self.flushed = time.monotonic()
        self.journal = Journal(None)
        self.lines: list[Any] = []
        if keeper.cache is not None:
            with suppress(DataError, OSError):  # write errors are reported when the task is done
                keeper.cache.settle()
                takes_any, journals = keeper.takes_any(task), keeper.journals(task)
                journal = journals.taken_over() if takes_any else journals.own
                self.lines = list(journal.lines()) if takes_any or keeper.is_resumed else []
                self.journal = journal

    def begun(self) -> Begun:
        """Return the results of an interrupted run that this one continues, or nothing."""
        begun = Begun.left(self.task, self.lines)
        if begun is None:
            self.header = {"about": self.task.about, "run": self.keeper.run}
            self.journal.remove()
            return Begun()
        return begun

    def add(self, answers: Answers, spent: Sequence[float]) -> None:
        """Add the results of one batch, and write them immediately or every few seconds."""
        self.waiting.append({"rows": cache.rows_of(answers), "spent": list(spent), "at": now()})
        if self.every_batch or time.monotonic() - self.flushed > FLUSHED_EVERY_S:
            self.flush()

    def end(self, done: Done) -> None:
        """Finish the task once all queries are answered. Systems queried on every run finish when the run ends."""
        if self.task.system.is_requeried:
            self.waiting.append({"timing": asdict(done.timing)})
            self.flush()
        else:
            self.keeper.finish(self.task, done)

    def flush(self) -> None:
        """Write all pending results to the journal."""
        try:
            if self.waiting:
                self.journal.append(*([self.header] if self.header else []), *self.waiting)
                self.header = {}
        except DataError as error:
            self.journal = Journal(None)
            cache.warn_of_failure(error)
        self.waiting, self.flushed = [], time.monotonic()


def left_behind(keeper: AnswerCache, task: Task) -> int:
    """Count the results of interrupted runs that a run continues automatically."""
    journals = keeper.journals(task).left_behind() if keeper.takes_any(task) else []
    begun = Begun.left(task, list(journals[-1].lines())) if journals else None
    return 0 if begun is None else len(begun.answers.ids)


# --- Interrupted runs.


@dataclass(frozen=True)
class Left:
    """The answers (by data set and system) and verdicts that an interrupted run left, and when it last wrote any."""

    owner: str
    at: str
    answers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    verdicts: int = 0


def left_by(keeper: AnswerCache, tasks: Sequence[Task], verdicts: VerdictStore) -> Left | None:
    """Return the remains of the newest killed or failed run with the same key as `keeper`'s run, or None."""
    if keeper.cache is None or keeper.refresh:
        return None
    found: list[tuple[Journal, Task | None]] = []
    for task in tasks:
        if task.system.is_requeried:
            found += [(journal, task) for journal in keeper.journals(task).left_behind()]
    found += [(journal, None) for journal in verdicts.left_behind()]
    of_owner: dict[str, list[tuple[Task | None, list[Any]]]] = {}
    for journal, each in sorted(found, key=lambda left: left[0].written):
        lines = list(journal.lines())
        if any(isinstance(line, dict) and line.get("run") == keeper.run for line in lines):
            # The last one is the newest.
            of_owner[journal.owner] = [*of_owner.pop(journal.owner, []), (each, lines)]
    if not of_owner:
        return None
    owner, parts = of_owner.popitem()
    answers: dict[tuple[str, str], int] = {}
    at, judged = "", 0
    for each, lines in parts:
        at = max(at, *(str(line.get("at", "")) for line in lines if isinstance(line, dict)), "")
        begun = None if each is None else Begun.left(each, lines)
        if each is None:
            judged += len(scores_in(lines))
        elif begun is not None:
            name = each.dataset, each.name
            answers[name] = answers.get(name, 0) + len(begun.answers.ids)
    return Left(owner, at, answers, judged) if answers or judged else None


def resumed(keeper: AnswerCache, tasks: Sequence[Task], verdicts: VerdictStore, left: Left) -> AnswerCache:
    """Take over the results of an interrupted run, and return the cache of the run that continues it."""
    for task in tasks:
        if task.system.is_requeried:
            keeper.journals(task).adopted(left.owner)
    verdicts.resume(left.owner)
    return replace(keeper, is_resumed=True)
