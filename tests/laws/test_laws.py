"""Every law over every registered metric, on whatever hypothesis thinks of."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupgt.metrics.base import CONVENTIONS
from tests import laws

IDS = st.sampled_from([f"d{number}" for number in range(9)])
GRADES = st.one_of(st.sampled_from([-1, 0, 1, 2, 3, 4]), st.floats(min_value=1e-6, max_value=4))
WEIGHTS = st.one_of(st.just(1), st.floats(min_value=1e-6, max_value=1e6))


@st.composite
def groups(draw: st.DrawFn) -> Any:
    ids = draw(st.lists(IDS, min_size=1, max_size=4))
    if draw(st.booleans()):
        return ids
    cells = [{"id": name, "grade": draw(GRADES)} for name in ids]
    return {"alternatives": cells, "weight": draw(WEIGHTS)}


QUERIES = st.tuples(st.lists(groups(), max_size=5), st.lists(st.one_of(IDS, st.sampled_from(["x", "y"])), max_size=10))
BATCHES = st.lists(QUERIES, min_size=1, max_size=6).map(lambda rows: {f"q{n}": row for n, row in enumerate(rows)})


@given(BATCHES)
def test_values_are_bounded(batch: laws.Batch) -> None:
    assert laws.bounded(batch, "penalize") == []
    assert laws.bounded(batch, "drop") == []
    assert laws.bounded(batch, "keep") == []


@given(BATCHES)
def test_ideal_rankings_score_one(batch: laws.Batch) -> None:
    assert laws.ideals(batch) == []


@given(BATCHES, st.randoms(use_true_random=False))
def test_order_of_groups_and_names_do_not_matter(batch: laws.Batch, rng: random.Random) -> None:
    assert laws.renaming(batch, rng) == []


@given(BATCHES, st.randoms(use_true_random=False))
def test_a_repeat_scores_no_more_than_an_irrelevant_result(batch: laws.Batch, rng: random.Random) -> None:
    assert laws.repeats(batch, rng) == []


@given(BATCHES, st.randoms(use_true_random=False))
def test_appending_results(batch: laws.Batch, rng: random.Random) -> None:
    assert laws.appending(batch, rng) == []


@given(BATCHES)
def test_groups_of_one_are_the_same_in_autorag_and_trec(batch: laws.Batch) -> None:
    assert laws.singletons(batch) == []


@given(BATCHES)
def test_alpha_of_one_is_coverage(batch: laws.Batch) -> None:
    assert laws.alpha_one(batch) == []


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_text_reads_back(convention: str) -> None:
    assert laws.round_trip(convention) == []


@given(BATCHES, st.randoms(use_true_random=False))
def test_a_query_does_not_depend_on_others(batch: laws.Batch, rng: random.Random) -> None:
    assert laws.alone(batch, rng) == []


@given(BATCHES, st.randoms(use_true_random=False))
def test_a_relevant_result_is_never_worse_than_an_irrelevant_one(batch: laws.Batch, rng: random.Random) -> None:
    assert laws.relevant_no_worse(batch, rng) == []


def test_autorag_does_not_promise_one_for_an_ideal_ranking() -> None:
    """Two groups, each met by one result: (1/1 + 1/2) / 2. That is AutoRAG's formula, and it is kept."""
    batch: laws.Batch = {"q": ([["a", "b"], ["c"]], ["a", "c"])}
    metric = laws.parse_metric("mrr.autorag")
    assert laws.values(batch, [metric])[metric][0] == 0.75


def test_laws_can_be_broken() -> None:
    """A metric that counts hits is not bounded by 1: the law says so when it is asked of it."""
    batch: laws.Batch = {"q": ([["a"], ["b"]], ["a", "b"])}
    unbounded = set(laws.UNBOUNDED)
    try:
        laws.UNBOUNDED.clear()
        assert any("hits" in line for line in laws.bounded(batch, "penalize"))
    finally:
        laws.UNBOUNDED.update(unbounded)
