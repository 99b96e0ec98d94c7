"""Retrieval tasks, their cache keys, and the cache that stores their results.

A key covers everything that results depend on. External code and services are queried on every run, unless the file
gives them a version or the user asks to reuse earlier results.
"""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import groupgt
from groupgt.errors import ConfigError, DataError, GroupgtError, GroupgtWarning, warn
from groupgt.experiment.datasets import RetrievalInputs, read_retrieval_inputs
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.systems import System, combined, matching, trials_of
from groupgt.experiment.timing import UNTIMED, Timing
from groupgt.formats import corpus as corpus_reader
from groupgt.retrievers import base
from groupgt.retrievers.base import Answers
from groupgt.store.cache import Cache, Entry, key_of
from groupgt.store.files import digest_of, owner, sha256
from groupgt.store.journal import Journals, now
from groupgt.store.verdicts import VerdictStore

# Version of the cache format; other versions do not read it.
LAYOUT = 4
_version = lru_cache(version)


@dataclass(frozen=True)
class Task:
    """One retrieval, identified within an experiment by its system, data set, depth and trial."""

    dataset: str
    name: str
    depth: int
    experiment: Experiment = field(compare=False, repr=False)
    data: RetrievalInputs = field(compare=False, repr=False)
    trial: int = 1

    @property
    def seed(self) -> int:
        """The random seed of the experiment, plus one for each further build."""
        return self.experiment.config.seed + (self.trial - 1 if self.system.config.trials.of == "builds" else 0)

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
        """Return how many queries are repeated one by one for timing, or 0 if every call has only one query anyway."""
        return 0 if singly else min(self.experiment.config.evaluate.repeats(self.system.kind), len(self.data.queries))

    def calls(self, *, singly: bool | None) -> int:
        """Return the number of calls to the retriever."""
        size = 1 if singly else self.options.batch_size()
        return math.ceil(len(self.data.queries) / size) + self.repeats(singly=singly)

    def check_timed(self, *, singly: bool | None) -> None:
        """Raise `ConfigError` if a gate limits single-query latency but no query is run on its own."""
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
            "seed": self.seed,
            "depth": self.depth,
        }
        if self.system.ascending:
            determining["scores"] = "ascending"  # the order of `{id: score}`
        if system.kind.imports_target and self.experiment.policy.ties != "id":
            determining["ties"] = self.experiment.policy.ties
        if self.system.config.trials.n > 1:
            determining["trial"] = self.trial
        # Which columns a function takes is known only once it is imported.
        sent = set(data.queries.columns if system.kind.imports_target else self.options.sends()) - {"qid"}
        if sent:  # an unknown one is refused later
            determining["sent"] = {name: data.column_digests.get(name) for name in sent}
        if paths:
            determining["all questions"] = data.truth.file_order  # rows of files may be in their order
        return key_of(determining)

    @cached_property
    def part_key(self) -> str:
        """The cache key for partial results of an unfinished run."""
        return key_of({"part": self.key, "system": self.name, "dataset": self.dataset})

    @property
    def about(self) -> dict[str, Any]:
        """A description of the task, stored in the cache."""
        about: dict[str, Any] = {"experiment": self.experiment.title, "dataset": self.dataset, "system": self.name}
        about |= {"use": self.system.config.use, "depth": self.depth, "questions": len(self.data.queries)}
        hidden: dict[str, Any] = self.experiment.hide.sure(about)
        return hidden


@dataclass(frozen=True)
class Earlier:
    """The number of results from an earlier run, which finished or was `interrupted` at time `at`."""

    count: int
    at: str
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class Done:
    """A finished task's results, the `seconds` spent in the retriever, and when the cache entry was `made`."""

    answers: Answers
    timing: Timing
    seconds: float = 0.0
    earlier: Earlier | None = None
    made: str = ""


