"""Selects the passages to judge for each query, from runs or by BM25, in an order that hides their ranks."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from groupgt.errors import ConfigError
from groupgt.judge.index import Index

# {qid: ids, best first} of one system.
Rankings = Mapping[str, Sequence[str]]
# The constant of reciprocal rank fusion.
FLAT = 60
Way = Literal["depth", "rrf", "bm25"]


@dataclass(frozen=True)
class PoolRule:
    """A rule: the first n results of every run (`depth`), or the n best by reciprocal rank or BM25."""

    way: Way
    size: int

    @classmethod
    def of(cls, text: str | None, *, has_runs: bool) -> PoolRule:
        """Parse `WAY:N`, or raise `ConfigError` if it is invalid or requires runs."""
        way, _, size = (text or ("depth:10" if has_runs else "bm25:20")).partition(":")
        if way not in ("depth", "rrf", "bm25") or not size.isascii() or not size.isdigit() or not 0 < int(size) <= 1000:
            raise ConfigError(f"--pool: expected depth:N, rrf:N or bm25:N, with N from 1 to 1000, found {text!r}")
        if way != "bm25" and not has_runs:
            raise ConfigError(f"--pool {text}: needs runs; add --runs, or use bm25:{size}")
        return cls(way, int(size))  # type: ignore[arg-type]  # it was checked

    def __str__(self) -> str:
        return f"{self.way}:{self.size}"


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


def spreads(rankings: Sequence[Sequence[str]], judged: Iterable[str], k: int) -> dict[str, float]:
    """Return how far each unjudged result in the top k could move two rankings of a query apart, largest first.

    The distance is the largest minus the smallest 1 ÷ log2(rank + 1) over the rankings, or 0 if the result is not in
    the top k.
    """
    known = set(judged)
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, name in enumerate(dict.fromkeys(ranking[:k]), 1):
            if name not in known:
                shares.setdefault(name, []).append(1 / math.log2(rank + 1))
    found = {name: max(each) - (min(each) if len(each) == len(rankings) else 0.0) for name, each in shares.items()}
    return dict(sorted(found.items(), key=lambda item: -item[1]))
