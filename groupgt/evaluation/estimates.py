"""Estimates means and confidence intervals from several values per query, from annotators or from an audit.

Intervals for means over annotators reflect variance between queries and disagreement between annotators.

For query q and m annotators, d_q is the mean of their values and s_q² is the variance (÷ m − 1). For Q queries:

    mean = Σ_q d_q ÷ Q,   variance = s² ÷ Q + Σ_q s_q² ÷ m ÷ Q²,   s² = Σ_q (d_q − mean)² ÷ (Q − 1)

The interval is mean ± t · √variance with Q − 1 degrees of freedom. p is at least 2^(1 − the number of queries with a
nonzero d_q), the minimum for a sign test. The variance does not reflect strictness shared by all annotators.

A column with values from m annotators has shape (Q, 1, m). NaN means that a query does not count for an annotator;
these queries are excluded for all annotators.

An audit uses an annotator's judgments for a random sample of queries to correct means computed from a model's
judgments.

For each query, f is the metric under the model's ground truth and Y is the metric under the annotator's. A is the
sample of n queries, and B contains the other N queries:

    c = Σ_A (Y − Ȳ)(f − f̄) ÷ n,   v = Σ_{A∪B} (f − mean f)² ÷ (n + N − 1),   λ = c ÷ ((1 + n÷N) v), within 0 and 1
    corrected = λ · mean_B f + mean_A (Y − λ f)
    variance = λ² v ÷ N + s² ÷ n,   s² = (Σ_A (r − mean r)² + 2 h²) ÷ (n + 1),   r = Y − λ f

The interval is corrected ± t · √variance with n − 1 degrees of freedom, clipped to the range of the metric. h is ½ for
metrics between 0 and 1 and ¼ for their differences; without it, a sample of equal values would give a zero-width
interval. λ is 0 if all values from the model are equal, or if every query is in the sample.

A column with both values has shape (Q, 2): f first, then Y, which is NaN outside the sample. A query with neither
value, such as one that model and annotator both declare unanswerable, is excluded from all means. Where only Y is
defined, the mean of f replaces f. The annotator's value is thus included, and the model's mean does not change. Where
only f is defined, Y is 0.

Source: Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453; the term in h is our addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from groupgt.model.hits import Bools, Floats
from groupgt.model.values import summed

# Beyond this many degrees of freedom, Student's quantile comes from a series expansion.
MANY_DEGREES = 1000
# From this many on, the expansion is near enough for Newton's steps, which end this close to the quantile (relatively).
ENOUGH_DEGREES, CLOSE = 10, 1e-12


def normal_quantile(level: float) -> float:
    """Return the z such that a standard normal variable lies within ±z with probability `level`."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(share: float, count: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval for a share of `count` cases, where `count` need not be a whole number."""
    c = normal_quantile(level) ** 2 / count
    middle, half = (share + c / 2) / (1 + c), math.sqrt(c * share * (1 - share) + c * c / 4) / (1 + c)
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)


@lru_cache(maxsize=1 << 10)
def student_quantile(level: float, degrees: int) -> float:
    """Return the t such that a Student's t variable lies within ±t with probability `level`.

    Uses bisection on the distribution function, a finite sum for integer degrees of freedom (Abramowitz & Stegun 26.7.3
    and 26.7.4), or the Cornish-Fisher expansion beyond 1,000 degrees of freedom. Newton's steps from the expansion find
    where to bisect.
    """
    z = normal_quantile(level)
    near = z + (z**3 + z) / 4 / degrees + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / degrees**2
    if degrees > MANY_DEGREES:
        return near
    peak = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi * degrees)
    for _ in range(4 if degrees >= ENOUGH_DEGREES else 0):
        density = 2 * peak * (1 + near * near / degrees) ** (-(degrees + 1) / 2)
        near += (level - student_within(near, degrees)) / density
    low, high = near * (1 - CLOSE), near * (1 + CLOSE)
    if not student_within(low, degrees) < level <= student_within(high, degrees):
        low, high = z, 2 * z + 1
    while student_within(high, degrees) < level:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if student_within(middle, degrees) < level else (low, middle)
    return high


