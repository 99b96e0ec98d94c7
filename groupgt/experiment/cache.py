"""What is kept of retrievals: answers under all that determines them, and those of runs that did not finish.

What comes from this package and from files is not retrieved twice. Code of others and services are asked in each run,
unless the file gives them a version or the user says to reuse what they said; a run that was interrupted is gone on
from. Where and how entries lie is up to `store.cache`.
"""

from __future__ import annotations

import math
import platform
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

import groupgt
from groupgt.errors import DataError, GroupgtError, GroupgtWarning
from groupgt.experiment.datasets import Asked, Data, read_asked
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import Fresh, Here
from groupgt.experiment.retrieval import Begun, Done, Earlier, Task, needed, retrieve
from groupgt.experiment.systems import System
from groupgt.experiment.timing import Timing
from groupgt.formats import corpus as corpus_reader
from groupgt.model.validity import are_ids
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers
from groupgt.store.cache import Cache, Entry, key_of
from groupgt.store.files import digest_of, owner, sha256
from groupgt.store.journal import SYNCED_EVERY, Journal, now
from groupgt.store.loaded import Trace, changed
from groupgt.store.verdicts import VerdictStore

# What lies in the cache is understood by its own kind of groupgt alone.
LAYOUT = 3


@dataclass(frozen=True)
class AnswerCache:
    """Keeps answers in a cache; without one (None) nothing is kept, and with `refresh` nothing is taken from it.

    With `reuse`, code of others and services are not asked where a finished run has kept what they said. `writer` is
    the process of the run, for which workers write.
    """

    cache: Cache | None
    refresh: bool = False
    reuse: bool = False
    writer: str = field(default_factory=owner)

    @classmethod
    def of(cls, experiment: Experiment, *, refresh: bool = False, reuse: bool = False) -> AnswerCache:
        """The cache of an experiment."""
        folder = experiment.config.cache
        return cls(None if folder is None else Cache(experiment.at(folder)), refresh, reuse)

    def verdicts(self) -> VerdictStore:
        """What keeps what judges say in one run."""
        folder = None if self.cache is None else self.cache.folder / "verdicts"
        return VerdictStore(folder, self.refresh, self.reuse)

    def kept(self, experiment: Experiment, data: Data, task: Task) -> Done | None:
        """What is kept of a task and need not be asked again, or None."""
        system = experiment.systems[task.system]
        if self.refresh or (system.is_asked_anew and not self.reuse):
            return None
        done = self.read(experiment, data, task)
        if done is None or not system.kind.is_foreign:
            return done
        path = [str(experiment.path.parent.resolve()), *sys.path]
        since = tuple(changed(done.modules, path)) if system.is_asked_anew else ()
        return replace(done, seconds=0.0, earlier=Earlier(len(done.answers.ids), done.made, changed=since))

    def read(self, experiment: Experiment, data: Data, task: Task) -> Done | None:
        """What an entry holds, whoever made it."""
        entry = None if self.cache is None else self.cache.read(key(experiment, data, task))
        return None if entry is None else _decoded(task, data.queries.ids, *entry)

    def write(self, experiment: Experiment, data: Data, task: Task, done: Done) -> None:
        """Keeps answers; raises `DataError` where that cannot be done."""
        if self.cache is not None:
            about = {
                **_described(experiment, data, task),
                "made": now(),
                "timing": asdict(done.timing),
                "modules": dict(done.modules),
                "seconds": done.seconds,
                "earlier": None if done.earlier is None else asdict(done.earlier),
            }
            self.cache.write(key(experiment, data, task), about, _rows(done.answers))

    def retrieved(
        self, experiment: Experiment, data: Data, task: Task, answered: Callable[[int], None] = lambda queries: None
    ) -> Done:
        """Retrieves and keeps, what is done so far too; where it cannot be kept, a warning says so."""
        unfinished = Unfinished(self, experiment, data, task)
        try:
            done = retrieve(experiment, data, task, unfinished, answered)
        except BaseException:
            unfinished.flush()
            raise
        if unfinished.waits_for_the_run:
            unfinished.end(done.timing)
        else:
            self._finish(experiment, data, task, done)
        return done

    def left_behind(self, experiment: Experiment, data: Data, task: Task) -> int:
        """How many answers a run that was interrupted has left, if its code has not changed since."""
        lines = [] if self.cache is None or self.refresh else self.cache.left_behind(part_key(experiment, data, task))
        trace = Trace.of(lines)
        begun = _resumed(task, data.queries.ids, lines, trace)
        return len(begun.answers.ids) if begun is not None and trace.is_recent else 0

    def finish(self, experiment: Experiment, data: Mapping[str, Data], done: Mapping[Task, Done]) -> None:
        """A run is finished: what it was told is told again only to those that `reuse` it."""
        for task, outcome in done.items():
            is_new = outcome.earlier is None or outcome.earlier.interrupted
            if is_new and experiment.systems[task.system].is_asked_anew:
                self._finish(experiment, data[task.dataset], task, outcome)

    def _finish(self, experiment: Experiment, data: Data, task: Task, done: Done) -> None:
        try:
            self.write(experiment, data, task, done)
        except DataError as error:
            _warn(error)
        if self.cache is not None:  # where it could not be written either: it was not interrupted
            with suppress(OSError):
                self.cache.remove_journals(part_key(experiment, data, task), self.writer)


