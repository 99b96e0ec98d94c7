"""Power: against simulation, against statsmodels, and its own inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import groupgt

stats = pytest.importorskip("scipy.stats", reason="the extra groupgt[stats] is not installed")
from groupgt.comparison.power import detectable, needed, power  # noqa: E402  # after the check for SciPy


@pytest.mark.parametrize(("difference", "spread", "queries"), [(0.05, 0.2, 40), (0.1, 0.2, 40), (0.03, 0.25, 300)])
def test_power_is_that_of_simulated_t_tests(difference: float, spread: float, queries: int) -> None:
    """20,000 samples of normal differences: the share that the t test shows, within 4 standard errors."""
    rng = np.random.default_rng(1)
    samples = rng.normal(difference, spread, size=(20_000, queries))
    shown = float((stats.ttest_1samp(samples, 0, axis=1).pvalue <= 0.05).mean())
    expected = power(difference, spread, queries)
    assert abs(shown - expected) <= 4 * math.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.parametrize(
    ("difference", "spread", "queries", "alpha"),
    [(1, 0.05, 3, 0.05 / 100), (1, 0.02, 3, 0.05 / 1000), (1, 0.01, 2, 0.05 / 8), (1, 0.02, 4, 1e-6)],
)
def test_power_of_very_few_queries(difference: float, spread: float, queries: int, alpha: float) -> None:
    """400,000 samples, by the test's own formula."""
    rng = np.random.default_rng(4)
    samples = rng.normal(difference, spread, size=(400_000, queries))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / math.sqrt(queries))
    shown = float((np.abs(t) > stats.t.isf(alpha / 2, queries - 1)).mean())
    expected = power(difference, spread, queries, alpha)
    assert abs(shown - expected) <= 4 * math.sqrt(max(expected * (1 - expected), 1e-6) / 400_000) + 0.02


def test_power_holds_for_differences_as_metrics_have_them() -> None:
    """Most queries tie, some gain or lose .37, .5 or 1: 4,000 samples of 80, by t and by randomization."""
    from groupgt.comparison.tests import p_values

    rng = np.random.default_rng(2)
    population = rng.choice([0, 0, 0, 0.37, -0.37, 0.5, -0.5, 1.0, -0.6, -0.3], size=200_000) * 0.6
    population += 0.08 - population.mean()
    samples = rng.choice(population, size=(80, 4000))
    expected = power(0.08, float(population.std()), 80)
    by_t = float((stats.ttest_1samp(samples, 0, axis=0).pvalue <= 0.05).mean())
    by_signs = float((p_values("randomization", samples[:, :600], 1000, 3) <= 0.05).mean())
    assert abs(by_t - expected) < 0.025
    assert abs(by_signs - expected) < 0.07  # 600 samples: three standard errors are .06


def test_power_is_that_of_statsmodels() -> None:
    module = pytest.importorskip("statsmodels.stats.power", reason="statsmodels is not installed")
    for difference, spread, queries, alpha in ((0.05, 0.2, 40, 0.05), (0.02, 0.3, 500, 0.01), (0.3, 0.2, 5, 0.05)):
        expected = module.TTestPower().power(difference / spread, queries, alpha)
        assert power(difference, spread, queries, alpha) == pytest.approx(expected, abs=1e-9)


def test_what_is_detectable_is_shown_with_the_wanted_power() -> None:
    least = detectable(0.2, 50, 0.05, 0.8)
    assert least is not None
    assert power(least, 0.2, 50) == pytest.approx(0.8, abs=1e-9)


def test_what_is_needed_is_the_least() -> None:
    count = needed(0.05, 0.2)
    assert count is not None
    assert power(0.05, 0.2, count) >= 0.8 > power(0.05, 0.2, count - 1)
    # The textbook's (z.975 + z.8)² σ²/δ² = 7.849 · 16 = 125.6, and about two more for t.
    assert count == 128


def test_ends() -> None:
    assert power(0.1, 0.2, 1) == 0
    assert power(0.1, 0.0, 5) == 1
    assert power(0.0, 0.2, 50) == pytest.approx(0.05, abs=1e-12)
    assert power(100, 0.01, 1000) == 1
    assert needed(0, 0.2) is None
    assert needed(1e-9, 1.0) is None
    assert needed(0.1, 0.0) == 2
    assert detectable(0.2, 1) is None
    assert detectable(0.0, 5) == 0


def test_of_a_comparison() -> None:
    truth = {f"q{n}": [["a"]] for n in range(40)}
    runs = {
        "base": {qid: ["a"] if at % 2 else ["x"] for at, qid in enumerate(truth)},
        "other": {qid: ["a"] if at % 3 else ["x"] for at, qid in enumerate(truth)},
        "same": {qid: ["a"] if at % 2 else ["x"] for at, qid in enumerate(truth)},
    }
    table = groupgt.compare(truth, runs, ["recall"])
    other, same = table.power(difference=0.1)
    row = table["other"]["recall"]
    # Two comparisons: each has half of alpha.
    assert other.reached == power(0.1, row.spread, 40, 0.025)
    assert other.detectable == detectable(row.spread, 40, 0.025)
    # Nothing differs: there is nothing to go by.
    assert (same.spread, same.detectable, same.reached, same.needed) == (0, None, None, None)
    assert table.power()[0].difference == row.delta
    assert table.power()[1].needed is None
    with pytest.raises(groupgt.ConfigError, match="power: expected a number above 0"):
        table.power(wanted=1.0)
    with pytest.raises(groupgt.ConfigError, match="difference: expected a number other than 0"):
        table.power(difference=0)
