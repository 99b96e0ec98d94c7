"""Reads tables of text and locations: corpora and document lengths, queries, chunk spans, and parent ids."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from groupgt.errors import DataError, Faults, display, near_names, warn
from groupgt.formats import csv, parquet
from groupgt.formats.beir import table_in
from groupgt.formats.fields import Firsts, first_in, length_of, number_in
from groupgt.formats.frames import is_frame, table_of
from groupgt.formats.jsonl import is_array, is_one_object, object_of, objects
from groupgt.formats.records import keys_of
from groupgt.formats.roles import NAMES
from groupgt.formats.source import AnyPath, Record, Source
from groupgt.formats.tokenizers import tokenizer_named
from groupgt.model.validity import id_fault, id_text, is_integer
from groupgt.model.values import FARTHEST, LENGTH_UNITS, Chunks, Lengths, Span, span_of
from groupgt.runtime import pl

# The columns of ids and texts; the last ones are from MultiHop-RAG and BRIGHT.
IDS, TEXTS = NAMES["corpus"]["doc_id"], NAMES["corpus"]["text"]
QUERY_IDS, QUERY_TEXTS = NAMES["queries"]["qid"], NAMES["queries"]["query"]
# TREC topics: <top> with <num> and <title>, which need not be closed, or <topic number="1"> with <query>.
_TOPIC = re.compile(r"<(top|topic)(\s[^>]*)?>(.*?)(?=</\1\s*>|<\1[\s>]|\Z)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"""\b(?:number|id|num)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_LABEL = re.compile(r"\A(?:number|topic|query|question)\s*:", re.IGNORECASE)
V = TypeVar("V")
# AutoRAG's column of the first and the last character of a passage, both inclusive.
AUTORAG = "start_end_idx"
DOCUMENTS = ("doc", "document", "path", "parent")


def corpus_file(path: Path) -> Path:
    """Return the path of a corpus; for a BEIR or MTEB folder, its corpus file."""
    return (table_in(path, "corpus") or path / "corpus.jsonl") if path.is_dir() else path


def queries_file(path: Path) -> Path:
    """Return the path of a file with query texts; for a BEIR or MTEB folder, its query file."""
    return (table_in(path, "queries") or path / "queries.jsonl") if path.is_dir() else path


def _source_of(path: AnyPath) -> Source:
    folder = Source.at(path).path
    file = corpus_file(folder)
    if folder.is_dir() and not file.exists():
        what = "expected a corpus file or a BEIR folder, found a folder without corpus.jsonl"
        raise DataError(f"{folder}: {what}; save the passages in one file, such as JSON {{id: text}}")
    return Source.at(file)


def read_lengths(
    path: AnyPath, tokenizer: str | Callable[[Sequence[str]], Sequence[int]] | None = None, *, allow_code: bool = False
) -> Lengths:
    """Read document lengths from the columns `tokens` and `chars` of a corpus, or compute them from its text.

    Raise `DataError` or `ConfigError`.

    Args:
        path: The path of the corpus.
        tokenizer: A name (`whitespace`, `tiktoken:cl100k_base`, `tokenizers:FILE_OR_NAME`; `python:module:function`
            with `allow_code`), or a function that maps texts to token counts; it overrides the column `tokens`.
        allow_code: Whether a custom tokenizer may run.
    """
    count = tokenizer_named(tokenizer, allow_code=allow_code) if isinstance(tokenizer, str) else tokenizer
    columns: dict[str, Record] = {}
    texts = read_corpus(path, columns)
    if count is not None:
        columns.pop("tokens", None)
    faults: dict[str, tuple[str, ...]] = {}
    for unit, cells in columns.items():
        invalid = [(name, cell) for name, cell in cells.items() if length_of(cell) is None]
        expected = f"expected a whole number from 0 in the {unit} column"
        faults[unit] = tuple(f"{path}: document {name!r}: {expected}, found {display(cell)}" for name, cell in invalid)
    lengths = {unit: {name: length_of(cell) or 0 for name, cell in cells.items()} for unit, cells in columns.items()}
    return Lengths(lengths, texts, count, str(path), faults)


