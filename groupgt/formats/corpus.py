"""Reads corpora, which map document ids to texts, and chunk tables, which map chunk ids to document spans."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults, display, near_names, warn
from groupgt.formats import csv, parquet
from groupgt.formats.beir import table_in
from groupgt.formats.checks import Firsts
from groupgt.formats.fields import first_in, length_of
from groupgt.formats.jsonl import is_array, objects
from groupgt.formats.source import Source
from groupgt.formats.tokenizers import tokenizer_named
from groupgt.model.validity import id_fault, id_text, is_integer
from groupgt.model.values import FARTHEST, LENGTH_UNITS, Chunks, Lengths, Span, span_of
from groupgt.runtime import pl

# The columns of ids and texts; the last ones are from MultiHop-RAG and BRIGHT.
IDS = ("chunk_id", "doc_id", "_id", "id", "url")
TEXTS = ("contents", "text", "content", "body")


def corpus_file(path: Path) -> Path:
    """Return the path of a corpus; for a BEIR or MTEB folder, its corpus file."""
    return (table_in(path, "corpus") or path / "corpus.jsonl") if path.is_dir() else path


def _source_of(path: str | os.PathLike[str]) -> Source:
    source = Source.at(path)
    return Source.at(corpus_file(source.path)) if source.is_folder else source


def read_corpus(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read `{doc_id: text}` from a JSONL, parquet or CSV file with `doc_id` (or `_id`) and `contents` (or `text`).

    A `title` is prepended to the text on a separate line, unless the text already begins with it. For a BEIR or MTEB
    folder, its corpus file is read.
    """
    return _read(path)


def read_lengths(
    path: str | os.PathLike[str],
    tokenizer: str | Callable[[Sequence[str]], Sequence[int]] | None = None,
    *,
    allow_code: bool = False,
) -> Lengths:
    """Read document lengths from the columns `tokens` and `chars` of a corpus, or compute them from its texts.

    Raises `DataError` or `ConfigError`.

    Args:
        path: The path of the corpus.
        tokenizer: A name (`whitespace`, `tiktoken:cl100k_base`, `tokenizers:FILE_OR_NAME`; `python:module:function`
            with `allow_code`), or a function that maps texts to token counts; it overrides the column `tokens`.
        allow_code: Whether a custom tokenizer may run.
    """
    count = tokenizer_named(tokenizer, allow_code=allow_code) if isinstance(tokenizer, str) else tokenizer
    columns: dict[str, dict[str, Any]] = {}
    texts = _read(path, columns)
    if count is not None:
        columns.pop("tokens", None)
    faults: dict[str, tuple[str, ...]] = {}
    for unit, cells in columns.items():
        invalid = [(name, cell) for name, cell in cells.items() if length_of(cell) is None]
        expected = f"expected a whole number from 0 in the column {unit}"
        faults[unit] = tuple(f"{path}: document {name!r}: {expected}, found {display(cell)}" for name, cell in invalid)
    lengths = {unit: {name: length_of(cell) or 0 for name, cell in cells.items()} for unit, cells in columns.items()}
    return Lengths(lengths, texts, count, str(path), {unit: messages for unit, messages in faults.items() if messages})


def _read(path: str | os.PathLike[str], lengths: dict[str, dict[str, Any]] | None = None) -> dict[str, str]:
    """Read document texts; if `lengths` is set, length columns are stored in it, and documents need no text."""
    source = _source_of(path)
    faults = Faults()
    texts: dict[str, str] = {}
    firsts = Firsts()
    for where, row in table_rows(source, faults):
        cell = next((row[name] for name in IDS if row.get(name) is not None), None)
        name = id_text(cell)
        text = next((row[column] for column in TEXTS if isinstance(row.get(column), str)), None)
        row_lengths = {unit: row[unit] for unit in LENGTH_UNITS if row.get(unit) not in (None, "")}
        if name is None:
            shown = ", ".join(row) if cell is None else cell
            faults.add(where, f"expected a doc_id (a string or integer), found {shown!r}")
        elif fault := id_fault(name):
            faults.add(where, f"the doc_id {fault}")
        elif text is None and (lengths is None or not row_lengths):
            faults.add(where, f"document {name!r}: expected text in the column contents, found {', '.join(row)}")
        elif again := firsts.again(name, where):
            faults.add(where, f"duplicate document {name!r} {again}")
        else:
            if lengths is not None:
                for unit, length in row_lengths.items():
                    lengths.setdefault(unit, {})[name] = length
            if text is not None:
                title = row.get("title")
                is_apart = isinstance(title, str) and title and not text.startswith(title)
                texts[name] = f"{title}\n{text}" if is_apart else text
    faults.stop()
    if not firsts:
        raise DataError(f"{source.path}: the corpus contains no documents")
    return texts


