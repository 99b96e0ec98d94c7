"""Metrics that discount gains by the logarithm of the rank: NDCG and its variants."""

from __future__ import annotations

from math import log2

import numpy as np

from groupgt.metrics import ideals, views
from groupgt.metrics.base import Cut, Definition, Formula, Parameter, one_meaning, ratio
from groupgt.metrics.covering import LIMITS, best_ranking, coverage_ideal
from groupgt.metrics.ideals import descending, exponential, gain_of, share_of, sorted_grades
from groupgt.metrics.worksheet import Sheet, at_most_one, log_share, over, plus
from groupgt.model.hits import Floats, Hits, Ints, Judgments
from groupgt.model.values import total

GAIN = Parameter("gain", "linear", "linear (the grade itself) or exp (2^grade − 1)", choices=("linear", "exp"))


def _discounted(hits: Hits, cut: Cut, query: Ints, rank: Ints, gain: Floats | None) -> Floats:
    """Returns Σ gain · 1/log2(rank + 1) over the top results, shape (Q,)."""
    within = rank <= cut.top[query]
    terms = ideals.log2(rank[within])
    if gain is not None:
        terms = gain[within] * terms
    return total(query[within], terms, hits.size)


def ndcg_autorag(hits: Hits, cut: Cut) -> Floats:
    rows = views.counted_results(hits)
    judgments = hits.judgments
    listed = np.bincount(judgments.alternative_query[judgments.alternative_group >= 0], minlength=hits.size)
    depth = listed if cut.no_cut else np.minimum(listed, cut.top)
    highest = int(depth.max()) if len(depth) else 0
    ideal = np.concatenate(([0.0], np.cumsum(ideals.log2(np.arange(1, highest + 1, dtype=np.int64)))))
    return ratio(_discounted(hits, cut, rows.query, rows.rank, None), ideal[depth])


def dcg(hits: Hits, cut: Cut, gain: str = "linear") -> Floats:
    rows = views.graded_results(hits)
    return _discounted(hits, cut, rows.query, rows.rank, gain_of(rows.gain, gain, hits.judgments))


def ndcg_trec(hits: Hits, cut: Cut, gain: str = "linear") -> Floats:
    judgments = hits.judgments
    key = ("ndcg.trec ideal", gain, cut.key)
    path = sorted_grades(judgments, gain)
    ideal = judgments.once(key, lambda: path.discounted(judgments, ideals.log2, cut.ideal))
    return share_of(dcg(hits, cut, gain), ideal)


def ndcg_coverage(hits: Hits, cut: Cut, gain: str = "linear") -> Floats:
    query, rank, gains = hits.once(("upgrades", gain), lambda: _upgrades(hits, gain))
    ideal = coverage_ideal(hits.judgments, gain, ideals.log2, cut)
    return share_of(_discounted(hits, cut, query, rank, gains), ideal)


def _upgrades(hits: Hits, gain: str) -> tuple[Ints, Ints, Floats]:
    """Returns the gain that each relevant result adds: Σ_groups weight × (gain − best earlier gain, if above 0)."""
    rows = views.relevant_hits(hits)
    judgments = hits.judgments
    gains = gain_of(rows.grade, gain, judgments)
    # The running best of each group: gains are mapped to small integers, each group's above those of earlier groups,
    # so one running maximum over all groups never carries over to the next group.
    order = np.argsort(rows.group, kind="stable")
    levels, level = np.unique(gains, return_inverse=True)
    group = rows.group[order]
    running = np.maximum.accumulate(group * (len(levels) + 1) + level[order] + 1) if len(order) else group
    before = np.concatenate(([0], running[:-1]))
    base = group * (len(levels) + 1)
    ladder = np.concatenate(([0.0], levels))
    step = ladder[running - base] - ladder[np.maximum(before - base, 0)]
    added = np.empty(len(order))
    added[order] = step
    starts = views.changes(rows.query, rows.rank)
    result = np.cumsum(starts) - 1
    summed = total(result, judgments.weight[rows.group] * added, int(starts.sum()))
    return rows.query[starts], rows.rank[starts], summed


def novelty_ndcg(hits: Hits, cut: Cut) -> Floats:
    rows = views.novel_results(hits)
    judgments = hits.judgments
    ideal = judgments.once("novelty ideal", lambda: _novelty_ideal(judgments))
    return share_of(_discounted(hits, cut, rows.query, rows.rank, gain_of(rows.gain, "exp", judgments)), ideal)


def _novelty_ideal(judgments: Judgments) -> Floats:
    """Returns the discounted sum of the best grade of each group, highest first, not cut at k."""
    best = np.zeros(len(judgments.group_query))
    chosen = judgments.alternative_group >= 0
    np.maximum.at(best, judgments.alternative_group[chosen], judgments.alternative_grade[chosen])
    gains = gain_of(best, "exp", judgments)
    return descending(judgments.group_query, gains).discounted(judgments, ideals.log2, None)


