"""Flat truth has flat words: relevant documents are found; groups are met."""

from __future__ import annotations

import groupgt

TRUTH = {"q1": {"a": 1, "b": 1, "n": 0}, "q2": {"c": 2}}
RUNS = {"one": {"q1": ["a", "x", "b"], "q2": ["c"]}, "two": {"q1": ["n", "a"], "q2": ["x"]}}
GROUPS = {"q1": [["a"], ["b"]], "q2": [["c"]]}


def test_documents_are_found() -> None:
    text = str(groupgt.misses(TRUTH, RUNS["one"], k=2))
    assert "completes 1 of 2 queries at 2, and misses 1 relevant" in text
    assert "group" not in text
    several = str(groupgt.misses(TRUTH, RUNS, k=2))
    assert "relevant document" in several
    assert "group" not in several
    table = str(groupgt.compare(TRUTH, RUNS, ["recall@2"], baseline="one"))
    assert "not complete at 2 for any system" in table
    assert "judged non-relevant 1" in str(groupgt.evaluate(TRUTH, RUNS["one"], ["recall@2"]))


def test_groups_are_met() -> None:
    assert "completes 1 of 2 queries at 2" in str(groupgt.misses(GROUPS, RUNS["one"], k=2))
    table = str(groupgt.compare(GROUPS, RUNS, ["recall@2"], baseline="one"))
    assert "not complete at 2 for any system" in table


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
