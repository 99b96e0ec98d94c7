"""Systems side by side on one ground truth, and what each of their results hits.

Figures and the page ask it of some evaluations, or of values alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from groupgt.engines.base import Ranking
from groupgt.engines.carriers import all_rankings, carrier_of
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric, explanations
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.values import Budget
from groupgt.private import Hide
from groupgt.render.encodings import About
from groupgt.render.page import data

# Results shown of each ranking.
RESULTS = 20
# Formulas filled in: each takes about a tenth of a millisecond, and more where there are many questions.
FORMULAS = 8_000
# Results whose ids are read again; of more, those of the first questions alone.
READ = 5_000_000
FEW = 200


class Marks:
    """The groups of each question of an evaluation, and what its results hit."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.truth, self.hits = evaluation.truth, evaluation.labelled.hits
        bounds = np.arange(len(self.truth) + 1)
        self._rows = np.searchsorted(self.hits.query, bounds).tolist()
        self._groups = np.searchsorted(self.truth.judgments.group_query, bounds).tolist()

    def groups(self, question: int, absent: Collection[str] = ()) -> list[data.Group]:
        """The groups of a question with their relevant alternatives; `absent` are ids that nothing can find."""
        truth = self.truth
        return [
            {
                "name": truth.group_label(group),
                "weight": float(truth.group_weight[group]),
                "alternatives": truth.alternatives_of(group),
                "cannot": _why_never_met(truth.members_of(group), absent),
            }
            for group in truth.relevant_groups[slice(*self._groups[question : question + 2])].tolist()
        ]

    def of(self, question: int) -> list[data.Mark]:
        """The marks of a question's results, by rank; results that are not judged have none."""
        rows = np.arange(self._rows[question], self._rows[question + 1])
        rows = rows[~views.parts_of_sets(self.hits)[rows]]
        hits: dict[int, list[tuple[int, float, bool]]] = {}
        alternatives, repeats = self.hits.alternative[rows], self.hits.repeat[rows]
        groups = (self.truth.group_number[self.truth.group_of[alternatives]] - 1).tolist()
        # Relevant, judged and not relevant, or less than that.
        grades = np.where(self.truth.is_relevant, np.inf, self.truth.grade)[alternatives].tolist()
        for rank, group, grade, repeat in zip(self.hits.rank[rows].tolist(), groups, grades, repeats.tolist()):
            hits.setdefault(rank, []).append((group, grade, repeat))
        marks: list[data.Mark] = []
        met: set[int] = set()
        for rank, own in sorted(hits.items()):
            relevant = [(group, repeat) for group, grade, repeat in own if grade == np.inf]
            new = sorted({group for group, repeat in relevant if not repeat} - met)
            if new:
                marks.append((rank, "first", new))
                met.update(new)
            elif relevant:
                marks.append((rank, "again", sorted({group for group, _ in relevant})))
            elif any(grade >= 0 for _, grade, _ in own):
                marks.append((rank, "irrelevant", []))
        return marks

    def met(self, question: int) -> dict[int, int]:
        """The rank of the first hit of each group that is met."""
        return {group: rank for rank, kind, groups in self.of(question) if kind == "first" for group in groups}


def _why_never_met(alternatives: Sequence[Sequence[str]], absent: Collection[str]) -> str:
    """Why no result can meet a group of these alternatives, each with the ids that it needs; empty where one can.

    >>> _why_never_met([], []), _why_never_met([["a"], ["b", "c"]], {"a", "c"})
    ('it has no relevant alternative', 'none of its alternatives is in the corpus')
    """
    if not alternatives:
        return "it has no relevant alternative"
    if all(any(name in absent for name in members) for members in alternatives):
        return (
            "its only alternative is not in the corpus"
            if len(alternatives) == 1
            else "none of its alternatives is in the corpus"
        )
    return ""


