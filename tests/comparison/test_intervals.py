"""Intervals of means, against a slow reference, SciPy's quantiles and the coverage they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupgt.comparison.draws import resampled_counts
from groupgt.comparison.intervals import UNBOUNDED, intervals, normal_quantile, student_quantile
from groupgt.comparison.tests import p_values
from tests.comparison.slowly import (
    NDCG_MEAN,
    NEEDS_SCIPY,
    UNIT,
    WIDE,
    interval_slowly,
    ndcg_like,
)


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
        (rng.lognormal(1, 1, (n, 2)), UNBOUNDED),
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
    there, back = intervals(values, UNBOUNDED, 0.95, 499, 0), intervals(8 * values + 1024, UNBOUNDED, 0.95, 499, 0)
    assert (back - 1024) / 8 == pytest.approx(there, abs=1e-6)


def test_quantiles_of_student() -> None:
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    for level in (0.8, 0.9, 0.95, 0.98, 0.99):
        assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2), rel=1e-12)
        for degrees in (1, 2):
            assert student_quantile(level, degrees) == pytest.approx(stats.t.ppf((1 + level) / 2, degrees), rel=1e-12)
        for degrees in (*range(3, 40), 100, 1000):
            error = abs(student_quantile(level, degrees) / stats.t.ppf((1 + level) / 2, degrees) - 1)
            # Worst of all: 0.74% at 0.95 and 3.4% at 0.99, with 3 degrees.
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


@pytest.mark.property
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


@pytest.mark.parametrize("bounds", [UNIT, WIDE, UNBOUNDED])
def test_intervals_do_not_depend_on_other_columns(bounds: tuple[float, float]) -> None:
    values = ndcg_like(np.random.default_rng(1), (57, 9))
    together = intervals(values, bounds, 0.95, 500, 0).tolist()
    assert [intervals(values[:, [c]], bounds, 0.95, 500, 0).tolist()[0] for c in range(9)] == together
    assert intervals(values[:, ::-1], bounds, 0.95, 500, 0).tolist() == together[::-1]


def test_every_column_may_have_its_own_bounds() -> None:
    values = ndcg_like(np.random.default_rng(1), (30, 4))
    bounds = [UNIT, UNBOUNDED, WIDE, (-1.0, 3.0)]
    alone = [intervals(values[:, [c]], each, 0.95, 500, 0).tolist()[0] for c, each in enumerate(bounds)]
    assert intervals(values, bounds, 0.95, 500, 0).tolist() == alone


def test_one_query() -> None:
    one = np.array([[0.5]])
    # Both signs are as far from 0 as the one observed.
    assert p_values("randomization", one, 99, 0).tolist() == [1.0]
    assert np.isnan(p_values("bootstrap", one, 99, 0)).all()
    for bounds in (UNIT, UNBOUNDED):
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


def test_intervals_of_one_value() -> None:
    """At a bound the score interval is [0, c ÷ (1 + c)] with c = t² ÷ n.

    Between bounds, c is smaller by the share (m² + (1 − m)²) ÷ (n + 1) ÷ (m (1 − m)) of the largest variance: for
    m = .1, .82 ÷ .09 ÷ (n + 1), at most n ÷ (n − 1). The interval has its middle at (m + c ÷ 2) ÷ (1 + c).
    """
    for n in (2, 5, 40):
        t = student_quantile(0.95, n - 1)
        end = t * t / n / (1 + t * t / n)
        found = intervals(np.array([[0.0, 1.0, 0.5, 0.1]] * n), UNIT, 0.95, 99, 0)
        between = []
        for m in (0.5, 0.1):
            c = t * t / n * min((m**2 + (1 - m) ** 2) / (n + 1) / (m * (1 - m)), n / (n - 1))
            middle, half = (m + c / 2) / (1 + c), math.sqrt(c * m * (1 - m) + c * c / 4) / (1 + c)
            between.append([middle - half, middle + half])
        assert found == pytest.approx(np.array([[0, end], [1 - end, 1], *between]), abs=1e-9)
        assert intervals(np.full((n, 1), 7.0), UNBOUNDED, 0.95, 99, 0).tolist() == [[7.0, 7.0]]
        low, middle_of_all, high = intervals(np.array([[-1.0, 0.0, 1.0]] * n), WIDE, 0.95, 99, 0).tolist()
        assert [low, high] == pytest.approx(np.array([[-1, -1 + 2 * end], [1 - 2 * end, 1]]), abs=1e-9)
        assert middle_of_all == pytest.approx([2 * end - 1 for end in between[0]], abs=1e-9)


def test_few_resamples_give_the_widest_quantile() -> None:
    """0.95 × (10 + 1) is above 10: no resample says where 95% end, and 1.25 t stands in."""
    values = np.array([[1.0], [2.0], [4.0], [5.0]])
    # Mean 3, s² = (4 + 1 + 1 + 4) ÷ 3, half = 1.25 t √(s² ÷ 4).
    half = 1.25 * student_quantile(0.95, 3) * math.sqrt(10 / 3 / 4)
    assert intervals(values, UNBOUNDED, 0.95, 10, 0)[0] == pytest.approx([3 - half, 3 + half], rel=1e-12)


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 1 - 2**-53, 1.0]), min_size=2, max_size=12), st.integers(0, 3))
def test_no_interval_or_p_value_is_lost(values: list[float], seed: int) -> None:
    column = np.array(values)[:, None]
    for bounds in (UNIT, UNBOUNDED):
        low, high = intervals(column, bounds, 0.95, 50, seed)[0].tolist()
        # The grid is 2^-40 wide.
        assert low - 1e-12 <= math.fsum(values) / len(values) <= high + 1e-12
    assert 0 < p_values("randomization", column - 0.5, 50, seed)[0] <= 1
    # Where all differences are equal, the bootstrap is undefined.
    p = p_values("bootstrap", column - 0.5, 50, seed)[0]
    alike = max(values) - min(values) < 1e-9 and abs(values[0] - 0.5) > 1e-9
    assert math.isnan(p) if alike else 0 < p <= 1
