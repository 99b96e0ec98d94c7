"""Means over annotators, with confidence intervals that reflect both the variance between queries and the disagreement
of annotators.

For query q and m annotators, d_q is the mean of their values and s_q² their variance (÷ m − 1); over Q queries:

    mean = Σ_q d_q ÷ Q,   variance = s² ÷ Q + Σ_q s_q² ÷ m ÷ Q²,   s² = Σ_q (d_q − mean)² ÷ (Q − 1)

and the interval is mean ± t · √variance with Q − 1 degrees of freedom. p is at least 2^(1 − the number of queries whose
d_q is not 0), the minimum of a sign test. The variance does not reflect strictness shared by all annotators.

A column of m annotators has shape (Q, 1, m): NaN if a query does not count for one of them, which excludes it.
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
    """A mean over annotators, its standard error, and the number of queries; `differing` counts nonzero values."""

    mean: float
    error: float
    queries: int
    differing: int

    @property
    def p_value(self) -> float:
        """The two-sided p-value of the hypothesis that the mean is 0."""
        least = min(1.0, 2.0 ** (1 - self.differing))
        if self.error < SLACK:
            return least
        return max(least, 1 - student_within(abs(self.mean) / self.error, self.queries - 1))

    def at(self, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
        """The interval at a confidence level, within bounds; of a difference, it agrees with the p-value."""
        reach = student_quantile(level, self.queries - 1) * self.error
        low, high = max(self.mean - reach, bounds[0]), min(self.mean + reach, bounds[1])
        is_open = bounds[0] < 0 and self.p_value > 1 - level
        return (min(low, 0.0), max(high, 0.0)) if is_open else (low, high)


def averaged(column: Floats) -> Averaged | None:
    """The mean of a column of shape (Q, 1, m); None for fewer than two queries that count for every annotator.

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
