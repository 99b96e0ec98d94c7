"""Finds the groups that runs cover or miss, the queries that each run completes, and the worst queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from groupgt.errors import ConfigError, display, refuse
from groupgt.metrics import sets, views
from groupgt.metrics.base import Cut
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.validity import is_integer
from groupgt.model.values import Budget, summed, total
from groupgt.records import record

# The hits of a trial, and the queries that count in it, shape (Q,).
Trial = tuple[Hits, Bools]


class Measured(Protocol):
    """The parts of an `Evaluated` from which misses are computed."""

    @property
    def truth(self) -> GroundTruth:
        """Ground truth."""

    @property
    def counting(self) -> Bools:
        """A mask of the queries that count, shape (Q,)."""

    @property
    def hits_in_trials(self) -> Sequence[Hits]:
        """Hits of each trial."""

    def averaged(self, read: Callable[[Hits], Any]) -> Floats:
        """Read a value from each trial's hits, and return its mean over trials."""


@dataclass(frozen=True)
class Place:
    """A group's place in a run: the rank of its first hit (median over trials) and how many trials cover it.

    `found` counts the trials that have a hit at any rank.
    """

    rank: int | None
    covered: int
    trials: int
    found: int

    @property
    def is_covered(self) -> bool:
        """True if every trial covers the group."""
        return self.covered == self.trials


@dataclass(frozen=True)
class PlacedGroup:
    """A group: its query and name, its alternatives, and its place in each run."""

    qid: str
    group: str
    alternatives: list[str]
    places: dict[str, Place]


