"""Selects the passages to judge for each query, from runs or by BM25, in an order that hides their ranks."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from groupgt.errors import ConfigError
from groupgt.model.hits import Floats

# {qid: ids, best first} of one system.
Rankings = Mapping[str, Sequence[str]]
# The constant of reciprocal rank fusion.
FLAT = 60
Way = Literal["depth", "rrf", "bm25"]


@dataclass(frozen=True)
class PoolRule:
    """A rule for selecting passages, such as `depth:10`.

    `depth` takes the first n results of every run, `rrf` the n best results across all runs by reciprocal rank, and
    `bm25` the n best passages by BM25.
    """

    way: Way
    size: int

    @classmethod
    def of(cls, text: str | None, *, has_runs: bool) -> PoolRule:
        """Parse `WAY:N`; raises `ConfigError` if it is invalid or requires runs.

        >>> PoolRule.of("rrf:20", has_runs=True), PoolRule.of(None, has_runs=False)
        (PoolRule(way='rrf', size=20), PoolRule(way='bm25', size=20))
        """
        way, _, size = (text or ("depth:10" if has_runs else "bm25:20")).partition(":")
        if way not in ("depth", "rrf", "bm25") or not size.isascii() or not size.isdigit() or not 0 < int(size) <= 1000:
            raise ConfigError(f"--pool: expected depth:N, rrf:N or bm25:N, N from 1 to 1000, found {text!r}")
        if way != "bm25" and not has_runs:
            raise ConfigError(f"--pool {text}: needs runs; add --runs, or use bm25:{size}")
        return cls(way, int(size))  # type: ignore[arg-type]  # it was checked

    def __str__(self) -> str:
        return f"{self.way}:{self.size}"


class Index:
    """A BM25 index of corpus texts, which are split into four-letter pieces of words.

    Pieces match inflected words and parts of compounds in any language that separates words by spaces; texts in scripts
    without spaces are also cut into pieces.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.ids = list(texts)
        self.number = {name: number for number, name in enumerate(self.ids)}
        self._likeness: dict[str, Floats] = {}

    @cached_property
    def _model(self) -> Any:
        import bm25s

        model = bm25s.BM25(k1=1.2, b=0.75)
        model.index([_pieces(text) for text in self.texts.values()] or [["-"]], show_progress=False)
        return model

    def scores(self, text: str) -> Floats:
        """Return the score of every passage for a text, in the order of `ids`."""
        pieces = [piece for piece in _pieces(text) if piece in self._model.vocab_dict]
        if not pieces or not self.ids:
            return np.zeros(len(self.ids))
        return np.asarray(self._model.get_scores(pieces), dtype=np.float64)

    def search(self, text: str, k: int) -> list[str]:
        """Return the k best passages for a text, considering only passages that share a piece with it."""
        scores = self.scores(text)
        return [self.ids[row] for row in np.argsort(-scores, kind="stable")[:k].tolist() if scores[row] > 0]

    def likeness(self, doc: str) -> Floats:
        """Return the similarity of every passage to `doc`: its score for that text ÷ the score of the text itself."""
        if doc not in self._likeness:
            scores = self.scores(self.texts[doc])
            highest = scores[self.number[doc]]
            self._likeness[doc] = np.minimum(scores / highest, 1) if highest > 0 else scores
        return self._likeness[doc]


def _pieces(text: str) -> list[str]:
    """Split each word into pieces of four characters, after adding a space at both ends.

    >>> _pieces("Ferry to")
    [' fer', 'ferr', 'erry', 'rry ', ' to ']
    """
    padded = [f" {word} " for word in _WORD.findall(text.lower())]
    return [word[start : start + PIECE] for word in padded for start in range(max(1, len(word) - PIECE + 1))]


PIECE = 4
_WORD = re.compile(r"\w+")


def fused(rankings: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return reciprocal ranks, Σ 1 ÷ (60 + rank), for one query's results in several runs, highest first."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, doc in enumerate(dict.fromkeys(ranking), 1):
            scores[doc] = scores.get(doc, 0) + 1 / (FLAT + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def shuffled(seed: int, qid: str, docs: Sequence[str]) -> list[str]:
    """Return the passages of a query in a random order that depends only on the seed."""
    mixed = sorted(docs)
    digest = hashlib.sha256(f"{seed}\0{qid}".encode("utf-8", "surrogatepass")).digest()
    random.Random(digest).shuffle(mixed)  # noqa: S311  # not a secret
    return mixed


def pooled(rule: PoolRule, qid: str, text: str, runs: Sequence[Rankings], index: Index) -> list[str]:
    """Return the passages to judge for a query, best first, without passages that are missing from the corpus."""
    rankings = [run.get(qid, ()) for run in runs]
    if rule.way == "depth":
        docs = list(fused([ranking[: rule.size] for ranking in rankings]))
    elif rule.way == "rrf":
        docs = list(fused(rankings))[: rule.size]
    else:
        docs = index.search(text, rule.size)
    return [doc for doc in docs if doc in index.texts]
