"""Means over annotators; the confidence intervals reflect variance between queries and annotator disagreement.

For query q and m annotators, d_q is the mean of their values and s_q² is the variance (÷ m − 1). For Q queries:

    mean = Σ_q d_q ÷ Q,   variance = s² ÷ Q + Σ_q s_q² ÷ m ÷ Q²,   s² = Σ_q (d_q − mean)² ÷ (Q − 1)

The interval is mean ± t · √variance with Q − 1 degrees of freedom. p is at least 2^(1 − the number of queries with a
nonzero d_q), the minimum for a sign test. The variance does not reflect strictness shared by all annotators.

A column with values from m annotators has shape (Q, 1, m). NaN means that a query does not count for an annotator; such
queries are excluded for all annotators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from groupgt.evaluation.quantiles import student_quantile, student_within
from groupgt.model.hits import Floats
from groupgt.model.values import summed

# Smaller differences are rounding errors.
SLACK = 1e-12


@dataclass(frozen=True)
class Averaged:
    """Mean over annotators, with its standard error and the number of queries; `differing` counts nonzero values."""

    mean: float
    error: float
    queries: int
    differing: int

    @property
    def p_value(self) -> float:
        """Two-sided p-value for the hypothesis that the mean is 0."""
        least = min(1.0, 2.0 ** (1 - self.differing))
        if self.error < SLACK:
            return least
        return max(least, 1 - student_within(abs(self.mean) / self.error, self.queries - 1))

    def at(self, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the confidence interval within bounds; the interval for a difference agrees with the p-value."""
        reach = student_quantile(level, self.queries - 1) * self.error
        low, high = max(self.mean - reach, bounds[0]), min(self.mean + reach, bounds[1])
        is_open = bounds[0] < 0 and self.p_value > 1 - level
        return (min(low, 0.0), max(high, 0.0)) if is_open else (low, high)


def averaged(column: Floats) -> Averaged | None:
    """Average a column of shape (Q, 1, m); return None if fewer than two queries count for every annotator.

    >>> column = np.array([[[1.0, 0.5]], [[0.5, 0.5]], [[0.0, np.nan]]])
    >>> found = averaged(column)
    >>> found.mean, found.queries, round(found.error, 4)  # √(.03125 ÷ 2 + .125 ÷ 2 ÷ 4)
    (0.625, 2, 0.1768)
    """
    complete = column[~np.isnan(column).any(axis=(1, 2)), 0, :]
    count = len(complete)
    if count < 2:
        return None
    mean = complete.mean(axis=1)
    between = float(mean.var(ddof=1)) / count
    within = float(complete.var(axis=1, ddof=1).sum()) / complete.shape[1] / count**2
    return Averaged(summed(mean) / count, math.sqrt(between + within), count, int((np.abs(mean) > SLACK).sum()))
