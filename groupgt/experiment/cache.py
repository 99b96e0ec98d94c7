"""Caches results under a key that covers everything they depend on, including partial results of interrupted runs.

This package's own results and results from files are never retrieved twice. External code and services are queried on
every run, unless the file gives them a version or the user asks to reuse earlier results; interrupted runs resume.
`store.cache` defines where entries are stored and in which format.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, GroupgtError, GroupgtWarning
from groupgt.experiment.datasets import read_retrieval_inputs
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import Fresh, Here
from groupgt.experiment.task import Done, Earlier, Task, needed
from groupgt.experiment.timing import Timing
from groupgt.model.validity import are_ids
from groupgt.retrievers.base import Answers
from groupgt.store.cache import Cache, Entry
from groupgt.store.files import owner
from groupgt.store.journal import SYNCED_EVERY_S, Journal, now
from groupgt.store.loaded import Trace, changed
from groupgt.store.verdicts import VerdictStore


@dataclass(frozen=True)
class AnswerCache:
    """Stores results in a cache. Nothing is stored if `cache` is None, and nothing is read with `refresh`.

    With `reuse`, external code and services are not queried again if a finished run stored their results. `writer`
    identifies the main process of the run; worker processes write on its behalf.
    """

    cache: Cache | None
    refresh: bool = False
    reuse: bool = False
    writer: str = field(default_factory=owner)

    @classmethod
    def of(cls, experiment: Experiment, *, refresh: bool = False, reuse: bool = False) -> AnswerCache:
        """Creates the cache configured for an experiment."""
        folder = experiment.config.cache
        return cls(None if folder is None else Cache(experiment.at(folder)), refresh, reuse)

    def verdicts(self) -> VerdictStore:
        """Creates the store of labeller verdicts for one run."""
        folder = None if self.cache is None else self.cache.folder / "verdicts"
        return VerdictStore(folder, self.refresh, self.reuse)

    def kept(self, task: Task) -> Done | None:
        """Returns the cached results of a task, or None if they cannot be used."""
        system = task.system
        if self.refresh or (system.is_requeried and not self.reuse):
            return None
        done = self.read(task)
        if done is None or not system.kind.is_foreign:
            return done
        path = [str(task.experiment.path.parent.resolve()), *sys.path]
        since = tuple(changed(done.modules, path)) if system.is_requeried else ()
        return replace(done, seconds=0.0, earlier=Earlier(len(done.answers.ids), done.made, changed=since))

    def read(self, task: Task) -> Done | None:
        """Reads the entry for a task; returns None if it is damaged or does not match the task's queries."""
        entry = None if self.cache is None else self.cache.read(task.key)
        if entry is None:
            return None
        about, rows = entry
        try:
            answers, earlier = _answers(task, task.data.queries.ids, rows), about["earlier"]
            earlier = None if earlier is None else Earlier(**earlier)
            timing, modules = _timing(task, about["timing"]), dict(about["modules"])
            return Done(answers, timing, modules, float(about["seconds"]), earlier, str(about["made"]))
        except DAMAGE:
            return None

    def write(self, task: Task, done: Done) -> None:
        """Stores the results of a task; raises `DataError` if writing fails."""
        if self.cache is not None:
            about = {
                **task.about,
                "made": now(),
                "timing": asdict(done.timing),
                "modules": dict(done.modules),
                "seconds": done.seconds,
                "earlier": None if done.earlier is None else asdict(done.earlier),
            }
            self.cache.write(task.key, about, _rows(done.answers))

    def left_behind(self, task: Task) -> int:
        """Counts the results left by an interrupted run; returns 0 if its code has changed since."""
        lines = [] if self.cache is None or self.refresh else self.cache.left_behind(task.part_key)
        trace = Trace.of(lines)
        begun = Begun.left(task, lines, trace)
        return len(begun.answers.ids) if begun is not None and trace.is_recent else 0

    def finish(self, task: Task, done: Done) -> None:
        """Stores the results of a task and removes its partial results; warns if storing fails."""
        try:
            self.write(task, done)
        except DataError as error:
            _warn(error)
        if self.cache is not None:  # also if writing failed: the run was not interrupted
            with suppress(OSError):
                self.cache.remove_journals(task.part_key, self.writer)


