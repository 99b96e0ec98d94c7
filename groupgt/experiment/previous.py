"""The previous run: its stored results, and every current system paired with its previous results.

`report` reads it from a result folder and passes it on; this module does not depend on folders.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from groupgt.comparison.beside import Beside, reworded, texts_of
from groupgt.errors import DataError, GroupgtError
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.metrics.language import Metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats
from groupgt.model.values import CALLS, SCORE


@dataclass(frozen=True, eq=False)
class FormerSystem:
    """The stored results of a system: `evaluate` reads them from `run`, which is None if they were not stored.

    `bare` results are only ids and scores, whatever other fields they had originally.
    """

    run: Any
    bare: bool = True


@dataclass(frozen=True, eq=False)
class Former:
    """One data set of the previous run: its ground truth, its systems, the digest of its corpus (empty without one).

    `values` returns the previous values by system and metric (as text), in the order of the ground truth; it raises
    `DataError` with the reason if they cannot be used.
    """

    truth: GroundTruth
    systems: Mapping[str, FormerSystem]
    corpus: str
    values: Callable[[], Mapping[str, Mapping[str, Floats]]]


@dataclass(frozen=True, eq=False)
class Previous:
    """The previous run: its name (empty if there is none; `missing` is the reason), and the digests of its files."""

    name: str
    missing: str = ""
    datasets: Mapping[str, Former] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class Against(Beside):
    """The systems of one data set paired with their previous results, for every metric.

    `qids` are the queries; `before` is NaN for queries that the previous run did not have, or had with other text.
    `refused` has the reasons why values cannot be compared, by system and metric; for those in `stored`, the previous
    values are used, for the reason given there; all others are measured again. `added` are systems that the previous
    run did not have, `gone` those that are no longer run. `changed` are queries with changed ground truth, `reworded`
    those with changed text. `queries_only_now` and `queries_only_then` are the numbers of queries that only one of the
    two runs has.
    """

    qids: Sequence[str]
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    stored: Mapping[tuple[str, str], str] = field(default_factory=dict)
    added: Sequence[str] = ()
    gone: Sequence[str] = ()
    changed: Sequence[str] = ()
    reworded: Sequence[str] = ()
    queries_only_now: int = 0
    queries_only_then: int = 0


def against(
    former: Former | None,
    evaluations: Mapping[str, Evaluation],
    request: Request,
    truth: GroundTruth,
    stale: str,
    **more: Any,
) -> Against:
    """Pairs systems with their previous results; `more` are further fields of `Against`.

    `stale` is the reason why previous ids may now mean other passages; empty if they do not.
    """
    values = {name: evaluation.values for name, evaluation in evaluations.items()}
    if former is None:
        return Against(qids=truth.qids, metrics=request.metrics, now=values, before={}, added=list(values), **more)
    pairing = _Pairing(former, request, truth, stale)
    pairs = {
        name: pairing.values(name, evaluation) for name, evaluation in evaluations.items() if name in former.systems
    }
    return Against(
        qids=truth.qids,
        metrics=request.metrics,
        now=values,
        before={name: before for name, (before, _, _) in pairs.items()},
        refused={(name, text): reason for name, (_, _, refused) in pairs.items() for text, reason in refused.items()},
        stored={(name, text): reason for name, (_, stored, _) in pairs.items() for text, reason in stored.items()},
        added=[name for name in values if name not in former.systems],
        changed=pairing.changed,
        reworded=pairing.reworded,
        queries_only_now=sum(qid not in former.truth for qid in truth.qids),
        queries_only_then=sum(qid not in truth for qid in former.truth.qids),
        **more,
    )


class _Pairing:
    """Current and previous queries, paired by ids and texts, and the previous values for current queries."""

    def __init__(self, former: Former, request: Request, truth: GroundTruth, stale: str) -> None:
        self.former, self.request, self.truth, self.stale = former, request, truth, stale
        then = former.truth
        there = [qid for qid in truth.qids if qid in then]
        self.reworded = reworded(there, texts_of(truth), texts_of(then))
        other = frozenset(self.reworded)
        self.paired = np.array([qid in then and qid not in other for qid in truth.qids], dtype=np.bool_)
        is_same = truth.digest == then.digest
        self.changed = (
            [] if is_same else [qid for qid in there if qid not in other and _judged(truth, qid) != _judged(then, qid)]
        )

    def values(self, name: str, evaluation: Evaluation) -> tuple[dict[str, Floats], dict[str, str], dict[str, str]]:
        """The previous values of a system by metric; the reasons why some are stored ones, and why some are missing."""
        system = self.former.systems[name]
        metrics = self.request.metrics
        if self.request.audit is not None:
            return {}, {}, dict.fromkeys(metrics, "audits do not correct differences from another run")
        reasons = {text: self._keeps_from(metric, system, evaluation) for text, metric in metrics.items()}
        why = {text: reason for text, reason in reasons.items() if reason}
        again = {text: metric for text, metric in metrics.items() if text not in why}
        values: dict[str, Floats] = {}
        try:
            values = self._again(system, again, name) if again else {}
        except GroupgtError as error:
            why |= dict.fromkeys(again, f"its results of then cannot be measured: {error}")
        refused: dict[str, str] = {}
        for text in list(why):
            try:
                values[text] = self._stored(name, metrics[text])
            except GroupgtError as error:
                refused[text] = f"{why.pop(text)}, and {error}"
        return values, why, refused

    def _keeps_from(self, metric: Metric, system: FormerSystem, evaluation: Evaluation) -> str:
        """Why a metric cannot be measured again on the previous results; empty if it can."""
        if system.run is None:
            return "its results of then are not kept"
        needs_lengths = metric.budget is not None and metric.budget.unit not in (CALLS, SCORE)
        if self.request.labeller.name == "id" and not needs_lengths and not metric.definition.reads_texts:
            return ""
        if self.stale:
            return self.stale
        if system.bare and not evaluation.run.by_original_ids.is_plain:
            return "its results may carry more than ids, and only the ids of then are kept"
        if needs_lengths and not self.request.lengths.has(metric.budget.unit if metric.budget else ""):
            return "there is no corpus to measure the length of its former results"
        return ""

    def _again(self, system: FormerSystem, metrics: dict[str, Metric], name: str) -> dict[str, Floats]:
        """The previous results, measured with the current metrics, policy and ground truth."""
        values: dict[str, Floats] = {text: np.full(len(self.truth), np.nan) for text in metrics}
        if not self.paired.any():
            return values
        truth = self.truth
        if not self.paired.all():
            truth = truth.select(np.flatnonzero(self.paired).tolist())
        policy = replace(self.request.policy, extra="ignore")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # suspicious data were reported then
            evaluation = evaluate_run(
                replace(self.request, metrics=metrics, policy=policy, by=()), truth, system.run, name
            )
        for text, column in values.items():
            column[self.paired] = evaluation.values[text]
        return values

    def _stored(self, name: str, metric: Metric) -> Floats:
        """The previous values of queries with unchanged ground truth; raises `DataError` if they cannot be used."""
        columns = self.former.values()[name]
        column = next((column for text, column in columns.items() if text == str(metric)), None)
        if column is None:
            raise DataError("the metric was not measured then")
        changed = frozenset(self.changed)
        values = np.full(len(self.truth), np.nan)
        for position, qid in enumerate(self.truth.qids):
            if self.paired[position] and qid not in changed:
                values[position] = column[self.former.truth.index[qid]]
        return values


def _judged(truth: GroundTruth, qid: str) -> tuple[list[str], frozenset[str]]:
    """The judgments of a query, regardless of the order of groups and alternatives and of their names."""
    groups = []
    for group in truth[qid]:
        described = dict(group) if isinstance(group, Mapping) else {"alternatives": group}
        described.pop("name", None)
        groups.append(repr(sorted({**described, "alternatives": sorted(map(repr, described["alternatives"]))}.items())))
    excluded = truth.excluded[truth.index[qid]] if truth.excluded else frozenset()
    return sorted(groups), excluded