def details(systems: Systems, questions: Ints) -> Iterator[data.Detail]:
    """The details of some questions, in the order given; formulas are filled in for the first of them."""
    place_of = {at: place for place, at in enumerate(np.sort(questions).tolist())}
    rankings = [_rankings(systems, name, questions) for name in systems.evaluations]
    marks = [Marks(each) for each in systems.every]
    left = FORMULAS
    for at in questions.tolist():
        qid = systems.qids[at]
        worked = None
        left -= len(systems.every) * len(systems.metrics)
        if left >= 0 and systems.first.truth.judgments.defined[at]:
            worked = [explanations(each.metrics.values(), each.labelled.hits, at) for each in systems.every]
        yield {
            "question": place_of[at],
            "groups": marks[0].groups(at, systems.absent),
            "rankings": [_ranking(own[qid], mark.of(at)) if qid in own else None for own, mark in zip(rankings, marks)],
            "worked": worked,
        }


def _rankings(systems: Systems, name: str, questions: Ints) -> Mapping[str, Ranking]:
    """The results of a system by question, by the ids they came with."""
    evaluation = systems.evaluations[name]
    run = evaluation.run.by_own_ids
    if run.is_remote or int(evaluation.labelled.hits.length.sum()) > READ:
        some = [evaluation.truth.qids[at] for at in questions[:FEW].tolist()]
        return {qid: carrier_of(run).ranking(qid, evaluation.policy) for qid in some}
    scores: Mapping[str, Sequence[float]] = systems.scores.get(name, {})
    found = all_rankings(run, evaluation.policy)
    return {qid: (ids, own if own is not None else scores.get(qid)) for qid, (ids, own) in found}


def _ranking(ranking: Ranking, marks: list[data.Mark]) -> data.Ranking:
    ids, scores = ranking
    return {
        "results": len(ids),
        "ids": ids[:RESULTS],
        "scores": None if scores is None else [float(score) for score in scores[:RESULTS]],
        "marks": marks,
        "far": {rank: ids[rank - 1] for rank, _, _ in marks if RESULTS < rank <= len(ids)},
    }


# Systems in figures that have a line for each.
LINES = 8

Interval = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Systems:
    """Some systems on one ground truth, in the order of the tables: `values[system][metric]`, shape (Q,).

    `evaluations` holds what is known besides; it is empty where only values are. `passages` are the texts of documents,
    `absent` ids of the ground truth that are known not to be in the corpus, `scores` those of results that a run does
    not hold itself. `hide` takes secrets out of texts. `rules` says of policy and labeller what evaluations would,
    where there are none.
    """

    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    convention: str
    values: Mapping[str, Mapping[str, Floats]]
    primary: str
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)
    absent: Collection[str] = ()
    scores: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    hide: Hide = field(default_factory=Hide)
    rules: str = ""

    @classmethod
    def of(cls, evaluations: Mapping[str, Evaluation], primary: str | None = None, **more: Any) -> Self:
        """Evaluations of one ground truth; the primary metric is the first, where none is named."""
        first = next(iter(evaluations.values()))
        return cls(
            first.truth.qids,
            first.metrics,
            first.convention,
            {name: each.values for name, each in evaluations.items()},
            first.text_of(primary) if primary is not None else next(iter(first.metrics)),
            evaluations,
            **more,
        )

    @property
    def intervals(self) -> Mapping[tuple[str, str], Interval]:
        """The intervals of means; there are none where nothing is compared."""
        return {}

    @property
    def always(self) -> Sequence[str]:
        """Systems that figures show however many there are."""
        return ()

    @property
    def cutoff(self) -> int | Budget | None:
        """Within what a query must be complete to be solved."""
        return largest_cutoff(self.metrics.values()) if self.evaluations else None

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

    @property
    def tied(self) -> list[str]:
        """The systems with the best mean by the primary metric."""
        best = None if self.best is None else self.mean(self.best)
        return [name for name in self.names if best is not None and self.mean(name) == best]

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
        rules = self.rules
        if self.evaluations:
            judge = "" if self.first.labeller.name == "id" else f" · labeller {self.hide(str(self.first.labeller))}"
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
    return f"policy {policy.changes}" if policy.changes else "default policy"


def known(value: float) -> float | None:
    """A number; None for what is none.

    >>> known(0.5), known(math.nan), known(math.inf)
    (0.5, None, None)
    """
    return value if math.isfinite(value) else None
