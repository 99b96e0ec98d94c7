"""Tests of significance and corrections, against slow references, SciPy, statsmodels and simulation."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupgt.comparison.draws import halves, on_grid, resampled_counts
from groupgt.comparison.reach import fewest_differing
from groupgt.comparison.tests import TESTS, alpha_at, corrected, p_values
from tests.comparison.slowly import (
    NEEDS_SCIPY,
    NEEDS_STATSMODELS,
    bootstrapped_slowly,
    dyadic,
    ndcg_like,
    order_of_draws,
    randomized_slowly,
)


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=8))
def test_all_sign_patterns_are_counted(eighths: list[int]) -> None:
    found = p_values("randomization", np.array([[each / 8] for each in eighths]), 1000, 0)
    assert found.tolist() == [float(randomized_slowly([Fraction(each, 8) for each in eighths]))]


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


@pytest.mark.property
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
        column = order_of_draws(column)
        far = sum(abs(sum(d if coin else -d for d, coin in zip(column, row))) >= abs(sum(column)) for row in coins)
        assert p == (1 + far) / (1 + resamples)


@given(
    st.lists(st.sampled_from([-1, -0.5, 0, 0.25, 0.5, 1]), min_size=2, max_size=40), st.randoms(use_true_random=False)
)
def test_draws_depend_neither_on_the_order_nor_on_the_side(differences: list[float], rng: random.Random) -> None:
    column = np.array(differences)[:, None]
    shuffled = np.array(rng.sample(differences, len(differences)))[:, None]
    for test in ("randomization", "bootstrap"):
        p = p_values(test, column, 99, 0)
        assert p.tolist() == pytest.approx(p_values(test, shuffled, 99, 0).tolist(), nan_ok=True)
        assert p.tolist() == pytest.approx(p_values(test, -column, 99, 0).tolist(), nan_ok=True)


@pytest.mark.parametrize("resamples", [1, 99, 100_000])
def test_fewer_than_15_differing_queries_are_counted(resamples: int) -> None:
    """Fourteen won by the same: 2 of 2^14 patterns, whatever is drawn; a fifteenth is drawn."""
    for differing, expected in ((14, 2 / 2**14), (15, 1 / (1 + resamples))):
        differences = np.concatenate([np.full((differing, 1), 0.25), np.zeros((5, 1))])
        found = p_values("randomization", differences, resamples, 0)[0]
        assert found == expected or (differing == 15 and resamples > 10_000 and found < 0.001)


@pytest.mark.property
def test_false_alarms_of_randomization() -> None:
    """Skewed magnitudes with fair signs: the null holds exactly, and p ≤ 0.05 comes in 5% of 2,000 tables."""
    rng = np.random.default_rng(30)
    shape = (30, 2000)
    differences = rng.choice([-1.0, 1.0], shape) * rng.lognormal(0, 1.5, shape) / 50
    p = p_values("randomization", differences, 999, 0)
    for alpha in (0.01, 0.05, 0.1):
        assert abs((p <= alpha).mean() - alpha) < 3 * math.sqrt(alpha * (1 - alpha) / 2000)


def test_student_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    rng = np.random.default_rng(2)
    first, second = ndcg_like(rng, (25, 6)), ndcg_like(rng, (25, 6))
    expected = stats.ttest_rel(first, second).pvalue
    assert p_values("t", first - second, 10, 0) == pytest.approx(expected, abs=1e-12)
    # n = 3, d = 1, 2, 3: t = 2 ÷ √(1 ÷ 3) = √12; with 2 degrees p = 1 − t ÷ √(2 + t²) = 1 − √(12 ÷ 14).
    assert p_values("t", np.array([[0.1], [0.2], [0.3]]), 10, 0)[0] == pytest.approx(1 - math.sqrt(12 / 14), rel=1e-8)


# Of 13 queries or fewer SciPy tries every sign, one after another.
@pytest.mark.parametrize("n", [6, pytest.param(13, marks=pytest.mark.property), 49, 60])
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


def test_wilcoxon_of_differences_that_are_equal_on_paper() -> None:
    """SciPy alone ranks .3 − .2 below .1 − 0; docs/compare.md says so."""
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    first, second = np.array([0.3, 0, 0.3, 0.7, 0.9, 0.8]), np.array([0.2, 0.1, 0.2, 0.2, 0.3, 0])
    assert stats.wilcoxon(first, second).pvalue == pytest.approx(0.15625)
    # The ranks of the sizes .1 .1 .1 .5 .6 .8 are 2 2 2 4 5 6: 2 × 4 of 64 subsets sum to 2 or less.
    assert p_values("wilcoxon", (first - second)[:, None], 10, 0)[0] == pytest.approx(8 / 64, rel=1e-12)


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


def test_order_of_queries_matters_to_no_exact_test() -> None:
    differences = dyadic(12, 3)
    assert (
        p_values("randomization", differences, 10_000, 0).tolist()
        == p_values("randomization", differences[::-1], 10_000, 3).tolist()
    )


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


def test_all_differ_alike() -> None:
    # Two of 2^n patterns are as far.
    for n in (2, 5):
        assert p_values("randomization", np.full((n, 1), 0.1), 99, 0).tolist() == [2 / 2**n]
    # The others divide by the spread of the differences, which is 0 but for rounding.
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    alike = np.array([[0.9 - 0.8], [0.3 - 0.2], [0.1]])
    for test in ("t", "bootstrap"):
        assert np.isnan(p_values(test, alike, 99, 0)).all()
        assert np.isnan(p_values(test, alike[:1], 99, 0)).all()
    # Three ranks on one side: 2 of 2^3 patterns.
    assert p_values("wilcoxon", alike, 99, 0).tolist() == [0.25]


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


def test_alpha_of_a_single_comparison() -> None:
    alphas = [round(alpha_at(name, 0.05, 5, 1), 4) for name in ("none", "bonferroni", "holm", "bh")]
    assert alphas == [0.05, 0.01, 0.0125, 0.01]
    assert [fewest_differing(0.05), fewest_differing(0.05, comparisons=10)] == [6, 9]
