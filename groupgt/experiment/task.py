"""Retrieval tasks: each runs all queries of a data set on one system, and has a cache key for its results."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import groupgt
from groupgt.errors import ConfigError
from groupgt.experiment.datasets import RetrievalInputs
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.gates import UNTIMED
from groupgt.experiment.systems import System, combined, matching
from groupgt.experiment.timing import Timing
from groupgt.formats import corpus as corpus_reader
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers
from groupgt.store.cache import key_of
from groupgt.store.files import digest_of, sha256

# Version of the cache format; other versions do not read it.
LAYOUT = 3
_version = lru_cache(version)
# Number of queries that cheap retrievers run a second time, one by one.
TIMED = 30


@dataclass(frozen=True)
class Task:
    """One retrieval, identified within an experiment by its system, data set and depth."""

    dataset: str
    name: str
    depth: int
    experiment: Experiment = field(compare=False, repr=False)
    data: RetrievalInputs = field(compare=False, repr=False)

    @property
    def system(self) -> System:
        """The system to query."""
        return self.experiment.systems[self.name]

    @cached_property
    def options(self) -> Any:
        """The options of the system for this data set."""
        return self.experiment.options(self.name, self.dataset)

    # --- Number of calls.

    def repeats(self, *, singly: bool | None) -> int:
        """Returns how many queries are repeated one by one for timing; 0 if every call has a single query anyway."""
        if singly:
            return 0
        timed = self.experiment.config.evaluate.timed
        if timed is None:
            timed = TIMED if self.system.kind.cheap else 0
        return min(timed, len(self.data.queries))

    def calls(self, *, singly: bool | None) -> int:
        """Returns the number of calls to the retriever."""
        size = 1 if singly else self.options.batch_size()
        return math.ceil(len(self.data.queries) / size) + self.repeats(singly=singly)

    def check_timed(self, *, singly: bool | None) -> None:
        """Raises `ConfigError` if a gate limits single-query latency but no query is run on its own."""
        if singly or self.repeats(singly=singly):
            return
        experiment = self.experiment
        for number, gate in enumerate(experiment.config.gate, 1):
            if gate.metric.startswith("latency") and self.dataset in matching(gate.dataset, experiment.config.datasets):
                for name in matching(gate.system, experiment.systems):
                    if self.name in combined(experiment.systems, name):
                        raise ConfigError(f"gate {number}: {gate.metric} {UNTIMED}")

    # --- What determines the results.

    @cached_property
    def key(self) -> str:
        """A hash of everything that affects the results."""
        system, data = self.system, self.data
        paths = self.experiment.paths_of(self.name)
        digests = {name: digest_of(Path(getattr(self.options, name))) for name in paths}
        determining = {
            "layout": LAYOUT,
            "code": _our_code(),
            "groupgt": groupgt.__version__,
            "use": system.config.use,
            "version": system.config.version,
            "options": {**asdict(self.options), **digests},
            # The user sets the version of external code; nothing else identifies it.
            "libraries": {"python": platform.python_version()} if system.kind.is_foreign else libraries([system]),
            "corpus": data.corpus_digest,
            "questions": [data.queries.ids, list(data.queries)],
            "seed": self.experiment.config.seed,
            "depth": self.depth,
        }
        if paths:
            determining["all questions"] = data.qids  # rows of files may be in their order
        return key_of(determining)

    @cached_property
    def part_key(self) -> str:
        """The cache key for partial results of an unfinished run."""
        return key_of({"part": self.key, "system": self.name, "dataset": self.dataset})

    @property
    def about(self) -> dict[str, Any]:
        """A description of the task, stored in the cache."""
        about = {
            "experiment": self.experiment.title,
            "dataset": self.dataset,
            "system": self.name,
            "use": self.system.config.use,
            "depth": self.depth,
            "questions": len(self.data.queries),
        }
        hidden: dict[str, Any] = self.experiment.hide.sure(about)
        return hidden


@dataclass(frozen=True)
class Earlier:
    """The number of results from an earlier run, which finished or was `interrupted` at the time `at`.

    `changed` lists modules that external code had loaded and that have changed since.
    """

    count: int
    at: str
    interrupted: bool = False
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Done:
    """The results of a finished task, with timing and the modules that external code had loaded.

    `seconds` is the time this run spent in the retriever; `earlier` describes results from an earlier run; `made` is
    the time when the cache entry was written.
    """

    answers: Answers
    timing: Timing
    modules: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    earlier: Earlier | None = None
    made: str = ""


def needed(
    experiment: Experiment, data: Mapping[str, RetrievalInputs], pairs: Iterable[tuple[str, str]] | None = None
) -> list[Task]:
    """Returns each retrieval that the reported systems (or the given `pairs`) need, including inputs of fusions.

    Each retriever is asked for extra results, enough to make up for ids that the ground truth excludes.
    """
    tasks: dict[Task, None] = {}
    depth = experiment.config.evaluate.depth
    chosen = list(experiment.pairs() if pairs is None else pairs)
    stack = [Task(dataset, name, depth, experiment, data[dataset]) for dataset, name in reversed(chosen)]
    seen: set[Task] = set()
    while stack:
        task = stack.pop()
        if task in seen:
            continue
        seen.add(task)
        system = task.system
        if system.kind.build is not None:
            tasks[replace(task, depth=task.depth + task.data.left_out)] = None
        depth = getattr(system.options, "depth", None) or task.depth
        stack += [replace(task, name=name, depth=depth) for name in reversed(system.inputs)]
    return list(tasks)


@lru_cache(maxsize=1)
def _our_code() -> str:
    """Computes a digest of the code that affects results: built-in retrievers and the corpus reader."""
    files = {*Path(base.__file__).parent.glob("*.py"), Path(corpus_reader.__file__)}
    return key_of({file.name: sha256(file) for file in sorted(files)})


def libraries(systems: Sequence[System]) -> dict[str, str]:
    """Returns the versions of installed packages that affect results."""
    versions: dict[str, str] = {}
    for name in sorted({"numpy", *(name for system in systems for name in system.kind.libraries)}):
        with suppress(PackageNotFoundError):
            versions[name] = _version(name)
    return versions
