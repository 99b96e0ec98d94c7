"""Flat truth has flat words: relevant documents are found; groups are met."""

from __future__ import annotations

import groupgt
from tests.snapshots import Snapshot

TRUTH = {"q1": {"a": 1, "b": 1, "n": 0}, "q2": {"c": 2}}
RUNS = {"one": {"q1": ["a", "x", "b"], "q2": ["c"]}, "two": {"q1": ["n", "a"], "q2": ["x"]}}
GROUPS = {"q1": [["a"], ["b"]], "q2": [["c"]]}


def test_documents_are_found(snapshot: Snapshot) -> None:
    text = str(groupgt.misses(TRUTH, RUNS["one"], k=2))
    snapshot(text)
    assert "group" not in text.replace("groupgt", "")
    several = str(groupgt.misses(TRUTH, RUNS, k=2))
    assert "relevant document" in several
    assert "group" not in several
    table = str(groupgt.compare(TRUTH, RUNS, ["recall@2"], baseline="one"))
    snapshot(table)
    assert "judged non-relevant 1" in str(groupgt.evaluate(TRUTH, RUNS["one"], ["recall@2"]))


def test_groups_are_met(snapshot: Snapshot) -> None:
    snapshot(str(groupgt.misses(GROUPS, RUNS["one"], k=2)))
    table = str(groupgt.compare(GROUPS, RUNS, ["recall@2"], baseline="one"))
    snapshot(table)


def test_metrics_are_called_what_they_were_asked_by() -> None:
    """In tables, values per query and frames alike; JSON has our name beside it."""
    asked = ["AP", "P_1", "ndcg@2"]
    result = groupgt.evaluate(TRUTH, RUNS["one"], asked)
    assert result.to_polars()["metric"].to_list() == asked
    assert result.per_query.columns == ["qid", *asked]
    assert result.to_dict()["metrics"]["AP"]["metric"] == "map.trec"
    assert "P_1" in str(result)
    table = groupgt.compare(TRUTH, RUNS, asked)
    assert set(table.to_polars()["metric"]) == set(asked) == set(table.per_query.columns[2:])
    assert set(groupgt.evaluate_runs(TRUTH, RUNS, asked).to_polars()["metric"]) == set(asked)