def needed(experiment: Experiment, data: Mapping[str, RetrievalInputs]) -> list[Task]:
    """List the retrievals that the reported systems need, each deep enough to make up for excluded ids."""
    tasks: dict[Task, None] = {}
    seen: set[Task] = set()

    def add(task: Task) -> None:
        task = replace(task, trial=min(task.trial, trials_of(experiment.systems, task.name)))
        if task in seen:
            return
        seen.add(task)
        if task.system.kind.build is not None:
            tasks[replace(task, depth=task.depth + task.data.left_out)] = None
        depth = getattr(task.system.options, "depth", None) or task.depth
        for name in task.system.inputs:
            add(replace(task, name=name, depth=depth))

    for dataset, name in experiment.pairs():
        stages = [stage.source for stage in experiment.stages(name, dataset) if stage.is_system]
        for needed_name in (name, *stages):
            for trial in range(1, trials_of(experiment.systems, needed_name) + 1):
                add(Task(dataset, needed_name, experiment.config.evaluate.depth, experiment, data[dataset], trial))
    return list(tasks)


@lru_cache(maxsize=1)
def _our_code() -> str:
    """Compute a digest of the code that affects results: built-in retrievers and the corpus reader."""
    files = {*Path(base.__file__).parent.glob("*.py"), Path(corpus_reader.__file__)}
    return key_of({file.name: sha256(file) for file in sorted(files)})


def libraries(systems: Sequence[System], *more: str) -> dict[str, str]:
    """Return the versions of all installed packages that affect results, including the packages in `more`."""
    versions: dict[str, str] = {}
    for name in sorted({"numpy", *more, *(name for system in systems for name in system.kind.libraries)}):
        with suppress(PackageNotFoundError):
            versions[name] = _version(name)
    return versions


# --- Cached results.


def run_key(tasks: Iterable[Task], changes: Sequence[str], only: Sequence[str]) -> str:
    """Identify a run by its tasks' resolved options, queries and corpora, and by its --set and --only options."""
    keys = sorted(task.part_key for task in tasks)
    return key_of({"tasks": keys, "changes": sorted(changes), "only": sorted(only)})


@dataclass(frozen=True)
class AnswerCache:
    """Stores results in a cache. Nothing is stored if `cache` is None, and nothing is read with `refresh`.

    With `reuse`, external code and services are not queried again if an earlier run stored their results. `writer`
    identifies the main process, on whose behalf workers write, and `run` is the run's key in its records.
    """

    cache: Cache | None
    refresh: bool = False
    reuse: bool = False
    writer: str = field(default_factory=owner)
    run: str = ""
    is_resumed: bool = False

    @classmethod
    def of(cls, experiment: Experiment, *, refresh: bool = False, reuse: bool = False) -> AnswerCache:
        """Create the cache configured for an experiment."""
        folder = experiment.config.cache
        return cls(None if folder is None else Cache(experiment.at(folder)), refresh, reuse)

    def verdicts(self) -> VerdictStore:
        """Create the store of labeller verdicts for one run."""
        folder = None if self.cache is None else self.cache.folder / "verdicts"
        return VerdictStore(folder, self.refresh, self.reuse)

    def takes_any(self, task: Task) -> bool:
        """Return whether a task may use the results of any earlier run with its key. Trials may not."""
        if task.system.config.trials.n > 1:
            return False
        return not self.refresh and (self.reuse or not task.system.is_requeried)

    def kept(self, task: Task) -> Done | None:
        """Return the cached results of a task, or None if they cannot be used."""
        done = self.read(task) if self.takes_any(task) else None
        if done is None or not task.system.kind.is_foreign:
            return done
        return replace(done, seconds=0.0, earlier=Earlier(len(done.answers.ids), done.made))

    def read(self, task: Task) -> Done | None:
        """Read the entry for a task, or return None if it is damaged or does not match the task's queries."""
        entry = None if self.cache is None else self.cache.read(task.key)
        if entry is None:
            return None
        about, rows = entry
        try:
            answers, earlier = answers_of(task.data.queries.ids, rows), about["earlier"]
            earlier = None if earlier is None else Earlier(**earlier)
            return Done(answers, timing_of(task, about["timing"]), float(about["seconds"]), earlier, str(about["made"]))
        except DAMAGE:
            return None

    def write(self, task: Task, done: Done) -> None:
        """Store the results of a task, or raise `DataError` if writing fails."""
        if self.cache is not None:
            earlier = None if done.earlier is None else asdict(done.earlier)
            about = {"made": now(), "timing": asdict(done.timing), "seconds": done.seconds, "earlier": earlier}
            self.cache.write(task.key, task.about | about, rows_of(done.answers))

    def journals(self, task: Task) -> Journals:
        """Return the journals of a task's partial results."""
        folder = None if self.cache is None else self.cache.path(task.part_key).parent
        return Journals(folder, task.part_key, self.writer)

    def finish(self, task: Task, done: Done) -> None:
        """Store the results of a task and remove its partial results. Warn if storing fails."""
        try:
            self.write(task, done)
        except DataError as error:
            warn_of_failure(error)
        with suppress(OSError):  # also if writing failed: the run was not interrupted
            self.journals(task).remove()


