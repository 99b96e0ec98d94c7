"""Pairs every system of a run with its results in the previous run, which `report` loads from a result folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from groupgt.comparison.across import Changes
from groupgt.comparison.trials import all_builds, builds_of
from groupgt.errors import DataError, GroupgtError
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.misses import complete_within
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated
from groupgt.experiment.datasets import Data
from groupgt.experiment.outcome import Against, Outcome
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats
from groupgt.model.values import CALLS, SCORE, summed
from groupgt.options import paths_of
from groupgt.plugins import find


@dataclass(frozen=True, eq=False)
class FormerSystem:
    """The stored results of a system. A `bare` run has only ids and scores. `run` is None if no results were stored."""

    run: Any
    bare: bool = True
    is_build: bool = False


@dataclass(frozen=True, eq=False)
class Former:
    """One data set of the previous run. `values` returns values by system and metric, or raises `DataError`."""

    truth: GroundTruth
    systems: Mapping[str, FormerSystem]
    corpus: str
    values: Callable[[], Mapping[str, Mapping[str, Floats]]]


@dataclass(frozen=True, eq=False)
class Previous:
    """The previous run with its file digests. Without a previous run, `name` is empty."""

    name: str = ""
    datasets: Mapping[str, Former] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def against(outcome: Outcome, dataset: str, data: Data, previous: Previous) -> Against:
    """Pair the systems of one data set with their previous results."""
    experiment, request, truth = outcome.experiment, data.request, data.truth
    evaluations, former = outcome.evaluations[dataset], previous.datasets.get(dataset)
    values = {name: evaluation.values for name, evaluation in evaluations.items()}
    primary = parse_metric(experiment.primary, experiment.convention)
    text = next(text for text, metric in request.metrics.items() if metric == primary)
    shared: dict[str, Any] = {"qids": truth.qids, "metrics": request.metrics, "primary": text}
    shared |= {"settings": experiment.settings, "now": values, "builds_now": all_builds(evaluations)}
    if former is None:
        return Against(before={}, added=list(values), **shared)
    pairing = _Pairing(former, request, truth, _stale(outcome, dataset, data, former.corpus, previous.files))
    before = {name: pairing.values(name, evaluations[name]) for name in values if name in former.systems}
    # A budget is known of results that were measured by it.
    again = {name: each for name, each in pairing.again.items() if text in each.values}
    changes = {name: _changes(evaluations[name], each, primary, pairing.paired) for name, each in again.items()}
    paired = list(compress(truth.qids, pairing.paired.tolist()))
    return Against(
        before=before,
        builds_before=pairing.builds(before),
        lost={name: _largest_first(paired, then - now) for name, (now, then) in changes.items()},
        gained={name: _largest_first(paired, now - then) for name, (now, then) in changes.items()},
        counts={name: (summed(then * (1 - now)), summed(now * (1 - then))) for name, (now, then) in changes.items()},
        again=pairing.again,
        refused={key: experiment.hide(why) for key, why in pairing.refused.items()},
        stored={key: experiment.hide(why) for key, why in pairing.stored.items()},
        added=[name for name in values if name not in former.systems],
        gone=[name for name in former.systems if name not in experiment.systems],
        changed=pairing.changes.judged,
        reworded=pairing.changes.reworded,
        queries_only_now=len(pairing.changes.added),
        queries_only_then=len(pairing.changes.gone),
        **shared,
    )


def _changes(now: Evaluated, then: Evaluated, primary: Metric, paired: Bools) -> tuple[Floats, Floats]:
    """Return the shares of trials that complete each paired query, in this run and in the previous one.

    A share is 0 unless the query counts in both runs.
    """
    counting = now.counting[paired] & then.counting
    after, before = complete_within(now, primary.cutoff)[paired], complete_within(then, primary.cutoff)
    return np.where(counting, after, 0.0), np.where(counting, before, 0.0)


def _largest_first(qids: Sequence[str], falls: Floats) -> list[str]:
    """Return the queries with a drop above 0, largest first."""
    return [qids[place] for place in np.argsort(-falls, kind="stable").tolist() if falls[place] > 0]


def _stale(outcome: Outcome, dataset: str, data: Data, corpus: str, files: Mapping[str, str]) -> str:
    """Return the reason, such as a changed corpus, why previous ids may refer to different passages."""
    experiment = outcome.experiment
    if data.corpus_digest != corpus:
        return "the corpus has changed"
    section = experiment.config.evaluate.labeller
    for key in paths_of(find("labeller", section.use).options, section.with_):
        name = experiment.hide(section.with_[key].replace("{dataset}", dataset))
        if outcome.digests.get(name) != files.get(name):
            return f"{name}, which the labeller reads, has changed"
    return ""


def former_values(former: Former, data: Data, name: str, metric: Metric) -> Floats:
    """Return previous values for the current queries (stored, otherwise measured again), or raise `DataError`."""
    pairing = _Pairing(former, data.request, data.truth, "")
    try:
        return pairing.stored_values(name, metric)
    except DataError:
        if former.systems[name].run is None:
            raise
    return pairing.measured_again(former.systems[name], {str(metric): metric}, name)[str(metric)]


class _Pairing:
    """Pairs current queries with previous ones, and finds their previous values or why values are missing."""

    def __init__(self, former: Former, request: Request, truth: GroundTruth, stale: str) -> None:
        self.former, self.request, self.truth, self.stale = former, request, truth, stale
        self.changes = Changes.of(truth, former.truth)
        other = frozenset([*self.changes.reworded, *self.changes.added])
        self.paired = np.array([qid not in other for qid in truth.qids], dtype=np.bool_)
        self.stored: dict[tuple[str, str], str] = {}
        self.refused: dict[tuple[str, str], str] = {}
        # Previous results that were measured again, over the paired queries.
        self.again: dict[str, Evaluated] = {}

    def values(self, name: str, evaluation: Evaluated) -> dict[str, Floats]:
        """Return the previous values of a system by metric."""
        system = self.former.systems[name]
        metrics = self.request.metrics
        if self.request.audit is not None:
            self.refused |= {(name, text): "an audit does not correct differences between runs" for text in metrics}
            return {}
        reasons = {text: self._keeps_from(metric, system, evaluation) for text, metric in metrics.items()}
        why = {text: reason for text, reason in reasons.items() if reason}
        again = {text: metric for text, metric in metrics.items() if text not in why}
        values: dict[str, Floats] = {}
        try:
            values = self.measured_again(system, again, name) if again else {}
        except GroupgtError as error:
            why |= dict.fromkeys(again, f"its earlier results cannot be evaluated: {error}")
        for text, reason in why.items():
            try:
                values[text] = self.stored_values(name, metrics[text])
                self.stored[name, text] = reason
            except GroupgtError as error:
                self.refused[name, text] = f"{reason}, and {error}"
        return values

    def _keeps_from(self, metric: Metric, system: FormerSystem, evaluation: Evaluated) -> str:
        """Return why previous results cannot be evaluated again with a metric, or an empty string if they can."""
        if system.run is None:
            return "its earlier results were not kept"
        needs_lengths = metric.budget is not None and metric.budget.unit not in (CALLS, SCORE)
        if self.request.labeller.name == "id" and not needs_lengths and not metric.definition.reads_texts:
            return ""
        if self.stale:
            return self.stale
        if system.bare and not evaluation.is_plain:
            return "its results may contain more than ids, but only the ids of earlier results were kept"
        if needs_lengths and not self.request.lengths.has(metric.budget.unit if metric.budget else ""):
            return "no corpus is available to measure the lengths of its earlier results"
        return ""

    def measured_again(self, system: FormerSystem, metrics: dict[str, Metric], name: str) -> dict[str, Floats]:
        """Measure the previous results again with the current metrics, policy and ground truth."""
        values: dict[str, Floats] = {text: np.full(len(self.truth), np.nan) for text in metrics}
        if not self.paired.any():
            return values
        truth = self.truth if self.paired.all() else self.truth.select(np.flatnonzero(self.paired).tolist())
        policy = replace(self.request.policy, extra="ignore")
        request = replace(self.request, metrics=metrics, policy=policy, by=())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # suspicious data were reported then
            evaluation = evaluate_run(request, truth, system.run, name)
        self.again[name] = evaluation
        for text, column in values.items():
            column[self.paired] = evaluation.values[text]
        return values

    def builds(self, before: Mapping[str, Mapping[str, Floats]]) -> dict[str, dict[str, list[Floats]]]:
        """Return the previous values of builds by system and metric, shape (r, Q), or a row of NaN if not stored."""
        builds: dict[str, dict[str, list[Floats]]] = {}
        for name, values in before.items():
            again = self.again.get(name)
            for text in values:
                sides = [] if again is None or text not in again.values else builds_of(again, text)
                if self.former.systems[name].is_build and (name, text) in self.stored:
                    sides = [np.full((1, int(self.paired.sum())), np.nan)]
                placed = [np.full((len(side), len(self.truth)), np.nan) for side in sides]
                for place, side in zip(placed, sides):
                    place[:, self.paired] = side
                builds.setdefault(name, {})[text] = placed
        return builds

    def stored_values(self, name: str, metric: Metric) -> Floats:
        """Return stored values for queries with unchanged ground truth, or raise `DataError` if they cannot be used."""
        column = self.former.values()[name].get(str(metric))
        if column is None:
            raise DataError("the earlier run did not measure this metric")
        changed = frozenset(self.changes.judged)
        values = np.full(len(self.truth), np.nan)
        for position, qid in enumerate(self.truth.qids):
            if self.paired[position] and qid not in changed:
                values[position] = column[self.former.truth.index[qid]]
        return values
