"""What an evaluation missed."""

from __future__ import annotations

import groupgt
from groupgt.evaluation.misses import misses_of


def test_misses_lists_the_worst_first() -> None:
    truth = {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": [["d"]]}
    run = {"q1": ["a", "x", "b"], "q2": ["x"], "q3": ["d"]}
    found = misses_of(groupgt.evaluate(truth, run, ["recall"]), k=2)
    assert [query["qid"] for query in found.queries] == ["q2", "q1"]
    assert found.queries[1]["groups"][1] == {"group": "group 2", "rank": 3, "met": False, "alternatives": ["b"]}
    assert found.by_group == [
        {"number": 1, "groups": 3, "met": 2 / 3, "anywhere": 2 / 3},
        {"number": 2, "groups": 1, "met": 0.0, "anywhere": 1.0},
    ]
    text = found.text()
    assert "not among its 1 results" in text
    assert "rank 3 (beyond 2)" in text


def test_misses_keeps_group_names_when_one_is_dropped() -> None:
    truth = {"q": [[{"id": "n", "grade": 0}], {"alternatives": ["a"], "name": "capital"}]}
    found = misses_of(groupgt.evaluate(truth, {"q": ["x"]}, ["recall"]))
    assert [group["group"] for group in found.queries[0]["groups"]] == ["capital"]
