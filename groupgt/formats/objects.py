"""Converts objects from other libraries: ir_measures lists, ranx `Qrels` and `Run`, and ir_datasets data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats.frames import library_of

Pairs = dict[str, list[tuple[str, float]]]


def _by_query(value: Any, field: str, title: str) -> Pairs | None:
    """Group rows with `query_id`, `doc_id` and a field by query; returns None for other values. Raises `DataError`."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        return None
    is_iterator = iter(value) is value
    rows: list[Any] = list(value) if is_iterator or _has(next(iter(value), None), field) else []
    if not rows or not _has(rows[0], field):
        return None
    faults = Faults()
    pairs: Pairs = {}
    for number, row in enumerate(rows, 1):
        if _has(row, field):
            pairs.setdefault(row.query_id, []).append((row.doc_id, getattr(row, field)))
        else:
            faults.add(f"{title}: row {number}", f"expected query_id, doc_id and {field}, found {display(row)}")
    faults.stop()
    return pairs


def _has(row: Any, field: str) -> bool:
    return all(hasattr(row, name) for name in ("query_id", "doc_id", field))


def truth_in(value: Any) -> Mapping[str, Mapping[str, float]] | None:
    """Return `{qid: {id: grade}}` from another library's qrels, or None for other values.

    Raises `DataError` if a document has two grades for the same query.
    """
    if library_of(value) == "ranx":
        return dict(value.to_dict()) if type(value).__name__ == "Qrels" else None
    pairs = _by_query(value, "relevance", "ground truth")
    if pairs is None:
        return None
    faults = Faults()
    grades: dict[str, dict[str, float]] = {}
    for qid, rows in pairs.items():
        of_query = grades.setdefault(qid, {})
        for name, grade in rows:
            if of_query.setdefault(name, grade) != grade:
                faults.add(f"query {qid!r}", f"document {display(name)} has the grades {of_query[name]} and {grade}")
    faults.stop()
    return grades


def run_in(value: Any) -> Mapping[str, Any] | None:
    """Return `{qid: ranking}` from another library's results, or None for other values."""
    if library_of(value) == "ranx":
        return dict(value.to_dict()) if type(value).__name__ == "Run" else None
    return _by_query(value, "score", "results")


def dataset_named(name: Any) -> Mapping[str, Mapping[str, float]] | None:
    """Load the qrels of an ir_datasets data set such as `beir/scifact/test`; returns None for other names.

    The data set may be downloaded. Raises `DataError` if it has no qrels.
    """
    if not isinstance(name, str) or "/" not in name or Path(name).exists() or find_spec("ir_datasets") is None:
        return None
    import ir_datasets

    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        return None
    if not dataset.has_qrels():
        raise DataError(f"{name}: this data set of ir_datasets has no qrels; name one of its parts that has")
    return truth_in(dataset.qrels_iter())
