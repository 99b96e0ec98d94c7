"""Metrics that discount gains by the logarithm of the rank: NDCG and its variants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from groupgt.metrics import ideals, views
from groupgt.metrics.base import Cut, Definition, Formula, Parameter, one_meaning, ratio
from groupgt.metrics.covering import LIMITS, coverage_ideal, explain_share_of_best
from groupgt.metrics.ideals import descending, exponential, gain_of, share_of, sorted_grades
from groupgt.metrics.terms import log_share, over, plus
from groupgt.model.hits import Floats, Hits, Judgments
from groupgt.model.values import total

if TYPE_CHECKING:
    from groupgt.metrics.worksheet import Sheet

GAIN = Parameter("gain", "linear", "linear (the grade itself) or exp (2^grade − 1)", choices=("linear", "exp"))


def _discounted(hits: Hits, cut: Cut, rows: views.Rows, gain: Floats | None) -> Floats:
    """Return Σ gain · 1/log2(rank + 1) over the top results, shape (Q,)."""
    within = rows.rank <= cut.top[rows.query]
    terms = ideals.log2(rows.rank[within])
    return total(rows.query[within], terms if gain is None else gain[within] * terms, hits.size)


def ndcg_autorag(hits: Hits, cut: Cut) -> Floats:
    rows, listed = views.counted_results(hits), views.relevant_counts(hits.judgments)
    depth = listed if cut.no_cut else np.minimum(listed, cut.top)
    highest = int(depth.max()) if len(depth) else 0
    ideal = np.concatenate(([0.0], np.cumsum(ideals.log2(np.arange(1, highest + 1, dtype=np.int64)))))
    return ratio(_discounted(hits, cut, rows, None), ideal[depth])


def dcg(hits: Hits, cut: Cut, gain: str = "linear") -> Floats:
    rows = views.graded_results(hits)
    return _discounted(hits, cut, rows, gain_of(rows.gain, gain, hits.judgments))


def ndcg_trec(hits: Hits, cut: Cut, gain: str = "linear") -> Floats:
    judgments = hits.judgments
    key = ("ndcg.trec ideal", gain, cut.key)
    path = sorted_grades(judgments, gain)
    ideal = judgments.once(key, lambda: path.discounted(judgments, ideals.log2, cut.ideal))
    return share_of(dcg(hits, cut, gain), ideal)


def ndcg_coverage(hits: Hits, cut: Cut, gain: str = "linear") -> Floats:
    rows, gains = hits.once(("upgrades", gain), lambda: _upgrades(hits, gain))
    return share_of(_discounted(hits, cut, rows, gains), coverage_ideal(hits.judgments, gain, ideals.log2, cut))


def _upgrades(hits: Hits, gain: str) -> tuple[views.Rows, Floats]:
    """Return the gain that each relevant result adds: Σ_groups weight × (gain − best earlier gain, if above 0)."""
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
    return rows.at(starts), total(np.cumsum(starts) - 1, judgments.weight[rows.group] * added, int(starts.sum()))


def novelty_ndcg(hits: Hits, cut: Cut) -> Floats:
    rows = views.novel_results(hits)
    judgments = hits.judgments
    ideal = judgments.once("novelty ideal", lambda: _novelty_ideal(judgments))
    return share_of(_discounted(hits, cut, rows, gain_of(rows.gain, "exp", judgments)), ideal)


def _novelty_ideal(judgments: Judgments) -> Floats:
    """Return the discounted sum of each group's best grade, highest first, not cut at k."""
    best = np.zeros(len(judgments.group_query))
    chosen = judgments.alternative_group >= 0
    np.maximum.at(best, judgments.alternative_group[chosen], judgments.alternative_grade[chosen])
    return descending(judgments.group_query, gain_of(best, "exp", judgments)).discounted(judgments, ideals.log2, None)


def _power(grade: float, gain: str) -> float:
    return grade if gain == "linear" else exponential(grade)


