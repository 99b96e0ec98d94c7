"""Tests, intervals and corrections, against slow references in plain Python, SciPy, statsmodels and simulation.

References share nothing with what they check but the numbers that are drawn, and those are drawn a second time here,
by the published algorithms of SeedSequence and PCG64 in Python's own integers.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupgt.comparison import intervals as intervals_module
from groupgt.comparison.contrast import tukey
from groupgt.comparison.intervals import (
    halves,
    intervals,
    normal_quantile,
    on_grid,
    permutations,
    resampled_counts,
    student_quantile,
)
from groupgt.comparison.tests import TESTS, Settings, corrected, p_values
from groupgt.model.hits import Floats

ROOT = Path(__file__).parents[2]
UNIT = (0.0, 1.0)
WIDE = (-1.0, 1.0)
NEEDS_SCIPY = "SciPy is the other implementation here: pip install 'groupgt[stats]'"
NEEDS_STATSMODELS = "statsmodels is the other implementation here: pip install statsmodels"


# Numbers drawn: the published algorithms, one word at a time.

M32, M64, M128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1


def words_of(entropy: Sequence[int]) -> Iterator[int]:
    """PCG64 (XSL RR 128/64; O'Neill 2014) of NumPy's SeedSequence (after O'Neill's seed_seq_fe) of small integers."""
    factor = 0x43B0D7E5

    def hashed(value: int, multiplier: int) -> int:
        nonlocal factor
        value ^= factor
        factor = factor * multiplier & M32
        value = value * factor & M32
        return value ^ value >> 16

    pool = [hashed(entropy[i] if i < len(entropy) else 0, 0x931E8875) for i in range(4)]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = (0xCA01F9DD * pool[target] - 0x4973F715 * hashed(pool[source], 0x931E8875)) & M32
                pool[target] = mixed ^ mixed >> 16
    factor = 0x8B51F9DD
    small = [hashed(pool[i % 4], 0x58F38DED) for i in range(8)]
    a, b, c, d = (small[i] | small[i + 1] << 32 for i in range(0, 8, 2))
    multiplier, increment = 0x2360ED051FC65DA44385DF649FCCF645, ((c << 64 | d) << 1 | 1) & M128
    state = ((increment + (a << 64 | b)) * multiplier + increment) & M128
    while True:
        state = (state * multiplier + increment) & M128
        folded, turn = (state >> 64 ^ state) & M64, state >> 122
        yield (folded >> turn | folded << (64 - turn)) & M64 if turn else folded


def numbers_below(source: Iterator[int], each: int, bound: int) -> list[int]:
    """The low half of a word comes first; a row begins with a new word."""
    found: list[int] = []
    for word in itertools.islice(source, -(-each // 2)):
        found += [(word & M32) * bound >> 32, (word >> 32) * bound >> 32]
    return found[:each]


def test_the_words_are_those_of_numpy() -> None:
    # First line of NumPy's own numpy/random/tests/data/pcg64-testset-1.csv, seeded with 0xdeadbeaf.
    assert next(words_of([0xDEADBEAF])) == 0x60D24054E17A0698
    mine = list(itertools.islice(words_of([3, 2, 40]), 5))
    assert np.random.PCG64(np.random.SeedSequence([3, 2, 40])).random_raw(5).tolist() == mine


@pytest.mark.parametrize("n", [1, 2, 7, 63, 64, 65, 130])
def test_coins_are_the_bits_of_the_words(n: int) -> None:
    source = words_of([5, 1, n])
    expected = []
    for _ in range(9):
        row = list(itertools.islice(source, -(-n // 64)))
        expected.append([float(row[i // 64] >> i % 64 & 1) for i in range(n)])
    assert np.concatenate(list(halves(n, 9, 5))).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 7, 40, 101])
def test_counts_are_those_of_numbers_below_n(n: int) -> None:
    source = words_of([5, 2, n])
    rows = [numbers_below(source, n, n) for _ in range(9)]
    expected = [[float(row.count(query)) for query in range(n)] for row in rows]
    assert np.concatenate(list(resampled_counts(n, 9, 5))).tolist() == expected


@pytest.mark.parametrize(("n", "width"), [(1, 2), (3, 5), (7, 3)])
def test_permutations_are_orders_of_keys(n: int, width: int) -> None:
    source = words_of([5, 3, n * width])
    expected = []
    for _ in range(6):
        keys = numbers_below(source, n * width, 1 << 32)
        rows = [keys[start : start + width] for start in range(0, n * width, width)]
        expected.append([sorted(range(width), key=row.__getitem__) for row in rows])
    assert np.concatenate(list(permutations(n, width, 6, 5))).tolist() == expected


def test_draws_are_fair() -> None:
    # 200,000 coins: 4 standard errors of the mean are 4 × 0.5 ÷ √200,000.
    coins = np.concatenate(list(halves(20, 10_000, 0)))
    assert abs(coins.mean() - 0.5) < 4 * 0.5 / math.sqrt(coins.size)
    counts = np.concatenate(list(resampled_counts(20, 10_000, 0)))
    assert (counts.sum(axis=1) == 20).all()
    # A count is binomial(20, 1/20): mean 1, variance 0.95.
    assert np.abs(counts.mean(axis=0) - 1).max() < 4 * math.sqrt(0.95 / 10_000)
    orders = np.concatenate(list(permutations(2, 3, 6_000, 0)))[:, 0]
    shares = np.unique(orders, axis=0, return_counts=True)[1] / 6_000
    assert len(shares) == 6
    assert np.abs(shares - 1 / 6).max() < 4 * math.sqrt(5 / 36 / 6_000)


# Data: dyadic figures (exact in any order), and metric values as they come.


def dyadic(n: int, width: int = 1) -> Floats:
    """Sixteenths from −8/16 to 8/16 by a formula."""
    rows = [[((7 * i * i + 3 * i + 5 * c * i + c) % 17 - 8) / 16 for c in range(width)] for i in range(n)]
    return np.array(rows, dtype=np.float64).reshape(n, width)


def ndcg_like(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """15 % zeros, 25 % ones and a beta(2, 1.5) between them: its mean is 0.25 + 0.6 × 2/3.5."""
    kind = rng.random(shape)
    return np.where(kind < 0.15, 0.0, np.where(kind < 0.4, 1.0, rng.beta(2, 1.5, shape)))


NDCG_MEAN = 0.25 + 0.6 * 2 / 3.5


# Randomization.


def randomized_slowly(differences: Sequence[Fraction]) -> Fraction:
    observed = abs(sum(differences))
    signs = list(itertools.product((1, -1), repeat=len(differences)))
    far = sum(abs(sum(s * d for s, d in zip(each, differences))) >= observed for each in signs)
    return Fraction(far, len(signs))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-8, 8), min_size=1, max_size=8))
def test_all_sign_patterns_are_counted(eighths: list[int]) -> None:
    found = p_values("randomization", np.array([[each / 8] for each in eighths]), 1000, 0)
    assert found.tolist() == [float(randomized_slowly([Fraction(each, 8) for each in eighths]))]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-6, 6), st.integers(1, 7)), min_size=1, max_size=8))
def test_sums_that_are_equal_on_paper_are_as_far(parts: list[tuple[int, int]]) -> None:
    """Reciprocal ranks and shares of three are no binary fractions; their sums tie all the same."""
    paper = [Fraction(max(-down, min(up, down)), down) for up, down in parts]
    found = p_values("randomization", np.array([[float(each)] for each in paper]), 1000, 0)
    assert found.tolist() == [float(randomized_slowly(paper))]


def test_thirds_tie() -> None:
    # 2/3 + 2/3 − 1/3 = 1 = 1/3 + 1/3 + 1/3; 18 of 32 sign patterns reach 1.
    thirds = np.array([[2 / 3], [2 / 3], [1 / 3], [-1 / 3], [-1 / 3]])
    assert p_values("randomization", thirds, 1000, 0).tolist() == [18 / 32]


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
@pytest.mark.parametrize("n", [10, 40])
def test_units_do_not_matter(test: str, n: int) -> None:
    """Recall of three groups, and how many of them were met."""
    rng = np.random.default_rng(4)
    met = (rng.integers(0, 4, (n, 30)) - rng.integers(0, 4, (n, 30))).astype(np.float64)
    assert p_values(test, met / 3, 2000, 0).tolist() == p_values(test, met, 2000, 0).tolist()


@pytest.mark.parametrize("n", [3, 8, 12])
def test_exact_p_values_are_scipys(n: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    first, second = ndcg_like(np.random.default_rng(n), (2, n))
    expected = stats.permutation_test(
        (first, second), lambda a, b: (a - b).sum(), permutation_type="samples", n_resamples=np.inf
    )
    found = p_values("randomization", (first - second)[:, None], 10_000, 0)
    assert found[0] == pytest.approx(expected.pvalue, abs=1e-12)


def test_random_p_values_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    resamples, rng = 20_000, np.random.default_rng(8)
    base = ndcg_like(rng, (60, 1))
    differences = 0.6 * (ndcg_like(rng, (60, 5)) - base) + np.linspace(0, 0.08, 5)
    for column, found in zip(differences.T, p_values("randomization", differences, resamples, 0).tolist()):
        expected = stats.permutation_test(
            (column, np.zeros_like(column)),
            lambda a, b, axis: (a - b).sum(axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=resamples,
            batch=2000,
            rng=np.random.default_rng(1),
        ).pvalue
        # Both are random: the variance of the difference is twice that of one share.
        assert abs(found - expected) < 4 * math.sqrt(2 * expected * (1 - expected) / resamples) + 1 / resamples


def test_random_p_values_are_a_count_of_drawn_patterns() -> None:
    differences, resamples = dyadic(30, 3), 400
    coins = np.concatenate(list(halves(30, resamples, 9))).tolist()
    found = p_values("randomization", differences, resamples, 9)
    for column, p in zip(differences.T.tolist(), found.tolist()):
        far = sum(abs(sum(d if coin else -d for d, coin in zip(column, row))) >= abs(sum(column)) for row in coins)
        assert p == (1 + far) / (1 + resamples)


def test_exact_and_random_meet() -> None:
    # 13 queries differ: all 8,192 patterns, or 8,191 random ones of them.
    differences = dyadic(14)[1:]
    assert (differences != 0).sum() == 13
    exact, drawn = (p_values("randomization", differences, resamples, 0)[0] for resamples in (8192, 8191))
    assert abs(exact - drawn) < 4 * math.sqrt(exact * (1 - exact) / 8191)
    assert exact != drawn


def test_false_alarms_of_randomization() -> None:
    """Skewed magnitudes with fair signs: the null holds exactly, and p ≤ 0.05 comes in 5 % of 2,000 tables."""
    rng = np.random.default_rng(30)
    shape = (30, 2000)
    differences = rng.choice([-1.0, 1.0], shape) * rng.lognormal(0, 1.5, shape) / 50
    p = p_values("randomization", differences, 999, 0)
    for alpha in (0.01, 0.05, 0.1):
        assert abs((p <= alpha).mean() - alpha) < 3 * math.sqrt(alpha * (1 - alpha) / 2000)


# The other tests.


def test_student_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    rng = np.random.default_rng(2)
    first, second = ndcg_like(rng, (25, 6)), ndcg_like(rng, (25, 6))
    expected = stats.ttest_rel(first, second).pvalue
    assert p_values("t", first - second, 10, 0) == pytest.approx(expected, rel=1e-8)
    # n = 3, d = 1, 2, 3: t = 2 ÷ √(1 ÷ 3) = √12; with 2 degrees p = 1 − t ÷ √(2 + t²) = 1 − √(12 ÷ 14).
    assert p_values("t", np.array([[0.1], [0.2], [0.3]]), 10, 0)[0] == pytest.approx(1 - math.sqrt(12 / 14), rel=1e-8)


@pytest.mark.parametrize("n", [6, 13, 49, 60])
def test_wilcoxon_is_scipys(n: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    differences = on_grid(np.random.default_rng(n).normal(0.2, 1, (n, 4)))
    differences[:2, 0] = 0.0
    differences[:4, 1] = 0.25
    expected = [stats.wilcoxon(column).pvalue for column in differences.T]
    assert p_values("wilcoxon", differences, 10, 0).tolist() == expected


def test_wilcoxon_of_few_queries_is_exact() -> None:
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    # Ranks 1 to 5, those below 0 have ranks 1 and 2: W = min(12, 3) = 3, and 5 of 32 subsets of ranks sum to 3 or
    # less ({}, {1}, {2}, {3}, {1, 2}): p = 2 × 5 ÷ 32.
    differences = np.array([[-0.1], [-0.2], [0.3], [0.4], [0.5]])
    assert p_values("wilcoxon", differences, 10, 0)[0] == pytest.approx(10 / 32, rel=1e-12)


def bootstrapped_slowly(column: Sequence[float], counts: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The p-value, and how close the nearest t came to the observed one."""
    n = len(column)
    mean = math.fsum(column) / n

    def t(values: Sequence[float]) -> float:
        own = math.fsum(values) / n
        variance = math.fsum((value - own) ** 2 for value in values) / (n - 1)
        if variance < 1e-12:
            return math.inf if abs(own) > 1e-12 else 0.0
        return abs(own) / math.sqrt(variance / n)

    observed, far, nearest = t(column), 0, math.inf
    for row in counts:
        again = t([value - mean for value, count in zip(column, row) for _ in range(int(count))])
        far += again >= observed
        nearest = min(nearest, abs(again - observed))
    return (1 + far) / (1 + len(counts)), nearest


@pytest.mark.parametrize("n", [2, 5, 30])
def test_bootstrap_is_a_count_of_drawn_resamples(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.2, 1, (n, 4))
    counts = np.concatenate(list(resampled_counts(n, 300, 9))).tolist()
    for column, p in zip(differences.T.tolist(), p_values("bootstrap", differences, 300, 9).tolist()):
        expected, nearest = bootstrapped_slowly(column, counts)
        # The reference cannot say which side a tie is on.
        assert p == expected or nearest < 1e-9


def test_bootstrap_and_student_agree_on_many_normal_differences() -> None:
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    differences = np.random.default_rng(6).normal(0.1, 1, (400, 8))
    assert p_values("bootstrap", differences, 4000, 0) == pytest.approx(p_values("t", differences, 1, 0), abs=0.03)


# Corrections.


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_corrections_are_those_of_statsmodels(correction: str) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason=NEEDS_STATSMODELS)
    rng = np.random.default_rng(3)
    for count in (1, 2, 3, 7, 40):
        for p in (rng.random(count), rng.random(count) ** 4, rng.integers(0, 4, count) / 20, np.zeros(count)):
            expected = multitest.multipletests(p, method=correction)[1]
            assert corrected(correction, p) == pytest.approx(expected, rel=1e-12)
            # NaN are no comparisons, wherever they stand.
            holes = np.full(2 * count + 1, np.nan)
            holes[1::2] = p
            found = corrected(correction, holes)
            assert np.isnan(found[::2]).all()
            assert found[1::2] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "none"])
