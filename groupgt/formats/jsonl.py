"""JSON Lines: one query a line (ground truth, nested results), or one result a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats.rows import beside_of, length_of, ordered_run, score_of
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.lengths import UNITS
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import LONGEST_ID, id_fault, id_text

TRUTH_KEYS = ("qid", "retrieval_gt", "query")
NESTED = ("retrieved_ids", "retrieved_ids_lexical", "retrieved_ids_semantic")
SCORES = "retrieve_scores"
BESIDE = {"text": "retrieved_contents", "parent": "retrieved_parents", "span": "retrieved_spans"}


def objects(source: Source, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line's number and object; lines that hold none are collected as faults."""
    source.warn_if_empty("lines")
    decoder = json.JSONDecoder(object_pairs_hook=_no_twice, parse_constant=_no_constant)
    # A lone surrogate can only come from an escape.
    escapes = b"\\ud" in source.data.lower()
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        try:
            value = decoder.decode(line.decode())
        except (ValueError, RecursionError) as error:
            what = "the nesting is too deep" if isinstance(error, RecursionError) else str(error)
            faults.add(f"{source.path}:{number}", f"expected a JSON object: {what}")
            continue
        if not isinstance(value, dict):
            faults.add(f"{source.path}:{number}", f"expected a JSON object, found {display(value)}")
            continue
        if escapes and _has_surrogate(value):
            faults.add(f"{source.path}:{number}", "holds a lone surrogate, which is no character")
            continue
        yield number, value


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """`{"qid", "query", "retrieval_gt", …}` a line; other keys are kept as columns."""
    faults = Faults()
    lines: list[int] = []
    rows: list[dict[str, Any]] = []
    # Only a long line, or one with an escape, can hold an id that is too long or no text.
    doubtful = {number for number, line in enumerate(source.lines(), 1) if len(line) > LONGEST_ID or b"\\u" in line}
    for number, row in objects(source, faults):
        absent = [key for key in ("qid", "retrieval_gt") if key not in row]
        if absent:
            found = ", ".join(row) or "no keys"
            faults.add(f"{source.path}:{number}", f"expected the keys qid and retrieval_gt, found {found}")
            continue
        if number in doubtful:
            wrong = next((fault for name in _ids_of(row) if (fault := id_fault(name)) and fault != "is blank"), None)
            if wrong:
                faults.add(f"{source.path}:{number}", f"query {row['qid']!r}: an id {wrong}")
                continue
        lines.append(number)
        rows.append(row)
    others = dict.fromkeys(key for row in rows for key in row if key not in TRUTH_KEYS)
    texts = [None if row.get("query") is None else str(row["query"]) for row in rows]
    try:
        truth = GroundTruth.from_rows(
            [row["qid"] for row in rows],
            [row["retrieval_gt"] for row in rows],
            policy,
            place=lambda position: f"{source.path}:{lines[position]}",
            texts=texts if any(text is not None for text in texts) else None,
            columns={key: [row.get(key) for row in rows] for key in others},
        )
    except DataError as error:
        faults.merge(error)
    faults.stop()
    return truth


def _ids_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [value.get(key) for key in ("qid", "retrieval_gt", "alternatives", "ids", "id") if key in value]
    if isinstance(value, list):
        for each in value:
            yield from _ids_of(each)
    elif isinstance(value, str):
        yield value


