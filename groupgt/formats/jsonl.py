"""Reads JSON Lines and arrays of JSON objects, with one query or one result per object."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import starmap
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats import fields
from groupgt.formats.columns import Column, Lists, columns_in
from groupgt.formats.roles import canonical, hint, query_column, roles_in, shown_names
from groupgt.formats.rows import SHAPE, Calls, Ranking, RunBuilder, Trials, numbered, write_lines
from groupgt.formats.source import Record, Source
from groupgt.formats.tables import NONRELEVANT, Table, named_ids, truth_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.ranking import by_rank
from groupgt.model.run import Run
from groupgt.model.validity import id_text, note_cost, number_of, unscored
from groupgt.model.values import CALLS, SCORE, as_json, normal_text

RANKED = fields.NESTED[0]
RUN_KEYS = "qid and retrieved_ids (a line per query), or qid, doc_id and score or rank (a line per result)"
# The keys under which an object lists records.
WRAPPERS = ("data", "samples", "queries", "questions", "examples", "goldens", "test_cases", "records", "rows")
OF_RUNS = ("results", "runs", "items")
_BLANKS = re.compile(r"[ \t\r\n]*")
_SEPARATOR = re.compile(r"[ \t\r\n]*(?:,|(?=\]))")
_ARRAY = re.compile(rb"\s*\[\s*(\{|\]|\Z)")
_named_keys = lru_cache(maxsize=64)(canonical)


def objects(source: Source, faults: Faults, *, unwrapped: bool = True) -> Iterator[tuple[str, Record]]:
    """Yield each object with its location, from lines or arrays, or `unwrapped` from a key such as `data`."""
    source.warn_if_empty("lines")
    decoder = json.JSONDecoder(object_pairs_hook=distinct_keys, parse_constant=no_constant)
    for where, text in _elements(source, faults) if is_spread(source) else source.located_lines():
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
        elif unwrapped and (names := [each for each in wrappers_in(tuple(value)) if isinstance(value[each], list)]):
            name = names[0]
            for number, inner in enumerate(value[name], 1):
                if isinstance(inner, dict):
                    yield f"{where}: {name} {number}", inner
                else:
                    faults.add(f"{where}: {name} {number}", f"expected a JSON object, found {display(inner)}")
        else:
            yield where, value


@lru_cache(maxsize=64)
def wrappers_in(names: tuple[str, ...]) -> list[str]:
    """Return the keys under which an object may list records. The results in a record of one query do not count."""
    is_record = not {"qid", "query"}.isdisjoint(roles_in(names, "run"))
    return [name for name in (*WRAPPERS, *(() if is_record else OF_RUNS)) if name in names]


def is_array(source: Source) -> bool:
    """Return whether a file is one JSON array of objects rather than one object per line."""
    return _ARRAY.match(source.head()) is not None


def is_spread(source: Source) -> bool:
    """Return whether a file is an array, or whether its first object spans several lines."""
    line = source.first_line.rstrip()
    return is_array(source) or (line.startswith(b"{") and not line.endswith(b"}"))


def is_one_object(source: Source) -> bool:
    """Return whether a file is one JSON object, on one line or on several."""
    return is_spread(source) or not source.head().strip().count(b"\n")


def _elements(source: Source, faults: Faults) -> Iterator[tuple[str, str]]:
    """Yield each element of a JSON array, or each of several objects, as text with its starting location."""
    source.check_text()
    text = source.data.decode()
    scan = json.JSONDecoder().raw_decode
    in_array = is_array(source)
    position, line, counted = text.index("[") + 1 if in_array else 0, 1, 0
    where = f"{source.path}:{line}"
    while True:
        begin = _BLANKS.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing at least
        if in_array and text.startswith("]", begin):
            if rest := text[begin + 1 :].strip():
                faults.add(where, f"expected the end of the file after the array, found {display(rest)}")
            return
        if not in_array and begin == len(text):
            return
        line, counted = line + text.count("\n", counted, begin), begin
        where = f"{source.path}:{line}"
        try:
            _, position = scan(text, begin)
        except (ValueError, RecursionError) as error:
            what = "an element of the JSON array" if in_array else "a JSON object"
            lines = text.count("\n", begin, getattr(error, "pos", begin))
            faults.add(f"{source.path}:{line + lines}", f"expected {what}: {json_fault(error)}")
            return
        yield where, text[begin:position]
        if not in_array:
            continue
        if (separator := _SEPARATOR.match(text, position)) is None:
            faults.add(where, "expected a comma or the end of the JSON array")
            return
        position = separator.end()


def distinct_keys(pairs: list[tuple[str, Any]]) -> Record:
    """Build a JSON object, or raise `ValueError` for a duplicate key."""
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
    """Explain why text is not valid JSON. Omit the line, because the location already includes it."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return "the nesting is too deep" if isinstance(error, RecursionError) else str(error)