def test_nothing_is_corrected_where_nothing_is_known(correction: str) -> None:
    given = np.array([np.nan, np.nan])
    assert corrected(correction, np.zeros(0)).tolist() == []
    assert np.isnan(corrected(correction, given)).all()
    one = np.array([0.25, np.nan])
    assert corrected(correction, one)[0] == 0.25
    assert one[0] == 0.25


# Tukey.


@pytest.mark.parametrize(("n", "systems"), [(2, 3), (12, 2), (12, 4), (40, 3)])
def test_tukey_by_the_studentized_range(n: int, systems: int) -> None:
    """The residual mean square comes from least squares on indicators of queries and systems."""
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = ndcg_like(np.random.default_rng(n + systems), (n, systems)) + np.linspace(0, 0.3, systems)
    design = np.zeros((n * systems, n + systems - 1))
    for query, system in itertools.product(range(n), range(systems)):
        design[query * systems + system, query] = 1
        if system:
            design[query * systems + system, n + system - 1] = 1
    squares = float(np.linalg.lstsq(design, values.ravel(), rcond=None)[1][0])
    degrees = n * systems - design.shape[1]
    found = tukey(values, Settings(test="t"))
    for a, b in itertools.product(range(systems), repeat=2):
        q = abs(values[:, a].mean() - values[:, b].mean()) / math.sqrt(squares / degrees / n)
        assert found[a, b] == pytest.approx(stats.studentized_range.sf(q, systems, degrees), abs=1e-8)


