"""Flip coins, draw resamples, and add up values exactly. Results are bit-identical on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType

import numpy as np

from groupgt.errors import ConfigError
from groupgt.model.hits import Floats, Ints

# Differences that are equal in exact arithmetic may differ by a few bits.
SLACK = 1e-12
# The grid is 2^-40 of the largest value.
FINEST = 40
# With fewer differing queries than this, a randomization test counts all sign patterns, and other tests are
# unreliable.
ENOUGH = 15
# Numbers drawn at a time.
AT_ONCE = 1 << 23
# Up to this many counts are cached for the next table with the same number of queries.
KEPT = 1 << 22
# Up to this many queries are counted in one block, which then stays in the processor's cache.
IN_BLOCKS = 1 << 12


def halves(n: int, count: int, seed: int) -> Iterator[Floats]:
    """Draw `count` rows of n fair coins (0.0 or 1.0), in blocks of rows."""
    words = -(-n // 64)
    source = _source(seed, 1, n)
    for rows in _blocks(count, n):
        raw = source.random_raw(rows * words).astype("<u8").view(np.uint8).reshape(rows, -1)
        yield np.unpackbits(raw, axis=1, count=n, bitorder="little").astype(np.float64)


def resampled_counts(n: int, count: int, seed: int) -> Iterator[Floats]:
    """Draw n of n queries with replacement, `count` times. Yield draw counts per query, in blocks of rows."""
    if n * count <= KEPT:
        yield _kept_counts(n, count, seed)
    else:
        yield from _counts(n, count, seed)


@lru_cache(maxsize=4)
def _kept_counts(n: int, count: int, seed: int) -> Floats:
    """Return all rows of counts for few queries, cached for use with all metrics and with slices of the same size."""
    rows = np.concatenate(list(_counts(n, count, seed)))
    rows.setflags(write=False)
    return rows


def _counts(n: int, count: int, seed: int) -> Iterator[Floats]:
    source = _source(seed, 2, n)
    for rows in _blocks(count, n):
        if n > IN_BLOCKS:
            # Row by row, so that the counts stay in the processor's cache.
            block = np.empty((rows, n))
            for row in block:
                row[:] = np.bincount(_below(source, 1, n, np.uint64(n))[0], minlength=n)
            yield block
            continue
        indices = _below(source, rows, n, np.uint64(n))
        indices += (np.arange(rows, dtype=np.int64) * n)[:, None]
        yield np.bincount(indices.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def signs(n: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Draw rows of n signs (±1.0). For a small n, yield one pattern of each opposite pair, except the observed pair."""
    if n >= ENOUGH:
        yield from (2 * coins - 1 for coins in halves(n, resamples, seed))
    else:
        numbers = np.arange(1, 1 << max(n - 1, 0))[:, None]
        yield np.where(numbers >> np.arange(n) & 1, -1.0, 1.0)


def _below(source: np.random.PCG64, rows: int, width: int, bound: np.uint64) -> Ints:
    """Draw integers below a bound, shape (rows, width), from 32 random bits each."""
    words = -(-width // 2)
    raw = source.random_raw(rows * words).astype("<u8").view("<u4").reshape(rows, -1)[:, :width]
    return ((raw.astype(np.uint64) * bound) >> np.uint64(32)).astype(np.int64)


def _source(seed: int, purpose: int, n: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence([seed, purpose, n]))


def _blocks(count: int, width: int) -> Iterator[int]:
    """Yield the number of rows to draw at a time. Block size does not affect the random words used for a row."""
    size = max(1, AT_ONCE // max(width, 1))
    for start in range(0, count, size):
        yield min(size, count - start)


def on_grid(values: Floats) -> Floats:
    """Round each column to multiples of a power of two (2^-40 of its largest value, or more), shape (n, C).

    Sums of n rounded values are then exact in any order. Sums that would be equal in exact arithmetic (three times 1/3,
    and 1) may differ by up to `slack_of`.
    """
    if not values.size:
        return values
    step = step_of(values)
    return np.asarray(np.rint(values / step) * step)


def in_order(values: Floats) -> Floats:
    """Sort each column, shape (n, C), from the end with the shorter tail.

    The order of queries and of the two systems then has no effect on the results of draws. If the tails are equal, the
    sign of the sum decides.
    """
    columns = np.sort(values, axis=0)
    gaps = (columns - columns[:1]) - (columns[-1:] - columns[::-1])
    gaps[np.abs(gaps) <= SLACK * np.abs(columns).max(axis=0, initial=0.0)] = 0.0
    gaps = np.concatenate([gaps, on_grid(columns).sum(axis=0, keepdims=True)])
    decisive = np.take_along_axis(gaps, (gaps != 0).argmax(axis=0)[None, :], axis=0)[0]
    return np.where(decisive < 0, columns[::-1], columns)


def slack_of(values: Floats) -> Floats:
    """Return the maximum rounding error of each column's sum, shape (C,)."""
    return len(values) * step_of(values)


def step_of(values: Floats) -> Floats:
    """Return 2^-40 of the largest value, rounded up to a power of two, or more if the sum would exceed 52 bits."""
    highest = np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    exact = np.frexp(highest)
    largest = exact[1] - (exact[0] == 0.5)
    exponent = np.frexp(highest * len(values))[1] - 52
    step: Floats = np.ldexp(1.0, np.maximum(exponent, largest - FINEST))
    return step


def zeroed(variance: Floats, noise: Floats) -> Floats:
    """Replace variances that are only rounding error with 0."""
    return np.where(variance <= noise, 0.0, variance)


def in_errors(away: Floats | Ints, error: Floats, noise: Floats | float) -> Floats:
    """Return |away| ÷ the standard error: infinity if the error is 0 and the difference exceeds the noise."""
    size = np.abs(away)
    infinite = np.where(size > np.sqrt(noise), np.inf, 0.0)
    return np.divide(size, error, out=infinite, where=error > 0)


def scipy_stats(what: str) -> ModuleType:
    """Import `scipy.stats`, or raise a `ConfigError` that explains how to install it."""
    try:
        from scipy import stats
    except ImportError:
        raise ConfigError(f"{what} needs SciPy, which is not installed: pip install 'groupgt[stats]'") from None
    module: ModuleType = stats
    return module