def object_of(source: Source, expected: str = "a JSON object") -> Record:
    """Return the only object in a file, or raise `DataError` if the file does not contain exactly one object."""
    source.check_text()
    try:
        value = json.loads(source.data, object_pairs_hook=distinct_keys, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{source.path}{line}: expected {expected}: {json_fault(error)}") from None
    if not isinstance(value, dict):
        raise DataError(f"{source.path}: expected {expected}, found {display(value)}")
    if b"\\u" in source.data and has_surrogate(value):
        raise DataError(f"{source.path}: contains a lone surrogate")
    return value


def has_surrogate(value: Any) -> bool:
    """Return whether any string in a value contains a lone surrogate."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read one line per query (`{"qid", "query", "retrieval_gt", …}`) or judgment (`{"qid", "doc_id", "grade"}`)."""
    faults = Faults()
    rows = list(objects(source, faults))
    where = rows[0][0] if rows else ""
    table = Table.of_records(str(source.path), rows, where=where, faults=faults, declared=source.columns)
    return truth_of(table, policy)


def read_run(source: Source) -> Run:
    """Read lines of `{"qid", "retrieved_ids"[, "retrieve_scores"]}` or `{"qid", "doc_id", "score" | "rank"}`."""
    faults = Faults()
    return run_of_records(source, objects(source, faults), faults)


def run_of_records(source: Source, records: Iterable[tuple[str, Record]], faults: Faults | None = None) -> Run:
    """Build a run from records, one per query or one per result, or raise `DataError` with every fault."""
    faults = Faults() if faults is None else faults
    builders: dict[int | None, RunBuilder] = defaultdict(lambda: RunBuilder(faults))
    named = lru_cache(maxsize=64)(partial(canonical, declared=source.columns))
    columns_of = lru_cache(maxsize=64)(partial(columns_in, declared=source.columns))
    texts_of_ids = Lists(faults)
    repeats_of = lru_cache(maxsize=64)(fields.repeats_in)
    repeated: dict[str, Any] = {}
    kinds: set[str] = set()
    numbered_by: set[str] = set()
    texts: dict[str, str] = {}
    for where, record in records:
        keys = tuple(record)
        row = record if (names := named(keys)) == keys else dict(zip(names, record.values()))
        numbered_by |= row.keys() & {fields.TRIAL, fields.BUILD}
        number = fields.BUILD if fields.BUILD in row else fields.TRIAL
        trial = fields.length_of(row[number]) if number in row else None
        if trial is None and (number in row or (builders and None not in builders)):
            faults.add(where, fields.trial_fault(row.get(number), number))
            continue
        builder = builders[trial]
        lists = [name for name in fields.NESTED if name in row]
        if (qid := _qid_of(row, record, where, faults)) is None:
            continue
        where = f"{where}: query {display(qid)}"
        if isinstance(text := row.get("query"), str):
            texts[qid] = text
        repeat = None if (column := repeats_of(names)) is None else row[column]
        if repeated.setdefault(qid, repeat) != repeat:
            faults.add(where, fields.repeat_fault(column or "", repeated[qid], repeat))
            continue
        if not lists:
            kinds |= {"result", _add_result(builder, qid, row, record, where, is_kept="list" not in kinds)}
            continue
        if len(lists) > 1:
            faults.add(where, f"expected one list of results, found {' and '.join(lists)}; keep only one")
        elif "list" in kinds and qid in builder.ids:
            faults.add(where, "duplicate query")
        note_cost(builder.costs, qid, row.get("cost"), faults, where)
        kinds.add("list")
        columns = {"retrieved_ids": Column(keys[names.index(lists[0])]), **columns_of(keys)}
        add_ranking(builder, qid, with_lists(row, lists[0], columns, texts_of_ids, where), lists[0], where)
    faults.stop()
    mixed = {"retrieved_ids and others doc_id": {"list", "result"}, "a score and others only a rank": {"score", "rank"}}
    if what := next((what for what, both in mixed.items() if both <= kinds), None):
        raise DataError(f"{source.path}: some lines have {what}; use the same keys on every line")
    if len(builders) > 1 and None in builders:
        raise DataError(
            f"{source.path}: some rows have a trial and some do not; give every row the number of its trial"
        )
    if not builders:
        return builders[None].run(source)
    is_build = fields.trial_column(numbered_by, str(source.path)) == fields.BUILD
    runs = [builders[trial].run(source) for trial in sorted(builders, key=lambda trial: trial or 0)]
    return Run.of_trials([replace(run, texts=texts, unsplit=texts_of_ids.unsplit, is_build=is_build) for run in runs])


def with_lists(row: Record, key: str, columns: Mapping[str, Column], texts_of_ids: Lists, where: str) -> Record:
    """Return a row with lists of ids and scores, which it may store as text, or as one list of objects or pairs."""
    cells, scores = row[key], row.get(fields.SCORES)
    if "retrieved_ids" in columns:
        cells = texts_of_ids.read(cells, columns["retrieved_ids"], "retrieved_ids", where)
    if isinstance(scores, str) and fields.SCORES in columns:
        parts = columns[fields.SCORES].parts(scores)
        scores = [number_of(part) for part in parts] if isinstance(parts, list) else parts
    if isinstance(cells, list) and all(
        isinstance(cell, list) and len(cell) == 2 and not isinstance(cell[1], str) for cell in cells
    ):
        cells = [{"id": name, "score": score} for name, score in cells]
    if isinstance(cells, list) and cells and all(isinstance(cell, dict) for cell in cells):
        cells = by_rank(cells)
        results = [_result_of(cell) for cell in cells]
        if any("distance" in result and result.get("score") is None for result in results):
            way = "rename distance to score, and add --scores ascending (scores: in experiments, scores= in Python)"
            texts_of_ids.faults.add(where, f"expected scores, found distances; {way}")
        for name, column in (("contents", fields.TEXTS), ("score", fields.SCORES)):
            if column not in row and all(result.get(name) is not None for result in results):
                row = {**row, column: [result[name] for result in results]}
        for field in (
            field for field in fields.FIELDS if field.nested and field.kind != "text" and field.nested not in row
        ):
            listed = [_field_in(field, result) for result in results]
            if any(cell is not None for cell in listed):
                row = {**row, field.nested: listed}
        cells, scores = [result.get("doc_id", cell) for cell, result in zip(cells, results)], row.get(fields.SCORES)
    return {**row, key: cells, **({} if scores is None else {fields.SCORES: scores})}


def _result_of(cell: Record) -> Record:
    """Return a result object with its keys renamed to their roles. A key `id` becomes the doc_id."""
    result = dict(zip(_named_keys(tuple(cell)), cell.values()))
    if cell.get("id") is None:
        return result
    return {**result, "doc_id": cell["id"], **({"doc": cell["doc"]} if "doc" in cell else {})}


def _field_in(field: fields.Field, result: Record) -> Any:
    """Return the cell of a field in a result object. An object with a start is its own span."""
    if field.kind == "span":
        return result if result.get("start") is not None else None
    column = fields.first_in(field.columns, result)
    return None if column is None else result[column]


def _qid_of(row: Record, record: Record, where: str, faults: Faults) -> str | None:
    """Return the query id or text of a record. Report an error if the id is invalid or a key is missing."""
    query = query_column(row)
    has_results = "doc_id" in row or any(name in row for name in fields.NESTED)
    if query not in row or not has_results:
        missing = [*([] if query in row else ["qid"]), *([] if has_results else ["retrieved_ids", "doc_id"])]
        words = hint(record, missing, "run")
        faults.add(where, f"expected the keys {RUN_KEYS}, found {shown_names(record)}{words}")
        return None
    cell = row[query]
    qid = id_text(cell) if query == "qid" else normal_text(cell) if isinstance(cell, str) else None
    if fault := fields.query_fault(cell, qid, query):
        faults.add(where, fault)
        return None
    return qid


def add_ranking(builder: RunBuilder, qid: str, row: Record, key: str, where: str) -> None:
    """Add the results that a record lists under a key."""
    units, others = fields.lists_of(row)
    lengths = {field.name: list(map(field.number, _listed(row[field.nested]))) for field in units}
    cells = {field.name: _listed(row[field.nested]) for field in others}
    if row.get(fields.SCORES) is not None:
        cells[SCORE] = _listed(row[fields.SCORES])
    ids = _ids_of(row, key, where, builder.faults)
    size = len(_listed(row[key]))
    if CALLS in lengths and (error := fields.calls_fault(lengths[CALLS], size, in_order=True)):
        builder.faults.add(where, error)
    builder.add_ranking(qid, ids, None, lengths, cells)


def _add_result(builder: RunBuilder, qid: str, row: Record, record: Record, where: str, *, is_kept: bool) -> str:
    """Check and add a record's only result, and return the name of its sort key (`score` or `rank`)."""
    order = "score" if row.get("score") is not None else "rank"
    document, score = id_text(row.get("doc_id")), fields.score_of(row)
    if document is None:
        builder.faults.add(where, f"expected a doc_id (a string or integer), found {display(row['doc_id'])}")
    elif row.get(order) is None:
        words = unscored(None) if {"score", "rank"} & row.keys() else hint(record, ["score"], "run")
        builder.faults.add(where, f"expected a finite number as score or rank, found neither{words}")
    elif error := fields.result_fault(qid, document, score, row[order], order, row.get("call", 1)):
        builder.faults.add(where, error)
    elif score is not None and is_kept:
        builder.add(qid, document, score, fields.units_of(row), fields.fields_of(row))
    return order


def _listed(cell: Any) -> list[Any]:
    """Return a cell if it is a list. Invalid lists are reported when they are used."""
    return cell if isinstance(cell, list) else []


def _ids_of(row: Record, key: str, where: str, faults: Faults) -> list[str]:
    """Return the result ids of a query, best first. Report invalid ids and scores as errors."""
    if (cells := row[key]) is None:
        return []
    if not isinstance(cells, list):
        faults.add(where, f"expected {key} to be a list of ids, found {display(cells)}")
        return []
    if row.get(fields.SCORES) is not None and (fault := fields.scores_fault(row[fields.SCORES], len(cells), key)):
        faults.add(where, fault)
    return fields.ranking(cells, where, faults)


def write_objects(path: Path, rows: Iterable[Record]) -> None:
    """Write one object per line."""
    write_lines(path, (f"{as_json(row)}\n" for row in rows))


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write one query per line, including all columns that were read."""
    write_objects(path, _truth_rows(truth))


def _truth_rows(truth: GroundTruth) -> Iterator[Record]:
    named = named_ids(truth)
    for position, (qid, groups) in enumerate(truth.items()):
        row: Record = {"qid": qid}
        if truth.texts:
            row["query"] = truth.texts[position]
        row["retrieval_gt"] = groups
        if NONRELEVANT in truth.keys:
            row["retrieval_gt"] = [group for group in groups if not _only_nonrelevant(group)]
            row[NONRELEVANT] = [document["id"] for group in groups if _only_nonrelevant(group) for document in group]
        row |= {column: ids[position] for column, ids in named.items()}
        if truth.shape != "groups":
            row[SHAPE] = truth.shape
        row |= {name: values[position] for name, values in truth.columns.items()}
        yield {**{key: row[key] for key in truth.keys if key in row}, **row}


def _only_nonrelevant(group: Any) -> bool:
    if not isinstance(group, list):
        return False
    return all(isinstance(cell, dict) and cell.get("grade") == 0 and "id" in cell for cell in group)


def write_run(path: Path, rankings: Iterable[Ranking], *, calls: Calls | None, trials: Trials) -> None:
    """Write one query per line, with scores, calls and trials only if present."""

    def row(ranking: Ranking, of_results: Sequence[int], trial: int | None) -> Record:
        qid, ids, scores = ranking
        cells = {} if scores is None else {fields.SCORES: scores}
        kept = {fields.CALL_LIST: list(of_results)} if calls else {}
        return {"qid": qid, "retrieved_ids": ids, **cells, **kept, **dict.fromkeys(trials, trial)}

    write_objects(path, starmap(row, numbered(rankings, calls, trials)))
