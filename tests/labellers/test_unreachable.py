"""Alternatives that no result can hit: where the border lies, and what the warning says to change."""

from __future__ import annotations

from typing import Any

import pytest

import groupgt
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.model.ground_truth import GroundTruth


def unreachable(alternatives: list[Any], use: str, **options: Any) -> tuple[list[int], str]:
    labeller = labeller_of({"use": use, "with": options}, Sources())
    truth = labeller.read(GroundTruth.of({"q": [[alternative] for alternative in alternatives]}))
    places, way = labeller.unreachable(truth)
    return places.tolist(), way


def words(count: int) -> str:
    return " ".join(f"w{number}" for number in range(count))


@pytest.mark.parametrize(
    ("options", "expected", "way"),
    [
        # The longest passage has 7 words: it can contain 7, and has half of 14.
        ({}, [2, 3], "compare by token_recall with a lower threshold"),
        ({"method": "token_recall", "threshold": 0.5}, [3], "lower threshold"),
        ({"method": "token_recall", "threshold": 1}, [2, 3], "lower threshold"),
        ({"method": "partial_ratio"}, [], ""),
    ],
)
def test_texts_longer_than_any_passage(options: dict[str, Any], expected: list[int], way: str) -> None:
    if options.get("method") == "partial_ratio":
        pytest.importorskip("rapidfuzz", reason="RapidFuzz is in the extra groupgt[text]")
    texts = [{"text": words(count)} for count in (1, 7, 14, 15)]
    corpus = {"c1": words(7), "c2": words(2)}
    assert unreachable(texts, "text", corpus=corpus, **options) == (expected, way)


def test_a_text_that_reaches_the_threshold_exactly_can_be_hit() -> None:
    """7 of 50 words are .14 of them, though .14 · 50 is above 7 as floats go."""
    assert 0.14 * 50 > 7
    options = {"method": "token_recall", "threshold": 0.14, "corpus": {"c": words(7)}}
    assert unreachable([{"text": words(50)}], "text", **options)[0] == []
    assert unreachable([{"text": words(51)}], "text", **options)[0] == [0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # 4 and 3 of 10 characters, 7 together; half of 10 is 5, and .71 of them are 7.1.
        ({}, [0]),
        ({"min_overlap": 0.4}, []),
        ({"joint": True}, []),
        ({"joint": True, "min_overlap": 0.7}, []),
        ({"joint": True, "min_overlap": 0.71}, [0]),
    ],
)
def test_places_that_chunks_do_not_cover(options: dict[str, Any], expected: list[int]) -> None:
    """Of a document without a chunk another warning tells."""
    chunks = {"c1": ("d", 0, 4), "c2": ("d", 4, 7)}
    alternatives = [{"doc": doc, "start": 0, "end": 10} for doc in ("d", "other")]
    with pytest.warns(groupgt.GroupgtWarning, match="the chunk table has no chunks for 1 of 2 ground truth documents"):
        places, way = unreachable(alternatives, "spans", chunks=chunks, **options)
    assert places == expected
    others = "" if "joint" in options else " or let several chunks jointly cover an alternative (joint: true)"
    assert way == f"lower min_overlap{others}"
