"""Paired significance tests over queries that count for both systems, and corrections for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from groupgt.comparison.draws import (
    AT_ONCE,
    ENOUGH,
    SLACK,
    halves,
    in_errors,
    in_order,
    on_grid,
    resampled_counts,
    scipy_stats,
    slack_of,
    zeroed,
)
from groupgt.comparison.gaps import gaps_by_resamples, least_by_ranks, least_by_signs, least_by_t
from groupgt.model.hits import Bools, Floats, Ints

TestName = Literal["randomization", "t", "wilcoxon", "bootstrap"]
CorrectionName = Literal["holm", "bonferroni", "bh", "none"]
# The slack of t, whose variance is rounded too.
SLACK_OF_T = 1e-9
NONE: Floats = np.empty(0)

# From alpha of each column, shape (C,), to the ends of the interval of every μ that its test does not reject, (C, 2).
Inverse = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Inference:
    """Results of a paired test: the p-values for columns of differences, shape (C,), and the inverted test.

    p is NaN where the test is undefined. `inverse` returns the ends of the interval of every μ with p(μ) > alpha. Ends
    are NaN without such an interval, and infinite where no μ is rejected. alpha must not exceed the test's. `inverse`
    is None without inversion. `is_exact` marks p-values computed from all sign patterns, not from a sample. `ranks` is
    the quantity that Wilcoxon's test compares: (positive ranks − negative ranks) ÷ all ranks, from −1 to 1.
    """

    p_values: Floats
    inverse: Inverse | None = None
    is_exact: Bools | np.bool_ = np.False_
    ranks: Floats | None = None


def p_values(test: str, differences: Floats, resamples: int, seed: int) -> Floats:
    """Return the p-value of each column, computed by a test from `TESTS`."""
    parts = np.array_split(differences, max(differences.shape[1] * resamples // AT_ONCE, 1), axis=1)
    return np.concatenate([infer(test, part, resamples, seed).p_values for part in parts])


def infer(test: str, differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Test each column, shape (n, C), with a test from `TESTS` that can then be inverted at up to `alpha`.

    Without queries, p is NaN. If all differences in a column are 0, p is 1, and the interval is NaN unless p is exact.
    """
    count, width = differences.shape
    if not count:
        return Inference(np.full(width, np.nan))
    cleaned = np.where(np.abs(differences) > SLACK, differences, 0.0)
    differing = np.flatnonzero(cleaned.any(axis=0))
    columns = in_order(cleaned[:, differing])
    result = TESTS[test].function(columns, resamples, seed, alpha) if len(differing) else Inference(NONE)
    inverse, ranks = result.inverse, result.ranks

    def of_all(values: Floats, otherwise: float) -> Floats:
        everywhere = np.full((width, *values.shape[1:]), otherwise)
        everywhere[differing] = values
        return everywhere

    return Inference(
        of_all(result.p_values, 1.0),
        None if inverse is None else lambda alphas: of_all(inverse(alphas[differing]), np.nan),
        ((cleaned != 0).sum(axis=0) < ENOUGH) & TESTS[test].is_exact,
        None if ranks is None else of_all(ranks, 0.0),
    )


def place_of(alphas: Floats, resamples: int) -> Ints:
    """Return the number of extreme draws needed for p = (1 + extreme) ÷ (1 + resamples) to exceed alpha, shape (C,)."""
    return np.floor(alphas * (1 + resamples) * (1 + SLACK)).astype(np.int64)


def _at(ordered: Floats, places: Ints) -> Floats:
    """Return each column's value at a position counted from 1, or −inf at position 0."""
    picked = np.take_along_axis(ordered, np.maximum(places - 1, 0)[None, :], axis=0)[0]
    return np.where(places > 0, picked, -np.inf)


def _smallest(values: Floats, count: int) -> Floats:
    """Return the smallest values of each column in ascending order, shape (count, C)."""
    if count < len(values):
        values = np.partition(values, count - 1, axis=0)[:count]
    return np.sort(values, axis=0)


