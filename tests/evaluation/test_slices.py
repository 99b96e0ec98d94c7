"""Slices of an evaluation."""

from __future__ import annotations

import polars as pl
import pytest

import groupgt
from groupgt.evaluation.slices import Slicer, where
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


def test_a_column_that_is_not_there_is_told_by_the_option_that_names_it(snapshot: Snapshot) -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"]]})
    with snapshot.raises(groupgt.ConfigError):
        where(truth, {"n_group": ["1"]})
    with pytest.raises(groupgt.ConfigError, match=r"^by: expected a column"):
        Slicer(truth, ["n_group"])
