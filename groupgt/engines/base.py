"""Defines carriers, which access results wherever they are stored, and labelling, which turns results into `Hits`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import compress
from typing import Any, Protocol

import numpy as np

from groupgt.engines.choice import Engine
from groupgt.errors import SHOWN, warn
from groupgt.labellers.base import Labeller, Matches, Results, first_hits
from groupgt.metrics.views import nth
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Hits, Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking
from groupgt.model.run import Run
from groupgt.model.validity import plain
from groupgt.model.values import ORIGINAL_SCORE, SCORE
from groupgt.records import record


@record
class Labelled:
    """Hits, with statistics about the labelled queries.

    `present`, shape (Q,), marks queries with results, and `hit_again` lists the queries where a repeated result is
    relevant. A tie is a block of equal scores with a hit. `uncondensed` has the hits before unjudged results were
    dropped. Only results on a cluster have `excluded` and `contradictory` counts.
    """

    hits: Hits
    present: Bools
    extra: int
    duplicated: int
    hit_again: Ints
    tie_query: Ints
    tie_first: Ints
    tie_last: Ints
    no_match: bool = False
    extra_names: tuple[str, ...] = ()
    uncondensed: Hits | None = None
    excluded: int = 0
    contradictory: tuple[int, ...] = ()

    def tied_at(self, cuts: Iterable[Ints | None]) -> int:
        """Count queries in which a depth, shape (Q,), splits equal scores with a hit (for None, count all ties)."""
        tied = np.zeros(len(self.present), dtype=np.bool_)
        for depth in cuts:
            if depth is None:
                tied[self.tie_query] = True
                continue
            at = depth[self.tie_query]
            tied[self.tie_query[(self.tie_first <= at) & (self.tie_last > at)]] = True
        return int(tied.sum())


@record
class RankedHits:
    """Unsorted hits with the first and last rank of equal scores, and result counts per query, shape (Q,).

    `others` are the run's queries that are not in the ground truth.
    """

    query: Ints
    target: Ints
    rank: Ints
    low: Ints
    high: Ints
    length: Ints
    others: Collection[str] = ()
    duplicated: int = 0

    def labelled(self, truth: GroundTruth, labeller: Labeller, matches: Matches, policy: Policy) -> Labelled:
        """Return sorted hits, with statistics about the labelled queries. All engines share this step."""
        columns: tuple[Ints, ...] = (self.query, self.rank, self.target, self.low, self.high)
        places = self.query * (int(self.length.max(initial=0)) + 1) + self.rank
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            columns = tuple(column[order] for column in columns)
        query, rank, target, low, high = columns
        again, tied = first_hits(target, len(matches.keys)), low < high
        hit_again = np.flatnonzero(np.bincount(query[again]))
        extra = [qid for qid in self.others if qid not in truth.left_out]
        settled = labeller.settle(truth, matches, query, rank, target)
        return Labelled(
            hits=Hits(truth.judgments, *settled, self.length, keep=policy.duplicates == "keep"),
            present=self.length > 0,
            extra=len(extra),
            duplicated=self.duplicated if policy.looks_at_all else len(hit_again),
            hit_again=hit_again,
            tie_query=query[tied],
            tie_first=low[tied],
            tie_last=high[tied],
            no_match=not len(query) and (bool(self.length.any()) or bool(extra)),
            extra_names=tuple(extra[:SHOWN]),
        )


class InvalidRowError(Exception):
    """Raised if a row may be invalid. The slow reader then checks the row and reports it if necessary."""


def warn_if_empty(ranked: RankedHits, title: str) -> None:
    """Warn if a file has no results at all."""
    if not ranked.others and not ranked.length.any():
        warn(f"{title}: the file is empty (0 results)")


# Number of results per query in a sample of many queries.
TOP = 50


class Carrier(Protocol):
    """Operations on a run's results that do not depend on how the results are stored."""

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        """Return the hits, or raise `DataError` for invalid results."""

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        """Return the run with results renamed by the labeller. Order, scores and spans do not change."""

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        """Return the results of one query."""

    def sample(self, limit: int, queries: Collection[str] = ()) -> Mapping[str, Sequence[str]]:
        """Return the ids of about `limit` results by query, from the first rows or, if it is cheap, from `queries`."""

    def repeating(self, truth: GroundTruth) -> Sequence[int] | None:
        """Return the positions of queries with a repeated result, or None if this requires another pass over a file."""
        return None


class LocalCarrier(Carrier, Protocol):
    """Additional operations for results that can be read locally."""

    def qids(self) -> list[str]:
        """Return the query ids in run order."""

    def rankings(self, policy: Policy) -> Iterator[tuple[str, Ranking]]:
        """Yield every query with its results, in run order."""

    def carries(self, field: str) -> bool:
        """Return whether results have a certain field, such as a `text`, a length in a unit, or `calls`."""

    @property
    def score_field(self) -> str:
        """The field with the original scores. If calls order the results, the sorting scores also encode the call."""
        return ORIGINAL_SCORE if self.carries(ORIGINAL_SCORE) else SCORE

    def flat(self, truth: GroundTruth, policy: Policy, *fields: str) -> Flat:
        """Return the results of all judged queries in rank order, or raise `DataError` for an invalid length."""


@record
class Flat:
    """The results of all judged queries, sorted by query and rank, with ids as a list or a polars series."""

    query: Ints
    docs: Any
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The result ids as a list."""
        ids: list[str] = plain(self.docs)
        return ids

    @cached_property
    def rank(self) -> Ints:
        """The rank of each result, from 1."""
        return nth(self.query)

    def sizes(self, queries: int) -> Ints:
        """Return the number of results per query, shape (Q,)."""
        return np.bincount(self.query, minlength=queries)

    def measured(self, measure: Callable[[list[str]], Ints]) -> Ints:
        """Apply a function of ids to all results. For a series, call the function with distinct ids only."""
        if isinstance(self.docs, list):
            return measure(self.docs)
        distinct = self.docs.unique(maintain_order=True).alias("doc").to_frame()
        distinct = distinct.with_columns(value=measure(distinct["doc"].to_list()))
        rows = self.docs.alias("doc").to_frame()
        values: Ints = rows.join(distinct, on="doc", how="left", maintain_order="left")["value"].to_numpy()
        return values


def matched(truth: GroundTruth, labeller: Labeller, policy: Policy, read: Callable[[Policy], Flat]) -> Matches:
    """Return a labeller's matches. If the labeller reads results, `read` supplies them under a policy."""
    if not labeller.reads_results:
        return labeller.match(truth, None)  # type: ignore[arg-type]  # it does not look at them
    flat = read(replace(policy, duplicates="drop"))
    query, ids, texts = flat.query, flat.ids, list(flat.fields["text"])
    kept = (truth.per_query > 0)[query]
    if None in ids:
        # Labelling itself reports rows without an id.
        kept &= np.array([name is not None for name in ids], dtype=np.bool_)
    if not kept.all():
        ids, texts = (list(compress(column, kept.tolist())) for column in (ids, texts))
        query = query[kept]
    return labeller.match(truth, Results(query, ids, texts))
