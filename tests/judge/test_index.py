"""The index of the judge page: pieces of words, and BM25 by its formula, over several parts."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest

from groupgt.errors import DataError
from groupgt.judge import index
from groupgt.judge.index import K1, B, Index

WORDS = [
    "ferry",
    "Ferries",
    "fare",
    "a",
    "İzmir",
    "été",
    "x_1",
    "日本語の文章",
    "🦆",
    "𠮷野家",
    "–",
    "\n",
    "12,5",
    "no.",
]


def pieces(text: str) -> list[str]:
    """Every four letters of a word between two spaces; the word itself if it has one letter."""
    words = [f" {word} " for word in re.findall(r"\w+", text.lower())]
    return [word[at : at + 4] for word in words for at in range(max(1, len(word) - 3))]


def expected(texts: dict[str, str], query: str) -> list[float]:
    """Σ idf · tf ÷ (tf + k₁(1 − b + b · length ÷ mean length)), over the pieces of the query."""
    bags = [pieces(text) for text in texts.values()]
    mean = sum(map(len, bags)) / len(bags)
    scores = []
    for bag in bags:
        score = 0.0
        for piece in pieces(query):
            holding = sum(piece in other for other in bags)
            idf = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
            often = bag.count(piece)
            score += idf * often / (often + K1 * (1 - B + B * len(bag) / mean)) if often else 0
        scores.append(score)
    return scores


@pytest.mark.parametrize(("letters", "passages"), [(1 << 21, 1 << 16), (40, 1 << 16), (1 << 21, 3)])
def test_scores_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch, letters: int, passages: int) -> None:
    monkeypatch.setattr(index, "LETTERS", letters)
    monkeypatch.setattr(index, "PASSAGES", passages)
    rng = random.Random(0)
    for size in (1, 2, 7, 30):
        texts = {f"d{at}": " ".join(rng.choices(WORDS, k=rng.randrange(1, 9))) for at in range(size)}
        found = Index(texts)
        for _ in range(10):
            query = " ".join(rng.choices(WORDS, k=rng.randrange(4)))
            assert found.scores(query) == pytest.approx(expected(texts, query))
        assert found.done == 1
        likeness = found.likeness("d0")
        assert likeness[0] == (1 if pieces(texts["d0"]) else 0)
        assert likeness.max() <= 1


def test_nothing_to_index() -> None:
    for texts in ({}, {"a": ""}, {"a": "–", "b": "§"}):
        found = Index(texts)
        assert found.scores("ferry").tolist() == [0.0] * len(texts)
        assert found.search("ferry", 3) == []


def test_pieces_that_occur_very_often() -> None:
    # Counted up to 255: BM25 then hardly changes.
    found = Index({"a": "ab " * 300, "b": "cd"})
    piece = math.log(1 + 1.5 / 1.5)
    length = 1 - B + B * 300 / 150.5
    assert found.scores("ab")[0] == pytest.approx(piece * 255 / (255 + K1 * length))


def test_a_session_that_ends_stops_its_index() -> None:
    found = Index({"a": "ferry"})
    found.stopped.set()
    with pytest.raises(DataError, match="the session has ended"):
        found.scores("ferry")
    found.stopped.clear()
    assert found.scores("ferry")[0] > 0


def test_few_similarities_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LIKENESSES", 2)
    found = Index({"a": "ferry fare", "b": "ferry", "c": "fare"})
    rows = [found.likeness(doc) for doc in "abca"]
    assert np.array_equal(rows[0], rows[3])
    assert list(found._likeness) == ["c", "a"]
