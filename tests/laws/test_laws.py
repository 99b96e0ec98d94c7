"""Every law over every registered metric, on whatever hypothesis thinks of."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.testing import LAWS, Batch, batches, bounded, values_of
from tests import laws

BATCHES = batches()
RNGS = st.randoms(use_true_random=False)


@given(BATCHES, RNGS)
def test_values_are_bounded(batch: Batch, rng: random.Random) -> None:
    assert laws.always_bounded(batch, rng, laws.registered()) == []


@pytest.mark.parametrize("name", [name for name in LAWS if name != "bounded"])
@given(batch=BATCHES, rng=RNGS)
def test_what_any_metric_obeys(name: str, batch: Batch, rng: random.Random) -> None:
    assert LAWS[name].broken(batch, rng, laws.registered()) == []


@pytest.mark.parametrize("name", list(LAWS))
@given(batch=BATCHES, rng=RNGS)
def test_what_any_metric_obeys_with_other_words(name: str, batch: Batch, rng: random.Random) -> None:
    metrics = [metric for metric in laws.with_words() if LAWS[name].applies(metric.definition)]
    assert LAWS[name].broken(batch, rng, metrics) == []


@given(BATCHES)
def test_dropping_unjudged_results_equals_a_run_without_them(batch: Batch) -> None:
    assert laws.condensed(batch) == []


@given(BATCHES)
def test_ideal_rankings_score_one(batch: Batch) -> None:
    assert laws.ideals(batch) == []


@given(BATCHES, RNGS)
def test_appended_results_lower_no_recall(batch: Batch, rng: random.Random) -> None:
    assert laws.never_falling(batch, rng) == []


@given(BATCHES, RNGS)
def test_removing_a_harmful_result_never_lowers_clean(batch: Batch, rng: random.Random) -> None:
    assert laws.removing_harm(batch, rng) == []


@given(BATCHES)
def test_groups_of_one_are_the_same_in_autorag_and_trec(batch: Batch) -> None:
    assert laws.singletons(batch) == []


@given(BATCHES)
def test_alpha_of_one_is_coverage(batch: Batch) -> None:
    assert laws.alpha_one(batch) == []


@given(BATCHES, RNGS)
def test_a_relevant_result_is_never_worse_than_an_irrelevant_one(batch: Batch, rng: random.Random) -> None:
    assert laws.relevant_no_worse(batch, rng) == []


def test_autorag_does_not_promise_one_for_an_ideal_ranking() -> None:
    """Two groups, each met by one result: (1/1 + 1/2) / 2. That is AutoRAG's formula, and it is kept."""
    batch: Batch = {"q": ([["a", "b"], ["c"]], ["a", "c"])}
    metric = groupgt.parse_metric("mrr.autorag")
    assert values_of(batch, [metric])[metric][0] == 0.75


def test_laws_can_be_broken() -> None:
    """A metric that counts hits is not bounded by 1: the law says so when it is asked of it."""
    batch: Batch = {"q": ([["a"], ["b"]], ["a", "b"])}
    assert "hits = 2.0 for [['a'], ['b']], ['a', 'b']" in bounded(
        batch, random.Random(1), [groupgt.parse_metric("hits")]
    )
