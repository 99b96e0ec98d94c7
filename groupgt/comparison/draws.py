"""What is drawn at random, the same bits on every machine, and figures on a grid on which sums are exact.

Tests, intervals and Tukey's HSD draw from here: coins, resamples of the queries, and permutations of systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from groupgt.model.hits import Floats, Ints

# Differences of figures that are equal on paper may differ by a few bits.
SLACK = 1e-12
# The grid is 2^-40 of the largest figure.
FINEST = 40
# Numbers drawn at a time.
AT_ONCE = 1 << 23
# Up to so many counts are kept for the next table of as many queries.
KEPT = 1 << 22
# Up to so many queries are counted in a block, which then stays in the processor's cache.
IN_BLOCKS = 1 << 12


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
    """All rows for few queries: every metric of a table, and every slice of its size, takes them again."""
    rows = np.concatenate(list(_counts(n, count, seed)))
    rows.setflags(write=False)
    return rows


def _counts(n: int, count: int, seed: int) -> Iterator[Floats]:
    source = _source(seed, 2, n)
    for rows in _blocks(count, n):
        if n > IN_BLOCKS:
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


def _below(source: np.random.PCG64, rows: int, width: int, bound: np.uint64) -> Ints:
    """Whole numbers below a bound, shape (rows, width), from 32 random bits each."""
    words = -(-width // 2)
    raw = source.random_raw(rows * words).astype("<u8").view("<u4").reshape(rows, -1)[:, :width]
    return ((raw.astype(np.uint64) * bound) >> np.uint64(32)).astype(np.int64)


def _source(seed: int, purpose: int, n: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence([seed, purpose, n]))


def _blocks(count: int, width: int) -> Iterator[int]:
    """How many rows to draw at a time; a row takes the same words of the stream whatever the block."""
    size = max(1, AT_ONCE // max(width, 1))
    for start in range(0, count, size):
        yield min(size, count - start)


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