@record
class Failures:
    """Groups and queries that each system covers within a cutoff.

    `first` is the rank of each group's first hit within the cutoff, shape (G, S), or 0; `anywhere` is the rank in the
    entire ranking. `covered` counts the trials that cover a group, and `found` the trials that have a hit for it at any
    rank. `completion`, shape (Q, S), is the rank at which a query is complete, or 0; `solved` is the share of trials in
    which the query is complete. `redundancy` is the share of results that are relevant but cover no new group.

    Counts are means over trials or, for two systems, over all pairs of their trials. Ranks are medians over trials.
    """

    systems: list[str]
    trials: list[int]
    cutoff: int | Budget | None
    truth: GroundTruth
    counting: Bools
    first: Ints
    anywhere: Ints
    covered: Ints
    found: Ints
    completion: Ints
    redundancy: Floats
    solved: Floats

    @cached_property
    def counted(self) -> Bools:
        """The queries that count for every system, shape (Q,)."""
        counted: Bools = np.logical_and.reduce(self.counting, axis=1)
        return counted

    @property
    def queries(self) -> dict[str, int]:
        """The number of queries that count for each system."""
        return dict(zip(self.systems, self.counting.sum(axis=0).tolist()))

    @property
    def populations_differ(self) -> bool:
        """True if the number of queries that count differs between systems."""
        return len(set(self.queries.values())) > 1

    def only(self, system: str) -> list[str]:
        """Return the queries that only this system completes (with trials, in at least one trial)."""
        place = self.systems.index(system)
        return self._names((self.solved[:, place] > 0) & ((self.solved > 0).sum(axis=1) == 1))

    @property
    def every_count(self) -> float:
        """The number of queries that every system completes."""
        return summed(self.solved.prod(axis=1)[self.counted])

    @property
    def none_count(self) -> float:
        """The number of queries that no system completes."""
        return summed((1 - self.solved).prod(axis=1)[self.counted])

    @property
    def nobody(self) -> list[str]:
        """The queries that no system completes (with trials, in any trial)."""
        return self._names(self.solved.sum(axis=1) == 0)

    @property
    def solved_counts(self) -> dict[str, float]:
        """The number of queries that each system completes."""
        return {name: summed(self.solved[self.counting[:, at], at]) for at, name in enumerate(self.systems)}

    def shared(self, first: str, second: str) -> Bools:
        """Return a mask of the queries that count for both systems, shape (Q,)."""
        return self.counting[:, self.systems.index(first)] & self.counting[:, self.systems.index(second)]

    def between(self, first: str, second: str) -> dict[str, float]:
        """Return the number of queries complete for both systems, for only one, and for neither."""
        counted = self.shared(first, second)
        a, b = (self.solved[counted, self.systems.index(name)] for name in (first, second))
        parts = {"both": a * b, "only_first": a * (1 - b), "only_second": (1 - a) * b, "neither": (1 - a) * (1 - b)}
        return {name: summed(part) for name, part in parts.items()}

    def lost(self, system: str, than: str) -> list[str]:
        """Return the queries that are complete less often for `system` than for `than`, the largest drop first."""
        fall = self.solved[:, self.systems.index(than)] - self.solved[:, self.systems.index(system)]
        order = np.argsort(-fall, kind="stable")
        return [self.truth.qids[at] for at in order[(fall > 0)[order] & self.shared(system, than)[order]].tolist()]

    def hardest(self, most: int = 20) -> list[PlacedGroup]:
        """Return the groups covered by the fewest systems. Ties are sorted by best rank, the latest first."""
        late = np.where(self.anywhere > 0, 1 / np.maximum(self.anywhere, 1), 0).max(axis=1, initial=0)
        candidates, systems = np.flatnonzero(self.unmet), (self.covered / self.trials).sum(axis=1)
        return self.groups(candidates[np.lexsort((candidates, late[candidates], systems[candidates]))][:most])

    def groups_of(self, query: int) -> list[PlacedGroup]:
        """Return the groups of one query."""
        return self.groups(np.arange(len(self.first))[views.part_of(self.truth.judgments.group_query, query)])

    def groups(self, chosen: Ints) -> list[PlacedGroup]:
        """Return groups by their positions."""
        truth, query = self.truth, self.truth.judgments.group_query
        return [
            PlacedGroup(
                truth.qids[query[at]],
                truth.group_label(group),
                [name for name, _ in truth.alternatives_of(group)],
                dict(zip(self.systems, map(Place, ranks, covered, self.trials, found))),
            )
            for at, group, ranks, covered, found in zip(
                chosen.tolist(),
                truth.relevant_groups[chosen].tolist(),
                [[rank or None for rank in row] for row in self.anywhere[chosen].tolist()],
                self.covered[chosen].tolist(),
                self.found[chosen].tolist(),
            )
        ]

    @cached_property
    def unmet(self) -> Bools:
        """Mask of the groups that at least one system does not cover, among queries that count, shape (G,)."""
        unmet: Bools = self.counted[self.truth.judgments.group_query] & (self.covered < self.trials).any(axis=1)
        return unmet

    def text_of(self, qid: str) -> str | None:
        """Return the text of a query, or None if it is unknown."""
        return self.truth.texts[self.truth.index[qid]] if self.truth.texts else None

    def rows(self) -> tuple[list[str], list[list[Any]]]:
        """Return headers and one row per query and system, for `--failures`."""
        first = ["run", "qid", "cutoff", "groups", "covered", "missed"]
        headers = [*first, "first_hits", "completion_rank", "solved", "redundancy"]
        cutoff = "all" if self.cutoff is None else str(self.cutoff)
        rows: list[list[Any]] = []
        for place, name in enumerate(self.systems):
            for at in np.flatnonzero(self.counting[:, place]).tolist():
                ranks = self.first[views.part_of(self.truth.judgments.group_query, at), place]
                covered = int((ranks > 0).sum())
                first_hits = " ".join(map(str, ranks.tolist()))  # 0: not covered
                completion, solved = int(self.completion[at, place]) or None, whole(float(self.solved[at, place]))
                redundancy = None if np.isnan(share := self.redundancy[at, place]) else float(share)
                counts = [len(ranks), covered, len(ranks) - covered]
                rows.append([name, self.truth.qids[at], cutoff, *counts, first_hits, completion, solved, redundancy])
        return headers, rows

    def to_dict(self, most: int = 20) -> dict[str, Any]:
        """Return the complete queries by system and the hardest groups, as plain Python objects."""
        return {
            "cutoff": None if self.cutoff is None else str(self.cutoff),
            "queries": int(self.counted.sum()),
            "queries_of": self.queries,
            "solved": {name: whole(count) for name, count in self.solved_counts.items()},
            "only": {name: self.only(name) for name in self.systems},
            "everybody": whole(self.every_count),
            "nobody": self.nobody,
            "hardest": [
                {
                    "qid": each.qid,
                    "group": each.group,
                    "alternatives": each.alternatives,
                    "systems": whole(sum(place.covered / place.trials for place in each.places.values())),
                    "ranks": {name: place.rank for name, place in each.places.items()},
                }
                for each in self.hardest(most)
            ],
        }

    def _names(self, chosen: Bools) -> list[str]:
        return [self.truth.qids[at] for at in np.flatnonzero(chosen & self.counted).tolist()]


