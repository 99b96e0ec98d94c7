"""Metrics that ask what is in top, not where: precision, recall and their kin."""

from __future__ import annotations

import numpy as np

from groupgt.metrics import views
from groupgt.metrics.base import Cut, Definition, Formula, ratio
from groupgt.metrics.worksheet import Sheet, number, over, plus
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.values import total


def _count(hits: Hits, cut: Cut, results: views.Results) -> Ints:
    """How many of these results are in top, shape (Q,)."""
    within = results.rank <= cut.top[results.query]
    return np.bincount(results.query[within], minlength=hits.size)


def groups_met(hits: Hits, cut: Cut) -> Ints:
    """How many groups are met in top, shape (Q,)."""
    rows = views.met_groups(hits)
    within = rows.rank <= cut.top[rows.query]
    return np.bincount(rows.query[within], minlength=hits.size)


def _documents(hits: Hits, cut: Cut) -> Ints:
    """How many distinct relevant documents are found in top, shape (Q,)."""
    rows = views.relevant_documents(hits)
    within = rows.rank <= cut.top[rows.query]
    return np.bincount(rows.query[within], minlength=hits.size)


def precision_autorag(hits: Hits, cut: Cut) -> Floats:
    return ratio(_count(hits, cut, views.relevant_results(hits)), cut.top)


def precision_trec(hits: Hits, cut: Cut) -> Floats:
    return ratio(_count(hits, cut, views.relevant_results(hits)), cut.k)


def precision_coverage(hits: Hits, cut: Cut) -> Floats:
    return ratio(_count(hits, cut, views.novel_results(hits)), cut.top)


def recall_autorag(hits: Hits, cut: Cut) -> Floats:
    return ratio(groups_met(hits, cut), hits.judgments.groups)


def recall_trec(hits: Hits, cut: Cut) -> Floats:
    return ratio(_documents(hits, cut), hits.judgments.relevant)


def recall_coverage(hits: Hits, cut: Cut) -> Floats:
    judgments = hits.judgments
    rows = views.met_groups(hits)
    within = rows.rank <= cut.top[rows.query]
    # Summed in the order of groups, as the total is: every group met gives exactly 1.
    met = np.zeros(len(judgments.group_query))
    met[rows.group[within]] = 1.0
    return ratio(total(judgments.group_query, met * judgments.weight, hits.size), judgments.total_weight)


def _harmonic(precision: Floats, recall: Floats) -> Floats:
    return ratio(2 * precision * recall, precision + recall)


def f1_autorag(hits: Hits, cut: Cut) -> Floats:
    return _harmonic(precision_autorag(hits, cut), recall_autorag(hits, cut))


def f1_trec(hits: Hits, cut: Cut) -> Floats:
    return _harmonic(precision_trec(hits, cut), recall_trec(hits, cut))


def f1_coverage(hits: Hits, cut: Cut) -> Floats:
    return _harmonic(precision_coverage(hits, cut), recall_coverage(hits, cut))


def _flag(holds: Bools) -> Floats:
    return np.asarray(holds, dtype=np.float64)


def hit_rate(hits: Hits, cut: Cut) -> Floats:
    return _flag(groups_met(hits, cut) > 0)


def complete_groups(hits: Hits, cut: Cut) -> Floats:
    groups = hits.judgments.groups
    return _flag((groups_met(hits, cut) == groups) & (groups > 0))


def complete_trec(hits: Hits, cut: Cut) -> Floats:
    relevant = hits.judgments.relevant
    return _flag((_documents(hits, cut) == relevant) & (relevant > 0))


def mrecall(hits: Hits, cut: Cut) -> Floats:
    groups = hits.judgments.groups
    needed = groups if cut.ideal is None else np.minimum(groups, cut.ideal)
    return _flag((groups_met(hits, cut) >= needed) & (groups > 0))


def hits_found(hits: Hits, cut: Cut) -> Floats:
    return _count(hits, cut, views.relevant_results(hits)).astype(np.float64)


def r_precision(hits: Hits, cut: Cut) -> Floats:
    relevant = hits.judgments.relevant
    first = Cut(top=np.minimum(cut.top, relevant), k=cut.k)
    return ratio(_count(hits, first, views.relevant_results(hits)), relevant)


def redundancy(hits: Hits, cut: Cut) -> Floats:
    idle = _count(hits, cut, views.relevant_results(hits)) - _count(hits, cut, views.novel_results(hits))
    share = ratio(idle, cut.top)
    share[cut.top == 0] = np.nan
    return share


