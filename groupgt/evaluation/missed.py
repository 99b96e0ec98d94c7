"""Defines `Misses`, the groups that runs do not cover within a cutoff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.evaluation.misses import (
    Failures,
    PlacedGroup,
    check_misses,
    coverage_by_number,
    failures_of,
    harmful_results,
    plain_group,
    whole,
    worst_first,
)
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.values import count_distinct
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


@dataclass(frozen=True, eq=False)
class Misses(Result):
    """The misses of one or several runs within `k`: the worst queries, and the groups that the fewest runs cover.

    `worst` limits the number of queries or, for several runs, of groups that are listed. `texts` maps ids to the text
    that is shown next to them. `failures` has the place of every group in every run. `given` names the ground truth and
    the run in shell hints.
    """

    k: int
    worst: int
    evaluations: Mapping[str, Any] = field(repr=False)
    failures: Failures = field(repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    given: str = field(default="…", repr=False)

    @classmethod
    def of(
        cls,
        evaluations: Sequence[Any],
        k: int = 10,
        worst: int = 20,
        texts: Mapping[str, str] | None = None,
        given: str = "…",
    ) -> Misses:
        """Find the misses of runs on one ground truth within k."""
        check_misses(k, worst)
        by_name = {evaluation.name: evaluation for evaluation in evaluations}
        found = failures_of(by_name, k)
        # Queries that count as 0 without a group miss none.
        counted = found.counted & (found.truth.judgments.groups > 0)
        for_every_run = np.repeat(counted[:, np.newaxis], len(by_name), axis=1)
        return cls(k, worst, by_name, replace(found, counting=for_every_run), texts or {}, given)

    @property
    def groups(self) -> list[PlacedGroup]:
        """The groups covered by the fewest runs, up to `worst`. Ties are sorted by best rank, the latest first."""
        return self.failures.hardest(self.worst)

    @cached_property
    def of_worst(self) -> list[PlacedGroup]:
        """All groups of a single run's worst queries (up to `worst` queries), in order."""
        order, _ = self._worst_first
        return [group for query in order[: self.worst].tolist() for group in self.failures.groups_of(query)]

    @cached_property
    def queries(self) -> list[dict[str, Any]]:
        """The worst queries of a single run, with `qid`, `query`, `coverage`, `results` and `groups`.

        Each group has `group`, `rank` (None without a hit), `covered` (within k, in every trial) and `alternatives`;
        with several trials, also `covered_trials` and `trials`.
        """
        failures, (order, coverage) = self.failures, self._worst_first
        return [
            {
                "qid": failures.truth.qids[query],
                "query": failures.truth.texts[query] if failures.truth.texts else None,
                "coverage": float(coverage[query]),
                "results": whole(float(self.lengths[query])),
                "groups": [plain_group(group) for group in failures.groups_of(query)],
            }
            for query in order[: self.worst].tolist()
        ]

    @cached_property
    def lengths(self) -> Floats:
        """The number of results for each query of a single run, shape (Q,), averaged over any trials."""
        lengths: Floats = self.evaluations[self.run].averaged(lambda hits: hits.length)
        return lengths

    @property
    def incomplete(self) -> float:
        """The number of queries that a single run does not complete, as a mean over trials."""
        return whole(self.evaluated - self.failures.solved_counts[self.run])

    @property
    def listable(self) -> int:
        """The number of queries that a single run does not complete in at least one trial."""
        return len(self._worst_first[0])

    @property
    def evaluated(self) -> int:
        """The number of queries that count."""
        return int(self.failures.counted.sum())

    @property
    def by_group(self) -> list[dict[str, Any]]:
        """Coverage by group number within a query, for a single run: `number`, `groups`, `covered` and `anywhere`."""
        return coverage_by_number(self._trials, self.k)

    @property
    def harmful(self) -> list[dict[str, Any]] | None:
        """The harmful results of a single run within k, in any trial; None if no query has harmful passages."""
        hits = [each for each, _ in self._trials]
        return harmful_results(self.failures.truth, hits, self.k) if self.failures.truth.harmful else None

    @property
    def harmful_queries(self) -> float:
        """The number of queries for which a single run returns harmful results within k, as a mean over trials."""
        counts = [count_distinct(hits.query[hits.harmful & (hits.rank <= self.k)]) for hits, _ in self._trials]
        return sum(counts) / len(counts)

    @property
    def run(self) -> str:
        """Name of the first run."""
        return next(iter(self.evaluations))

    @property
    def _trials(self) -> list[tuple[Hits, Bools]]:
        return [(each.labelled.hits, each.counting) for each in self.evaluations[self.run].each]

    @cached_property
    def _worst_first(self) -> tuple[Ints, Floats]:
        return worst_first(self._trials, self.k)

    def plot(self) -> Figure:
        """Plot the listed groups by the rank of their first hit."""
        return self._teller.plot("groups")
