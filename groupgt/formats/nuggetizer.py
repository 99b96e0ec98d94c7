"""nuggetizer: nuggets of questions, and which retrieved passages support them.

`assign` writes, for each question and passage, how far the passage supports each nugget: only this names documents.
`create` writes nuggets alone, which are read as texts. What `assign` says of answers names no document at all.
"""

from __future__ import annotations

from typing import Any

from groupgt.errors import DataError, display, listed
from groupgt.formats.checks import ids_at
from groupgt.formats.records import Questions, holds, keys_of, records
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy

GRADES = {"support": 2, "partial_support": 1, "not_support": 0}
# What the program writes where its model gave no usable answer: the passage stays unjudged.
FAILED = "failed"


def look(source: Source) -> str | None:
    """`truth` for a file of this format."""
    return "truth" if holds(source, "qid", "nuggets") else None


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Each nugget is a group, `vital` or `okay`; `support` is the grade 2, `partial_support` 1, `not_support` 0."""
    keys = keys_of(source).keys()
    if "docid" not in keys and keys & {"answer_text", "run_id"}:
        what = "these assignments judge answers, and name no documents"
        raise DataError(f"{source.path}: {what}; assign retrieved passages: nuggetizer assign --input-kind retrieval")
    return _assigned(source, policy) if "docid" in keys else _created(source, policy)


def _created(source: Source, policy: Policy) -> GroundTruth:
    """Nuggets without documents: texts, for a labeller that compares texts."""
    questions = Questions()
    for where, record in records(source, questions.faults):
        groups = []
        for nugget in questions.list_at(record, "nuggets", where, dict):
            text, importance = nugget.get("text"), nugget.get("importance")
            groups.append({"alternatives": [{"text": text}], "name": text, "importance": importance})
        questions.add(where, record.get("qid"), groups, record.get("query"))
    return questions.truth(policy)


def _assigned(source: Source, policy: Policy) -> GroundTruth:
    """One question and passage a record."""
    questions = Questions()
    judged: dict[str, dict[str, dict[str, int]]] = {}
    first: dict[str, tuple[str, Any]] = {}
    for where, record in records(source, questions.faults):
        if (ids := ids_at(record, ("qid", "docid"), where, questions.faults)) is None:
            continue
        qid, document = ids
        if not questions.once((qid, document), where, f"query {qid!r}: {document!r} is assigned"):
            continue
        first.setdefault(qid, (where, record.get("text", record.get("query"))))
        nuggets = judged.setdefault(qid, {})
        for number, nugget in enumerate(questions.list_at(record, "nuggets", where, dict), 1):
            text, assignment = nugget.get("text"), nugget.get("assignment")
            if not isinstance(text, str):
                questions.faults.add(where, f"expected a string as the text of a nugget, found {display(text)}")
            elif assignment in (*GRADES, FAILED):
                place = f"{where}, nugget {number}"
                questions.is_important(qid, text, nugget.get("importance"), place)
                documents = nuggets.setdefault(text, {})
                what = f"query {qid!r}: of the nugget {display(text)} {document!r} says"
                if assignment != FAILED and questions.agrees((qid, document, text), assignment, place, what):
                    documents[document] = GRADES[assignment]
            else:
                known = listed((*GRADES, FAILED))
                questions.faults.add(where, f"expected {known} as the assignment, found {display(assignment)}")
    for qid, nuggets in judged.items():
        groups = [
            {
                "alternatives": [{"id": name, "grade": grade} for name, grade in documents.items()],
                "name": text,
                "importance": questions.importance_of(qid, text),
            }
            for text, documents in nuggets.items()
        ]
        questions.add(first[qid][0], qid, groups, first[qid][1])
    return questions.truth(policy)
