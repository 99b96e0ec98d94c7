"""Paired tests over the queries that count for both systems, and corrections for many comparisons.

What is drawn at random for them (coins, resamples, permutations) has the same bits on every machine; intervals draw
from here too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Literal

import numpy as np

from groupgt.errors import ConfigError
from groupgt.model.hits import Floats, Ints

# Differences of figures that are equal on paper may differ by a few bits.
SLACK = 1e-12
# The grid is 2^-40 of the largest figure.
FINEST = 40
# Numbers drawn at a time.
AT_ONCE = 1 << 23
# Up to this many counts are kept for the next table of as many queries.
KEPT = 1 << 22
# Up to this many queries are counted in a block, which then stays in the processor's cache.
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


TestName = Literal["randomization", "t", "wilcoxon", "bootstrap"]
CorrectionName = Literal["holm", "bonferroni", "none"]
# The slack of t, whose variance is rounded too.
SLACK_OF_T = 1e-9


def p_values(test: str, differences: Floats, resamples: int, seed: int) -> Floats:
    """The p-value of each column by a test of `TESTS`.

    >>> p_values("randomization", np.array([[0.1], [0.2], [0.3], [0.0]]), 10_000, 0).tolist()
    [0.25]
    """
    count, width = differences.shape
    if not count:
        return np.full(width, np.nan)
    exact = on_grid(np.where(np.abs(differences) > SLACK, differences, 0.0))
    values = np.ones(width)
    differing = np.flatnonzero(exact.any(axis=0))
    if len(differing):
        values[differing] = TESTS[test].function(exact[:, differing], resamples, seed)
    return values


def randomization(differences: Floats, resamples: int, seed: int) -> Floats:
    """Fisher's randomization: signs of the differences are flipped at will, p the share of sums as far from 0.

    All 2^m sign patterns of the m queries that differ where that is no more than `resamples`, else that many random
    ones and p = (1 + as far) ÷ (1 + resamples). Source: Smucker, Allan & Carterette, CIKM 2007; Phipson & Smyth 2010.
    """
    # Sums that are equal on paper are as far.
    bound = np.abs(differences.sum(axis=0)) - slack_of(differences)
    differing = (differences != 0).sum(axis=0)
    values = np.ones(len(bound))
    for column in np.flatnonzero(differing <= math.log2(resamples)).tolist():
        sums = np.zeros(1)
        for difference in differences[differences[:, column] != 0, column].tolist():
            sums = np.concatenate([sums + difference, sums - difference])
        values[column] = float((np.abs(sums) >= bound[column]).mean())
    drawn = np.flatnonzero(differing > math.log2(resamples))
    if len(drawn):
        columns = differences[:, drawn]
        whole, as_far = columns.sum(axis=0), np.zeros(len(drawn))
        for coins in halves(len(columns), resamples, seed):
            # Σ ±d = 2 Σ over heads − Σ d; all of it is exact.
            as_far += (np.abs(2 * (coins @ columns) - whole) >= bound[drawn]).sum(axis=0)
        values[drawn] = (1 + as_far) / (1 + resamples)
    return values


def bootstrap(differences: Floats, resamples: int, seed: int) -> Floats:
    """The bootstrap test of a mean of 0: t of resamples of the centred differences, p the share as far as the observed.

    p = (1 + as far) ÷ (1 + resamples). Source: Efron & Tibshirani 1993, ch. 16; Sakai, SIGIR 2006.
    """
    count, width = differences.shape
    if count < 2:
        return np.full(width, np.nan)
    whole = differences.sum(axis=0)
    mean = np.where(np.abs(whole) <= slack_of(differences), 0.0, whole) / count
    centred = on_grid(differences - mean)
    squared = on_grid(centred * centred)
    noise = SLACK * np.abs(differences).max(axis=0) ** 2
    observed = _t(mean, squared.sum(axis=0) / count, count, noise) * (1 - SLACK_OF_T)
    both = np.concatenate([centred, squared], axis=1)
    as_far = np.zeros(width)
    for counts in resampled_counts(count, resamples, seed):
        means, squares = np.split(counts @ both / count, 2, axis=1)
        as_far += (_t(means, squares - means * means, count, noise) >= observed).sum(axis=0)
    values: Floats = (1 + as_far) / (1 + resamples)
    return values


def _t(mean: Floats, variance: Floats, count: int, noise: Floats) -> Floats:
    """|mean| ÷ its standard error; infinite for a mean without variance."""
    scale = np.sqrt(np.where(variance <= noise, 0.0, variance) / (count - 1))
    away = np.abs(mean)
    infinite = np.where(away > np.sqrt(noise), np.inf, 0.0)
    t: Floats = np.divide(away, scale, out=infinite, where=scale > 0)
    return t


def student(differences: Floats, resamples: int, seed: int) -> Floats:
    """Student's paired t, by SciPy's `ttest_rel`. Source: Student 1908."""
    stats = scipy_stats("the t test")
    if len(differences) < 2:
        return np.full(differences.shape[1], np.nan)
    with warnings.catch_warnings():
        # Differences that are all the same: t is infinite and p 0, which SciPy says with a warning.
        warnings.simplefilter("ignore")
        return np.array(stats.ttest_rel(differences, np.zeros_like(differences)).pvalue, dtype=np.float64)


def wilcoxon(differences: Floats, resamples: int, seed: int) -> Floats:
    """Wilcoxon's signed ranks, by SciPy's `wilcoxon`, which leaves out queries that do not differ. Wilcoxon 1945."""
    stats = scipy_stats("Wilcoxon's test")
    return np.array([float(stats.wilcoxon(column).pvalue) for column in differences.T])


def scipy_stats(what: str) -> ModuleType:
    """`scipy.stats`; raises `ConfigError` that says how to get it."""
    try:
        from scipy import stats
    except ImportError:
        raise ConfigError(f"{what} needs SciPy, which is not installed: pip install 'groupgt[stats]'") from None
    module: ModuleType = stats
    return module


@dataclass(frozen=True)
class PairedTest:
    """A test: (differences, resamples, seed) → p-values, its name in a sentence, and whether it draws at random."""

    function: Callable[[Floats, int, int], Floats]
    title: str
    draws: bool = False
    needs_scipy: bool = False


TESTS: Mapping[str, PairedTest] = {
    "randomization": PairedTest(randomization, "paired randomization test", draws=True),
    "t": PairedTest(student, "Student's paired t test", needs_scipy=True),
    "wilcoxon": PairedTest(wilcoxon, "Wilcoxon's signed-rank test", needs_scipy=True),
    "bootstrap": PairedTest(bootstrap, "paired bootstrap test", draws=True),
}


def corrected(correction: str, values: Floats) -> Floats:
    """p-values corrected over all of them; NaN are no comparisons and stay.

    >>> corrected("holm", np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    result = np.array(values, dtype=np.float64)
    known = ~np.isnan(result)
    result[known] = CORRECTIONS[correction](result[known])
    return result


def holm(values: Floats) -> Floats:
    """Holm 1979: the i-th smallest times (number − i + 1), none below the one before it, at most 1."""
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    result = np.empty(len(order))
    result[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return result


def bonferroni(values: Floats) -> Floats:
    """Bonferroni: times their number, at most 1."""
    return np.minimum(values * len(values), 1.0)


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "none": lambda values: values,
}
