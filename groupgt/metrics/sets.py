"""Metrics that ignore the order of results within the cutoff: precision, recall and related metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.metrics import views
from groupgt.metrics.base import Cut, Definition, Formula, Parameter, one_meaning, ratio
from groupgt.metrics.terms import number, over, plus
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.values import total

if TYPE_CHECKING:
    from groupgt.metrics.worksheet import Group, Sheet

# trec_eval's, for a share of nothing.
EPSILON = 0.00001


def _count(hits: Hits, cut: Cut, rows: views.Rows) -> Ints:
    """Count the rows within the cutoff, shape (Q,)."""
    return np.bincount(rows.query[rows.rank <= cut.top[rows.query]], minlength=hits.size)


def recall_autorag(hits: Hits, cut: Cut) -> Floats:
    return ratio(_count(hits, cut, views.covered_groups(hits)), hits.judgments.groups)


def recall_coverage(hits: Hits, cut: Cut) -> Floats:
    return weighted_mean(hits, views.covered_groups(hits).within(cut), 1.0)


def weighted_mean(hits: Hits, rows: views.CoveredGroups, value: Floats | float) -> Floats:
    """Return the weighted mean over groups, shape (Q,), with a value for each covered group and 0 for all others."""
    judgments = hits.judgments
    # Sum in the order of groups, like the total weight: if every value is 1, the mean is exactly 1.
    values = np.zeros(len(judgments.group_query))
    values[rows.group] = value
    return ratio(total(judgments.group_query, values * judgments.weight, hits.size), judgments.total_weight)


def _f1(precision: Formula, recall: Formula) -> Formula:
    """Combine two formulas of the same convention into their harmonic mean."""

    def values(hits: Hits, cut: Cut) -> Floats:
        p, r = precision.function(hits, cut), recall.function(hits, cut)
        return ratio(2 * p * r, p + r)

    def explanation(sheet: Sheet) -> str:
        p, r = (formula.explanation(sheet) if formula.explanation else "" for formula in (precision, recall))
        return "0" if "0" in (p, r) else f"2 * ({p}) * ({r}) / ({p} + {r})"

    return Formula(values, "2·P·R ÷ (P + R)", explanation, "AutoRAG" if precision.source == "AutoRAG" else "")


def _flag(holds: Bools) -> Floats:
    return np.asarray(holds, dtype=np.float64)


def _all_of(covered: Ints, every: Ints) -> Floats:
    return _flag((covered == every) & (every > 0))


def mrecall(hits: Hits, cut: Cut) -> Floats:
    groups = hits.judgments.groups
    needed = groups if cut.ideal is None else np.minimum(groups, cut.ideal)
    return _flag((_count(hits, cut, views.covered_groups(hits)) >= needed) & (groups > 0))


def r_precision(hits: Hits, cut: Cut) -> Floats:
    relevant = hits.judgments.relevant
    return ratio(_count(hits, Cut(top=np.minimum(cut.top, relevant), k=cut.k), views.relevant_results(hits)), relevant)


def null_if_empty(values: Floats, cut: Cut) -> Floats:
    """Replace the values of empty rankings with NaN."""
    values[cut.top == 0] = np.nan
    return values


def redundancy(hits: Hits, cut: Cut) -> Floats:
    repeated = _count(hits, cut, views.relevant_results(hits)) - _count(hits, cut, views.novel_results(hits))
    return null_if_empty(ratio(repeated, cut.top), cut)


def judged(hits: Hits, cut: Cut, negative: str = "False") -> Floats:
    rows = views.judged_results(hits)
    return ratio(_count(hits, cut, rows if negative == "True" else rows.at(rows.gain >= 0)), cut.top)


def unjudged(hits: Hits, cut: Cut) -> Ints:
    """Count the results that are not judged, or have a negative grade, shape (Q,)."""
    rows = views.judged_results(hits)
    return cut.top - _count(hits, cut, rows.at(rows.gain >= 0))


def bpref(hits: Hits, cut: Cut) -> Floats:
    rows = views.judged_results(hits)
    judgments = hits.judgments
    chosen = judgments.is_relevant(rows.gain)
    query = rows.query[chosen]
    over_it = _above(rows.query, (rows.gain >= 0) & ~chosen, hits.size)[chosen]
    relevant, non_relevant = judgments.relevant[query], judgments.rejected[query]
    share = ratio(np.minimum(over_it, relevant), np.minimum(non_relevant, relevant))
    return ratio(total(query, 1.0 - share, hits.size), judgments.relevant)


def infap(hits: Hits, cut: Cut) -> Floats:
    rows = views.judged_results(hits)
    chosen, unjudged = hits.judgments.is_relevant(rows.gain), rows.gain < 0
    flags = (chosen, ~chosen & ~unjudged, unjudged)
    relevant, rejected, sampled_out = (_above(rows.query, flag, hits.size)[chosen] for flag in flags)
    # The operations of trec_eval, in its order.
    above = rows.rank[chosen] - 1.0
    pooled = (relevant + rejected + sampled_out) / np.maximum(above, 1)
    share = (relevant + EPSILON) / (relevant + rejected + 2 * EPSILON)
    expected = 1 / (above + 1) + above / (above + 1) * pooled * share
    return ratio(total(rows.query[chosen], expected, hits.size), hits.judgments.relevant)


def _above(query: Ints, flag: Bools, size: int) -> Ints:
    """Count the flagged rows above each row, within its query."""
    before = np.concatenate(([0], np.cumsum(np.bincount(query[flag], minlength=size))))
    return np.cumsum(flag) - flag - before[query]


def _weights(groups: Iterable[Group]) -> str:
    return plus(group.weight for group in groups)


def _explain_mrecall(sheet: Sheet) -> str:
    groups = len(sheet.groups)
    needed = groups if sheet.ideal is None else min(groups, sheet.ideal)
    return number(bool(groups) and len(sheet.covered) >= needed)


def _explain_judged(sheet: Sheet, negative: str = "False") -> str:
    return over(sum(negative == "True" or grade >= 0 for _, grade in sheet.judged), sheet.top)


def _explain_bpref(sheet: Sheet) -> str:
    relevant, rejected = sheet.relevant, int(sheet.judgments.rejected[sheet.query])
    terms = []
    for rank, grade in sheet.judged:
        above = sum(other >= 0 and not sheet.is_relevant(other) and place < rank for place, other in sheet.judged)
        if sheet.is_relevant(grade):
            terms.append(f"(1 - {min(above, relevant)}/{min(rejected, relevant)})" if above else "1")
    return over(plus(terms), relevant)


def _explain_infap(sheet: Sheet) -> str:
    terms = []
    for rank, grade in sheet.judged:
        if sheet.is_relevant(grade):
            above = [other for place, other in sheet.judged if place < rank]
            relevant = sum(map(sheet.is_relevant, above))
            judged = sum(other >= 0 for other in above)
            share = f"({relevant} + {EPSILON:.5f})/({judged} + {2 * EPSILON:.5f})"
            terms.append("1" if rank == 1 else f"(1/{rank} + {len(above)}/{rank}*{share})")
    return over(plus(terms), sheet.relevant)


PRECISION: dict[str | None, Formula] = {
    "autorag": Formula(
        lambda hits, cut: ratio(_count(hits, cut, views.relevant_results(hits)), cut.top),
        "distinct relevant results in top ÷ len(top)",
        lambda sheet: over(len(sheet.results), sheet.top),
        "AutoRAG",
    ),
    "trec": Formula(
        lambda hits, cut: ratio(_count(hits, cut, views.relevant_results(hits)), cut.k),
        "relevant results in top ÷ k",
        lambda sheet: over(len(sheet.results), sheet.k),
        "trec_eval P",
    ),
    "coverage": Formula(
        lambda hits, cut: ratio(_count(hits, cut, views.novel_results(hits)), cut.top),
        "results that cover a new group ÷ len(top)",
        lambda sheet: over(len(sheet.novel), sheet.top),
    ),
}
RECALL: dict[str | None, Formula] = {
    "autorag": Formula(
        recall_autorag,
        "groups covered ÷ m",
        lambda sheet: over(len(sheet.covered), len(sheet.groups)),
        "AutoRAG",
        takes_sets=True,
    ),
    "trec": Formula(
        lambda hits, cut: ratio(_count(hits, cut, views.relevant_documents(hits)), hits.judgments.relevant),
        "distinct relevant documents found ÷ R",
        lambda sheet: over(sheet.documents, sheet.relevant),
        "trec_eval recall",
    ),
    "coverage": Formula(
        recall_coverage,
        "weight of groups covered ÷ total weight",
        lambda sheet: over(_weights(sheet.covered), _weights(sheet.groups)),
        "subtopic recall: Zhai, Cohen & Lafferty, SIGIR 2003",
        takes_sets=True,
    ),
}
HIT_RATE = Formula(
    lambda hits, cut: _flag(_count(hits, cut, views.covered_groups(hits)) > 0),
    "1 if any group is covered, else 0",
    lambda sheet: number(bool(sheet.covered)),
    takes_sets=True,
)
ANY_RELEVANT = "1 if any relevant result is in top, else 0"
COMPLETE = Formula(
    lambda hits, cut: _all_of(_count(hits, cut, views.covered_groups(hits)), hits.judgments.groups),
    "1 if every group is covered, else 0",
    lambda sheet: number(0 < len(sheet.groups) == len(sheet.covered)),
    takes_sets=True,
)

DEFINITIONS = (
    Definition("precision", "Fraction of results that are relevant.", PRECISION),
    Definition("recall", "Fraction of groups covered (trec: of relevant documents retrieved).", RECALL),
    Definition(
        "f1",
        "The harmonic mean of precision and recall.",
        {convention: _f1(precision, RECALL[convention]) for convention, precision in PRECISION.items()},
    ),
    Definition(
        "hit_rate",
        "1 if any relevant result was retrieved, otherwise 0.",
        {
            "autorag": HIT_RATE,
            "trec": replace(HIT_RATE, text=ANY_RELEVANT, source="trec_eval success", takes_sets=False),
            "coverage": HIT_RATE,
        },
        takes_passes=True,
    ),
    Definition(
        "complete",
        "1 if every group is covered (trec: if all relevant documents are retrieved), otherwise 0.",
        {
            "autorag": replace(COMPLETE, source="AutoRAG-Research full recall"),
            "trec": Formula(
                lambda hits, cut: _all_of(_count(hits, cut, views.relevant_documents(hits)), hits.judgments.relevant),
                "1 if all R relevant documents are found, else 0",
                lambda sheet: number(0 < sheet.relevant == sheet.documents),
            ),
            "coverage": COMPLETE,
        },
        takes_passes=True,
    ),
    one_meaning(
        "mrecall",
        "1 if min(number of groups, k) groups are covered, otherwise 0.",
        mrecall,
        "1 if at least min(m, k) groups (all m without @k or with a budget) are covered in top, else 0",
        _explain_mrecall,
        "Min et al., EMNLP 2021",
        takes_sets=True,
        warning="mrecall can fall as k grows, because it requires only k groups while k is below m.",
    ),
    one_meaning(
        "hits",
        "Number of distinct relevant results.",
        lambda hits, cut: _count(hits, cut, views.relevant_results(hits)).astype(np.float64),
        "number of distinct relevant results in top",
        lambda sheet: plus("1" for _ in sheet.results),
        "ranx",
        bounded=False,
    ),
    one_meaning(
        "r_precision",
        "Precision at R, the number of relevant documents.",
        r_precision,
        "relevant results among the first R of top ÷ R",
        lambda sheet: over(sum(rank <= sheet.relevant for rank, _ in sheet.results), sheet.relevant),
        "trec_eval Rprec, ranx",
    ),
    one_meaning(
        "redundancy",
        "Fraction of results that are relevant but cover no new group; null for an empty ranking.",
        redundancy,
        "(relevant results − results that cover a new group, both in top) ÷ len(top)",
        lambda sheet: over(f"{len(sheet.results)} - {len(sheet.novel)}", sheet.top),
        higher_is_better=False,
    ),
    one_meaning(
        "judged",
        "Fraction of results that are judged.",
        judged,
        "results in top with a grade ≥ 0 (with `negative=True`, any grade, as in ir-measures) ÷ len(top)",
        _explain_judged,
        "ir-measures Judged",
        Parameter("negative", "False", "True or False", choices=("False", "True")),
        takes_level=False,
    ),
    one_meaning(
        "unj",
        "Fraction of the first k ranks with an unjudged result; null for an empty ranking.",
        lambda hits, cut: null_if_empty(ratio(unjudged(hits, cut), cut.k), cut),
        "(results in top without a grade ≥ 0) ÷ k",
        lambda sheet: over(f"{sheet.top} - {sum(grade >= 0 for _, grade in sheet.judged)}", sheet.k),
        "trec_eval unj",
        takes_level=False,
        higher_is_better=False,
    ),
    one_meaning(
        "bpref",
        "Binary preference: penalizes judged non-relevant results above relevant ones, and ignores unjudged results.",
        bpref,
        "(1/R) Σ over relevant results of 1 − min(judged non-relevant results above it, R) ÷ min(N, R) (1 for a "
        "result with none above it)",
        _explain_bpref,
        "trec_eval; Buckley & Voorhees, SIGIR 2004",
        takes_cutoff=False,
    ),
    one_meaning(
        "infap",
        "Average precision estimated from a judged sample of the pool.",
        infap,
        "(1/R) Σ over relevant results of 1/r + (c/r) · (relevant above it + ε) ÷ (judged above it + 2ε), where c "
        "counts the pooled results above it, and ε = 0.00001",
        _explain_infap,
        "trec_eval infAP; Yilmaz & Aslam, CIKM 2006",
        takes_cutoff=False,
        warning="Give each pooled but unjudged document a grade below 0, as in TREC's sampled qrels. Documents without "
        "a grade count as outside the pool.",
    ),
)
# Facts of metrics that look at results, whatever is relevant.
ANY_TRUTH: dict[str, Any] = {"takes_sets": True, "takes_level": False}
# Metrics for queries declared unanswerable: the fewer results, the better.
UNANSWERABLE = (
    one_meaning(
        "abstains",
        "1 if a query declared unanswerable has no results within the cutoff, otherwise 0; undefined for other "
        "queries.",
        lambda hits, cut: _flag(cut.top == 0),
        "1 if top is empty, else 0",
        lambda sheet: number(not sheet.top),
        queries="unanswerable",
        **ANY_TRUTH,
    ),
    one_meaning(
        "false_returns",
        "Number of results for a query declared unanswerable; undefined for other queries.",
        lambda hits, cut: cut.top.astype(np.float64),
        "|top|",
        lambda sheet: number(sheet.top),
        bounded=False,
        higher_is_better=False,
        queries="unanswerable",
        **ANY_TRUTH,
    ),
)
# Metrics for queries that name harmful passages, unanswerable ones among them.
HARM = (
    one_meaning(
        "harmful",
        "Fraction of results that are harmful; null for an empty ranking and for queries without harmful passages.",
        lambda hits, cut: null_if_empty(ratio(_count(hits, cut, views.harmful_results(hits)), cut.top), cut),
        "harmful results in top (repeats included) ÷ len(top)",
        lambda sheet: over(len(sheet.harmful), sheet.top),
        higher_is_better=False,
        queries="harmful",
        **ANY_TRUTH,
    ),
    one_meaning(
        "clean",
        "1 if no harmful passage was retrieved, otherwise 0; undefined for queries without harmful passages.",
        lambda hits, cut: _flag(_count(hits, cut, views.harmful_results(hits)) == 0),
        "1 if no result in top is harmful, else 0",
        lambda sheet: number(not sheet.harmful),
        queries="harmful",
        warning="An empty ranking is clean, so read clean together with complete.",
        **ANY_TRUTH,
    ),
)
