"""Every formula, with its figures filled in, evaluates to the metric's own value."""

from __future__ import annotations

import random
from functools import cache
from math import isnan, log2

import pytest

import groupgt
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric
from groupgt.metrics.terms import at_most_one, log_share, number, over
from groupgt.metrics.worksheet import Hit, Sheet
from groupgt.testing import rejected
from tests import laws
from tests.agreement import all_metrics, at, random_query


def evaluated(expression: str) -> float:
    """The expression as a reader with a calculator would evaluate it."""
    assert not set(expression) - set("0123456789.+-*/()e log2"), expression
    return float(eval(expression, {"__builtins__": {}}, {"log2": log2}))


@cache
def queries() -> tuple[groupgt.GroundTruth, groupgt.Run]:
    """The same for every metric."""
    rng = random.Random(7)
    batch = {f"q{number}": random_query(rng) for number in range(40)}
    harmful = {qid: rejected(groups) for qid, (groups, _) in batch.items()}
    truth = groupgt.GroundTruth.of({qid: groups for qid, (groups, _) in batch.items()}, harmful_ids=harmful)
    return truth, groupgt.Run.of({qid: ranking for qid, (_, ranking) in batch.items()})


CASES = [(metric, "penalize") for metric in all_metrics()]
# keep is AutoRAG's arithmetic.
CASES += [(metric, "keep") for metric in all_metrics() if metric.convention == "autorag"]


@pytest.mark.parametrize(("metric", "duplicates"), CASES, ids=str)
@pytest.mark.parametrize("k", [None, 3])
def test_worked_formula_gives_the_value(metric: Metric, duplicates: str, k: int | None) -> None:
    truth, run = queries()
    metric = at(metric, k)
    result = groupgt.evaluate(truth, run, [metric], policy={"duplicates": duplicates}, corpus=laws.WORDS)
    values = result.values[str(metric)]
    compared = 0
    for position, value in enumerate(values.tolist()):
        if isnan(value):
            continue
        expression = metric.explanation(result.labelled.hits, position)
        assert abs(evaluated(expression) - value) <= 1e-9, expression
        compared += 1
    assert compared > 10


def sheet(groups: list[list[str]], ranking: list[str], duplicates: str = "penalize") -> Sheet:
    hits = groupgt.evaluate({"q": groups}, {"q": ranking}, ["recall"], policy={"duplicates": duplicates}).labelled.hits
    return Sheet.of(hits, 0, Cut.at(hits, 3))


def test_groups_are_met_once_whatever_is_kept() -> None:
    """The first group is hit at rank 1, and again by the same at rank 2; where repeats are kept they are counted."""
    first, again, second = Hit(1, 1, 1.0), Hit(2, 2, 1.0), Hit(3, 1, 1.0)
    for duplicates, counted in (("penalize", (first,)), ("keep", (first, again))):
        laid_out = sheet([["a"], ["b"]], ["a", "a", "b"], duplicates)
        assert [group.hits for group in laid_out.groups] == [(first,), (second,)]
        assert [group.hits for group in laid_out.counted_groups] == [counted, (second,)]
        assert [group.first for group in laid_out.groups] == [1, 3]


def test_a_query_without_groups_has_nothing_to_scale() -> None:
    empty = sheet([], ["a"])
    assert (empty.groups, empty.scale) == ((), 1.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (2.0, "2"), (-2.0, "(-2)"), (0.5, "0.5"), (1e15 - 1, "999999999999999"), (1e15, "1e+15"),
        (2e15, "2e+15"), (1 / 3, "0.333333333333"),
    ],
)  # fmt: skip
def test_numbers_as_a_reader_writes_them(value: float, text: str) -> None:
    assert number(value) == text


def test_a_beaten_ideal_is_said() -> None:
    assert at_most_one("x", 0.6, 0.5) == "min(1, x)"
    for value, ideal in ((0.5, 0.5), (0.4, 0.5), (1.0, 0.0), (0.0, 0.0)):
        assert at_most_one("x", value, ideal) == "x"


def test_brackets_are_where_they_are_needed() -> None:
    assert over("0.5", 2) == "0.5 / 2"
    assert over("1 + 2", "log2(3)") == "(1 + 2) / (log2(3))"
    assert log_share(3) == "1/log2(3+1)"
    assert log_share(3, 0.5) == "0.5/log2(3+1)"