def _power(grade: float, gain: str) -> float:
    return grade if gain == "linear" else exponential(grade)


def _explain_ndcg_autorag(sheet: Sheet) -> str:
    listed = sum(len(group.grades) for group in sheet.groups)
    depth = listed if sheet.no_cut else min(listed, sheet.top)
    return over(
        plus(log_share(rank) for rank, _ in sheet.counted), plus(log_share(rank) for rank in range(1, depth + 1))
    )


def _explain_dcg(sheet: Sheet, gain: str = "linear") -> str:
    return plus(log_share(rank, _power(grade, gain)) for rank, grade in sheet.graded)


def _explain_ndcg_trec(sheet: Sheet, gain: str = "linear") -> str:
    judgments = sheet.judgments
    grades = judgments.document_grade[(judgments.document_query == sheet.query) & (judgments.document_grade > 0)]
    best = sorted(grades.tolist(), reverse=True)[: sheet.ideal]
    return over(
        _explain_dcg(sheet, gain), plus(log_share(rank, _power(grade, gain)) for rank, grade in enumerate(best, 1))
    )


def _explain_ndcg_coverage(sheet: Sheet, gain: str = "linear") -> str:
    steps: dict[int, float] = {}
    for group in sheet.groups:
        best = 0.0
        for hit in group.hits:
            value = _power(hit.grade, gain)
            if value > best:
                steps[hit.rank] = steps.get(hit.rank, 0.0) + group.weight * (value - best)
                best = value
    ideal = best_ranking(sheet.judgments, sheet.query, gain, ideals.log2).gains(sheet.ideal)
    best_steps = {rank: value * sheet.scale for rank, value in enumerate(ideal, 1)}
    both = (steps, best_steps)
    text = over(*(plus(log_share(rank, gains[rank]) for rank in sorted(gains)) for gains in both))
    reached, most = (sum(value / log2(rank + 1) for rank, value in gains.items()) for gains in both)
    return at_most_one(text, reached, most * (1 + 1e-12))


def _explain_novelty_ndcg(sheet: Sheet) -> str:
    best = sorted((max(group.grades) for group in sheet.groups if group.grades), reverse=True)
    return over(
        plus(log_share(rank, _power(grade, "exp")) for rank, grade in sheet.novel),
        plus(log_share(rank, _power(grade, "exp")) for rank, grade in enumerate(best, 1)),
    )


DEFINITIONS = (
    Definition(
        "ndcg",
        "Discounted cumulative gain, normalized by the ideal.",
        {
            "autorag": Formula(
                ndcg_autorag,
                "Σ_hits 1/log2(rank + 1) ÷ the same of min(Σ_j |G_j|, len(top)) ones at the head",
                _explain_ndcg_autorag,
                "AutoRAG",
            ),
            "trec": Formula(
                ndcg_trec,
                "Σ gain(grade)/log2(rank + 1) ÷ the same of the R relevant grades, highest first, cut at k",
                _explain_ndcg_trec,
                "trec_eval ndcg; Järvelin & Kekäläinen, TOIS 2002",
            ),
            "coverage": Formula(
                ndcg_coverage,
                "Σ_r Σ_groups weight × max(0, gain(grade) − best gain so far in that group) / log2(r + 1) "
                "÷ the same of the best ranking, cut at k",
                _explain_ndcg_coverage,
            ),
        },
        parameters={"trec": (GAIN,), "coverage": (GAIN,)},
        warning="ndcg.autorag forgives short lists ([[a,b],[c]] with [a] scores 1 at recall .5) and demands all "
        f"alternatives. ndcg.coverage: the {LIMITS}",
    ),
    one_meaning(
        "dcg",
        "Discounted cumulative gain: the numerator of ndcg.trec.",
        Formula(
            dcg,
            "Σ gain(grade)/log2(rank + 1)",
            _explain_dcg,
            "Järvelin & Kekäläinen, TOIS 2002; Burges+, ICML 2005 for exp",
        ),
        GAIN,
        bounded=False,
    ),
    one_meaning(
        "novelty_ndcg",
        "NDCG in which a result gains once, and only if it covers new groups.",
        Formula(
            novelty_ndcg,
            "Σ over results that first cover a group of (2^g − 1)/log2(rank + 1), g the highest grade among the "
            "groups newly covered ÷ the same of the best grade of each group, highest first, not cut at k",
            _explain_novelty_ndcg,
            "AutoRAG-Research",
        ),
        warning="A document that covers two groups at once gains only once, so a perfect ranking can score below 1.",
    ),
)