def read_corpus(path: Any, lengths: dict[str, Record] | None = None) -> dict[str, str]:
    """Read `{doc_id: text}`, with each `title` before its text. Documents with a length in `lengths` need no text."""
    title = "corpus" if is_frame(path) else str(_source_of(path).path)

    def document(row: Record) -> tuple[str, str | None] | str:
        cell = _first_of(IDS, row)
        name = id_text(cell)
        text = next((row[column] for column in TEXTS if isinstance(row.get(column), str)), None)
        row_lengths = {unit: row[unit] for unit in LENGTH_UNITS if row.get(unit) not in (None, "")}
        if name is None:
            shown = ", ".join(row) if cell is None else cell
            return f"expected a doc_id (a string or integer), found {shown!r}"
        if fault := id_fault(name):
            return f"the doc_id {fault}"
        if text is None and (lengths is None or not row_lengths):
            column = next((column for column in TEXTS if column in row), None)
            found = (
                ", ".join(row) if column is None else f'{display(row[column])}; for a passage without text, write ""'
            )
            return f"document {name!r}: expected text in the contents column, found {found}"
        if lengths is not None:
            for unit, length in row_lengths.items():
                lengths.setdefault(unit, {})[name] = length
        title = row.get("title")
        is_apart = text is not None and isinstance(title, str) and title and not text.startswith(title)
        return name, f"{title}\n{text}" if is_apart else text

    faults = Faults()
    rows = _frame_rows(path, title) if is_frame(path) else _document_rows(_source_of(path), faults)
    located = ((where, document(row)) for where, row in _numbered(rows, title))
    if not (texts := _by_id(located, "document", faults)):
        raise DataError(f"{title}: the corpus contains no documents")
    return {name: text for name, text in texts.items() if text is not None}


def _document_rows(source: Source, faults: Faults) -> Iterable[tuple[str, Record]]:
    """Return the rows of a corpus: a table, a JSON object `{id: text}`, or one with a `corpus` key (LlamaIndex)."""
    rows = table_rows(source, faults)
    keys = keys_of(source)
    is_object = not source.is_parquet and source.head().lstrip()[:1] == b"{" and is_one_object(source)
    if is_object and not keys.keys() & {*IDS, *TEXTS}:
        texts = object_of(source)
        texts = texts["corpus"] if isinstance(texts.get("corpus"), dict) else texts
        rows = ((f"{source.path}: {display(name)}", {"doc_id": name, "text": text}) for name, text in texts.items())
    return rows


def _frame_rows(frame: Any, title: str) -> Iterator[tuple[str, Record]]:
    table = table_of(frame, title, kind="corpus")
    for row, cells in enumerate(zip(*map(table.column, table.names))):
        yield table.place(row), dict(zip(table.names, cells))


def _numbered(rows: Iterable[tuple[str, Record]], title: str) -> Iterator[tuple[str, Record]]:
    """Yield rows with ids. Number passages that have neither an id nor a title, in a form that no id has."""
    unnamed, others = 0, None
    for where, row in rows:
        if others is None and first_in(IDS, row) is None:
            others = [name for name in row if name.lower().endswith("_id")] if row.get("title") is not None else []
        if first_in((*IDS, "title"), row) is None and first_in(TEXTS, row) is not None:
            unnamed += 1
            row = {**row, "doc_id": f"(passage {unnamed})"}
        yield where, row if first_in(IDS, row) is not None else {**row, "doc_id": row.get("title")}
    if others:
        warn(f"{title}: no doc_id column, so titles are the ids; if {others[0]} contains the ids, rename it to doc_id")
    if unnamed:
        lack = "passage has" if unnamed == 1 else "passages have"
        way = "rename the id column to doc_id, or match results by passage text (--labeller text)"
        warn(f"{title}: {unnamed:,} {lack} no id; {way}")


def _first_of(names: Iterable[str], row: Record) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _by_id(rows: Iterable[tuple[str, tuple[str, V] | str]], called: str, faults: Faults) -> dict[str, V]:
    """Return the value of each id. Each located row contains an id and its value, or an error message."""
    values: dict[str, V] = {}
    firsts = Firsts()
    for where, cells in rows:
        if isinstance(cells, str):
            faults.add(where, cells)
        elif again := firsts.again(cells[0], where):
            faults.add(where, f"duplicate {called} {display(cells[0])} {again}")
        else:
            values[cells[0]] = cells[1]
    faults.stop()
    return values


def table_rows(source: Source, faults: Faults) -> Iterator[tuple[str, Record]]:
    """Yield each row of a JSONL, parquet or CSV file with its location."""
    if source.is_parquet:
        yield from parquet.rows_of(source)
    elif source.head().lstrip()[:1] == b"{" or is_array(source):
        yield from objects(source, faults)
    else:
        yield from csv.table(source, (), faults)


def read_chunks(path: AnyPath, *, optional: bool = False) -> Chunks | None:
    """Read chunk spans from a table or a corpus. If spans are `optional`, return None for a table without spans."""
    source = _source_of(path)
    if source.is_parquet and (chunks := _columns(source)) is not None:
        return chunks
    faults = Faults()
    rows = table_rows(source, faults)
    first = next(rows, None)
    if first is not None and optional and not _has_places(first[1]):
        return None
    located = ((where, _chunk(row)) for where, row in chain(() if first is None else (first,), rows))
    places = _by_id(located, "chunk", faults)
    if not (spans := {name: span for name, span in places.items() if span is not None}):
        raise DataError(f"{source.path}: the table contains no chunks")
    if lost := [name for name, span in places.items() if span is None]:
        count = f"{len(lost):,} {'chunk has' if len(lost) == 1 else 'chunks have'}"
        what = f"{source.path}: {count} no position (AutoRAG could not locate them)"
        warn(f"{what}: {', '.join(lost[:3])}{' …' if len(lost) > 3 else ''}")
    return Chunks.from_spans(spans)