def test_tukey_of_two_systems_is_the_t_test() -> None:
    """q = √2 t for two systems, and their p-values are one."""
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = ndcg_like(np.random.default_rng(1), (25, 2))
    expected = p_values("t", values[:, :1] - values[:, 1:], 1, 0)[0]
    assert tukey(values, Settings(test="t"))[0, 1] == pytest.approx(expected, abs=1e-6)


def tukey_slowly(values: Floats, orders: Sequence[Sequence[Sequence[int]]]) -> list[list[float]]:
    """Permutations of the queries on which systems differ, one after another, with exact fractions of sixteenths."""
    rows = [[Fraction(each) for each in row] for row in values.tolist()]
    width = len(rows[0])
    totals = [sum(row[system] for row in rows) for system in range(width)]
    moving = [row for row in rows if len(set(row)) > 1]
    ranges = []
    for order in orders:
        sums = [sum(row[places[system]] for row, places in zip(moving, order)) for system in range(width)]
        ranges.append(max(sums) - min(sums))
    return [[(1 + sum(each >= abs(a - b) for each in ranges)) / (1 + len(ranges)) for b in totals] for a in totals]


def test_randomized_tukey_is_a_count_of_drawn_permutations() -> None:
    values = dyadic(12, 4) + np.linspace(0, 0.25, 5)[:4]
    values[3] = 0.5
    orders = np.concatenate(list(permutations(11, 4, 200, 2))).tolist()
    assert tukey(values, Settings(resamples=200, seed=2)).tolist() == tukey_slowly(values, orders)


