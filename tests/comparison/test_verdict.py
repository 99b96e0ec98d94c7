"""What is said first of a comparison: the best, or those that share its place, and how it stands to the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

import groupgt
from groupgt.experiment.gates import Gate, GateResult
from groupgt.report.gates import sentences

TRUTH = {f"q{number}": [["a"]] for number in range(8)}
GOOD = {qid: ["a"] for qid in TRUTH}
BAD = {qid: ["x"] for qid in TRUTH}
PASSED = GateResult(1, "a", "set", Gate(system="a", metric="latency_p50_ms", max=1.0), passed=True, value=0.5)


def said(runs: dict[str, dict[str, list[str]]], baseline: str) -> list[str]:
    """The sentences, without those on what nobody solves."""
    lines = str(groupgt.compare(TRUTH, runs, ["recall@1"], baseline=baseline)).split("\n\n")[0].splitlines()
    return [line for line in lines if "all groups" not in line and "too few" not in line]


def test_the_best_is_named_alone() -> None:
    first, lead = said({"good": GOOD, "bad": BAD}, "bad")
    assert first.startswith("good is the best of 2 systems, with a mean recall@1 of 1.0000 (")
    assert lead.startswith("It leads the baseline bad significantly, by +1.0000")


def test_where_all_have_the_same_mean_none_is_the_best() -> None:
    (both,) = said({"one": GOOD, "other": GOOD}, "one")
    assert both.startswith("Both systems have the same mean recall@1 of 1.0000 (")
    (three,) = said({"one": GOOD, "other": GOOD, "third": GOOD}, "one")
    assert three.startswith("All 3 systems have the same mean recall@1 of 1.0000 (")


def test_those_that_share_the_best_mean_are_named() -> None:
    shared, lead = said({"one": GOOD, "other": GOOD, "bad": BAD}, "bad")
    assert shared.startswith("one and other share the best mean recall@1 of 3 systems: 1.0000 (")
    assert lead.startswith("one leads the baseline bad significantly, by +1.0000")
    many = {f"s{number}": GOOD for number in range(5)}
    shared, unbeaten, lead = said({**many, "bad": BAD}, "s3")
    assert shared.startswith("s0, s1, s2 and 2 more share the best mean recall@1 of 6 systems: 1.0000 (")
    assert unbeaten == "No system is better than the baseline s3."
    assert lead.startswith("s0 leads the next best, bad, by +1.0000 (")


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
