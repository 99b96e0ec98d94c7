"""CRUX: how well each passage answers each sub-question of a query, a record for each query and passage.

The shapes are those of its files of ratings (`id`, `docid`) and of judgments (`example_id`, `pid`), each with
`rating`, a list with a number for each sub-question; a folder of such files is read as one. LANCER is evaluated by
these files too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupgt.errors import display
from groupgt.formats.checks import ids_at
from groupgt.formats.records import Questions, files_in, holds, parts_of, records
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import finite_number

# What names the query and the passage.
NAMED = (("id", "docid"), ("example_id", "pid"))
ENDINGS = (".jsonl", ".jsonl.gz")


def look(source: Source) -> str | None:
    """`truth` for a file of ratings."""
    return "truth" if any(holds(source, *names, "rating") for names in NAMED) else None


def is_folder(path: Path) -> bool:
    """Whether a folder holds ratings in its files."""
    files = files_in(path, ENDINGS)
    return bool(files) and look(Source(files[0])) == "truth"


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Each sub-question is a group, in which every passage has its rating as its grade."""
    questions = Questions()
    first: dict[str, str] = {}
    rated: dict[str, dict[str, list[Any]]] = {}
    for where, record in (row for part in parts_of(source, ENDINGS) for row in records(part, questions.faults)):
        if (ids := ids_at(record, NAMED["pid" in record], where, questions.faults)) is None:
            continue
        qid, document = ids
        ratings = questions.list_at(record, "rating", where, object)
        if not isinstance(record.get("rating"), list):
            continue
        passages = rated.setdefault(qid, {})
        expected = len(next(iter(passages.values()), ratings))
        if not questions.once((qid, document), where, f"query {qid!r}: {document!r} is rated"):
            continue
        if len(ratings) != expected:
            what = f"expected {expected} ratings, one for each sub-question, as at {first[qid]}, found {len(ratings)}"
            questions.faults.add(where, f"query {qid!r}: {what}")
        elif wrong := [cell for cell in ratings if finite_number(cell) is None]:
            questions.faults.add(where, f"query {qid!r}: expected numbers in rating, found {display(wrong[0])}")
        else:
            first.setdefault(qid, where)
            passages[document] = ratings
    for qid, passages in rated.items():
        groups = [
            [{"id": document, "grade": grade} for document, grade in zip(passages, grades)]
            for grades in zip(*passages.values())
        ]
        if passages:
            questions.add(first[qid], qid, groups)
    return questions.truth(policy)
