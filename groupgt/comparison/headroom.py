"""Compute the scores of an oracle that picks the best system for each query, and of the union of all results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Annotated

import numpy as np

from groupgt.engines.carriers import local_carrier_of
from groupgt.evaluation.estimates import mean_of
from groupgt.evaluation.misses import Failures
from groupgt.evaluation.result import Evaluated
from groupgt.metrics import sets
from groupgt.metrics.base import Cut, ratio
from groupgt.model.hits import Floats
from groupgt.model.values import Budget, total

# With more results than this, ids are not read again.
MANY_RESULTS = 5_000_000

# A number that is never NaN.
Defined = Annotated[float, "known"]


@dataclass(frozen=True)
class Headroom:
    """Scores of an oracle that picks the best system for each query, and of the union of all results.

    `best` names the system with the best mean of `metric`, or all tied systems. `per_query` is the mean of the best
    value for each query, over the `queries` that count for all systems. `union_recall` and `union_complete` are
    recall.coverage and complete for the union of all results within the cutoff, which contains `union_size` distinct
    results on average. `single_recall` is the best recall.coverage of a single system with the same number of results
    (rounded up). All of these scores are upper bounds that grow by chance as systems are added.
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


def headroom_of(evaluations: Mapping[str, Evaluated], failures: Failures, texts: Sequence[str] = ()) -> list[Headroom]:
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
        best = max(means) if metric.higher_is_better else min(means)
        tied = ", ".join(sorted(name for name, mean in zip(failures.systems, means) if mean == best))
        oracle = values.max(axis=1) if metric.higher_is_better else values.min(axis=1)
        headroom.append(Headroom(text, tied, best, mean_of(oracle), len(values), *union))
    return headroom


def _union(evaluations: Sequence[Evaluated], failures: Failures) -> tuple[float, float, float, float]:
    """Return recall.coverage, complete and size for the union of results, and the best single recall at that size."""
    judgments, counted = failures.truth.judgments, failures.counted
    has_hit = (failures.first > 0).any(axis=1)
    covered = total(judgments.group_query, has_hit * judgments.weight, len(counted))
    recall = ratio(covered, judgments.total_weight)
    complete = np.bincount(judgments.group_query[has_hit], minlength=len(counted)) == judgments.groups
    size = mean_of(_union_sizes(evaluations, failures.cutoff)[counted])
    singles: list[float] = []
    if not math.isnan(size):
        all_hits = [evaluation.first.labelled.hits for evaluation in evaluations]
        cuts = [Cut.at(hits, max(math.ceil(size), 1)) for hits in all_hits]
        singles = [mean_of(sets.recall_coverage(hits, cut)[counted]) for hits, cut in zip(all_hits, cuts)]
    return mean_of(recall[counted]), mean_of(complete[counted].astype(np.float64)), size, max(singles, default=math.nan)


def _union_sizes(evaluations: Sequence[Evaluated], cutoff: int | Budget | None) -> Floats:
    """Count each query's distinct results in all systems, shape (Q,), NaN if the results are not read again."""
    truth = evaluations[0].truth
    results_in_all = sum(int(evaluation.first.labelled.hits.length.sum()) for evaluation in evaluations)
    if results_in_all > MANY_RESULTS or any(evaluation.first.run.is_remote for evaluation in evaluations):
        return np.full(len(truth), np.nan)
    unions: list[set[str]] = [set() for _ in truth.qids]
    for evaluation in evaluations:
        results = local_carrier_of(evaluation.first.run, "reading all rankings").flat(truth, evaluation.policy)
        within = (results.rank <= Cut.at(evaluation.first.labelled.hits, cutoff).top[results.query]).tolist()
        for query, name in compress(zip(results.query.tolist(), results.ids), within):
            unions[query].add(name)
    return np.array(list(map(len, unions)), dtype=np.float64)
