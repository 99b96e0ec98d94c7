"""Metrics based on the rank of the first hit of each group, or of the first relevant result."""

from __future__ import annotations

import numpy as np

from groupgt.metrics import ideals, views
from groupgt.metrics.base import Cut, Definition, Formula, one_meaning, ratio
from groupgt.metrics.covering import LIMITS, best_ranking, coverage_ideal
from groupgt.metrics.ideals import share_of
from groupgt.metrics.worksheet import Sheet, at_most_one, number, over, plus, times
from groupgt.model.hits import Floats, Hits
from groupgt.model.values import total


def mrr_autorag(hits: Hits, cut: Cut) -> Floats:
    rows = views.met_groups(hits)
    within = rows.rank <= cut.top[rows.query]
    summed = total(rows.query[within], 1.0 / rows.rank[within], hits.size)
    return ratio(summed, hits.judgments.groups)


def mrr_trec(hits: Hits, cut: Cut) -> Floats:
    rows = views.relevant_results(hits)
    first = (rows.nth == 1) & (rows.rank <= cut.top[rows.query])
    value = np.zeros(hits.size)
    value[rows.query[first]] = 1.0 / rows.rank[first]
    return value


def mrr_coverage(hits: Hits, cut: Cut) -> Floats:
    rows = views.met_groups(hits)
    novel = views.novel_results(hits)
    weight = total(rows.result, hits.judgments.weight[rows.group], len(novel.query))
    within = novel.rank <= cut.top[novel.query]
    terms = weight[within] * ideals.inverse(novel.rank[within])
    summed = total(novel.query[within], terms, hits.size)
    return share_of(summed, coverage_ideal(hits.judgments, None, ideals.inverse, cut))


def map_autorag(hits: Hits, cut: Cut) -> Floats:
    rows, nth = views.group_hits(hits, repeats=True)
    within = rows.rank <= cut.top[rows.query]
    group = rows.group[within]
    size = len(hits.judgments.group_query)
    summed = total(group, nth[within] / rows.rank[within], size)
    average = ratio(summed, np.bincount(group, minlength=size))
    return ratio(total(hits.judgments.group_query, average, hits.size), hits.judgments.groups)


def map_trec(hits: Hits, cut: Cut) -> Floats:
    rows = views.relevant_results(hits)
    within = rows.rank <= cut.top[rows.query]
    summed = total(rows.query[within], rows.nth[within] / rows.rank[within], hits.size)
    return ratio(summed, hits.judgments.relevant)


def map_coverage(hits: Hits, cut: Cut) -> Floats:
    judgments = hits.judgments
    rows = views.met_groups(hits)
    within = rows.rank <= cut.top[rows.query]
    # Sum in the order of groups, like the total weight: if all first ranks are ideal, the value is exactly 1.
    value = np.zeros(len(judgments.group_query))
    value[rows.group[within]] = rows.nth[within] / rows.rank[within]
    return ratio(total(judgments.group_query, value * judgments.weight, hits.size), judgments.total_weight)


def completion_rr(hits: Hits, cut: Cut) -> Floats:
    last = views.completion_ranks(hits)
    value = np.zeros(hits.size)
    np.divide(1.0, last, out=value, where=(last > 0) & (last <= cut.top))
    return value


def _explain_mrr_coverage(sheet: Sheet) -> str:
    terms = sorted((group.first or 0, group.weight) for group in sheet.met)
    ideal = best_ranking(sheet.judgments, sheet.query, None, ideals.inverse).gains(sheet.ideal)
    best = [(rank, gain * sheet.scale) for rank, gain in enumerate(ideal, 1)]
    text = over(*(plus(f"{number(weight)}/{rank}" for rank, weight in gains) for gains in (terms, best)))
    reached, most = (sum(weight / rank for rank, weight in gains) for gains in (terms, best))
    return at_most_one(text, reached, most * (1 + 1e-12))


def _explain_map_autorag(sheet: Sheet) -> str:
    averages = [
        over(plus(f"{hit.nth}/{hit.rank}" for hit in group.hits), len(group.hits)) for group in sheet.counted_groups
    ]
    return over(plus(average for average in averages if average != "0"), len(sheet.groups))


def _explain_map_trec(sheet: Sheet) -> str:
    return over(plus(f"{nth}/{rank}" for nth, (rank, _) in enumerate(sheet.results, 1)), sheet.relevant)


def _explain_map_coverage(sheet: Sheet) -> str:
    numbers = {rank: nth for nth, (rank, _) in enumerate(sheet.novel, 1)}
    terms = (times(number(group.weight), f"{numbers[group.first or 0]}/{group.first}") for group in sheet.met)
    return over(plus(terms), plus(number(group.weight) for group in sheet.groups))


def _explain_completion_rr(sheet: Sheet) -> str:
    if not sheet.groups or len(sheet.met) < len(sheet.groups):
        return "0"
    return f"1/{max(group.first or 0 for group in sheet.met)}"


DEFINITIONS = (
    Definition(
        "mrr",
        "Reciprocal rank of the first relevant result, averaged over groups.",
        {
            "autorag": Formula(
                mrr_autorag,
                "mean over groups of 1 ÷ rank of its first hit (0 if none)",
                lambda sheet: over(plus(f"1/{group.first}" for group in sheet.met), len(sheet.groups)),
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
                "Σ_groups weight ÷ first-hit rank, divided by the largest such sum any ranking reaches (both cut at k)",
                _explain_mrr_coverage,
            ),
        },
        warning="mrr.autorag of a perfect ranking is below 1 where there are several groups (two groups: 0.75). "
        f"mrr.coverage: The {LIMITS}",
    ),
    Definition(
        "map",
        "Mean precision at the ranks of relevant results.",
        {
            "autorag": Formula(
                map_autorag,
                "mean over groups of the mean of precision_g at that group's hits (÷ hits found; 0 if none)",
                _explain_map_autorag,
                "AutoRAG",
            ),
            "trec": Formula(map_trec, "Σ precision@r over relevant r in top ÷ R", _explain_map_trec, "trec_eval map"),
            "coverage": Formula(
                map_coverage,
                "weighted mean over groups of N(r_g) ÷ r_g (0 if not covered): r_g is the rank that first covers g, "
                "N(r) counts the results up to r that covered a new group",
                _explain_map_coverage,
            ),
        },
        warning="map.autorag can rise when a late hit is lost, for it divides by the hits found. "
        "map.coverage does not see how many groups one document covers.",
    ),
    one_meaning(
        "completion_rr",
        "Reciprocal rank at which the query becomes complete (multi-hop).",
        Formula(
            completion_rr,
            "1 ÷ the rank at which the last group is covered (0 if never)",
            _explain_completion_rr,
            takes_sets=True,
        ),
    ),
)
