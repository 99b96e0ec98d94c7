"""What labelling gives, whichever engine labels: hits in normal form, and what was seen of the results on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from groupgt.labellers.base import Labeller, Matches, first_hits
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Hits, Ints
from groupgt.model.policy import Policy


@dataclass(frozen=True, eq=False)
class Labelled:
    """Hits with their population.

    `present` says which queries have results, shape (Q,); `extra` counts queries of the run without ground truth,
    `duplicated` queries with a repeated result (of a relevant one, unless the policy looks at all of them).
    `tie_query`, `tie_first` and `tie_last` are blocks of equal scores that hold a hit: the ranks they span.
    """

    hits: Hits
    present: Bools
    extra: int
    duplicated: int
    tie_query: Ints
    tie_first: Ints
    tie_last: Ints
    no_match: bool = False
    extra_names: tuple[str, ...] = ()

    def tied_at(self, cuts: Iterable[Ints | None]) -> int:
        """How many queries have a hit among equal scores that a depth, shape (Q,), divides; None divides all."""
        tied = np.zeros(len(self.present), dtype=np.bool_)
        for depth in cuts:
            if depth is None:
                tied[self.tie_query] = True
                continue
            at = depth[self.tie_query]
            tied[self.tie_query[(self.tie_first <= at) & (self.tie_last > at)]] = True
        return int(tied.sum())


def hits_of(
    truth: GroundTruth,
    labeller: Labeller,
    matches: Matches,
    policy: Policy,
    query: Ints,
    rank: Ints,
    target: Ints,
    length: Ints,
) -> Hits:
    """The second half of labelling, the same for every engine: rows sorted by query and rank become `Hits`."""
    query, rank, alternative, repeat = labeller.settle(truth, matches, query, rank, target)
    return Hits(truth.judgments, query, rank, alternative, repeat, length, keep=policy.duplicates == "keep")


@dataclass(frozen=True, eq=False)
class RankedHits:
    """Rows that hit, in any order, with their ranks, and what was seen of the queries.

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

    def labelled(self, truth: GroundTruth, labeller: Labeller, matches: Matches, policy: Policy) -> Labelled:
        """The hits with their population."""
        order = np.lexsort((self.rank, self.query))
        query, rank, target = self.query[order], self.rank[order], self.target[order]
        hits = hits_of(truth, labeller, matches, policy, query, rank, target, self.length)
        again = query[first_hits(target, len(matches.keys))]
        tied = order[self.low[order] < self.high[order]]
        return Labelled(
            hits=hits,
            present=self.length > 0,
            extra=self.extra,
            duplicated=self.duplicated if policy.duplicates in ("drop", "error") else len(np.unique(again)),
            tie_query=self.query[tied],
            tie_first=self.low[tied],
            tie_last=self.high[tied],
            no_match=not len(query) and (bool(self.length.any()) or bool(self.extra)),
            extra_names=self.extra_names,
        )
