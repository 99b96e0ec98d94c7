"""What to know of figures in the convention `autorag`, a line each: which perfect rankings it scores below 1, and where
AutoRAG itself would say something else. `tables.population` puts them below the means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from groupgt.engines.carriers import carrier_of
from groupgt.engines.choice import Engine
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.metrics.language import Metric
from groupgt.metrics.values import values_of
from groupgt.model.hits import Bools, Ints, Judgments
from groupgt.model.policy import PRESETS
from groupgt.render.tables import counted

# Runs of at most this many results are labelled again to see whether another policy changes a mean.
FEW_RESULTS = 100_000
POLICY = PRESETS["autorag"]


def notes(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """The lines on some runs of one ground truth; none where nothing was measured in this convention.

    Of a metric that stands beside it in `coverage`, the first would say what the table shows.
    """
    metrics = {text: metric for text, metric in evaluations[0].metrics.items() if metric.convention == "autorag"}
    if not metrics:
        return
    shown = {metric.name for metric in evaluations[0].metrics.values() if metric.convention == "coverage"}
    alone = [metric for metric in metrics.values() if metric.name not in shown]
    yield from _below_one(evaluations[0].truth.judgments, alone)
    yield from _otherwise(evaluations, metrics)


def _below_one(judgments: Judgments, metrics: Iterable[Metric]) -> Iterator[str]:
    """In which metrics, and for how many queries, a ranking that meets every group at once scores below 1."""
    below: dict[str, Bools] = {}
    for metric in metrics:
        k = metric.cutoff if isinstance(metric.cutoff, int) else None
        below[metric.name] = below.get(metric.name, np.False_) | below_one(judgments, metric.name, k)
    names_of: dict[int, list[str]] = {}
    for name, queries in below.items():
        if queries.any():
            names_of.setdefault(int(queries.sum()), []).append(name)
    if names_of:
        parts = [f"in {_joined(names)} for {count:,}" for count, names in names_of.items()]
        parts[-1] += f" of {counted(int(judgments.defined.sum()), 'query', 'queries')}"
        yield (
            f"convention autorag scores even a perfect ranking below 1 {', '.join(parts)}; convention coverage gives "
            "it 1"
        )


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def below_one(judgments: Judgments, name: str, k: int | None) -> Bools:
    """Whether a perfect ranking of each query scores below 1, shape (Q,).

    Perfect is one that begins with as few results as meet every group. `mrr` and `map` take a mean over groups, so that
    one result must meet all of them; `ndcg` wants every alternative of every group, in each group again.
    """
    fewest = judgments.once("fewest results", lambda: _fewest(judgments))
    if name == "mrr":
        return fewest > 1
    if name == "map":
        return (fewest > 1) & (fewest <= (k or fewest))
    if name == "ndcg":
        chosen = judgments.alternative_group >= 0
        listed = np.bincount(judgments.alternative_query[chosen], minlength=judgments.size)
        return np.minimum(listed, k or listed) > fewest
    return np.zeros(judgments.size, dtype=np.bool_)


def _fewest(judgments: Judgments) -> Ints:
    """How many results meet every group of a query at most, shape (Q,): exact where none is in several groups.

    The document in most groups comes first, then one for each group that is left.
    """
    chosen = judgments.alternative_group >= 0
    met = np.bincount(judgments.alternative_document[chosen], minlength=judgments.documents)
    most = np.ones(judgments.size, dtype=np.int64)
    np.maximum.at(most, judgments.alternative_query[chosen], met[judgments.alternative_document[chosen]])
    return judgments.groups - most + 1


def _otherwise(evaluations: Sequence[Evaluation], metrics: dict[str, Metric]) -> Iterator[str]:
    """What AutoRAG itself does with queries that are here, where that gives other means."""
    names = [evaluation.name for evaluation in evaluations if _differs(evaluation, metrics)]
    if names:
        who = "" if len(evaluations) == 1 else f" of {len(names):,} runs" if len(names) > 1 else f" of {names[0]}"
        yield (
            f"AutoRAG itself gives other means{who}: it leaves out queries without results, and counts repeats and "
            "breaks ties in its own way; --policy autorag does the same"
        )


def _differs(evaluation: Evaluation, metrics: dict[str, Metric]) -> bool:
    """Whether AutoRAG's policy gives another mean; many results are not labelled again to find out."""
    counts, policy = evaluation.counts, evaluation.policy
    if counts["missing"] and policy.missing == "zero" and any(evaluation.means[text] > 0 for text in metrics):
        return True
    doubtful = (counts["duplicates"] and policy.duplicates != POLICY.duplicates) or (
        counts["ties"] and policy.ties != POLICY.ties
    )
    few = int(evaluation.labelled.hits.length.sum()) <= FEW_RESULTS
    if not doubtful or not few or evaluation.run.is_remote or evaluation.labeller.name != "id":
        return False
    plain = {text: metric for text, metric in metrics.items() if metric.budget is None}
    labelled = carrier_of(evaluation.run).label(evaluation.truth, evaluation.labeller, POLICY, Engine())
    values = values_of(plain, labelled.hits, labelled.present, POLICY)
    means = [evaluation.means[text] for text in plain], [mean_of(values[text]) for text in plain]
    return not np.array_equal(*means, equal_nan=True)
