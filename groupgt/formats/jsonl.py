"""JSON Lines files with one query per line (ground truth or nested results) or one result per line.

JSON objects keyed by query id, which ranx uses for runs and qrels, can also be read: `{"q1": {"d1": 0.9, …}, …}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats.fields import (
    CALL_LIST,
    NESTED,
    SCORES,
    Judgments,
    calls_fault,
    fields_of,
    lists_of,
    ranking,
    result_fault,
    score_of,
    units_of,
)
from groupgt.formats.names import rename_hint
from groupgt.formats.rows import SHAPE, Calls, Ranking, RunBuilder, gather, shape_of, truth_of_rows, write_lines
from groupgt.formats.source import Record, Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import are_texts, finite_number, id_fault, id_text
from groupgt.model.values import CALLS, SCORE

NONRELEVANT = "nonrelevant"
RUN_KEYS = "qid and retrieved_ids (a line per query), or qid, doc_id and score or rank (a line per result)"


def objects(source: Source, faults: Faults) -> Iterator[tuple[str, Record]]:
    """Yield each object or JSON array element with its location; anything else is collected as an error."""
    source.warn_if_empty("lines")
    decoder = json.JSONDecoder(object_pairs_hook=distinct_keys, parse_constant=no_constant)
    for where, text in _elements(source, faults) if is_array(source) else source.located_lines():
        try:
            # Most lines contain only an object; `decode` also handles surrounding blanks.
            value, end = decoder.raw_decode(text) if text[0] == "{" else (None, 0)
            value = value if end == len(text) else decoder.decode(text)
        except (ValueError, RecursionError) as error:
            faults.add(where, f"expected a JSON object: {json_fault(error)}")
            continue
        if not isinstance(value, dict):
            faults.add(where, f"expected a JSON object, found {display(value)}")
        # A lone surrogate can only come from an escape.
        elif "\\u" in text and has_surrogate(value):
            faults.add(where, "contains a lone surrogate")
        else:
            yield where, value


def is_array(source: Source) -> bool:
    """Return whether a file is one JSON array of objects rather than one object per line."""
    return _ARRAY.match(source.head()) is not None


def _elements(source: Source, faults: Faults) -> Iterator[tuple[str, str]]:
    """Yield each element of a JSON array as text, with the location of its first character."""
    source.check_text()
    text = source.data.decode()
    scan = json.JSONDecoder().raw_decode
    position, line, counted = text.index("[") + 1, 1, 0
    where = f"{source.path}:{line}"
    while True:
        begin = _BLANKS.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing at least
        if text.startswith("]", begin):
            rest = text[begin + 1 :].strip()
            if rest:
                faults.add(where, f"expected the end after the array, found {display(rest)}")
            return
        line, counted = line + text.count("\n", counted, begin), begin
        where = f"{source.path}:{line}"
        try:
            _, position = scan(text, begin)
        except (ValueError, RecursionError) as error:
            faults.add(where, f"expected an element of the JSON array: {json_fault(error)}")
            return
        yield where, text[begin:position]
        separator = _SEPARATOR.match(text, position)
        if separator is None:
            faults.add(where, "expected a comma or the end of the JSON array")
            return
        position = separator.end()


_BLANKS = re.compile(r"[ \t\r\n]*")
_SEPARATOR = re.compile(r"[ \t\r\n]*(?:,|(?=\]))")
_ARRAY = re.compile(rb"\s*\[\s*(\{|\]|\Z)")


def _keys_of(row: Record, expected: Sequence[str]) -> str:
    return (", ".join(row) or "no keys") + rename_hint(row, expected)


def distinct_keys(pairs: list[tuple[str, Any]]) -> Record:
    """Build a JSON object; raises `ValueError` for a duplicate key."""
    cells = dict(pairs)
    if len(cells) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"duplicate key {twice!r}")
    return cells


def no_constant(text: str) -> float:
    """Raise `ValueError` for NaN and Infinity, which Python accepts although they are not valid JSON."""
    raise ValueError(f"{text} is not a JSON number")


def json_fault(error: ValueError | RecursionError) -> str:
    """Explain why a text is not valid JSON."""
    return "the nesting is too deep" if isinstance(error, RecursionError) else str(error)


def object_of(source: Source, expected: str = "a JSON object") -> Record:
    """Return the only object in a file; raises `DataError` if the file does not contain exactly one object."""
    source.check_text()
    try:
        value = json.loads(source.data, object_pairs_hook=distinct_keys, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source.path}: expected {expected}: {json_fault(error)}") from None
    if not isinstance(value, dict):
        raise DataError(f"{source.path}: expected {expected}, found {display(value)}")
    if b"\\u" in source.data and has_surrogate(value):
        raise DataError(f"{source.path}: contains a lone surrogate")
    return value


def has_surrogate(value: Any) -> bool:
    """Return whether any text in a value contains a lone surrogate."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read lines of `{"qid", "query", "retrieval_gt", …}`; other keys become columns."""
    faults = Faults()
    places: list[str] = []
    rows: list[Record] = []
    for where, row in objects(source, faults):
        if "qid" not in row or "retrieval_gt" not in row:
            what = f"expected the keys qid and retrieval_gt, found {_keys_of(row, ('qid', 'retrieval_gt'))}"
            faults.add(where, what)
            continue
        places.append(where)
        rows.append(row)
        ids = row.get(NONRELEVANT)
        if isinstance(ids, list):
            # Documents judged non-relevant follow as groups with grade 0.
            row["retrieval_gt"] = [*_listed(row["retrieval_gt"]), *([{"id": name, "grade": 0}] for name in ids)]
        elif ids is not None:
            faults.add(where, f"expected {NONRELEVANT} to be a list, found {display(ids)}")
    truth = truth_of_rows(rows, policy, faults, places.__getitem__)
    # Older files mark flat ground truth this way.
    is_flat = not all(row.get("declared", True) for row in rows)
    shape = shape_of((row.get(SHAPE) for row in rows), "flat" if is_flat else "groups", source.path)
    return replace(truth, shape=shape)


