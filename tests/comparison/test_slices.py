"""The comparison in slices: the same as of their queries alone; extremes and reversals told, columns left out."""

from __future__ import annotations

import random
import re

import pytest

import groupgt
from tests.comparison.samples import QUERIES, run_of
from tests.snapshots import Snapshot


def test_slices_are_the_same_comparison_of_their_queries() -> None:
    rng = random.Random(3)
    groups = {qid: [["a"], ["c"]] if at % 3 else [["b"]] for at, qid in enumerate(QUERIES)}
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.9)}
    table = groupgt.compare(groups, runs, ["recall@2"], by=["n_groups", "n_alternatives"], correction="none")
    assert [(part.by, part.value, part.queries) for part in table.slices] == [
        ("n_groups", "1", 8),
        ("n_groups", "2", 16),
        ("n_alternatives", "1", 8),
        ("n_alternatives", "2", 16),
    ]
    for part in table.slices[:2]:
        own = {qid: each for qid, each in groups.items() if len(each) == int(part.value)}
        alone = groupgt.compare(own, runs, ["recall@2"], correction="none")
        assert list(part.rows) == alone.rows


def test_p_values_of_slices_are_corrected_over_their_table(table: groupgt.Comparison) -> None:
    (part,) = table.slices
    assert [row.p_value for row in part.rows if row.against] == [row.p_value for row in table.rows if row.against]


def test_reversals_and_extremes_are_told(snapshot: Snapshot) -> None:
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(10)],
        [[["a"]]] * 10,
        groupgt.Policy(),
        columns={"kind": ["often"] * 8 + ["seldom"] * 2},
    )
    base = {f"q{n}": ["a"] if n >= 8 else ["x"] for n in range(10)}
    other = {f"q{n}": ["x"] if n >= 8 else ["a"] for n in range(10)}
    table = groupgt.compare(truth, {"base": base, "other": other}, ["recall"], by="kind")
    ((whole, part, row),) = table.reversals()
    # +8/10 - 2/10 over all, -1 where kind is seldom.
    assert (whole.delta, part.value, row.delta) == (pytest.approx(0.6), "seldom", -1.0)
    text = str(table)
    snapshot(text)


def test_a_reversal_that_is_real_is_told_as_one() -> None:
    """Forty queries gain, twelve lose: both significantly (p 2/2^12 in the slice)."""
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(52)],
        [[["a"]]] * 52,
        groupgt.Policy(),
        columns={"kind": ["often"] * 40 + ["seldom"] * 12},
    )
    base = {f"q{n}": ["a"] if n >= 40 else ["x", "a"] for n in range(52)}
    other = {f"q{n}": ["x", "a"] if n >= 40 else ["a"] for n in range(52)}
    text = str(groupgt.compare(truth, {"base": base, "other": other}, ["recall@1"], by="kind"))
    assert "reversal: other with -1.000 in recall@1 where kind = seldom" in text
    assert "), but +0.538 overall" in text
    assert "slices by kind: p-values corrected (Holm) for 2 comparisons" in text
    # One screen has one mark, one number of digits and one name for each thing: +28/52 overall, ±1 in the slices.
    of_slices = text.split("recall@1: delta by kind")[1].splitlines()[:5]
    assert [line.split() for line in of_slices if line.startswith("other ")] == [["other", "+1.000▲", "-1.000▼"]]
    assert not re.search(r"\*|holm|[0-9]\.[0-9]{4}", text)


def test_slices_are_a_partition_whatever_the_column_holds() -> None:
    """Values that print alike are one slice; 1, 1.0 and True are three."""
    values = [1, 1.0, True, "1", None, "(none)", "x", 2, 10]
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(9)], [[["a"]]] * 9, groupgt.Policy(), columns={"kind": values}
    )
    found = groupgt.evaluate(truth, {"q0": ["a"]}, ["recall"], by="kind").slices
    assert [(part["value"], part["queries"]) for part in found] == [
        ("1", 2),
        ("1.0", 1),
        ("True", 1),
        ("2", 1),
        ("10", 1),
        ("x", 1),
        ("(none)", 2),
    ]


def test_columns_with_too_many_values_are_left_out_and_named() -> None:
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(300)],
        [[["a"]]] * 300,
        groupgt.Policy(),
        columns={"number": list(range(300)), "kind": [n % 12 for n in range(300)]},
    )
    runs = {name: {f"q{n}": [first, "a"] for n in range(300)} for name, first in (("one", "x"), ("two", "a"))}
    table = groupgt.compare(truth, runs, ["mrr"], by=["number", "kind"], resamples=99)
    assert {part.by for part in table.slices} == {"kind"}
    text = str(table)
    assert "slices by number are omitted, because number has 300 values, more than 200" in text
    # Twelve slices do not fit a line: each has a row of its own.
    (header,) = [line for line in text.splitlines() if line.startswith("mrr: delta by kind")]
    assert header.split()[4:] == ["queries", "one", "(mean)", "two"]


def test_a_column_of_one_value_makes_no_table(table: groupgt.Comparison) -> None:
    assert "every query has n_groups = 2" in str(table)
    assert "change by n_groups" not in str(table)
