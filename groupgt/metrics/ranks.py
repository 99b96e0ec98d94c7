"""Metrics based on the ranks of first hits and relevant results, and trec_eval's counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from groupgt.metrics import ideals, views
from groupgt.metrics.base import Cut, Definition, Formula, Parameter, one_meaning, ratio
from groupgt.metrics.covering import LIMITS, coverage_ideal, explain_share_of_best
from groupgt.metrics.ideals import share_of
from groupgt.metrics.sets import weighted_mean
from groupgt.metrics.terms import number, over, plus, rank_share, times
from groupgt.model.hits import Floats, Hits, Ints
from groupgt.model.values import total

if TYPE_CHECKING:
    from groupgt.metrics.worksheet import Sheet


def mrr_autorag(hits: Hits, cut: Cut) -> Floats:
    rows = views.covered_groups(hits).within(cut)
    return ratio(total(rows.query, 1.0 / rows.rank, hits.size), hits.judgments.groups)


def mrr_trec(hits: Hits, cut: Cut) -> Floats:
    rows = views.relevant_results(hits).within(cut)
    return total(rows.query, (rows.nth == 1) / rows.rank, hits.size)


def mrr_coverage(hits: Hits, cut: Cut) -> Floats:
    rows = views.covered_groups(hits)
    novel = views.novel_results(hits)
    weight = total(rows.result, hits.judgments.weight[rows.group], len(novel.query))
    within = novel.rank <= cut.top[novel.query]
    summed = total(novel.query[within], weight[within] * ideals.inverse(novel.rank[within]), hits.size)
    return share_of(summed, coverage_ideal(hits.judgments, None, ideals.inverse, cut))


def average_over_groups(hits: Hits, cut: Cut, *, by_hits: bool) -> Floats:
    """Return average precision, averaged over groups. Divide by the number of hits (`by_hits`) or alternatives."""
    rows, nth = views.group_hits(hits, repeats=by_hits)
    within = rows.rank <= cut.top[rows.query]
    group, judgments = rows.group[within], hits.judgments
    size = len(judgments.group_query)
    summed = total(group, nth[within] / rows.rank[within], size)
    average = ratio(summed, np.bincount(group, minlength=size) if by_hits else judgments.group_sizes)
    return ratio(total(judgments.group_query, average, hits.size), judgments.groups)


def map_trec(hits: Hits, cut: Cut) -> Floats:
    rows = views.relevant_results(hits).within(cut)
    return ratio(total(rows.query, rows.nth / rows.rank, hits.size), hits.judgments.relevant)


def map_coverage(hits: Hits, cut: Cut) -> Floats:
    rows = views.covered_groups(hits).within(cut)
    return weighted_mean(hits, rows, rows.nth / rows.rank)


def completion_rr(hits: Hits, cut: Cut) -> Floats:
    last = hits.completion_ranks
    value = np.zeros(hits.size)
    np.divide(1.0, last, out=value, where=(last > 0) & (last <= cut.top))
    return value


def iprec(hits: Hits, cut: Cut, recall: float = 0, version: str = "9") -> Floats:
    rows = views.relevant_results(hits)
    deep_enough = rows.nth >= _documents_at(recall, hits.judgments.relevant, version)[rows.query]
    value = np.zeros(hits.size)
    np.maximum.at(value, rows.query[deep_enough], (rows.nth / rows.rank)[deep_enough])
    return value


def _documents_at(recall: float, relevant: Ints, version: str) -> Floats:
    """Round recall · R to a number of documents as this version of trec_eval does, shape (Q,)."""
    exact: Floats = recall * relevant.astype(np.float64)
    # Adding 0.5 and cutting would round up the largest number below a half.
    return np.floor(exact + 0.9) if version == "9" else np.floor(exact) + (exact - np.floor(exact) >= 0.5)


def _explain_mrr_coverage(sheet: Sheet) -> str:
    terms = sorted((group.first or 0, group.weight) for group in sheet.covered)
    return explain_share_of_best(sheet, terms, None, ideals.inverse, rank_share)


def explain_average(sheet: Sheet, *, by_hits: bool) -> str:
    """Format the mean that `average_over_groups` computes."""
    averages = [
        over(plus(f"{hit.nth}/{hit.rank}" for hit in group.hits), len(group.hits if by_hits else group.grades))
        for group in (sheet.counted_groups if by_hits else sheet.groups)
        if group.hits
    ]
    return over(plus(averages), len(sheet.groups))


def _explain_map_coverage(sheet: Sheet) -> str:
    numbers = {rank: nth for nth, (rank, _) in enumerate(sheet.novel, 1)}
    terms = (times(group.weight, f"{numbers[group.first or 0]}/{group.first}") for group in sheet.covered)
    return over(plus(terms), plus(group.weight for group in sheet.groups))


def _explain_completion_rr(sheet: Sheet) -> str:
    if not sheet.groups or len(sheet.covered) < len(sheet.groups):
        return "0"
    return f"1/{max(group.first or 0 for group in sheet.covered)}"


def _explain_iprec(sheet: Sheet, recall: float = 0, version: str = "9") -> str:
    needed = float(_documents_at(recall, np.array([sheet.relevant]), version)[0])
    points = [(nth, rank) for nth, (rank, _) in enumerate(sheet.results, 1) if nth >= needed]
    nth, rank = max(points, key=lambda point: point[0] / point[1], default=(0, 1))
    return f"{nth}/{rank}" if nth else "0"


DEFINITIONS = (
    Definition(
        "mrr",
        "Reciprocal rank of the first relevant result, averaged over groups.",
        {
            "autorag": Formula(
                mrr_autorag,
                "mean over groups of 1 ÷ rank of its first hit (0 if none)",
                lambda sheet: over(plus(f"1/{group.first}" for group in sheet.covered), len(sheet.groups)),
                "AutoRAG",
                takes_sets=True,
            ),
            "trec": Formula(
                mrr_trec,
                "1 ÷ rank of the first relevant result",
                lambda sheet: f"1/{sheet.results[0][0]}" if sheet.results else "0",
                "trec_eval recip_rank",
            ),
            "coverage": Formula(
                mrr_coverage,
                "(Σ over groups of weight ÷ rank of the first hit) ÷ the largest such sum of any ranking (both cut at "
                "k)",
                _explain_mrr_coverage,
            ),
        },
        warning="mrr.autorag of a perfect ranking is below 1 if the query has several groups (0.75 for two groups). "
        f"mrr.coverage: {LIMITS}",
    ),
    Definition(
        "map",
        "Mean precision at the ranks of relevant results.",
        {
            "autorag": Formula(
                lambda hits, cut: average_over_groups(hits, cut, by_hits=True),
                "mean over groups of the mean precision_g at the hits of the group (÷ hits found; 0 if none)",
                lambda sheet: explain_average(sheet, by_hits=True),
                "AutoRAG",
            ),
            "trec": Formula(
                map_trec,
                "(Σ of precision@r over the ranks r of relevant results in top) ÷ R",
                lambda sheet: over(plus(f"{nth}/{row[0]}" for nth, row in enumerate(sheet.results, 1)), sheet.relevant),
                "trec_eval map",
            ),
            "coverage": Formula(
                map_coverage,
                "weighted mean over groups of N(r_g) ÷ r_g (0 if not covered), where r_g is the rank at which g is "
                "first covered, and N(r) counts the results up to r that cover a new group",
                _explain_map_coverage,
            ),
        },
        warning="map.autorag can rise when a late hit is lost, because it divides by the number of hits found. "
        "map.coverage ignores how many groups one document covers.",
    ),
    one_meaning(
        "completion_rr",
        "Reciprocal of the rank at which the query is complete (multi-hop).",
        completion_rr,
        "1 ÷ the rank at which the last group is covered (0 if never)",
        _explain_completion_rr,
        takes_sets=True,
    ),
)
# Metrics that users of trec_eval expect.
OF_TREC_EVAL = (
    one_meaning(
        "iprec",
        "Interpolated precision: the highest precision at any rank that reaches a given recall.",
        iprec,
        "largest n ÷ rank of the n-th relevant result over all n ≥ ⌊recall·R + 0.9⌋ (0 if there is none), as in "
        "trec_eval 9; with `version=10`, over all n ≥ recall·R, rounded half up",
        _explain_iprec,
        "trec_eval 9 iprec_at_recall",
        Parameter("recall", 0, "a number from 0 to 1", lambda value: 0 <= value <= 1),
        Parameter("version", "9", "9 or 10", choices=("9", "10")),
        takes_cutoff=False,
    ),
    one_meaning(
        "num_ret",
        "Number of results retrieved. trec_eval prints the sum over queries, and groupgt the mean.",
        lambda hits, cut: cut.top.astype(np.float64),
        "number of results",
        lambda sheet: number(sheet.top),
        "trec_eval num_ret",
        takes_level=False,
        bounded=False,
        takes_cutoff=False,
    ),
    one_meaning(
        "num_rel",
        "Number of relevant documents. trec_eval prints the sum over queries, and groupgt the mean.",
        lambda hits, cut: hits.judgments.relevant.astype(np.float64),
        "R",
        lambda sheet: number(sheet.relevant),
        "trec_eval num_rel",
        bounded=False,
        takes_cutoff=False,
    ),
    one_meaning(
        "gm_map",
        "Geometric mean of average precision over queries, which gives poor queries more weight.",
        lambda hits, cut: np.log(np.maximum(map_trec(hits, cut), 1e-5)),
        "exp of the mean over queries of ln max(map.trec, 0.00001)",
        None,
        "trec_eval gm_map",
        takes_cutoff=False,
        aggregate=math.exp,
        warning="gm_map has one value per run and none per query, so it cannot be tested, sliced or used in a gate.",
    ),
)