def student_within(t: float, degrees: int) -> float:
    """Return the probability that a Student's t variable lies within ±t."""
    angle = math.atan(t / math.sqrt(degrees))
    squared, odd = math.cos(angle) ** 2, degrees % 2
    term, summed = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for step in range(1, (degrees - 1) // 2 + 1 if odd else degrees // 2 + 1):
        summed += term
        term *= squared * (2 * step) / (2 * step + 1) if odd else squared * (2 * step - 1) / (2 * step)
    share = math.sin(angle) * summed
    return 2 / math.pi * (angle + share) if odd else share


def unvaried(mean: Floats | float, ends: tuple[Floats | float, Floats | float], count: int) -> Floats:
    """Return the variance to assume for n equal values, because the next value may differ. Without bounds, return 0.

    The formula adds one value at each bound: ((mean − low)² + (high − mean)²) ÷ (n + 1).
    """
    low, high = ends
    variance = ((mean - low) ** 2 + (high - mean) ** 2) / (count + 1)
    return np.where(np.isfinite(variance), variance, 0.0)


# Smaller differences are rounding errors.
SLACK = 1e-12


@dataclass(frozen=True)
class Averaged:
    """Mean over annotators, with its standard error and the number of queries. `differing` counts nonzero values."""

    mean: float
    error: float
    queries: int
    differing: int

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the standard error."""
        return self.queries - 1

    @property
    def p_value(self) -> float:
        """Two-sided p-value for the hypothesis that the mean is 0."""
        least = min(1.0, 2.0 ** (1 - self.differing))
        if self.error < SLACK:
            return least
        return max(least, 1 - student_within(abs(self.mean) / self.error, self.degrees))

    def at(self, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the confidence interval, clipped to bounds. The interval for a difference agrees with the p-value."""
        error = self.error
        if error < SLACK:
            error = math.sqrt(float(unvaried(self.mean, bounds, self.queries)) / self.queries)
        reach = student_quantile(level, self.degrees) * error
        low, high = max(self.mean - reach, bounds[0]), min(self.mean + reach, bounds[1])
        if bounds[0] < 0 and self.p_value > 1 - level:
            return min(low, 0.0), max(high, 0.0)
        if bounds[0] < 0 and self.error < SLACK and low <= 0 <= high:
            smallest = math.nextafter(0.0, self.mean)
            return (smallest, high) if self.mean > 0 else (low, smallest)
        return low, high


def averaged(column: Floats) -> Averaged | None:
    """Average a column of shape (Q, 1, m), or return None if fewer than two queries count for every annotator."""
    complete = column[~np.isnan(column).any(axis=(1, 2)), 0, :]
    count = len(complete)
    if count < 2:
        return None
    mean = complete.mean(axis=1)
    between = float(mean.var(ddof=1)) / count
    within = float(complete.var(axis=1, ddof=1).sum()) / complete.shape[1] / count**2
    return Averaged(summed(mean) / count, math.sqrt(between + within), count, int((np.abs(mean) > SLACK).sum()))


# Minimum number of audited queries: fewer reveal too little about the model.
FEWEST = 10
# The bounds of differences of metrics between 0 and 1, and h for them.
OF_DELTAS = (-1.0, 1.0), 0.25


@dataclass(frozen=True)
class Noise:
    """How much a metric of one system varies between trials, over the queries with a value.

    Two runs of the same system differ by more than `floor` in 5% of cases (at a confidence of 95%). `changing` is the
    mean number of queries whose values differ in two trials. `whole_p_value` tests whether trials differ as a whole.
    """

    trials: int
    queries: int
    mean: float
    interval: tuple[float, float]
    floor: float
    changing: float
    whole_p_value: float


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

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the standard error."""
        return self.sample - 1

    def at(self, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the confidence interval at this level, clipped to the bounds."""
        reach = student_quantile(level, self.degrees) * self.error
        low, high = (min(max(end, bounds[0]), bounds[1]) for end in (self.mean - reach, self.mean + reach))
        return low, high

    @property
    def p_value(self) -> float:
        """Two-sided p-value for the hypothesis that the mean is 0."""
        return 1 - student_within(abs(self.mean) / self.error, self.degrees)

    @property
    def saved(self) -> float:
        """Number of audited queries saved by using the model's judgments."""
        return self.effective - self.sample


def corrected(
    judged: Floats, audited: Floats, is_audited: Bools, bounds: tuple[float, float] = (0.0, 1.0), half: float = 0.5
) -> Corrected:
    """Estimate the corrected mean of a metric within bounds, with its 95% interval. `half` is the h in the formula.

    `judged`, shape (Q,), has the values under the model's ground truth, and `audited`, shape (n,), has the annotator's
    values for the queries in `is_audited`.
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
    return replace(estimate, interval=estimate.at(0.95, bounds))


def of_column(column: Floats, bounds: tuple[float, float] = (0.0, 1.0), half: float = 0.5) -> Corrected | None:
    """Estimate the corrected mean of a column of shape (Q, 2); return None if fewer than `FEWEST` are audited."""
    judged, audited, is_audited = _both(column)
    return corrected(judged, audited, is_audited, bounds, half) if len(audited) >= FEWEST else None


def _both(column: Floats) -> tuple[Floats, Floats, Bools]:
    """Return f for every query with a value, Y for the audited queries, and a mask of the audited queries."""
    counting = column[~np.isnan(column).all(axis=1)]
    judged, is_audited = counting[:, 0], ~np.isnan(counting[:, 1])
    absent = np.isnan(judged)
    if absent.any():
        judged = np.where(absent, 0.0 if absent.all() else judged[~absent].mean(), judged)
    return judged, counting[is_audited, 1], is_audited


def reach_at(column: Floats, size: int, half: float = 0.5, level: float = 0.95) -> float:
    """Return the half-width that the interval would have if `size` queries like these were audited."""
    judged, audited, is_audited = _both(column)
    _, variance = _weighted(judged, audited, judged[is_audited], size, half)
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


Estimate = Corrected | Averaged


def estimate_of(column: Floats, *, delta: bool = False) -> Estimate | None:
    """Estimate a mean or a mean difference, or return None if the column has too few values."""
    if column.ndim == 3:
        return averaged(column)
    return of_column(column, *OF_DELTAS) if delta else of_column(column)


def plain_of(column: Floats) -> Floats:
    """Return each query's value under the audited ground truth, or its mean over annotators, shape (Q,)."""
    return column if column.ndim == 1 else column[:, 0].mean(axis=1) if column.ndim == 3 else column[:, 0]


def mean_of(column: Floats) -> float:
    """Return the mean of all values except NaN, summed exactly, or, for a wider column, the mean of its `Estimate`."""
    if column.ndim > 1:
        estimate = estimate_of(column)
        return math.nan if estimate is None else estimate.mean
    absent = np.isnan(column)
    counted = column[~absent] if absent.any() else column
    return summed(counted) / len(counted) if len(counted) else math.nan