class Unfinished:
    """What is answered of a task, kept as it comes until all of it is done.

    Code of others and services are kept batch by batch, and until their run is finished; what is ours may be lost for
    a few seconds' worth.
    """

    def __init__(self, keeper: AnswerCache, experiment: Experiment, data: Data, task: Task) -> None:
        system = experiment.systems[task.system]
        self.task, self.qids, self.about = task, data.queries.ids, _described(experiment, data, task)
        self.every_batch = system.kind.is_foreign
        self.waits_for_the_run = system.is_asked_anew
        self.is_trusted, self.is_reused = not system.is_asked_anew or keeper.reuse, keeper.reuse
        self.waiting: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {}
        self.flushed = time.monotonic()
        self.journal = Journal(None)
        self.lines: list[Any] = []
        if keeper.cache is not None:
            try:
                self.journal = keeper.cache.journal(part_key(experiment, data, task), keeper.writer)
                self.lines = [] if keeper.refresh else list(self.journal.lines())
            except DataError:
                self.journal = Journal(None)  # what cannot be written is said when all is done

    def begun(self, source: Here | Fresh) -> Begun:
        """What an interrupted run has left, where the modules of what has been built are the same now as then."""
        self.header = {"about": self.about, "built": source.modules, "process": source.process}
        trace = Trace.of(self.lines)
        same = self.is_trusted or trace.fits(source.modules, source.changed, shared=source.shared)
        begun = _resumed(self.task, self.qids, self.lines, trace) if same else None
        if begun is None:
            self.journal.remove()
            return Begun()
        self.header = {}
        if self.is_reused and begun.earlier is not None:
            begun.earlier = replace(begun.earlier, changed=tuple(source.changed(trace.modules)))
        return begun

    def add(self, answers: Answers, spent: Sequence[float], modules: Mapping[str, str]) -> None:
        """Keeps the answers of one batch: at once, or with those of some seconds."""
        self.waiting.append({"rows": _rows(answers), "spent": list(spent), "modules": dict(modules), "at": now()})
        if self.every_batch or time.monotonic() - self.flushed > SYNCED_EVERY:
            self.flush()

    def end(self, timing: Timing) -> None:
        """All is answered, and has taken this long."""
        self.waiting.append({"timing": asdict(timing)})
        self.flush()

    def flush(self) -> None:
        """Keeps what is not kept yet."""
        try:
            if self.waiting:
                self.journal.append(*([self.header] if self.header else []), *self.waiting)
                self.header = {}
        except DataError as error:
            self.journal = Journal(None)
            _warn(error)
        self.waiting, self.flushed = [], time.monotonic()


def _warn(error: DataError) -> None:
    warnings.warn(f"retrieved results cannot be cached: {error}", GroupgtWarning, stacklevel=3)


