"""Results of a power analysis: the smallest detectable difference for each system and metric."""

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
    """Power values for each system and metric, first over all queries, then for each slice.

    `power` is the target power, and `alpha` applies to each single comparison over all queries.
    """

    powers: tuple[Power, ...]
    power: float
    alpha: float
    systems: Systems = field(repr=False, compare=False)

    @property
    def baseline(self) -> str:
        """Name of the system that the others are compared with."""
        return self.systems.baseline

    def plot(self) -> Figure:
        """Draws a figure of power against the number of queries for the first metric.

        Raises `ConfigError` if no system differs from the baseline.
        """
        return self._teller.plot("power")
