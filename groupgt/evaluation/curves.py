"""Computes the points of curves over depth, rank and recall from the hits of an evaluation, for figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from groupgt.evaluation.estimates import mean_of
from groupgt.evaluation.result import Evaluated
from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats, Hits, Ints

# Depths at which curves are drawn, as far as there are results.
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)


def depths_of(evaluations: Iterable[Evaluated]) -> list[int]:
    """Return the depths at which curves are drawn, up to the length of the longest ranking."""
    deepest = max(int(hits.length.max(initial=0)) for each in evaluations for hits in each.hits_in_trials)
    return [k for k in DEPTHS if k <= deepest] or [1]


def mean_at(evaluation: Evaluated, metric: Metric) -> float:
    """Return the mean of any metric, even one that was not requested, or NaN if no query counts."""
    return mean_of(evaluation.averaged(metric.values)[evaluation.counting])


def precision_by_recall(evaluation: Evaluated) -> Iterator[tuple[float, float]]:
    """Yield eleven recall levels with the mean interpolated precision at each."""
    for step in range(11):
        yield step / 10, mean_at(evaluation, Metric("iprec", parameters=(("recall", step / 10),) if step else ()))


def ranks_reached(evaluation: Evaluated) -> tuple[dict[str, Ints], Floats]:
    """Return the ranks of first hits and completion (0 for never) in all trials. Each query's weights sum to 1."""
    every = [(each.labelled.hits, each.counting) for each in evaluation.each]
    times = np.maximum(np.sum([counts for _, counts in every], axis=0), 1)
    ranks = {
        "first hit": np.concatenate([_first_ranks(hits)[counts] for hits, counts in every]),
        "complete": np.concatenate([hits.completion_ranks[counts] for hits, counts in every]),
    }
    return ranks, np.concatenate([1 / times[counts] for _, counts in every])


def _first_ranks(hits: Hits) -> Ints:
    never, ranks = np.iinfo(np.int64).max, hits.first_ranks
    first = np.full(hits.size, never, dtype=np.int64)
    np.minimum.at(first, hits.judgments.group_query[ranks > 0], ranks[ranks > 0])
    return np.where(first == never, 0, first)


def cumulative(ranks: Ints, weights: Floats) -> list[tuple[int, float]]:
    """Return the cumulative share of queries by rank. A rank of 0 means never."""
    if not len(ranks):
        return []
    distinct, places = np.unique(ranks[ranks > 0], return_inverse=True)
    counts = np.bincount(places, weights[ranks > 0], minlength=len(distinct))
    points = list(zip(distinct.tolist(), (np.cumsum(counts) / weights.sum()).tolist()))
    return points if points and points[0][0] == 1 else [(1, 0.0), *points]
