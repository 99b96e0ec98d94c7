"""Some thousands of random queries agree with the slow reference; `python -m tests.agreement` runs many more."""

from __future__ import annotations

import pytest

from tests.agreement import all_metrics, disagreements


def test_random_queries_agree_with_the_reference() -> None:
    assert disagreements(seed=0, queries=40) == []


@pytest.mark.property
@pytest.mark.parametrize("seed", range(1, 7))
def test_many_random_queries_agree_with_the_reference(seed: int) -> None:
    assert disagreements(seed=seed, queries=500) == []


def test_every_registered_metric_is_compared() -> None:
    from groupgt.metrics.catalogue import CATALOGUE

    assert {metric.name for metric in all_metrics()} == {
        name for name, each in CATALOGUE.items() if each.aggregate is None and each.queries != "unanswerable"
    }


def test_every_parameter_is_compared_beside_its_default() -> None:
    compared = {(each.name, each.convention, *pair) for each in all_metrics() for pair in each.parameters}
    for metric in all_metrics():
        for parameter in metric.formula.parameters:
            of = (metric.name, metric.convention, parameter.name)
            tried = {value for *other, value in compared if tuple(other) == of} - {parameter.default}
            assert tried, f"NUMBERS in tests/agreement.py has no other value of {parameter.name} for {metric.name}"