def test_randomized_tukey_in_other_units() -> None:
    met = np.random.default_rng(4).integers(0, 4, (20, 4)).astype(np.float64)
    thirds, whole = tukey(met / 3, Settings(resamples=500)), tukey(met, Settings(resamples=500))
    assert thirds.tolist() == whole.tolist()


def test_both_tukeys_agree_on_normal_values() -> None:
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = np.random.default_rng(5).normal(0, 1, (60, 4)) + np.linspace(0, 0.6, 4)
    by_range, drawn = tukey(values, Settings(test="t")), tukey(values, Settings(resamples=4000))
    assert drawn == pytest.approx(by_range, abs=0.03)
    assert np.diag(drawn).tolist() == [1.0] * 4


# Intervals.


def interval_slowly(
    column: Sequence[float], bounds: tuple[float, float] | None, level: float, counts: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """What the docstring of `groupgt.comparison.intervals` says, with loops; roots are found by halving."""
    n = len(column)
    low, high = bounds or (0.0, 0.0)

    def moments(values: Sequence[float]) -> tuple[float, float]:
        mean = math.fsum(values) / n
        return mean, math.fsum((value - mean) ** 2 for value in values) / (n - 1)

    def largest(mean: float) -> float:
        return (mean - low) * (high - mean)

    def share(mean: float, variance: float) -> float:
        return 1.0 if largest(mean) < 1e-12 else variance / largest(mean)

    def statistic(mean: float, variance: float, centre: float) -> float:
        square = variance if bounds is None else share(mean, variance) * largest(centre)
        if square < 1e-12:
            return math.inf if abs(mean - centre) > 1e-12 else 0.0
        return abs(mean - centre) / math.sqrt(square / n)

    mean, variance = moments(column)
    drawn = sorted(
        statistic(*moments([value for value, count in zip(column, row) for _ in range(int(count))]), mean)
        for row in counts
    )
    # The level × (R + 1)-th smallest: as many of R + 1 exchangeable statistics lie below it.
    student = student_quantile(level, n - 1)
    quantile = min(max(drawn[math.ceil(level * (len(drawn) + 1)) - 1], normal_quantile(level)), 1.25 * student)
    if variance < 1e-12:
        quantile = student
    if bounds is None:
        half = quantile * math.sqrt(variance / n)
        return mean - half, mean + half

    def end(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            if (mean - middle) ** 2 <= quantile**2 * share(mean, variance) * largest(middle) / n:
                inside = middle
            else:
                outside = middle
        return inside

    return end(mean, low), end(mean, high)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 3, 10, 40])
