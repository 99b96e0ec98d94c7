"""Bootstrap intervals of means, from random numbers that are the same bits on every machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from groupgt.model.hits import Floats, Ints

# Numbers held at a time.
ROWS_AT_ONCE = 1 << 23
KEPT = 1 << 22
CACHED = 1 << 12
FINEST = 40


def on_grid(values: Floats) -> Floats:
    """Columns rounded to multiples of a power of two (2^-40 of the largest, or more), shape (n, C).

    Any sum of n of them is then exact in any order. Sums that are equal on paper (three times 1/3, and 1) may differ by
    what `slack_of` says.

    >>> on_grid(np.array([[0.1 + 0.2], [0.3]])).ravel().tolist() == [0.30000000000018190] * 2
    True
    """
    if not values.size:
        return values
    step = _step(values)
    return np.asarray(np.rint(values / step) * step)


def slack_of(values: Floats) -> Floats:
    """How far the sum of the rounded values of each column may lie from that of those meant, shape (C,)."""
    slack: Floats = len(values) * _step(values)
    return slack


def _step(values: Floats) -> Floats:
    """2^-40 of the largest value, rounded up to a power of two; more where so many would not fit 52 bits."""
    highest = np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    exact = np.frexp(highest)
    largest = exact[1] - (exact[0] == 0.5)
    exponent = np.frexp(highest * len(values))[1] - 52
    step: Floats = np.ldexp(1.0, np.maximum(exponent, largest - FINEST))
    return step


def halves(n: int, count: int, seed: int) -> Iterator[Floats]:
    """`count` rows of n fair coins (0.0 or 1.0), in blocks of rows."""
    words = -(-n // 64)
    source = _source(seed, 1, n)
    for rows in _blocks(count, n):
        raw = source.random_raw(rows * words).astype("<u8").view(np.uint8).reshape(rows, -1)
        yield np.unpackbits(raw, axis=1, count=n, bitorder="little").astype(np.float64)


def resampled_counts(n: int, count: int, seed: int) -> Iterator[Floats]:
    """`count` rows that say how often each of n queries is drawn when n are drawn with replacement, in blocks."""
    if n * count <= KEPT:
        yield _kept_counts(n, count, seed)
    else:
        yield from _counts(n, count, seed)


@lru_cache(maxsize=4)
def _kept_counts(n: int, count: int, seed: int) -> Floats:
    """The same of few queries at once: every metric of a table, and every slice of its size, takes them again."""
    found = np.concatenate(list(_counts(n, count, seed)))
    found.setflags(write=False)
    return found


def _counts(n: int, count: int, seed: int) -> Iterator[Floats]:
    source = _source(seed, 2, n)
    for rows in _blocks(count, n):
        if n > CACHED:
            # Row by row: what is counted then stays in the processor's cache.
            block = np.empty((rows, n))
            for row in block:
                row[:] = np.bincount(_below(source, 1, n, np.uint64(n))[0], minlength=n)
            yield block
            continue
        drawn = _below(source, rows, n, np.uint64(n))
        drawn += (np.arange(rows, dtype=np.int64) * n)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def permutations(n: int, width: int, count: int, seed: int) -> Iterator[Ints]:
    """`count` times n independent permutations of `width` places, in blocks of shape (rows, n, width)."""
    source = _source(seed, 3, n * width)
    for rows in _blocks(count, n * width):
        keys = _below(source, rows, n * width, np.uint64(1 << 32)).reshape(rows, n, width)
        yield np.argsort(keys, axis=2, kind="stable")


def _below(source: np.random.PCG64, rows: int, each: int, bound: np.uint64) -> Ints:
    """Whole numbers below a bound, shape (rows, each), from 32 random bits each."""
    words = -(-each // 2)
    raw = source.random_raw(rows * words).astype("<u8").view("<u4").reshape(rows, -1)[:, :each]
    return ((raw.astype(np.uint64) * bound) >> np.uint64(32)).astype(np.int64)


def _source(seed: int, purpose: int, n: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence([seed, purpose, n]))


def _blocks(count: int, each: int) -> Iterator[int]:
    """How many rows to hold at a time; a row takes the same words of the stream whatever the block."""
    size = max(1, ROWS_AT_ONCE // max(each, 1))
    for start in range(0, count, size):
        yield min(size, count - start)


Bounds = tuple[float, float]
Ends = tuple[Floats, Floats]
# Numbers held at a time.
ROOM = 1 << 24
WIDEST = 1.25
TINY = 1e-12
MANY_DEGREES = 1000
# Up to so many queries that differ are few, and from so many on they are not.
FEW, FADED = 5, 15


def normal_quantile(level: float) -> float:
    """The z for which a standard normal lies within ±z with this probability."""
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=64)
def student_quantile(level: float, degrees: int) -> float:
    """The same of Student's t.

    By halving on its distribution, a finite sum for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4);
    beyond 1,000 by Cornish and Fisher's expansion.
    """
    z = normal_quantile(level)
    if degrees > MANY_DEGREES:
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / degrees + second / degrees**2
    low, high = z, 2 * z + 1
    while _within(high, degrees) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def _within(t: float, degrees: int) -> float:
    """The probability that Student's t lies within ±t."""
    angle = math.atan(t / math.sqrt(degrees))
    squared, odd = math.cos(angle) ** 2, degrees % 2
    term, summed = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for step in range(1, (degrees - 1) // 2 + 1 if odd else degrees // 2 + 1):
        summed += term
        term *= squared * (2 * step) / (2 * step + 1) if odd else squared * (2 * step - 1) / (2 * step)
    share = math.sin(angle) * summed
    return 2 / math.pi * (angle + share) if odd else share


def unseen(differences: Floats, bound: float | None) -> Floats:
    """What is added to the variance of each column of differences, shape (C,), where few of its n queries differ.

    That none of 40 queries differs does not prove that none of 41 would. Two more are imagined, one in each direction,
    as large as the largest seen (as `bound`, where none is): their squares ÷ (n − 1), all of it up to 5 queries that
    differ and nothing from 15 on; much as Agresti & Min (Statistics in Medicine 2005) add to counts of paired shares.
    """
    count = len(differences)
    if count < 2:
        return np.zeros(differences.shape[1])
    size = np.abs(differences)
    differing = (size > TINY).sum(axis=0)
    largest = np.where(differing > 0, size.max(axis=0), 0.0 if bound is None else bound)
    share = np.clip((FADED - differing) / (FADED - FEW), 0.0, 1.0)
    added: Floats = share * 2 * largest**2 / (count - 1)
    return added


def intervals(
    values: Floats,
    bounds: Bounds | Sequence[Bounds | None] | None,
    level: float,
    resamples: int,
    seed: int,
    added: Floats | None = None,
) -> Floats:
    """The interval of the mean of each column, shape (C, 2), from values of shape (n, C) within bounds.

    `bounds` are those of all columns, or one entry for each; None bounds nothing. `added` is added to the variance
    of each column and of its resamples (see `unseen`). NaN where there are fewer than two values. The same seed and n
    resample the same queries in every column.

    >>> values = np.array([[0.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    >>> intervals(values, (0.0, 1.0), 0.95, 1000, 0).round(3).tolist()
    [[0.256, 0.963], [0.5, 0.5]]
    """
    count, width = values.shape
    if count < 2 or not width:
        return np.full((width, 2), np.nan)
    ends = _ends_of(bounds, width)
    exact = on_grid(values)
    mean = exact.sum(axis=0) / count
    noise = TINY * np.abs(exact).max(axis=0) ** 2
    more = np.zeros(width) if added is None else added
    variance = _zeroed(on_grid((exact - mean) ** 2).sum(axis=0) / (count - 1), noise) + more
    quantile = _quantiles(exact, mean, more, ends, level, resamples, seed)
    low, high = normal_quantile(level), WIDEST * student_quantile(level, count - 1)
    quantile = np.clip(quantile, low, high)
    # Where all values are equal there is nothing to resample.
    quantile[variance == 0] = student_quantile(level, count - 1)
    # Around the mean as it is reported, not as the grid has it.
    told = np.array([math.fsum(column) / count for column in values.T.tolist()])
    found = _roots(told, variance, count, quantile, ends)
    return np.stack([np.minimum(found[:, 0], told), np.maximum(found[:, 1], told)], axis=1)


def _zeroed(variance: Floats, noise: Floats) -> Floats:
    """Rounding errors are no variance."""
    return np.where(variance <= noise, 0.0, variance)


def _ends_of(bounds: Bounds | Sequence[Bounds | None] | None, width: int) -> Ends:
    """The bounds of each column; infinite where there are none."""
    alike = bounds is None or isinstance(bounds[0], float | int)
    every = [bounds] * width if alike else list(bounds)  # type: ignore[arg-type]  # a pair, or a sequence of pairs
    told = [(-math.inf, math.inf) if each is None else each for each in every]
    low, high = np.array(told, dtype=np.float64).T
    return low, high


def _largest(mean: Floats, ends: Ends) -> Floats:
    """The largest variance that values with this mean can have, (mean − low)(high − mean); infinite without bounds."""
    largest: Floats = (mean - ends[0]) * (ends[1] - mean)
    return largest


def _share(mean: Floats, variance: Floats, ends: Ends) -> Floats:
    """φ: the variance as a share of the largest possible one; 1 where that is 0 itself."""
    largest = _largest(mean, ends)
    share: Floats = np.divide(variance, largest, out=np.ones_like(variance), where=largest > 0)
    return share


def _quantiles(
    values: Floats, mean: Floats, added: Floats, ends: Ends, level: float, resamples: int, seed: int
) -> Floats:
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
        noise = TINY * np.abs(own).max(axis=0) ** 2
        variances = _zeroed((squares - means * means) * (count / (count - 1)), noise) + added[part]
        within = (ends[0][part], ends[1][part])
        largest = _largest(mean[part], within)
        bounded = np.isfinite(largest)
        if bounded.any():
            scaled = _share(means, variances, within) * np.where(bounded, largest, 0.0)
            variances = np.where(bounded, scaled, variances)
        scale = np.sqrt(variances / count)
        away = np.abs(means - mean[part])
        infinite = np.where(away > np.sqrt(noise), np.inf, 0.0)
        statistic = np.divide(away, scale, out=infinite, where=scale > 0)
        found[part] = np.partition(statistic, place, axis=0)[place]
    return found


def _roots(mean: Floats, variance: Floats, count: int, quantile: Floats, ends: Ends) -> Floats:
    """Every μ with |T(μ)| ≤ q, as its two ends, shape (C, 2)."""
    half = quantile * np.sqrt(variance / count)
    found = np.stack([mean - half, mean + half], axis=1)
    bounded = np.flatnonzero(np.isfinite(ends[0]))
    low, high = ends[0][bounded], ends[1][bounded]
    width = high - low
    at = (mean[bounded] - low) / width
    c = quantile[bounded] ** 2 * _share(mean[bounded], variance[bounded], (low, high)) / count
    middle = (at + c / 2) / (1 + c)
    half = np.sqrt(np.maximum(c * at * (1 - at) + c * c / 4, 0.0)) / (1 + c)
    ends_at = np.clip(np.stack([middle - half, middle + half], axis=1), 0.0, 1.0)
    found[bounded] = low[:, None] + width[:, None] * ends_at
    # A share of 0 leaves the mean alone, without the rounding of the roots.
    found[bounded[c == 0]] = mean[bounded[c == 0], None]
    return found
