"""Reads and writes parquet files, and checks their pages against the footer before polars reads them.

polars trusts page headers: a single flipped bit can request more memory than is available, which kills the process.
Page checksums, if present, are verified too, because polars does not verify them.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.formats import frames
from groupgt.formats.fields import CALL_LIST, SCORES
from groupgt.formats.names import without_endings
from groupgt.formats.rows import SHAPE, Calls, Ranking
from groupgt.formats.source import Source
from groupgt.formats.validity import Guard, guarded
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.runtime import pl

MAGIC = b"PAR1"
# Field numbers in parquet.thrift: of the footer, of a row group, of a column chunk,
ROW_GROUPS, COLUMNS, META = 4, 1, 3
PATH, VALUES, UNPACKED, PACKED, DATA_OFFSET, DICTIONARY_OFFSET = 3, 5, 6, 7, 9, 11
# of a page header, and of its part for a page of that kind.
KIND, PAGE_UNPACKED, PAGE_PACKED, CHECKSUM = 1, 2, 3, 4
DATA, INDEX, DICTIONARY, DATA_2 = 0, 1, 2, 3
INNER_HEADER = {DATA: 5, INDEX: 6, DICTIONARY: 7, DATA_2: 8}
PAGE_VALUES, NULLS, ROWS, DEFINITIONS, REPETITIONS = 1, 2, 3, 5, 6


def check_pages(path: Path) -> None:
    """Raise `DataError` if page headers do not match the footer or if pages do not match their checksums."""
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) < 12:
                raise ValueError
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                _check(path, content)
    except (OSError, ArithmeticError, AttributeError, LookupError, ValueError, TypeError, RecursionError, MemoryError):
        raise DataError(f"{path}: the parquet file is damaged or cut off") from None


def _check(path: Path, content: mmap.mmap) -> None:
    if content[-4:] != MAGIC:
        raise DataError(f"{path}: the parquet footer is missing: the file is damaged or cut off")
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = _Compact(content[max(end, 0) : -8]).struct()
    for group in footer.get(ROW_GROUPS, []):
        for column in group[COLUMNS]:
            meta = column[META]
            start = min(offset for offset in (meta[DATA_OFFSET], meta.get(DICTIONARY_OFFSET)) if offset)
            if start < len(MAGIC) or meta[PACKED] < 0 or start + meta[PACKED] > end:
                raise ValueError
            with memoryview(content) as view, view[start : start + meta[PACKED]] as chunk:
                _check_chunk(chunk, meta, path, start)


def _check_chunk(chunk: memoryview, meta: dict[int, Any], path: Path, start: int) -> None:
    """Walk through page headers, as a reader would, until all values in the chunk have been counted."""
    at = values = 0
    while values < meta[VALUES]:
        reader = _Compact(chunk, at)
        header = reader.struct()
        kind, unpacked, packed = header[KIND], header[PAGE_UNPACKED], header[PAGE_PACKED]
        inner = header[INNER_HEADER[kind]]
        begin, at = reader.at, reader.at + packed
        if packed < 0 or at > len(chunk) or not 0 <= unpacked <= meta[UNPACKED]:
            raise ValueError
        if kind in (DATA, DATA_2):
            values += inner[PAGE_VALUES]
        limit = unpacked if kind == DICTIONARY else meta[VALUES]
        if kind != INDEX and not 0 <= inner[PAGE_VALUES] <= limit:
            raise ValueError
        if kind == DATA_2:
            nulls, rows, definitions, repetitions = (inner[part] for part in (NULLS, ROWS, DEFINITIONS, REPETITIONS))
            if min(nulls, rows, definitions, repetitions) < 0 or max(nulls, rows) > inner[PAGE_VALUES]:
                raise ValueError
            if definitions + repetitions > packed:
                raise ValueError
        if CHECKSUM in header and zlib.crc32(chunk[begin:at]) != header[CHECKSUM] & 0xFFFFFFFF:
            column = meta[PATH][0].decode()
            raise DataError(
                f"{path}: the page of column {column!r} at byte {start + begin:,} does not match its checksum: "
                "the file is damaged; get a fresh copy"
            )
    if values != meta[VALUES]:
        raise ValueError


class _Compact:
    """A reader for the subset of Thrift's compact protocol that parquet metadata uses."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def signed(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("the data ends too early")
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.signed()
        if kind == 7:
            return self.take(8)
        if kind == 8:
            return self.take(self.unsigned())
        if kind in (9, 10):
            head = self.byte()
            size = self.unsigned() if head >> 4 == 15 else head >> 4
            inner = head & 15
            return [self.byte() == 1 if inner in (1, 2) else self.value(inner) for _ in range(size)]
        if kind == 12:
            return self.struct()
        raise ValueError(f"unknown type {kind}")

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.signed()
            fields[number] = self.value(head & 15)


