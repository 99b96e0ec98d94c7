"""`check_metric` finds what breaks a law, and shows the smallest queries that do."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt import plugins
from groupgt.metrics.views import covered_groups, relevant_results
from groupgt.testing import LAWS, check_metric

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered here is forgotten afterwards."""
    monkeypatch.setattr(plugins, "REGISTERED", {})


def half_life(hits: Any, h: float = 5.0) -> Any:
    """How early each group is met."""
    rows = covered_groups(hits)
    worth = np.bincount(rows.query, 2.0 ** ((1 - rows.rank) / h), minlength=hits.size)
    return worth / np.maximum(hits.judgments.groups, 1)


def registered(function: Any, **facts: Any) -> Any:
    return groupgt.metric("mine", **{"formula": "what it does", **facts})(function)


def test_a_sound_metric_passes() -> None:
    check_metric(registered(half_life), examples=15)
    check_metric("mine(h=2)@3", laws=["bounded"], examples=15)


@pytest.mark.property
@pytest.mark.parametrize("metric", ["ndcg.coverage@5", "redundancy", "bpref", "alpha_ndcg", "dcg", "token_f1"])
def test_ours_pass(metric: str) -> None:
    check_metric(metric, examples=15)


def fault(metric: Any, **how: Any) -> str:
    with pytest.raises(AssertionError) as error:
        check_metric(metric, examples=80, **how)
    return str(error.value)


def test_values_beyond_one() -> None:
    text = fault(registered(lambda hits: np.bincount(relevant_results(hits).query, minlength=hits.size) / 1.0))
    assert text.startswith("the law 'bounded' is broken: values lie in [0, 1]\nmine = 2.0 for ")
    # the smallest there is: two results that hit
    assert text.count("'d") == 4
    check_metric(registered(half_life, bounded=False, replace=True), laws=["bounded"], examples=5)


def test_names_that_matter() -> None:
    def by_document(hits: Any) -> Any:
        rows = relevant_results(hits)
        first = np.zeros(hits.size)
        starts = np.flatnonzero(rows.nth == 1)
        order = hits.judgments.byte_order()[hits.judgments.alternative_document]
        first[rows.query[starts]] = 1.0 / (1 + order[: len(starts)])
        return first

    assert fault(registered(by_document), laws=["order"]).startswith("the law 'order' is broken")


def test_repeats_that_earn() -> None:
    def share_of_hits(hits: Any) -> Any:
        return np.bincount(hits.query, minlength=hits.size) / np.maximum(hits.length, 1)

    text = fault(registered(share_of_hits, bounded=False), laws=["repeats"])
    assert text.startswith("the law 'repeats' is broken: a repeated result scores no more than a non-relevant")
    assert "'irrelevant'" in text


def test_queries_that_depend_on_each_other() -> None:
    def ranked(hits: Any) -> Any:
        return np.arange(hits.size) / max(hits.size, 1)

    assert fault(registered(ranked), laws=["alone"]).startswith("the law 'alone' is broken")


def test_a_metric_that_knows_what_it_should_not() -> None:
    numbers = count()

    def drifting(hits: Any) -> Any:
        return np.full(hits.size, 1 / (1 + next(numbers)))

    assert "the law " in fault(registered(drifting))


def test_what_lies_behind_the_cutoff_cannot_be_seen() -> None:
    """So that law 5 holds for any function of what it is given."""
    check_metric(registered(lambda hits: 1.0 / (1 + hits.length)), laws=["appending"], examples=40)


def test_a_metric_that_fails() -> None:
    def failing(hits: Any) -> Any:
        raise ValueError("no\nluck")

    assert "metric 'mine': ValueError: no (" in fault(registered(failing))


def test_laws_that_are_none() -> None:
    with pytest.raises(groupgt.ConfigError, match=r"laws: expected bounded, .*found 'order_' \(did you mean 'order'"):
        check_metric("recall", laws=["order_"])
    assert set(LAWS) == {"bounded", "order", "repeats", "appending", "alone", "text"}
