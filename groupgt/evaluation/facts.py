"""Notes on means under the `autorag` convention: metrics that stay below 1, and differences from AutoRAG."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from groupgt.engines.carriers import carrier_of
from groupgt.engines.choice import Engine
from groupgt.metrics.language import Metric
from groupgt.metrics.values import values_of
from groupgt.metrics.views import listed
from groupgt.model.hits import Bools, Ints, Judgments
from groupgt.model.policy import PRESETS

if TYPE_CHECKING:
    from groupgt.evaluation.result import Evaluation

# Runs of at most this many results are labelled again to check whether another policy changes a mean.
FEW_RESULTS = 100_000
POLICY = PRESETS["autorag"]


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """Notes printed below the means of an evaluation; each one is computed when first needed, and then cached."""

    evaluation: Evaluation

    @property
    def autorag_metrics(self) -> dict[str, Metric]:
        """Metrics under the `autorag` convention, keyed by their text in the request."""
        return {text: metric for text, metric in self.evaluation.metrics.items() if metric.convention == "autorag"}

    @cached_property
    def below_one(self) -> dict[str, int]:
        """Number of queries whose shortest complete ranking scores below 1, by metric name.

        Metrics that are also evaluated under `coverage` are omitted, because the table already shows the difference.
        """
        shown = {metric.name for metric in self.evaluation.metrics.values() if metric.convention == "coverage"}
        judgments = self.evaluation.truth.judgments
        below: dict[str, Bools] = {}
        for metric in self.autorag_metrics.values():
            if metric.name not in shown:
                k = metric.cutoff if isinstance(metric.cutoff, int) else None
                below[metric.name] = below.get(metric.name, np.False_) | below_one(judgments, metric.name, k)
        return {name: int(queries.sum()) for name, queries in below.items() if queries.any()}

    @cached_property
    def autorag_differs(self) -> bool:
        """True if AutoRAG's policy is known to change a mean; runs with many results are not relabelled to find out."""
        evaluation, metrics = self.evaluation, self.autorag_metrics
        counts, policy = evaluation.counts, evaluation.policy
        if counts["missing"] and policy.missing == "zero" and any(evaluation.means[text] > 0 for text in metrics):
            return True
        depends = (counts["duplicates"] and policy.duplicates != POLICY.duplicates) or (
            counts["ties"] and policy.ties != POLICY.ties
        )
        few = int(evaluation.labelled.hits.length.sum()) <= FEW_RESULTS
        if not depends or not few or evaluation.run.is_remote or evaluation.labeller.name != "id":
            return False
        plain = {text: metric for text, metric in metrics.items() if metric.budget is None}
        labelled = carrier_of(evaluation.run).label(evaluation.truth, evaluation.labeller, POLICY, Engine())
        other = replace(evaluation, values=values_of(plain, labelled.hits, labelled.present, POLICY))
        return not np.array_equal(
            [evaluation.means[text] for text in plain], [other.means[text] for text in plain], equal_nan=True
        )


def below_one(judgments: Judgments, name: str, k: int | None) -> Bools:
    """Return a mask of queries where even a perfect ranking scores below 1, shape (Q,).

    A perfect ranking begins with the fewest results that cover every group. `mrr` and `map` average over groups, so a
    single result must cover all of them; `ndcg` requires every alternative of every group, once for each of its groups.
    """
    fewest = judgments.once("fewest results", lambda: _fewest(judgments))
    if name == "mrr":
        return fewest > 1
    if name == "map":
        return (fewest > 1) & (fewest <= (k or fewest))
    if name == "ndcg":
        alternatives = listed(judgments)
        return np.minimum(alternatives, k or alternatives) > fewest
    return np.zeros(judgments.size, dtype=np.bool_)


def _fewest(judgments: Judgments) -> Ints:
    """Return an upper bound on the fewest results that cover every group, shape (Q,).

    The bound counts the document that is in the most groups, plus one document for each remaining group; it is exact if
    no groups overlap.
    """
    chosen = judgments.alternative_group >= 0
    met = np.bincount(judgments.alternative_document[chosen], minlength=judgments.documents)
    most = np.ones(judgments.size, dtype=np.int64)
    np.maximum.at(most, judgments.alternative_query[chosen], met[judgments.alternative_document[chosen]])
    return judgments.groups - most + 1