def scan(source: Source) -> pl.LazyFrame:
    """Return the columns of a file lazily; its pages are checked before the first read."""
    return source.cached(_scan)


def _scan(source: Source) -> pl.LazyFrame:
    if not source.is_parquet:
        raise DataError(f"{source.path}: expected a parquet file, found something else; name another format")
    if source.is_pipe:
        raise DataError(f"{source.path}: Parquet cannot be read from a pipe; save it to a file")
    check_pages(source.path)
    frame = pl.scan_parquet(source.path, glob=False)
    _guard_of(source)(frame.collect_schema)
    return frame


def _guard_of(source: Source) -> Guard:
    """Return a function that runs a polars step and converts errors about damaged files to a `DataError`."""
    return partial(guarded, source.path, "the parquet file is damaged or cut off")


def names_of(source: Source) -> list[str]:
    """Return the column names of a file."""
    return list(scan(source).collect_schema())


def read_table(source: Source) -> pl.DataFrame:
    """Read a file as a single table."""
    table: pl.DataFrame = _guard_of(source)(scan(source).collect)
    return table


def rows_of(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row of a file as a dict, with its location."""
    for number, row in enumerate(read_table(source).to_dicts(), 1):
        yield f"{source.path}: row {number}", row


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read AutoRAG's `qa.parquet` (`qid`, `query`, `retrieval_gt`, …) or rows of `qid, group, doc_id[, grade]`."""
    return frames.truth_of(read_table(source), policy, str(source.path), source.columns)


def read_run(source: Source, qids: list[str] | None = None) -> Run:
    """Read long (`qid, doc_id, score | rank`) or nested (`qid, retrieved_ids[, retrieve_scores]`) results.

    AutoRAG's node output is nested, but has no `qid`: its rows are assigned to `qids` in order.
    """
    guard, columns = _guard_of(source), source.columns
    run = frames.run_of(scan(source), str(source.path), qids, guard=guard, columns=columns)
    return replace(run, name=without_endings(source.path.name))


def read_parts(sources: Sequence[Source], title: str) -> Run:
    """Read one run from many files with the same columns."""
    for source in sources:
        check_pages(source.path)
    guard = partial(guarded, title, "a parquet file is damaged, cut off, or has other columns than the rest")
    return frames.run_of(pl.scan_parquet([source.path for source in sources], glob=False), title, guard=guard)


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write AutoRAG's `qa.parquet`, which cannot store grades, group weights or group names."""
    columns: dict[str, pl.Series] = {"qid": pl.Series(truth.qids, dtype=pl.String)}
    if truth.texts:
        columns["query"] = pl.Series(truth.texts, dtype=pl.String)
    lists = [
        [group["alternatives"] if isinstance(group, dict) else group for group in groups] for _, groups in truth.items()
    ]
    columns["retrieval_gt"] = pl.Series(lists, dtype=pl.List(pl.List(pl.String)))
    if truth.excluded:
        columns["excluded_ids"] = pl.Series([sorted(ids) for ids in truth.excluded], dtype=pl.List(pl.String))
    if truth.shape != "groups":
        columns[SHAPE] = pl.Series([truth.shape] * len(truth), dtype=pl.String)
    for name, values in truth.columns.items():
        columns[name] = pl.Series(values, strict=False)
    pl.DataFrame(columns).write_parquet(path)


def write_run(path: Path, rankings: Iterable[Ranking], *, scored: bool, calls: Calls | None = None) -> None:
    """Write `qid, retrieved_ids[, retrieve_scores][, retrieved_calls]`."""
    rows = list(rankings)
    qids = [qid for qid, _, _ in rows]
    columns = {
        "qid": pl.Series(qids, dtype=pl.String),
        "retrieved_ids": pl.Series([ids for _, ids, _ in rows], dtype=pl.List(pl.String)),
    }
    if scored:
        columns[SCORES] = pl.Series([scores for _, _, scores in rows], dtype=pl.List(pl.Float64))
    if calls:
        columns[CALL_LIST] = pl.Series([list(calls[qid]) for qid in qids], dtype=pl.List(pl.Int64))
    pl.DataFrame(columns).write_parquet(path)
