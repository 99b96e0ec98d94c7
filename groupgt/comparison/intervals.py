"""Bootstrap intervals of means, which keep what they promise for few queries and for 0/1 metrics too.

A percentile bootstrap of 40 zeros and ones covers too rarely (86 to 97 % where 95 % are meant). What is resampled here
is the score statistic of a mean μ that lies between two bounds, as Wilson's interval has it for shares:

    T(μ) = (m − μ) ÷ √(φ (μ − low)(high − μ) ÷ n),   φ = s² ÷ ((m − low)(high − m))

with m and s² the mean and variance of the n values: the variance of the bounded mean is a share φ of the largest
possible one, (μ − low)(high − μ). The quantile q of |T*| over resamples (at the observed mean, with the resample's own
mean and φ) takes the place of the normal one, and the interval is every μ with |T(μ)| ≤ q: two roots of a quadratic.
q is kept between the normal quantile and 1.25 times that of Student's t, for few distinct values make |T*| lumpy.
Without bounds the statistic is the usual (m − μ) ÷ √(s² ÷ n).

Sources: Wilson, JASA 1927 (the score interval); Efron & Tibshirani 1993, ch. 12 (the studentized bootstrap).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from groupgt.comparison.draws import on_grid, resampled_counts
from groupgt.model.hits import Floats

__all__ = ["intervals", "normal_quantile", "student_quantile"]

Bounds = tuple[float, float]
# Numbers held at a time.
ROOM = 1 << 24
WIDEST = 1.25
TINY = 1e-12


def normal_quantile(level: float) -> float:
    """The z for which a standard normal lies within ±z with this probability."""
    return NormalDist().inv_cdf((1 + level) / 2)


def student_quantile(level: float, degrees: int) -> float:
    """The same of Student's t: exact for 1 and 2 degrees, else by Cornish and Fisher's expansion (error below 1 %)."""
    if degrees == 1:
        return math.tan(math.pi * level / 2)
    if degrees == 2:
        return level * math.sqrt(2 / (1 - level * level))
    z = normal_quantile(level)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def intervals(values: Floats, bounds: Bounds | None, level: float, resamples: int, seed: int) -> Floats:
    """The interval of the mean of each column, shape (C, 2), from values of shape (n, C) within bounds.

    NaN where there are fewer than two values. The same seed and n resample the same queries in every column.

    >>> values = np.array([[0.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    >>> intervals(values, (0.0, 1.0), 0.95, 1000, 0).round(3).tolist()
    [[0.256, 0.963], [0.5, 0.5]]
    """
    count, width = values.shape
    if count < 2 or not width:
        return np.full((width, 2), np.nan)
    exact = on_grid(values)
    mean = exact.sum(axis=0) / count
    variance = _zeroed(on_grid((exact - mean) ** 2).sum(axis=0) / (count - 1))
    quantile = _quantiles(exact, mean, bounds, level, resamples, seed)
    low, high = normal_quantile(level), WIDEST * student_quantile(level, count - 1)
    quantile = np.clip(quantile, low, high)
    # Where all values are equal there is nothing to resample.
    quantile[variance == 0] = student_quantile(level, count - 1)
    # Around the mean as it is reported, not as the grid has it.
    told = np.array([math.fsum(column) / count for column in values.T.tolist()])
    ends = _roots(told, variance, count, quantile, bounds)
    return np.stack([np.minimum(ends[:, 0], told), np.maximum(ends[:, 1], told)], axis=1)


def _zeroed(variance: Floats) -> Floats:
    """Rounding errors are no variance."""
    return np.where(variance < TINY, 0.0, variance)


def _share(mean: Floats, variance: Floats, bounds: Bounds) -> Floats:
    """φ: the variance as a share of the largest possible one; 1 where that is 0 itself."""
    largest = (mean - bounds[0]) * (bounds[1] - mean)
    share: Floats = np.divide(variance, largest, out=np.ones_like(variance), where=largest > TINY)
    return share


def _quantiles(values: Floats, mean: Floats, bounds: Bounds | None, level: float, resamples: int, seed: int) -> Floats:
    """The quantile of |T*| of each column."""
    count, width = values.shape
    place = math.ceil(level * (resamples + 1)) - 1
    found = np.full(width, np.inf)
    if place >= resamples:
        return found
    step = max(1, ROOM // (4 * resamples))
    for start in range(0, width, step):
        part = slice(start, min(start + step, width))
        own = values[:, part]
        both = np.concatenate([own, on_grid(own * own)], axis=1)
        sums = np.concatenate([counts @ both for counts in resampled_counts(count, resamples, seed)])
        means, squares = np.split(sums / count, 2, axis=1)
        variances = _zeroed((squares - means * means) * (count / (count - 1)))
        if bounds is not None:
            largest = (mean[part] - bounds[0]) * (bounds[1] - mean[part])
            variances = _share(means, variances, bounds) * largest
        scale = np.sqrt(variances / count)
        away = np.abs(means - mean[part])
        infinite = np.where(away > TINY, np.inf, 0.0)
        statistic = np.divide(away, scale, out=infinite, where=scale > 0)
        found[part] = np.partition(statistic, place, axis=0)[place]
    return found


def _roots(mean: Floats, variance: Floats, count: int, quantile: Floats, bounds: Bounds | None) -> Floats:
    """Every μ with |T(μ)| ≤ q, as its two ends."""
    if bounds is None:
        half = quantile * np.sqrt(variance / count)
        return np.stack([mean - half, mean + half], axis=1)
    low, high = bounds
    width = high - low
    at = (mean - low) / width
    c = quantile**2 * _share(mean, variance, bounds) / count
    middle = (at + c / 2) / (1 + c)
    half = np.sqrt(np.maximum(c * at * (1 - at) + c * c / 4, 0.0)) / (1 + c)
    ends: Floats = low + width * np.clip(np.stack([middle - half, middle + half], axis=1), 0.0, 1.0)
    return np.where((c == 0)[:, None], mean[:, None], ends)
