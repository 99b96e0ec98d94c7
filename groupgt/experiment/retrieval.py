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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import groupgt
from groupgt.errors import DataError, GroupgtError, GroupgtWarning, RetrieverError
from groupgt.experiment.config import Config
from groupgt.experiment.datasets import Data, sha256
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.systems import System
from groupgt.experiment.timing import Timing, machine
from groupgt.experiment.yaml import read_yaml
from groupgt.formats import corpus as corpus_reader
from groupgt.formats.modules import source_of
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers, Corpus, Retriever, RetrieverPlugin, Setting, checked
from groupgt.runtime import one_line, place_of, users_code
from groupgt.store.cache import Cache, key_of


@dataclass(frozen=True)
class Keeper:
    """Retrieves through a cache; without one (None) nothing is kept, and with `refresh` nothing is taken from it."""

    cache: Cache | None
    refresh: bool = False

    def kept(self, experiment: Experiment, data: Data, task: Task) -> Done | None:
        """What is kept of a task, or None."""
        if self.cache is None or self.refresh:
            return None
        entry = self.cache.read(key(experiment, data, task))
        return None if entry is None else decoded(task, data.queries.ids, *entry)

    def retrieved(
        self, experiment: Experiment, data: Data, task: Task, answered: Callable[[int], None] = lambda queries: None
    ) -> Done:
        """Retrieves and keeps, what is done so far too; where it cannot be kept, a warning says so."""
        unfinished = key_of({"part": key(experiment, data, task)})

        def save(done: Done, name: str | None = unfinished) -> None:
            try:
                self.keep(experiment, data, task, done, name)
                if name is None and self.cache is not None:
                    self.cache.remove(unfinished)
            except DataError as error:
                warnings.warn(f"retrieved results cannot be cached: {error}", GroupgtWarning, stacklevel=2)

        done = retrieve(experiment, data, task, answered, self._begun(data, task, unfinished), save)
        save(done, None)
        return done

    def _begun(self, data: Data, task: Task, unfinished: str) -> Begun | None:
        """What an earlier run, ended before its time, has kept of a task."""
        entry = None if self.cache is None or self.refresh else self.cache.read(unfinished)
        if entry is None or len(entry[1]) >= len(data.queries):
            return None
        done = decoded(task, data.queries.ids[: len(entry[1])], *entry)
        return None if done is None else Begun(done.answers, done.timing.batched_ms)

    def keep(self, experiment: Experiment, data: Data, task: Task, done: Done, name: str | None = None) -> None:
        """Keeps answers under their key, or another name; raises `DataError` where that cannot be done."""
        if self.cache is not None:
            about = described(experiment, task, done.timing, len(data.queries))
            self.cache.write(name or key(experiment, data, task), about, encoded(done.answers))


def cache_of(experiment: Experiment) -> Cache | None:
    """Where the runs of an experiment are kept."""
    folder = experiment.config.cache
    return None if folder is None else Cache(experiment.at(folder))


def cache_beside(path: Path) -> tuple[Cache | None, str]:
    """Where the runs of an experiment file are kept, and its name, whatever else it holds; no code of it is run."""
    document = read_yaml(path)
    value = document.value if isinstance(document.value, dict) else {}
    folder = value.get("cache", Config.model_fields["cache"].default)
    cache = Cache(document.resolved(folder)) if isinstance(folder, str) and folder.strip() else None
    return cache, str(value.get("name", ""))


# What lies in the cache is understood by its own kind of groupgt alone.
LAYOUT = 1
# Seconds of work that are lost, at most, where a process is ended.
SAVED_EVERY = 5.0


@dataclass(frozen=True)
class Task:
    """One retrieval: a system on a dataset, down to a depth."""

    dataset: str
    system: str
    depth: int


@dataclass(frozen=True, eq=False)
class Done:
    """The answers of a task, and how long they took."""

    answers: Answers
    timing: Timing


def needed(experiment: Experiment) -> list[Task]:
    """Every retrieval that the systems to report need, those of fusions' inputs included, each once."""
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
            tasks[task] = None
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


def key(experiment: Experiment, data: Data, task: Task) -> str:
    """The hash of everything that determines the answers of a task."""
    if task not in data.keys:
        data.keys[task] = _key(experiment, data, task)
    return data.keys[task]


def _key(experiment: Experiment, data: Data, task: Task) -> str:
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
    if system.kind.runs_code:
        source = source_of(system.options.target)
        determining["source"] = sha256(source) if source else ""
    return key_of(determining)


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


def described(experiment: Experiment, task: Task, timing: Timing, questions: int) -> dict[str, Any]:
    """What the cache says of an entry."""
    system = experiment.systems[task.system]
    return {
        "experiment": experiment.config.name,
        "dataset": task.dataset,
        "system": task.system,
        "use": system.config.use,
        "depth": task.depth,
        "questions": questions,
        "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "timing": asdict(timing),
    }


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
        return Done(answers, timing) if is_sound and math.isfinite(timing.build_s) else None
    except (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


@dataclass(eq=False)
class Begun:
    """A task that is begun: the answers so far, batch by batch, and how long each batch took for each question."""

    answers: Answers
    batched_ms: list[float]

    def add(self, answers: Answers, milliseconds: float) -> None:
        """Adds the answers of one batch."""
        self.answers.ids.update(answers.ids)
        are_scored = self.answers.scores is not None and answers.scores is not None
        scores = {**(self.answers.scores or {}), **(answers.scores or {})} if are_scored else None
        self.answers = Answers(self.answers.ids, scores)
        self.batched_ms.append(milliseconds)


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
    begun = begun or Begun(Answers({}, {}), [])
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
    return Done(begun.answers, Timing(task.dataset, task.system, 0.0, [], begun.batched_ms, machine()))


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
    corpus, qids = data.corpus or Corpus([], []), data.qids
    if system.kind.runs_code:
        # The user's code may do with its lists what it likes; ours stay.
        corpus, qids = Corpus([*corpus.ids], [*corpus.texts]), [*qids]
    setting = Setting(corpus, qids, experiment.config.seed)
    start = saved = time.perf_counter()
    with users_code():
        retriever = system.kind.build(setting, options)
    build = time.perf_counter() - start
    answered(len(begun.answers.ids))
    for first in range(len(begun.answers.ids), len(data.queries), options.batch_size()):
        batch = data.queries.part(first, first + options.batch_size())
        batch_qids = [*batch.ids]  # whatever the retriever does with those it is handed
        start = time.perf_counter()
        with users_code():
            rankings = retriever.retrieve(batch, task.depth)
        end = time.perf_counter()
        answers = checked(task.system, batch_qids, rankings, task.depth)
        begun.add(answers, 1000 * (end - start) / len(batch_qids))
        answered(len(batch_qids))
        if end - saved > SAVED_EVERY and len(begun.answers.ids) < len(data.queries):
            save(_so_far(task, begun))
            saved = end
    single_ms = list(_timed(retriever, data, task.depth, experiment.config.evaluate.timed))
    return Done(begun.answers, Timing(task.dataset, task.system, build, single_ms, begun.batched_ms, machine()))


def _timed(retriever: Retriever, data: Data, depth: int, count: int) -> Iterator[float]:
    """Milliseconds of some questions, evenly spread, asked one by one."""
    total = len(data.queries)
    for number in range(min(count, total)):
        place = number * total // min(count, total)
        question = data.queries.part(place, place + 1)
        start = time.perf_counter()
        with users_code():
            retriever.retrieve(question, depth)
        yield 1000 * (time.perf_counter() - start)
