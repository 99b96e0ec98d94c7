"""The worked formulas as a reader sees them, and the ranges of parameters, at their very ends."""

from __future__ import annotations

from typing import Any

import pytest

import groupgt
from groupgt.metrics.language import parse_metric


def written(metric: str, truth: list[Any], results: list[str]) -> str | None:
    evaluation = groupgt.evaluate({"q": truth}, {"q": results}, [metric])
    return evaluation.metrics[next(iter(evaluation.metrics))].explanation(evaluation.labelled.hits, 0)


@pytest.mark.parametrize(
    ("metric", "results", "expected"),
    [
        # The group that is not met adds no term, and counts below the line.
        ("map.autorag", ["x", "a"], "((1/2) / 1) / 2"),
        ("map.autorag", ["x"], "0"),
        # The first result has no power of p.
        ("rbp", ["a", "c"], "(1-0.8) * (1 + 0.8**1)"),
        ("rbp", ["x", "a"], "(1-0.8) * (0.8**1)"),
        ("rbp", ["x"], "0"),
        ("mrr.coverage", ["a", "x", "c"], "(1/1 + 1/3) / (1/1 + 1/2)"),
        ("mrr.coverage", ["x"], "0"),
    ],
)
def test_a_formula_as_it_is_written(metric: str, results: list[str], expected: str) -> None:
    assert written(metric, [["a", "b"], ["c"]], results) == expected


@pytest.mark.parametrize(
    ("metric", "holds"),
    [
        ("err(max_grade=1000)", True),
        ("err(max_grade=1001)", False),
        ("err(max_grade=0)", False),
        ("err(max_grade=0.5)", True),
        ("rbp(p=0)", False),
        ("rbp(p=1)", False),
    ],
)
def test_the_ends_of_a_range(metric: str, holds: bool) -> None:
    if holds:
        assert str(parse_metric(metric)) == metric
    else:
        with pytest.raises(groupgt.MetricError, match="expected a number above 0"):
            parse_metric(metric)


def test_the_highest_grade_of_err_unless_it_is_said() -> None:
    """(2^4 − 1) / 2^4 = 15/16; a grade of 5 is an error."""
    assert groupgt.evaluate({"q": [[{"id": "a", "grade": 4}]]}, {"q": ["a"]}, ["err"]).means == {"err": 15 / 16}
    with pytest.raises(groupgt.MetricError, match=r"found 5; write err\(max_grade=5\)"):
        groupgt.evaluate({"q": [[{"id": "a", "grade": 5}]]}, {"q": ["a"]}, ["err"])


def test_two_more_results_than_one_stop_readers_of_err() -> None:
    """Grades of 1 stop one reader in 16: 1/16 + (1/2)(1/16)(15/16) + (1/3)(1/16)(15/16)²."""
    value = groupgt.evaluate({"q": [["a"], ["b"], ["c"]]}, {"q": ["a", "b", "c"]}, ["err"]).means["err"]
    assert value == pytest.approx(1 / 16 + 15 / 16 / 16 / 2 + (15 / 16) ** 2 / 16 / 3, abs=1e-15)