def judged(hits: Hits, cut: Cut) -> Floats:
    results = views.judged_results(hits)
    query = results.query[(results.gain >= 0) & (results.rank <= cut.top[results.query])]
    return ratio(np.bincount(query, minlength=hits.size), cut.top)


def bpref(hits: Hits, cut: Cut) -> Floats:
    rows = views.judged_results(hits)
    judgments = hits.judgments
    chosen = judgments.is_relevant(rows.gain)
    rejected: Bools = (rows.gain >= 0) & ~chosen
    # The number of judged non-relevant results above each row, counted within its query.
    above: Ints = np.cumsum(rejected) - rejected
    before = np.concatenate(([0], np.cumsum(np.bincount(rows.query[rejected], minlength=hits.size))))
    query = rows.query[chosen]
    over_it = above[chosen] - before[query]
    relevant, non_relevant = judgments.relevant[query], judgments.rejected[query]
    share = ratio(np.minimum(over_it, relevant), np.minimum(non_relevant, relevant))
    return ratio(total(query, 1.0 - share, hits.size), judgments.relevant)


def _explain_weights(sheet: Sheet, *, met: bool) -> str:
    return plus(number(group.weight) for group in (sheet.met if met else sheet.groups))


def _explain_precision_autorag(sheet: Sheet) -> str:
    return over(number(len(sheet.results)), sheet.top)


def _explain_precision_trec(sheet: Sheet) -> str:
    return over(number(len(sheet.results)), sheet.k)


def _explain_precision_coverage(sheet: Sheet) -> str:
    return over(number(len(sheet.novel)), sheet.top)


def _explain_recall_autorag(sheet: Sheet) -> str:
    return over(number(len(sheet.met)), len(sheet.groups))


def _explain_recall_trec(sheet: Sheet) -> str:
    return over(number(sheet.documents), sheet.relevant)


def _explain_recall_coverage(sheet: Sheet) -> str:
    return over(_explain_weights(sheet, met=True), _explain_weights(sheet, met=False))


def _explain_harmonic(precision: str, recall: str) -> str:
    if "0" in (precision, recall):
        return "0"
    return f"2 * ({precision}) * ({recall}) / ({precision} + {recall})"


def _explain_hit_rate(sheet: Sheet) -> str:
    return "1" if sheet.met else "0"


def _explain_complete_groups(sheet: Sheet) -> str:
    return "1" if 0 < len(sheet.groups) == len(sheet.met) else "0"


def _explain_complete_trec(sheet: Sheet) -> str:
    return "1" if 0 < sheet.relevant == sheet.documents else "0"


def _explain_mrecall(sheet: Sheet) -> str:
    groups = len(sheet.groups)
    return "1" if groups and len(sheet.met) >= (groups if sheet.ideal is None else min(groups, sheet.ideal)) else "0"


def _explain_hits(sheet: Sheet) -> str:
    return plus("1" for _ in sheet.results)


def _explain_r_precision(sheet: Sheet) -> str:
    return over(number(sum(rank <= sheet.relevant for rank, _ in sheet.results)), sheet.relevant)


def _explain_redundancy(sheet: Sheet) -> str:
    return over(f"{len(sheet.results)} - {len(sheet.novel)}", sheet.top)


def _explain_judged(sheet: Sheet) -> str:
    return over(number(sum(grade >= 0 for _, grade in sheet.judged)), sheet.top)


def _explain_bpref(sheet: Sheet) -> str:
    relevant, rejected = sheet.relevant, int(sheet.judgments.rejected[sheet.query])
    terms = []
    for rank, grade in sheet.judged:
        above = sum(other >= 0 and not sheet.is_relevant(other) and place < rank for place, other in sheet.judged)
        if sheet.is_relevant(grade):
            terms.append(f"(1 - {min(above, relevant)}/{min(rejected, relevant)})" if above else "1")
    return over(plus(terms), relevant)


