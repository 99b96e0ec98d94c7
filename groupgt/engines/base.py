"""What an engine returns: the hits, and what was seen of the data on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from groupgt.errors import ConfigError
from groupgt.labellers.base import Labeller, Matches
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Hits, Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Remote, Run


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


def not_remote(run: Run, what: str) -> None:
    """Raises `ConfigError` where results stay on a cluster, and `what` needs all of them here."""
    if isinstance(run.contents, Remote):
        raise ConfigError(
            f"{run.name or run.source or 'results'}: {what} cannot be had of results that stay on a cluster; "
            "write them to parquet and name the files"
        )


def settled(
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
