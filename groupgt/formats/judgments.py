"""Judgments, a row each, as qrels and tables hold them: gathered into ground truth by the readers, and written back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy

# Query, group, document, grade.
Judgment = tuple[str, str, str, float]


def gather(rows: Iterable[Judgment], policy: Policy, *, texts: dict[str, str] | None = None) -> GroundTruth:
    """Ground truth of rows; those of one query and group become a group; a label that is its number is dropped."""
    queries: dict[str, dict[str, list[Any]]] = {}
    for qid, label, document, grade in rows:
        alternative: Any = document if grade == 1 else {"id": document, "grade": grade}
        queries.setdefault(qid, {}).setdefault(label, []).append(alternative)
    groups = [
        [
            alternatives if label == str(number) else {"alternatives": alternatives, "name": label}
            for number, (label, alternatives) in enumerate(labelled.items(), 1)
        ]
        for labelled in queries.values()
    ]
    named = [texts.get(qid) for qid in queries] if texts else None
    return GroundTruth.from_rows(list(queries), groups, policy, texts=named)


def one_by_one(rows: Iterable[tuple[str, str, float]]) -> Iterable[Judgment]:
    """Every document a group of its own: how judgments without groups are read."""
    numbers: dict[str, int] = {}
    for qid, document, grade in rows:
        numbers[qid] = numbers.get(qid, 0) + 1
        yield qid, str(numbers[qid]), document, grade


def number_text(value: float) -> str:
    """A number that reads back as the same double.

    >>> number_text(2.0), number_text(1234567.25)
    ('2', '1234567.25')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
