"""The tables of the page that evaluations of one ground truth fill: systems, questions, slices, details, and figures.

`comparison.report` adds what systems are against one another, `experiment.report` gates, times and versions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from groupgt.engines.rankings import Ranking, all_rankings, ranking_for
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.lengths import Budget
from groupgt.model.policy import PRESETS, Policy
from groupgt.model.run import Remote
from groupgt.render import figures
from groupgt.render.drawing import Figure, replaced
from groupgt.render.figures import About
from groupgt.render.numbers import counted, fixed, span
from groupgt.render.page import data

# Results shown of each ranking.
RESULTS = 20
# Questions that the page lists; of more, those that say most.
LISTED = 10_000
# Formulas filled in: each takes about a tenth of a millisecond, and more where there are many questions.
FORMULAS = 8_000
# Results whose ids are read again; of more, those of the first questions alone.
READ = 5_000_000
FEW = 200
# Systems in figures that have a line for each.
LINES = 8
# Where curves are drawn, as far as results go.
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
CURVES = ("recall", "complete", "ndcg")

# Counts of the population that are told where there are any.
COUNTS = {
    "missing": "questions without results",
    "extra": "results without ground truth",
    "duplicates": "questions with a result twice",
    "ties": "questions with a tie at a cutoff",
    "repeated_ids": "ids twice in a group",
}

# Tables of templates that the page fills in.
FILLED = ("rows", "mean")

Interval = tuple[float, float] | None


def largest_cutoff(metrics: Iterable[Metric]) -> int | Budget | None:
    """Within what questions are solved: the largest number of results asked, else the largest budget, else all."""
    cutoffs = [metric.cutoff for metric in metrics]
    numbers = [cutoff for cutoff in cutoffs if isinstance(cutoff, int)]
    budgets = [cutoff for cutoff in cutoffs if isinstance(cutoff, Budget)]
    if numbers:
        return max(numbers)
    return max((each for each in budgets if each.unit == budgets[0].unit), key=lambda each: each.amount, default=None)


def policy_text(policy: Policy) -> str:
    """The policy, as what differs from the default."""
    usual = PRESETS["default"]
    other = [f"{name}={getattr(policy, name)}" for name in policy.__dataclass_fields__ if getattr(policy, name) != getattr(usual, name)]
    return f"policy {', '.join(other)}" if other else "default policy"


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
            name: {text: _known(mean_of(columns[text])) for text in self.metrics}
            for name, columns in self.values.items()
        }

    @property
    def best(self) -> str | None:
        """The system with the best mean by the primary metric; the first of several."""
        known = {name: own[self.primary] for name, own in self.means.items() if own[self.primary] is not None}
        choose = max if self.higher else min
        return choose(known, key=lambda name: known[name] or 0.0) if known else None

    def questions_of(self, name: str) -> int:
        """How many questions stand behind a system's mean by the primary metric."""
        return int((~np.isnan(self.values[name][self.primary])).sum())

    def dataset(self, name: str) -> data.Dataset:
        """The tables of one data set, with all that evaluations know."""
        kept = self.listed
        known = bool(self.evaluations)
        return {
            "name": name,
            "verdict": self.verdict(),
            "primary": list(self.metrics).index(self.primary),
            "baseline": None,
            "metrics": self._metrics(),
            "systems": [self._system(system) for system in self.values],
            "failed": [],
            "gates": [],
            "contrasts": [],
            "slices": self._slices() if known else [],
            "tests": [],
            "headroom": [],
            "cutoff": "" if self.cutoff is None else f"@{self.cutoff}",
            "unsolved": self.unsolved,
            "facts": self._facts() if known else [("convention", self.convention)],
            "drawings": self._drawings(),
            "questions": self._questions(kept),
            "details": self._details(kept) if known else [],
            "passages": self.passages,
            "left_out": self._left_out(kept),
        }

    def _metrics(self) -> list[data.Metric]:
        return [
            {
                "name": text,
                "label": metric.short(self.convention),
                "full": str(metric),
                "higher": metric.higher_is_better,
                "bounded": metric.definition.bounded,
                "summary": metric.definition.summary,
                "formula": metric.formula.text,
            }
            for text, metric in self.metrics.items()
        ]

    def _system(self, name: str) -> data.System:
        columns = self.values[name]
        return {
            "name": name,
            "about": "",
            "means": list(self.means[name].values()),
            "intervals": [self.intervals.get((name, text)) for text in self.metrics],
            "queries": [int((~np.isnan(columns[text])).sum()) for text in self.metrics],
        }

    def verdict(self) -> list[data.Sentence]:
        """Which system is best, and its mean."""
        best = self.best
        if best is None:
            return [{"kind": "doubt", "parts": ["No question counts, so there is no mean."]}]
        mean, interval = self.means[best][self.primary], self.intervals.get((best, self.primary))
        between = "" if interval is None else f" (interval {span(interval)})"
        questions = counted(self.questions_of(best), "question")
        if len(self.values) == 1:
            return [{"kind": "best", "parts": ["", best, f" has a mean {self.label} of {fixed(mean)}{between} over {questions}."]}]
        alike = [name for name, own in self.means.items() if name != best and own[self.primary] == mean]
        also = f", as {counted(len(alike), 'other has', 'others have')}," if alike else ""
        said = f" is the best of {len(self.values):,} systems: its mean {self.label} is {fixed(mean)}{between}{also} over {questions}."
        return [{"kind": "best", "parts": ["", best, said]}]

    def _facts(self) -> list[tuple[str, str]]:
        """What was measured, and under which rules."""
        first, truth = self.first, self.first.truth
        judgments = truth.judgments
        facts = [
            ("convention", first.convention),
            ("policy", str(first.policy)),
            ("labeller", str(first.labeller)),
            ("questions", f"{len(truth):,}, of which {int(judgments.defined.sum()):,} have a group that can be met"),
            ("groups", f"{len(judgments.group_query):,} with {int((truth.grade > 0).sum()):,} alternatives"),
        ]
        counts = {name: each.counts for name, each in self.evaluations.items()}
        for kind, title in COUNTS.items():
            told = {name: own[kind] for name, own in counts.items() if own[kind]}
            if told and len(set(told.values())) == 1 and len(told) == len(counts):
                facts.append((title, f"{next(iter(told.values())):,} in every system"))
            elif told:
                facts.append((title, "; ".join(f"{name}: {count:,}" for name, count in told.items())))
        dropped = first.counts["empty_groups"] + first.counts["irrelevant_groups"]
        if dropped:
            facts.append(("groups left out", f"{dropped:,} without a relevant alternative"))
        facts.append(("ground truth", f"SHA-256 {truth.digest}"))
        return facts

    # Questions

    @cached_property
    def listed(self) -> Ints:
        """The questions that are listed, those that say most first: on which systems differ, then which do badly."""
        table = np.stack([columns[self.primary] for columns in self.values.values()])
        known = ~np.isnan(table)
        low = np.where(known, table, np.inf).min(axis=0)
        high = np.where(known, table, -np.inf).max(axis=0)
        counts = known.any(axis=0)
        spread = np.where(counts, high - low, -1.0)
        worst = np.where(counts, low if self.higher else -high, np.inf)
        order = np.lexsort((np.arange(len(spread)), worst, -spread))
        return order[:LISTED]

    def _left_out(self, kept: Ints) -> list[str]:
        missing = len(self.qids) - len(kept)
        return [f"{missing:,} questions on which systems differ least"] if missing else []

    def _questions(self, kept: Ints) -> data.Questions:
        places = np.sort(kept).tolist()
        values = [
            [[_known(value) for value in columns[text][places].tolist()] for columns in self.values.values()]
            for text in self.metrics
        ]
        found: data.Questions = {
            "qids": [self.qids[at] for at in places],
            "texts": [],
            "groups": [],
            "slices": {},
            "solved": [],
            "counted": [],
            "values": values,
        }
        if self.evaluations:
            truth = self.first.truth
            slices = {by: self.first.slicer.texts(by) for by in self.first.slicer.by}
            solved = [self.solved(each) for each in self.every]
            groups = truth.judgments.groups.tolist()
            if truth.texts:
                found["texts"] = [truth.texts[at] for at in places]
            found["groups"] = [groups[at] for at in places]
            found["slices"] = {by: [texts[at] for at in places] for by, texts in slices.items()}
            found["solved"] = [[system for system, column in enumerate(solved) if column[at]] for at in places]
            found["counted"] = truth.judgments.defined[places].tolist()
        return found

    def solved(self, evaluation: Evaluation) -> Bools:
        """The questions all of whose groups are met within the cutoff."""
        last = views.completion_ranks(evaluation.labelled.hits)
        top = Cut.at(evaluation.labelled.hits, self.cutoff).top
        found: Bools = (last > 0) & (last <= top)
        return found

    @property
    def unsolved(self) -> int | None:
        """How many questions no system solves."""
        if not self.evaluations:
            return None
        anybody = np.any([self.solved(each) for each in self.every], axis=0)
        counts = np.any([self._counts(each) for each in self.every], axis=0)
        return int((counts & ~anybody).sum())

    def _slices(self) -> list[data.Slice]:
        parts: list[data.Slice] = []
        texts = list(self.metrics)
        for place, part in enumerate(self.first.slices):
            means = [[_known(each.slices[place]["means"][text]) for text in texts] for each in self.every]
            parts.append({"by": part["by"], "value": part["value"], "queries": part["queries"], "means": means})
        return parts

    # Details

    def _details(self, kept: Ints) -> Iterator[data.Detail]:
        """The questions listed, those that say most first."""
        place_of = {at: place for place, at in enumerate(np.sort(kept).tolist())}
        rankings = [self._rankings(name, each, kept) for name, each in self.evaluations.items()]
        marks = [_Marks(each) for each in self.every]
        formulas = FORMULAS
        for at in kept.tolist():
            qid = self.qids[at]
            worked = None
            formulas -= len(self.every) * len(self.first.metrics)
            if formulas >= 0 and self.first.truth.judgments.defined[at]:
                worked = [self._worked(each, at) for each in self.every]
            yield {
                "question": place_of[at],
                "groups": marks[0].groups(at),
                "rankings": [
                    _ranking(own[qid], mark.of(at)) if qid in own else None for own, mark in zip(rankings, marks)
                ],
                "worked": worked,
            }

    def _worked(self, evaluation: Evaluation, at: int) -> list[str | None]:
        hits = evaluation.labelled.hits
        return [metric.explanation(hits, at) for metric in evaluation.metrics.values()]

    def _rankings(self, name: str, evaluation: Evaluation, kept: Ints) -> Mapping[str, Ranking]:
        """The results of the questions listed, by the ids they came with."""
        run = evaluation.run.by_own_ids
        if isinstance(run.contents, Remote) or int(evaluation.labelled.hits.length.sum()) > READ:
            some = [evaluation.truth.qids[at] for at in kept[:FEW].tolist()]
            return {qid: ranking_for(run, qid, evaluation.policy) for qid in some}
        scores = self.scores.get(name, {})
        found = all_rankings(run, evaluation.policy)
        return {qid: (ids, own if own is not None else scores.get(qid)) for qid, (ids, own) in found}

    # Figures

    def about(self, label: str, note: str = "") -> About:
        """What every figure of these systems states."""
        rules = ""
        if self.evaluations:
            judge = "" if self.first.labeller.name == "id" else f" · labeller {self.first.labeller}"
            rules = policy_text(self.first.policy) + judge
        return About(label, max(map(self.questions_of, self.values)), self.convention, rules, note)

    def shown(self) -> dict[str, Evaluation]:
        """The systems that figures with a line for each show."""
        first = list(self.evaluations)[: LINES - len(self.always)]
        wanted = {*first, *self.always} if len(self.evaluations) > LINES else self.evaluations
        return {name: each for name, each in self.evaluations.items() if name in wanted}

    def figures(self) -> dict[str, Figure]:
        """The figures that evaluations alone can draw, by name."""
        found = {"forest": self.forest()}
        if self.evaluations:
            found |= {"depth": self.depth(), "ecdf": self.ecdf(), "groups": self.groups()}
            if self.first.slicer.by:
                found["slices"] = self.slices()
        return found

    def _drawings(self) -> dict[str, data.Drawing]:
        """What the page draws: templates where what they show is chosen there."""
        found = {"forest": template(self.forest(), {self.label: "$label"})}
        if self.evaluations:
            found |= {"depth": drawing(self.depth()), "ecdf": drawing(self.ecdf()), "groups": template(self.groups(1))}
            if self.first.slicer.by:
                found["slices"] = template(figures.slices([], self.about(self.label), domain=("$low", "$high")))
        return found

    def forest(self) -> Figure:
        """Means with their intervals."""
        rows = [
            {"name": name, "value": own[self.primary], **_ends(self.intervals.get((name, self.primary))), "kind": ""}
            for name, own in self.means.items()
        ]
        return figures.forest(rows, self.about(self.label))

    def depth(self, unit: str = "results") -> Figure:
        """Recall, complete and ndcg against k."""
        shown = self.shown()
        deepest = max(int(each.labelled.hits.length.max(initial=0)) for each in self.every)
        depths = [k for k in DEPTHS if k <= deepest] or [1]
        metrics = {name: parse_metric(name, self.first.convention) for name in CURVES}
        rows = []
        for name, each in shown.items():
            for label, metric in metrics.items():
                for k in depths:
                    values = _values(each, Metric(metric.name, metric.convention, metric.parameters, k))
                    rows.append({"system": name, "metric": label, "k": k, "value": _known(values)})
        note = self._note(shown)
        return figures.depth(rows, self.about(", ".join(CURVES), note), unit)

    def ecdf(self) -> Figure:
        """By which rank the first hit, and all groups, have come."""
        shown = self.shown()
        rows = []
        for name, each in shown.items():
            counts = self._counts(each)
            for kind, ranks in (("first hit", first_ranks(each)), ("all groups met", views.completion_ranks(each.labelled.hits))):
                rows += [{"system": name, "kind": kind, **point} for point in _steps(ranks[counts])]
        return figures.ecdf(rows, self.about("rank", self._note(shown)))

    def groups(self, most: int = 40) -> Figure:
        """Which groups are met, of the questions that say most."""
        truth = self.first.truth
        marks = [_Marks(each) for each in self.every]
        rows = []
        for at in self.listed.tolist():
            if len(rows) >= most * len(self.every):
                break
            for number, group in enumerate(marks[0].groups(at)):
                for name, mark in zip(self.evaluations, marks):
                    rows.append({"group": f"{truth.qids[at]}: {group['name']}", "system": name, "rank": mark.met(at).get(number)})
        note = "" if len(truth.group_query) <= most else f"the first {most:,} groups of the questions on which systems differ most"
        return figures.group_ranks(rows, self.about("rank of the first hit", note))

    def slices(self) -> Figure:
        """Means by slice."""
        rows = []
        for place, part in enumerate(self.first.slices):
            for name, each in self.evaluations.items():
                value = _known(each.slices[place]["means"][self.primary])
                label = f"{part['by']} = {part['value']} ({part['queries']:,})"
                rows.append({"slice": label, "system": name, "value": value, "queries": part["queries"]})
        return figures.slices(rows, self.about(self.label))

    def _note(self, shown: Mapping[str, Evaluation]) -> str:
        hidden = len(self.evaluations) - len(shown)
        return f"{len(shown):,} of {len(self.evaluations):,} systems" if hidden else ""

    def _counts(self, evaluation: Evaluation) -> Bools:
        """Which questions count."""
        defined = evaluation.truth.judgments.defined
        return defined & evaluation.labelled.present if evaluation.policy.missing == "skip" else defined


