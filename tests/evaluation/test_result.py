"""What an `Evaluation` says of itself."""

from __future__ import annotations

import json
import math

import pytest

import groupgt

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
RUN = {"q1": ["a", "x", "b", "y"], "q2": [("e", 0.9), ("d", 0.4)]}


def test_the_first_example() -> None:
    result = groupgt.evaluate(TRUTH, RUN, ["recall@5", "mrr", "ndcg.coverage@10"])
    assert result.means["recall@5"] == 0.75
    assert result["recall.autorag@5"] == result["r@5"] == 0.75
    assert result.per_query["qid"].to_list() == ["q1", "q2"]
    assert result.per_query["recall@5"].to_list() == [0.5, 1.0]
    assert "recall@5" in str(result)
    assert "2 queries: evaluated 2" in str(result)
    assert "policy" not in str(result)
    assert "policy missing=skip" in str(groupgt.evaluate(TRUTH, RUN, ["mrr"], policy={"missing": "skip"}))
    assert "<table>" in result._repr_html_()
    assert result.table("github").startswith("| metric")
    with pytest.raises(groupgt.MetricError, match="was not evaluated"):
        _ = result["recall@6"]


def test_where_nothing_counts_the_mean_is_not_a_number() -> None:
    result = groupgt.evaluate({"q": []}, {"q": ["a"]}, ["recall"])
    assert math.isnan(result.means["recall"])
    assert "–" in str(result)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["metrics"]["recall"]["mean"] is None


def test_ties_across_a_cutoff_are_counted() -> None:
    truth = {"q1": [["a"]], "q2": [["a"]]}
    run = {"q1": {"a": 1.0, "b": 1.0, "c": 0.5}, "q2": {"a": 3.0, "b": 1.0, "c": 1.0}}
    assert groupgt.evaluate(truth, run, ["recall@1"]).counts["ties"] == 1
    assert groupgt.evaluate(truth, run, ["recall@2"]).counts["ties"] == 0


def test_ties_count_anywhere_for_a_metric_without_cutoff() -> None:
    result = groupgt.evaluate({"q": [["a"]]}, {"q": {"x": 2.0, "a": 1.0, "b": 1.0}}, ["mrr", "recall@1"])
    assert result.counts["ties"] == 1
