"""Measures how long systems take, and on which machine."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

COSTS = ("cost_mean", "cost_p95")
# What gates may limit besides metrics.
LATENCIES = ("build_s", "latency_p50_ms", "latency_p95_ms", "batched_p50_ms", "batched_p95_ms", *COSTS)
UNTIMED = (
    "is the latency of single queries, but this retriever is queried in batches. Set evaluate.timed to time some "
    "queries one by one, or use a gate on batched_p50_ms or batched_p95_ms"
)


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Describe the machine on which times are measured."""
    return {
        "node": platform.node(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


# Whether queries were run one by one, or in batches: these times are not comparable.
Kind = Literal["alone", "batched"]


class Median(NamedTuple):
    """A median in milliseconds with the bounds of its confidence interval."""

    ms: float
    low: float
    high: float


def of_one_kind(timings: Mapping[str, Timing]) -> tuple[Kind, dict[str, Median]]:
    """Return the more common kind of timing and its median per system. A tie favors single queries."""
    kinds: tuple[Kind, ...] = ("alone", "batched")
    timed = {
        kind: {name: median for name, timing in timings.items() if (median := timing.median(kind)) and median.ms}
        for kind in kinds
    }
    kind = max(kinds, key=lambda kind: len(timed[kind]))
    return kind, timed[kind]


def _quantile(values: list[float], share: float) -> float | None:
    """Return a quantile by the nearest-rank method, or None if there are no values."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else None


@dataclass(frozen=True)
class Timing:
    """The time that one system took on one data set, in seconds to build and in milliseconds per query.

    `single_ms` has one time for each query run on its own, `batched_ms` one for each batch, and `costs` one for each
    query that has a cost, in any unit. The time and cost of a fusion include the times and costs of its inputs.
    """

    dataset: str
    system: str
    build_s: float
    single_ms: list[float]
    batched_ms: list[float]
    machine: dict[str, Any]
    costs: list[float] = field(default_factory=list)

    @classmethod
    def over(cls, trials: Sequence[Timing | None]) -> Timing | None:
        """Combine a system's timings over trials: the first build time, and all times and costs of queries."""
        timings = [timing for timing in trials if timing is not None]
        if len(timings) < 2:
            return timings[0] if timings else None
        lists: dict[str, Any] = {
            name: [value for each in timings for value in getattr(each, name)]
            for name in ("single_ms", "batched_ms", "costs")
        }
        return replace(timings[0], **lists)

    def median(self, kind: Kind) -> Median | None:
        """Return the median for single or batched queries with its confidence interval, or None without times."""
        values = self.single_ms if kind == "alone" else self.batched_ms
        middle = _quantile(values, 0.5)
        return None if middle is None else Median(middle, *(median_interval(values) or (middle, middle)))

    @property
    def latency_p50_ms(self) -> float | None:
        """The median latency of single queries."""
        return _quantile(self.single_ms, 0.5)

    @property
    def latency_p95_ms(self) -> float | None:
        """The 95th percentile of single-query latency."""
        return _quantile(self.single_ms, 0.95)

    @property
    def batched_p50_ms(self) -> float | None:
        """The median time per query across batches."""
        return _quantile(self.batched_ms, 0.5)

    @property
    def batched_p95_ms(self) -> float | None:
        """The 95th percentile of the time per query across batches."""
        return _quantile(self.batched_ms, 0.95)

    @property
    def cost_mean(self) -> float | None:
        """The mean cost per query."""
        return math.fsum(self.costs) / len(self.costs) if self.costs else None

    @property
    def cost_p95(self) -> float | None:
        """The 95th percentile of the cost per query."""
        return _quantile(self.costs, 0.95)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, latencies and costs as plain Python objects."""
        return {**asdict(self), **{name: getattr(self, name) for name in LATENCIES}}


def median_interval(values: list[float], level: float = 0.95) -> tuple[float, float] | None:
    """Return a distribution-free confidence interval for the population median, or None for too few values.

    The bounds are the j-th smallest and j-th largest values, where j is the largest number such that P(B < j) ≤ (1 −
    level) / 2 for a binomial B with parameters n and ½.
    """
    below, rank = 0.0, 0
    for place in range(len(values)):
        below += math.comb(len(values), place) / 2 ** len(values)
        if below > (1 - level) / 2:
            break
        rank = place + 1
    ordered = sorted(values)
    return (ordered[rank - 1], ordered[len(values) - rank]) if rank else None
