"""The base of all engines: a carrier works with results wherever they are stored; labelling turns them into `Hits`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any, Protocol

import numpy as np

from groupgt.engines.choice import Engine
from groupgt.labellers.base import Labeller, Matches, Results, first_hits
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Hits, Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import plain


@dataclass(frozen=True, eq=False)
class Labelled:
    """Hits with their population.

    `present` marks the queries with results, shape (Q,); `extra` counts queries of the run without ground truth,
    `duplicated` queries with a repeated result (only relevant ones, unless the policy requires checking all).
    `tie_query`, `tie_first` and `tie_last` are blocks of equal scores that contain a hit, with the ranks they span.
    `uncondensed` are the hits before the policy dropped unjudged results, if it does.
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
    uncondensed: Hits | None = None

    def tied_at(self, cuts: Iterable[Ints | None]) -> int:
        """The number of queries with a hit among equal scores that a depth, shape (Q,), splits; None splits all."""
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
    """The second half of labelling, shared by all engines: turns rows sorted by query and rank into `Hits`."""
    query, rank, alternative, repeat = labeller.settle(truth, matches, query, rank, target)
    return Hits(truth.judgments, query, rank, alternative, repeat, length, keep=policy.duplicates == "keep")


@dataclass(frozen=True, eq=False)
class RankedHits:
    """Unsorted hits with their ranks, and counts per query.

    `low` and `high` are the first and last rank of results with the same score; `length` has shape (Q,).
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


# The ids of one query, best first, and the scores that ordered them; None if the input was already ordered.
Ranking = tuple[list[str], Sequence[float] | None]


class Carrier(Protocol):
    """Operations on the results of a run, for any kind of storage."""

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        """The hits; raises `DataError` if results are invalid."""
        ...

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        """The run with results renamed by the labeller; order, scores and spans do not change."""
        ...

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        """The results of one query."""
        ...

    def sample(self, limit: int) -> tuple[list[str], list[str]]:
        """The distinct ids of queries and of results among the first `limit` rows, or fewer."""
        ...


class LocalCarrier(Carrier, Protocol):
    """Additional operations if all results can be read locally."""

    def qids(self) -> list[str]:
        """The queries, in the order of the run."""
        ...

    def rankings(self, policy: Policy) -> Iterator[tuple[str, Ranking]]:
        """Every query with its results, in the order of the run."""
        ...

    def carries(self, field: str) -> bool:
        """Whether results carry a `text`, their length in a unit, or the `calls` that returned them."""
        ...

    def flat(self, truth: GroundTruth, policy: Policy, *fields: str) -> Flat:
        """The results of all judged queries in rank order, with these fields.

        A text is None if a result has none; raises `DataError` for a length that is not a whole number from 0.
        """
        ...


@dataclass(frozen=True, eq=False)
class Flat:
    """The results of all judged queries, one row per result, sorted by query and rank.

    `query` contains positions of queries in the ground truth, `docs` ids of results, as a list or a polars series;
    each of `fields` has one cell per result.
    """

    query: Ints
    docs: Any
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The ids of results as a list."""
        ids: list[str] = plain(self.docs)
        return ids

    @cached_property
    def rank(self) -> Ints:
        """The rank of each result, from 1."""
        starts = np.flatnonzero(np.diff(self.query, prepend=-1))
        return np.arange(len(self.query)) - np.repeat(starts, np.diff(starts, append=len(self.query))) + 1

    def sizes(self, queries: int) -> Ints:
        """The number of results of each query, shape (Q,)."""
        return np.bincount(self.query, minlength=queries)

    def measured(self, measure: Callable[[list[str]], Ints]) -> Ints:
        """The value of a function of ids for each result; for a series, it is computed once per distinct id."""
        if isinstance(self.docs, list):
            return measure(self.docs)
        distinct = self.docs.unique(maintain_order=True).alias("doc").to_frame()
        distinct = distinct.with_columns(value=measure(distinct["doc"].to_list()))
        rows = self.docs.alias("doc").to_frame()
        values: Ints = rows.join(distinct, on="doc", how="left", maintain_order="left")["value"].to_numpy()
        return values


def matched(truth: GroundTruth, labeller: Labeller, policy: Policy, read: Callable[[Policy], Flat]) -> Matches:
    """The table of a labeller; if it reads results, the distinct ones are read first, with their texts.

    `read` returns all results under a policy; only the best rank of repeats is kept, and queries without alternatives
    are skipped.
    """
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
