"""What a retriever is, and what the host makes of its answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from groupgt.errors import Faults, RetrieverError
from groupgt.model.ids import id_text
from groupgt.model.run import Run

__all__ = ["Corpus", "Ranking", "Retriever", "run_from", "strictly_falling"]

Ranking = Sequence[Any]


@dataclass(frozen=True, eq=False)
class Corpus:
    """The documents a retriever searches: ids and texts, in the order of the corpus."""

    ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Corpus:
        """A corpus of `{id: text}`."""
        return cls(list(texts), list(texts.values()))

    def __len__(self) -> int:
        return len(self.ids)


class Retriever(Protocol):
    """One method: for each query its ranking, `[(id, score), …]` best first, or ids alone."""

    def retrieve(self, queries: Sequence[str], k: int) -> list[Ranking]:
        """Rankings of at most k results, in the order of the queries."""
        ...


def run_from(name: str, qids: Sequence[str], rankings: Sequence[Ranking], k: int) -> tuple[Run, dict[str, list[float]]]:
    """Checks what a retriever returned and keeps its order; raises `RetrieverError` that names queries and ranks.

    The scores, where every result has one, are returned beside the run: its order is given and is not theirs to change.
    """
    faults = Faults()
    if len(rankings) != len(qids):
        raise RetrieverError(f"system {name!r}: expected {len(qids):,} rankings, one a query, found {len(rankings):,}")
    ids: dict[str, list[str]] = {}
    scores: dict[str, list[float]] = {}
    for qid, ranking in zip(qids, rankings):
        where = f"system {name!r}: query {qid!r}"
        if not isinstance(ranking, (list, tuple)):
            faults.add(where, f"expected a list of results, found {type(ranking).__name__}")
            continue
        if len(ranking) > k:
            faults.add(where, f"expected at most {k} results, found {len(ranking)}")
        ids[qid], own = _read(ranking, where, faults)
        if len(own) == len(ranking):
            scores[qid] = own
    faults.stop(RetrieverError)
    return Run(ids, name=name), scores if len(scores) == len(ids) else {}


def _read(ranking: Ranking, where: str, faults: Faults) -> tuple[list[str], list[float]]:
    ids: list[str] = []
    scores: list[float] = []
    for rank, cell in enumerate(ranking, 1):
        pair = isinstance(cell, (tuple, list)) and len(cell) == 2
        name = id_text(cell[0] if pair else cell)
        if name is None:
            faults.add(where, f"expected a text id at rank {rank}, found {cell!r}")
            continue
        if pair:
            score = float(cell[1])
            if not math.isfinite(score):
                faults.add(where, f"expected a finite score at rank {rank}, found {cell[1]!r}")
                continue
            scores.append(score)
        ids.append(name)
    return ids, scores


def strictly_falling(scores: Sequence[float]) -> list[float]:
    """The scores, each lowered by as little as makes it lower than the one before: for formats in which scores order.

    >>> strictly_falling([2.0, 1.0, 1.0])[2] < 1.0
    True
    """
    out: list[float] = []
    for score in scores:
        out.append(score if not out or score < out[-1] else math.nextafter(out[-1], -math.inf))
    return out