def _resumed(task: Task, qids: Sequence[str], lines: Sequence[Any], trace: Trace) -> Begun | None:
    """What the lines of a journal hold, or None where that is not answers of these queries, in their order."""
    begun = Begun()
    try:
        for line in lines:
            rows = line.get("rows", [])
            first = len(begun.answers.ids)
            batch = qids[first : first + len(rows)]
            if rows:
                begun.add(_answers(task, batch, rows), [float(ms) for ms in line["spent"]], line["modules"])
            elif "timing" in line and len(begun.answers.ids) == len(qids):
                begun.done = _timing(task, line["timing"])
    except (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    if not begun.answers.ids:
        return None
    begun.earlier = Earlier(len(begun.answers.ids), trace.at, interrupted=True)
    return begun


# --- What determines answers, and how entries hold them.


def key(experiment: Experiment, data: Asked, task: Task) -> str:
    """The hash of everything that determines the answers of a task."""
    if task not in data.keys:
        data.keys[task] = _key(experiment, data, task)
    return data.keys[task]


def _key(experiment: Experiment, data: Asked, task: Task) -> str:
    system = experiment.systems[task.system]
    options = asdict(experiment.options(task.system, task.dataset))
    for name in experiment.paths_of(task.system):
        options[name] = digest_of(Path(options[name]))
    determining = {
        "layout": LAYOUT,
        "code": _our_code(),
        "groupgt": groupgt.__version__,
        "use": system.config.use,
        "version": system.config.version,
        "options": options,
        # Of code of others the user says what version it is, or nobody does.
        "libraries": {"python": platform.python_version()} if system.kind.is_foreign else libraries([system]),
        "corpus": data.corpus_digest,
        "questions": [data.queries.ids, list(data.queries)],
        "seed": experiment.config.seed,
        "depth": task.depth,
    }
    if experiment.paths_of(task.system):
        determining["all questions"] = data.qids  # rows of files may follow them
    return key_of(determining)


def part_key(experiment: Experiment, data: Asked, task: Task) -> str:
    """The name under which a run that does not finish keeps what it has retrieved so far."""
    return key_of({"part": key(experiment, data, task), "system": task.system, "dataset": task.dataset})


@lru_cache(maxsize=1)
def _our_code() -> str:
    """The digest of what makes results: our retrievers, and the reader of corpora."""
    files = {*Path(base.__file__).parent.glob("*.py"), Path(corpus_reader.__file__)}
    return key_of({file.name: sha256(file) for file in sorted(files)})


def libraries(systems: Sequence[System]) -> dict[str, str]:
    """The versions of the distributions that decide about results, as far as they are installed."""
    names = sorted({"numpy", *(name for system in systems for name in system.kind.libraries)})
    return {name: known for name in names if (known := _version(name)) is not None}


@lru_cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _described(experiment: Experiment, data: Asked, task: Task) -> dict[str, Any]:
    """What the cache says of an entry."""
    about = {
        "experiment": experiment.title,
        "dataset": task.dataset,
        "system": task.system,
        "use": experiment.systems[task.system].config.use,
        "depth": task.depth,
        "questions": len(data.queries),
    }
    hidden: dict[str, Any] = experiment.hide.sure(about)
    return hidden


def _rows(answers: Answers) -> list[Any]:
    """Answers as rows of the cache."""
    scores = answers.scores
    return [[qid, ids, None if scores is None else scores[qid]] for qid, ids in answers.ids.items()]


def _answers(task: Task, qids: Sequence[str], rows: Sequence[Any]) -> Answers:
    """The answers that rows hold; raises one of several errors where these are not answers of these queries."""
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
    timing = Timing(**{**written, "dataset": task.dataset, "system": task.system})
    is_sound = math.isfinite(math.fsum([*timing.single_ms, *timing.batched_ms, timing.build_s]))
    if not (isinstance(timing.machine, dict) and is_sound):
        raise ValueError
    return timing


def _decoded(task: Task, qids: Sequence[str], about: Mapping[str, Any], rows: Sequence[Any]) -> Done | None:
    """What an entry of the cache holds, or None where that is not the answers of these questions, in their order."""
    try:
        answers, earlier = _answers(task, qids, rows), about["earlier"]
        earlier = None if earlier is None else Earlier(**earlier)
        timing, modules = _timing(task, about["timing"]), dict(about["modules"])
        return Done(answers, timing, modules, float(about["seconds"]), earlier, str(about["made"]))
    except (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Used:
    """Of the cache of an experiment file the entries that a run of it would use, and how many more it has kept."""

    cache: Cache | None
    entries: list[Entry]
    others: int = 0

    @classmethod
    def by(cls, path: Path, secrets: dict[str, str]) -> Used:
        """Raises what is at fault in the file and its data; no code of the user's is run."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GroupgtWarning)
            experiment = load(path, allow_code=True, secrets=secrets)
            asked = {name: read_asked(experiment, name) for name in experiment.config.datasets}
        cache = AnswerCache.of(experiment).cache
        if cache is None:
            return cls(None, [])
        keys: set[str] = set()
        for task in needed(experiment, asked):
            keys.add(part_key(experiment, asked[task.dataset], task))
            if not experiment.systems[task.system].is_asked_anew:
                keys.add(key(experiment, asked[task.dataset], task))
        used, others = [], 0
        for entry in cache.entries():
            if entry.key in keys:
                used.append(entry)
            elif entry.about.get("experiment") == experiment.title:
                others += 1
        return cls(cache, used, others)
