"""Power: against simulation, against statsmodels, and its own inverses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import groupgt
from tests.snapshots import Snapshot

stats = pytest.importorskip("scipy.stats", reason="the extra groupgt[stats] is not installed")
from groupgt.comparison.power import (  # noqa: E402  # after the check for SciPy
    Differences,
    enough_queries,
    power,
    power_of,
    smallest_difference,
)
from groupgt.comparison.settings import Settings  # noqa: E402
from groupgt.comparison.tests import p_values  # noqa: E402
from groupgt.report.power import whose_power  # noqa: E402


@pytest.mark.property
@pytest.mark.parametrize(("difference", "spread", "queries"), [(0.05, 0.2, 40), (0.1, 0.2, 40), (0.03, 0.25, 300)])
def test_power_is_that_of_simulated_t_tests(difference: float, spread: float, queries: int) -> None:
    """20,000 samples of normal differences: the share that the t test shows, within 4 standard errors."""
    rng = np.random.default_rng(1)
    samples = rng.normal(difference, spread, size=(20_000, queries))
    shown = float((stats.ttest_1samp(samples, 0, axis=1).pvalue <= 0.05).mean())
    expected = power(difference, spread, queries)
    assert abs(shown - expected) <= 4 * math.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.property
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


@pytest.mark.property
def test_power_holds_for_differences_as_metrics_have_them() -> None:
    """Most queries tie, some gain or lose .37, .5 or 1: 4,000 samples of 80, by t and by randomization."""
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


def by_t(difference: float, spread: float = 0.2, queries: int = 50) -> float:
    return power(difference, spread, queries)


def test_what_is_detectable_is_shown_with_the_wanted_power() -> None:
    least = smallest_difference(by_t, 0.8)
    assert least is not None
    assert by_t(least) == pytest.approx(0.8, abs=1e-9)
    assert smallest_difference(by_t, 0.8, least / 2) is None
    assert smallest_difference(lambda difference: 0.5, 0.8) is None


def test_what_is_needed_is_the_least() -> None:
    count = enough_queries(lambda queries: power(0.05, 0.2, queries), 0.8)
    assert count is not None
    assert power(0.05, 0.2, count) >= 0.8 > power(0.05, 0.2, count - 1)
    # The textbook's (z.975 + z.8)² σ²/δ² = 7.849 · 16 = 125.6, and about two more for t.
    assert count == 128
    assert enough_queries(lambda queries: power(0.1, 0.0, queries), 0.8) == 2
    assert enough_queries(lambda queries: power(1e-9, 1.0, queries), 0.8) is None


def test_ends() -> None:
    assert power(0.1, 0.2, 1) == 0
    assert power(0.1, 0.0, 5) == 1
    assert power(0.0, 0.2, 50) == pytest.approx(0.05, abs=1e-12)
    assert power(100, 0.01, 1000) == 1


def of_one_size(share: float, size: float = 1.0) -> Differences:
    return Differences(share, size, alike=True, spread=size * math.sqrt(share))


@pytest.mark.parametrize("test", ["randomization", "t"])
@pytest.mark.parametrize(("share", "difference", "alpha"), [(0.6, 0.4, 0.05), (0.9, 0.9, 0.2), (0.5, 0.7, 0.1)])
def test_power_of_one_size_is_the_share_of_all_outcomes(
    test: str, share: float, difference: float, alpha: float
) -> None:
    """Seven questions are won, tied or lost: 3^7 outcomes, each as likely as its parts, and each tested."""
    grown = max(share, difference)
    chances = {1: (grown + difference) / 2, 0: 1 - grown, -1: (grown - difference) / 2}
    outcomes = np.array(list(itertools.product(chances, repeat=7)), dtype=np.float64).T
    likely = np.array([math.prod(chances[int(each)] for each in column) for column in outcomes.T])
    shown = p_values(test, outcomes, 1000, 0) <= alpha * (1 + 1e-12)
    found = of_one_size(share, 0.5).power(difference / 2, 7, alpha, test)
    assert found == pytest.approx(float(likely[shown].sum()), abs=1e-10)


def test_few_questions_that_differ_show_less_than_t_promises() -> None:
    """82 questions, 5% of which differ, and a difference of .04: it takes six that differ and are won."""
    few = of_one_size(0.05)
    assert few.power(0.04, 82, 0.05, "randomization") == pytest.approx(0.119, abs=5e-4)
    assert power(0.04, math.sqrt(0.05 - 0.04**2), 82) == pytest.approx(0.370, abs=5e-4)
    assert few.power(0.04, 82, 0.05, "t") == pytest.approx(0.360, abs=5e-4)
    # Where many differ both agree.
    many = of_one_size(0.5)
    by_counts, by_spread = many.power(0.1, 400, 0.05, "randomization"), power(0.1, math.sqrt(0.5 - 0.01), 400)
    assert by_counts == pytest.approx(by_spread, abs=0.03)
    count = few.needed(0.04, 0.05, 0.8, "randomization")
    assert count is not None
    assert few.power(0.04, count, 0.05, "randomization") >= 0.8 > few.power(0.04, count - 1, 0.05, "randomization")


@pytest.mark.parametrize("test", ["t", "bootstrap"])
def test_a_test_without_power_at_the_largest_difference_detects_smaller_ones(test: str) -> None:
    """At 1, all 40 queries are won, so the test is undefined. At 0.9, all are won with probability 0.9^40 = 0.015."""
    each = of_one_size(0.15)
    assert each.power(1.0, 40, 0.05, test) == 0
    if test == "t":
        assert each.power(0.9, 40, 0.05, test) == pytest.approx(1 - 0.9**40, abs=1e-6)
    least = each.detectable(40, 0.05, 0.8, test)
    assert least is not None
    assert each.power(least, 40, 0.05, test) >= 0.8 > each.power(0.99 * least, 40, 0.05, test)


@pytest.mark.parametrize(("share", "difference"), [(1.0, 0.9), (0.9, 0.6), (0.3, 0.2), (0.05, 0.04)])
def test_every_larger_number_of_queries_is_enough_too(share: float, difference: float) -> None:
    """Where all differ and 95% of them are won, 6 have 0.95^6 = 0.735, 8 have 0.663, and 9 may lose one: 0.929."""
    each = of_one_size(share)
    count = each.needed(difference, 0.05, 0.8, "randomization")
    assert count is not None
    enough = [each.power(difference, n, 0.05, "randomization") >= 0.8 for n in range(count - 1, 2 * count + 60)]
    assert enough == [False] + [True] * (count + 60)
    if share == 1.0:
        assert [each.power(0.9, n, 0.05, "randomization") for n in (6, 8, 9)] == pytest.approx(
            [0.735, 0.663, 0.929], abs=5e-4
        )


def test_no_difference_beyond_the_metric_is_promised() -> None:
    """t with 7 degrees of freedom detects a difference of about (3.5 + 0.9) × 0.8 ÷ √8 = 1.24 at alpha 0.01."""
    unlike = Differences(1.0, 0.7, alike=False, spread=0.8)
    assert unlike.detectable(8, 0.01, 0.8, "t") == pytest.approx(1.24, abs=0.1)
    assert unlike.detectable(8, 0.01, 0.8, "t", largest=1.0) is None
    truth = {f"q{n}": [["a"]] for n in range(40)}
    with pytest.raises(
        groupgt.ConfigError, match=r"expected at most 1, because recall lies between 0 and 1; found 1\.5"
    ):
        groupgt.compare(truth, runs_of(truth), ["recall"]).power(difference=1.5)


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon", "bootstrap"])
def test_power_goes_on_where_it_is_no_longer_counted(test: str) -> None:
    """Just below and above 5,000 questions that are expected to differ."""
    each = of_one_size(0.5)
    below, above = (each.power(0.02, queries, 0.05, test) for queries in (9_998, 10_002))
    assert below == pytest.approx(above, abs=0.01)


@pytest.mark.property
@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap"])
@pytest.mark.parametrize(
    ("queries", "share", "difference", "alpha"),
    [(82, 0.05, 0.04, 0.05), (40, 0.3, 0.2, 0.05), (30, 0.5, 0.3, 0.01), (12, 0.9, 0.5, 0.05)],
)
def test_power_of_one_size_is_that_of_simulated_tests(
    test: str, queries: int, share: float, difference: float, alpha: float
) -> None:
    """4,000 samples, within 4 standard errors, and a point for what is drawn anew in each test."""
    rng = np.random.default_rng(5)
    chances = [(share + difference) / 2, (share - difference) / 2, 1 - share]
    samples = rng.choice([1.0, -1.0, 0.0], size=(queries, 4000), p=chances)
    shown = float((p_values(test, samples, 4095, 0) <= alpha).mean())
    expected = of_one_size(share).power(difference, queries, alpha, test)
    assert abs(shown - expected) <= 4 * math.sqrt(expected * (1 - expected) / 4000) + 0.01


@pytest.mark.parametrize("differing", [5, 9, 14, 20, 51])
def test_wilcoxon_of_tied_ranks_is_scipys(differing: int) -> None:
    """Shown exactly where SciPy's own p-value is small enough; nine differ at most where it tries every sign."""
    from groupgt.comparison.gaps import least_by_ranks

    (gap,) = least_by_ranks(60, np.array([differing]), 0.05).tolist()
    for wins in range((differing + 1) // 2, differing + 1):
        column = np.array([1.0] * wins + [-1.0] * (differing - wins))
        assert (stats.wilcoxon(column).pvalue <= 0.05) == (2 * wins - differing >= gap)


def test_what_no_test_can_show_is_said() -> None:
    """Five questions have 2^5 sign patterns, and the two most extreme of them are 2/32 = .0625."""
    assert of_one_size(0.5).detectable(5, 0.05, 0.8, "randomization") is None
    assert of_one_size(0.5).detectable(6, 0.05, 0.8, "randomization") == pytest.approx(0.8 ** (1 / 6), abs=1e-6)
    assert of_one_size(0.5).detectable(1, 0.05, 0.8, "t") is None
    unlike = Differences(0.5, 0.3, alike=False, spread=0.2)
    assert unlike.detectable(5, 0.05, 0.8, "randomization") is None
    # No more than enough questions differ: P(Bin(20, .1) ≥ 6).
    enough = float(stats.binom.sf(5, 20, 0.1))
    assert Differences(0.1, 0.3, alike=False, spread=0.001).power(0.03, 20, 0.05, "randomization") == (
        pytest.approx(enough, rel=1e-12)
    )
    assert of_one_size(0.1, 0.25).needed(0.5, 0.05, 0.8, "randomization") is None
    assert of_one_size(0.1, 0.25).needed(0.0, 0.05, 0.8, "randomization") is None


def runs_of(truth: dict[str, list[list[str]]]) -> dict[str, dict[str, list[str]]]:
    return {
        "base": {qid: ["a"] if at % 2 else ["x"] for at, qid in enumerate(truth)},
        "other": {qid: ["a"] if at % 3 else ["x"] for at, qid in enumerate(truth)},
        "same": {qid: ["a"] if at % 2 else ["x"] for at, qid in enumerate(truth)},
    }


def test_of_a_comparison(snapshot: Snapshot) -> None:
    truth = {f"q{n}": [["a"]] for n in range(40)}
    table = groupgt.compare(truth, runs_of(truth), ["recall"])
    other, same = table.power(difference=0.1)
    row = table["other"]["recall"]
    assert (row.size, row.alike, row.differ) == (1.0, True, 20)
    half = of_one_size(20 / 40)
    # Two comparisons: each has half of alpha.
    assert other.exact
    assert other.reached == half.power(0.1, 40, 0.025, "randomization")
    assert other.detectable == half.detectable(40, 0.025, 0.8, "randomization")
    # Nothing differs: there is nothing to go by.
    assert (same.spread, same.detectable, same.reached, same.needed, same.exact) == (0, None, None, None, False)
    assert table.power()[0].difference == row.delta
    assert table.power()[1].needed is None
    with snapshot.raises(groupgt.ConfigError):
        table.power(power=1.0)
    with snapshot.raises(groupgt.ConfigError):
        table.power(difference=0)


def test_of_differences_of_several_sizes(snapshot: Snapshot) -> None:
    truth = {f"q{n}": [["a"], ["b"], ["c"]][: 1 + n % 3] for n in range(60)}
    table = groupgt.compare(truth, runs_of(truth), ["recall", "complete"])
    row = table["other"]["recall"]
    assert not row.alike
    recall, complete = table.power(difference=0.2)[:2]
    assert (recall.exact, complete.exact) == (False, True)
    assert recall.reached == power(0.2, row.spread, 60, 0.05 / 2)
    settings = Settings()
    capped = "paired t test (capped at the probability that enough queries differ)"
    assert whose_power([recall], settings) == capped
    snapshot(whose_power([complete], settings))
    alike = "paired randomization test where all differences have the same size"
    assert whose_power([recall, complete], settings) == f"{alike}, elsewhere {capped}"


def test_of_the_test_that_is_used() -> None:
    truth = {f"q{n}": [["a"]] for n in range(40)}
    reached = {
        test: groupgt.compare(truth, runs_of(truth), ["recall"], test=test, resamples=99)
        .power(difference=0.2)[0]
        .reached
        for test in ("randomization", "t")
    }
    assert reached["t"] > reached["randomization"] > 0.2
    rows = groupgt.compare(truth, runs_of(truth), ["recall"]).rows
    metrics = {"recall": groupgt.parse_metric("recall")}
    assert power_of(rows, Settings(test="t"), metrics, difference=0.2)[0].reached == reached["t"]
