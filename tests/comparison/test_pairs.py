"""All pairs, decided together: against a slow reference, by hand, SciPy, and the number of false alarms."""

from __future__ import annotations

import itertools
import math
from itertools import combinations

import numpy as np
import pytest

import groupgt
from groupgt.comparison.contrast import Contrast
from groupgt.comparison.draws import signs
from groupgt.comparison.pairs import contrasts_of_pairs, step_down
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import infer
from groupgt.metrics.language import parse_metric
from groupgt.model.hits import Floats
from tests.comparison.slowly import NEEDS_SCIPY, ndcg_like, step_down_slowly

pytestmark = pytest.mark.slow

METRIC = {"ndcg@5": parse_metric("ndcg@5", "autorag")}


def pairs_among(values: Floats, **settings: object) -> list[Contrast]:
    """Compares all pairs of the columns."""
    named = {f"s{at}": {"ndcg@5": column} for at, column in enumerate(values.T)}
    found = contrasts_of_pairs(named, METRIC, list(combinations(named, 2)), Settings(**settings))  # type: ignore[arg-type]
    return list(found.values())


@pytest.mark.parametrize(("n", "shift"), [(9, 0.5), (14, 0.2), (15, 0.2), (40, 0.1)])
def test_steps_are_those_of_loops(n: int, shift: float) -> None:
    rng = np.random.default_rng(n)
    differences = np.round((rng.normal(0, 0.3, (n, 5)) + shift * np.arange(5)) * 64) / 64 + 1 / 128
    rows = np.concatenate(list(signs(n, 400, 2))).tolist()
    raw = infer("randomization", differences, 400, 2).p_values
    p_values = step_down(list(differences.T), raw, Settings(resamples=400, seed=2))
    assert p_values.tolist() == step_down_slowly(differences.T.tolist(), rows, raw.tolist())


@pytest.mark.parametrize(("n", "shift"), [(9, 0.5), (14, 0.2), (15, 0.2), (40, 0.1), (30, 0.0)])
def test_intervals_of_pairs_are_those_of_their_own_test(n: int, shift: float) -> None:
    """Each at alpha ÷ (pairs that are not significant), inside the range, with a width, and as the test decides."""
    rng = np.random.default_rng(n)
    values = np.clip(ndcg_like(rng, (n, 4)) + shift * np.arange(4), 0, 1)
    values[:, 3] = values[:, 0] * 0.5  # a pair whose differences hardly vary
    found = pairs_among(values)
    left = max(sum(not each.significant for each in found), 1)
    for (first, second), pair in zip(combinations(range(4), 2), found):
        low, high = pair.delta_interval
        assert pair.confidence == 1 - 0.05 / left
        assert -1 <= low < high <= 1
        assert (low > 0 or high < 0) == pair.significant
        (alone,) = pairs_among(values[:, [first, second]], alpha=0.05 / left)
        if alone.significant == pair.significant:
            assert pair.delta_interval == pytest.approx(alone.delta_interval, abs=1e-12)


def test_no_interval_of_pairs_without_draws_for_it() -> None:
    """With 99 resamples, alpha ÷ 6 pairs = .0083 is below the least p, 1 ÷ 100."""
    values = ndcg_like(np.random.default_rng(1), (30, 4))
    assert all(math.isnan(each.delta_interval[0]) for each in pairs_among(values, resamples=99))
    assert not any(math.isnan(each.delta_interval[0]) for each in pairs_among(values, resamples=199))


def test_steps_by_hand() -> None:
    """Six queries and all pairs of opposite patterns of signs, 32.

    The first pair wins .5 six times, T = 6 ÷ √6. As far are the observed signs, and those that make the second pair win
    six times: 2 ÷ 32. The third pair differs twice, T = 2 ÷ √2: half of the patterns keep both together, and of the
    others the second pair gets beyond √2 if its other four signs are alike, 1 in 8: 1/2 + 1/16. The second pair wins
    four times and loses twice, T = 2 ÷ √6: as far are all patterns but the 20 of 64 with three signs each.
    """
    values = np.array([[0.5, 0.0, 0.0]] * 4 + [[0.5, 0.0, 1.0]] * 2)
    first, second, third = pairs_among(values, alpha=0.1)
    assert (first.raw_p_value, first.p_value, first.standing) == (1 / 32, 2 / 32, "better")
    assert (second.raw_p_value, second.p_value) == (44 / 64, 44 / 64)
    # Two queries differ: two of four patterns are as far.
    assert (third.raw_p_value, third.p_value) == (1 / 2, 9 / 16)


