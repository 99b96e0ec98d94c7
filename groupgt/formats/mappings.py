"""JSON objects keyed by query id, which ranx uses for runs and qrels: `{"q1": {"d1": 0.9, …}, …}`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from groupgt.errors import DataError, display
from groupgt.formats.checks import Judgments, ranking, result_fault
from groupgt.formats.jsonl import object_of
from groupgt.formats.rows import RunBuilder, gather
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import are_texts, finite_number, id_fault

# A query whose value is a mapping of numbers, or a list; JSON Lines objects have their own keys.
_BEGIN = re.compile(rb'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(\{\s*("(?:[^"\\]|\\.)*"\s*:\s*(-?[0-9.]+)|\})|\[)')
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?')
_FIELDS = {b"qid", b"retrieval_gt", b"retrieved_ids", b"doc_id", b"_id", b"id", b"query"}


# The scale of ratings, in which −1 marks those that a model omitted, and the error message for them.
SCALE = range(-1, 6)
RATINGS = (
    "expected groups of ids, found rows of ratings, as LANCER saves them: one row per result, one number per "
    "sub-question. They do not name documents, so rankings cannot be evaluated; LANCER is evaluated by the "
    "ratings of CRUX, whose files are read (format crux)"
)


def kind_of(source: Source) -> str | None:
    """Return `truth` or `run` for a JSON object keyed by query; `either` if its numbers are integers."""
    begin = _BEGIN.match(source.head())
    if begin is None or begin[1] in _FIELDS:
        return None
    if begin[2].startswith(b"["):
        return "truth" if re.match(rb"\s*[\[{]", source.head()[begin.end() :]) else "run"
    return "run" if begin[4] and b"." in begin[4] else "either"


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read grades by document, where each document is its own group, or read groups as in the Python API."""
    rows = _by_query(source)
    if _are_ratings(rows.values()):
        raise DataError(f"{source.path}: {RATINGS}")
    if rows and not any(isinstance(row, dict) for row in rows.values()):
        return GroundTruth.from_rows(list(rows), list(rows.values()), policy, place=lambda _: str(source.path))
    judgments = Judgments()
    for qid, row in rows.items():
        if not isinstance(row, dict):
            what = f"expected {{id: grade}}, as other queries have it, found {display(row)}"
            judgments.faults.add(f"{source.path}: query {display(qid)}", what)
            continue
        for document, cell in row.items():
            judgments.add(source.path, qid, "", document, finite_number(cell), cell)
    return gather(judgments.rows(), policy, qids=rows, shape="flat")


def read_run(source: Source) -> Run:
    """Read scores by document, as ranx writes them, or lists of ids, best first."""
    builder = RunBuilder()
    faults = builder.faults
    kinds = set()
    for qid, row in _by_query(source).items():
        where = f"{source.path}: query {display(qid)}"
        if fault := id_fault(qid):
            faults.add(where, f"the query id {fault}")
        elif isinstance(row, dict):
            kinds.add("scores")
            builder.add_ranking(qid, [], [])
            for document, cell in row.items():
                score = finite_number(cell)
                order = "score" if score is not None else f"score of {display(document)}"
                if fault := result_fault(qid, document, score, cell, order):
                    faults.add(where, fault)
                elif score is not None:
                    builder.add(qid, document, score)
        elif isinstance(row, list):
            kinds.add("lists")
            builder.add_ranking(qid, ranking(row, where, faults))
        else:
            faults.add(where, f"expected {{id: score}} or a list of ids, found {display(row)}")
    faults.stop()
    if len(kinds) > 1:
        raise DataError(f"{source.path}: some queries have scores and some do not; use one of the two throughout")
    return builder.run(source)


def first_text(source: Source) -> str:
    """Return the first string in the lists if most strings are texts rather than ids; otherwise an empty string."""
    begin = _BEGIN.match(source.head())
    start = begin.end() if begin is not None else 0
    cells = [cell for cell, is_key in _STRING.findall(source.head()[start:]) if not is_key]
    strings = [cell.decode("utf-8", "replace") for cell in cells[:20]]
    return strings[0] if are_texts(strings) else ""


def _are_ratings(values: Iterable[Any]) -> bool:
    """Return whether values are rating matrices: complete rows of small numbers that, unlike ids, mostly repeat."""
    rows = []
    for matrix in values:
        if not isinstance(matrix, list) or len(matrix) < 2 or not all(isinstance(row, list) for row in matrix):
            return False
        if len({len(row) for row in matrix}) > 1:
            return False
        rows += matrix
    if not all(type(cell) is int and cell in SCALE for row in rows for cell in row):
        return False
    return 2 * sum(len(set(row)) < len(row) for row in rows) > len(rows)


def _by_query(source: Source) -> dict[str, Any]:
    """Return the JSON object in a file; raises `DataError` if there is none."""
    source.warn_if_empty("queries")
    return object_of(source, "one JSON object keyed by query")
