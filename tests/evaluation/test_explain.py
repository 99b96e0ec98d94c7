"""One query explained."""

from __future__ import annotations

import re

import pytest

import groupgt
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
RUN = {"q1": ["a", "x", "b", "y"], "q2": [("e", 0.9), ("d", 0.4)]}


def test_explain_shows_hits_and_figures() -> None:
    result = groupgt.evaluate(TRUTH, RUN, ["recall@5"])
    text = result.explain("q1", ["mrr", "ndcg@3"])
    assert "group 1: a or b" in text
    assert "mrr.autorag = 0.5000" in text
    assert "= (1/1) / 2" in text
    with pytest.raises(groupgt.DataError, match="did you mean 'q1'"):
        result.explain("q11")
    undefined = groupgt.evaluate({"q": []}, {"q": ["a"]}, ["recall"])
    assert "undefined" in undefined.explain("q")


def test_weights_are_shown_as_they_were_given() -> None:
    truth = {"q": [{"alternatives": ["a"], "weight": 2}, ["b"]]}
    text = groupgt.evaluate(truth, {"q": ["a"]}, ["mrr.coverage"]).explain("q", "mrr.coverage")
    assert "= (2/1) / (2/1 + 1/2)" in text


def test_what_is_judged_not_relevant_is_counted_and_no_group(snapshot: Snapshot) -> None:
    truth = {"q": [[{"id": "n", "grade": 0}], {"ids": ["a", {"id": "z", "grade": 0}], "name": "capital"}, ["c"]]}
    result = groupgt.evaluate(truth, {"q": ["n", "a", "z", "x"]}, ["recall"])
    lines = result.explain("q").splitlines()
    snapshot(lines[2:5])
    assert [line.split(maxsplit=2) for line in lines[6:12]] == [
        ["rank", "result", "g1    g2    judged"],
        ["------", "--------", "----  ----  ------------"],
        ["1", "n", "·     ·     not relevant"],
        ["2", "a", "1     ·"],
        ["3", "z", "·     ·     not relevant"],
        ["4", "x", "·     ·"],
    ]
    plain = result.explain_dict("q")
    assert (plain["groups"], plain["not_relevant"]) == ([{"alternatives": ["a"], "name": "capital"}, ["c"]], 2)
    assert [row["hits"] for row in plain["results"]] == [[], [1], [], []]


def test_long_lists_are_cut_with_a_count(snapshot: Snapshot) -> None:
    groups: list[list[object]] = [[f"d{number}"] for number in range(300)]
    judged: list[list[object]] = [[{"id": f"n{number}", "grade": 0}] for number in range(5_000)]
    ranking = [f"d{number}" for number in range(0, 300, 2)]
    result = groupgt.evaluate({"q": groups + judged}, {"q": ranking}, ["ndcg"])
    text = result.explain("q")
    assert len(text) < 5_000
    snapshot(text)
    assert re.search(r"\S … \(3,585 more characters\) … .*1/log2\(149\+1\) \+ 1/log2\(150\+1\)", text)
    assert max(map(len, text.splitlines())) < 1_100
    assert len(result.explain_dict("q")["groups"]) == 300


def test_a_result_of_many_groups_and_a_group_of_many_alternatives_are_cut() -> None:
    truth = {"q": [["x", *(f"d{group}-{number}" for number in range(30))] for group in range(20)]}
    text = groupgt.evaluate(truth, {"q": ["x", "x"]}, ["recall"]).explain("q")
    assert "group 1: x or d0-0 or d0-1 or d0-2 or d0-3 or d0-4 or d0-5 or d0-6 or d0-7 or d0-8 or 21 more\n" in text
    assert "1       x         g1 g2 g3 g4 g5 g6 g7 g8 12 more\n" in text
    assert "2       x         g1 (repeat) g2 (repeat)" in text