def read_run(source: Source) -> Run:
    """`{"qid", "retrieved_ids"[, "retrieve_scores"]}` a query, or `{"qid", "doc_id", "score" | "rank"}` a result."""
    faults = Faults()
    nested: dict[str, list[str]] = {}
    long: dict[str, tuple[list[str], list[float]]] = {}
    orders: set[str] = set()
    lengths: dict[str, dict[str, list[int | None]]] = {}
    beside: dict[str, dict[str, list[Any]]] = {}
    for number, row in objects(source, faults):
        where = f"{source.path}:{number}"
        qid = id_text(row.get("qid"))
        if qid is None or (fault := id_fault(qid)):
            found = f"{row['qid']!r}" if "qid" in row else f"the keys {', '.join(row) or '(none)'}"
            faults.add(where, f"expected a qid (text or an integer), found {found}")
            continue
        where = f"{where}: query {qid!r}"
        keys = [name for name in NESTED if name in row]
        key = keys[0] if keys else None
        if len(keys) > 1:
            faults.add(where, f"expected one list of results, found {' and '.join(keys)}; keep the one that is meant")
        elif key is not None:
            ids = _nested(row, key, where, faults)
            if qid in nested:
                faults.add(where, "this query stands twice")
            nested[qid] = ids
            for unit in UNITS:
                if f"retrieved_{unit}" in row:
                    lengths.setdefault(unit, {})[qid] = list(map(length_of, _listed(row[f"retrieved_{unit}"])))
            for what, name in BESIDE.items():
                if name in row:
                    beside.setdefault(what, {})[qid] = _listed(row[name])
        else:
            document, score = id_text(row.get("doc_id")), score_of(row)
            orders.add("score" if row.get("score") is not None else "rank")
            if document is None:
                found = repr(row["doc_id"]) if "doc_id" in row else f"the keys {', '.join(row)}"
                faults.add(where, f"expected retrieved_ids, or a doc_id (text or an integer), found {found}")
            elif fault := id_fault(document):
                faults.add(where, f"the doc_id {fault}")
            elif score is None:
                given = {name: row[name] for name in ("score", "rank") if name in row}
                faults.add(where, f"expected a finite number as score or rank, found {given or 'neither'}")
            else:
                own = long.setdefault(qid, ([], []))
                own[0].append(document)
                own[1].append(score)
                for unit in UNITS:
                    if unit in row:
                        lengths.setdefault(unit, {}).setdefault(qid, []).append(length_of(row[unit]))
                for what, cell in beside_of(row).items():
                    beside.setdefault(what, {}).setdefault(qid, []).append(cell)
    faults.stop()
    if nested and long:
        raise DataError(
            f"{source.path}: some lines hold retrieved_ids and some doc_id; expected one of the two throughout"
        )
    if len(orders) > 1:
        raise DataError(
            f"{source.path}: some lines hold a score and some only a rank; expected one of the two throughout"
        )
    return ordered_run(source, nested, long, lengths, beside)


def _listed(cell: Any) -> list[Any]:
    """What stands beside the ids of a query; who uses it says where it is no list of what it should be."""
    return cell if isinstance(cell, list) else []


def _nested(row: dict[str, Any], key: str, where: str, faults: Faults) -> list[str]:
    cells = row[key]
    if cells is None:
        return []
    if not isinstance(cells, list):
        faults.add(where, f"expected {key} to be a list of ids, found {display(cells)}")
        return []
    ids = []
    for rank, cell in enumerate(cells, 1):
        name = id_text(cell)
        fault = "is no text or integer" if name is None else id_fault(name)
        if fault:
            faults.add(where, f"the id at rank {rank}, {display(cell)}, {fault}")
        elif name is not None:
            ids.append(name)
    scores = row.get(SCORES)
    if scores is not None:
        if not isinstance(scores, list):
            faults.add(where, f"expected {SCORES} to be a list of numbers, found {display(scores)}")
        elif len(scores) != len(cells):
            faults.add(where, f"expected as many {SCORES} as {key} ({len(cells)}), found {len(scores)}")
        elif any(score_of({"score": score}) is None for score in scores):
            faults.add(where, f"expected finite numbers as {SCORES}")
    return ids


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """One query a line, with everything that was read."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for position, (qid, groups) in enumerate(truth.items()):
            row: dict[str, Any] = {"qid": qid}
            if truth.texts:
                row["query"] = truth.texts[position]
            row["retrieval_gt"] = groups
            row |= {name: values[position] for name, values in truth.columns.items()}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_run(path: Path, rankings: Iterator[tuple[str, list[str], list[float]]], *, scored: bool) -> None:
    """One query a line; scores only where there were some."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, ids, scores in rankings:
            row: dict[str, Any] = {"qid": qid, "retrieved_ids": ids}
            if scored:
                row[SCORES] = scores
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
