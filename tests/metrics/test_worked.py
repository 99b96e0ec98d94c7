"""Every formula, with its figures filled in, evaluates to the metric's own value."""

from __future__ import annotations

import random
from math import isnan, log2

import pytest

import groupgt
from groupgt.metrics.language import Metric
from tests.agreement import all_metrics, at, random_query


def evaluated(expression: str) -> float:
    """The expression as a reader with a calculator would evaluate it."""
    assert not set(expression) - set("0123456789.+-*/()e log2"), expression
    return float(eval(expression, {"__builtins__": {}}, {"log2": log2}))


@pytest.mark.parametrize("metric", list(all_metrics()), ids=str)
@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("duplicates", ["penalize", "keep"])
def test_worked_formula_gives_the_value(metric: Metric, k: int | None, duplicates: str) -> None:
    if duplicates == "keep" and metric.convention != "autorag":
        pytest.skip("keep is AutoRAG's arithmetic")
    rng = random.Random(7)
    batch = {f"q{number}": random_query(rng) for number in range(40)}
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    metric = at(metric, k)
    result = groupgt.evaluate(truth, run, [metric], policy={"duplicates": duplicates})
    values = result.values[str(metric)]
    compared = 0
    for position, value in enumerate(values.tolist()):
        if isnan(value):
            continue
        expression = metric.worked(result.labelled.hits, position)
        assert evaluated(expression) == pytest.approx(value, abs=1e-9), expression
        compared += 1
    assert compared > 10
