"""Slices of an evaluation."""

from __future__ import annotations

import re

import polars as pl
import pytest

import groupgt
from groupgt.evaluation.slices import Slicer, where
from groupgt.render.document import document
from groupgt.render.layout import Screen
from tests.snapshots import Snapshot


def test_slices() -> None:
    frame = pl.DataFrame(
        {"qid": ["1", "2", "3"], "retrieval_gt": [[["a"]], [["b"], ["c"]], []], "type": ["x", "y", None]}
    )
    result = groupgt.evaluate(frame, {"1": ["a"], "2": ["b"]}, ["recall"], by=["type", "n_groups"])
    found = [(each["by"], each["value"], each["queries"], each["means"]["recall"]) for each in result.slices]
    assert found[:2] == [("type", "x", 1, 1.0), ("type", "y", 1, 0.5)]
    assert found[2][1:3] == ("(none)", 0)
    assert [each[1] for each in found[3:]] == ["0", "1", "2"]
    with pytest.raises(groupgt.ConfigError, match="did you mean 'type'"):
        groupgt.evaluate(frame, {}, ["recall"], by="tpye")


def test_queries_of_a_slice() -> None:
    truth = groupgt.GroundTruth.of({"q1": [["a"], ["b"]], "q2": [["c"]]})
    assert where(truth, {"n_groups": ["2"]}).qids == ["q1"]


def test_a_column_that_is_not_there_is_told_by_the_option_that_names_it(snapshot: Snapshot) -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"]]})
    with snapshot.raises(groupgt.ConfigError):
        where(truth, {"n_group": ["1"]})
    with pytest.raises(groupgt.ConfigError, match=r"^by: expected a column"):
        Slicer(truth, ["n_group"])


def test_slices_of_several_runs_stand_beside_their_means() -> None:
    truth = pl.DataFrame(
        {"qid": ["q1", "q2", "q3"], "retrieval_gt": [[["a"]], [["b"]], [["c"]]], "tier": ["free", "free", "pro"]}
    )
    runs = {
        "a-run-with-a-name-that-is-long": {"q1": ["a"], "q2": ["x"], "q3": ["c"]},
        "b-run-with-a-name-that-is-long": {"q1": ["x", "a"], "q2": ["b"], "q3": ["x"]},
    }
    found = groupgt.evaluate_runs(truth, runs, ["recall@1", "mrr@2"], by="tier")
    lines = found.table().split("\n")
    assert re.split("  +", lines[0]) == ["", "recall@1 by tier", "mrr@2 by tier"]
    cells = [line.split() for line in lines]
    assert cells[1] == ["run", "recall@1", "mrr@2", "free", "pro", "free", "pro"]
    assert cells[3] == ["queries", "3", "3", "2", "1", "2", "1"]
    # The first run finds q1 and q3; the second finds q2, and q1 at rank 2, so that its mrr is (1/2 + 1 + 0) / 3.
    assert cells[4][1:] == ["0.6667", "0.6667", "0.5000", "1.0000", "0.5000", "1.0000"]
    assert cells[5][1:] == ["0.3333", "0.5000", "0.5000", "0.0000", "0.7500", "0.0000"]
    narrow = document(found.blocks(), screen=Screen(60, details=False))
    assert "Hidden columns: mrr@2 by tier (--wide shows all)" in narrow
    assert [line.split()[1:] for line in narrow.split("\n") if line.startswith("a-run")][-1] == cells[4][1:5]
    # Many slices have a table of their own, one row for each.
    rows = [{"qid": f"q{n}", "retrieval_gt": [["a"]], "n": str(n)} for n in range(9)]
    run = {f"q{n}": ["a"] for n in range(9)}
    many = groupgt.evaluate_runs(pl.DataFrame(rows), {"one": run, "two": run}, ["recall@1"], by="n")
    assert len([line for line in many.table().split("\n") if line.split()[1:2] == ["two"]]) == 9
