"""What is said first of a comparison: what changed against the baseline, and who is best."""

from __future__ import annotations

from dataclasses import replace

import pytest

import groupgt
from groupgt.experiment.config import Gate
from groupgt.experiment.outcome import GateResult
from groupgt.report.gates import sentences
from tests.snapshots import Snapshot

TRUTH = {f"q{number}": [["a"]] for number in range(8)}
GOOD = {qid: ["a"] for qid in TRUTH}
BAD = {qid: ["x"] for qid in TRUTH}
PASSED = GateResult(1, "a", "set", Gate(system="a", metric="latency_p50_ms", max=1.0), passed=True, value=0.5)


LONG = {f"q{number}": [["a"]] for number in range(16)}


def said(runs: dict[str, dict[str, list[str]]], baseline: str, truth: dict[str, list[list[str]]] = TRUTH) -> list[str]:
    """The sentences, without those on what nobody solves."""
    text = str(groupgt.compare(truth, runs, ["recall@1"], baseline=baseline)).replace("\u00a0", " ")
    lines = text.split("\n\n")[0].splitlines()
    return [line for line in lines if "all groups" not in line and "too few" not in line]


def test_a_gain_comes_first_and_the_best_is_named(snapshot: Snapshot) -> None:
    gain, best = said({"good": GOOD, "bad": BAD}, "bad")
    assert "p = 0.0078" in gain  # 2 of 2^8 sign patterns
    snapshot([gain, best])


def test_a_loss_comes_before_a_gain(snapshot: Snapshot) -> None:
    good, bad = {qid: ["a"] for qid in LONG}, {qid: ["x", "a"] for qid in LONG}
    half = {qid: good[qid] if int(qid[1:]) < 8 else bad[qid] for qid in LONG}
    loss, gain, best = said({"good": good, "half": half, "bad": bad}, "half", LONG)
    assert "p = 0.0156" in loss  # both of 2 ÷ 2^8, twice that after correction
    snapshot([loss, gain, best])


def test_without_a_significant_difference_the_largest_is_told(snapshot: Snapshot) -> None:
    three = {**GOOD, **{f"q{number}": ["x"] for number in range(3)}}
    none, winner = said({"good": GOOD, "three": three}, "good")
    assert "p = 0.2500" in none  # 2 of 2^3
    largest, _ = said({"good": GOOD, "three": three, "same": GOOD}, "good")
    snapshot([none, winner, largest])


def test_the_primary_metric_decides(snapshot: Snapshot) -> None:
    late = {qid: ["x", "a"] for qid in TRUTH}
    runs = {"good": GOOD, "late": late}
    by_first = groupgt.compare(TRUTH, runs, ["recall@2", "mrr"])
    by_mrr = groupgt.compare(TRUTH, runs, ["recall@2", "mrr"], primary="mrr")
    snapshot(str(table).splitlines()[0] for table in (by_first, by_mrr))
    assert by_first.rows == by_mrr.rows
    with pytest.raises(groupgt.MetricError, match="was not evaluated"):
        groupgt.compare(TRUTH, runs, ["recall@2"], primary="mrr")


def test_where_all_have_the_same_mean_none_is_the_best(snapshot: Snapshot) -> None:
    snapshot(said({"one": GOOD, "other": GOOD}, "one"))
    snapshot(said({"one": GOOD, "other": GOOD, "third": GOOD}, "one"))


def test_those_that_share_the_highest_mean_are_named(snapshot: Snapshot) -> None:
    snapshot(said({"one": GOOD, "other": GOOD, "bad": BAD}, "bad"))
    snapshot(said({**{f"s{number}": GOOD for number in range(5)}, "bad": BAD}, "s3"))


@pytest.mark.parametrize(("count", "timed"), [(1, False), (2, False), (3, False), (2, True)])
def test_gates_that_passed_are_counted_in_words(count: int, timed: bool, snapshot: Snapshot) -> None:
    (sentence,) = sentences([PASSED] * count, timed=timed)
    snapshot(sentence["parts"])


def test_gates_that_failed_say_how_many_and_why(snapshot: Snapshot) -> None:
    failed = replace(PASSED, passed=False, value=2.0)
    (sentence,) = sentences([PASSED, failed], timed=True)
    snapshot(sentence["parts"])