class _Marks:
    """What the results of one evaluation hit, question by question."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.truth, self.hits = evaluation.truth, evaluation.labelled.hits
        bounds = np.arange(len(self.truth) + 1)
        self.starts = np.searchsorted(self.hits.query, bounds).tolist()
        self.group_starts = np.searchsorted(self.truth.group_query, bounds).tolist()

    def groups(self, at: int) -> list[data.Group]:
        """The groups of a question, with their alternatives."""
        truth = self.truth
        first, last = self.group_starts[at], self.group_starts[at + 1]
        bounds = np.searchsorted(truth.group_of, np.arange(first, last + 1)).tolist()
        return [
            {
                "name": truth.group_label(group),
                "weight": float(truth.group_weight[group]),
                "alternatives": [(truth.ids[place], float(truth.grade[place])) for place in range(low, high)],
            }
            for group, (low, high) in enumerate(zip(bounds, bounds[1:]), first)
        ]

    def of(self, at: int) -> list[data.Mark]:
        """The marks of a question's results, by rank."""
        rows = slice(self.starts[at], self.starts[at + 1])
        found: dict[int, list[tuple[int, float, bool]]] = {}
        alternatives, repeats = self.hits.alternative[rows], self.hits.repeat[rows]
        groups = (self.truth.group_of[alternatives] - self.group_starts[at]).tolist()
        grades = self.truth.grade[alternatives].tolist()
        for rank, group, grade, repeat in zip(self.hits.rank[rows].tolist(), groups, grades, repeats.tolist()):
            found.setdefault(rank, []).append((group, grade, repeat))
        marks: list[data.Mark] = []
        met: set[int] = set()
        for rank, own in sorted(found.items()):
            relevant = [(group, repeat) for group, grade, repeat in own if grade > 0]
            new = sorted({group for group, repeat in relevant if not repeat} - met)
            if new:
                marks.append((rank, "first", new))
                met.update(new)
            elif relevant:
                marks.append((rank, "again", sorted({group for group, _ in relevant})))
            elif any(grade == 0 for _, grade, _ in own):
                marks.append((rank, "irrelevant", []))
        return marks

    def met(self, at: int) -> dict[int, int]:
        """The rank of the first hit of each group that is met."""
        return {group: rank for rank, kind, groups in self.of(at) if kind == "first" for group in groups}


