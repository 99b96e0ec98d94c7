"""Asks which passages may be missing alternatives and which groups may not be needed, likeliest errors first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from groupgt.judge.index import Index
from groupgt.judge.pool import Rankings, fused
from groupgt.model.hits import Floats

# The suspicion added if two passages are alternatives of each other for other queries, to be multiplied by
# log₂(1 + times).
ELSEWHERE_SUSPICION = 2.0


@dataclass(frozen=True)
class Question:
    """A question: does `doc` alone do the `same` job as group number `group`, or is that group still `needed`?"""

    qid: str
    kind: Literal["same", "needed"]
    group: int
    doc: str | None
    suspicion: float

    @property
    def item(self) -> dict[str, Any]:
        """The question as recorded in acts."""
        return {"kind": self.kind, "group": self.group, **({"doc": self.doc} if self.doc is not None else {})}


def questions(
    groups: Mapping[str, Sequence[Sequence[str]]],
    texts: Mapping[str, str],
    index: Index,
    runs: Sequence[Rankings] = (),
    size: int = 50,
    nonrelevant: Mapping[str, Sequence[str]] | None = None,
) -> list[Question]:
    """Return all audit questions. Groups come before candidates, and the most suspicious of each come first.

    Candidates for a group are the `size` passages outside the group that rank highest for the query (by BM25 and in
    `runs`) and are most similar to its passages. A candidate's suspicion is the sum of its rank and similarity as
    standard scores. The suspicion is higher if the candidate is an alternative to the group's passages for another
    query. Questions about `nonrelevant` come last.
    """
    # For each passage, how often others are its alternatives.
    elsewhere: dict[str, Counter[str]] = defaultdict(Counter)
    for group in chain.from_iterable(groups.values()):
        for doc in group:
            elsewhere[doc].update(other for other in group if other != doc)
    suspicious: list[Question] = []
    for qid, query_groups in groups.items():
        relevance = _relevance(index, texts.get(qid, ""), [run.get(qid, ()) for run in runs])
        shown = [shown_for(query_groups, number) for number in range(1, len(query_groups) + 1)]
        for number, group in enumerate(query_groups, 1):
            present = [doc for doc in group if doc in index.number]
            if not present:
                continue
            suspicious += _candidates(qid, number, present, relevance, elsewhere, index, size)
            if len(set(shown)) > 1:
                suspicious.append(Question(qid, "needed", number, None, _overlap(query_groups, number - 1, index)))
    # All groups come before all candidates, because there are few of them.
    judged = nonrelevant or {}
    return sorted(
        suspicious, key=lambda each: (each.kind != "needed", each.doc in judged.get(each.qid, ()), -each.suspicion)
    )


def shown_for(groups: Sequence[Sequence[str]], number: int) -> str:
    """Return the passage that represents a group, preferably one that is in no other group."""
    *before, group = groups[:number]
    others = set(chain(*before, *groups[number:]))
    return next((doc for doc in group if doc not in others), group[0])


def reference(groups: Sequence[Sequence[str]], number: int, doc: str, index: Index) -> tuple[str, bool]:
    """Return a group's passage that is most similar to a candidate, and whether the two also share another group."""
    *before, group = groups[:number]
    others = set(chain.from_iterable(other for other in (*before, *groups[number:]) if doc in other))
    present = [member for member in group if member in index.number]
    free = [member for member in present if member not in others]
    likeness = index.likeness(doc)
    return max(free or present, key=lambda member: likeness[index.number[member]]), not free


def _standard(values: Floats) -> Floats:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _relevance(index: Index, text: str, rankings: Sequence[Sequence[str]]) -> Floats:
    """Return each passage's relevance to a query, from BM25 and runs, as a standard score."""
    by_text = _standard(index.scores(text))
    if not rankings:
        return by_text
    by_runs = np.zeros(len(index.ids))
    for doc, score in fused(rankings).items():
        if doc in index.number:
            by_runs[index.number[doc]] = score
    return (by_text + _standard(by_runs)) / 2


def _candidates(
    qid: str,
    number: int,
    group: Sequence[str],
    relevance: Floats,
    elsewhere: Mapping[str, Counter[str]],
    index: Index,
    size: int,
) -> list[Question]:
    is_free = np.ones(len(index.ids), dtype=np.bool_)
    is_free[[index.number[doc] for doc in group]] = False
    likeness = np.max([index.likeness(doc) for doc in group], axis=0)
    suspicion = relevance + _standard(np.where(is_free, likeness, 0))
    alternatives: Counter[str] = Counter()
    for doc in group:
        alternatives |= elsewhere[doc]
    for other, times in alternatives.items():
        if other in index.number:
            suspicion[index.number[other]] += ELSEWHERE_SUSPICION * np.log2(1 + times)
    suspicion[~is_free] = -np.inf
    best = [row for row in np.argsort(-suspicion, kind="stable")[:size].tolist() if is_free[row]]
    return [Question(qid, "same", number, index.ids[row], float(suspicion[row])) for row in best]


def _overlap(groups: Sequence[Sequence[str]], position: int, index: Index) -> float:
    """Return the highest similarity of a passage in this group to one in another, averaged over both directions."""
    pairs = [
        (index.likeness(doc)[index.number[other]] + index.likeness(other)[index.number[doc]]) / 2
        for doc in groups[position]
        for other in chain(*groups[:position], *groups[position + 1 :])
        if doc in index.number and other in index.number
    ]
    return float(max(pairs, default=0.0))
