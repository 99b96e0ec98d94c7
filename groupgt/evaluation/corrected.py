"""Means under a model's judgments, corrected with an annotator's judgments for a random sample of queries.

For each query, f is the metric under the model's ground truth and Y is the metric under the annotator's. A is the
sample of n queries, and B contains the other N queries:

    c = Σ_A (Y − Ȳ)(f − f̄) ÷ n,   v = Σ_{A∪B} (f − mean f)² ÷ (n + N − 1),   λ = c ÷ ((1 + n÷N) v), within 0 and 1
    corrected = λ · mean_B f + mean_A (Y − λ f)
    variance = λ² v ÷ N + s² ÷ n,   s² = (Σ_A (r − mean r)² + 2 h²) ÷ (n + 1),   r = Y − λ f

The interval is corrected ± t · √variance with n − 1 degrees of freedom, clipped to the range of the metric. h is ½ for
metrics between 0 and 1 and ¼ for their differences; without it, a sample of equal values would give an interval of zero
width. λ is 0 if all values from the model are equal, or if every query is in the sample. Queries without a value count
as 0 for both f and Y.

A column with both values has shape (Q, 2): f first, then Y, which is NaN outside the sample.

Source: Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453; the term in h is our addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from groupgt.evaluation.quantiles import student_quantile, student_within
from groupgt.model.hits import Bools, Floats

# Minimum number of audited queries: fewer reveal too little about the model.
FEWEST = 10
# The bounds of differences of metrics between 0 and 1, and h for them.
OF_DELTAS = (-1.0, 1.0), 0.25


@dataclass(frozen=True)
class Corrected:
    """Mean corrected by an audit, with its components.

    `judged` is the mean over all queries under the model's ground truth, and `audited` the sample mean under the
    annotator's. `effective` is the number of audited queries that an interval of this width would need without the
    model; `error` is the standard error of the mean.
    """

    mean: float
    interval: tuple[float, float]
    judged: float
    audited: float
    effective: float
    weight: float
    sample: int
    queries: int
    error: float

    def at(self, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the confidence interval at this level, clipped to the bounds."""
        reach = student_quantile(level, self.sample - 1) * self.error
        low, high = (min(max(end, bounds[0]), bounds[1]) for end in (self.mean - reach, self.mean + reach))
        return low, high

    @property
    def p_value(self) -> float:
        """Two-sided p-value for the hypothesis that the mean is 0."""
        return 1 - student_within(abs(self.mean) / self.error, self.sample - 1)

    @property
    def saved(self) -> float:
        """Number of audited queries saved by using the model's judgments."""
        return self.effective - self.sample


def corrected(
    judged: Floats,
    audited: Floats,
    is_audited: Bools,
    bounds: tuple[float, float] = (0.0, 1.0),
    half: float = 0.5,
    level: float = 0.95,
) -> Corrected:
    """Estimate the corrected mean of a metric within bounds.

    Args:
        judged: Metric values under the model's ground truth for all queries, shape (Q,).
        audited: Metric values under the annotator's ground truth for the sample, in the same order, shape (n,).
        is_audited: Mask of the queries in the sample, shape (Q,).
        bounds: Lowest and highest possible value.
        half: The h in the formula.
        level: Confidence level of the interval.

    >>> import numpy as np
    >>> judged = np.array([1.0, 1.0, 0.0, 1.0] * 10)
    >>> found = corrected(judged, np.array([1.0, 0.0, 0.0, 1.0] * 5), np.arange(40) < 20, (0.0, 1.0))
    >>> found.judged, found.audited, round(found.mean, 4), round(found.weight, 4)
    (0.75, 0.5, 0.5, 0.325)
    """
    n, others = int(is_audited.sum()), int((~is_audited).sum())
    inside = judged[is_audited]
    weight, variance = _weighted(judged, audited, inside, n, half)
    rest = audited - weight * inside
    mean = float(rest.mean()) + (weight * float(judged[~is_audited].mean()) if others else 0.0)
    estimate = Corrected(
        mean=mean,
        interval=bounds,
        judged=float(judged.mean()),
        audited=float(audited.mean()),
        effective=_spread(audited, n, half) / variance,
        weight=weight,
        sample=n,
        queries=len(judged),
        error=math.sqrt(variance),
    )
    return replace(estimate, interval=estimate.at(level, bounds))


def of_column(
    column: Floats, bounds: tuple[float, float] = (0.0, 1.0), half: float = 0.5, level: float = 0.95
) -> Corrected | None:
    """Estimate the corrected mean of a column of shape (Q, 2); return None if fewer than `FEWEST` are audited."""
    is_audited = ~np.isnan(column[:, 1])
    if int(is_audited.sum()) < FEWEST:
        return None
    return corrected(column[:, 0], column[is_audited, 1], is_audited, bounds, half, level)


def reach_at(column: Floats, size: int, half: float = 0.5, level: float = 0.95) -> float:
    """Return the half-width that the interval would have if `size` queries like these were audited."""
    is_audited = ~np.isnan(column[:, 1])
    _, variance = _weighted(column[:, 0], column[is_audited, 1], column[is_audited, 0], size, half)
    return student_quantile(level, size - 1) * math.sqrt(variance)


def _weighted(judged: Floats, audited: Floats, inside: Floats, n: int, half: float) -> tuple[float, float]:
    """Return λ and the variance of the corrected mean for n audited queries."""
    others = len(judged) - n
    v = float(judged.var(ddof=1)) if len(judged) > 1 else 0.0
    weight = 0.0
    if v > 0 and others:
        c = float(((audited - audited.mean()) * (inside - inside.mean())).mean())
        weight = min(max(c / ((1 + n / others) * v), 0.0), 1.0)
    spread = _spread(audited - weight * inside, n, half)
    return weight, spread / n + (weight**2 * v / others if others else 0.0)


def _spread(values: Floats, n: int, half: float) -> float:
    """Return the variance s² for one query, estimated as if two more values were at distance h from the mean."""
    return (n * float(((values - values.mean()) ** 2).mean()) + 2 * half**2) / (n + 1)
