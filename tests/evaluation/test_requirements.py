"""Means that a test requires, and what is said of those that fall short."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]], "q3": [["e"]]}
RUN = {"q1": ["a", "x", "c"], "q2": ["x", "d"], "q3": []}


@pytest.fixture
def result() -> groupgt.Evaluation:
    return groupgt.evaluate(TRUTH, RUN, ["recall@2", "mrr"], convention="coverage")


def test_nothing_is_said_where_all_hold(result: groupgt.Evaluation) -> None:
    result.assert_at_least({})
    result.assert_at_least({"recall@2": 0.5, "recall.coverage@2": 0.5, "mrr": 0})


def test_failing_queries_are_named_with_what_they_miss(result: groupgt.Evaluation, snapshot: Snapshot) -> None:
    with pytest.raises(AssertionError) as error:
        result.assert_at_least({"recall@2": 0.9, "mrr": 0.1})
    snapshot(str(error.value).splitlines())


def test_queries_that_meet_all_groups_too_late_say_where(snapshot: Snapshot) -> None:
    late = groupgt.evaluate({"q": [["a"]]}, {"q": ["x", "x2", "a"]}, ["mrr"])
    with snapshot.raises(AssertionError):
        late.assert_at_least({"mrr": 0.5})


def test_many_queries_are_cut(result: groupgt.Evaluation, snapshot: Snapshot) -> None:
    truth = {f"q{n:02}": [["a"]] for n in range(50)}
    truth["found"] = [["x"]]
    with pytest.warns(groupgt.GroupgtWarning, match="only 1 of 51 queries has a result that is in the ground truth"):
        many = groupgt.evaluate(truth, {qid: ["x"] for qid in truth}, ["recall@1"])
    with pytest.raises(AssertionError) as error:
        many.assert_at_least({"recall@1": 1})
    lines = str(error.value).splitlines()
    assert lines[1] == "50 queries are below 1, lowest first:"
    snapshot(lines[2])
    assert lines[-1].startswith("  and 40 more: q10, q11")
    assert lines[-1].endswith("q29 …")
    assert len(lines) == 13


def test_a_mean_without_queries_falls_short(snapshot: Snapshot) -> None:
    with snapshot.raises(AssertionError):
        groupgt.evaluate({"q": []}, {"q": ["a"]}, ["recall"]).assert_at_least({"recall": 0})


def test_rounding_is_no_shortfall() -> None:
    truth = {f"q{n}": [["a"], ["b"], ["c"]] for n in range(3)}
    run = {qid: ["a"] for qid in truth}
    groupgt.evaluate(truth, run, ["recall.coverage"]).assert_at_least({"recall.coverage": 1 - 2 / 3})


def test_what_cannot_be_required(snapshot: Snapshot) -> None:
    lower = next(metric.name for metric in groupgt.list_metrics() if not metric.higher_is_better)
    result = groupgt.evaluate(TRUTH, RUN, ["recall@2", lower])
    with pytest.raises(groupgt.MetricError, match=f"{lower}: lower is better"):
        result.assert_at_least({lower: 0.5})
    with snapshot.raises(groupgt.MetricError):
        result.assert_at_least({"recall@3": 0.5})
    for number, message in ((60, "never reaches 60"), (-1, "at least 0"), ("0.5", "found '0.5'"), (None, "found None")):
        with pytest.raises(groupgt.ConfigError, match=message):
            result.assert_at_least({"recall@2": number})  # type: ignore[dict-item]
    with snapshot.raises(groupgt.ConfigError):
        result.assert_at_least(0.5)  # type: ignore[arg-type]


def test_pytest_points_at_the_line_of_the_test(result: groupgt.Evaluation) -> None:
    with pytest.raises(AssertionError) as error:
        result.assert_at_least({"mrr": 1})
    shown = error.traceback.filter(error)
    assert [entry.path.name for entry in shown] == [Path(__file__).name]
