"""One column a metric: from hits to the values of every query."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats, Hits
from groupgt.model.policy import Policy

__all__ = ["values_of"]


def values_of(metrics: Mapping[str, Metric], hits: Hits, present: Bools, policy: Policy) -> dict[str, Floats]:
    """One column per metric, shape (Q,); NaN where a query is undefined, skipped, or has nothing to be worse by.

    `present` says which queries have results, shape (Q,).
    """
    hidden = ~hits.judgments.defined
    if policy.missing == "skip":
        hidden = hidden | ~present
    cuts: dict[object, Cut] = {}
    values: dict[str, Floats] = {}
    for text, metric in metrics.items():
        if metric.cutoff not in cuts:
            cuts[metric.cutoff] = metric.cut(hits)
        column = metric.values(hits, cuts[metric.cutoff])
        column = np.where(hidden, np.nan, column)
        if not metric.higher_is_better:
            column[~present] = np.nan
        values[text] = column
    return values