def table_rows(source: Source, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row of a JSONL, parquet or CSV file with its location."""
    if source.is_parquet:
        yield from parquet.rows_of(source)
    elif source.head().lstrip()[:1] == b"{" or is_array(source):
        yield from objects(source, faults)
    else:
        yield from csv.table(source, (), faults)


# AutoRAG's column of the first and the last character of a passage, both inclusive.
AUTORAG = "start_end_idx"
DOCUMENTS = ("doc", "document", "path", "parent")


def read_chunks(path: str | os.PathLike[str], *, optional: bool = False) -> Chunks | None:
    """Read chunk spans from a JSONL, parquet or CSV file with `chunk_id, doc_id, start, end` in each row.

    A corpus file may contain them, too, as `doc_id` (the chunk), `doc` (or `document`, `path`, `parent`), `start` and
    `end`, or as `path` and `start_end_idx` in AutoRAG. Raises `DataError`; returns None if `optional` is set and there
    are no such columns.
    """
    source = _source_of(path)
    if source.is_parquet and (chunks := _columns(source)) is not None:
        return chunks
    faults = Faults()
    ids: list[str] = []
    spans: list[Span] = []
    firsts = Firsts()
    lost: list[str] = []
    for where, row in table_rows(source, faults):
        key = first_in(IDS, row) or "chunk_id"
        if optional and not firsts and not _has_places(row):
            return None
        name = id_text(row.get(key))
        span = _span(row, key)
        if name is None or (fault := id_fault(name)):
            problem = f"found {display(row.get(key))}" if name is None else f"which {fault}"
            faults.add(where, f"expected the id of a chunk (a string or integer) as {key}, {problem}")
        elif isinstance(span, str):
            faults.add(where, f"chunk {name!r}: {span}")
        elif again := firsts.again(name, where):
            faults.add(where, f"duplicate chunk {name!r} {again}")
        elif span is None:
            lost.append(name)
        else:
            ids.append(name)
            spans.append(span)
    faults.stop()
    if not ids:
        raise DataError(f"{source.path}: the table contains no chunks")
    if lost:
        what = f"{source.path}: {len(lost):,} chunks have no place (AutoRAG did not find them in their document)"
        warn(f"{what}: {', '.join(lost[:3])}{' …' if len(lost) > 3 else ''}")
    start, end = (np.array([span[at] for span in spans], dtype=np.int64) for at in (1, 2))
    return Chunks(ids, [span.doc for span in spans], start, end)


def _has_places(row: dict[str, Any]) -> bool:
    if AUTORAG in row:
        return "path" in row
    return {"start", "end"} <= set(row) and first_in(("chunk_id", *DOCUMENTS), row) is not None


def _document(names: Iterable[str], key: str | None) -> str | None:
    """Return the name of the document id column; `key` is the chunk id column."""
    return first_in((*DOCUMENTS, "doc_id"), set(names) - {key})


def _span(row: dict[str, Any], key: str) -> Span | str | None:
    """Return the span of a chunk, or an error message; None if AutoRAG could not locate the chunk."""
    document = _document(row, key)
    if AUTORAG in row and "start" not in row:
        bounds = row[AUTORAG]
        if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
            return f"expected two numbers as {AUTORAG}, found {display(bounds)}"
        contents = row.get("contents")
        if tuple(bounds) == (0, 0) and not (isinstance(contents, str) and len(contents) == 1):
            return None
        first, last = (int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in bounds)
        row = {**row, "start": first, "end": last + 1 if is_integer(last) else last}
    if document is None or not {"start", "end"} <= set(row):
        return f"expected the columns chunk_id, doc_id, start and end, found {', '.join(row)}"
    cell = {"doc": row[document], "start": _number(row["start"]), "end": _number(row["end"])}
    return span_of(cell)


def _number(cell: Any) -> Any:
    """Convert a whole number that a CSV file stores as text; other cells stay unchanged."""
    text = cell.strip() if isinstance(cell, str) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else cell


def _columns(source: Source) -> Chunks | None:
    """Read a parquet file by column; returns None if a row may be invalid, so that reading by row reports the error."""
    frame = parquet.read_table(source)
    key = first_in(IDS, frame.columns)
    document = _document(frame.columns, key)
    if key is None or document is None or not {"start", "end"} <= set(frame.columns):
        return None
    frame = frame.select(pl.col(key).alias("id"), pl.col(document).alias("doc"), "start", "end")
    kinds = frame.dtypes
    if kinds[:2] != [pl.String, pl.String] or not all(kind.is_integer() for kind in kinds[2:]):
        return None
    start, end = (frame[name].cast(pl.Int64, strict=False) for name in ("start", "end"))
    valid = (start >= 0) & (end >= start) & (end <= FARTHEST) & (frame["doc"].str.strip_chars() != "")
    ids = frame["id"]
    if not len(frame) or frame.null_count().sum_horizontal().item() or not valid.fill_null(False).all():
        return None
    if ids.n_unique() < len(ids) or any(map(id_fault, ids)):
        return None
    return Chunks(ids.to_list(), frame["doc"].to_list(), start.to_numpy(), end.to_numpy())


def read_parents(path: str | os.PathLike[str], column: str) -> dict[str, str]:
    """Read `{id: parent}` from a JSONL, parquet or CSV file with the parents in `column`; raises `DataError`."""
    source = _source_of(path)
    faults = Faults()
    parents: dict[str, str] = {}
    for where, row in table_rows(source, faults):
        key = first_in(IDS, row) or "doc_id"
        name, parent = id_text(row.get(key)), id_text(row.get(column))
        if column not in row:
            hint = near_names(column, row)
            faults.add(str(source.path), f"expected the column {column!r}, found {', '.join(row)}{hint}")
            break
        if name is None or id_fault(name) or parent is None or id_fault(parent):
            what = f"expected an id and its parent (strings or integers) in {key} and {column}"
            faults.add(where, f"{what}, found {display(row.get(key))} and {display(row.get(column))}")
        elif parents.setdefault(name, parent) != parent:
            faults.add(where, f"{name!r} has two parents, {parents[name]!r} and {parent!r}; remove one")
    faults.stop()
    if not parents:
        raise DataError(f"{source.path}: the table contains no rows")
    return parents
