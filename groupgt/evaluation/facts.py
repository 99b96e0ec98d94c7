"""Notes on means under the `autorag` convention: metrics that stay below 1, and differences from AutoRAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from groupgt.engines.carriers import carrier_of
from groupgt.engines.choice import Engine
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.metrics.language import Metric
from groupgt.metrics.values import values_of
from groupgt.metrics.views import relevant_counts
from groupgt.model.hits import Bools, Ints, Judgments
from groupgt.model.policy import PRESETS

# Runs of at most this many results are labelled again to check whether another policy changes a mean.
FEW_RESULTS = 100_000
POLICY = PRESETS["autorag"]


def autorag_metrics(evaluation: Evaluated) -> dict[str, Metric]:
    """Return the metrics under the `autorag` convention, keyed by their text in the request."""
    return {text: metric for text, metric in evaluation.metrics.items() if metric.convention == "autorag"}


def queries_below_one(evaluation: Evaluated) -> dict[str, int]:
    """Count the queries whose shortest complete ranking scores below 1, for metrics not also shown under `coverage`."""
    shown = {metric.name for metric in evaluation.metrics.values() if metric.convention == "coverage"}
    below: dict[str, Bools] = {}
    for metric in autorag_metrics(evaluation).values():
        if metric.name not in shown:
            k = metric.cutoff if isinstance(metric.cutoff, int) else None
            queries = below_one(evaluation.truth.judgments, metric.name, k)
            below[metric.name] = below.get(metric.name, np.False_) | queries
    return {name: int(queries.sum()) for name, queries in below.items() if queries.any()}


def autorag_differs(evaluation: Evaluated) -> bool:
    """Return True if AutoRAG's policy is known to change a mean. Runs with many results are not relabelled."""
    return any(map(_of_run_differs, evaluation.each))


def _of_run_differs(evaluation: Evaluation) -> bool:
    metrics, counts, policy = autorag_metrics(evaluation), evaluation.counts, evaluation.policy
    means = evaluation.means_by_labels()
    if counts["missing"] and policy.missing == "zero" and any(means[text] > 0 for text in metrics):
        return True
    depends = any(counts[name] and getattr(policy, name) != getattr(POLICY, name) for name in ("duplicates", "ties"))
    few = int(evaluation.labelled.hits.length.sum()) <= FEW_RESULTS
    if not depends or not few or evaluation.run.is_remote or evaluation.labeller.name != "id":
        return False
    plain = {text: metric for text, metric in metrics.items() if metric.budget is None}
    return evaluation.labelled.hits.once(("autorag differs", *plain), lambda: _differs(evaluation, plain))


def _differs(evaluation: Evaluation, metrics: Mapping[str, Metric]) -> bool:
    """Label a run again under AutoRAG's policy, and return whether a mean changes."""
    labelled = carrier_of(evaluation.run).label(evaluation.truth, evaluation.labeller, POLICY, Engine())
    other = replace(evaluation, values=values_of(metrics, labelled.hits, labelled.present, POLICY))
    ours, theirs = evaluation.means_by_labels(), other.means_by_labels()
    return not np.array_equal([ours[text] for text in metrics], [theirs[text] for text in metrics], equal_nan=True)


def below_one(judgments: Judgments, name: str, k: int | None) -> Bools:
    """Return a mask of queries where even a perfect ranking scores below 1, shape (Q,).

    A perfect ranking begins with the fewest results that cover every group. `mrr` and `map` average over groups, so a
    single result must cover all groups. `ndcg` requires every alternative, and counts a document once for each of its
    groups.
    """
    fewest = judgments.once("fewest results", lambda: _fewest(judgments))
    if name == "mrr":
        return fewest > 1
    if name == "map":
        return (fewest > 1) & (fewest <= (k or fewest))
    if name == "ndcg":
        alternatives = relevant_counts(judgments)
        return np.minimum(alternatives, k or alternatives) > fewest
    return np.zeros(judgments.size, dtype=np.bool_)


def _fewest(judgments: Judgments) -> Ints:
    """Return how many results cover every group, shape (Q,): the minimum or, for overlapping groups, an upper bound."""
    chosen = judgments.alternative_group >= 0
    covered = np.bincount(judgments.alternative_document[chosen], minlength=judgments.documents)
    most = np.ones(judgments.size, dtype=np.int64)
    np.maximum.at(most, judgments.alternative_query[chosen], covered[judgments.alternative_document[chosen]])
    return judgments.groups - most + 1