def _ranking(ranking: Ranking, marks: list[data.Mark]) -> data.Ranking:
    ids, scores = ranking
    return {
        "results": len(ids),
        "ids": ids[:RESULTS],
        "scores": None if scores is None else [float(score) for score in scores[:RESULTS]],
        "marks": marks,
        "far": {rank: ids[rank - 1] for rank, _, _ in marks if RESULTS < rank <= len(ids)},
    }


def first_ranks(evaluation: Evaluation) -> Ints:
    """The rank of the first relevant result of each question, shape (Q,); 0 if there is none."""
    rows = views.met_groups(evaluation.labelled.hits)
    far = np.iinfo(np.int64).max
    first = np.full(evaluation.labelled.hits.size, far, dtype=np.int64)
    np.minimum.at(first, rows.query, rows.rank)
    return np.where(first == far, 0, first)


def _values(evaluation: Evaluation, metric: Metric) -> float:
    """The mean of a metric over the questions that count."""
    values = metric.values(evaluation.labelled.hits)
    defined = evaluation.truth.judgments.defined
    counts = defined & evaluation.labelled.present if evaluation.policy.missing == "skip" else defined
    return float(values[counts].mean()) if counts.any() else math.nan


def _steps(ranks: Ints) -> list[dict[str, Any]]:
    """The steps of the share of questions by rank; ranks of 0 never come."""
    if not len(ranks):
        return []
    distinct, counts = np.unique(ranks[ranks > 0], return_counts=True)
    shares = np.cumsum(counts) / len(ranks)
    points = [{"rank": rank, "share": share} for rank, share in zip(distinct.tolist(), shares.tolist())]
    if not points or points[0]["rank"] > 1:
        points.insert(0, {"rank": 1, "share": 0.0})
    return points


def drawing(figure: Figure) -> data.Drawing:
    """A figure with its data, for the page."""
    return {"template": figure.template, "text": figure.text, "headers": figure.headers, "rows": figure.rows}


def template(figure: Figure, texts: Mapping[str, str] | None = None) -> data.Drawing:
    """A figure without its data, which the page fills in; `texts` says which of its texts depend on what is chosen."""
    return {"template": _emptied(replaced(figure.template, texts or {}))}


def _emptied(value: Any) -> Any:
    """A template whose tables of rows are empty."""
    if isinstance(value, dict):
        if value.get("name") in FILLED:
            return {"name": value["name"], "values": []}
        return {key: _emptied(each) for key, each in value.items() if key != "description"}
    return [_emptied(each) for each in value] if isinstance(value, list) else value


def _ends(interval: Interval) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {"low": low, "high": high}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