def test_intervals_by_the_formula(n: int, level: float) -> None:
    rng = np.random.default_rng(n)
    counts = np.concatenate(list(resampled_counts(n, 199, 6))).tolist()
    ones, scores = (rng.random((n, 2)) < 0.8).astype(np.float64), ndcg_like(rng, (n, 2))
    for values, bounds in (
        (ones, UNIT),
        (scores, UNIT),
        (scores - scores[:, ::-1], WIDE),
        (ones - ones[:, ::-1], WIDE),
        (rng.lognormal(1, 1, (n, 2)), None),
        (np.ones((n, 1)), UNIT),
        (np.zeros((n, 1)), UNIT),
        (np.full((n, 1), 0.1), UNIT),
    ):
        found = intervals(values, bounds, level, 199, 6)
        for column, ends in zip(values.T.tolist(), found.tolist()):
            # Where nearly the whole interval collapses, halving has the square root of a float's digits.
            assert ends == pytest.approx(interval_slowly(column, bounds, level, counts), abs=2e-8, rel=1e-9)


def test_more_is_kept_at_a_higher_level_and_the_mean_is_inside() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([ndcg_like(rng, (17, 30)), (rng.random((17, 30)) < 0.9).astype(np.float64)], axis=1)
    last = np.tile(values.mean(axis=0)[:, None], 2)
    for level in (0.5, 0.8, 0.9, 0.95, 0.99):
        found = intervals(values, UNIT, level, 999, 0)
        assert (found[:, 0] <= last[:, 0] + 1e-9).all()
        assert (found[:, 1] >= last[:, 1] - 1e-9).all()
        last = found
    assert last.min() >= 0
    assert last.max() <= 1


def test_intervals_turn_with_the_scale() -> None:
    """1 − x has the interval of x turned round; so has −x of differences, and a shift moves an unbounded one."""
    values = np.round(ndcg_like(np.random.default_rng(2), (20, 5)) * 64) / 64
    there, back = intervals(values, UNIT, 0.95, 499, 0), intervals(1 - values, UNIT, 0.95, 499, 0)
    assert 1 - back[:, ::-1] == pytest.approx(there, abs=1e-9)
    there, back = intervals(values, WIDE, 0.95, 499, 0), intervals(-values, WIDE, 0.95, 499, 0)
    assert -back[:, ::-1] == pytest.approx(there, abs=1e-9)
    there, back = intervals(values, None, 0.95, 499, 0), intervals(8 * values + 1024, None, 0.95, 499, 0)
    assert (back - 1024) / 8 == pytest.approx(there, abs=1e-6)


