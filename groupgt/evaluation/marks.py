"""What each result of an evaluation hits, and the groups of each question: the details that the page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from groupgt.engines.base import Ranking, all_rankings, carrier_of
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.systems import Systems
from groupgt.model.hits import Ints
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
        self._groups = np.searchsorted(self.truth.group_query, bounds).tolist()

    def groups(self, question: int) -> list[data.Group]:
        """The groups of a question as they were given, with their alternatives."""
        truth = self.truth
        first, last = self._groups[question], self._groups[question + 1]
        bounds = np.searchsorted(truth.group_of, np.arange(first, last + 1)).tolist()
        return [
            {
                "name": truth.group_label(group),
                "weight": float(truth.group_weight[group]),
                "alternatives": [(truth.ids[place], float(truth.grade[place])) for place in range(low, high)],
            }
            for group, (low, high) in enumerate(pairwise(bounds), first)
        ]

    def of(self, question: int) -> list[data.Mark]:
        """The marks of a question's results, by rank; results that are not judged have none."""
        rows = slice(self._rows[question], self._rows[question + 1])
        hits: dict[int, list[tuple[int, float, bool]]] = {}
        alternatives, repeats = self.hits.alternative[rows], self.hits.repeat[rows]
        groups = (self.truth.group_of[alternatives] - self._groups[question]).tolist()
        grades = self.truth.grade[alternatives].tolist()
        for rank, group, grade, repeat in zip(self.hits.rank[rows].tolist(), groups, grades, repeats.tolist()):
            hits.setdefault(rank, []).append((group, grade, repeat))
        marks: list[data.Mark] = []
        met: set[int] = set()
        for rank, own in sorted(hits.items()):
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

    def met(self, question: int) -> dict[int, int]:
        """The rank of the first hit of each group that is met."""
        return {group: rank for rank, kind, groups in self.of(question) if kind == "first" for group in groups}


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
            worked = [_worked(each, at) for each in systems.every]
        yield {
            "question": place_of[at],
            "groups": marks[0].groups(at),
            "rankings": [_ranking(own[qid], mark.of(at)) if qid in own else None for own, mark in zip(rankings, marks)],
            "worked": worked,
        }


def _worked(evaluation: Evaluation, question: int) -> list[str | None]:
    hits = evaluation.labelled.hits
    return [metric.explanation(hits, question) for metric in evaluation.metrics.values()]


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