def warn_of_failure(error: DataError) -> None:
    """Warn that results could not be stored."""
    warn(f"retrieved results cannot be cached: {error}")


# --- Format of entries.

# Errors that reading may raise if entries are damaged or of another kind.
DAMAGE = (GroupgtError, AttributeError, IndexError, KeyError, TypeError, ValueError)


def rows_of(answers: Answers) -> list[Any]:
    """Convert results to cache rows."""
    scores, texts, costs = answers.scores, answers.texts or {}, answers.costs
    rows = []
    for qid, ids in answers.ids.items():
        more = [texts.get(qid), costs.get(qid)] if texts or costs else []
        rows.append([qid, ids, None if scores is None else scores[qid], *more])
    return rows


def answers_of(qids: Sequence[str], rows: Sequence[Any]) -> Answers:
    """Convert cache rows to results, or raise any kind of error if the rows do not match the queries."""
    ids = {qid: names for qid, names, *_ in rows}
    scores = {qid: values for qid, _, values, *_ in rows if values is not None}
    texts = {row[0]: row[3] for row in rows if row[3:] and row[3] is not None}
    costs = {row[0]: float(row[4]) for row in rows if row[4:] and row[4] is not None}
    if list(ids) != list(qids):
        raise ValueError
    return Answers(ids, scores if len(scores) == len(ids) else None, texts=texts or None, costs=costs)


def timing_of(task: Task, written: Mapping[str, Any]) -> Timing:
    """Convert a cached timing."""
    return Timing(**{**written, "dataset": task.dataset, "system": task.name})


@dataclass(frozen=True)
class Used:
    """The cache entries that an experiment file would use, and the number of other entries."""

    cache: Cache | None
    entries: list[Entry]
    others: int = 0

    @classmethod
    def by(cls, path: Path, secrets: dict[str, str]) -> Used:
        """Find the entries that an experiment file uses. Raise errors in the file or data, but do not run user code."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GroupgtWarning)
            experiment = load(path, allow_code=True, allow_plugins=False, secrets=secrets)
            inputs = {name: read_retrieval_inputs(experiment, name) for name in experiment.config.datasets}
        cache = AnswerCache.of(experiment).cache
        if cache is None:
            return cls(None, [])
        tasks = needed(experiment, inputs)
        keys = {task.part_key for task in tasks} | {task.key for task in tasks if not task.system.is_requeried}
        entries = list(cache.entries())
        used = [entry for entry in entries if entry.key in keys]
        others = [entry for entry in entries if entry.key not in keys]
        return cls(cache, used, sum(entry.about.get("experiment") == experiment.title for entry in others))
