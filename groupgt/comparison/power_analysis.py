"""The result of a power analysis: for each system and metric, the difference that these queries can detect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupgt.comparison.power import Power
from groupgt.comparison.systems import Systems
from groupgt.render.results import ResultRows

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


@dataclass(frozen=True)
class PowerAnalysis(ResultRows[Power]):
    """A `Power` for each system and metric, first over all queries, then for each slice.

    `power` is the target power, `alpha` that of each comparison over all queries; `systems` are those compared.
    """

    powers: tuple[Power, ...]
    power: float
    alpha: float
    systems: Systems = field(repr=False, compare=False)

    @property
    def baseline(self) -> str:
        """The system that the others are compared with."""
        return self.systems.baseline

    def plot(self) -> Figure:
        """A figure of power against the number of queries, by the first metric.

        Raises `ConfigError` if no system differs from the baseline.
        """
        return self._teller.plot("power")
