"""One query scored without set-up: the same bits as `evaluate`, whatever is given."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.metrics.base import CONVENTIONS

NAMES = st.sampled_from("abcdefghij")
CELLS = st.one_of(NAMES, NAMES, NAMES, st.builds(lambda name: {"id": name, "grade": 2}, NAMES))
GROUPS = st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=4)
RESULTS = st.one_of(
    st.lists(NAMES, max_size=9, unique=True),
    st.lists(NAMES, max_size=9),
    st.dictionaries(NAMES, st.integers(0, 3).map(float), max_size=5),
    st.lists(NAMES, max_size=9, unique=True).map(tuple),
)
METRICS = st.lists(
    st.sampled_from(
        [
            "recall",
            "complete",
            "ndcg@10",
            "ndcg",
            "ndcg@2",
            "recall@3",
            "complete@1",
            "mrr",
            "map.coverage",
            "redundancy",
        ]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)


def expected(truth: Any, ids: Any, metrics: Any, convention: str) -> Any:
    """The values of `evaluate`, or the text of its error."""
    try:
        found = groupgt.evaluate({"query": truth}, {"query": ids}, metrics, convention=convention)  # type: ignore[arg-type]
    except groupgt.GroupgtError as error:
        return type(error), str(error)
    return {text: None if math.isnan(column[0]) else column[0] for text, column in found.values.items()}


def scored(truth: Any, ids: Any, metrics: Any, convention: Any) -> Any:
    """The values of `score`, or the text of its error."""
    try:
        return groupgt.score(truth, ids, metrics, convention)
    except groupgt.GroupgtError as error:
        return type(error), str(error)


@given(GROUPS, RESULTS, METRICS, st.sampled_from(["auto", *CONVENTIONS]))
def test_the_same_bits_as_evaluate(truth: Any, ids: Any, metrics: list[str], convention: Any) -> None:
    assert scored(truth, ids, metrics, convention) == expected(truth, ids, metrics, convention)


@given(st.integers(1, 60), st.integers(1, 60), st.randoms(use_true_random=False))
def test_long_rankings_too(groups: int, results: int, rng: Any) -> None:
    names = [f"d{number}" for number in range(200)]
    rng.shuffle(names)
    truth = [[names.pop() for _ in range(rng.randrange(1, 3))] for _ in range(groups)]
    ids = [f"d{number}" for number in rng.sample(range(200), results)]
    metrics = ["recall", "complete", "ndcg@10", "ndcg", "ndcg@50", "recall@20"]
    assert groupgt.score(truth, ids, metrics) == expected(truth, ids, metrics, "auto")


@pytest.mark.parametrize(
    ("truth", "ids"),
    [
        ({"a": 2, "b": 0}, ["b", "a"]),
        ([["a", "a"], ["b"]], ["a", "b"]),
        ([["a"], ["a", "b"]], ["a"]),
        ([], ["a"]),
        ([["a"]], []),
        ([[{"all": ["a", "b"]}]], ["b", "a"]),
        ([["a"]], ["x"] * 2),
        ([["a"]], [{"id": "a"}]),
        ([["d0"]], [f"d{number}" for number in range(2000)]),
    ],
)
def test_anything_that_is_no_plain_list(truth: Any, ids: Any) -> None:
    metrics = ["recall", "complete"]
    assert groupgt.score(truth, ids, metrics) == expected(truth, ids, metrics, "auto")


@pytest.mark.parametrize(
    ("truth", "ids", "metrics"),
    [
        ([["a", " "]], ["a"], "recall"),
        (["a", "b"], ["a"], "recall"),
        ([["a"], []], ["a"], "recall"),
        ([["a"]], ["a", None], "recall"),
        ([["a"]], ["a\n"], "recall"),
        ([["a"]], "a", "recall"),
        ([["a"]], ["a"], "recal"),
        ([["a"]], ["a"], "recall@20tokens"),
    ],
)
def test_errors_are_those_of_evaluate(truth: Any, ids: Any, metrics: str) -> None:
    with pytest.raises(groupgt.GroupgtError) as wanted:
        groupgt.evaluate({"query": truth}, {"query": ids}, [metrics])
    with pytest.raises(type(wanted.value)) as error:
        groupgt.score(truth, ids, metrics)
    assert str(error.value) == str(wanted.value)
    assert groupgt.score([["a"]], ["a"], "recall") == {"recall": 1.0}