def test_quantiles_of_student() -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    for level in (0.8, 0.9, 0.95, 0.98, 0.99):
        assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2), rel=1e-12)
        for degrees in (1, 2):
            assert student_quantile(level, degrees) == pytest.approx(stats.t.ppf((1 + level) / 2, degrees), rel=1e-12)
        for degrees in (*range(3, 40), 100, 1000):
            error = abs(student_quantile(level, degrees) / stats.t.ppf((1 + level) / 2, degrees) - 1)
            # Worst of all: 0.74 % at 0.95 and 3.4 % at 0.99, with 3 degrees.
            assert error < (0.0075 if level <= 0.95 else 0.034 if degrees == 3 else 0.0125)


@pytest.mark.parametrize("share", [0.5, 0.6, 0.7, 0.75, 0.85, 0.9])
def test_coverage_of_shares(share: float) -> None:
    """For 0/1 values there are but n + 1 different columns: each weighs as much as the binomial says."""
    n = 40
    columns = (np.arange(n)[:, None] < np.arange(n + 1)).astype(np.float64)
    found = intervals(columns, UNIT, 0.95, 2000, 0)
    weights = np.array([math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)])
    covered = weights[(found[:, 0] <= share) & (share <= found[:, 1])].sum()
    assert 0.93 < covered < 0.97


def test_coverage_of_skewed_metrics() -> None:
    """2,000 tables of 40 queries each: one standard error of the coverage is 0.5 points."""
    rng = np.random.default_rng(40)
    shape = (40, 2000)
    # Recall 0.02 × 0 + 0.18 × 0.5 + 0.8 × 1 = 0.89; half of all paired differences are 0.
    recall = rng.choice([0.0, 0.5, 1.0], shape, p=[0.02, 0.18, 0.8])
    paired = np.where(rng.random(shape) < 0.5, 0.0, ndcg_like(rng, shape) - rng.beta(2, 2, shape))
    for values, bounds, mean in (
        (recall, UNIT, 0.89),
        (ndcg_like(rng, shape), UNIT, NDCG_MEAN),
        (paired, WIDE, 0.5 * (NDCG_MEAN - 0.5)),
    ):
        found = intervals(values, bounds, 0.95, 999, 0)
        assert 0.93 < ((found[:, 0] <= mean) & (mean <= found[:, 1])).mean() < 0.97


# The same bits, everywhere.


def everything() -> list[float]:
    """All that is drawn for one table of 57 queries and 80 columns."""
    values = np.concatenate([dyadic(57, 40), ndcg_like(np.random.default_rng(0), (57, 40))], axis=1)
    found = [intervals(values, WIDE, 0.95, 1000, 1), p_values("randomization", values, 1000, 1)]
    found += [p_values("bootstrap", values, 1000, 1), tukey(values[:, :5], Settings(resamples=300, seed=1))]
    return [float(each) for part in found for each in part.ravel()]


def test_golden_values() -> None:
    """What any machine and any NumPy must find for one seed: thousandths are counts of drawn patterns.

    Recorded on Linux (x86-64) with NumPy 2.4.6; each is found again by the slow references of this file.
    """
    differences = dyadic(30, 3) + np.array([1, 2, 3]) / 16
    coins = np.concatenate(list(halves(30, 999, 7))).tolist()
    counts = np.concatenate(list(resampled_counts(30, 999, 7))).tolist()
    # On two of the 30 queries all three systems agree; they stay what they are.
    orders = np.concatenate(list(permutations(28, 3, 999, 7))).tolist()
    columns = differences.T.tolist()
    far = [
        sum(abs(sum(d if c else -d for d, c in zip(each, row))) >= abs(sum(each)) for row in coins) for each in columns
    ]
    assert [1 + each for each in far] == [292, 74, 2]
    assert p_values("randomization", differences, 999, 7).tolist() == [0.292, 0.074, 0.002]
    assert [bootstrapped_slowly(each, counts)[0] for each in columns] == [0.264, 0.06, 0.003]
    assert p_values("bootstrap", differences, 999, 7).tolist() == [0.264, 0.06, 0.003]
    honest = [[1.0, 0.728, 0.308], [0.728, 1.0, 0.728], [0.308, 0.728, 1.0]]
    assert tukey_slowly(differences, orders) == honest
    assert tukey(differences, Settings(resamples=999, seed=7)).tolist() == honest
    ends = np.array(
        [[-0.05802306334, 0.201390035968], [-0.008508057899, 0.254129682502], [0.076185412962, 0.274391408578]]
    )
    assert np.array([interval_slowly(each, WIDE, 0.95, counts) for each in columns]) == pytest.approx(ends, abs=2e-12)
    assert intervals(differences, WIDE, 0.95, 999, 7) == pytest.approx(ends, abs=2e-12)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = everything()
    # Nothing is kept, so that all is drawn again: in small blocks, and row by row.
    monkeypatch.setattr(intervals_module, "KEPT", 0)
    monkeypatch.setattr(intervals_module, "ROWS_AT_ONCE", 1000)
    monkeypatch.setattr(intervals_module, "ROOM", 12_000)
    assert everything() == whole
    monkeypatch.setattr(intervals_module, "CACHED", 10)
    assert everything() == whole


