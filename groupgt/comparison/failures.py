"""Finds the groups that each system covers or misses, queries that only one system completes, and headroom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from groupgt.engines.carriers import local_carrier_of
from groupgt.evaluation.evaluate import evaluate_each, evaluate_run
from groupgt.evaluation.misses import check_misses
from groupgt.evaluation.options import OneRunOptions, Truth, takes_options
from groupgt.evaluation.reading import are_several
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation, Misses, counting_everywhere, mean_of
from groupgt.evaluation.runs import named_runs
from groupgt.metrics import sets, views
from groupgt.metrics.base import Cut, ratio
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.values import Budget, total
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

# With more results than this, ids are not read again.
MANY_RESULTS = 5_000_000


@dataclass(frozen=True, eq=False)
class Failures:
    """Groups and queries that each system covers within a cutoff.

    `first` is the rank of each group's first hit, shape (G, S), or 0 if a system does not cover it within the cutoff;
    `anywhere` is its rank in the entire ranking. `completion`, shape (Q, S), is the rank at which a query is complete,
    or 0. `redundancy` is the share of results that are relevant but cover no new group. `counted` marks the queries
    that count, shape (Q,).
    """

    systems: list[str]
    cutoff: int | Budget | None
    truth: GroundTruth
    counted: Bools
    first: Ints
    anywhere: Ints
    completion: Ints
    redundancy: Floats

    @cached_property
    def solved(self) -> NDArray[np.bool_]:
        """Marks complete queries, shape (Q, S)."""
        return self.completion > 0

    def only(self, system: str) -> list[str]:
        """Return the queries that are complete only for this system."""
        place = self.systems.index(system)
        return self._names(self.solved[:, place] & (self.solved.sum(axis=1) == 1))

    @property
    def nobody(self) -> list[str]:
        """The queries that are complete for no system."""
        return self._names(self.solved.sum(axis=1) == 0)

    @property
    def everybody(self) -> list[str]:
        """The queries that are complete for every system."""
        return self._names(self.solved.sum(axis=1) == len(self.systems))

    @property
    def solved_counts(self) -> dict[str, int]:
        """The number of complete queries per system."""
        return {name: int(self.solved[self.counted, place].sum()) for place, name in enumerate(self.systems)}

    def between(self, first: str, second: str) -> dict[str, int]:
        """Return the number of queries complete for both systems, for only one, and for neither."""
        a, b = (self.solved[self.counted, self.systems.index(name)] for name in (first, second))
        parts = {"both": a & b, "only_first": a & ~b, "only_second": ~a & b, "neither": ~a & ~b}
        return {name: int(part.sum()) for name, part in parts.items()}

    def lost(self, system: str, than: str) -> list[str]:
        """Return the queries that are complete for `than` but not for `system`."""
        complete, other = (self.solved[:, self.systems.index(name)] for name in (system, than))
        return self._names(other & ~complete)

    def hardest(self, most: int = 20) -> list[dict[str, Any]]:
        """Return groups covered by the fewest systems, latest first in ties: `qid`, `group`, `systems`, `ranks`."""
        covered = (self.first > 0).sum(axis=1)
        late = np.where(self.anywhere > 0, 1 / np.maximum(self.anywhere, 1), 0).sum(axis=1)
        candidates = np.flatnonzero(self.unmet)
        order = candidates[np.lexsort((candidates, late[candidates], covered[candidates]))][:most]
        return [self._group(group) for group in order.tolist()]

    @cached_property
    def unmet(self) -> Bools:
        """Marks groups that at least one system does not cover, among queries that count, shape (G,)."""
        unmet: Bools = self.counted[self.truth.judgments.group_query] & ~(self.first > 0).all(axis=1)
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
            for at in np.flatnonzero(self.counted).tolist():
                ranks = self.first[views.part_of(self.truth.judgments.group_query, at), place]
                covered = int((ranks > 0).sum())
                first_hits = " ".join(map(str, ranks.tolist()))  # 0: not covered
                completion, solved = int(self.completion[at, place]) or None, int(self.solved[at, place])
                redundancy = None if np.isnan(share := self.redundancy[at, place]) else float(share)
                counts = [len(ranks), covered, len(ranks) - covered]
                rows.append([name, self.truth.qids[at], cutoff, *counts, first_hits, completion, solved, redundancy])
        return headers, rows

    def to_dict(self, most: int = 20) -> dict[str, Any]:
        """Return the complete queries by system and the hardest groups, as plain Python."""
        return {
            "cutoff": None if self.cutoff is None else str(self.cutoff),
            "queries": int(self.counted.sum()),
            "solved": self.solved_counts,
            "only": {name: self.only(name) for name in self.systems},
            "everybody": len(self.everybody),
            "nobody": self.nobody,
            "hardest": self.hardest(most),
        }

    def _group(self, group: int) -> dict[str, Any]:
        judgments, truth = self.truth.judgments, self.truth
        place = int(truth.relevant_groups[group])
        return {
            "qid": truth.qids[int(judgments.group_query[group])],
            "group": truth.group_label(place),
            "alternatives": [name for name, _ in truth.alternatives_of(place)],
            "systems": int((self.first[group] > 0).sum()),
            "ranks": {name: int(rank) or None for name, rank in zip(self.systems, self.anywhere[group].tolist())},
        }

    def _names(self, chosen: Bools) -> list[str]:
        return [self.truth.qids[at] for at in np.flatnonzero(chosen & self.counted).tolist()]


# A number that is never NaN.
Defined = Annotated[float, "known"]


@dataclass(frozen=True)
class Headroom:
    """Scores of an oracle that picks the best system for each query, and of the union of all results.

    `best` is the system with the best mean of `metric`, and `per_query` is the mean of the best value for each query,
    over the `queries` that count for all systems. `union_recall` and `union_complete` are recall.coverage and complete
    for the union of all results within the cutoff, which contains `union_size` distinct results on average;
    `single_recall` is the best recall.coverage of a single system with the same number of results (rounded up). All are
    upper bounds that grow by chance as systems are added.
    """

    metric: str
    best: str
    mean: Defined
    per_query: Defined
    queries: int
    union_recall: float
    union_complete: float
    union_size: float
    single_recall: float


def failures_of(evaluations: Mapping[str, Evaluation], cutoff: int | Budget | None = None) -> Failures:
    """Collect the groups that each system covers within a cutoff; all evaluations share one ground truth.

    >>> import groupgt
    >>> truth = {"q1": [["a"], ["b"]], "q2": [["c"]]}
    >>> runs = {"one": {"q1": ["a", "b"], "q2": ["x"]}, "two": {"q1": ["a"], "q2": ["c"]}}
    >>> found = failures_of({name: groupgt.evaluate(truth, run, ["recall"]) for name, run in runs.items()})
    >>> found.only("one"), found.only("two"), found.nobody
    (['q1'], ['q2'], [])
    """
    truth = next(iter(evaluations.values())).truth
    counted = counting_everywhere(evaluations.values())
    columns = []
    for evaluation in evaluations.values():
        hits = evaluation.labelled.hits
        cut = Cut.at(hits, cutoff)
        anywhere = hits.first_ranks
        # Undefined if alternatives are needed together.
        has_sets = truth.judgments.alternative_set is not None
        redundancy = np.full(len(truth), np.nan) if has_sets else sets.redundancy(hits, cut)
        first = np.where(hits.covered(cut.top), anywhere, 0)
        columns.append((first, anywhere, completion_within(hits, cut), redundancy))
    return Failures(list(evaluations), cutoff, truth, counted, *(np.stack(column, axis=1) for column in zip(*columns)))


def completion_within(hits: Hits, cut: Cut) -> Ints:
    """Return the rank at which each query is complete, shape (Q,), or 0 if it is not complete within the cutoff."""
    last = hits.completion_ranks
    return np.where(last <= cut.top, last, 0)


def complete_within(evaluation: Evaluation, cutoff: int | Budget | None) -> Bools:
    """Mark the queries that are complete within a cutoff, shape (Q,)."""
    hits = evaluation.labelled.hits
    return completion_within(hits, Cut.at(hits, cutoff)) > 0


def headroom_of(evaluations: Mapping[str, Evaluation], failures: Failures, texts: Sequence[str] = ()) -> list[Headroom]:
    """Compute the best single system's score and the oracle's score for each metric (default: all)."""
    measured = list(evaluations.values())
    union = _union(measured, failures)
    headroom = []
    for text in texts or measured[0].metrics:
        metric = measured[0].metrics[text]
        values = np.stack([evaluation.values[text] for evaluation in measured], axis=1)
        values = values[~np.isnan(values).any(axis=1)]
        if not len(values):
            continue
        means = [mean_of(column) for column in values.T]
        best = means.index(max(means) if metric.higher_is_better else min(means))
        oracle = values.max(axis=1) if metric.higher_is_better else values.min(axis=1)
        headroom.append(Headroom(text, failures.systems[best], means[best], mean_of(oracle), len(values), *union))
    return headroom


def _union(evaluations: Sequence[Evaluation], failures: Failures) -> tuple[float, float, float, float]:
    """Return recall.coverage, complete and size for the union of results, and the best single recall at that size."""
    judgments, counted = failures.truth.judgments, failures.counted
    has_hit = (failures.first > 0).any(axis=1)
    covered = total(judgments.group_query, has_hit * judgments.weight, len(counted))
    recall = ratio(covered, judgments.total_weight)
    complete = np.bincount(judgments.group_query[has_hit], minlength=len(counted)) == judgments.groups
    size = mean_of(_union_sizes(evaluations, failures.cutoff)[counted])
    singles: list[float] = []
    if not math.isnan(size):
        all_hits = [evaluation.labelled.hits for evaluation in evaluations]
        cuts = [Cut.at(hits, max(math.ceil(size), 1)) for hits in all_hits]
        singles = [mean_of(sets.recall_coverage(hits, cut)[counted]) for hits, cut in zip(all_hits, cuts)]
    return mean_of(recall[counted]), mean_of(complete[counted].astype(np.float64)), size, max(singles, default=math.nan)


def _union_sizes(evaluations: Sequence[Evaluation], cutoff: int | Budget | None) -> Floats:
    """Count each query's distinct results within the cutoff across all systems, shape (Q,).

    Returns NaN if the results stay on a cluster or are too many to read again.
    """
    truth = evaluations[0].truth
    results_in_all = sum(int(evaluation.labelled.hits.length.sum()) for evaluation in evaluations)
    if results_in_all > MANY_RESULTS or any(evaluation.run.is_remote for evaluation in evaluations):
        return np.full(len(truth), np.nan)
    unions: list[set[str]] = [set() for _ in truth.qids]
    for evaluation in evaluations:
        results = local_carrier_of(evaluation.run, "all rankings").flat(truth, evaluation.policy)
        within = (results.rank <= Cut.at(evaluation.labelled.hits, cutoff).top[results.query]).tolist()
        for query, name in compress(zip(results.query.tolist(), results.ids), within):
            unions[query].add(name)
    return np.array(list(map(len, unions)), dtype=np.float64)


def hardest_of(
    evaluations: Sequence[Evaluation], k: int, worst: int = 20, texts: Mapping[str, str] | None = None
) -> HardestGroups:
    """Find the groups that the fewest runs cover within k; all runs share one ground truth."""
    by_name = {evaluation.name: evaluation for evaluation in evaluations}
    return HardestGroups(failures_of(by_name, k), by_name, worst, texts or {})


@dataclass(frozen=True, eq=False)
class HardestGroups(Result):
    """Up to `worst` groups that the fewest runs cover; `texts` maps ids to texts shown next to them."""

    failures: Failures
    evaluations: Mapping[str, Evaluation] = field(repr=False)
    worst: int = 20
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def plot(self) -> Figure:
        """Draw a figure of the listed groups, with the rank of the first hit in each run."""
        return self._teller.plot("groups")


@takes_options(OneRunOptions, corpus="A path or `{id: text}`, used by the labeller and to show texts next to ids.")
def misses(
    truth: Truth,
    run: Annotated[Any, Doc("`{qid: ranking}`, a `Run`, a path or a frame; or `{name: run}` for several runs.")],
    k: Annotated[int, Doc("The cutoff; a group is covered if it has a hit in the top k.")] = 10,
    worst: Annotated[int, Doc("Number of queries to list or, for several runs, number of groups.")] = 20,
    **options: Unpack[OneRunOptions],
) -> Misses | HardestGroups:
    """List the groups not covered in the top k results, worst queries first.

    For several runs, `{name: run}`, it returns the groups that the fewest runs cover, as `HardestGroups`. Raises
    `DataError` or `ConfigError`.

    >>> found = misses({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, k=2)
    >>> found.queries[0]["groups"][1]["rank"]
    3
    >>> hardest = misses({"q": [["a"], ["b"]]}, {"one": {"q": ["a"]}, "other": {"q": ["a", "x", "b"]}}, k=3)
    >>> hardest.to_dict()["hardest"][0]["ranks"]
    {'one': None, 'other': 3}
    """
    check_misses(k, worst)
    request = Request.of(**options)
    grouped = request.truth_of(truth)
    texts = request.sources.texts(None, "corpus")
    if are_several(run, grouped):
        return hardest_of(evaluate_each(request, grouped, named_runs(run)), k, worst, texts)
    return Misses.of(evaluate_run(request, grouped, run), k, worst, texts)
