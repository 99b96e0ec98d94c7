"""Retrieving: which runs are needed, what determines each, and the cache that keeps them.

What was retrieved is kept, and what is kept is not retrieved again: `answers` and each worker of `workers` retrieve
with a `Keeper`; where and how entries lie is up to `store.cache`.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import groupgt
from groupgt.errors import ConfigError, DataError, GroupgtError, GroupgtWarning, RetrieverError
from groupgt.experiment.datasets import Asked, Data, read_asked, sha256
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import Fresh, Order
from groupgt.experiment.gates import UNTIMED
from groupgt.experiment.seen import CHANGED, merged, unchanged
from groupgt.experiment.systems import System, combined, matching
from groupgt.experiment.timing import Timing, machine
from groupgt.formats import corpus as corpus_reader
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers, Corpus, Queries, Retriever, RetrieverPlugin, Setting, checked
from groupgt.runtime import one_line, place_of, users_code
from groupgt.store.cache import Cache, Entry, key_of


@dataclass(frozen=True)
class Keeper:
    """Retrieves through a cache; without one (None) nothing is kept, and with `refresh` nothing is taken from it.

    What comes from outside, such as a server, is asked once in each run: what a run that did not finish has kept is
    used, and what a finished one has kept only with `reuse`, or where the file gives it a version.
    """

    cache: Cache | None
    refresh: bool = False
    reuse: bool = False

    def kept(self, experiment: Experiment, data: Data, task: Task, *, check: bool = True) -> Done | None:
        """What is kept of a task, or None; without `check` also what code has made that has changed since."""
        if self.cache is None or self.refresh:
            return None
        names = [_name(experiment, data, task)]
        if self.reuse and names[0] != key(experiment, data, task):
            names.append(key(experiment, data, task))
        for name in names:
            entry = self.cache.read(name)
            if entry is not None and (not check or _is_as_it_was(experiment, task, entry[0])):
                done = decoded(task, data.queries.ids, *entry)
                if done is not None:
                    return done
        return None

    def finish(self, experiment: Experiment, data: Mapping[str, Data], done: Mapping[Task, Done]) -> None:
        """A run is finished: what came from outside is asked again by the next, unless that is told to use it."""
        for task, outcome in done.items() if self.cache is not None else ():
            whole, name = key(experiment, data[task.dataset], task), _name(experiment, data[task.dataset], task)
            if name != whole and self.cache is not None:
                try:
                    self.keep(experiment, data[task.dataset], task, outcome, whole)
                    self.cache.remove(name)
                except DataError as error:
                    warnings.warn(f"retrieved results cannot be cached: {error}", GroupgtWarning, stacklevel=2)

    def retrieved(
        self, experiment: Experiment, data: Data, task: Task, answered: Callable[[int], None] = lambda queries: None
    ) -> Done:
        """Retrieves and keeps, what is done so far too; where it cannot be kept, a warning says so."""
        unfinished = _unfinished(key(experiment, data, task))

        def save(done: Done, name: str | None = unfinished) -> None:
            try:
                self.keep(experiment, data, task, done, name)
                if name is None and self.cache is not None:
                    self.cache.remove(unfinished)
            except DataError as error:
                warnings.warn(f"retrieved results cannot be cached: {error}", GroupgtWarning, stacklevel=2)

        done = retrieve(experiment, data, task, answered, self._begun(experiment, data, task, unfinished), save)
        save(done, None)
        changed = [name for name, known in (done.seen or {}).get("files", {}).items() if known == CHANGED]
        if changed:
            what = f"{', '.join(changed[:3])}{' …' if len(changed) > 3 else ''} changed while it ran"
            text = f"system {task.system!r}: {what}; its answers are not used again"
            warnings.warn(text, GroupgtWarning, stacklevel=2)
        return done

    def _begun(self, experiment: Experiment, data: Data, task: Task, unfinished: str) -> Begun | None:
        """What an earlier run, ended before its time, has kept of a task."""
        entry = None if self.cache is None or self.refresh else self.cache.read(unfinished)
        if entry is None or len(entry[1]) >= len(data.queries) or not _is_as_it_was(experiment, task, entry[0]):
            return None
        done = decoded(task, data.queries.ids[: len(entry[1])], *entry)
        if done is None:
            return None
        return Begun(done.answers, done.timing.batched_ms, done.timing.single_ms, done.since, done.seen)

    def keep(self, experiment: Experiment, data: Data, task: Task, done: Done, name: str | None = None) -> None:
        """Keeps answers under their key, or another name; raises `DataError` where that cannot be done."""
        if self.cache is not None:
            about = described(experiment, task, done, len(data.queries))
            self.cache.write(name or _name(experiment, data, task), about, encoded(done.answers))


def cache_of(experiment: Experiment) -> Cache | None:
    """Where the runs of an experiment are kept."""
    folder = experiment.config.cache
    return None if folder is None else Cache(experiment.at(folder))


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
        cache = cache_of(experiment)
        if cache is None:
            return cls(None, [])
        tasks: dict[str, Task] = {}
        for task in needed(experiment, asked):
            whole = key(experiment, asked[task.dataset], task)
            names = (_name(experiment, asked[task.dataset], task), whole, _unfinished(whole))
            tasks.update(dict.fromkeys(names, task))
        used, others = [], 0
        for entry in cache.entries():
            task_of = tasks.get(entry.key)
            if task_of is not None and (not entry.about or _is_as_it_was(experiment, task_of, entry.about)):
                used.append(entry)
            elif entry.about.get("experiment") == experiment.title:
                others += 1
        return cls(cache, used, others)


def _unfinished(whole: str) -> str:
    """The name under which a run that does not end keeps what it has retrieved so far."""
    return key_of({"part": whole})


# What lies in the cache is understood by its own kind of groupgt alone.
LAYOUT = 2
# Seconds of work that are lost, at most, where a process is ended.
SAVED_EVERY = 5.0
# Questions that cheap retrievers are asked once more, one by one.
TIMED = 30


@dataclass(frozen=True)
class Task:
    """One retrieval: a system on a dataset, down to a depth."""

    dataset: str
    system: str
    depth: int


@dataclass(frozen=True, eq=False)
class Done:
    """The answers of a task, and how long they took.

    `since` is when the first of them were given; `resumed` says how many an earlier run had, and `seen` what code of
    the user's loaded and opened.
    """

    answers: Answers
    timing: Timing
    since: str = ""
    resumed: int = 0
    seen: dict[str, Any] | None = None


def needed(experiment: Experiment, data: Mapping[str, Asked]) -> list[Task]:
    """Every retrieval that the systems to report need, those of fusions' inputs included, each once.

    A retriever is asked for as many results more as a question of its data set leaves out at most.
    """
    tasks: dict[Task, None] = {}
    depth = experiment.config.evaluate.depth
    stack = [Task(dataset, name, depth) for dataset, name in experiment.pairs()][::-1]
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


def key(experiment: Experiment, data: Asked, task: Task) -> str:
    """The hash of everything that determines the answers of a task."""
    if task not in data.keys:
        data.keys[task] = _key(experiment, data, task)
    return data.keys[task]


def _key(experiment: Experiment, data: Asked, task: Task) -> str:
    system = experiment.systems[task.system]
    options = asdict(experiment.options(task.system, task.dataset))
    for name in experiment.paths_of(task.system):
        options[name] = _digest(Path(options[name]))
    determining = {
        "layout": LAYOUT,
        "code": _code(system.kind),
        "groupgt": groupgt.__version__,
        "use": system.config.use,
        "options": options,
        "libraries": libraries([system]),
        "corpus": data.corpus_digest,
        "questions": [data.queries.ids, list(data.queries)],
        "seed": experiment.config.seed,
        "depth": task.depth,
    }
    if experiment.paths_of(task.system):
        determining["all questions"] = data.qids  # rows of files may follow them
    files = [name.replace("{dataset}", task.dataset) for name in getattr(system.options, "files", [])]
    determining["files"] = {name: _digest(experiment.at(name)) for name in files}
    return key_of(determining)


def _name(experiment: Experiment, data: Asked, task: Task) -> str:
    """The name under which a run keeps what it retrieves: apart, where other runs are to ask for themselves."""
    system = experiment.systems[task.system]
    whole = key(experiment, data, task)
    return key_of({"run": whole}) if system.kind.live and not getattr(system.options, "version", "") else whole


def _is_as_it_was(experiment: Experiment, task: Task, about: Mapping[str, Any]) -> bool:
    """Whether nothing has changed that the code of a system loaded and opened, where it is code of the user's."""
    if not experiment.systems[task.system].kind.runs_code:
        return True
    return unchanged(about.get("seen"), experiment.path.parent.resolve())


