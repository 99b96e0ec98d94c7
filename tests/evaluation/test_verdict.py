"""What is said first of several runs on one ground truth, none of which is tested against another."""

from __future__ import annotations

import re

import pytest

import groupgt
from groupgt.evaluation.depth import depths_of
from groupgt.evaluation.missed import Misses
from groupgt.model.values import Lengths
from groupgt.render.document import Verdict, document
from groupgt.render.layout import Screen
from groupgt.render.results import Result
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]]}
ALL = {"q1": ["a", "b"], "q2": ["c"]}
LATE = {"q1": ["x", "a", "b"], "q2": ["x", "c"]}
FIRST = {"q1": ["a", "x", "x2"], "q2": ["c"]}
NONE = {"q1": ["x"], "q2": ["x"]}
METRICS = ["recall@3", "mrr.trec"]


@pytest.mark.parametrize(
    "runs",
    [
        {"all": ALL, "none": NONE},
        {"all": ALL, "late": LATE},
        {"first": FIRST, "all": ALL, "none": NONE},
        # None is better than another: each is named with what it is best by.
        {"first": FIRST, "late": LATE},
        {"one": ALL, "other": ALL, "none": NONE},
        {"one": ALL, "other": ALL},
    ],
    ids=", ".join,
)
def test_runs_that_tie_are_named_together(runs: dict[str, dict[str, list[str]]], snapshot: Snapshot) -> None:
    snapshot(str(groupgt.evaluate_runs(TRUTH, runs, METRICS)).splitlines()[0])


def test_runs_without_a_mean_are_not_called_equal() -> None:
    text = str(groupgt.evaluate_runs({"q": []}, {"one": {"q": ["a"]}, "other": {"q": ["a"]}}, ["recall@3"]))
    assert "same mean" not in text


def bold(result: Result) -> list[str]:
    """What a terminal shows bold of the first sentence of a result."""
    (verdict,) = [item for item in result.blocks() if isinstance(item, Verdict)][:1]
    line = document([verdict], screen=Screen(color=True)).split("\n")[0]
    return re.findall(r"\x1b\[1m(.*?)\x1b\[0m", line)


def depths(runs: dict[str, dict[str, list[str]]]) -> Result:
    evaluations = list(groupgt.evaluate_runs(TRUTH, runs, METRICS).values())
    return depths_of(evaluations, [1.0], unit="results", confidence=0.95, lengths=Lengths())


def test_the_names_of_runs_are_bold_and_nothing_else() -> None:
    runs = {"all": ALL, "late": LATE, "none": NONE}
    assert bold(groupgt.evaluate_runs(TRUTH, {"all": ALL, "first": FIRST, "none": NONE}, METRICS)) == ["all", "first"]
    assert bold(groupgt.misses(TRUTH, runs, k=2)) == list(runs)
    assert bold(depths(runs)) == list(runs)


def test_runs_that_need_the_same_depth_are_named_together(snapshot: Snapshot) -> None:
    snapshot(str(depths({"one": ALL, "other": ALL, "late": LATE})).splitlines()[0])


@pytest.mark.parametrize(
    "runs",
    [
        {"all": ALL, "late": LATE},
        {"one": ALL, "other": ALL, "late": LATE},
        {"one": ALL, "other": ALL},
        {"one": ALL},
        {"all": ALL, "late": LATE, "a": NONE, "b": NONE, "c": NONE},
    ],
    ids=", ".join,
)
def test_runs_that_miss_as_much_are_named_together(runs: dict[str, dict[str, list[str]]], snapshot: Snapshot) -> None:
    found = Misses.of([groupgt.evaluate(TRUTH, run, METRICS, name=name) for name, run in runs.items()], 2)
    snapshot(str(found).splitlines()[0])