def randomization(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Run Fisher's randomization test, which flips signs at random.

    p is the share of sums at least as far from 0 as the observed sum. If fewer than 15 queries differ, all 2^m sign
    patterns are counted (for m queries). Otherwise, `resamples` patterns are drawn at random, and p = (1 + patterns as
    far) ÷ (1 + resamples). Sources: Smucker, Allan & Carterette, CIKM 2007; Phipson & Smyth 2010.

    Inversion (if patterns are drawn): with μ subtracted from every difference, a pattern is as far as the observed mean
    m > μ if the mean over queries that keep their sign, or the mean over queries that change it, is at most μ. So p(μ)
    rises up to m and falls beyond. The interval's ends are order statistics of the smaller and the larger of the two
    means in each draw.
    """
    exact, count = on_grid(differences), len(differences)
    # Sums that are equal in exact arithmetic count as equally far.
    bound = np.abs(exact.sum(axis=0)) - slack_of(exact)
    values = np.ones(len(bound))
    few = (exact != 0).sum(axis=0) < ENOUGH
    for column in np.flatnonzero(few).tolist():
        sums, *rest = exact[exact[:, column] != 0, column]
        # The other half of the patterns has the same sums with the other sign.
        for difference in rest:
            sums = np.append(sums + difference, sums - difference)
        values[column] = float((np.abs(sums) >= bound[column]).mean())
    columns, most = exact[:, ~few], int(place_of(np.array([alpha]), resamples)[0])
    total, as_far = columns.sum(axis=0), np.zeros(columns.shape[1])
    lows, highs = np.full((0, len(total)), np.inf), np.full((0, len(total)), np.inf)
    for coins in halves(count, resamples, seed) if len(total) else ():
        kept = coins @ columns
        # Σ ±d = 2 Σ over heads − Σ d; all terms are exact.
        sums = 2 * kept
        sums -= total
        as_far += (np.abs(sums, out=sums) >= bound[~few]).sum(axis=0)
        if most:
            heads = coins.sum(axis=1)[:, None]
            one_sided = (heads == 0) | (heads == count)
            means = kept / np.maximum(heads, 1), (total - kept) / np.maximum(count - heads, 1)
            # A pattern that changes no sign, or all of them, is as far for every μ.
            low, high = (np.where(one_sided, -np.inf, end) for end in (np.minimum(*means), -np.maximum(*means)))
            lows, highs = (_smallest(np.concatenate(pair), most) for pair in ((lows, low), (highs, high)))
    values[~few] = (1 + as_far) / (1 + resamples)

    def ends(alphas: Floats) -> Floats:
        found = np.full((len(few), 2), np.nan)
        if most and len(total):
            places = place_of(alphas[~few], resamples)
            found[~few] = np.stack([_at(lows, places), -_at(highs, places)], axis=1)
        elif len(total):
            found[~few] = -np.inf, np.inf
        return found

    return Inference(values, ends)


def bootstrap(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Run the bootstrap test for a mean of 0. p is the share of centered resamples whose t is as extreme. More
    precisely, p = (1 + resamples as extreme) ÷ (1 + resamples), undefined (NaN) if all differences are equal. Sources:
    Efron & Tibshirani 1993, ch. 16; Sakai, SIGIR 2006.

    Inversion: the mean ± the quantile of |t| over the resamples × the standard error.
    """
    count, width = differences.shape
    if count < 2:
        return Inference(np.full(width, np.nan))
    differences = on_grid(differences)
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
    most = int(place_of(np.array([alpha]), resamples)[0])
    largest = np.full((0, width), np.inf)
    for counts in resampled_counts(count, resamples, seed):
        means, squares = np.split(counts @ both / count, 2, axis=1)
        t = in_errors(means, np.sqrt(zeroed(squares - means * means, noise) / (count - 1)), noise)
        as_far += (t >= observed).sum(axis=0)
        if most:
            largest = _smallest(np.concatenate([largest, -t]), most)
    undefined = error == 0

    def ends(alphas: Floats) -> Floats:
        quantiles = -_at(largest, place_of(alphas, resamples)) if most else np.full(width, np.inf)
        return around(mean, np.where(undefined, np.nan, quantiles * np.where(undefined, 1.0, error)))

    return Inference(np.where(undefined, np.nan, (1 + as_far) / (1 + resamples)), ends)


def around(middle: Floats, half: Floats) -> Floats:
    """Return the ends of each interval, shape (C, 2)."""
    return np.stack([middle - half, middle + half], axis=1)


def student(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Run Student's paired t test with SciPy. p is undefined (NaN) if all differences are equal. Source: Student 1908.

    Inversion: the mean ± the quantile of Student's t × the standard error.
    """
    stats = scipy_stats("the t test")
    count, width = differences.shape
    if count < 2:
        return Inference(np.full(width, np.nan))
    mean, spread = differences.mean(axis=0), differences.std(axis=0, ddof=1)
    error = np.where(spread < SLACK, np.nan, spread / math.sqrt(count))
    t = mean / error

    def ends(alphas: Floats) -> Floats:
        return around(mean, stats.t.isf(alphas / 2, count - 1) * error)

    return Inference(np.asarray(2 * stats.t.sf(np.abs(t), count - 1)), ends)


def wilcoxon(differences: Floats, resamples: int, seed: int, alpha: float = 0.0) -> Inference:
    """Run Wilcoxon's signed-rank test with SciPy, which omits queries without a difference. Source: Wilcoxon 1945.

    The test is not inverted, because it compares ranks, not means.
    """
    stats = scipy_stats("Wilcoxon's test")
    values, ranks = [], []
    for column in on_grid(differences).T:
        signed = stats.rankdata(np.abs(column[column != 0])) * np.sign(column[column != 0])
        values.append(float(stats.wilcoxon(column).pvalue))
        ranks.append(float(signed.sum() / np.abs(signed).sum()))
    return Inference(np.array(values), ranks=np.array(ranks))


@dataclass(frozen=True)
class PairedTest:
    """A paired test: a function of (differences, resamples, seed, alpha) that returns an `Inference`, and its title.

    `least_gaps` returns the least gap between wins and losses that the test detects if all differences are equally
    large. `gaps_of_few` returns all detected gaps if few queries differ, for tests that may miss a larger gap.
    """

    function: Callable[[Floats, int, int, float], Inference]
    title: str
    least_gaps: Callable[[int, Ints, float], Ints]
    gaps_of_few: Callable[[int, int, float], tuple[int, ...]] | None = None
    draws: bool = False
    needs_scipy: bool = False
    is_exact: bool = False
    compares_means: bool = True
    undefined_if_equal: bool = False


TESTS: Mapping[str, PairedTest] = {
    "randomization": PairedTest(randomization, "paired randomization test", least_by_signs, draws=True, is_exact=True),
    "t": PairedTest(student, "Student's paired t test", least_by_t, needs_scipy=True, undefined_if_equal=True),
    "wilcoxon": PairedTest(
        wilcoxon, "Wilcoxon's signed-rank test", least_by_ranks, needs_scipy=True, compares_means=False
    ),
    # The gaps of many differences are similar to those of the t test.
    "bootstrap": PairedTest(
        bootstrap, "paired bootstrap test", least_by_t, gaps_by_resamples, draws=True, undefined_if_equal=True
    ),
}


def corrected(correction: str, values: Floats) -> Floats:
    """Correct p-values for multiple comparisons. NaN values are not counted and stay NaN."""
    result = np.array(values, dtype=np.float64)
    is_defined = ~np.isnan(result)
    result[is_defined] = CORRECTIONS[correction](result[is_defined])
    return result


def holm(values: Floats) -> Floats:
    """Apply Holm's 1979 correction. Multiply the i-th smallest p by (number − i + 1), up to 1, without decreasing."""
    return _stepped(values, np.arange(len(values), 0, -1), np.maximum.accumulate)


def bonferroni(values: Floats) -> Floats:
    """Apply the Bonferroni correction. Multiply each p by the number of p-values, and cap it at 1."""
    return np.minimum(values * len(values), 1.0)


def benjamini_hochberg(values: Floats) -> Floats:
    """Apply the 1995 correction by Benjamini and Hochberg. Multiply the i-th smallest p by number ÷ i, up to 1.

    Corrected p-values keep the order of the raw p-values. The method controls the false discovery rate, the expected
    share of false positives among significant differences, rather than the probability of any false positive.
    """
    factors = len(values) / np.arange(1, len(values) + 1)
    return _stepped(values, factors, lambda scaled: np.minimum.accumulate(scaled[::-1])[::-1])


def _stepped(values: Floats, factors: Floats | Ints, monotonic: Callable[[Floats], Floats]) -> Floats:
    """Multiply p-values in ascending order by factors, and make the products monotonic and at most 1."""
    order = np.argsort(values, kind="stable")
    result = np.empty(len(order))
    result[order] = np.minimum(monotonic(values[order] * factors), 1.0)
    return result


def alpha_at(correction: str, alpha: float, comparisons: int, rejected: int) -> float:
    """Return the alpha for each raw p-value in a family, so that intervals agree with the corrected tests.

    For m comparisons with R rejections, return alpha for `none`, alpha ÷ m for `bonferroni`, alpha ÷ (m − R) for `holm`
    (alpha if R = m), and max(R, 1) · alpha ÷ m for `bh`. A difference is significant if its raw p is at most this
    alpha.
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
