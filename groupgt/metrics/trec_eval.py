"""Metrics that trec_eval users expect: interpolated precision and counts."""

from __future__ import annotations

import math

import numpy as np

from groupgt.metrics import views
from groupgt.metrics.base import Cut, Formula, Parameter, one_meaning
from groupgt.metrics.ranks import map_trec
from groupgt.metrics.worksheet import Sheet, number
from groupgt.model.hits import Floats, Hits


def iprec(hits: Hits, cut: Cut, recall: float = 0) -> Floats:
    rows = views.relevant_results(hits)
    # trec_eval's rounding of recall · R to a number of documents.
    needed = np.floor(recall * hits.judgments.relevant + 0.9)
    deep_enough = rows.nth >= needed[rows.query]
    value = np.zeros(hits.size)
    np.maximum.at(value, rows.query[deep_enough], (rows.nth / rows.rank)[deep_enough])
    return value


def num_ret(hits: Hits, cut: Cut) -> Floats:
    return cut.top.astype(np.float64)


def num_rel(hits: Hits, cut: Cut) -> Floats:
    return hits.judgments.relevant.astype(np.float64)


def gm_map(hits: Hits, cut: Cut) -> Floats:
    logarithms: Floats = np.log(np.maximum(map_trec(hits, cut), 1e-5))
    return logarithms


def _explain_iprec(sheet: Sheet, recall: float = 0) -> str:
    needed = int(recall * sheet.relevant + 0.9)
    points = [(nth, rank) for nth, (rank, _) in enumerate(sheet.results, 1) if nth >= needed]
    nth, rank = max(points, key=lambda point: point[0] / point[1], default=(0, 1))
    return f"{nth}/{rank}" if nth else "0"


DEFINITIONS = (
    one_meaning(
        "iprec",
        "Interpolated precision: the highest precision at any rank that reaches a recall.",
        Formula(
            iprec,
            "largest of n ÷ rank of the n-th relevant result over n ≥ ⌊recall·R + 0.9⌋ (0 if none)",
            _explain_iprec,
            "trec_eval iprec_at_recall",
        ),
        Parameter("recall", 0, "a number from 0 to 1", lambda value: 0 <= value <= 1),
        takes_cutoff=False,
    ),
    one_meaning(
        "num_ret",
        "Number of results retrieved. trec_eval prints the sum over queries; this is the mean.",
        Formula(num_ret, "number of results", lambda sheet: number(sheet.top), "trec_eval num_ret"),
        bounded=False,
        takes_cutoff=False,
    ),
    one_meaning(
        "num_rel",
        "Number of relevant documents. trec_eval prints the sum over queries; this is the mean.",
        Formula(num_rel, "R", lambda sheet: number(sheet.relevant), "trec_eval num_rel"),
        bounded=False,
        takes_cutoff=False,
    ),
    one_meaning(
        "gm_map",
        "The geometric mean of average precision over queries, in which poor queries count more.",
        Formula(gm_map, "exp of the mean over queries of ln max(map.trec, 0.00001)", None, "trec_eval gm_map"),
        takes_cutoff=False,
        aggregate=math.exp,
        warning="gm_map is one number per run: it has no values per query, so no test, slice or gate.",
    ),
)
