"""Metrics for queries declared unanswerable: the fewer results, the better."""

from __future__ import annotations

import numpy as np

from groupgt.metrics.base import Cut, Formula, one_meaning
from groupgt.metrics.worksheet import Sheet, number
from groupgt.model.hits import Floats, Hits


def abstains(hits: Hits, cut: Cut) -> Floats:
    empty: Floats = (cut.top == 0).astype(np.float64)
    return empty


def false_returns(hits: Hits, cut: Cut) -> Floats:
    return cut.top.astype(np.float64)


def _explain_abstains(sheet: Sheet) -> str:
    return "0" if sheet.top else "1"


DEFINITIONS = (
    one_meaning(
        "abstains",
        "Whether a query declared unanswerable has no results within the cutoff; undefined for other queries.",
        Formula(abstains, "1 if top is empty, else 0", _explain_abstains, takes_sets=True),
        of_unanswerable=True,
    ),
    one_meaning(
        "false_returns",
        "Number of results for a query declared unanswerable; undefined for other queries.",
        Formula(false_returns, "|top|", lambda sheet: number(sheet.top), takes_sets=True),
        bounded=False,
        higher_is_better=False,
        of_unanswerable=True,
    ),
)
