"""Results of power analyses: the smallest detectable differences, and the widths of intervals after an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupgt.comparison.power import Power
from groupgt.comparison.systems import Systems
from groupgt.errors import ConfigError
from groupgt.evaluation.corrected import OF_DELTAS, reach_at
from groupgt.render.results import Result, ResultRows

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

# Numbers of audited queries.
SIZES = (20, 50, 100, 200)


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


@dataclass(frozen=True)
class AuditWidth:
    """Half the interval width for one system and metric, for several numbers of audited queries.

    `of_mean` is the half-width for the corrected mean, `of_delta` the half-width for the corrected difference from the
    baseline (empty for the baseline itself).
    """

    system: str
    metric: str
    of_mean: dict[int, float]
    of_delta: dict[int, float]


@dataclass(frozen=True)
class AuditPower(Result):
    """Predicted interval widths for each system and metric, computed from the queries audited so far."""

    widths: tuple[AuditWidth, ...]
    level: float
    systems: Systems = field(repr=False, compare=False)

    @classmethod
    def of(cls, systems: Systems) -> AuditPower:
        """Computes the widths for audited systems; raises `ConfigError` without an audit."""
        if systems.audit is None:
            raise ConfigError("audit_power: expected systems with an audit: audit=HUMAN, or --audit")
        level, rows = systems.settings.confidence, []
        sizes = [size for size in SIZES if size < len(systems.qids)]
        baseline = systems.tested.get(systems.baseline, {})
        for text in systems.first.corrected:
            for name, columns in systems.tested.items():
                difference = columns[text] - baseline[text]
                rows.append(
                    AuditWidth(
                        name,
                        text,
                        {size: reach_at(columns[text], size, level=level) for size in sizes},
                        {}
                        if name == systems.baseline
                        else {size: reach_at(difference, size, OF_DELTAS[1], level) for size in sizes},
                    )
                )
        return cls(tuple(rows), level, systems)
