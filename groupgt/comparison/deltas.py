"""How much a system gains or loses against a baseline, over the queries that count for both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.model.hits import Bools

__all__ = ["Delta", "Deltas", "delta", "deltas"]

# Differences of means that are equal on paper may differ by a few bits.
SLACK = 1e-12


@dataclass(frozen=True)
class Delta:
    """The mean difference (system − baseline) of one metric, and how many queries stand behind it."""

    mean: float
    queries: int


@dataclass(frozen=True, eq=False)
class Deltas:
    """Every system's delta to the baseline, `rows[system][metric]`, on one dataset."""

    baseline: str
    rows: dict[str, dict[str, Delta]]


def delta(system: Evaluation, baseline: Evaluation, metric: str, among: Bools | None = None) -> Delta:
    """The difference of one metric, over the queries for which both have a value."""
    import numpy as np

    difference = system.values[metric] - baseline.values[metric]
    if among is not None:
        difference = difference[among]
    return Delta(mean_of(difference), int((~np.isnan(difference)).sum()))


def deltas(evaluations: Mapping[str, Evaluation], baseline: str) -> Deltas:
    """The deltas of all other systems, in their order; raises `KeyError` where the baseline is not among them."""
    first = evaluations[baseline]
    return Deltas(
        baseline,
        {
            name: {text: delta(each, first, text) for text in first.metrics}
            for name, each in evaluations.items()
            if name != baseline
        },
    )


def drop(found: Delta, *, higher_is_better: bool) -> float:
    """How much worse: above 0 where the system is worse than the baseline; what is a rounding error is none."""
    worse = -found.mean if higher_is_better else found.mean
    return 0.0 if math.fabs(worse) < SLACK else worse
