"""How long systems take, and on which machine."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

LATENCIES = ("build_s", "latency_p50_ms", "latency_p95_ms", "batched_p50_ms", "batched_p95_ms")


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """The machine that times are taken on."""
    return {
        "node": platform.node(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


@dataclass(frozen=True)
class Timing:
    """How long one system took on one dataset, and where.

    `build_s` in seconds; `single_ms` are questions asked one by one, `batched_ms` the share of each question in the
    batches the results came from. A fusion takes what its inputs take and its own time; nothing is known of results
    that were read from files.
    """

    dataset: str
    system: str
    build_s: float
    single_ms: list[float]
    batched_ms: list[float]
    machine: dict[str, Any]

    @property
    def latency_p50_ms(self) -> float | None:
        """The median of one question asked alone."""
        return _quantile(self.single_ms, 0.5)

    @property
    def latency_p95_ms(self) -> float | None:
        """The 95th percentile of one question asked alone."""
        return _quantile(self.single_ms, 0.95)

    @property
    def batched_p50_ms(self) -> float | None:
        """The median over batches of a question's share."""
        return _quantile(self.batched_ms, 0.5)

    @property
    def batched_p95_ms(self) -> float | None:
        """The 95th percentile over batches of a question's share."""
        return _quantile(self.batched_ms, 0.95)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain Python."""
        return {**asdict(self), **{name: getattr(self, name) for name in LATENCIES}}


def _quantile(values: list[float], share: float) -> float | None:
    """The smallest value that `share` of the values do not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
