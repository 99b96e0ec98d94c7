"""What a reader is warned of: too few queries that differ, results that lack, queries that count for one alone."""

from __future__ import annotations

from dataclasses import replace

import groupgt
from tests.snapshots import Snapshot


def test_missing_queries_count_as_the_policy_says() -> None:
    truth = {"p": [["a"]], "q": [["a"]], "r": [["a"]], "s": []}
    whole = {"p": ["a"], "q": ["a"], "r": ["x"]}
    part = {"p": ["a"], "r": ["a"]}
    zero = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"])["part"]["recall"]
    # Differences 0, -1, 1.
    assert (zero.pairs, zero.unpaired, zero.delta, zero.mean, zero.queries) == (3, 0, 0.0, 2 / 3, 3)
    table = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"], policy={"missing": "skip"})
    skip = table["part"]["recall"]
    # Of the two queries that count for both the differences are 0 and 1; q counts for the baseline alone.
    assert (skip.pairs, skip.unpaired, skip.delta, skip.mean, skip.queries) == (2, 1, 0.5, 1.0, 2)
    assert any(
        "evaluated for only one of the two systems" in line and "part in recall 1" in line for line in table.warnings
    )


def test_too_few_that_differ_is_said(snapshot: Snapshot) -> None:
    """Five queries differ: the smallest p is 2/2^5 = .0625."""
    truth = {f"q{n}": [["a"]] for n in range(40)}
    none = {qid: ["x", "a"] for qid in truth}
    five = {qid: ["a"] if qid in ("q1", "q2", "q3", "q4", "q5") else ["x", "a"] for qid in truth}
    table = groupgt.compare(truth, {"none": none, "five": five}, ["recall@1"])
    assert table["five"]["recall@1"].p_value == 0.0625
    (warning,) = table.warnings
    snapshot(warning)
    six = {**five, "q6": ["a"]}
    assert groupgt.compare(truth, {"none": none, "six": six}, ["recall@1"]).warnings == []


def test_many_queries_that_differ_raise_no_warning() -> None:
    """The number of sign patterns, 2^1,500, is no double."""
    truth = {f"q{n}": [["a"], ["b"]] for n in range(1500)}
    runs = {"a": {qid: ["a"] for qid in truth}, "b": {qid: ["a", "b"] for qid in truth}}
    row = groupgt.compare(truth, runs, ["recall"], resamples=99)["b"]["recall"]
    assert (row.differ, row.p_value) == (1500, 0.01)


def test_missing_results_are_warned_of(snapshot: Snapshot) -> None:
    truth = {f"q{n}": [["a"]] for n in range(8)}
    whole = {qid: ["a"] for qid in truth}
    part = {qid: ["a"] for qid in list(truth)[:6]}
    zero = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"])
    snapshot(zero.warnings[0])
    skip = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"], policy={"missing": "skip"})
    assert not any("no results" in line for line in skip.warnings)


def test_holm_may_show_what_bonferroni_cannot(snapshot: Snapshot) -> None:
    """Of two comparisons the second of Holm is not multiplied: six queries that differ (p 2/2^6) reach .05 there."""
    truth = {f"q{n}": [["a"]] for n in range(60)}
    base = {qid: ["x", "a"] for qid in truth}
    six = {qid: ["a"] if at < 6 else ["x", "a"] for at, qid in enumerate(truth)}
    runs = {"base": base, "all": {qid: ["a"] for qid in truth}, "six": six}
    holm = groupgt.compare(truth, runs, ["recall@1"])
    assert holm["six"]["recall@1"].significant
    assert holm.warnings == []
    bonferroni = groupgt.compare(truth, runs, ["recall@1"], correction="bonferroni")
    assert not bonferroni["six"]["recall@1"].significant
    snapshot(bonferroni.warnings[0])


def test_tied_systems_are_told_in_every_order() -> None:
    """Each of `p` and `q` gains 9 of 12 queries, with the same p-value, so the names decide which comes first."""
    truth = {f"q{n}": [["a"]] for n in range(12)}
    runs = {
        "base": {qid: ["x", "a"] for qid in truth},
        "q": {qid: ["a"] if n < 9 else ["x", "a"] for n, qid in enumerate(truth)},
        "p": {qid: ["a"] if n >= 3 else ["x", "a"] for n, qid in enumerate(truth)},
    }
    orders = [list(runs), ["base", "p", "q"]]
    said = [groupgt.compare(truth, {name: runs[name] for name in order}, ["recall@1"]).summary() for order in orders]
    decisions = [text.partition("\n|")[0] for text in said]
    assert decisions[0] == decisions[1]
    assert "p (tied with q)" in decisions[0]


def test_without_a_baseline_no_difference_is_warned_of() -> None:
    """`five` differs on five queries, too few for a test, but nobody compares it with `none`."""
    truth = {f"q{n}": [["a"]] for n in range(40)}
    runs = {
        "none": {qid: ["x", "a"] for qid in truth},
        "five": {f"q{n}": ["a"] if n < 5 else ["x", "a"] for n in range(40)},
    }
    table = groupgt.compare(truth, runs, ["recall@1"])
    assert len(table.warnings) == 1
    assert replace(table, is_baseline_named=False).warnings == []
