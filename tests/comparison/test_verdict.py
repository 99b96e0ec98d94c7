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


def test_a_gain_comes_first_and_the_best_is_named() -> None:
    gain, best = said({"good": GOOD, "bad": BAD}, "bad")
    # 2 of 2^8 sign patterns.
    assert gain.startswith("good is significantly better than the baseline bad: +1.0000 in recall@1 (95% CI +")
    assert gain.endswith("p = 0.0078).")
    assert best.startswith("good is the best of 2 systems in recall@1, significantly so: mean 1.0000 (95% CI ")


def test_a_loss_comes_before_a_gain() -> None:
    good, bad = {qid: ["a"] for qid in LONG}, {qid: ["x", "a"] for qid in LONG}
    half = {qid: good[qid] if int(qid[1:]) < 8 else bad[qid] for qid in LONG}
    loss, gain, best = said({"good": good, "half": half, "bad": bad}, "half", LONG)
    assert loss.startswith("bad is significantly worse than the baseline half: -0.5000 in recall@1 (95% CI -")
    # Both of 2 ÷ 2^8, twice that after correction.
    assert loss.endswith("p = 0.0156 after correction (holm) over 2 comparisons).")
    assert gain.startswith("good is significantly better than the baseline half: +0.5000 in recall@1 (95% CI +")
    assert best.startswith("good is the best of 3 systems in recall@1")


def test_without_a_significant_difference_the_largest_is_told() -> None:
    three = {**GOOD, **{f"q{number}": ["x"] for number in range(3)}}
    none, winner = said({"good": GOOD, "three": three}, "good")
    begins = "No significant difference from the baseline good in recall@1 (8 queries): -0.3750 (95% CI -"
    assert none.startswith(begins)
    assert none.endswith("; p = 0.2500).")
    assert winner.startswith("No clear winner among 2 systems; highest mean recall@1: good, 1.0000 (95% CI ")
    none, _ = said({"good": GOOD, "three": three, "same": GOOD}, "good")
    assert "; largest difference: three, -0.3750 (97.5% CI " in none


def test_the_primary_metric_decides(snapshot: Snapshot) -> None:
    late = {qid: ["x", "a"] for qid in TRUTH}
    runs = {"good": GOOD, "late": late}
    by_first = groupgt.compare(TRUTH, runs, ["recall@2", "mrr"])
    by_mrr = groupgt.compare(TRUTH, runs, ["recall@2", "mrr"], primary="mrr")
    snapshot(str(by_first))
    assert str(by_mrr).startswith("late is significantly worse than the baseline good: -0.5000 in mrr (")
    assert by_first.rows == by_mrr.rows
    with pytest.raises(groupgt.MetricError, match="was not evaluated"):
        groupgt.compare(TRUTH, runs, ["recall@2"], primary="mrr")


def test_where_all_have_the_same_mean_none_is_the_best(snapshot: Snapshot) -> None:
    none, both = said({"one": GOOD, "other": GOOD}, "one")
    snapshot(none)
    assert both.startswith("Both systems have the same mean recall@1: 1.0000 (")
    _, three = said({"one": GOOD, "other": GOOD, "third": GOOD}, "one")
    assert three.startswith("All 3 systems have the same mean recall@1: 1.0000 (")


def test_those_that_share_the_highest_mean_are_named() -> None:
    *gains, shared = said({"one": GOOD, "other": GOOD, "bad": BAD}, "bad")
    assert [gain.partition(" ")[0] for gain in gains] == ["one", "other"]
    assert shared.startswith("No clear winner among 3 systems; highest mean recall@1: one and other, 1.0000 (")
    many = {f"s{number}": GOOD for number in range(5)}
    loss, shared = said({**many, "bad": BAD}, "s3")
    assert loss.startswith("bad is significantly worse than the baseline s3: -1.0000 in recall@1 (")
    assert "highest mean recall@1: s0, s1, s2 and 2 more, 1.0000 (" in shared


@pytest.mark.parametrize(
    ("count", "timed", "said_of_it"),
    [
        (1, False, "The gate passed."),
        (2, False, "Both gates passed."),
        (3, False, "All 3 gates passed."),
        (2, True, "Both latency gates passed."),
    ],
)
def test_gates_that_passed_are_counted_in_words(count: int, timed: bool, said_of_it: str) -> None:
    (sentence,) = sentences([PASSED] * count, timed=timed)
    assert sentence["parts"] == [said_of_it]


def test_gates_that_failed_say_how_many_and_why() -> None:
    failed = replace(PASSED, passed=False, value=2.0)
    (sentence,) = sentences([PASSED, failed], timed=True)
    assert sentence["parts"] == ["1 of 2 latency gates failed: a on set: latency_p50_ms is 2.0000 (maximum 1)."]
