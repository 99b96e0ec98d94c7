"""One query explained."""

from __future__ import annotations

import pytest

import groupgt

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