DEFINITIONS = (
    Definition(
        "precision",
        "The share of the results looked at that is relevant.",
        {
            "autorag": Formula(
                precision_autorag, "distinct relevant results in top ÷ len(top)", _explain_precision_autorag, "AutoRAG"
            ),
            "trec": Formula(precision_trec, "relevant results in top ÷ k", _explain_precision_trec, "trec_eval P"),
            "coverage": Formula(
                precision_coverage, "results that meet a group not met before ÷ len(top)", _explain_precision_coverage
            ),
        },
    ),
    Definition(
        "recall",
        "The share of what is needed that was found.",
        {
            "autorag": Formula(recall_autorag, "groups met ÷ m", _explain_recall_autorag, "AutoRAG", takes_sets=True),
            "trec": Formula(recall_trec, "distinct relevant found ÷ R", _explain_recall_trec, "trec_eval recall"),
            "coverage": Formula(
                recall_coverage,
                "weight of groups met ÷ total weight",
                _explain_recall_coverage,
                "subtopic recall: Zhai, Cohen & Lafferty, SIGIR 2003",
                takes_sets=True,
            ),
        },
    ),
    Definition(
        "f1",
        "The harmonic mean of precision and recall.",
        {
            "autorag": Formula(
                f1_autorag,
                "2·P·R ÷ (P + R)",
                lambda sheet: _explain_harmonic(_explain_precision_autorag(sheet), _explain_recall_autorag(sheet)),
                "AutoRAG",
            ),
            "trec": Formula(
                f1_trec,
                "2·P·R ÷ (P + R)",
                lambda sheet: _explain_harmonic(_explain_precision_trec(sheet), _explain_recall_trec(sheet)),
            ),
            "coverage": Formula(
                f1_coverage,
                "2·P·R ÷ (P + R)",
                lambda sheet: _explain_harmonic(_explain_precision_coverage(sheet), _explain_recall_coverage(sheet)),
            ),
        },
    ),
    Definition(
        "hit_rate",
        "Whether anything needed was found at all.",
        {
            "autorag": Formula(hit_rate, "1 if any group is met, else 0", _explain_hit_rate, takes_sets=True),
            "trec": Formula(
                hit_rate, "1 if any relevant result is in top, else 0", _explain_hit_rate, "trec_eval success"
            ),
            "coverage": Formula(hit_rate, "1 if any group is met, else 0", _explain_hit_rate, takes_sets=True),
        },
    ),
    Definition(
        "complete",
        "Whether everything needed was found.",
        {
            "autorag": Formula(
                complete_groups,
                "1 if every group is met, else 0",
                _explain_complete_groups,
                "AutoRAG-Research full recall",
                takes_sets=True,
            ),
            "trec": Formula(complete_trec, "1 if all R relevant are found, else 0", _explain_complete_trec),
            "coverage": Formula(
                complete_groups, "1 if every group is met, else 0", _explain_complete_groups, takes_sets=True
            ),
        },
    ),
    Definition(
        "mrecall",
        "Whether everything needed was found, or as many groups as there are results to look at.",
        {
            None: Formula(
                mrecall,
                "1 if at least min(m, k) groups are met in top, else 0; without @k, or under a budget, all m",
                _explain_mrecall,
                "Min et al., EMNLP 2021",
                takes_sets=True,
            )
        },
        warning="mrecall can fall as k grows: as long as k is below m, k groups are enough.",
    ),
    Definition(
        "hits",
        "How many distinct relevant results were found.",
        {None: Formula(hits_found, "number of distinct relevant results in top", _explain_hits, "ranx")},
        bounded=False,
    ),
    Definition(
        "r_precision",
        "Precision at R, the number of relevant documents.",
        {
            None: Formula(
                r_precision, "relevant in the first R of top ÷ R", _explain_r_precision, "trec_eval Rprec, ranx"
            )
        },
    ),
    Definition(
        "redundancy",
        "The share of the results looked at that is relevant and meets nothing new; null for an empty ranking.",
        {
            None: Formula(
                redundancy, "(relevant results − results that meet a new group) in top ÷ len(top)", _explain_redundancy
            )
        },
        higher_is_better=False,
    ),
    Definition(
        "judged",
        "The share of the results looked at that was judged at all.",
        {None: Formula(judged, "results in top with a grade ≥ 0 ÷ len(top)", _explain_judged, "ir-measures Judged")},
    ),
    Definition(
        "bpref",
        "How rarely judged non-relevant results stand above relevant ones; results not judged do not matter.",
        {
            None: Formula(
                bpref,
                "(1/R) Σ over retrieved relevant of 1 − min(judged non-relevant above it, R) ÷ min(N, R), "
                "each term 1 if none is above",
                _explain_bpref,
                "trec_eval; Buckley & Voorhees, SIGIR 2004",
            )
        },
        takes_cutoff=False,
    ),
)
