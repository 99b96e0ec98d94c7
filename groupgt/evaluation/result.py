"""Defines `Evaluation`, the result of evaluating one run, and `Repeated`, that of several trials of a system."""

from __future__ import annotations

from dataclasses import dataclass

from groupgt.engines.base import Labelled
from groupgt.engines.carriers import carrier_of
from groupgt.engines.order import Contradictions, contradictions
from groupgt.evaluation.evaluated import Evaluated
from groupgt.metrics.base import Cut
from groupgt.model.run import Run


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation(Evaluated):
    """Metric values for every query of one run, with the run and its hits."""

    run: Run
    labelled: Labelled

    @property
    def each(self) -> tuple[Evaluation, ...]:
        """This evaluation."""
        return (self,)

    @property
    def contradictions(self) -> Contradictions:
        """Queries whose scores rise along the ranking, or whose ranks and scores give different orders."""
        return Contradictions(*self.labelled.contradictory) if self.run.is_remote else contradictions(self.run)

    @property
    def duplicates(self) -> int:
        """Queries with a repeated result."""
        repeating = None if self.policy.looks_at_all else carrier_of(self.run).repeating(self.truth)
        found = self.labelled
        return found.duplicated if repeating is None else len({*repeating, *found.hit_again.tolist()})

    @property
    def ties(self) -> int:
        """Queries where a cutoff splits equal scores that include a hit."""
        cutoffs = {metric.cutoff for metric in self.metrics.values()}
        depths = [None if cutoff is None else Cut.at(self.labelled.hits, cutoff).k for cutoff in cutoffs]
        return self.labelled.tied_at(depths)

    @property
    def excluded(self) -> int:
        """Results whose ids the ground truth excludes."""
        return self.run.excluded + self.labelled.excluded


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Repeated(Evaluated):
    """Metric values for every query of a system that was asked several times: means over its trials.

    There is no single run or ranking: `each` has the evaluation of every trial, and `averaged` the mean over trials of
    what single trials have. A ranking that is shown is that of the `first`.
    """

    @property
    def each(self) -> tuple[Evaluation, ...]:
        """The evaluations of all trials."""
        return self.trials
