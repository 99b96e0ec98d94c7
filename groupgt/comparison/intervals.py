"""Bootstrap confidence intervals for means, with near-nominal coverage even for few queries and 0/1 metrics.

The percentile bootstrap undercovers. For 40 zeros and ones, its coverage is 86% to 97% instead of 95%. Instead, this
module resamples the score statistic for a mean μ between two bounds, as in Wilson's interval for proportions:

    T(μ) = (m − μ) ÷ √(φ (μ − low)(high − μ) ÷ n),   φ = s² ÷ ((m − low)(high − m))

where m and s² are the mean and variance of the n values, and φ is the variance as a share of its largest possible
value, (μ − low)(high − μ). The quantile q of |T*| over resamples (at the observed mean, with the mean and φ of each
resample) replaces the normal quantile. The interval contains every μ with |T(μ)| ≤ q. The interval's ends are the two
roots of a quadratic equation. Because few distinct values make |T*| lumpy, q is limited to the range from the normal
quantile to 1.25 times Student's t quantile. Without bounds, the statistic is the usual (m − μ) ÷ √(s² ÷ n).

Sources: Wilson, JASA 1927 (the score interval); Efron & Tibshirani 1993, ch. 12 (the studentized bootstrap).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from groupgt.comparison.draws import ENOUGH, SLACK, in_errors, in_order, on_grid, resampled_counts, zeroed
from groupgt.comparison.tests import Inference, around
from groupgt.evaluation.estimates import normal_quantile, student_quantile, unvaried
from groupgt.model.hits import Bools, Floats

Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)
Ends = tuple[Floats, Floats]
# Maximum count of numbers in memory at a time.
AT_ONCE = 1 << 24
# Maximum quantile of an interval, as a multiple of Student's.
WIDEST = 1.25
# Maximum level of resampled intervals.
HIGHEST = 0.9999
# This many differing queries or fewer are few; the effect fades out by `ENOUGH`.
FEW = 5


def intervals(
    values: Floats,
    bounds: ArrayLike,
    level: float,
    resamples: int,
    seed: int,
    added: ArrayLike = 0.0,
    least: ArrayLike = 0.0,
) -> Floats:
    """Return the confidence interval for the mean of each column, shape (C, 2), from values of shape (n, C).

    `bounds` is one pair for all columns, or one pair per column. Bounds may be infinite. `added` is added to the
    variances of columns and of their resamples (see `unseen`). No variance is below `least` or, where all values are
    equal, below the variance from `unvaried`. Fewer than two values give NaN. For the same seed and n, columns resample
    the same queries.
    """
    count, width = values.shape
    if count < 2 or not width:
        return np.full((width, 2), np.nan)
    low, high = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (width, 2)).T
    ends = low, high
    exact = on_grid(values)
    mean = exact.sum(axis=0) / count
    noise = SLACK * np.abs(exact).max(axis=0) ** 2
    extra: Floats = np.broadcast_to(np.asarray(added, dtype=np.float64), width)
    # Around the mean as reported, not as rounded to the grid.
    reported = np.array([math.fsum(column) / count for column in values.T.tolist()])
    varied = zeroed(on_grid((exact - mean) ** 2).sum(axis=0) / (count - 1), noise)
    is_constant = varied + extra == 0
    floor = np.maximum(least, np.where(is_constant, unvaried(reported, ends, count), 0.0))
    extra = np.maximum(extra, np.minimum(floor, _largest(reported, ends) * count / (count - 1)) - varied)
    variance = varied + extra
    quantile = _quantiles(exact, mean, extra, ends, level, resamples, seed)
    quantile = np.clip(quantile, normal_quantile(level), WIDEST * student_quantile(level, count - 1))
    # If all values are equal, there is nothing to resample.
    quantile[is_constant] = student_quantile(level, count - 1)
    roots = _roots(reported, variance, count, quantile, ends)
    return np.stack([np.minimum(roots[:, 0], reported), np.maximum(roots[:, 1], reported)], axis=1)


def _largest(mean: Floats, ends: Ends) -> Floats:
    """Return the largest possible variance for this mean, (mean − low)(high − mean), or infinity without bounds."""
    return (mean - ends[0]) * (ends[1] - mean)


def _share(mean: Floats, variance: Floats, ends: Ends) -> Floats:
    """Return φ, the variance as a share of its largest possible value, or 1 if that value is 0."""
    largest = _largest(mean, ends)
    return np.divide(variance, largest, out=np.ones_like(variance), where=largest > 0)


def _quantiles(
    values: Floats, mean: Floats, added: Floats, ends: Ends, level: float, resamples: int, seed: int
) -> Floats:
    """Return the quantile of |T*| for each column."""
    count, width = values.shape
    place = math.ceil(level * (resamples + 1)) - 1
    quantiles = np.full(width, np.inf)
    if place >= resamples:
        return quantiles
    step = max(1, AT_ONCE // (4 * resamples))
    for start in range(0, width, step):
        part = slice(start, min(start + step, width))
        columns = in_order(values[:, part])
        both = np.concatenate([columns, on_grid(columns * columns)], axis=1)
        sums = np.concatenate([counts @ both for counts in resampled_counts(count, resamples, seed)])
        means, squares = np.split(sums / count, 2, axis=1)
        noise = SLACK * np.abs(columns).max(axis=0) ** 2
        variances = zeroed((squares - means * means) * (count / (count - 1)), noise) + added[part]
        within = (ends[0][part], ends[1][part])
        largest = _largest(mean[part], within)
        bounded = np.isfinite(largest)
        if bounded.any():
            scaled = _share(means, variances, within) * np.where(bounded, largest, 0.0)
            variances = np.where(bounded, scaled, variances)
        scale = np.sqrt(variances / count)
        statistic = in_errors(means - mean[part], scale, noise)
        quantiles[part] = np.partition(statistic, place, axis=0)[place]
    return quantiles


def _roots(mean: Floats, variance: Floats, count: int, quantile: Floats, ends: Ends) -> Floats:
    """Return the ends of the interval that contains every μ with |T(μ)| ≤ q, shape (C, 2)."""
    roots = around(mean, quantile * np.sqrt(variance / count))
    bounded = np.flatnonzero(np.isfinite(ends[0]))
    low, high = ends[0][bounded], ends[1][bounded]
    width = high - low
    at = (mean[bounded] - low) / width
    c = quantile[bounded] ** 2 * _share(mean[bounded], variance[bounded], (low, high)) / count
    middle = (at + c / 2) / (1 + c)
    half = np.sqrt(np.maximum(c * at * (1 - at) + c * c / 4, 0.0)) / (1 + c)
    ends_at = np.clip(around(middle, half), 0.0, 1.0)
    roots[bounded] = low[:, None] + width[:, None] * ends_at
    # A share of 0 leaves only the mean, without the rounding of the roots.
    roots[bounded[c == 0]] = mean[bounded[c == 0], None]
    return roots


def unseen(differences: Floats, bound: Floats) -> Floats:
    """Return the amount to add to each column's variance, shape (C,), if few of its n queries differ.

    If none of 40 queries differs, the 41st might still differ. This function therefore assumes two more differences,
    one in each direction, as large as the largest observed difference (or a finite `bound` if there is none). The
    squares of these two differences ÷ (n − 1) are added in full for up to 5 differing queries, fading to 0 at 15.
    Agresti & Min (Statistics in Medicine 2005) add similar pseudo-counts for paired proportions.
    """
    count = len(differences)
    if count < 2:
        return np.zeros(differences.shape[1])
    size = np.abs(differences)
    differing = (size > SLACK).sum(axis=0)
    largest = np.where(differing > 0, size.max(axis=0), np.where(np.isfinite(bound), bound, 0.0))
    share = np.clip((ENOUGH - differing) / (ENOUGH - FEW), 0.0, 1.0)
    added: Floats = share * 2 * largest**2 / (count - 1)
    return added


def delta_intervals(
    differences: Floats,
    bounds: Floats,
    inference: Inference,
    alphas: Floats,
    rejected: Bools,
    resamples: int,
    seed: int,
) -> Floats:
    """Return confidence intervals, shape (C, 2), for the mean of each column of differences, that agree with its test.

    Each column has its own alpha. `rejected` marks the columns whose difference is significant. The interval contains
    every mean that the test does not reject. If a test is not inverted, the interval is NaN. If p is exact, `intervals`
    computes the ends at level 1 − alpha, because inverted tests undercover if only a few of many queries differ. If all
    queries differ by the same amount, an inverted test has no width (see `unvaried`). An interval excludes 0 if and
    only if the difference is significant.
    """
    count, width = differences.shape
    if count < 2 or not width:
        return np.full((width, 2), np.nan)
    ends = np.full((width, 2), np.nan) if inference.inverse is None else within(inference.inverse(alphas), bounds)
    exact = np.broadcast_to(inference.is_exact, width)
    for alpha in np.unique(alphas[exact]).tolist():
        rest = np.flatnonzero(exact & (alphas == alpha))
        columns, level = differences[:, rest], min(1 - alpha, HIGHEST)
        ends[rest] = intervals(columns, bounds[rest], level, resamples, seed, unseen(columns, bounds[rest, 1]))
    means = np.array([math.fsum(column) / count for column in differences.T.tolist()])
    same = (np.ptp(ends, axis=1) <= SLACK) & np.isfinite(bounds).all(axis=1)
    quantile = np.array([student_quantile(1 - alpha, count - 1) for alpha in alphas[same].tolist()])
    low, high = bounds[same].T
    variance = unvaried(means[same], (low, high), count)
    ends[same] = np.clip(around(means[same], quantile * np.sqrt(variance / count)), low[:, None], high[:, None])
    return agreeing(ends, means, rejected)


def within(ends: Floats, bounds: Floats) -> Floats:
    """Replace ends that a test leaves open with the metric's bounds, or with NaN if the metric is unbounded."""
    closed = np.where(np.isinf(ends), bounds, ends)
    return np.where(np.isfinite(closed).all(axis=1, keepdims=True), closed, np.nan)


def agreeing(ends: Floats, mean: Floats, rejected: Bools) -> Floats:
    """Adjust the ends to exclude 0 if the difference is significant, and to include it otherwise."""
    low, high = np.minimum(ends[:, 0], mean), np.maximum(ends[:, 1], mean)
    smallest = np.nextafter(0.0, 1.0)
    low = np.where(rejected, np.where(mean > 0, np.maximum(low, smallest), low), np.minimum(low, 0.0))
    high = np.where(rejected, np.where(mean < 0, np.minimum(high, -smallest), high), np.maximum(high, 0.0))
    return np.stack([low, high], axis=1)
