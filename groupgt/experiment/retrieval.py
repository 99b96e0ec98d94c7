"""Retrieving: which systems are to be asked what, and how one is: built, asked in batches, and timed.

`cache` keeps what is answered; `answers` and each worker of `workers` retrieve through it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from groupgt.errors import ConfigError, GroupgtError, RetrieverError
from groupgt.experiment.datasets import Asked, Data
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.fresh import Fresh, Here, Order
from groupgt.experiment.gates import UNTIMED
from groupgt.experiment.systems import combined, matching
from groupgt.experiment.timing import Timing, machine
from groupgt.retrievers.base import Answers, Corpus, Queries, Setting, checked
from groupgt.runtime import raised

# Questions that cheap retrievers are asked once more, one by one.
TIMED = 30


@dataclass(frozen=True)
class Task:
    """One retrieval: a system on a dataset, down to a depth."""

    dataset: str
    system: str
    depth: int


@dataclass(frozen=True)
class Earlier:
    """How many answers are an earlier run's: one that was `interrupted` at a time, or had finished.

    `changed` are modules that code of others had loaded, and that are not as they were.
    """

    count: int
    at: str
    interrupted: bool = False
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Done:
    """The answers of a task, how long they took, and the modules that code of others had loaded.

    `seconds` were spent in the retriever by this run; `earlier` says what is not of this run, `made` when an entry of
    the cache was written.
    """

    answers: Answers
    timing: Timing
    modules: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    earlier: Earlier | None = None
    made: str = ""


@dataclass(eq=False)
class Begun:
    """A task at work: the answers so far, and the milliseconds for each query, of each batch and of single calls.

    `done` is how long all of it took, where an earlier run had asked everything.
    """

    answers: Answers = field(default_factory=lambda: Answers({}, {}))
    batched_ms: list[float] = field(default_factory=list)
    single_ms: list[float] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)
    earlier: Earlier | None = None
    done: Timing | None = None

    def add(self, answers: Answers, spent: Sequence[float], modules: Mapping[str, str]) -> None:
        """Adds the answers of one batch, the milliseconds of each call, and the modules that were loaded meanwhile."""
        if len(spent) == len(answers.ids):
            self.single_ms += spent
        self.answers.ids.update(answers.ids)
        are_scored = self.answers.scores is not None and answers.scores is not None
        scores = {**(self.answers.scores or {}), **(answers.scores or {})} if are_scored else None
        self.answers = Answers(self.answers.ids, scores)
        self.batched_ms.append(math.fsum(spent) / max(1, len(answers.ids)))
        self.modules |= modules


class Keeping(Protocol):
    """What keeps the answers of one task as they come."""

    every_batch: bool

    def begun(self, source: Here | Fresh) -> Begun:
        """What an earlier run has left of the task, where it is of use to what has been built now."""

    def add(self, answers: Answers, spent: Sequence[float], modules: Mapping[str, str]) -> None:
        """Keeps the answers of one batch."""


def needed(
    experiment: Experiment, data: Mapping[str, Asked], pairs: Sequence[tuple[str, str]] | None = None
) -> list[Task]:
    """Every retrieval that the systems to report need (or some `pairs`), those of fusions' inputs included, each once.

    A retriever is asked for as many results more as a question of its data set leaves out at most.
    """
    tasks: dict[Task, None] = {}
    depth = experiment.config.evaluate.depth
    stack = [Task(dataset, name, depth) for dataset, name in (experiment.pairs() if pairs is None else pairs)][::-1]
    seen: set[Task] = set()
    while stack:
        task = stack.pop()
        if task in seen:
            continue
        seen.add(task)
        system = experiment.systems[task.system]
        if system.kind.build is not None:
            tasks[replace(task, depth=task.depth + data[task.dataset].left_out)] = None
        depth = getattr(system.options, "depth", None) or task.depth
        stack += [Task(task.dataset, name, depth) for name in reversed(system.inputs)]
    return list(tasks)


def retrieve(
    experiment: Experiment,
    data: Data,
    task: Task,
    keeping: Keeping,
    answered: Callable[[int], None] = lambda queries: None,
) -> Done:
    """Builds a system and asks it everything; raises `RetrieverError` whatever goes wrong in it.

    `answered` hears how many queries more are answered.
    """
    system = experiment.systems[task.system]
    setting = Setting(data.corpus or Corpus([], []), data.qids, experiment.config.seed)
    options = experiment.options(task.system, task.dataset)
    order = Order(task.system, system.kind, options, experiment.path.parent.resolve(), setting)
    try:
        with (Fresh if system.kind.runs_code else Here)(order) as source:
            check_timed(experiment, task, singly=source.singly)
            return _answered(experiment, data, task, source, keeping, answered)
    except KeyboardInterrupt:
        raise
    except GroupgtError as error:
        start = f"system {task.system!r}"
        faults = [text if text.startswith(start) else f"{start}: {text}" for text in error.faults]
        raise RetrieverError(*(f"dataset {task.dataset!r}: {text}" for text in faults), total=error.total) from None
    except BaseException as error:  # neither a library's panic nor sys.exit in code of the user's is an `Exception`
        raise RetrieverError(f"dataset {task.dataset!r}: system {task.system!r}: {raised(error)}") from error


def _answered(
    experiment: Experiment,
    data: Data,
    task: Task,
    source: Here | Fresh,
    keeping: Keeping,
    answered: Callable[[int], None],
) -> Done:
    """Asks in batches what is not answered yet, and some of it again where that is to be timed."""
    begun = keeping.begun(source)
    spent_ms = 0.0
    answered(len(begun.answers.ids))
    size = 1 if source.singly and keeping.every_batch else experiment.options(task.system, task.dataset).batch_size()
    for first in range(len(begun.answers.ids), len(data.queries), size):
        batch = data.queries.part(first, first + size)
        batch_qids = [*batch.ids]  # whatever the retriever does with those it is handed
        rankings, spent, modules = source.ask(batch, task.depth)
        answers = checked(task.system, batch_qids, rankings, task.depth)
        begun.add(answers, spent, modules)
        keeping.add(answers, spent, modules)
        spent_ms += math.fsum(spent)
        answered(len(batch_qids))
    timing = begun.done
    if timing is None:
        single_ms = begun.single_ms
        if len(single_ms) < len(data.queries):
            single_ms = []
            for query in _repeated(experiment, data, task):
                single_ms += source.ask(query, task.depth)[1]
                answered(1)
            spent_ms += math.fsum(single_ms)
        timing = Timing(task.dataset, task.system, source.build_s, single_ms, begun.batched_ms, machine())
    modules = {**source.modules, **begun.modules}
    return Done(begun.answers, timing, modules, source.build_s + spent_ms / 1000, begun.earlier)


# --- How many calls are made.


def repeats(experiment: Experiment, task: Task, queries: int, *, singly: bool | None) -> int:
    """How many questions are asked a second time, one by one: none where each call asked one in the first place."""
    if singly:
        return 0
    timed = experiment.config.evaluate.timed
    if timed is None:
        timed = TIMED if experiment.systems[task.system].kind.cheap else 0
    return min(timed, queries)


def calls(experiment: Experiment, task: Task, queries: int, *, singly: bool | None) -> int:
    """How often a retriever is called for a number of queries."""
    size = 1 if singly else experiment.options(task.system, task.dataset).batch_size()
    return math.ceil(queries / size) + repeats(experiment, task, queries, singly=singly)


def check_timed(experiment: Experiment, task: Task, *, singly: bool | None) -> None:
    """Raises `ConfigError` where a gate asks how long one question takes, and no question is asked alone."""
    if singly or repeats(experiment, task, 1, singly=singly):
        return
    for number, gate in enumerate(experiment.config.gate, 1):
        if gate.metric.startswith("latency") and task.dataset in matching(gate.dataset, experiment.config.datasets):
            for name in matching(gate.system, experiment.systems):
                if task.system in combined(experiment.systems, name):
                    raise ConfigError(f"gate {number}: {gate.metric} {UNTIMED}")


def _repeated(experiment: Experiment, data: Data, task: Task) -> Iterator[Queries]:
    """Some questions, evenly spread, one by one."""
    total = len(data.queries)
    count = repeats(experiment, task, total, singly=False)
    for number in range(count):
        place = number * total // count
        yield data.queries.part(place, place + 1)
