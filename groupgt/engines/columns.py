"""What engines over columns share: the table that rows are joined with, and what is made of ranked hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groupgt.engines.base import Labelled, settled
from groupgt.errors import SHOWN
from groupgt.labellers.base import Labeller, Matches, first_hits
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MANY", "Found", "key_table", "labelled", "places_of"]

# Queries with more hits than this are ranked by sorting their rows: comparing each row with each hit would not end.
MANY = 32


@dataclass(frozen=True, eq=False)
class Found:
    """Hits as rows, in any order, and what was seen of the queries.

    `low` and `high` are the first and last rank among results of an equal score; `length` has shape (Q,).
    """

    query: Ints
    target: Ints
    rank: Ints
    low: Ints
    high: Ints
    length: Ints
    extra: int = 0
    extra_names: tuple[str, ...] = ()
    duplicated: int = 0


def key_table(truth: GroundTruth, matches: Matches) -> pl.DataFrame:
    """A labeller's table as columns `qid`, `doc`, `query` and `target`; of a key that stands twice the first."""
    import polars as pl

    frame = pl.DataFrame(
        {
            "qid": pl.Series(truth.qids, dtype=pl.String).gather(matches.queries),
            "doc": pl.Series(matches.keys, dtype=pl.String),
            "query": matches.queries,
            "target": matches.targets,
        }
    )
    return frame.unique(["query", "doc"], keep="first", maintain_order=True)


def places_of(truth: GroundTruth, qids: Sequence[str]) -> tuple[Ints, Ints, tuple[str, ...], int]:
    """Which queries of a ground truth these are and where they stand among these; the first others, and how many."""
    index = truth.index
    found = np.array([index.get(qid, -1) for qid in qids], dtype=np.int64)
    own, others = np.flatnonzero(found >= 0), np.flatnonzero(found < 0)
    return found[own], own, tuple(qids[place] for place in others[:SHOWN].tolist()), len(others)


def labelled(truth: GroundTruth, labeller: Labeller, matches: Matches, policy: Policy, found: Found) -> Labelled:
    """`Hits` with their population, of hits whose ranks are known."""
    order = np.lexsort((found.rank, found.query))
    query, rank, target = found.query[order], found.rank[order], found.target[order]
    hits = settled(truth, labeller, matches, policy, query, rank, target, found.length)
    again = query[first_hits(target, len(matches.keys))]
    tied = order[found.low[order] < found.high[order]]
    return Labelled(
        hits=hits,
        present=found.length > 0,
        extra=found.extra,
        duplicated=found.duplicated if policy.duplicates in ("drop", "error") else len(np.unique(again)),
        tie_query=found.query[tied],
        tie_first=found.low[tied],
        tie_last=found.high[tied],
        no_match=not len(query) and (bool(found.length.any()) or bool(found.extra)),
        extra_names=found.extra_names,
    )
