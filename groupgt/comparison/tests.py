"""Paired significance tests over queries that count for both systems, and corrections for multiple comparisons.

Random draws (coins, resamples, permutations) are bit-identical on every machine and also used for confidence
intervals.
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
from groupgt.model.hits import Bools, Floats, Ints

# Differences that are equal in exact arithmetic may differ by a few bits.
SLACK = 1e-12
# The grid is 2^-40 of the largest value.
FINEST = 40
# Numbers drawn at a time.
AT_ONCE = 1 << 23
# Up to this many counts are cached for the next table with the same number of queries.
KEPT = 1 << 22
# Up to this many queries are counted in one block, which then stays in the processor's cache.
IN_BLOCKS = 1 << 12


def halves(n: int, count: int, seed: int) -> Iterator[Floats]:
    """Draws `count` rows of n fair coins (0.0 or 1.0), in blocks of rows."""
    words = -(-n // 64)
    source = _source(seed, 1, n)
    for rows in _blocks(count, n):
        raw = source.random_raw(rows * words).astype("<u8").view(np.uint8).reshape(rows, -1)
        yield np.unpackbits(raw, axis=1, count=n, bitorder="little").astype(np.float64)


def resampled_counts(n: int, count: int, seed: int) -> Iterator[Floats]:
    """Draws n of n queries with replacement, `count` times; yields draw counts per query, in blocks of rows."""
    if n * count <= KEPT:
        yield _kept_counts(n, count, seed)
    else:
        yield from _counts(n, count, seed)


@lru_cache(maxsize=4)
def _kept_counts(n: int, count: int, seed: int) -> Floats:
    """Returns all rows for a few queries, cached for every metric of a table and every slice of the same size."""
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


def permutations(n: int, width: int, count: int, seed: int) -> Iterator[Ints]:
    """Draws n independent permutations of `width` items, `count` times, in blocks of shape (rows, n, width)."""
    source = _source(seed, 3, n * width)
    for rows in _blocks(count, n * width):
        keys = _below(source, rows, n * width, np.uint64(1 << 32)).reshape(rows, n, width)
        yield np.argsort(keys, axis=2, kind="stable")


def _below(source: np.random.PCG64, rows: int, width: int, bound: np.uint64) -> Ints:
    """Draws integers below a bound, shape (rows, width), from 32 random bits each."""
    words = -(-width // 2)
    raw = source.random_raw(rows * words).astype("<u8").view("<u4").reshape(rows, -1)[:, :width]
    return ((raw.astype(np.uint64) * bound) >> np.uint64(32)).astype(np.int64)


def _source(seed: int, purpose: int, n: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence([seed, purpose, n]))


def _blocks(count: int, width: int) -> Iterator[int]:
    """Yields the number of rows to draw at a time; block size does not affect the random words used for a row."""
    size = max(1, AT_ONCE // max(width, 1))
    for start in range(0, count, size):
        yield min(size, count - start)


def on_grid(values: Floats) -> Floats:
    """Rounds each column to multiples of a power of two (2^-40 of its largest value, or more), shape (n, C).

    Any sum of n such values is then exact in any order. Sums that would be equal in exact arithmetic (three times 1/3,
    and 1) may differ by up to `slack_of`.

    >>> on_grid(np.array([[0.1 + 0.2], [0.3]])).ravel().tolist() == [0.30000000000018190] * 2
    True
    """
    if not values.size:
        return values
    step = _step(values)
    return np.asarray(np.rint(values / step) * step)


def slack_of(values: Floats) -> Floats:
    """Returns the maximum rounding error of each column's sum, shape (C,)."""
    slack: Floats = len(values) * _step(values)
    return slack


def _step(values: Floats) -> Floats:
    """Returns 2^-40 of the largest value, rounded up to a power of two, or more if the sum would exceed 52 bits."""
    highest = np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    exact = np.frexp(highest)
    largest = exact[1] - (exact[0] == 0.5)
    exponent = np.frexp(highest * len(values))[1] - 52
    step: Floats = np.ldexp(1.0, np.maximum(exponent, largest - FINEST))
    return step


TestName = Literal["randomization", "t", "wilcoxon", "bootstrap"]
CorrectionName = Literal["holm", "bonferroni", "bh", "none"]
# The slack of t, whose variance is rounded too.
SLACK_OF_T = 1e-9