def read_run(source: Source) -> Run:
    """Read lines of `{"qid", "retrieved_ids"[, "retrieve_scores"]}` or `{"qid", "doc_id", "score" | "rank"}`."""
    builder = RunBuilder()
    faults = builder.faults
    nested = False
    orders: set[str] = set()
    for where, row in objects(source, faults):
        keys = [name for name in NESTED if name in row]
        if "qid" not in row or not (keys or "doc_id" in row):
            expected = ("qid", "retrieved_ids", "doc_id", "score")
            faults.add(where, f"expected the keys {RUN_KEYS}, found {_keys_of(row, expected)}")
            continue
        qid = id_text(row["qid"])
        if qid is None or id_fault(qid):
            fault = "" if qid is None else f", which {id_fault(qid)}"
            faults.add(where, f"expected a qid (a string or integer), found {display(row['qid'])}{fault}")
            continue
        where = f"{where}: query {display(qid)}"
        if len(keys) > 1:
            faults.add(where, f"expected one list of results, found {' and '.join(keys)}; keep only one")
        elif keys:
            if nested and qid in builder.ids:
                faults.add(where, "duplicate query")
            nested = True
            units, others = lists_of(row)
            lengths = {field.name: list(map(field.number, _listed(row[field.nested]))) for field in units}
            fields = {field.name: _listed(row[field.nested]) for field in others}
            if row.get(SCORES) is not None:
                fields[SCORE] = _listed(row[SCORES])
            ids = _ids_of(row, keys[0], where, faults)
            size = len(_listed(row[keys[0]]))
            if CALLS in lengths and (error := calls_fault(lengths[CALLS], size, in_order=True)):
                faults.add(where, error)
            builder.add_ranking(qid, ids, None, lengths, fields)
        else:
            order = "score" if row.get("score") is not None else "rank"
            orders.add(order)
            document, score = id_text(row.get("doc_id")), score_of(row)
            if document is None:
                faults.add(where, f"expected a doc_id (a string or integer), found {display(row['doc_id'])}")
            elif row.get(order) is None:
                faults.add(where, "expected a finite number as score or rank, found neither")
            elif error := result_fault(qid, document, score, row[order], order, row.get("call", 1)):
                faults.add(where, error)
            elif score is not None and not nested:
                builder.add(qid, document, score, units_of(row), fields_of(row))
    faults.stop()
    if nested and orders:
        raise DataError(f"{source.path}: some lines have retrieved_ids and some doc_id; use one of the two throughout")
    if len(orders) > 1:
        raise DataError(f"{source.path}: some lines have a score and some only a rank; use one of the two throughout")
    return builder.run(source)