@pytest.mark.parametrize("bounds", [UNIT, WIDE, None])
def test_intervals_do_not_depend_on_other_columns(bounds: tuple[float, float] | None) -> None:
    values = ndcg_like(np.random.default_rng(1), (57, 9))
    together = intervals(values, bounds, 0.95, 500, 0).tolist()
    assert [intervals(values[:, [c]], bounds, 0.95, 500, 0).tolist()[0] for c in range(9)] == together
    assert intervals(values[:, ::-1], bounds, 0.95, 500, 0).tolist() == together[::-1]


def test_every_column_may_have_its_own_bounds() -> None:
    values = ndcg_like(np.random.default_rng(1), (30, 4))
    bounds = [UNIT, None, WIDE, (-1.0, 3.0)]
    alone = [intervals(values[:, [c]], each, 0.95, 500, 0).tolist()[0] for c, each in enumerate(bounds)]
    assert intervals(values, bounds, 0.95, 500, 0).tolist() == alone


@pytest.mark.parametrize("test", list(TESTS))
def test_p_values_do_not_depend_on_other_columns(test: str) -> None:
    if test in ("t", "wilcoxon"):
        pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = ndcg_like(np.random.default_rng(1), (57, 10)) - ndcg_like(np.random.default_rng(2), (57, 10))
    values[:, 9] = 0.0
    values[8:, 8] = 0.0
    together = p_values(test, values, 500, 0)
    alone = [p_values(test, values[:, [c]], 500, 0)[0] for c in range(10)]
    # SciPy's t adds in an order of its own.
    assert together.tolist() == (pytest.approx(alone, rel=1e-12) if test == "t" else alone)


def test_threads_do_not_matter() -> None:
    program = (
        "import hashlib, struct\n"
        "from tests.comparison.test_statistics import everything\n"
        "found = everything()\n"
        "print(hashlib.sha256(struct.pack(f'{len(found)}d', *found)).hexdigest())\n"
    )
    seen = set()
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        seen.add(
            subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
        )
    assert len(seen) == 1


def test_order_of_queries_matters_to_no_exact_test() -> None:
    differences = dyadic(12, 3)
    assert (
        p_values("randomization", differences, 10_000, 0).tolist()
        == p_values("randomization", differences[::-1], 10_000, 3).tolist()
    )


def test_sums_on_the_grid_are_exact() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e6, 1e12):
        column = rng.normal(0, scale, (999, 1))
        exact = on_grid(column)
        assert np.abs(exact - column).max() <= max(2.0**-41, scale * 5 * 999 * 2.0**-51)
        total = sum(Fraction(each) for each in exact.ravel().tolist())
        assert Fraction(float(exact.sum())) == total == Fraction(float(exact[::-1].cumsum()[-1]))


# Edges.


@pytest.mark.parametrize("test", list(TESTS))
def test_edges_of_tests(test: str) -> None:
    if test in ("t", "wilcoxon"):
        pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    assert np.isnan(p_values(test, np.zeros((0, 2)), 99, 0)).all()
    assert p_values(test, np.zeros((5, 0)), 99, 0).shape == (0,)
    for n in (1, 2, 5):
        assert p_values(test, np.zeros((n, 2)), 99, 0).tolist() == [1.0, 1.0]
    # Rounding errors are no differences.
    assert p_values(test, np.full((5, 1), 0.1 + 0.2 - 0.3), 99, 0).tolist() == [1.0]


def test_one_query() -> None:
    one = np.array([[0.5]])
    # Both signs are as far from 0 as the one observed.
    assert p_values("randomization", one, 99, 0).tolist() == [1.0]
    assert np.isnan(p_values("bootstrap", one, 99, 0)).all()
    for bounds in (UNIT, None):
        assert np.isnan(intervals(one, bounds, 0.95, 99, 0)).all()
        assert np.isnan(intervals(np.zeros((0, 1)), bounds, 0.95, 99, 0)).all()
        assert intervals(np.zeros((4, 0)), bounds, 0.95, 99, 0).shape == (0, 2)


