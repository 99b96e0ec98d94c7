"""Predicts the width of confidence intervals for corrected means and differences from the number of audited queries."""

from __future__ import annotations

from dataclasses import dataclass, field

from groupgt.comparison.systems import Systems
from groupgt.errors import ConfigError
from groupgt.evaluation.estimates import OF_DELTAS, reach_at
from groupgt.render.results import Result

# Numbers of audited queries.
SIZES = (20, 50, 100, 200)


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
