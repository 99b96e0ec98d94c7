"""Combines the trials of one system: the evaluations of results that it gave when asked several times.

A query's value is the mean over the trials in which it has one, so that all that follows (comparisons, slices, gates)
needs to know nothing of trials. Identical trials give the values of a single run, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import comb

import numpy as np

from groupgt.errors import MetricError
from groupgt.evaluation.result import Evaluation
from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats


def check_trials(metrics: Iterable[Metric], trials: int) -> None:
    """Raise `MetricError` for metrics that count over more trials than there are."""
    for metric in metrics:
        if metric.passes is not None and (not trials or metric.passes[1] > trials):
            found = f"{trials}" if trials else "a single run"
            raise MetricError(
                f"metric {str(metric)!r}: expected at least {max(metric.passes[1], 2)} trials, found {found}"
            )


def over_trials(evaluations: Sequence[Evaluation], metrics: Mapping[str, Metric]) -> Evaluation:
    """Combine the evaluations of all trials of a system into one; a single run stays as it is."""
    first = evaluations[0]
    if len(evaluations) == 1:
        return first
    present = np.any([each.labelled.present for each in evaluations], axis=0)
    return replace(
        first,
        run=replace(first.run, trials=tuple(each.run for each in evaluations)),
        metrics=dict(metrics),
        values={
            text: combined(metric, np.stack([each.values[text] for each in evaluations]))
            for text, metric in metrics.items()
        },
        labelled=replace(first.labelled, present=present),
        trials=tuple(evaluations),
    )


def combined(metric: Metric, values: Floats) -> Floats:
    """Return one value per query, shape (Q,), from its values in all trials, shape (r, Q); NaN if it has none.

    With `pass_at=k`, the value is the probability that at least one of k trials succeeds, with `pass_all=k` that all of
    them do: 1 − C(r − c, k) ÷ C(r, k) and C(c, k) ÷ C(r, k), where c of r trials succeed.
    """
    counts = (~np.isnan(values)).sum(axis=0)
    if metric.passes is None:
        return means_per_query(values)
    (name, k), successes = metric.passes, np.nansum(values, axis=0).astype(np.int64)
    chosen = successes if name == "pass_all" else counts - successes
    column = np.full(values.shape[1], np.nan)
    for query in np.flatnonzero(counts >= k).tolist():
        share = comb(int(chosen[query]), k) / comb(int(counts[query]), k)
        column[query] = share if name == "pass_all" else 1 - share
    return column


def means_per_query(values: Floats) -> Floats:
    """Return the mean over trials per query, shape (Q,); NaN where no trial has a value."""
    counts = (~np.isnan(values)).sum(axis=0)
    filled = np.where(np.isnan(values), np.inf, values)
    lowest = filled.min(axis=0)
    highest = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    means: Floats = np.nansum(values, axis=0) / np.maximum(counts, 1)
    # The mean of equal values is the value itself, without rounding.
    means = np.where(lowest == highest, lowest, np.clip(means, lowest, highest))
    means[counts == 0] = np.nan
    return means
