"""Systems side by side on one ground truth: what figures and the page ask of some evaluations, or of values alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.lengths import Budget
from groupgt.model.policy import PRESETS, Policy
from groupgt.render.encodings import About

# Systems in figures that have a line for each.
LINES = 8

Interval = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Systems:
    """Some systems on one ground truth, in the order of the tables: `values[system][metric]`, shape (Q,).

    `evaluations` holds what is known besides; it is empty where only values are. `intervals` are those of the means,
    `passages` the texts of documents, `cutoff` within what a question must be complete to be solved. `scores` are those
    of results that a run does not hold itself; `always` are systems that figures show however many there are.
    """

    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    convention: str
    values: Mapping[str, Mapping[str, Floats]]
    primary: str
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    intervals: Mapping[tuple[str, str], Interval] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)
    cutoff: int | Budget | None = None
    scores: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    always: Sequence[str] = ()

    @classmethod
    def of(cls, evaluations: Mapping[str, Evaluation], primary: str | None = None, **more: Any) -> Systems:
        """Evaluations of one ground truth; the primary metric is the first, where none is named."""
        first = next(iter(evaluations.values()))
        return cls(
            first.truth.qids,
            first.metrics,
            first.convention,
            {name: each.values for name, each in evaluations.items()},
            first.text_of(primary) if primary is not None else next(iter(first.metrics)),
            evaluations,
            cutoff=largest_cutoff(first.metrics.values()),
            **more,
        )

    @property
    def names(self) -> list[str]:
        """The systems, in their order."""
        return list(self.values)

    @property
    def every(self) -> list[Evaluation]:
        """The evaluations."""
        return list(self.evaluations.values())

    @property
    def first(self) -> Evaluation:
        """One of them, for what all share."""
        return self.every[0]

    @property
    def label(self) -> str:
        """What tables call the primary metric."""
        return self.metrics[self.primary].short(self.convention)

    @property
    def higher(self) -> bool:
        """Whether more of the primary metric is better."""
        return self.metrics[self.primary].higher_is_better

    @cached_property
    def means(self) -> dict[str, dict[str, float | None]]:
        """`means[system][metric]`, None where no question counts."""
        return {
            name: {text: known(mean_of(columns[text])) for text in self.metrics}
            for name, columns in self.values.items()
        }

    def mean(self, name: str) -> float | None:
        """The mean of a system by the primary metric."""
        return self.means[name][self.primary]

    def ends(self, name: str) -> tuple[float, float] | tuple[None, None]:
        """The ends of the interval of that mean."""
        return self.intervals.get((name, self.primary)) or (None, None)

    @property
    def best(self) -> str | None:
        """The system with the best mean by the primary metric; the first of several."""
        means = {name: mean for name in self.names if (mean := self.mean(name)) is not None}
        choose = max if self.higher else min
        return choose(means, key=means.__getitem__) if means else None

    def questions_of(self, name: str) -> int:
        """How many questions stand behind a system's mean by the primary metric."""
        return int((~np.isnan(self.values[name][self.primary])).sum())

    def counts(self, evaluation: Evaluation) -> Bools:
        """Which questions count, shape (Q,)."""
        defined = evaluation.truth.judgments.defined
        return defined & evaluation.labelled.present if evaluation.policy.missing == "skip" else defined

    def solved(self, evaluation: Evaluation) -> Bools:
        """The questions all of whose groups are met within the cutoff, shape (Q,)."""
        last = views.completion_ranks(evaluation.labelled.hits)
        top = Cut.at(evaluation.labelled.hits, self.cutoff).top
        found: Bools = (last > 0) & (last <= top)
        return found

    @property
    def unsolved(self) -> int | None:
        """How many questions no system solves; None where only values are known."""
        if not self.evaluations:
            return None
        anybody = np.any([self.solved(each) for each in self.every], axis=0)
        counts = np.any([self.counts(each) for each in self.every], axis=0)
        return int((counts & ~anybody).sum())

    @cached_property
    def telling(self) -> Ints:
        """The places of the questions, those that say most first: on which systems differ, then which do badly."""
        table = np.stack([columns[self.primary] for columns in self.values.values()])
        there = ~np.isnan(table)
        low = np.where(there, table, np.inf).min(axis=0)
        high = np.where(there, table, -np.inf).max(axis=0)
        counts = there.any(axis=0)
        spread = np.where(counts, high - low, -1.0)
        worst = np.where(counts, low if self.higher else -high, np.inf)
        return np.lexsort((np.arange(len(spread)), worst, -spread))

    def shown(self) -> dict[str, Evaluation]:
        """The systems that figures with a line for each show: the first ones, and those that always are."""
        if len(self.evaluations) <= LINES:
            return dict(self.evaluations)
        wanted = {*self.names[: LINES - len(self.always)], *self.always}
        return {name: each for name, each in self.evaluations.items() if name in wanted}

    def about(self, label: str, note: str = "") -> About:
        """What every figure of these systems states."""
        rules = ""
        if self.evaluations:
            judge = "" if self.first.labeller.name == "id" else f" · labeller {self.first.labeller}"
            rules = policy_text(self.first.policy) + judge
        return About(label, max(map(self.questions_of, self.names)), self.convention, rules, note)


def largest_cutoff(metrics: Iterable[Metric]) -> int | Budget | None:
    """Within what questions are solved: the largest number of results asked, else the largest budget, else all."""
    cutoffs = [metric.cutoff for metric in metrics]
    numbers = [cutoff for cutoff in cutoffs if isinstance(cutoff, int)]
    budgets = [cutoff for cutoff in cutoffs if isinstance(cutoff, Budget)]
    if numbers:
        return max(numbers)
    return max((each for each in budgets if each.unit == budgets[0].unit), key=lambda each: each.amount, default=None)


def policy_text(policy: Policy) -> str:
    """The policy, as what differs from the default.

    >>> policy_text(Policy()), policy_text(Policy(missing="skip"))
    ('default policy', 'policy missing=skip')
    """
    usual = PRESETS["default"]
    fields = {name: getattr(policy, name) for name in policy.__dataclass_fields__}
    other = [f"{name}={value}" for name, value in fields.items() if value != getattr(usual, name)]
    return f"policy {', '.join(other)}" if other else "default policy"


def known(value: float) -> float | None:
    """A number; None for what is none.

    >>> known(0.5), known(math.nan), known(math.inf)
    (0.5, None, None)
    """
    return value if math.isfinite(value) else None
