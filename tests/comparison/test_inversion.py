"""Tests turned round: the means that a paired test does not reject, and corrections that decide at one alpha each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupgt.comparison.draws import halves
from groupgt.comparison.intervals import delta_intervals
from groupgt.comparison.tests import CORRECTIONS, TESTS, alpha_at, corrected, infer, p_values
from groupgt.model.hits import Floats
from tests.comparison.slowly import NEEDS_SCIPY, NEEDS_STATSMODELS, WIDE, ndcg_like, order_of_draws

INVERTED = [name for name in TESTS if name != "wilcoxon"]


def needs(test: str) -> None:
    if TESTS[test].needs_scipy:
        pytest.importorskip("scipy", reason=NEEDS_SCIPY)


@pytest.mark.parametrize("test", INVERTED)
@pytest.mark.parametrize("n", [16, 41])
def test_ends_are_where_the_test_begins_to_reject(test: str, n: int) -> None:
    needs(test)
    rng = np.random.default_rng(n)
    differences = np.round(rng.normal(0.1, 0.4, (n, 8)) * 64) / 64
    alphas = np.array([0.05, 0.05, 0.05, 0.05, 0.01, 0.01, 0.025, 0.025])
    inverse = infer(test, differences, 999, 3, 0.05).inverse
    assert inverse is not None
    for column, alpha, (low, high) in zip(differences.T, alphas.tolist(), inverse(alphas).tolist()):
        for mean, rejected in ((low - 1e-7, True), (low + 1e-7, False), (high - 1e-7, False), (high + 1e-7, True)):
            p = p_values(test, (column - mean)[:, None], 999, 3)[0]
            assert (p <= alpha) == rejected


def test_ends_of_randomization_by_hand() -> None:
    """Of each draw the lesser and the greater of two means: of what keeps its sign, and of what changes it."""
    column = [0.5, -0.25, 0.125, 0.75, 0.25, -0.5, 0.375, 0.5, -0.25, 0.125, 0.75, 0.25, -0.5, 0.375, 0.25]
    lows, highs, given = [], [], column
    column = order_of_draws(column)
    for coins in np.concatenate(list(halves(15, 199, 5))).tolist():
        parts = [[d for d, coin in zip(column, coins) if coin == side] for side in (0.0, 1.0)]
        means = [sum(part) / len(part) if part else None for part in parts]
        lows.append(-math.inf if None in means else min(m for m in means if m is not None))
        highs.append(math.inf if None in means else max(m for m in means if m is not None))
    inverse = infer("randomization", np.array(given)[:, None], 199, 5, 0.1).inverse
    assert inverse is not None
    # p = (1 + as far) ÷ 200 is above 0.1 from the 20th on.
    assert inverse(np.array([0.1])).tolist() == [[sorted(lows)[19], sorted(highs)[-20]]]
    # No p is below 1 ÷ 200.
    assert inverse(np.array([0.004])).tolist() == [[-math.inf, math.inf]]


def test_ends_of_t_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    differences = ndcg_like(np.random.default_rng(2), (30, 3)) - 0.5
    inverse = infer("t", differences, 1, 0, 0.05).inverse
    assert inverse is not None
    expected = stats.ttest_rel(differences, np.zeros_like(differences)).confidence_interval(0.95)
    assert inverse(np.full(3, 0.05)) == pytest.approx(np.stack(expected, axis=1), abs=1e-9)


@pytest.mark.property
@pytest.mark.parametrize("n", [40, 82])
@pytest.mark.parametrize("test", INVERTED)
def test_coverage_of_dense_differences(test: str, n: int) -> None:
    needs(test)
    rng = np.random.default_rng(n)
    differences = ndcg_like(rng, (n, 2000)) - rng.beta(2, 2, (n, 2000))
    inverse = infer(test, differences, 999, 0, 0.05).inverse
    assert inverse is not None
    ends = inverse(np.full(2000, 0.05))
    mean = 0.25 + 0.6 * 2 / 3.5 - 0.5
    assert 0.935 < ((ends[:, 0] <= mean) & (mean <= ends[:, 1])).mean() < 0.97


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from(sorted(CORRECTIONS)))
def test_a_correction_decides_every_p_at_one_alpha(values: list[float], correction: str) -> None:
    rejected = corrected(correction, np.array(values)) <= 0.05
    alpha = alpha_at(correction, 0.05, len(values), int(rejected.sum()))
    for value, is_rejected in zip(values, rejected.tolist()):
        assert math.isclose(value, alpha, rel_tol=1e-9) or (value <= alpha) == is_rejected


def test_false_discovery_rate_is_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason=NEEDS_STATSMODELS)
    values = np.random.default_rng(1).random(40) ** 3
    assert corrected("bh", values) == pytest.approx(multitest.multipletests(values, method="fdr_bh")[1])
    # By hand: 0.01 · 3/1, 0.02 · 3/2 = 0.03, 0.9 · 3/3.
    assert corrected("bh", np.array([0.9, 0.01, math.nan, 0.02])).tolist()[:2] == [0.9, 0.03]


def delta_interval_of(test: str, columns: Floats, alpha: float = 0.05, resamples: int = 999) -> tuple[Floats, Floats]:
    """p-values and intervals of columns of differences."""
    inference = infer(test, columns, resamples, 0, alpha)
    alphas = np.full(columns.shape[1], alpha)
    rejected = inference.p_values <= alpha
    bounds = np.array([WIDE] * columns.shape[1])
    return inference.p_values, delta_intervals(columns, bounds, inference, alphas, rejected, resamples, 0)


@pytest.mark.parametrize("test", INVERTED)
@pytest.mark.parametrize("n", [2, 6, 12, 14, 15, 20, 40])
def test_zero_lies_inside_where_p_is_above_alpha(test: str, n: int) -> None:
    needs(test)
    rng = np.random.default_rng(n)
    columns = rng.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], (n, 60), p=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    for alpha in (0.05, 0.0125):
        p, ends = delta_interval_of(test, columns, alpha)
        known = ~np.isnan(ends[:, 0])
        assert ((ends[:, 0] <= 0) & (ends[:, 1] >= 0) == (p > alpha))[known].all()
        assert (known | np.isnan(p) | (p == 1)).all()
        assert (ends[:, 0] <= columns.mean(axis=0) + 1e-12)[known].all()
        assert (ends[:, 1] >= columns.mean(axis=0) - 1e-12)[known].all()
        if test == "randomization":
            assert known.all()
            assert np.abs(ends).max() <= 1


def test_what_differs_alike_everywhere_has_a_width() -> None:
    """All of 20 queries differ by 1, in a range of 2: the variance is taken to be 4 (1² + 0²) ÷ 21."""
    p, ends = delta_interval_of("randomization", np.array([[1.0, -1.0]] * 20))
    half = 2.09302 * math.sqrt(4 / 21 / 20)  # t of 19 degrees of freedom
    assert (p <= 0.05).all()
    assert ends == pytest.approx(np.array([[1 - half, 1], [-1, half - 1]]), abs=1e-5)


@pytest.mark.property
@pytest.mark.parametrize("n", [40, 82])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.4])
def test_coverage_of_sparse_differences(n: int, share: float) -> None:
    """0/1 metrics, of which few queries differ, two in three of them won."""
    rng = np.random.default_rng(n)
    won = 2 / 3
    columns = rng.choice([1.0, 0.0, -1.0], (n, 2000), p=[share * won, 1 - share, share * (1 - won)])
    mean = share * (2 * won - 1)
    _, ends = delta_interval_of("randomization", columns)
    covered = ((ends[:, 0] <= mean) & (mean <= ends[:, 1])).mean()
    assert covered > 0.93