def _warn(error: DataError) -> None:
    warnings.warn(f"retrieved results cannot be cached: {error}", GroupgtWarning, stacklevel=3)


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
                    answers = _answers(task, qids[first : first + len(rows)], rows)
                    begun.add(answers, [float(ms) for ms in line["spent"]], line["modules"])
                elif "timing" in line and first == len(qids):
                    begun.done = _timing(task, line["timing"])
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
            try:
                self.journal = keeper.cache.journal(task.part_key, keeper.writer)
                self.lines = [] if keeper.refresh else list(self.journal.lines())
            except DataError:
                self.journal = Journal(None)  # write errors are reported when the task is done

    def begun(self, source: Here | Fresh) -> Begun:
        """Returns the results of an interrupted run, or nothing if modules it loaded have changed since."""
        trace = Trace.of(self.lines)
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
        self.waiting.append({"rows": _rows(answers), "spent": list(spent), "modules": dict(modules), "at": now()})
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
            _warn(error)
        self.waiting, self.flushed = [], time.monotonic()


# --- Format of entries.

# Errors that reading may raise if entries are damaged or of another kind.
DAMAGE = (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError)


def _rows(answers: Answers) -> list[Any]:
    """Converts results to cache rows."""
    scores = answers.scores
    return [[qid, ids, None if scores is None else scores[qid]] for qid, ids in answers.ids.items()]


def _answers(task: Task, qids: Sequence[str], rows: Sequence[Any]) -> Answers:
    """Converts cache rows to results; raises various errors if they do not match the queries."""
    if [row[0] for row in rows] != list(qids) or any(len(row[1]) > task.depth for row in rows):
        raise ValueError
    ids = {qid: names for qid, names, _ in rows}
    scores = {qid: values for qid, _, values in rows if values is not None}
    names, values = list(chain.from_iterable(ids.values())), list(chain.from_iterable(scores.values()))
    if not (set(map(type, names)) <= {str} and are_ids(names)):
        raise TypeError
    if not (set(map(type, values)) <= {float} and all(map(math.isfinite, values))):
        raise TypeError
    if any(len(values) != len(ids[qid]) for qid, values in scores.items()):
        raise ValueError
    return Answers(ids, scores if len(scores) == len(ids) else None)


def _timing(task: Task, written: Mapping[str, Any]) -> Timing:
    timing = Timing(**{**written, "dataset": task.dataset, "system": task.name})
    is_sound = math.isfinite(math.fsum([*timing.single_ms, *timing.batched_ms, timing.build_s]))
    if not (isinstance(timing.machine, dict) and is_sound):
        raise ValueError
    return timing


@dataclass(frozen=True)
class Used:
    """The cache entries that an experiment file would use, and the number of its other entries."""

    cache: Cache | None
    entries: list[Entry]
    others: int = 0

    @classmethod
    def by(cls, path: Path, secrets: dict[str, str]) -> Used:
        """Finds the entries that an experiment file uses; runs no user code, but raises errors in file or data."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GroupgtWarning)
            experiment = load(path, allow_code=True, secrets=secrets)
            inputs = {name: read_retrieval_inputs(experiment, name) for name in experiment.config.datasets}
        cache = AnswerCache.of(experiment).cache
        if cache is None:
            return cls(None, [])
        tasks = needed(experiment, inputs)
        keys = {task.part_key for task in tasks} | {task.key for task in tasks if not task.system.is_requeried}
        entries = [
            entry for entry in cache.entries() if entry.key in keys or entry.about.get("experiment") == experiment.title
        ]
        used = [entry for entry in entries if entry.key in keys]
        return cls(cache, used, len(entries) - len(used))
