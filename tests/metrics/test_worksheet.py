"""Every formula, with its figures filled in, evaluates to the metric's own value."""

from __future__ import annotations

import random
from functools import cache
from math import isnan, log2

import pytest

import groupgt
from groupgt.metrics.language import Metric
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
    truth = groupgt.GroundTruth.of({qid: groups for qid, (groups, _) in batch.items()})
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
