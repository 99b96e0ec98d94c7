"""`evaluate` and `label`: populations, policies, shapes of ground truth, and what metrics refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.report.sentences import warnings_about
from tests.laws import WORDS
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
RUN = {"q1": ["a", "x", "b", "y"], "q2": [("e", 0.9), ("d", 0.4)]}


def test_label_gives_vectors_and_matrices() -> None:
    vector = groupgt.label(TRUTH["q1"], ["a", "x", "b", "y"])
    assert vector.dtype == np.uint8
    assert vector.tolist() == [1, 0, 1, 0]
    assert groupgt.label(TRUTH["q1"], ["a", "x", "b", "c"], groups=True).tolist() == [[1, 0, 1, 0], [0, 0, 0, 1]]
    assert groupgt.label(TRUTH["q1"], ["a", "a", "c"]).tolist() == [1, 0, 1]
    assert groupgt.label(TRUTH["q1"], ["a", "a", "c"], policy={"duplicates": "keep"}).tolist() == [1, 1, 1]
    assert groupgt.label(TRUTH["q1"], []).tolist() == []
    assert groupgt.label([], ["a"]).tolist() == [0]
    graded = [[{"id": "a", "grade": 0}], ["b"]]
    assert groupgt.label(graded, ["a", "b"], groups=True).tolist() == [[0, 0], [0, 1]]
    graded = [[{"id": "a", "grade": 1}], [{"id": "b", "grade": 2}]]
    assert groupgt.label(graded, ["a", "b"], groups=True, policy={"level": 2}).tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("groups", [[], [[]], [[""]], None, [[" "], []], [[{"id": "a", "grade": 0}]]])
def test_a_query_without_ground_truth_is_undefined(groups: Any) -> None:
    result = groupgt.evaluate({"q1": [["a"]], "q2": groups}, {"q1": ["a"], "q2": ["a"]}, ["recall", "bpref"])
    assert result.means["recall"] == 1
    assert result.per_query["recall"].to_list() == [1, None]
    assert result.counts["undefined"] == 1
    assert result.counts["evaluated"] == 1


@pytest.mark.parametrize("run", [{"q1": ["a"]}, {"q1": ["a"], "q2": []}, {"q1": ["a"], "q2": None}])
def test_missing_queries(run: Any) -> None:
    truth = {"q1": [["a"]], "q2": [["b"]]}
    zero = groupgt.evaluate(truth, run, ["recall", "redundancy"])
    assert zero.means == {"recall": 0.5, "redundancy": 0.0}
    assert zero.per_query["redundancy"].to_list() == [0.0, None]
    assert zero.counts["missing"] == 1
    skip = groupgt.evaluate(truth, run, ["recall"], policy={"missing": "skip"})
    assert skip.means == {"recall": 1.0}
    assert (skip.counts["missing"], skip.counts["evaluated"]) == (1, 1)
    with pytest.raises(groupgt.DataError, match="'q2'"):
        groupgt.evaluate(truth, run, ["recall"], policy={"missing": "error"})


def test_extra_queries() -> None:
    run = {"q1": ["a"], "other": ["b"]}
    assert groupgt.evaluate({"q1": [["a"]]}, run, ["recall"]).counts["extra"] == 1
    with pytest.raises(groupgt.DataError, match="no ground truth"):
        groupgt.evaluate({"q1": [["a"]]}, run, ["recall"], policy={"extra": "error"})


def test_duplicates() -> None:
    truth, run = {"q": [["a"], ["b"]]}, {"q": ["a", "a", "x", "x", "b"]}
    penalize = groupgt.evaluate(truth, run, ["mrr", "precision", "map"])
    assert penalize.means == {"mrr": (1 + 1 / 5) / 2, "precision": 2 / 5, "map": (1 + 1 / 5) / 2}
    assert penalize.counts["duplicates"] == 1
    drop = groupgt.evaluate(truth, run, ["mrr"], policy={"duplicates": "drop"})
    assert drop["mrr"] == (1 + 1 / 3) / 2
    keep = groupgt.evaluate(truth, run, ["map", "ndcg"], policy={"duplicates": "keep"})
    # Group 1 has hits at 1 and 2: (1/1 + 2/2)/2; group 2 at 5: 1/5.
    assert keep["map"] == pytest.approx((1 + 1 / 5) / 2)
    with pytest.raises(groupgt.DataError, match="duplicate result 'a'"):
        groupgt.evaluate(truth, run, ["mrr"], policy={"duplicates": "error"})
    with pytest.raises(groupgt.ConfigError, match="rbp"):
        groupgt.evaluate(truth, run, ["mrr", "rbp"], policy={"duplicates": "keep"})


def test_keep_can_pass_one() -> None:
    assert groupgt.evaluate({"q": [["a"]]}, {"q": ["a", "a"]}, ["ndcg"], policy="autorag")["ndcg"] > 1


def test_flat_truth_says_which_is_meant() -> None:
    with pytest.raises(groupgt.DataError, match="flat_gt=and"):
        groupgt.evaluate({"q": ["a", "b"]}, {"q": ["a"]}, ["recall"])
    for choice, expected in (("and", 0.5), ("or", 1.0)):
        assert (
            groupgt.evaluate({"q": ["a", "b"]}, {"q": ["a"]}, ["recall"], policy={"flat_gt": choice})["recall"]
            == expected
        )
    with pytest.raises(groupgt.DataError, match="mixes ids and groups"):
        groupgt.evaluate({"q": ["a", ["b"]]}, {"q": ["a"]}, ["recall"], policy={"flat_gt": "or"})


@pytest.mark.parametrize("groups", [[["a"], []], [["a", ""]], [["a"], [" "]], [["a"], None], [["a", None]]])
def test_empty_groups_and_blank_ids(groups: Any) -> None:
    with pytest.raises(groupgt.DataError, match="'q'"):
        groupgt.evaluate({"q": groups}, {"q": ["a"]}, ["recall"])
    assert groupgt.evaluate({"q": groups}, {"q": ["a"]}, ["recall"], policy={"empty_groups": "drop"})["recall"] == 1


@pytest.mark.parametrize(
    "groups",
    [
        "ab",
        5,
        {"a": 1},
        [[1.5]],
        [[True]],
        [[b"a"]],
        [{"alternatives": ["a"], "wieght": 2}],
        [{"alternatives": ["a"], "weight": 0}],
        [{"alternatives": ["a"], "weight": float("inf")}],
        [{"alternatives": [{"id": "a", "grade": float("nan")}]}],
        [{"alternatives": [{"id": "a", "grade": 2.0**31 + 1}]}],
        [{"alternatives": [{"id": "a", "rank": 1}]}],
        [[["a"]]],
    ],
)
def test_ground_truth_of_a_wrong_shape_names_the_query(groups: Any) -> None:
    with pytest.raises(groupgt.DataError, match="query 'bad'"):
        groupgt.GroundTruth.of({"good": [["a"]], "bad": groups})


@pytest.mark.parametrize(("value", "how"), [(lambda _: 5, "times"), (lambda number: number + 5, "like this")])
def test_all_wrong_queries_are_told_at_once(value: Any, how: str) -> None:
    pattern = rf"^query 'q0': .* found 5 \(30 {how}; also at query 'q1', query 'q2', …\)$"
    with pytest.raises(groupgt.DataError, match=pattern):
        groupgt.GroundTruth.of({f"q{number}": value(number) for number in range(30)})


def test_ids_twice_in_a_group_count_once_and_are_counted() -> None:
    result = groupgt.evaluate({"q": [["a", "a"], ["b"]]}, {"q": ["a"]}, ["ndcg", "recall.trec"])
    assert result.counts["repeated_ids"] == 1
    assert result.means["recall.trec"] == 0.5


def test_weights_of_any_size_do_not_overflow() -> None:
    truth = {"q": [{"alternatives": ["a"], "weight": 1e308}, {"alternatives": ["b"], "weight": 1e308}]}
    for metric in ("recall.coverage", "ndcg.coverage", "map.coverage", "mrr.coverage"):
        assert groupgt.evaluate(truth, {"q": ["a", "b"]}, [metric])[metric] == 1


def test_exponential_gain_of_a_huge_grade_is_an_error_and_a_tiny_one_is_not() -> None:
    huge = {"q": [[{"id": "a", "grade": 5000}]]}
    assert groupgt.evaluate(huge, {"q": ["a"]}, ["ndcg.trec", "ndcg.coverage"]).means == {
        "ndcg.trec": 1,
        "ndcg.coverage": 1,
    }
    with pytest.raises(groupgt.MetricError, match="'q'"):
        groupgt.evaluate(huge, {"q": ["a"]}, ["ndcg.trec(gain=exp)"])
    tiny = {"q": [[{"id": "a", "grade": 1e-18}]]}
    assert groupgt.evaluate(tiny, {"q": ["a"]}, ["ndcg.trec(gain=exp)", "novelty_ndcg"]).means["novelty_ndcg"] == 1


def test_err_refuses_grades_above_its_scale(snapshot: Snapshot) -> None:
    with snapshot.raises(groupgt.MetricError):
        groupgt.evaluate({"q": [[{"id": "a", "grade": 5}]]}, {"q": ["b"]}, ["err"])


def test_a_trillion_as_k_costs_nothing() -> None:
    names = [each.name for each in groupgt.list_metrics() if each.takes_cutoff and each.queries == "answerable"]
    result = groupgt.evaluate(TRUTH, RUN, [f"{name}@1000000000000" for name in names], corpus=WORDS)
    whole = groupgt.evaluate(TRUTH, RUN, names, corpus=WORDS)
    for name in names:
        if name not in ("alpha_dcg", "err_ia", "p_ia", "unj"):
            assert result[f"{name}@1000000000000"] == whole[name]


def test_natural_spellings_are_taken() -> None:
    assert groupgt.evaluate(TRUTH, RUN, "recall", k=1).means == {"recall@1": 0.25}
    with pytest.raises(groupgt.MetricError, match="expected autorag, trec or coverage"):
        groupgt.evaluate(TRUTH, RUN, "recall", convention=["trec"])  # type: ignore[arg-type]  # a mistake to be named
    for k in (0, -1, 1.5, True, "5", 10**30):
        with pytest.raises(groupgt.MetricError, match="whole numbers"):
            groupgt.evaluate(TRUTH, RUN, "recall", k=[k])  # type: ignore[list-item]  # mistakes to be named


def test_ground_truth_is_reused() -> None:
    truth = groupgt.GroundTruth.of(TRUTH)
    first, second = (groupgt.evaluate(truth, run, ["ndcg.coverage@3"]) for run in (RUN, {"q1": ["c"]}))
    assert first.truth is second.truth is truth
    assert second["ndcg.coverage@3"] == pytest.approx((1 / (1 + 1 / math.log2(3))) / 2)


def test_a_parameter_that_differs_between_metrics_is_told() -> None:
    """trec_eval's rbp_resid has another p than rbp: the table names both, and neither where they are the same."""
    truth, run = {"q": [["a"], ["b"]]}, {"q": ["a", "x"]}
    told = str(groupgt.evaluate(truth, run, ["rbp", "rbp@5", "rbp_residual", "rbp_resid", "recall"]))
    assert "\np is 0.8 in rbp and rbp_residual, 0.9 in rbp_resid" in told
    told = str(groupgt.evaluate(truth, run, ["rbp(p=0.5)", "rbp_residual"]))
    assert "\np is 0.5 in rbp(p=0.5), 0.8 in rbp_residual" in told
    for metrics in (["rbp(p=0.9)", "rbp_resid"], ["rbp", "rbp(p=0.5)"], ["ndcg.trec(gain=exp)", "dcg"]):
        assert " is " not in str(groupgt.evaluate(truth, run, metrics)).partition("query:")[2]


@pytest.mark.parametrize("score", ["high", "0.9", True, math.nan, math.inf])
def test_a_score_in_a_result_is_a_finite_number(score: Any) -> None:
    run = {"q1": [{"id": "x", "score": score}, {"id": "c", "score": 0.5}]}
    with pytest.raises(groupgt.DataError, match="query 'q1': expected a score at rank 1, found"):
        groupgt.evaluate({"q1": [["c"]]}, run, ["mrr"])


def test_contradicted_ranks_of_declared_distances_are_told_as_declared() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"qid": ["q", "q"], "doc_id": ["x", "a"], "score": [0.9, 0.1], "rank": [1, 2]})
    found = groupgt.evaluate({"q": [["a"]]}, frame, ["mrr"], scores="ascending")
    assert found.means == {"mrr": 1}
    told = "queries whose ranks contradict their scores: results 1. groupgt sorts by score, lowest first, as declared"
    assert told in list(warnings_about({"results": found}))
