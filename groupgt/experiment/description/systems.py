"""A system of an experiment, resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groupgt.experiment.description.schema import SystemConfig
from groupgt.experiment.description.yamlfile import Path_
from groupgt.retrievers.base import Kind

__all__ = ["System"]


@dataclass(frozen=True, eq=False)
class System:
    """One system: its name, the entry of the file it comes from, what makes it, and what it is made from.

    `paths` says where in the file each of its options stands.
    """

    name: str
    family: str
    config: SystemConfig
    kind: Kind
    options: Any
    paths: Mapping[str, Path_]
    inputs: tuple[str, ...] = ()

    def serves(self, dataset: str) -> bool:
        """Whether it is run on a dataset."""
        return not self.config.only or dataset in self.config.only

    @property
    def is_stored(self) -> bool:
        """Whether its results are read from files."""
        return self.kind.build is None and self.kind.fuse is None
