"""Scores one query without any setup."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from groupgt.evaluation.evaluate import evaluate
from groupgt.metrics import ideals
from groupgt.metrics.base import ConventionChoice
from groupgt.metrics.language import Metric, parse_metrics
from groupgt.model.validity import are_plainly_ids

# Metrics that are computed in plain Python, up to a cutoff of `MOST`.
PLAIN = {"recall.autorag", "complete.autorag", "ndcg.autorag"}
MOST = 1000
DISCOUNT: list[float] = ideals.log2(np.arange(1, MOST + 1)).tolist()


def score(
    retrieval_gt: Any,
    ids: Sequence[str] | Mapping[str, float],
    metrics: Sequence[str | Metric] | str = ("recall", "complete", "ndcg@10"),
    convention: ConventionChoice = "auto",
) -> dict[str, float | None]:
    """Score the results of one query against its grouped ground truth.

    `score` returns the same values as `evaluate`, with None for undefined values. The default metrics take a few
    microseconds. Raises `DataError`, `MetricError` or `ConfigError`.

    Args:
        retrieval_gt: Groups, where `[["a", "b"], ["c"]]` means (a or b) and c; or `{id: grade}`, which is flat.
        ids: Results, best first, or `{id: score}`.
        metrics: Metrics, such as `["recall@5", "mrr"]`.
        convention: How metrics treat groups: `autorag`, `trec`, `coverage`, or `auto` (depends on the shape).

    >>> score([["a", "b"], ["c"]], ["a", "x", "b"])
    {'recall': 0.5, 'complete': 0.0, 'ndcg@10': 0.7039180890341347}
    """
    plan = _plan((metrics,) if isinstance(metrics, str) else tuple(metrics), convention)
    hits = None if plan is None else _hits(retrieval_gt, ids)
    if plan is None or hits is None:
        evaluation = evaluate({"query": retrieval_gt}, {"query": ids}, metrics, convention=convention)
        values = {text: float(column[0]) for text, column in evaluation.values.items()}
        return {text: None if math.isnan(value) else value for text, value in values.items()}
    return {text: _value(name, cutoff, hits, retrieval_gt, len(ids)) for text, name, cutoff in plan}


@lru_cache(maxsize=64)
def _plan(texts: tuple[str | Metric, ...], convention: str) -> list[tuple[str, str, int]] | None:
    """Return the text, name and cutoff of each metric, or None if any cannot be computed in plain Python."""
    parsed = parse_metrics(texts, convention)
    plan = []
    for text, metric in parsed.items():
        cutoff = MOST if metric.cutoff is None else metric.cutoff
        name = f"{metric.name}.{metric.convention}"
        is_plain = name in PLAIN and metric == Metric(metric.name, metric.convention, cutoff=metric.cutoff)
        if not is_plain or not isinstance(cutoff, int) or cutoff > MOST:
            return None
        plan.append((text, metric.name, cutoff))
    return plan


def _hits(groups: Any, ids: Any) -> list[tuple[int, int]] | None:
    """Return the rank and group number of each result in a group, or None for ids that are repeated or not plain."""
    if type(groups) is not list or type(ids) is not list or not groups or len(ids) > MOST:
        return None
    if not set(map(type, ids)) <= {str}:
        return None
    group_of: dict[str, int] = {}
    listed = 0
    for number, group in enumerate(groups):
        if type(group) is not list or not group:
            return None
        for name in group:
            if type(name) is not str:
                return None
            group_of[name] = number
        listed += len(group)
    names = [*group_of, *ids]
    if listed != len(group_of) or len(set(ids)) != len(ids) or not are_plainly_ids(names):
        return None
    return [(rank, group_of[name]) for rank, name in enumerate(ids) if name in group_of]


def _value(name: str, cutoff: int, hits: list[tuple[int, int]], groups: list[list[str]], count: int) -> float:
    """Apply the formulas from `metrics.sets` and `metrics.gains` under `autorag` without arrays; ranks start at 0."""
    if name == "ndcg":
        depth = min(sum(map(len, groups)), cutoff, count)
        gain = ideal = 0.0
        for rank, _ in hits:
            if rank < cutoff:
                gain += DISCOUNT[rank]
        for discount in DISCOUNT[:depth]:
            ideal += discount
        return gain / ideal if ideal else 0.0
    covered = len({group for rank, group in hits if rank < cutoff})
    return covered / len(groups) if name == "recall" else float(covered == len(groups))