def _chunk(row: Record) -> tuple[str, Span | None] | str:
    """Return the id and span of a chunk, or an error message."""
    key = first_in(IDS, row) or "chunk_id"
    name = id_text(row.get(key))
    if name is None or (fault := id_fault(name)):
        problem = f"found {display(row.get(key))}" if name is None else f"which {fault}"
        return f"expected the id of a chunk (a string or integer) as {key}, {problem}"
    span = _span(row, key)
    return f"chunk {name!r}: {span}" if isinstance(span, str) else (name, span)


def _has_places(row: Record) -> bool:
    if AUTORAG in row:
        return "path" in row
    return {"start", "end"} <= set(row) and first_in(("chunk_id", *DOCUMENTS), row) is not None


def _document(names: Iterable[str], key: str | None) -> str | None:
    """Return the name of the document id column; `key` is the chunk id column."""
    return first_in((*DOCUMENTS, "doc_id"), set(names) - {key})


def _span(row: Record, key: str) -> Span | str | None:
    """Return the span of a chunk, or an error message, or None if AutoRAG could not locate the chunk."""
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
    cell = {"doc": row[document], "start": number_in(row["start"]), "end": number_in(row["end"])}
    return span_of(cell)


def _columns(source: Source) -> Chunks | None:
    """Read a parquet file by column, or return None if a row may be invalid. Reading by row then reports the error."""
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


def read_parents(path: AnyPath, column: str) -> dict[str, str]:
    """Read `{id: parent}` from a JSONL, parquet or CSV file whose parents are in `column`, or raise `DataError`."""
    source = _source_of(path)
    faults = Faults()
    parents: dict[str, str] = {}
    for where, row in table_rows(source, faults):
        key = first_in(IDS, row) or "doc_id"
        name, parent = id_text(row.get(key)), id_text(row.get(column))
        if column not in row:
            hint = near_names(column, row)
            faults.add(str(source.path), f"expected the {column!r} column, found {', '.join(row)}{hint}")
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


def read_queries(path: AnyPath) -> dict[str, str]:
    """Read `{qid: text}` from TREC topics, a table, TSV without a header line or a BEIR folder."""
    source = Source.at(queries_file(Path(path)))
    faults = Faults()
    located = ((where, _query(*cells)) for where, cells in _query_rows(source, faults))
    if not (texts := _by_id(located, "query", faults)):
        raise DataError(f"{source.path}: expected queries (TREC topics, TSV, JSONL or BEIR), found none")
    return texts


def _query(qid: Any, text: Any) -> tuple[str, str] | str:
    """Return the id and the text of a query, or an error message."""
    if (name := id_text(qid)) is None:
        return f"expected a query id (a string or integer), found {display(qid)}"
    if fault := id_fault(name):
        return f"the query id {fault}"
    if not isinstance(text, str) or not text.strip():
        return f"query {display(name)}: expected text ({', '.join(QUERY_TEXTS)}), found {display(text)}"
    return name, text


def _query_rows(source: Source, faults: Faults) -> Iterator[tuple[str, tuple[Any, Any]]]:
    begin = b"" if source.is_parquet else source.head().lstrip()[:1]
    names = set(csv.header_of(source)) if begin else set()
    has_header = bool(names & set(QUERY_IDS)) and bool(names & set(QUERY_TEXTS))
    if begin == b"<":
        yield from _topics(source)
    elif source.is_parquet or begin == b"{" or is_array(source) or has_header:
        for where, row in table_rows(source, faults):
            if (qid := _first_of(QUERY_IDS, row)) is None:
                expected = f"expected a query id ({', '.join(QUERY_IDS[:2])}, _id or id)"
                faults.add(where, f"{expected}, found {', '.join(row)}")
            else:
                yield where, (qid, _first_of(QUERY_TEXTS, row))
    else:
        for where, line in source.located_lines():
            qid, tab, text = line.partition("\t")
            if tab:
                yield where, (qid.strip(), text.strip())
            else:
                faults.add(where, f"expected a query id, a tab and text, found {display(line)}")


def _topics(source: Source) -> Iterator[tuple[str, tuple[str, str]]]:
    source.check_text()
    content = source.data.decode()
    for topic in _TOPIC.finditer(content):
        attribute = _NUMBER.search(topic[2] or "")
        number = attribute[1] if attribute else _field(topic[3], "num")
        where = f"{source.path}:{content.count(chr(10), 0, topic.start()) + 1}"
        yield where, (number, _field(topic[3], "title") or _field(topic[3], "query"))


def _field(topic: str, name: str) -> str:
    """Return the content of a topic field on one line, without its label (`Number:`)."""
    match = re.search(rf"<{name}(?:\s[^>]*)?>(.*?)(?=<|\Z)", topic, re.IGNORECASE | re.DOTALL)
    text = html.unescape(match[1]).strip() if match else ""
    return " ".join(_LABEL.sub("", text).split())