def test_forty_systems_can_be_told_apart() -> None:
    """780 pairs: p of 10,000 drawn patterns times 780 is never below .078, the maximum of all pairs may be."""
    rng = np.random.default_rng(3)
    values = (rng.random((30, 40)) < 0.5).astype(np.float64)
    values[:, 0], values[:, 39] = 1.0, 0.0
    best_and_worst = pairs_among(values)[38]
    assert best_and_worst.p_value < 0.001
    assert best_and_worst.significant
    corrected = pairs_among(values, correction="holm")[38]
    assert corrected.p_value == pytest.approx(780 / 10_001)
    assert not corrected.significant


def test_pairs_out_of_reach_are_told() -> None:
    truth = {f"q{n}": [["a"]] for n in range(80)}
    runs = {f"r{n}": {qid: ["a" if at >= n else "z"] for at, qid in enumerate(truth)} for n in range(0, 80, 20)}

    def told(**settings: object) -> str:
        return str(groupgt.compare(truth, runs, ["recall@1"], pairs=True, resamples=99, **settings))  # type: ignore[arg-type]

    # Six pairs, 1 ÷ 100 each: .06; 119 resamples give 6 ÷ 120 = .05.
    why = "99 resamples cannot give a p-value below 0.06 for 6 comparisons, but alpha is 0.05. Use at least 119"
    line = "pairs: p-values corrected (Holm) for 6 comparisons; none can be significant, because "
    assert f"{line}{why} resamples" in " ".join(told(correction="holm").split())
    together = told()
    assert "pairs: p-values corrected (step-down maximum) for 6 comparisons" in together
    assert "none can be significant" not in together


@pytest.mark.property
def test_false_alarms_over_all_pairs() -> None:
    """No system is better: some pair of eight is significant in 5% of 400 tables."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(400):
        values = 0.5 * ndcg_like(rng, (30, 8)) + 0.5 * rng.random((30, 1))
        alarms += any(each.significant for each in pairs_among(values, resamples=399))
    assert abs(alarms / 400 - 0.05) < 3 * math.sqrt(0.05 * 0.95 / 400)


def test_queries_that_count_for_some_systems() -> None:
    values = ndcg_like(np.random.default_rng(7), (24, 3))
    values[:3, 0], values[5, 2] = math.nan, math.nan
    first, second, third = pairs_among(values, resamples=199)
    assert [first.pairs, second.pairs, third.pairs] == [21, 20, 23]
    assert all(each.p_value >= each.raw_p_value for each in (first, second, third))
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    # The studentized range takes what counts for all.
    assert [each.pairs for each in pairs_among(values, test="t")] == [20, 20, 20]


@pytest.mark.parametrize(("n", "systems"), [(2, 3), (12, 2), (12, 4), (40, 3)])
def test_the_studentized_range(n: int, systems: int) -> None:
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
    error = math.sqrt(squares / degrees / n)
    reach = float(stats.studentized_range.isf(0.05, systems, degrees)) * error
    for (a, b), found in zip(combinations(range(systems), 2), pairs_among(values, test="t")):
        delta = values[:, a].mean() - values[:, b].mean()
        expected = stats.studentized_range.sf(abs(delta) / error, systems, degrees)
        assert found.p_value == pytest.approx(expected, abs=1e-8)
        assert found.delta_interval == pytest.approx((delta - reach, delta + reach), abs=1e-5)
        assert found.raw_p_value == pytest.approx(stats.ttest_rel(values[:, a], values[:, b]).pvalue, abs=1e-12)
        if systems == 2:
            # q = √2 t for two systems, and their p-values are one.
            assert found.p_value == pytest.approx(found.raw_p_value, abs=1e-6)


def test_edges_of_pairs() -> None:
    assert pairs_among(np.zeros((5, 1))) == []
    assert [each.p_value for each in pairs_among(np.ones((5, 3)))] == [1.0, 1.0, 1.0]
    assert math.isnan(pairs_among(np.zeros((0, 2)))[0].p_value)
    # Too few draws for alpha: nothing is significant, and there is no interval.
    (too_few,) = pairs_among(np.array([[1.0, 0.0]] * 20), resamples=9)
    assert too_few.p_value == 0.1
    assert math.isnan(too_few.delta_interval[0])
    pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    for values in (np.zeros((1, 3)), np.full((1, 3), math.nan)):
        assert all(math.isnan(each.p_value) for each in pairs_among(values, test="t"))
    assert [each.p_value for each in pairs_among(np.ones((5, 3)), test="t")] == [1.0, 1.0, 1.0]
    # All differences are equal: t is undefined.
    (alike,) = pairs_among(np.array([[0.0, 1.0], [0.25, 1.25]]), test="t")
    assert math.isnan(alike.p_value)
    assert not alike.significant
