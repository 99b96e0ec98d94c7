"""The registry of all metrics, by family."""

from __future__ import annotations

from groupgt.errors import ConfigError, MetricError
from groupgt.metrics import contents, diversity, gains, ranks, sets, users
from groupgt.metrics.base import Definition
from groupgt.plugins import looked_up

_FAMILIES = (
    *(family.DEFINITIONS for family in (sets, ranks, gains, users, diversity, contents)),
    *(ranks.OF_TREC_EVAL, sets.UNANSWERABLE, sets.HARM),
)
CATALOGUE: dict[str, Definition] = {each.name: each for family in _FAMILIES for each in family}

# Aliases, resolved on parsing: the meaning of a name before any `(` or `@`.
ALIASES: dict[str, str] = {
    "p": "precision",
    "r": "recall",
    "rr": "mrr",
    "ap": "map",
    "success": "hit_rate",
    **dict.fromkeys(("full_recall", "recall_all", "hit_all"), "complete"),
    **dict.fromkeys(("recall_any", "hit_any"), "hit_rate"),
    **dict.fromkeys(("strec", "s_recall", "strecall"), "recall.coverage"),
    "ndcg_burges": "ndcg.trec(gain=exp)",
    "dcg_burges": "dcg(gain=exp)",
    "ap_ia": "map_ia",
    **dict.fromkeys(("r-precision", "rprec"), "r_precision"),
    "recip_rank": "mrr.trec",
    # Metrics that trec_eval and ir_measures have without a cutoff.
    **dict.fromkeys(("set_p", "setp"), "precision.trec@all"),
    **dict.fromkeys(("set_recall", "setr"), "recall.trec@all"),
    **dict.fromkeys(("set_f", "setf"), "f1.trec@all"),
    **dict.fromkeys(("num_rel_ret", "numrelret"), "hits@all"),
    "numret": "num_ret",
    "numrel": "num_rel",
}

# Names in other tools that are suggestions only, because tools differ in what they mean, and what they mean most often.
MEANT: dict[str, str] = {
    **dict.fromkeys(("hit", "hits", "hr", "hit_ratio", "hitrate", "accuracy", "acc", "top_k_accuracy"), "hit_rate"),
    **dict.fromkeys(("mean_reciprocal_rank", "reciprocal_rank"), "mrr"),
    **dict.fromkeys(("average_precision", "avg_precision", "mean_average_precision"), "map"),
    **dict.fromkeys(("f", "f1_score", "f_score", "f-score", "f_measure", "f-measure"), "f1"),
    **dict.fromkeys(("any_recall", "any_hit"), "hit_rate"),
    **dict.fromkeys(("all_recall", "all_hit", "perfect_recall"), "complete"),
    "prec": "precision",
    **dict.fromkeys(("rec", "recall_macro", "macro_recall"), "recall"),
    "coverage": "recall.coverage",
    "rbp_p5": "rbp(graded=True, p=0.5)",
}

# Names in other tools that stand for no metric of groupgt: the reason, and what to use instead.
ABSENT: dict[str, str] = {
    alias: f"a micro-average pools the documents of all queries, so no query has a value to test or slice. Write {way}"
    for name, way in (
        ("recall", "recall.trec{at} for a mean over queries, or divide the mean of hits{at} by the mean of num_rel"),
        ("precision", "precision.trec@K, whose mean is the same, or divide the mean of hits by the mean of num_ret"),
    )
    for alias in (f"{name}_micro", f"micro_{name}")
}

# trec_eval's names that end in a cutoff, such as P_5 or P.5: only these imply its convention.
TREC_EVAL: dict[str, str] = {
    "p": "precision.trec",
    "recall": "recall.trec",
    "ndcg_cut": "ndcg.trec",
    "map_cut": "map.trec",
    "success": "hit_rate.trec",
    "unj": "unj",
}

# Names of sets of metrics.
SETS: dict[str, tuple[str, ...]] = {"iprec11": tuple(f"iprec@{tenth / 10:g}" for tenth in range(11))}
SETS["official"] = (
    *("num_ret", "num_rel", "num_rel_ret", "map.trec", "gm_map", "r_precision", "bpref", "recip_rank"),
    *SETS["iprec11"],
    *(f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
)


def definition_of(name: str) -> Definition | None:
    """Return the metric with this name, whether built in, registered in this process or from an installed package."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    try:
        definition: Definition | None = looked_up("metric", name)
    except ConfigError as error:
        raise MetricError(str(error)) from None
    return definition
