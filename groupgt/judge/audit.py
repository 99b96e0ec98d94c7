"""The questions of an audit: which passages may be missing alternatives, and which groups may not be needed.

Questions that are most likely to find an error come first. No answer is assumed: people answer all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from groupgt.judge.pool import Index, Rankings, fused
from groupgt.model.hits import Floats

# The suspicion added if two passages are alternatives of each other for other queries, to be multiplied by
# log₂(1 + times).
ELSEWHERE = 2.0
# A number above the suspicion of any question.
LAST = 1000.0


@dataclass(frozen=True)
class Question:
    """One question of an audit.

    `same`: does `doc` by itself do the same as the passages of this group? `needed`: is this group still needed, given
    the others? `group` is counted from 1. Questions with a higher `suspicion` come first.
    """

    qid: str
    kind: Literal["same", "needed"]
    group: int
    doc: str | None
    suspicion: float

    @property
    def item(self) -> dict[str, Any]:
        """The question in the form used in acts."""
        return {"kind": self.kind, "group": self.group, **({"doc": self.doc} if self.doc is not None else {})}


def questions(
    groups: Mapping[str, Sequence[Sequence[str]]],
    texts: Mapping[str, str],
    index: Index,
    runs: Sequence[Rankings] = (),
    size: int = 50,
    nonrelevant: Mapping[str, Sequence[str]] | None = None,
) -> list[Question]:
    """All questions about ground truth, the most suspicious first.

    Candidates for a group are the `size` passages outside it that are ranked highest for the query (by BM25 and in
    `runs`) and are most similar to its passages; passages of another group may belong to both. Their suspicion is the
    sum of rank and similarity as standard scores, and higher if they are alternatives of its passages for another
    query. Groups are compared by their most similar passages.

    Args:
        groups: The relevant passages of each group of each query.
        texts: The text of each query.
        index: The corpus.
        runs: Results of systems.
        size: The number of candidates of each group.
        nonrelevant: The passages of each query that are judged not relevant; questions about them come last.
    """
    elsewhere = _alternatives_elsewhere(groups)
    found: list[Question] = []
    for qid, own in groups.items():
        wanted = _wanted(index, texts.get(qid, ""), [run.get(qid, ()) for run in runs])
        for number, group in enumerate(own, 1):
            present = [doc for doc in group if doc in index.number]
            if present:
                for each in _candidates(qid, number, present, wanted, elsewhere, index, size):
                    is_judged = each.doc in (nonrelevant or {}).get(qid, ())
                    found.append(replace(each, suspicion=each.suspicion - LAST) if is_judged else each)
            if present and any(shown_for(own, place) != shown_for(own, number) for place in range(1, len(own) + 1)):
                found.append(Question(qid, "needed", number, None, _overlap(own, number - 1, index)))
    # All groups come before all candidates, because there are few of them.
    return sorted(found, key=lambda each: (each.kind != "needed", -each.suspicion))


def _own(own: Sequence[Sequence[str]], number: int) -> list[str]:
    """The passages of a group that are in no other group of its query."""
    others = {doc for place, group in enumerate(own, 1) if place != number for doc in group}
    return [doc for doc in own[number - 1] if doc not in others]


def shown_for(own: Sequence[Sequence[str]], number: int) -> str:
    """The passage that represents a group: one that is in no other group, if there is one."""
    return next(iter(_own(own, number)), own[number - 1][0])


def reference(own: Sequence[Sequence[str]], number: int, doc: str, index: Index) -> tuple[str, bool]:
    """The passage of a group to compare a candidate with, and whether the two share another group of the query.

    The most similar passage is chosen, if possible among those that do not share another group: passages that do the
    same for another part of the query may not do so for this one.
    """
    others = [group for place, group in enumerate(own, 1) if place != number and doc in group]
    present = [each for each in own[number - 1] if each in index.number]
    free = [each for each in present if not any(each in group for group in others)]
    like = index.likeness(doc)
    return max(free or present, key=lambda each: like[index.number[each]]), not free


def _alternatives_elsewhere(groups: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Counter[str]]:
    """How often two passages are alternatives of each other."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for own in groups.values():
        for group in own:
            for doc in group:
                counts[doc].update(other for other in group if other != doc)
    return counts


def _standard(values: Floats) -> Floats:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _wanted(index: Index, text: str, rankings: Sequence[Sequence[str]]) -> Floats:
    """How highly each passage is ranked for a query, as a standard score."""
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
    wanted: Floats,
    elsewhere: Mapping[str, Counter[str]],
    index: Index,
    size: int,
) -> list[Question]:
    is_free = np.ones(len(index.ids), dtype=np.bool_)
    is_free[[index.number[doc] for doc in group]] = False
    alike = np.max([index.likeness(doc) for doc in group], axis=0)
    suspicion = wanted + _standard(np.where(is_free, alike, 0))
    known: Counter[str] = Counter()
    for doc in group:
        known |= elsewhere[doc]
    for other, times in known.items():
        if other in index.number:
            suspicion[index.number[other]] += ELSEWHERE * np.log2(1 + times)
    suspicion[~is_free] = -np.inf
    best = [place for place in np.argsort(-suspicion, kind="stable")[:size].tolist() if is_free[place]]
    return [Question(qid, "same", number, index.ids[place], float(suspicion[place])) for place in best]


def _overlap(own: Sequence[Sequence[str]], place: int, index: Index) -> float:
    """The highest similarity, as a mean of both directions, of a passage of a group and one of another group."""
    others = [doc for at, group in enumerate(own) if at != place for doc in group if doc in index.number]
    pairs = [
        (index.likeness(doc)[index.number[other]] + index.likeness(other)[index.number[doc]]) / 2
        for doc in own[place]
        if doc in index.number
        for other in others
    ]
    return float(max(pairs, default=0.0))
