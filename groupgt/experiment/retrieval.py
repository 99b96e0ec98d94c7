"""Retrieving: which runs are needed, what determines each, which are cached already, and how long the others take."""

from __future__ import annotations

import inspect
import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import groupgt
from groupgt.errors import GroupgtError, RetrieverError
from groupgt.experiment.datasets import Data, sha256
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.systems import System
from groupgt.experiment.timing import Timing, machine
from groupgt.formats import corpus
from groupgt.formats.modules import source_of
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers, Corpus, Retriever, RetrieverPlugin, Setting, checked
from groupgt.store.cache import key_of

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
        below = getattr(system.options, "depth", None) or task.depth
        stack += [Task(task.dataset, each, below) for each in reversed(system.inputs)]
    return list(tasks)


def libraries(systems: Sequence[System]) -> dict[str, str]:
    """The versions of the distributions that decide about results, as far as they are installed."""
    names = sorted({"numpy", *(each for system in systems for each in system.kind.libraries)})
    return {name: found for name in names if (found := _version(name)) is not None}


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
    given = asdict(experiment.options(task.system, task.dataset))
    for name in experiment.paths_of(task.system):
        given[name] = _digest(Path(given[name]))
    determining = {
        "layout": LAYOUT,
        "code": _code(system.kind),
        "groupgt": groupgt.__version__,
        "use": system.config.use,
        "options": given,
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
    own = Path(base.__file__).parent
    files = {*own.glob("*.py"), Path(corpus.__file__), Path(inspect.getfile(kind.options))}
    return key_of({each.name: sha256(each) for each in sorted(files)})


def _digest(path: Path) -> str:
    """The digest of a file, or of all files in a folder."""
    if path.is_file():
        return sha256(path)
    files = sorted(each for each in path.rglob("*") if each.is_file())
    return key_of({each.relative_to(path).as_posix(): sha256(each) for each in files})


def about(experiment: Experiment, task: Task, timing: Timing, questions: int) -> dict[str, Any]:
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


def decoded(task: Task, qids: Sequence[str], said: Mapping[str, Any], rows: Sequence[Any]) -> Done | None:
    """What an entry of the cache holds, or None where that is not the answers of these questions, in their order."""
    try:
        if [row[0] for row in rows] != list(qids):
            return None
        scored = all(row[2] is not None for row in rows)
        rankings = [list(zip(row[1], row[2], strict=True)) if scored else row[1] for row in rows]
        if not all(isinstance(name, str) for row in rows for name in row[1]):
            return None
        answers = checked(task.system, qids, rankings, task.depth)
        timing = Timing(**{**said["timing"], "dataset": task.dataset, "system": task.system})
        sound = isinstance(timing.machine, dict) and math.isfinite(math.fsum(timing.single_ms + timing.batched_ms))
        return Done(answers, timing) if sound and math.isfinite(timing.build_s) else None
    except (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None


@dataclass(eq=False)
class Part:
    """The questions of a task that are answered, batch by batch, and how long each batch took for each of them."""

    answers: Answers
    batched: list[float]

    def add(self, answers: Answers, milliseconds: float) -> None:
        """Adds the answers of one batch."""
        self.answers.ids.update(answers.ids)
        both = self.answers.scores is not None and answers.scores is not None
        scores = {**(self.answers.scores or {}), **(answers.scores or {})} if both else None
        self.answers = Answers(self.answers.ids, scores)
        self.batched.append(milliseconds)


def retrieve(
    experiment: Experiment,
    data: Data,
    task: Task,
    told: Callable[[int], None] = lambda queries: None,
    part: Part | None = None,
    save: Callable[[Done], None] = lambda done: None,
) -> Done:
    """Builds a system and asks it everything; raises `RetrieverError` whatever goes wrong in it.

    `told` hears how many queries more are answered. `part` is what is answered already; what is answered so far is
    handed to `save` every few seconds, and where the work ends early.
    """
    part = part or Part(Answers({}, {}), [])
    already = len(part.answers.ids)
    try:
        return _retrieve(experiment, data, task, told, part, save)
    except KeyboardInterrupt:
        raise
    except GroupgtError as error:
        start = f"system {task.system!r}"
        faults = [text if text.startswith(start) else f"{start}: {text}" for text in error.faults]
        raise RetrieverError(*(f"dataset {task.dataset!r}: {text}" for text in faults), total=error.total) from None
    except BaseException as error:  # neither a library's panic nor sys.exit in code of the user's is an `Exception`
        what = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")
        text = f"dataset {task.dataset!r}: system {task.system!r}: {what}{_where(error)}"
        raise RetrieverError(text) from error
    finally:
        if already < len(part.answers.ids) < len(data.queries):
            save(_so_far(task, part))


def _so_far(task: Task, part: Part) -> Done:
    return Done(part.answers, Timing(task.dataset, task.system, 0.0, [], part.batched, machine()))


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _retrieve(
    experiment: Experiment,
    data: Data,
    task: Task,
    told: Callable[[int], None],
    part: Part,
    save: Callable[[Done], None],
) -> Done:
    system = experiment.systems[task.system]
    options = experiment.options(task.system, task.dataset)
    if system.kind.build is None:
        raise RetrieverError(f"{system.config.use} is no retriever")
    setting = Setting(data.corpus or Corpus([], []), data.qids, experiment.config.seed)
    start = saved = time.perf_counter()
    retriever = system.kind.build(setting, options)
    build = time.perf_counter() - start
    told(len(part.answers.ids))
    for first in range(len(part.answers.ids), len(data.queries), options.batch_size()):
        asked = data.queries.part(first, first + options.batch_size())
        start = time.perf_counter()
        found = retriever.retrieve(asked, task.depth)
        end = time.perf_counter()
        part.add(checked(task.system, asked.ids, found, task.depth), 1000 * (end - start) / len(asked))
        told(len(asked))
        if end - saved > SAVED_EVERY and len(part.answers.ids) < len(data.queries):
            save(_so_far(task, part))
            saved = end
    single = list(_timed(retriever, data, task.depth, experiment.config.evaluate.timed))
    return Done(part.answers, Timing(task.dataset, task.system, build, single, part.batched, machine()))


def _timed(retriever: Retriever, data: Data, depth: int, count: int) -> Iterator[float]:
    """Milliseconds of some questions, evenly spread, asked one by one."""
    total = len(data.queries)
    for number in range(min(count, total)):
        place = number * total // min(count, total)
        part = data.queries.part(place, place + 1)
        start = time.perf_counter()
        retriever.retrieve(part, depth)
        yield 1000 * (time.perf_counter() - start)
