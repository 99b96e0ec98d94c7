"""Reads JSON objects that map queries to grades, groups, scores or lists of ids, as ranx and other tools write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats.columns import Lists
from groupgt.formats.fields import result_fault
from groupgt.formats.jsonl import OF_RUNS, RANKED, WRAPPERS, add_ranking, object_of, with_lists
from groupgt.formats.records import first_keys, keys_of
from groupgt.formats.roles import NAMES, roles_in
from groupgt.formats.rows import RunBuilder
from groupgt.formats.source import Record, Source
from groupgt.formats.tables import Judged, Table, grades_of, truth_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import are_texts, finite_number, id_fault

# A query whose value is a mapping or a list; JSON Lines objects have their own keys.
_MAPPING = re.compile(
    rb'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(?:\[|\{\s*(?:\}|"((?:[^"\\]|\\.)*)"\s*:\s*(-?[0-9.]+|["\[]|null)))'
)
# A list such as `["a", 0.9]`: a result with its score, or a group that is refused.
_PAIR = re.compile(r'\[\s*"(?:[^"\\]|\\.)*"\s*,\s*[-0-9.]+')
# Metrics of a query, which other tools save like the scores of its documents. Names such as `P_5` may be documents.
_METRIC = re.compile(r"(?i:n?dcg|map|mrr|recall|p|precision|hit_rate|success|recip_rank|bpref|f1)([@_](cut_)?\d+)?")
OUR_KEYS = {b"qid", b"retrieval_gt", b"retrieved_ids", b"doc_id", b"_id", b"id", b"query"}
_FIELDS = {name.encode() for kind in NAMES.values() for known in kind.values() for name in known} - {b"results"}


# The scale of ratings, in which −1 marks those that a model omitted, and the error message for them.
SCALE = range(-1, 6)
RATINGS = (
    "expected groups of ids, found rows of ratings, as LANCER saves them: one row per result, one number per "
    "sub-question. The rows contain no document ids, so rankings cannot be evaluated. To evaluate LANCER, use CRUX's "
    "rating files (format crux)"
)


def look_mapped(source: Source) -> str | None:
    """Return `truth`, `run` or `either` for a JSON object keyed by query, depending on its values."""
    begin = _MAPPING.match(source.head())
    if begin is None or (begin[0].endswith(b"[") and begin[1].decode("utf-8", "replace") in (*WRAPPERS, *OF_RUNS)):
        return None
    name, value = begin[2], begin[3]
    is_number = value is not None and value[:1] not in b'"[n'
    if begin[1] in OUR_KEYS or (begin[1] in _FIELDS and not is_number):
        return None
    keys = first_keys(source.head()[begin[0].rindex(b"{") :].decode("utf-8", "replace"))
    if name and all(map(_METRIC.fullmatch, keys)) and not all(re.search(r"_\d+$", key) for key in keys):
        return None  # the scores of queries, not of documents
    if any(keys_of(source).get(name) for name in (*NAMES["run"]["qid"], "id", "_id")):
        return None  # one record
    if value is None:
        inner = source.head()[begin.end() :].decode("utf-8", "replace").lstrip()
        roles = roles_in(list(first_keys(inner)), "run") if inner.startswith("{") else {}
        if {"score", "rank"} & roles.keys():
            return "run"
        if _PAIR.match(inner) or ("doc_id" in roles and "grade" not in roles_in(list(first_keys(inner)), "truth")):
            return "either"  # results, or groups that lack their inner lists
        return "truth" if inner.startswith(("[", "{")) else "either"
    if name.decode("utf-8", "replace") in NAMES["truth"]["retrieval_gt"]:
        return "truth"
    return "run" if b"." in value else "either"


def read_mapped_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read `{qid: {id: grade}}` (each document is its own group), `{qid: groups}` or `{qid: {"relevant_ids": …}}`."""
    rows = _by_query(source)
    if _are_ratings(rows.values()):
        raise DataError(f"{source.path}: {RATINGS}")
    records = {qid: row for qid, row in rows.items() if isinstance(row, dict) and roles_in(row, "truth")}
    # Records with a list of relevant ids, not grades by document.
    has_lists = any(not isinstance(cell, (int, float, str)) for row in records.values() for cell in row.values())
    if has_lists and all(isinstance(row, (list, dict)) for row in rows.values()):
        located = (
            (f"{source.path}: query {display(qid)}", {"qid": qid, **(row if isinstance(row, dict) else {})})
            for qid, row in rows.items()
        )
        return truth_of(Table.of_records(str(source.path), located, declared=source.columns), policy)
    if rows and not any(isinstance(row, dict) for row in rows.values()):
        cells = [cell for row in rows.values() if isinstance(row, list) for cell in row if isinstance(cell, str)]
        if cells and are_texts(cells[:20]):
            what = f"its lists contain text, such as {display(cells[0])}, not document ids"
            way = 'write passage text as {"text": …} and match it with the text labeller'
            raise DataError(f"{source.path}: {what}; {way}")
        return GroundTruth.from_rows(list(rows), list(rows.values()), policy, place=lambda _: str(source.path))
    faults = Faults()
    judgments: list[tuple[str, str, Any]] = []
    for qid, row in rows.items():
        if isinstance(row, dict):
            judgments += [(qid, document, cell) for document, cell in row.items()]
        else:
            what = f"expected {{id: grade}}, as for other queries, found {display(row)}"
            faults.add(f"{source.path}: query {display(qid)}", what)
    qids, documents, cells = map(list, zip(*judgments)) if judgments else ([], [], [])
    judged = Judged(qids, documents, cells, grades_of(cells, text=False), None, lambda _: str(source.path))
    return judged.truth(policy, "flat", faults, more_qids=rows)


def read_mapped_run(source: Source) -> Run:
    """Read scores by document (as ranx writes them), or lists of ids, pairs or objects with scores, best first."""
    builder = RunBuilder()
    faults = builder.faults
    kinds = set()
    for qid, row in _by_query(source).items():
        where = f"{source.path}: query {display(qid)}"
        if fault := id_fault(qid):
            faults.add(where, f"the query id {fault}")
        elif isinstance(row, list) or (isinstance(row, dict) and isinstance(row.get(RANKED), list)):
            kinds.add("lists")
            record = row if isinstance(row, dict) else {RANKED: row}
            add_ranking(builder, qid, with_lists(record, RANKED, {}, Lists(faults), where), RANKED, where)
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
        else:
            faults.add(where, f"expected {{id: score}} or a list of ids, found {display(row)}")
    faults.stop()
    if len(kinds) > 1:
        raise DataError(f"{source.path}: some queries have scores and some do not; add scores to all of them, or none")
    return builder.run(source)


def _are_ratings(values: Iterable[Any]) -> bool:
    """Return whether values are rating matrices, whose rows contain small numbers that, unlike ids, mostly repeat."""
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


def _by_query(source: Source) -> Record:
    source.warn_if_empty("queries")
    return object_of(source, "one JSON object keyed by query")
