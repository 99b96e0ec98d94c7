"""Tables of chunks: every shape they come in, and what is wrong with some."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats.corpus import read_chunks, read_parents
from groupgt.model.values import Chunks, Span, span_of

PLACES = {"c1": Span("d", 0, 40), "c2": Span("d", 40, 90), "x-7": Span("e[1:2]", 5, 6)}


def rows(key: str, document: str) -> list[dict[str, Any]]:
    return [{key: name, document: span.doc, "start": span.start, "end": span.end} for name, span in PLACES.items()]


def as_csv(given: list[dict[str, Any]], separator: str = ",") -> str:
    lines = [separator.join(given[0]), *(separator.join(map(str, row.values())) for row in given)]
    return "\n".join(lines) + "\n"


def as_jsonl(given: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in given)


@pytest.mark.parametrize(
    ("key", "document"), [("chunk_id", "doc_id"), ("doc_id", "doc"), ("id", "path"), ("_id", "parent")]
)
@pytest.mark.parametrize("kind", ["csv", "tsv", "bom", "crlf", "csv.gz", "jsonl", "parquet", "parquet of floats"])
def test_every_shape_gives_the_same_places(tmp_path: Path, kind: str, key: str, document: str) -> None:
    given = rows(key, document)
    path = tmp_path / "chunks.any"
    if kind.startswith("parquet"):
        frame = pl.DataFrame(given)
        frame = frame.with_columns(pl.col("start", "end").cast(pl.Float64)) if "floats" in kind else frame
        frame.write_parquet(path)
    else:
        text = as_jsonl(given) if kind == "jsonl" else as_csv(given, "\t" if kind == "tsv" else ",")
        data = text.replace("\n", "\r\n").encode() if kind == "crlf" else text.encode()
        data = b"\xef\xbb\xbf" + data if kind == "bom" else data
        path.write_bytes(gzip.compress(data) if kind == "csv.gz" else data)
    found = read_chunks(path)
    assert found is not None
    assert found.spans() == PLACES


def test_autorag_counts_the_last_character_in(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    columns = {"doc_id": ["a", "b", "lost"], "contents": ["0123", "45", "nowhere"], "path": ["d", "d", "d"]}
    pl.DataFrame({**columns, "start_end_idx": [[0, 3], [4, 5], [0, 0]]}).write_parquet(path)
    with pytest.warns(groupgt.GroupgtWarning, match="1 chunk has no position .*: lost"):
        found = read_chunks(path)
    assert found is not None
    assert found.spans() == {"a": Span("d", 0, 4), "b": Span("d", 4, 6)}


def test_a_corpus_without_places_has_none(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(as_jsonl([{"doc_id": "a", "contents": "…"}]), encoding="utf-8")
    assert read_chunks(path, optional=True) is None
    with pytest.raises(groupgt.DataError, match="expected the columns chunk_id, doc_id, start and end"):
        read_chunks(path)


WRONG = [
    ({"chunk_id": "a", "doc_id": "d", "start": 9, "end": 3}, r"chunk 'a': expected an end .*found 9 to 3"),
    ({"chunk_id": "a", "doc_id": "d", "start": -1, "end": 3}, "as start, found -1"),
    ({"chunk_id": "a", "doc_id": "d", "start": 0, "end": 1.5}, "as end, found 1.5"),
    ({"chunk_id": "a", "doc_id": "d", "start": True, "end": 3}, "as start, found True"),
    ({"chunk_id": "a", "doc_id": "d", "start": "0", "end": "1_000"}, "as end, found '1_000'"),
    ({"chunk_id": "a", "doc_id": "d", "start": 0, "end": 10**13}, "from 0 to 1000000000000 as end"),
    ({"chunk_id": "a", "doc_id": None, "start": 0, "end": 3}, "id of a document as doc, found None"),
    ({"chunk_id": None, "doc_id": "d", "start": 0, "end": 3}, "id of a chunk .*as chunk_id, found None"),
    ({"chunk_id": "a\0", "doc_id": "d", "start": 0, "end": 3}, "as chunk_id, which contains"),
    ({"chunk_id": "fine", "doc_id": "d", "start": 0, "end": 3}, r"duplicate chunk 'fine' \(first at .*:1\)"),
]


@pytest.mark.parametrize(("row", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    path = tmp_path / "chunks.jsonl"
    fine = {"chunk_id": "fine", "doc_id": "d", "start": 0, "end": 3}
    path.write_text(as_jsonl([fine, row, {**row, "chunk_id": "fine"}]), encoding="utf-8")
    with pytest.raises(groupgt.DataError, match=rf"chunks\.jsonl:2: .*{words}|chunks\.jsonl:3: .*{words}"):
        read_chunks(path)


def test_parquet_with_a_fault_is_told_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "chunks.parquet"
    pl.DataFrame(rows("chunk_id", "doc_id")).with_columns(end=pl.lit(4)).write_parquet(path)
    with pytest.raises(groupgt.DataError, match="row 2: chunk 'c2': expected an end that is not before its start"):
        read_chunks(path)


@pytest.mark.parametrize("text", ["", "chunk_id,doc_id,start,end\n"])
def test_an_empty_table_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "chunks.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(groupgt.DataError), pytest.warns(groupgt.GroupgtWarning, match="empty"):
        read_chunks(path)


def test_places_of_a_mapping() -> None:
    found = Chunks.of({"a": ("d", 0, 3), "b": {"doc": "d", "start": 3, "end": 4}})
    assert found.spans() == {"a": Span("d", 0, 3), "b": Span("d", 3, 4)}
    with pytest.raises(groupgt.DataError, match=r"chunk 'a': expected doc, start and end, found \('d', 0\)"):
        Chunks.of({"a": ("d", 0)})


def test_parents_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "parents.csv"
    path.write_text("id,parent,section\na,d,1\nb,d,2\n", encoding="utf-8")
    assert read_parents(path, "parent") == {"a": "d", "b": "d"}
    assert read_parents(path, "section") == {"a": "1", "b": "2"}
    with pytest.raises(groupgt.DataError, match=r"expected the 'parents' column, found id, parent, section .*'parent'"):
        read_parents(path, "parents")
    path.write_text("id,parent\na,d\na,e\n", encoding="utf-8")
    with pytest.raises(groupgt.DataError, match=r":3: 'a' has two parents, 'd' and 'e'"):
        read_parents(path, "parent")


def test_a_span_as_text() -> None:
    assert str(span_of({"doc": "leave.md", "start": 120, "end": 480})) == "leave.md[120:480]"