def failures_of(evaluations: Mapping[str, Measured], cutoff: int | Budget | None = None) -> Failures:
    """Collect the groups that each system covers within a cutoff; all evaluations share one ground truth."""
    truth = next(iter(evaluations.values())).truth
    counting = np.stack([evaluation.counting for evaluation in evaluations.values()], axis=1)
    columns = []
    for evaluation in evaluations.values():
        every = [(hits, Cut.at(hits, cutoff)) for hits in evaluation.hits_in_trials]
        covered = np.stack([hits.covered(cut.top) for hits, cut in every])
        ranks = np.stack([hits.first_ranks for hits, _ in every])
        completion = middle_rank(np.stack([completion_within(hits, cut) for hits, cut in every]))
        redundancy = np.full(len(truth), np.nan)
        if truth.judgments.alternative_set is None:  # undefined if alternatives are needed together
            redundancy = evaluation.averaged(lambda hits: sets.redundancy(hits, Cut.at(hits, cutoff)))
        first, solved = middle_rank(np.where(covered, ranks, 0)), complete_within(evaluation, cutoff)
        counts = covered.sum(axis=0), (ranks > 0).sum(axis=0)
        columns.append((first, middle_rank(ranks), *counts, completion, redundancy, solved))
    trials = [len(evaluation.hits_in_trials) for evaluation in evaluations.values()]
    stacked = (np.stack(column, axis=1) for column in zip(*columns))
    return Failures(list(evaluations), trials, cutoff, truth, counting, *stacked)


