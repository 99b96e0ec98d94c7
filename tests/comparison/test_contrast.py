"""Rows by hand: means, deltas, wins and losses, corrections over a table, and what a row offers."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import groupgt
from groupgt.comparison.contrast import FIELDS
from tests.comparison.samples import TRUTH, run_of
from tests.laws import WORDS, registered
from tests.snapshots import Snapshot


def test_rows_by_hand() -> None:
    """Four queries: recall 1, 1/2, 1, 0 against 1/2, 1/2, 1/2, 1/2; differences 1/2, 0, 1/2, -1/2."""
    truth = {qid: [["a"], ["b"]] for qid in "pqrs"}
    one = {"p": ["a", "b"], "q": ["a"], "r": ["b", "a"], "s": ["x"]}
    half = {qid: ["a", "x"] for qid in "pqrs"}
    row = groupgt.compare(truth, {"half": half, "one": one}, ["recall"])["one"]["recall"]
    assert row.mean == 2.5 / 4
    assert row.delta == 0.5 / 4
    assert (row.wins, row.ties, row.losses, row.differ, row.pairs) == (2, 1, 1, 3, 4)
    # The sum is 1/2; of the 8 sign patterns of three halves, sums are ±3/2 twice and ±1/2 six times: all as far.
    assert row.p_value == row.raw_p_value == 1.0
    # Variance: differences minus 1/8: 3/8, -1/8, 3/8, -5/8; squares sum to (9 + 1 + 9 + 25)/64 = 44/64; ÷ 3.
    assert row.spread == pytest.approx(math.sqrt(44 / 64 / 3), abs=1e-15)
    assert row.effect_size == pytest.approx((1 / 8) / math.sqrt(44 / 64 / 3), abs=1e-15)


def test_the_baseline_has_no_difference_to_itself(table: groupgt.Comparison) -> None:
    row = table["plain"]["recall@2"]
    assert row.against is None
    assert row.delta is row.p_value is row.wins is None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = row.nonsense


@pytest.mark.parametrize("test", ["randomization", "wilcoxon"])
def test_a_contrast_turned_round_is_that_of_the_systems_exchanged(test: str) -> None:
    """In every field; the runs differ in length, so that no field is its own opposite."""
    if test == "wilcoxon":
        pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    rng = random.Random(4)
    truth = {f"q{number}": [["a", "c"], ["b"]] for number in range(12)}
    runs = {name: {qid: rng.sample("abcxyz", size) for qid in truth} for name, size in (("short", 2), ("long", 5))}
    short, long = (groupgt.compare(truth, runs, ["recall", "redundancy"], baseline=name, test=test) for name in runs)
    for text in short.metrics:
        turned, exchanged = short["long"][text].against.turned, long["short"][text].against
        for name in FIELDS:
            expected = pytest.approx(getattr(exchanged, name), abs=1e-12, nan_ok=True)
            assert getattr(turned, name) == expected, name


def test_identical_runs_differ_nowhere(table: groupgt.Comparison) -> None:
    for row in table["same"].values():
        assert (row.delta, row.p_value, row.wins, row.losses) == (0.0, 1.0, 0, 0)
        # Not one of 24 queries differs, which does not prove that none would: see `unseen`.
        low, high = row.delta_interval
        assert -0.2 < low < 0 < high < 0.2
        assert not row.significant


def test_holm_is_over_the_systems_compared_in_one_metric(table: groupgt.Comparison) -> None:
    for text in table.metrics:
        rows = [row for row in table.rows if row.against is not None and row.metric == text]
        assert len(rows) == len(table.names) - 1
        highest = 0.0
        for place, row in enumerate(sorted(rows, key=lambda row: row.raw_p_value)):
            highest = max(highest, min(1.0, row.raw_p_value * (len(rows) - place)))
            assert row.p_value == pytest.approx(highest, abs=1e-15)
            assert row.significant == (row.p_value <= 0.05)


@pytest.mark.parametrize("pairs", [False, True])
def test_other_metrics_change_nothing(pairs: bool) -> None:
    """p-values, intervals, stars, sentences and power of a metric, whatever else is listed."""
    rng = random.Random(3)
    truth = {f"q{n}": [[f"d{i}"] for i in range(2 + n % 2)] for n in range(40)}
    ids = ["d0", "d1", "d2", "x", "y", "z"]
    runs = {name: {qid: rng.sample(ids, 4) for qid in truth} for name in ("base", "one", "two", "three")}
    alone = groupgt.compare(truth, runs, ["ndcg@3"], by=["n_groups"], pairs=pairs)
    among = groupgt.compare(truth, runs, ["ndcg@3", "recall@1", "recall@2", "mrr", "map"], by=["n_groups"], pairs=pairs)
    assert [row for row in among.rows if row.metric == "ndcg@3"] == alone.rows
    assert [pair for pair in among.pairs if pair.metric == "ndcg@3"] == alone.pairs
    for part, other in zip(alone.slices, among.slices, strict=True):
        assert [row for row in other.rows if row.metric == "ndcg@3"] == list(part.rows)
    sentences = [str(each).split("\n\n")[0] for each in (alone, among)]
    # Complete within the largest cutoff asked, which is not of one metric.
    assert [line for line in sentences[0].splitlines() if "all groups" not in line] == [
        line for line in sentences[1].splitlines() if "all groups" not in line
    ]


def test_intervals_of_deltas_agree_with_their_p(table: groupgt.Comparison) -> None:
    for row in table.rows:
        if row.against is not None and row.against.differ >= 15:
            low, high = row.against.delta_interval
            assert (low <= 0 <= high) == (not row.significant)


def test_means_are_those_of_evaluate(table: groupgt.Comparison) -> None:
    for name, evaluation in table.evaluations.items():
        for text, mean in evaluation.means.items():
            row = table[name][text]
            assert row.mean == mean
            assert row.interval[0] <= mean <= row.interval[1]


def test_randomization_of_few_queries_is_exact() -> None:
    """Differences with a slow enumeration in whole numbers."""
    rng = random.Random(8)
    truth = {f"q{n}": [[f"d{i}"] for i in range(4)] for n in range(9)}
    runs = [{qid: rng.sample(["d0", "d1", "d2", "d3", "x", "y"], 4) for qid in truth} for _ in range(2)]
    row = groupgt.compare(truth, {"a": runs[0], "b": runs[1]}, ["recall"])["b"]["recall"]
    counts = [
        len({"d0", "d1", "d2", "d3"} & set(runs[1][qid])) - len({"d0", "d1", "d2", "d3"} & set(runs[0][qid]))
        for qid in truth
    ]
    far = sum(
        abs(sum(sign * count for sign, count in zip(signs, counts))) >= abs(sum(counts))
        for signs in product((1, -1), repeat=9)
    )
    assert row.raw_p_value == float(Fraction(far, 2**9))


def test_a_row_does_not_depend_on_the_other_systems_or_metrics() -> None:
    rng = random.Random(1)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.5), "c": run_of(rng, 0.9)}
    few = groupgt.compare(TRUTH, {"a": runs["a"], "b": runs["b"]}, ["mrr"], correction="none")
    many = groupgt.compare(TRUTH, runs, ["recall@2", "mrr", "ndcg"], correction="none")
    assert few["b"]["mrr"] == many["b"]["mrr"]


@pytest.mark.parametrize("metric", [each for each in registered() if each.definition.queries == "answerable"], ids=str)
def test_every_metric_can_be_compared(metric: groupgt.Metric) -> None:
    rng = random.Random(2)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.8)}
    table = groupgt.compare(TRUTH, runs, [metric], resamples=200, corpus=WORDS)
    text = next(iter(table.metrics))
    row = table["b"][text]
    difference = table.values["b"][text] - table.values["a"][text]
    assert row.delta == pytest.approx(np.nanmean(difference), abs=1e-12)
    better = difference > 1e-12 if metric.higher_is_better else difference < -1e-12
    assert row.wins == int(better.sum())
    assert row.wins + row.ties + row.losses == row.pairs
    assert 0 < row.p_value <= 1
    low, high = row.delta_interval
    assert low <= row.delta <= high
    low, high = row.interval
    assert low <= row.mean <= high


def test_a_scatter_has_one_place_for_queries_with_the_same_values() -> None:
    # Rows by (b, a): q1 (1, 1), q2 and q3 (0, 1), q4 (1, 0); q5 has no ground truth and no place.
    truth = {"q1": [["x"]], "q2": [["x"]], "q3": [["x"]], "q4": [["x"]], "q5": []}
    runs = {"b": {"q1": ["x"], "q4": ["x"]}, "a": {"q1": ["x"], "q2": ["x"], "q3": ["x"]}}
    figure = groupgt.compare(truth, runs, ["recall@1"], baseline="b", resamples=10).plot("scatter")
    assert figure.headers == ["queries", "b", "a", "number"]
    assert figure.rows == [["q2, q3", 0.0, 1.0, 2], ["q4", 1.0, 0.0, 1], ["q1", 1.0, 1.0, 1]]
    assert "2 better, 1 worse, 1 the same; furthest apart: q2 and 1 more, q4." in figure.text


def test_lower_is_better_where_it_is() -> None:
    truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    clean, redundant = {qid: ["a", "c"] for qid in truth}, {qid: ["a", "b"] for qid in truth}
    table = groupgt.compare(truth, {"redundant": redundant, "clean": clean}, ["redundancy"])
    row = table["clean"]["redundancy"]
    assert (row.delta, row.wins, row.losses) == (-0.5, 12, 0)
    assert table.headroom[0].best == "clean"


def test_small_values_are_measured_by_their_own_scale() -> None:
    """precision.trec@1000000 is at most 2e-6: its intervals and tests are those of precision.trec@2, scaled."""
    rng = random.Random(6)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.9)}
    deep = {name: {qid: ids[:2] for qid, ids in run.items()} for name, run in runs.items()}
    table = groupgt.compare(TRUTH, deep, ["precision.trec@2", "precision.trec@1000000"], test="bootstrap")
    near, far = table["b"].values()
    assert far.delta == pytest.approx(near.delta * 2e-6)
    assert far.raw_p_value == pytest.approx(near.raw_p_value, abs=0.002)
    assert far.delta_interval[0] < far.delta < far.delta_interval[1]


def test_what_a_row_offers(snapshot: Snapshot) -> None:
    runs = {"a": {"q": ["x"]}, "b": {"q": ["a"]}}
    row = groupgt.compare({"q": [["a"]]}, runs, ["recall"])["b"]["recall"]
    assert {"delta", "p_value", "raw_p_value", "wins", "differ"} <= set(dir(row))
    with snapshot.raises(TypeError):
        groupgt.compare({"q": [["a"]]}, runs, ["recall"], bsaeline="a")
