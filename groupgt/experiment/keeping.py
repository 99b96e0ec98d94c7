"""What was retrieved is kept, and what is kept is not retrieved again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from groupgt.errors import DataError, GroupgtWarning
from groupgt.experiment.config import Experiment
from groupgt.experiment.data import Data
from groupgt.experiment.retrieving import Done, Task, about, decoded, encoded, key, retrieve
from groupgt.store.cache import Cache

__all__ = ["Keeper", "cache_of"]


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
        return None if found is None else decoded(task, *found)

    def has(self, experiment: Experiment, data: Data, task: Task) -> bool:
        """Whether something is kept of a task."""
        return self.cache is not None and not self.refresh and key(experiment, data, task) in self.cache

    def retrieved(
        self, experiment: Experiment, data: Data, task: Task, told: Callable[[int], None] = lambda queries: None
    ) -> Done:
        """Retrieves and keeps; where it cannot be kept, a warning says so and the run goes on."""
        done = retrieve(experiment, data, task, told)
        if self.cache is not None:
            try:
                said = about(experiment, task, done.timing)
                self.cache.write(key(experiment, data, task), said, encoded(done.answers))
            except DataError as error:
                warnings.warn(f"what was retrieved cannot be kept: {error}", GroupgtWarning, stacklevel=2)
        return done


def cache_of(experiment: Experiment) -> Cache | None:
    """Where the runs of an experiment are kept."""
    folder = experiment.config.cache
    return None if folder is None else Cache(experiment.at(folder))