def test_one_query_of_ten_differs() -> None:
    differences = np.zeros((10, 1))
    differences[4] = 0.5
    assert p_values("randomization", differences, 99, 0).tolist() == [1.0]
    # The observed t is 1: mean 0.05, standard error √(0.25 × 0.9 ÷ 9 ÷ 10) = 0.05. A resample with the query c times
    # has mean (c − 1) ÷ 20 and t = 3 |c − 1| ÷ √(c (10 − c)): infinite for c = 0, 0 for 1, 0.75 for 2, 1.31 for 3 and
    # more from there, so it is as far with probability 0.9^10 + 1 − (0.9^10 + 10 × 0.1 × 0.9^9 + 45 × 0.01 × 0.9^8).
    expected = 1 - 0.9**9 - 0.45 * 0.9**8
    found = p_values("bootstrap", differences, 9999, 0)[0]
    assert found == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 9999))
    low, high = intervals(differences, WIDE, 0.95, 999, 0)[0].tolist()
    assert low < 0.05 < high


def test_all_differ_alike() -> None:
    # Two of 2^n patterns are as far.
    for n in (2, 5):
        assert p_values("randomization", np.full((n, 1), 0.1), 99, 0).tolist() == [2 / 2**n]
    # No resample of the centred differences is as far: 1 ÷ (1 + 99).
    assert p_values("bootstrap", np.full((5, 1), 0.1), 99, 0).tolist() == [1 / 100]


def test_intervals_of_one_value() -> None:
    """At a bound the score interval is [0, c ÷ (1 + c)] with c = t² ÷ n; between bounds nothing varies."""
    for n in (2, 5, 40):
        t = student_quantile(0.95, n - 1)
        end = t * t / n / (1 + t * t / n)
        found = intervals(np.array([[0.0, 1.0, 0.5, 0.1]] * n), UNIT, 0.95, 99, 0)
        assert found == pytest.approx(np.array([[0, end], [1 - end, 1], [0.5, 0.5], [0.1, 0.1]]), abs=1e-9)
        assert intervals(np.full((n, 1), 7.0), None, 0.95, 99, 0).tolist() == [[7.0, 7.0]]
        found = intervals(np.array([[-1.0, 0.0, 1.0]] * n), WIDE, 0.95, 99, 0)
        assert found == pytest.approx(np.array([[-1, -1 + 2 * end], [0, 0], [1 - 2 * end, 1]]), abs=1e-9)


def test_few_resamples_give_the_widest_quantile() -> None:
    """0.95 × (10 + 1) is above 10: no resample says where 95 % end, and 1.25 t stands in."""
    values = np.array([[1.0], [2.0], [4.0], [5.0]])
    # Mean 3, s² = (4 + 1 + 1 + 4) ÷ 3, half = 1.25 t √(s² ÷ 4).
    half = 1.25 * student_quantile(0.95, 3) * math.sqrt(10 / 3 / 4)
    assert intervals(values, None, 0.95, 10, 0)[0] == pytest.approx([3 - half, 3 + half], rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 1 - 2**-53, 1.0]), min_size=2, max_size=12), st.integers(0, 3))
def test_no_interval_or_p_value_is_lost(values: list[float], seed: int) -> None:
    column = np.array(values)[:, None]
    for bounds in (UNIT, None):
        low, high = intervals(column, bounds, 0.95, 50, seed)[0].tolist()
        # The grid is 2^-40 wide.
        assert low - 1e-12 <= math.fsum(values) / len(values) <= high + 1e-12
    for test in ("randomization", "bootstrap"):
        assert 0 < p_values(test, column - 0.5, 50, seed)[0] <= 1


def test_edges_of_tukey() -> None:
    few = Settings(resamples=99)
    for shape in ((0, 3), (1, 3), (5, 1)):
        assert np.isnan(tukey(np.zeros(shape), few)).all()
    assert tukey(np.ones((5, 3)), few).tolist() == [[1.0] * 3] * 3
    alike = tukey(np.array([[0.25, 0.25, 0.5]] * 6), few)
    assert alike[0, 1] == 1.0
    assert alike[0, 2] == alike[1, 2] < 0.1


def test_edges_of_tukey_by_the_range() -> None:
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    ranged = Settings(test="t")
    assert np.isnan(tukey(np.zeros((1, 3)), ranged)).all()
    assert tukey(np.ones((5, 3)), ranged).tolist() == [[1.0] * 3] * 3
    # Nothing is left over: any difference is certain.
    assert tukey(np.array([[0.0, 1.0], [0.25, 1.25]]), ranged).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_tukey_of_many_queries_is_quiet() -> None:
    """SciPy's integral warns with many degrees of freedom; whoever compares systems need not hear of it."""
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    values = np.random.default_rng(0).normal(size=(1000, 10))
    assert np.isfinite(tukey(values, Settings(test="t"))).all()