def _listed(cell: Any) -> list[Any]:
    """Return a cell if it is a list; invalid lists are reported where they are used."""
    return cell if isinstance(cell, list) else []


def _ids_of(row: Record, key: str, where: str, faults: Faults) -> list[str]:
    """Return the result ids of a query, best first; invalid ids and scores are collected as errors."""
    cells = row[key]
    if cells is None:
        return []
    if not isinstance(cells, list):
        faults.add(where, f"expected {key} to be a list of ids, found {display(cells)}")
        return []
    ids = ranking(cells, where, faults)
    scores = row.get(SCORES)
    if scores is None:
        return ids
    if not isinstance(scores, list):
        faults.add(where, f"expected {SCORES} to be a list of numbers, found {display(scores)}")
    elif len(scores) != len(cells):
        faults.add(where, f"expected as many {SCORES} as {key} ({len(cells)}), found {len(scores)}")
    elif any(score_of({"score": score}) is None for score in scores):
        faults.add(where, f"expected finite numbers as {SCORES}")
    return ids


def write_objects(path: Path, rows: Iterable[Record]) -> None:
    """Write one object per line."""
    write_lines(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write one query per line, including all columns that were read."""
    write_objects(path, _truth_rows(truth))


def _truth_rows(truth: GroundTruth) -> Iterator[Record]:
    for position, (qid, groups) in enumerate(truth.items()):
        row: Record = {"qid": qid}
        if truth.texts:
            row["query"] = truth.texts[position]
        row["retrieval_gt"] = groups
        if NONRELEVANT in truth.keys:
            row["retrieval_gt"] = [group for group in groups if not _only_nonrelevant(group)]
            row[NONRELEVANT] = [document["id"] for group in groups if _only_nonrelevant(group) for document in group]
        if truth.excluded:
            row["excluded_ids"] = sorted(truth.excluded[position])
        if truth.shape != "groups":
            row[SHAPE] = truth.shape
        row |= {name: values[position] for name, values in truth.columns.items()}
        yield {**{key: row[key] for key in truth.keys if key in row}, **row}


def _only_nonrelevant(group: Any) -> bool:
    if not isinstance(group, list):
        return False
    return all(isinstance(cell, dict) and cell.get("grade") == 0 and "id" in cell for cell in group)


def write_run(path: Path, rankings: Iterable[Ranking], *, scored: bool, calls: Calls | None = None) -> None:
    """Write one query per line; scores and calls are written only if present."""
    rows = (
        {"qid": qid, "retrieved_ids": ids}
        | ({SCORES: scores} if scored else {})
        | ({CALL_LIST: list(calls[qid])} if calls else {})
        for qid, ids, scores in rankings
    )
    write_objects(path, rows)


# A query whose value is a mapping of numbers, or a list; JSON Lines objects have their own keys.
_MAPPING = re.compile(rb'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(\{\s*("(?:[^"\\]|\\.)*"\s*:\s*(-?[0-9.]+)|\})|\[)')
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?')
_FIELDS = {b"qid", b"retrieval_gt", b"retrieved_ids", b"doc_id", b"_id", b"id", b"query"}


# The scale of ratings, in which −1 marks those that a model omitted, and the error message for them.
SCALE = range(-1, 6)
RATINGS = (
    "expected groups of ids, found rows of ratings, as LANCER saves them: one row per result, one number per "
    "sub-question. They do not name documents, so rankings cannot be evaluated; LANCER is evaluated by the "
    "ratings of CRUX, whose files are read (format crux)"
)


def look_mapped(source: Source) -> str | None:
    """Return `truth` or `run` for a JSON object keyed by query; `either` if its numbers are integers."""
    begin = _MAPPING.match(source.head())
    if begin is None or begin[1] in _FIELDS:
        return None
    if begin[2].startswith(b"["):
        return "truth" if re.match(rb"\s*[\[{]", source.head()[begin.end() :]) else "run"
    return "run" if begin[4] and b"." in begin[4] else "either"


def read_mapped_truth(source: Source, policy: Policy) -> GroundTruth:
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


def read_mapped_run(source: Source) -> Run:
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
    begin = _MAPPING.match(source.head())
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


def _by_query(source: Source) -> Record:
    source.warn_if_empty("queries")
    return object_of(source, "one JSON object keyed by query")
