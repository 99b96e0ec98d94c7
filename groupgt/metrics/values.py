"""Computes a column of per-query values for each metric."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from groupgt.errors import ConfigError, MetricError
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats, Hits
from groupgt.model.policy import Policy
from groupgt.model.populations import Populations


def values_of(metrics: Mapping[str, Metric], hits: Hits, present: Bools, policy: Policy) -> dict[str, Floats]:
    """Return one column per metric, shape (Q,), with NaN for undefined values. `present` marks queries with results."""
    populations = Populations(hits.judgments, present, policy)
    cuts: dict[object, Cut] = {}
    values: dict[str, Floats] = {}
    for text, metric in metrics.items():
        if metric.cutoff not in cuts:
            cuts[metric.cutoff] = metric.cut(hits)
        column = np.array(metric.values(hits, cuts[metric.cutoff]), dtype=np.float64)
        column[~metric.valued(populations)] = np.nan
        values[text] = column
    return values


def check_aggregates(metrics: Mapping[str, Metric], what: str) -> None:
    """Raise `MetricError` for metrics without the per-query values that the caller needs."""
    if texts := [text for text, metric in metrics.items() if metric.definition.aggregate is not None]:
        why = f"{what} needs values per query, but this metric has only one value per run"
        raise MetricError(f"{', '.join(texts)}: {why}; omit this metric (`groupgt evaluate` shows it)")


def check_policy(policy: Policy, metrics: Mapping[str, Metric]) -> None:
    """Raise `ConfigError` if the policy is incompatible with a metric."""
    if policy.unjudged == "drop":
        if texts := [text for text, metric in metrics.items() if metric.definition.reads_texts]:
            raise ConfigError(f"unjudged=drop works on ids, but these metrics compare text: omit {', '.join(texts)}")
    elif only := [text for text, metric in metrics.items() if metric.judged_only]:
        others = [text for text in metrics if text not in only]
        beside = f", but not for {', '.join(others)}" if others else ""
        raise ConfigError(
            f"judged_only=True is set for {', '.join(only)}{beside}; "
            "to apply it to all metrics, use the unjudged=drop policy instead"
        )
    if policy.duplicates != "keep":
        return
    reading_ids = {text: metric for text, metric in metrics.items() if not metric.definition.reads_texts}
    refused = [text for text, metric in reading_ids.items() if metric.convention != "autorag"]
    if refused:
        what = "duplicates=keep reproduces AutoRAG and requires the autorag convention"
        raise ConfigError(f"{', '.join(refused)}: {what}; choose duplicates=penalize")


def check_harm(labeller: str, metrics: Mapping[str, Metric]) -> None:
    """Raise `ConfigError` for harm metrics unless results are matched by their ids."""
    texts = [text for text, metric in metrics.items() if metric.definition.queries == "harmful"]
    if texts and labeller != "id":
        raise ConfigError(
            f"{', '.join(texts)}: harmful_ids contains ids, but with the {labeller} labeller a harmful passage may be "
            "returned under another id. Choose the id labeller, or omit these metrics"
        )
