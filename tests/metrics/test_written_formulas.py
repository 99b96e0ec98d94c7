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


def test_a_judged_irrelevant_document_adds_no_term() -> None:
    truth = [[{"id": "a", "grade": 2}], [{"id": "b", "grade": 0}]]
    assert written("ndcg.trec", truth, ["a"]) == "(2/log2(1+1)) / (2/log2(1+1))"


def test_a_second_alternative_adds_no_term_unless_it_is_better() -> None:
    assert written("ndcg.coverage", [["a", "b"]], ["a", "b"]) == "(1/log2(1+1)) / (1/log2(1+1))"


def two_halves(each: int, more: int) -> list[list[str]]:
    """A and B meet `each` groups, C `more` than one of them, half of either's, and 13 documents a group of their own.

    The greedy ideal begins with C; A and B together meet as much as C and both of them.
    """
    of_c = (each + more) // 2
    return [
        *([side, "C"] if number < of_c else [side] for side in "AB" for number in range(each)),
        *([f"s{number}"] for number in range(13)),
    ]


@pytest.mark.parametrize(
    ("metric", "each", "more", "beaten"),
    [
        # 7 + 7/log2(3) = 11.42 for A, B; 8 + 3/log2(3) + 3/log2(4) = 11.39 for C, A, B, and the 13 come one rank later.
        ("ndcg.coverage", 7, 1, True),
        # 7 + 7/2 = 10.5; 8 + 3/2 + 3/3 = 10.5, and the 13 come one rank later.
        ("mrr.coverage", 7, 1, True),
        # 34 + 34/log2(3) = 55.45 and then 13 from rank 3; 40 + 14/log2(3) + 14/log2(4) = 55.83 and then 13 from rank 4:
        # 1/log2(4) - 1/log2(17) = 0.26 is less than what lies between them.
        ("ndcg.coverage", 34, 6, False),
    ],
)
def test_where_the_greedy_ideal_is_beaten_the_formula_says_1(metric: str, each: int, more: int, beaten: bool) -> None:
    text = written(metric, two_halves(each, more), ["A", "B", *(f"s{number}" for number in range(13))])
    assert text is not None
    assert text.startswith("min(1, ") == beaten


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