def _gains(pairs: Iterable[tuple[int, float]], gain: str) -> str:
    return plus(log_share(rank, _power(grade, gain)) for rank, grade in pairs)


def _explain_ndcg_autorag(sheet: Sheet) -> str:
    listed = sum(len(group.grades) for group in sheet.groups)
    depth = listed if sheet.no_cut else min(listed, sheet.top)
    ranks = [rank for rank, _ in sheet.counted]
    return over(*(plus(map(log_share, part)) for part in (ranks, range(1, depth + 1))))


def _explain_dcg(sheet: Sheet, gain: str = "linear") -> str:
    return _gains(sheet.graded, gain)


def _explain_ndcg_trec(sheet: Sheet, gain: str = "linear") -> str:
    judgments = sheet.judgments
    grades = judgments.document_grade[(judgments.document_query == sheet.query) & (judgments.document_grade > 0)]
    best = sorted(grades.tolist(), reverse=True)[: sheet.ideal]
    return over(_explain_dcg(sheet, gain), _gains(enumerate(best, 1), gain))


def _explain_ndcg_coverage(sheet: Sheet, gain: str = "linear") -> str:
    steps: dict[int, float] = {}
    for group in sheet.groups:
        best = 0.0
        for hit in group.hits:
            value = _power(hit.grade, gain)
            if value > best:
                steps[hit.rank] = steps.get(hit.rank, 0.0) + group.weight * (value - best)
                best = value
    return explain_share_of_best(sheet, sorted(steps.items()), gain, ideals.log2, log_share)


def _explain_novelty_ndcg(sheet: Sheet) -> str:
    best = sorted((max(group.grades) for group in sheet.groups if group.grades), reverse=True)
    return over(*(_gains(pairs, "exp") for pairs in (sheet.novel, enumerate(best, 1))))


DEFINITIONS = (
    Definition(
        "ndcg",
        "Discounted cumulative gain, normalized by the ideal.",
        {
            "autorag": Formula(
                ndcg_autorag,
                "Σ_hits 1/log2(rank + 1) ÷ the same sum over the first min(Σ_j |G_j|, len(top)) ranks",
                _explain_ndcg_autorag,
                "AutoRAG",
            ),
            "trec": Formula(
                ndcg_trec,
                "Σ gain(grade)/log2(rank + 1) ÷ the same sum over the R relevant grades, highest first, cut at k",
                _explain_ndcg_trec,
                "trec_eval ndcg; Järvelin & Kekäläinen, TOIS 2002",
                parameters=(GAIN,),
                takes_level=False,
            ),
            "coverage": Formula(
                ndcg_coverage,
                "Σ_r Σ_groups weight × max(0, gain(grade) − best gain so far in that group) / log2(r + 1) "
                "÷ the same sum for the best ranking, cut at k",
                _explain_ndcg_coverage,
                parameters=(GAIN,),
            ),
        },
        warning="ndcg.autorag tolerates short lists (for [[a,b],[c]], [a] scores 1 at recall 0.5) and expects all "
        f"alternatives. ndcg.coverage: {LIMITS}",
    ),
    one_meaning(
        "dcg",
        "Discounted cumulative gain: the numerator of ndcg.trec.",
        dcg,
        "Σ gain(grade)/log2(rank + 1)",
        _explain_dcg,
        "Järvelin & Kekäläinen, TOIS 2002; Burges+, ICML 2005 for exp",
        GAIN,
        takes_level=False,
        bounded=False,
    ),
    one_meaning(
        "novelty_ndcg",
        "NDCG in which each result earns one gain, and only if it covers new groups.",
        novelty_ndcg,
        "Σ over results that cover new groups of (2^g − 1)/log2(rank + 1), where g is the highest grade among these "
        "groups, ÷ the same sum over the best grade of each group, highest first, not cut at k",
        _explain_novelty_ndcg,
        "AutoRAG-Research",
        warning="A document that covers two groups earns only one gain, so a perfect ranking can score below 1.",
    ),
)