def middle_rank(ranks: Ints) -> Ints:
    """Return the median rank over trials (the later of two), for ranks of shape (r, …), where 0 means never."""
    never = np.iinfo(np.int64).max
    middle: Ints = np.sort(np.where(ranks == 0, never, ranks), axis=0)[len(ranks) // 2] % never
    return middle


def whole(count: float) -> float:
    """Return a count as an integer if it is a whole number."""
    return int(count) if float(count).is_integer() else count


def completion_within(hits: Hits, cut: Cut) -> Ints:
    """Return the rank at which each query is complete, shape (Q,), or 0 if it is not complete within the cutoff."""
    last = hits.completion_ranks
    return np.where(last <= cut.top, last, 0)


def complete_within(evaluation: Measured, cutoff: int | Budget | None) -> Floats:
    """Return the share of trials in which each query is complete within a cutoff, shape (Q,)."""
    return evaluation.averaged(lambda hits: completion_within(hits, Cut.at(hits, cutoff)) > 0)


def plain_group(group: PlacedGroup) -> dict[str, Any]:
    """Return a group of a single run as plain Python objects."""
    (place,) = group.places.values()
    plain = {"group": group.group, "rank": place.rank, "covered": place.is_covered, "alternatives": group.alternatives}
    return plain | ({"covered_trials": place.covered, "trials": place.trials} if place.trials > 1 else {})


def check_misses(k: int, worst: int) -> None:
    """Raise `ConfigError` for invalid numbers."""
    wrong = [(name, display(each)) for name, each in (("k", k), ("worst", worst)) if not is_integer(each) or each < 1]
    refuse(((name, f"expected a whole number above 0, found {shown}") for name, shown in wrong), ConfigError)


def worst_first(trials: Sequence[Trial], k: int) -> tuple[Ints, Floats]:
    """Return the queries that are not complete within k in every trial, worst first, and all queries' coverage."""
    judgments, size = trials[0][0].judgments, trials[0][0].size
    rank, covered = (np.stack(each) for each in zip(*((hits.first_ranks, hits.covered(k)) for hits, _ in trials)))
    counts = np.stack([counting for _, counting in trials])
    times = np.maximum(counts.sum(axis=0), 1)
    inside = counts[:, judgments.group_query]
    weight = total(judgments.group_query, judgments.weight * (covered & inside).sum(axis=0), size) / times
    coverage = np.divide(weight, judgments.total_weight, out=np.ones(size), where=judgments.total_weight > 0)
    # Sorted, so that the order of trials does not change the sum.
    early = np.sort(np.where(inside & (rank > 0), 1 / np.maximum(rank, 1), 0.0), axis=0).sum(axis=0)
    earliness = total(judgments.group_query, early, size) / times
    complete = np.bincount(judgments.group_query[(covered | ~inside).all(axis=0)], minlength=size) == judgments.groups
    incomplete = np.flatnonzero(counts.any(axis=0) & ~complete)
    return incomplete[np.lexsort((incomplete, earliness[incomplete], coverage[incomplete]))], coverage


def coverage_by_number(trials: Sequence[Trial], k: int) -> list[dict[str, Any]]:
    """Return, for each group number, the share of groups covered within k and at any rank, as a mean over trials."""
    of_group = trials[0][0].judgments.group_query
    number, inside = views.nth(of_group), np.stack([counting[of_group] for _, counting in trials])
    most, times = int(number.max(initial=0)) + 1, np.maximum(inside.sum(axis=0), 1)
    covered, anywhere = (
        (np.stack(masks) & inside).sum(axis=0) / times
        for masks in zip(*((hits.covered(k), hits.first_ranks > 0) for hits, _ in trials))
    )
    weights = (inside.any(axis=0), covered, anywhere)
    columns = [np.bincount(number, weight, minlength=most).tolist() for weight in weights]
    return [
        {"number": nth, "groups": int(size), "covered": within / size, "anywhere": anywhere / size}
        for nth, (size, within, anywhere) in enumerate(zip(*columns))
        if size
    ]


def harmful_results(truth: GroundTruth, trials: Sequence[Hits], k: int) -> list[dict[str, Any]]:
    """Return the harmful results within k: `qid`, `id` and `rank` (with trials, the median rank and the counts)."""
    found: list[list[tuple[int, int, int]]] = []
    for hits in trials:
        rows = np.flatnonzero(hits.harmful & (hits.rank <= k))
        found.append(list(zip(*(column[rows].tolist() for column in (hits.query, hits.rank, hits.alternative)))))
    if len(trials) == 1:
        return [{"qid": truth.qids[query], "rank": rank, "id": truth.ids[at]} for query, rank, at in found[0]]
    ranks: dict[tuple[int, int], list[int]] = {}
    for of_trial in found:
        # A repeat in the same trial does not count.
        for (query, at), rank in {(query, at): rank for query, rank, at in reversed(of_trial)}.items():
            ranks.setdefault((query, at), []).append(rank)
    return [
        {
            "qid": truth.qids[query],
            "rank": sorted(of_trials)[len(of_trials) // 2],
            "id": truth.ids[at],
            "returned_trials": len(of_trials),
            "trials": len(trials),
        }
        for (query, at), of_trials in sorted(ranks.items())
    ]
