"""Explains one query of an `Evaluated` by its groups, the hits at each rank, and each value with its formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groupgt.engines.calls import calls_of
from groupgt.engines.carriers import carrier_of
from groupgt.engines.excluded import condensed_ranking
from groupgt.errors import DataError, first_of, near_names
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.trials import check_trials, combined
from groupgt.metrics.language import Metric
from groupgt.model.ground_truth import GroundTruth


def explanation_dict(evaluation: Evaluated, qid: str, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Return the explanation as plain Python objects: groups, results with the groups that they hit, and formulas."""
    truth, hits = evaluation.truth, evaluation.first.labelled.hits
    query = number_of(truth, qid)
    groups_hit: dict[int, list[int]] = {}
    for hit in hits.of_query(query):
        if hit.group and not hit.repeat and not hit.part:
            groups_hit.setdefault(hit.rank, []).append(hit.group)
    ids = ids_of(evaluation, qid)
    calls = call_numbers(evaluation, qid)
    return {
        "qid": qid,
        "query": truth.texts[query] if truth.texts else None,
        "groups": truth.relevant(qid),
        "not_relevant": int(truth.judgments.rejected[query]),
        "results": [
            {"rank": rank, "id": name, "hits": groups_hit.get(rank, []), **({"call": calls[rank - 1]} if calls else {})}
            for rank, name in enumerate(ids, 1)
        ],
        "metrics": values_explained(evaluation, query, metrics),
    }


def ids_of(evaluation: Evaluated, qid: str) -> list[str]:
    """Return the measured results of a query, best first."""
    ranking = carrier_of(evaluation.first.run).ranking(qid, evaluation.policy)
    return condensed_ranking(ranking, evaluation.truth, qid, evaluation.policy)[0]


def call_numbers(evaluation: Evaluated, qid: str) -> list[int]:
    """Return the call that returned each result, or nothing if results have no calls or some were dropped."""
    run, policy = evaluation.first.run, evaluation.policy
    if (run.original is not None and policy.duplicates == "drop") or policy.unjudged == "drop":
        return []
    calls = calls_of(run.by_original_ids, policy, [qid]).get(qid)
    return calls.calls if calls else []


def number_of(truth: GroundTruth, qid: str) -> int:
    """Return the position of a query in the ground truth, or raise `DataError` if it is not there."""
    if qid not in truth.index:
        hint = near_names(qid, truth.qids) or f", which has {first_of(list(map(repr, truth.qids)), 3)}"
        raise DataError(f"query {qid!r} is not in the ground truth{hint}")
    return truth.index[qid]


def values_explained(evaluation: Evaluated, query: int, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """Return each metric's value for one query (NaN if undefined), in each trial, with a worked example."""
    hits, several = evaluation.first.labelled.hits, evaluation.hits_in_trials
    check_trials(metrics, len(evaluation.repeats))
    figures = []
    for metric in (metric for metric in metrics if metric.definition.aggregate is None):
        has_value = bool(metric.valued(evaluation.populations)[query])
        worked = metric.explanation(hits, query) if has_value else None
        value = float(metric.values(hits)[query]) if has_value and not evaluation.repeats else math.nan
        figures.append({"metric": str(metric), "formula": metric.formula.text, "worked": worked, "value": value})
        if has_value and evaluation.repeats:
            plain = replace(metric, passes=None)
            values = np.stack([plain.values(each)[query : query + 1] for each in several])
            figures[-1] |= {"value": float(combined(metric, values)[0]), "trials": values[:, 0].tolist()}
    return figures
