"""A level of relevance in a metric is the policy's level, for this metric alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.errors import MetricError
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.catalogue import CATALOGUE
from groupgt.metrics.language import Metric, parse_metric

METRICS = [
    Metric(name, convention, cutoff=cutoff)
    for name, definition in CATALOGUE.items()
    if not definition.reads_texts and definition.queries == "answerable"
    for convention in definition.formulas
    for cutoff in ((None, 3) if definition.takes_cutoff else (None,))
]


def _data(seed: int, shape: str) -> tuple[Any, dict[str, list[str]]]:
    rng = random.Random(seed)
    truth: dict[str, Any] = {}
    run = {}
    for number in range(12):
        names = [f"d{place}" for place in range(9)]
        grades = [rng.choice((0, 1, 2, 2.5, 3)) for _ in names]
        if shape == "flat":
            truth[f"q{number}"] = dict(zip(names, grades))
        else:
            cells = [{"id": name, "grade": grade} for name, grade in zip(names, grades)]
            truth[f"q{number}"] = [cells[:3], cells[3:5], [*cells[5:], cells[0]]]
        run[f"q{number}"] = rng.sample([*names, "x", "y", "z"], rng.randint(0, 9))
    del run["q3"]
    return truth, run


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("undefined", ["skip", "zero"])
@pytest.mark.parametrize("shape", ["flat", "groups"])
def test_a_level_in_a_metric_is_the_level_of_the_policy(shape: str, undefined: str, missing: str) -> None:
    truth, run = _data(7, shape)
    rules = {"undefined": undefined, "missing": missing}
    metrics = [metric for metric in METRICS if metric.formula.takes_level]
    for level in (1, 2.5, 3):
        named = [parse_metric(_with_level(metric, level)) for metric in metrics]
        here = groupgt.evaluate(truth, run, named, policy=rules)
        there = groupgt.evaluate(truth, run, metrics, policy={**rules, "level": str(level)})
        for one, other in zip(here.values.values(), there.values.values(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_metrics_that_take_no_level_do_not_depend_on_the_policys() -> None:
    truth, run = _data(11, "groups")
    metrics = [metric for metric in METRICS if not metric.formula.takes_level]
    assert {"ndcg", "dcg", "judged"} <= {metric.name for metric in metrics}
    plain = groupgt.evaluate(truth, run, metrics)
    leveled = groupgt.evaluate(truth, run, metrics, policy={"level": "2"})
    for one, other in zip(plain.values.values(), leveled.values.values(), strict=True):
        both = ~np.isnan(one) & ~np.isnan(other)
        np.testing.assert_array_equal(one[both], other[both])
    for metric in metrics:
        with pytest.raises(MetricError, match="does not depend on a relevance level"):
            parse_metric(_with_level(metric, 2))


def test_metrics_with_and_without_a_level_stand_side_by_side() -> None:
    truth = {"q": {"a": 1, "b": 2, "c": 3}, "p": {"a": 1}}
    run = {"q": ["a", "x", "b"], "p": ["a"]}
    result = groupgt.evaluate(truth, run, ["recall(level=1)@3", "map(level=2)", "recall@3"], policy={"level": "3"})
    # recall, level 1: q has found a and b of 3, p its only one. map, level 2: of b and c only b is found, at rank 3,
    # so (1/3)/2; p has no relevant document. The policy's level 3 leaves c, which is not found.
    assert list(result.means) == ["recall(level=1)@3", "map(level=2)", "recall@3"]
    assert result.means["recall(level=1)@3"] == pytest.approx((2 / 3 + 1) / 2)
    assert result.means["map(level=2)"] == pytest.approx(1 / 6)
    assert result.means["recall@3"] == 0


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_level_is_always_printed(convention: str) -> None:
    metric = parse_metric("recall(level=1)@5", convention)
    assert str(metric) == f"recall.{convention}(level=1)@5"
    assert parse_metric(str(metric)) == metric
    assert str(parse_metric("rbp(p=0.5, level=0.5)")) == "rbp(level=0.5, p=0.5)"


def test_ir_measures_spelling() -> None:
    assert parse_metric("AP(rel=2)", "trec") == parse_metric("map.trec(level=2)")
    assert parse_metric("P(rel=2)@5", "trec") == parse_metric("precision.trec(level=2)@5")


@pytest.mark.parametrize("level", ["0", "-1", "high", "nan", ""])
def test_levels_that_are_no_grades(level: str) -> None:
    with pytest.raises(MetricError, match="level"):
        parse_metric(f"recall(level={level})@5")


def _with_level(metric: Metric, level: float) -> str:
    return str(Metric(metric.name, metric.convention, cutoff=metric.cutoff, level=level))