# From alpha of each column, shape (C,), to the ends of the interval of every μ that its test does not reject, (C, 2).
Inverse = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Inference:
    """Results of a paired test: the p-value of each column of differences, shape (C,), and the inverted test.

    `inverse` returns the ends of the interval containing every μ with p(μ) > alpha, infinite if alpha is too small to
    reject any μ; alpha must not exceed the alpha of the test. It is None for tests that are not inverted. `is_exact`
    marks p-values computed from all sign patterns rather than a sample.
    """

    p_values: Floats
    inverse: Inverse | None = None
    is_exact: Bools | np.bool_ = np.False_


def p_values(test: str, differences: Floats, resamples: int, seed: int) -> Floats:
    """Returns the p-value of each column, computed by a test from `TESTS`.

    >>> p_values("randomization", np.array([[0.1], [0.2], [0.3], [0.0]]), 10_000, 0).tolist()
    [0.25]
    """
    return infer(test, differences, resamples, seed).p_values


def infer(test: str, differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Tests each column, shape (n, C), with a test from `TESTS` that can then be inverted at up to `alpha`.

    Without queries, p is NaN. Columns without differences have p = 1 and no interval (NaN).
    """
    count, width = differences.shape
    if not count:
        return Inference(np.full(width, np.nan))
    exact = on_grid(np.where(np.abs(differences) > SLACK, differences, 0.0))
    values, is_exact = np.ones(width), np.zeros(width, dtype=np.bool_)
    differing = np.flatnonzero(exact.any(axis=0))
    if not len(differing):
        return Inference(values, is_exact=is_exact)
    result = TESTS[test].function(exact[:, differing], resamples, seed, alpha)
    values[differing], is_exact[differing] = result.p_values, result.is_exact
    inverse = result.inverse

    def ends_of_all(alphas: Floats) -> Floats:
        ends = np.full((width, 2), np.nan)
        if inverse is not None:
            ends[differing] = inverse(alphas[differing])
        return ends

    return Inference(values, None if inverse is None else ends_of_all, is_exact)


def _place(alphas: Floats, resamples: int) -> Ints:
    """Returns the number of extreme draws needed for p = (1 + as far) ÷ (1 + resamples) to exceed alpha, shape (C,)."""
    return np.floor(alphas * (1 + resamples) * (1 + SLACK)).astype(np.int64)


def _at(ordered: Floats, places: Ints) -> Floats:
    """Returns each column's value at a position counted from 1, or −inf at position 0."""
    picked = np.take_along_axis(ordered, np.maximum(places - 1, 0)[None, :], axis=0)[0]
    return np.where(places > 0, picked, -np.inf)


def _smallest(values: Floats, count: int) -> Floats:
    """Returns the smallest values of each column in ascending order, shape (count, C)."""
    if count < len(values):
        values = np.partition(values, count - 1, axis=0)[:count]
    return np.sort(values, axis=0)


def randomization(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Runs Fisher's randomization test, which flips signs at random; p is the share of sums at least as far from 0.

    If the m differing queries have at most `resamples` sign patterns (2^m), all are counted; otherwise, `resamples`
    patterns are drawn at random, and p = (1 + as far) ÷ (1 + resamples). Sources: Smucker, Allan & Carterette, CIKM
    2007; Phipson & Smyth 2010.

    Inversion: with μ subtracted from every difference, a pattern is as far as the observed mean m > μ if the mean over
    queries that keep their sign, or the mean over queries that change it, is at most μ. So p(μ) rises up to m and falls
    beyond. The ends are order statistics of the smaller and the larger of the two means in each draw.
    """
    count = len(differences)
    # Sums that are equal in exact arithmetic count as equally far.
    bound = np.abs(differences.sum(axis=0)) - slack_of(differences)
    differing = (differences != 0).sum(axis=0)
    values = np.ones(len(bound))
    few = differing <= math.log2(resamples)
    for column in np.flatnonzero(few).tolist():
        sums = np.zeros(1)
        for difference in differences[differences[:, column] != 0, column].tolist():
            sums = np.concatenate([sums + difference, sums - difference])
        values[column] = float((np.abs(sums) >= bound[column]).mean())
    most = int(_place(np.array([alpha]), resamples)[0])
    sampled = np.flatnonzero(~few | (most > 0))
    if not len(sampled):
        return Inference(values, is_exact=few)
    columns = differences[:, sampled]
    total, as_far = columns.sum(axis=0), np.zeros(len(sampled))
    lows, highs = np.full((0, len(sampled)), np.inf), np.full((0, len(sampled)), np.inf)
    for coins in halves(count, resamples, seed):
        kept = coins @ columns
        # Σ ±d = 2 Σ over heads − Σ d; all terms are exact.
        as_far += (np.abs(2 * kept - total) >= bound[sampled]).sum(axis=0)
        if most:
            heads = coins.sum(axis=1)[:, None]
            one_sided = (heads == 0) | (heads == count)
            means = kept / np.maximum(heads, 1), (total - kept) / np.maximum(count - heads, 1)
            # A pattern that changes no sign, or all of them, is as far for every μ.
            low, high = (np.where(one_sided, -np.inf, end) for end in (np.minimum(*means), -np.maximum(*means)))
            lows, highs = (_smallest(np.concatenate(pair), most) for pair in ((lows, low), (highs, high)))
    values[sampled] = np.where(few[sampled], values[sampled], (1 + as_far) / (1 + resamples))
    if not most:
        return Inference(values, is_exact=few)

    def ends(alphas: Floats) -> Floats:
        places = _place(alphas, resamples)
        return np.stack([_at(lows, places), -_at(highs, places)], axis=1)

    return Inference(values, ends, few)


def bootstrap(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Runs the bootstrap test for a mean of 0; p is the share of centred resamples with t at least as far from 0.

    More precisely, p = (1 + as far) ÷ (1 + resamples). Sources: Efron & Tibshirani 1993, ch. 16; Sakai, SIGIR 2006.

    Inversion: the mean ± the quantile of |t| over the resamples × the standard error.
    """
    count, width = differences.shape
    if count < 2:
        return Inference(np.full(width, np.nan))
    total = differences.sum(axis=0)
    mean = np.where(np.abs(total) <= slack_of(differences), 0.0, total) / count
    centred = on_grid(differences - mean)
    squared = on_grid(centred * centred)
    noise = SLACK * np.abs(differences).max(axis=0) ** 2
    variance = squared.sum(axis=0) / count
    error = np.sqrt(zeroed(variance, noise) / (count - 1))
    observed = in_errors(mean, error, noise) * (1 - SLACK_OF_T)
    both = np.concatenate([centred, squared], axis=1)
    as_far = np.zeros(width)
    most = int(_place(np.array([alpha]), resamples)[0])
    largest = np.full((0, width), np.inf)
    for counts in resampled_counts(count, resamples, seed):
        means, squares = np.split(counts @ both / count, 2, axis=1)
        t = in_errors(means, np.sqrt(zeroed(squares - means * means, noise) / (count - 1)), noise)
        as_far += (t >= observed).sum(axis=0)
        if most:
            largest = _smallest(np.concatenate([largest, -t]), most)
    values: Floats = (1 + as_far) / (1 + resamples)
    if not most:
        return Inference(values)

    def ends(alphas: Floats) -> Floats:
        quantiles = -_at(largest, _place(alphas, resamples))
        half = np.where(error > 0, quantiles * error, 0.0)
        return around(mean, half)

    return Inference(values, ends)


def zeroed(variance: Floats, noise: Floats) -> Floats:
    """Replaces variances that are rounding errors with 0."""
    return np.where(variance <= noise, 0.0, variance)


def in_errors(away: Floats | Ints, error: Floats, noise: Floats | float) -> Floats:
    """Returns |away| ÷ the standard error; infinite for a difference beyond the noise if the error is 0."""
    size = np.abs(away)
    infinite = np.where(size > np.sqrt(noise), np.inf, 0.0)
    t: Floats = np.divide(size, error, out=infinite, where=error > 0)
    return t


def around(middle: Floats, half: Floats) -> Floats:
    """Returns the ends of each interval, shape (C, 2)."""
    return np.stack([middle - half, middle + half], axis=1)


def student(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Runs Student's paired t test, using SciPy's `ttest_rel`. Source: Student 1908.

    Inversion: the mean ± the quantile of Student's t × the standard error.
    """
    stats = scipy_stats("the t test")
    count, width = differences.shape
    if count < 2:
        return Inference(np.full(width, np.nan))
    with warnings.catch_warnings():
        # If all differences are the same, t is infinite and p is 0, and SciPy warns.
        warnings.simplefilter("ignore")
        values = np.array(stats.ttest_rel(differences, np.zeros_like(differences)).pvalue, dtype=np.float64)
    mean = differences.sum(axis=0) / count
    error = np.sqrt(((differences - mean) ** 2).sum(axis=0) / (count - 1) / count)

    def ends(alphas: Floats) -> Floats:
        half = stats.t.isf(alphas / 2, count - 1) * error
        return around(mean, half)

    return Inference(values, ends)


def wilcoxon(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Runs Wilcoxon's signed-rank test with SciPy, which omits queries without a difference. Source: Wilcoxon 1945.

    The test is not inverted, because it compares ranks, not means.
    """
    stats = scipy_stats("Wilcoxon's test")
    return Inference(np.array([float(stats.wilcoxon(column).pvalue) for column in differences.T]))


def scipy_stats(what: str) -> ModuleType:
    """Imports `scipy.stats`; raises a `ConfigError` that explains how to install it."""
    try:
        from scipy import stats
    except ImportError:
        raise ConfigError(f"{what} needs SciPy, which is not installed: pip install 'groupgt[stats]'") from None
    module: ModuleType = stats
    return module


@dataclass(frozen=True)
class PairedTest:
    """A paired test: a function of (differences, resamples, seed, alpha) that returns an `Inference`, and its title."""

    function: Callable[[Floats, int, int, float], Inference]
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
    """Corrects p-values for multiple comparisons; NaN values are not counted and stay NaN.

    >>> corrected("holm", np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    result = np.array(values, dtype=np.float64)
    is_defined = ~np.isnan(result)
    result[is_defined] = CORRECTIONS[correction](result[is_defined])
    return result


def holm(values: Floats) -> Floats:
    """Applies Holm's 1979 correction: the i-th smallest p times (number − i + 1), never decreasing, at most 1."""
    return _stepped(values, np.arange(len(values), 0, -1), np.maximum.accumulate)


def bonferroni(values: Floats) -> Floats:
    """Applies the Bonferroni correction: each p is multiplied by the number of p-values, up to 1."""
    return np.minimum(values * len(values), 1.0)


def benjamini_hochberg(values: Floats) -> Floats:
    """Applies the 1995 correction by Benjamini and Hochberg: the i-th smallest p times number ÷ i, at most 1.

    No result exceeds the next larger one. The method controls the false discovery rate, the expected share of false
    positives among significant differences, rather than the probability of any false positive.
    """
    factors = len(values) / np.arange(1, len(values) + 1)
    return _stepped(values, factors, lambda scaled: np.minimum.accumulate(scaled[::-1])[::-1])


def _stepped(values: Floats, factors: Floats | Ints, monotonic: Callable[[Floats], Floats]) -> Floats:
    """Multiplies p-values in ascending order by factors, and makes the products monotonic and at most 1."""
    order = np.argsort(values, kind="stable")
    result = np.empty(len(order))
    result[order] = np.minimum(monotonic(values[order] * factors), 1.0)
    return result


def alpha_at(correction: str, alpha: float, comparisons: int, rejected: int) -> float:
    """Returns the alpha that decides each raw p in a family, so that intervals agree with the decisions.

    For m comparisons with R rejections, it is alpha for `none`, alpha ÷ m for `bonferroni`, alpha ÷ (m − R) for `holm`
    (alpha if R = m), and max(R, 1) · alpha ÷ m for `bh`. A raw p is rejected if and only if it is at most this value.

    >>> [round(alpha_at(name, 0.05, 5, 1), 4) for name in ("none", "bonferroni", "holm", "bh")]
    [0.05, 0.01, 0.0125, 0.01]
    """
    if correction == "none" or comparisons < 1:
        return alpha
    if correction == "holm":
        return alpha / max(comparisons - rejected, 1)
    return alpha * (max(rejected, 1) if correction == "bh" else 1) / comparisons


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
    "none": lambda values: values,
}
