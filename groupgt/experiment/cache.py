"""Retrieving through a cache: what was retrieved is kept, and what is kept is not retrieved again.

`answers` and each worker of `workers` retrieve with a `Keeper`; where and how entries lie is up to `store.cache`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from groupgt.errors import DataError, GroupgtWarning
from groupgt.experiment.config import Config
from groupgt.experiment.datasets import Data
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.retrieval import Begun, Done, Task, decoded, described, encoded, key, retrieve
from groupgt.experiment.yaml import read_yaml
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
                warnings.warn(f"what was retrieved cannot be kept: {error}", GroupgtWarning, stacklevel=2)

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
