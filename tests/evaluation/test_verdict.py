"""What is said first of several runs on one ground truth, none of which is tested against another."""

from __future__ import annotations

import pytest

import groupgt

TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]]}
ALL = {"q1": ["a", "b"], "q2": ["c"]}
LATE = {"q1": ["x", "a", "b"], "q2": ["x", "c"]}
FIRST = {"q1": ["a", "x", "x2"], "q2": ["c"]}
NONE = {"q1": ["x"], "q2": ["x"]}
METRICS = ["recall@3", "mrr.trec"]
COMPARE = " `groupgt compare` says which differences are real."


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"all": ALL, "none": NONE}, "all is the best of 2 runs by both metrics." + COMPARE),
        ({"all": ALL, "late": LATE}, "all is the best of 2 runs by mrr.trec." + COMPARE),
        (
            {"first": FIRST, "all": ALL, "none": NONE},
            "all is the best of 3 runs by both metrics; first by mrr.trec." + COMPARE,
        ),
        # None is better than another: each is named with what it is best by.
        (
            {"first": FIRST, "late": LATE},
            "late is the best of 2 runs by recall@3; first by mrr.trec." + COMPARE,
        ),
        (
            {"one": ALL, "other": ALL, "none": NONE},
            "one and other are equally good, and the best of 3 runs by both metrics." + COMPARE,
        ),
        ({"one": ALL, "other": ALL}, "Both runs have the same mean by each metric."),
    ],
)
def test_runs_that_tie_are_named_together(runs: dict[str, dict[str, list[str]]], said: str) -> None:
    assert str(groupgt.evaluate_runs(TRUTH, runs, METRICS)).splitlines()[0] == said


def test_runs_without_a_mean_are_not_called_equal() -> None:
    text = str(groupgt.evaluate_runs({"q": []}, {"one": {"q": ["a"]}, "other": {"q": ["a"]}}, ["recall@3"]))
    assert "same mean" not in text
