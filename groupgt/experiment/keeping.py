"""What was retrieved is kept, and what is kept is not retrieved again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from groupgt.errors import DataError, GroupgtWarning
from groupgt.experiment.config import Experiment
from groupgt.experiment.data import Data
from groupgt.experiment.families import placed
from groupgt.experiment.retrieving import Done, Task, about, decoded, encoded, key, retrieve
from groupgt.experiment.schema import Config
from groupgt.experiment.yamlfile import read_yaml
from groupgt.store.cache import Cache

__all__ = ["Keeper", "cache_beside", "cache_of"]


@dataclass(frozen=True)
class Keeper:
    """Retrieves through a cache; without one (None) nothing is kept, and with `refresh` nothing is taken from it."""

    cache: Cache | None
    refresh: bool = False

    def kept(self, experiment: Experiment, data: Data, task: Task) -> Done | None:
        """What is kept of a task, or None."""
        if self.cache is None or self.refresh:
            return None
        found = self.cache.read(key(experiment, data, task))
        return None if found is None else decoded(task, data.queries.ids, *found)

    def retrieved(
        self, experiment: Experiment, data: Data, task: Task, told: Callable[[int], None] = lambda queries: None
    ) -> Done:
        """Retrieves and keeps; where it cannot be kept, a warning says so and the run goes on."""
        done = retrieve(experiment, data, task, told)
        try:
            self.keep(experiment, data, task, done)
        except DataError as error:
            warnings.warn(f"what was retrieved cannot be kept: {error}", GroupgtWarning, stacklevel=2)
        return done

    def keep(self, experiment: Experiment, data: Data, task: Task, done: Done) -> None:
        """Keeps what was retrieved; raises `DataError` where that cannot be done."""
        if self.cache is not None:
            self.cache.write(key(experiment, data, task), about(experiment, task, done.timing), encoded(done.answers))


def cache_of(experiment: Experiment) -> Cache | None:
    """Where the runs of an experiment are kept."""
    folder = experiment.config.cache
    return None if folder is None else Cache(experiment.at(folder))


def cache_beside(path: Path) -> Cache | None:
    """Where the runs of an experiment file are kept, whatever else the file holds; no code of it is run."""
    document = read_yaml(path)
    given = (
        document.value.get("cache", Config.model_fields["cache"].default) if isinstance(document.value, dict) else None
    )
    return Cache(placed(path.parent, given)) if isinstance(given, str) and given.strip() else None
