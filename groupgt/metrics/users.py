"""Metrics that model a user who scans down the list and may stop: ERR and RBP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from groupgt.errors import MetricError
from groupgt.metrics import ideals, views
from groupgt.metrics.base import Cut, Parameter, one_meaning, ratio
from groupgt.metrics.sets import null_if_empty, unjudged
from groupgt.metrics.terms import number, over, plus, times
from groupgt.model.hits import Floats, Hits
from groupgt.model.values import total

if TYPE_CHECKING:
    from groupgt.metrics.worksheet import Sheet

GRADED = Parameter("graded", "False", "True or False", choices=("False", "True"), reads_all=True)
P = Parameter("p", 0.8, "a number above 0 and below 1", lambda value: 0 < value < 1)


def err(hits: Hits, cut: Cut, max_grade: float = 4) -> Floats:
    judgments = hits.judgments
    if judgments.alternative_grade.size and float(judgments.alternative_grade.max()) > max_grade:
        at = int(np.argmax(judgments.alternative_grade))
        qid = judgments.qid(int(judgments.alternative_query[at]))
        grade = judgments.alternative_grade[at]
        what = f"err expects grades up to max_grade={max_grade:g}, found {grade:g}; write err(max_grade={grade:g})"
        raise MetricError(f"query {qid!r}: {what}")
    rows = views.relevant_results(hits)
    # (2^grade − 1) / 2^max_grade, without overflow.
    stop = np.array([2.0 ** (grade - max_grade) - 2.0**-max_grade for grade in rows.gain.tolist()])
    going_on = np.ones(hits.size)
    terms = np.zeros(len(rows.query))
    # One step per relevant result of the query with the most; all queries advance together.
    order = np.argsort(rows.nth, kind="stable")
    borders = np.searchsorted(rows.nth[order], np.arange(1, int(rows.nth.max()) + 2 if len(order) else 1)).tolist()
    for low, high in pairwise(borders):
        step = order[low:high]
        query = rows.query[step]
        terms[step] = going_on[query] * stop[step] / rows.rank[step]
        going_on[query] *= 1 - stop[step]
    within = rows.rank <= cut.top[rows.query]
    return total(rows.query[within], terms[within], hits.size)


def rbp(hits: Hits, cut: Cut, p: float = 0.8, graded: str = "False") -> Floats:
    highest = hits.judgments.highest_grade if graded == "True" else None
    return _biased(hits, cut, p, views.relevant_results(hits), highest)


def rbp_residual(hits: Hits, cut: Cut, p: float = 0.8) -> Floats:
    rows = views.judged_results(hits)
    return null_if_empty(np.maximum(1 - _biased(hits, cut, p, rows.at(rows.gain >= 0)), 0.0), cut)


def rbp_resid(hits: Hits, cut: Cut, p: float = 0.9) -> Floats:
    residual = rbp_residual(hits, cut, p)
    residual[(unjudged(hits, cut) == 0) & (cut.top > 0)] = 0.0
    return residual


def compat(hits: Hits, cut: Cut, p: float = 0.95, normalize: str = "True") -> Floats:
    judgments = hits.judgments
    found = views.relevant_documents(hits)
    rank = np.full(judgments.documents, np.iinfo(np.int64).max)
    rank[found.document] = found.rank
    # The ideal ranking has the highest grades first, and documents of equal grades in the order of the results.
    relevant = np.flatnonzero(judgments.is_relevant(judgments.document_grade))
    query, grade = judgments.document_query[relevant], judgments.document_grade[relevant]
    order = np.lexsort((rank[relevant], -grade, query))
    query, rank = query[order], rank[relevant][order]
    place = views.nth(query)
    depth = np.maximum(hits.length, judgments.relevant)
    # overlap[d] is the sum of p^(i−1)/i up to depth d: a document is in both rankings from the later place on.
    steps = np.arange(1, int(depth.max(initial=0)) + 1)
    overlap = np.concatenate(([0.0], np.cumsum(ideals.power(p, steps - 1) / steps)))
    later = np.minimum(np.maximum(rank, place), depth[query] + 1)
    reached = total(query, overlap[depth[query]] - overlap[np.minimum(later - 1, depth[query])], hits.size)
    if normalize == "True":
        return ideals.share_of(reached, total(query, overlap[depth[query]] - overlap[place - 1], hits.size))
    return ratio(reached * (1 - p), 1 - ideals.power(p, depth))


def _biased(hits: Hits, cut: Cut, p: float, rows: views.GainRows, highest: float | None = None) -> Floats:
    """Return (1−p) Σ p^(rank−1), shape (Q,). If `highest` is given, each term is multiplied by grade ÷ `highest`."""
    rows = rows.within(cut)
    terms = ideals.power(p, rows.rank - 1)
    return (1 - p) * total(rows.query, terms if highest is None else rows.gain / highest * terms, hits.size)


def _explain_err(sheet: Sheet, max_grade: float = 4) -> str:
    terms = []
    before: list[str] = []
    for rank, grade in sheet.results:
        stop = f"(2**{number(grade)}-1)/2**{number(max_grade)}"
        terms.append(times(*before, f"{stop}/{rank}"))
        before.append(f"(1-{stop})")
    return plus(terms)


def _explain_rbp(sheet: Sheet, p: float = 0.8, graded: str = "False") -> str:
    return _weights(p, sheet.results, sheet.judgments.highest_grade if graded == "True" else None)


def _explain_residual(sheet: Sheet, p: float = 0.8) -> str:
    return f"1 - {_weights(p, [(rank, grade) for rank, grade in sheet.judged if grade >= 0])}"


def _explain_resid(sheet: Sheet, p: float = 0.9) -> str:
    is_judged = sum(grade >= 0 for _, grade in sheet.judged) == sheet.top
    return "0" if is_judged else _explain_residual(sheet, p)


def _explain_compat(sheet: Sheet, p: float = 0.95, normalize: str = "True") -> str:
    judgments = sheet.judgments
    rows = views.relevant_documents(sheet.hits)
    rows = rows.at(rows.query == sheet.query)
    ranks = dict(zip(rows.document.tolist(), rows.rank.tolist()))
    documents = np.flatnonzero(judgments.document_query == sheet.query).tolist()
    grades = {document: float(judgments.document_grade[document]) for document in documents}
    ideal = [document for document in documents if sheet.is_relevant(grades[document])]
    ideal.sort(key=lambda document: (-grades[document], ranks.get(document, math.inf)))
    depth = max(int(sheet.hits.length[sheet.query]), len(ideal))

    def shared(place: int) -> float:
        return math.fsum(p ** (step - 1) / step for step in range(place, depth + 1))

    reached = [max(ranks[document], place) for place, document in enumerate(ideal, 1) if document in ranks]
    best = range(1, len(ideal) + 1)
    if normalize != "True":
        return over(plus(map(shared, reached)), f"(1-{number(p)}**{depth})/(1-{number(p)})" if depth else 0)
    return over(plus(map(shared, reached)), plus(map(shared, best)))


def _weights(p: float, results: Sequence[tuple[int, float]], highest: float | None = None) -> str:
    terms = []
    for rank, grade in results:
        share = 1 if highest in (None, grade) else f"{number(grade)}/{number(highest)}"
        terms.append(times(share, f"{number(p)}**{rank - 1}" if rank > 1 else 1))
    return f"(1-{number(p)}) * ({plus(terms)})" if results else "0"


DEFINITIONS = (
    one_meaning(
        "err",
        "Expected reciprocal rank under a cascade user model; the stopping probability grows with the grade.",
        err,
        "Σ_r (1/r) R_r Π_{s<r} (1 − R_s), R = (2^grade − 1) / 2^max_grade; a grade above max_grade is an error",
        _explain_err,
        "Chapelle+, CIKM 2009",
        Parameter("max_grade", 4, "a number above 0, up to 1000", lambda value: 0 < value <= 1000),
    ),
    one_meaning(
        "rbp",
        "Rank-biased precision: the user continues to the next result with probability p.",
        rbp,
        "(1−p) Σ_r p^(r−1) rel_r; results beyond top can add at most p^min(k,n), "
        "and a user looks at 1/(1−p) results on average. With `graded=True`, rel_r is the grade ÷ the highest grade in "
        "the ground truth",
        _explain_rbp,
        "Moffat & Zobel, TOIS 2008; TREC-COVID's rbp_p5 is rbp(graded=True, p=0.5)",
        P,
        GRADED,
    ),
    one_meaning(
        "rbp_residual",
        "Increase in rbp if all unjudged results and all results beyond top were relevant; null for an empty ranking.",
        rbp_residual,
        "1 − (1−p) Σ p^(r−1) over results in top with a grade ≥ 0",
        _explain_residual,
        "Moffat & Zobel, TOIS 2008",
        P,
        takes_level=False,
        higher_is_better=False,
    ),
    one_meaning(
        "rbp_resid",
        "trec_eval's residual of rbp: rbp_residual with p = 0.9, but 0 if every result is judged.",
        rbp_resid,
        "p^len(top) + (1−p) Σ p^(r−1) over results in top without a grade ≥ 0; 0 if there are none",
        _explain_resid,
        "trec_eval rbp_resid",
        replace(P, default=0.9),
        takes_level=False,
        higher_is_better=False,
    ),
    one_meaning(
        "compat",
        "Rank-biased overlap of the results with an ideal ranking (compatibility).",
        compat,
        "Σ_{i≤d} p^(i−1) · |documents among the first i of results and ideal| / i, where d = max(n, R), ÷ the same "
        "sum of the ideal ranking with itself; with `normalize=False`, ÷ Σ p^(i−1). The ideal ranking has the highest "
        "grades first, and equal grades in the order of the results",
        _explain_compat,
        "ir-measures Compat; Clarke+, TOIS 2021",
        replace(P, default=0.95),
        Parameter("normalize", "True", "True or False", choices=("True", "False")),
        takes_cutoff=False,
    ),
)