@lru_cache
def _code(kind: RetrieverPlugin) -> str:
    """The digest of what makes results: our retrievers and the reader of corpora, and a plugin's module."""
    retrievers = Path(base.__file__).parent.glob("*.py")
    files = {*retrievers, Path(corpus_reader.__file__), Path(inspect.getfile(kind.options))}
    return key_of({file.name: sha256(file) for file in sorted(files)})


def _digest(path: Path) -> str:
    """The digest of a file, or of all files in a folder."""
    if path.is_file():
        return sha256(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return key_of({file.relative_to(path).as_posix(): sha256(file) for file in files})


def now() -> str:
    """The time as the cache writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def described(experiment: Experiment, task: Task, done: Done, questions: int) -> dict[str, Any]:
    """What the cache says of an entry."""
    system = experiment.systems[task.system]
    about: dict[str, Any] = {
        "experiment": experiment.title,
        "dataset": task.dataset,
        "system": task.system,
        "use": system.config.use,
        "depth": task.depth,
        "questions": questions,
        "made": now(),
        "since": done.since or now(),
        "resumed": done.resumed,
        "timing": asdict(done.timing),
    }
    return {**experiment.hide.sure(about), **({} if done.seen is None else {"seen": done.seen})}


def encoded(answers: Answers) -> list[Any]:
    """Answers as rows of the cache."""
    scores = answers.scores
    return [[qid, ids, None if scores is None else scores[qid]] for qid, ids in answers.ids.items()]


def decoded(task: Task, qids: Sequence[str], about: Mapping[str, Any], rows: Sequence[Any]) -> Done | None:
    """What an entry of the cache holds, or None where that is not the answers of these questions, in their order."""
    try:
        if [row[0] for row in rows] != list(qids):
            return None
        scored = all(row[2] is not None for row in rows)
        rankings = [list(zip(row[1], row[2], strict=True)) if scored else row[1] for row in rows]
        if not all(isinstance(name, str) for row in rows for name in row[1]):
            return None
        answers = checked(task.system, qids, rankings, task.depth)
        timing = Timing(**{**about["timing"], "dataset": task.dataset, "system": task.system})
        is_sound = isinstance(timing.machine, dict) and math.isfinite(math.fsum(timing.single_ms + timing.batched_ms))
        since, seen = about.get("since"), about.get("seen")
        is_sound = is_sound and isinstance(since, str) and math.isfinite(timing.build_s)
        return Done(answers, timing, since or "", about.get("resumed", 0), seen) if is_sound else None
    except (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


@dataclass(eq=False)
class Begun:
    """A task that is begun: the answers so far, batch by batch, and how long each batch took for each question.

    `single_ms` are the questions that were asked one by one.
    """

    answers: Answers
    batched_ms: list[float]
    single_ms: list[float]
    since: str
    seen: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.resumed = len(self.answers.ids)

    def add(self, answers: Answers, spent: Sequence[float]) -> None:
        """Adds the answers of one batch, and the milliseconds of each call."""
        if len(spent) == len(answers.ids):
            self.single_ms += spent
        self.answers.ids.update(answers.ids)
        are_scored = self.answers.scores is not None and answers.scores is not None
        scores = {**(self.answers.scores or {}), **(answers.scores or {})} if are_scored else None
        self.answers = Answers(self.answers.ids, scores)
        self.batched_ms.append(math.fsum(spent) / max(1, len(answers.ids)))


def retrieve(
    experiment: Experiment,
    data: Data,
    task: Task,
    answered: Callable[[int], None] = lambda queries: None,
    begun: Begun | None = None,
    save: Callable[[Done], None] = lambda done: None,
) -> Done:
    """Builds a system and asks it everything; raises `RetrieverError` whatever goes wrong in it.

    `answered` hears how many queries more are answered. `begun` is what is answered already; what is answered so far is
    handed to `save` every few seconds, and where the work ends early.
    """
    begun = begun or Begun(Answers({}, {}), [], [], now())
    already = len(begun.answers.ids)
    try:
        return _retrieve(experiment, data, task, answered, begun, save)
    except KeyboardInterrupt:
        raise
    except GroupgtError as error:
        start = f"system {task.system!r}"
        faults = [text if text.startswith(start) else f"{start}: {text}" for text in error.faults]
        raise RetrieverError(*(f"dataset {task.dataset!r}: {text}" for text in faults), total=error.total) from None
    except BaseException as error:  # neither a library's panic nor sys.exit in code of the user's is an `Exception`
        text = f"dataset {task.dataset!r}: system {task.system!r}: {one_line(error)}{place_of(error)}"
        raise RetrieverError(text) from error
    finally:
        if already < len(begun.answers.ids) < len(data.queries):
            save(_so_far(task, begun))


def _so_far(task: Task, begun: Begun) -> Done:
    timing = Timing(task.dataset, task.system, 0.0, begun.single_ms, begun.batched_ms, machine())
    return Done(begun.answers, timing, begun.since, begun.resumed, begun.seen)


def _retrieve(
    experiment: Experiment,
    data: Data,
    task: Task,
    answered: Callable[[int], None],
    begun: Begun,
    save: Callable[[Done], None],
) -> Done:
    system = experiment.systems[task.system]
    options = experiment.options(task.system, task.dataset)
    if system.kind.build is None:
        raise RetrieverError(f"{system.config.use} is no retriever")
    setting = Setting(data.corpus or Corpus([], []), data.qids, experiment.config.seed)
    start = time.perf_counter()
    if system.kind.runs_code:
        order = Order(task.system, system.kind, options, experiment.path.parent.resolve(), setting)
        with Fresh(order) as fresh:
            check_timed(experiment, task, singly=fresh.singly)
            return _answered(experiment, data, task, fresh, fresh.build_s, answered, begun, save)
    check_timed(experiment, task, singly=options.asks_singly())
    with users_code():
        retriever = system.kind.build(setting, options)
    build = time.perf_counter() - start
    return _answered(experiment, data, task, retriever, build, answered, begun, save)


def _answered(
    experiment: Experiment,
    data: Data,
    task: Task,
    retriever: Retriever,
    build: float,
    answered: Callable[[int], None],
    begun: Begun,
    save: Callable[[Done], None],
) -> Done:
    """Asks a retriever in batches what is not answered yet, and some of it again where that is to be timed."""
    options = experiment.options(task.system, task.dataset)
    before, saved = begun.seen, time.perf_counter()
    answered(len(begun.answers.ids))
    for first in range(len(begun.answers.ids), len(data.queries), options.batch_size()):
        batch = data.queries.part(first, first + options.batch_size())
        batch_qids = [*batch.ids]  # whatever the retriever does with those it is handed
        rankings, spent = _asked(retriever, batch, task.depth)
        begun.add(checked(task.system, batch_qids, rankings, task.depth), spent)
        if isinstance(retriever, Fresh):
            begun.seen = retriever.seen if before is None else merged(before, retriever.seen)
        answered(len(batch_qids))
        if time.perf_counter() - saved > SAVED_EVERY and len(begun.answers.ids) < len(data.queries):
            save(_so_far(task, begun))
            saved = time.perf_counter()
    single_ms = begun.single_ms
    if len(single_ms) < len(data.queries):
        single_ms = []
        for question in _repeated(experiment, data, task):
            single_ms += _asked(retriever, question, task.depth)[1]
            answered(1)
    timing = Timing(task.dataset, task.system, build, single_ms, begun.batched_ms, machine())
    return Done(begun.answers, timing, begun.since, begun.resumed, begun.seen)


def _asked(retriever: Retriever, queries: Queries, depth: int) -> tuple[Sequence[Any], list[float]]:
    """What a retriever answers, and the milliseconds of each call."""
    start = time.perf_counter()
    with users_code():
        rankings = retriever.retrieve(queries, depth)
    took = 1000 * (time.perf_counter() - start)
    return rankings, list(getattr(retriever, "spent", None) or [took])


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
