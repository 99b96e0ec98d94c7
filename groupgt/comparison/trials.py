"""Estimate from trials how much of the difference between two systems on the same queries is noise.

With r trials on a side, of which s²_q is the variance (÷ r − 1) of a query's values, a difference of the means over n
queries is within noise if it is at most

    t · √(W ÷ r  +  the same of the other side) ÷ n

with W and the degrees of freedom of t as in `groupgt.evaluation.trials`, those of both sides together, or of the sides
with builds if there are any. A side with a single run uses the other side's variance W.

If trials are declared to be builds, which move all queries together, the variance of a difference of means D_q is

    s²_D ÷ n + Σ over sides max(0, MSrun − MSE) ÷ (n r)

with the mean squares between trials and of the residuals. Because there are few builds, t has at most as many degrees
of freedom as there are builds, less one for each side.

Source: Searle, Casella & McCulloch 1992 (mean squares).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from groupgt.evaluation.estimates import estimate_of, mean_of, plain_of, student_quantile, student_within
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.trials import Spread, mean_squares, values_in_trials
from groupgt.model.hits import Floats


def noise_of_difference(sides: Sequence[tuple[Floats, bool]], *, bounded: bool = True) -> float | None:
    """Return the largest difference between two means that is noise in 95% of cases, or None without trials.

    Each side is a pair: its values, shape (r, n), and whether its trials are builds.
    """
    counting = np.all([~np.isnan(values).all(axis=0) for values, _ in sides], axis=0)
    spreads = [Spread.of(values[:, counting], bounded=bounded, is_build=is_build) for values, is_build in sides]
    measured = [spread for spread in spreads if spread is not None]
    if not measured:
        return None
    variance = sum(measured[0].of_run if spread is None else spread.of_mean for spread in spreads)
    decisive = [spread for spread in measured if spread.is_build] or measured
    degrees = sum(spread.degrees for spread in decisive)
    noise = student_quantile(0.95, degrees) * math.sqrt(variance) / int(counting.sum())
    return min(noise, 1.0) if bounded else noise


@dataclass(frozen=True)
class OverBuilds:
    """A mean or a difference of means, with an error that covers other queries and builds."""

    mean: float
    error: float
    degrees: int

    @property
    def p_value(self) -> float:
        """Two-sided p-value for the hypothesis that the mean is 0."""
        return 1 - student_within(abs(self.mean) / self.error, self.degrees)

    def at(self, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the confidence interval at this level, clipped to the bounds."""
        reach = student_quantile(level, self.degrees) * self.error
        return max(self.mean - reach, bounds[0]), min(self.mean + reach, bounds[1])


def over_builds(column: Floats, sides: Sequence[Floats], *, delta: bool = False) -> OverBuilds | None:
    """Return the mean of a column over builds. `sides` contains the values in trials, shape (r, Q) each.

    The column has shape (Q,), or has more values per query with an audit or annotators. Return None if values do not
    vary or there are too few queries. The error is NaN if a side has a single row, because a mean over builds whose
    values are unknown does not show how builds vary.
    """
    over_queries = _over_queries(column, delta=delta)
    if over_queries is None:
        return None
    mean, of_queries, degrees = over_queries
    if any(len(side) < 2 for side in sides):
        return OverBuilds(mean, math.nan, 1)
    counting = ~np.isnan(plain_of(column))
    count = int(counting.sum())
    variance = of_queries
    for side in sides:
        between, rest = mean_squares(side[:, counting])
        variance += max(0.0, between - rest) / (count * len(side))
    if not variance > 0:
        return None
    return OverBuilds(mean, math.sqrt(variance), min(degrees, sum(len(side) - 1 for side in sides)))


def _over_queries(column: Floats, *, delta: bool) -> tuple[float, float, int] | None:
    """Return a column's mean, variance over other queries and degrees of freedom, or None for too few queries."""
    if column.ndim > 1:
        estimate = estimate_of(column, delta=delta)
        return None if estimate is None else (estimate.mean, estimate.error**2, estimate.degrees)
    values = column[~np.isnan(column)]
    count = len(values)
    return None if count < 2 else (mean_of(column), float(values.var(ddof=1)) / count, count - 1)


def builds_of(evaluation: Evaluated, text: str) -> list[Floats]:
    """Return a list with a metric's values in trials that are builds, shape (r, Q). Other runs give an empty list."""
    values = values_in_trials(evaluation, text) if evaluation.is_build else None
    return [] if values is None else [values]


def all_builds(evaluations: Mapping[str, Evaluated]) -> dict[str, dict[str, list[Floats]]]:
    """Return the values in trials of all systems whose trials are builds, by metric."""
    built = {name: each for name, each in evaluations.items() if each.is_build}
    return {name: {text: builds_of(each, text) for text in each.values} for name, each in built.items()}


def all_in_trials(evaluations: Mapping[str, Evaluated]) -> dict[str, dict[str, Floats]]:
    """Return the values in trials, shape (r, Q), of all systems with trials, by metric."""
    columns = {name: {text: values_in_trials(each, text) for text in each.values} for name, each in evaluations.items()}
    return {
        name: {text: values for text, values in of_metrics.items() if values is not None}
        for name, of_metrics in columns.items()
        if evaluations[name].repeats
    }


def in_trials(evaluation: Evaluated, text: str, qids: Sequence[str]) -> Floats:
    """Return the values of a metric for some queries in every trial, shape (r, n), or in the only run, shape (1, n)."""
    values = values_in_trials(evaluation, text)
    values = evaluation.values[text][np.newaxis] if values is None else values
    return values[:, [evaluation.truth.index[qid] for qid in qids]]
