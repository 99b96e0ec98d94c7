"""Some thousands of random queries agree with the slow reference; `python -m tests.agreement` runs many more."""

from __future__ import annotations

import pytest

from tests.agreement import all_metrics, disagreements


@pytest.mark.parametrize("seed", range(6))
def test_random_queries_agree_with_the_reference(seed: int) -> None:
    assert disagreements(seed=seed, queries=500) == []


def test_every_registered_metric_is_compared() -> None:
    from groupgt.metrics.catalogue import CATALOGUE

    assert {metric.name for metric in all_metrics()} == set(CATALOGUE)
