"""Which queries have a value, and which metrics a policy refuses."""

from __future__ import annotations

import math

import pytest

import groupgt

TRUTH = {"met": [["a", "z"]], "missing": [["b"]], "empty": [["c"]], "undefined": []}
RUN = {"met": ["a", "z"], "empty": []}


def values(metric: str, **policy: str) -> list[float | None]:
    column = groupgt.evaluate(TRUTH, RUN, [metric], policy=policy).values[next(iter([metric]))]
    return [None if math.isnan(value) else value for value in column.tolist()]


def test_missing_queries_are_0_or_skipped() -> None:
    assert values("recall", missing="zero") == [1, 0, 0, None]
    # A list without results is as good as none.
    assert values("recall", missing="skip") == [1, None, None, None]


def test_where_lower_is_better_an_empty_ranking_is_undefined() -> None:
    """One of two results meets nothing new."""
    assert values("redundancy", missing="zero") == [0.5, None, None, None]


def test_repeats_are_kept_by_autorag_and_by_metrics_of_texts_alone() -> None:
    with pytest.raises(groupgt.ConfigError, match=r"recall\.trec: duplicates=keep"):
        groupgt.evaluate(TRUTH, RUN, ["recall.trec", "precision"], policy={"duplicates": "keep"})
    run = {"met": [("a", 1.0)]}
    texts = {"a": "one two", "b": "three", "c": "four"}
    found = groupgt.evaluate(
        {"met": [["a"]]}, run, ["token_f1", "precision"], corpus=texts, policy={"duplicates": "keep"}
    )
    assert found.means == {"token_f1": 1, "precision": 1}
