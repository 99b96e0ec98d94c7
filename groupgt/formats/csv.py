"""CSV and TSV: one judgment or one result a row, under a header line."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, GroupgtWarning, display, near_names
from groupgt.formats.rows import (
    CONTENTS,
    DOCUMENT,
    Judgment,
    beside_of,
    gather,
    length_of,
    number_text,
    ordered_run,
    run_name,
)
from groupgt.formats.source import Source
from groupgt.formats.validity import Guard, refuse_rows
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.lengths import UNITS
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run
from groupgt.model.validity import id_fault, is_grade, number_of
from groupgt.runtime import pl


def delimiter_of(line: bytes) -> str:
    """A tab where there is one; a semicolon, as some spreadsheets write it, where there is no comma; else a comma."""
    return "\t" if b"\t" in line else ";" if b";" in line and b"," not in line else ","


def header_of(source: Source) -> list[str]:
    """The cells of the first line; none where it is no CSV."""
    first = source.head().split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    try:
        return [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter_of(first.encode())), [])]
    except csv.Error:
        return []


@contextmanager
def _wide_cells() -> Iterator[None]:
    """Cells of any width, as the other reader takes them; the limit is the process's and is put back."""
    before = csv.field_size_limit(1 << 30)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def table(source: Source, needed: Iterable[str], faults: Faults) -> list[tuple[str, dict[str, str]]]:
    """Each row as `file:line` and its cells by column; short and long rows are collected as faults."""
    source.check_text()
    text = source.data.decode()
    with _wide_cells():
        return list(_table(source, text, needed, faults))


def _table(source: Source, text: str, needed: Iterable[str], faults: Faults) -> Iterator[tuple[str, dict[str, str]]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(source.lines()[0]), strict=True)
    place = f"{source.path}:1"
    try:
        header = [cell.strip() for cell in next(rows, [])]
    except csv.Error as error:
        faults.add(place, f"expected a row of CSV: {error}")
        return
    for name in dict.fromkeys(header):
        if header.count(name) > 1:
            faults.add(place, f"the column {name!r} stands twice; remove one")
    for name in needed if header else ():
        if name not in header:
            near = near_names(name, header).replace("did you mean", "is that")
            faults.add(place, f"expected the column {name!r}, found {', '.join(header)}{near}")
    if faults:
        return
    count = 0
    while True:
        where = f"{source.path}:{rows.line_num + 1}"
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            faults.add(where, f"expected a row of CSV, which begins here: {error}")
            return
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            faults.add(where, f"expected {len(header)} columns ({', '.join(header)}), found {len(row)}")
            continue
        count += 1
        yield where, dict(zip(header, row))
    if not count and not faults:
        warnings.warn(f"{source.path}: the file is empty: 0 rows", GroupgtWarning, stacklevel=3)


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """`qid, group, doc_id[, grade]` a row."""
    faults = Faults()
    rows: list[Judgment] = []
    for where, row in table(source, ("qid", "group", "doc_id"), faults):
        where = f"{where}: query {display(row['qid'])}"
        grade = number_of(row["grade"]) if row.get("grade") else 1.0
        wrong = id_fault(row["qid"]) or id_fault(row["doc_id"])
        if wrong:
            faults.add(where, f"an id {wrong}")
        elif grade is None or not is_grade(grade):
            faults.add(where, f"expected a number within ±2^31 as the grade, found {row['grade']!r}")
        else:
            rows.append((row["qid"], row["group"], row["doc_id"], grade))
    faults.stop()
    return gather(rows, policy)


def read_run(source: Source) -> Run:
    """`qid, doc_id, score` or `qid, doc_id, rank` a row."""
    return _columns(source) if source.is_large else read_slowly(source)


def read_slowly(source: Source) -> Run:
    """Reads row by row, and names every row that is wrong."""
    faults = Faults()
    order = "score" if "score" in header_of(source) else "rank"
    sign = 1.0 if order == "score" else -1.0
    found: dict[str, tuple[list[str], list[float]]] = {}
    units = [unit for unit in UNITS if unit in header_of(source)]
    lengths: dict[str, dict[str, list[int | None]]] = {unit: {} for unit in units}
    beside: dict[str, dict[str, list[Any]]] = {}
    for where, row in table(source, ("qid", "doc_id", order), faults):
        where = f"{where}: query {display(row['qid'])}"
        score = number_of(row[order].strip())
        wrong = id_fault(row["qid"]) or id_fault(row["doc_id"])
        for unit in units:
            lengths[unit].setdefault(row["qid"], []).append(length_of(row[unit].strip()))
        if wrong:
            faults.add(where, f"an id {wrong}")
        elif score is None:
            faults.add(where, f"expected a finite number as the {order}, found {row[order]!r}")
        else:
            own = found.setdefault(row["qid"], ([], []))
            own[0].append(row["doc_id"])
            own[1].append(sign * score)
            # An empty cell is none, as in a column.
            for what, cell in beside_of({name: given or None for name, given in row.items()}).items():
                beside.setdefault(what, {}).setdefault(row["qid"], []).append(cell)
    faults.stop()
    return ordered_run(source, {}, found, lengths, beside)


def _whole(cells: pl.Expr) -> pl.Expr:
    """Lengths, as `length_of` reads them; null for anything else."""
    plain = cells.str.strip_chars()
    return (
        pl.when(plain.str.contains(r"^[0-9]{1,16}$"))
        .then(plain.cast(pl.Int64, strict=False))
        .alias(cells.meta.output_name())
    )


def _columns(source: Source) -> Run:
    header = header_of(source)
    order = "score" if "score" in header else "rank"
    doubtful = not {"qid", "doc_id", order} <= set(header) or len(set(header)) < len(header)
    if doubtful or (not source.is_huge and source.holds_nul()):
        return read_slowly(source)
    first = source.head().split(b"\n", 1)[0]
    read = source.path if source.is_huge else source.for_polars
    scanned = pl.scan_csv(read, separator=delimiter_of(first), infer_schema=False, glob=False)
    frame = _results(scanned, header, order)
    # What is too large to be read row by row says where it is wrong by the numbers of rows.
    slowly = (lambda: refuse_rows(frame, str(source.path), order)) if source.is_huge else (lambda: read_slowly(source))
    return Run(Columns(frame, slowly), name=run_name(source), source=str(source.path))


def run_at(url: str, guard: Guard) -> Run:
    """The same at a URL."""
    separator = "\t" if url.removesuffix(".gz").removesuffix(".zst").endswith(".tsv") else ","
    scanned = pl.scan_csv(url, separator=separator, infer_schema=False)
    header = guard(scanned.collect_schema).names()
    order = "score" if "score" in header else "rank"
    missing = [name for name in ("qid", "doc_id", order) if name not in header]
    if missing:
        raise DataError(f"{url}: expected the columns qid, doc_id and score or rank; found {', '.join(header)}")
    frame = _results(scanned, header, order)
    return Run(Columns(frame, lambda: refuse_rows(frame, url, order, guard), guard), source=url)


def _results(scanned: pl.LazyFrame, header: list[str], order: str) -> pl.LazyFrame:
    """The columns of results, of cells that are all text."""
    number = pl.col(order).cast(pl.Float64, strict=False)
    # As many cells as the header: polars fills short rows with nulls.
    complete = pl.col(header[-1]).is_not_null()
    return scanned.select(
        pl.col("qid"),
        pl.col("doc_id").alias("doc"),
        pl.when(complete).then(number if order == "score" else -number).alias("score"),
        *(_whole(pl.col(name)) for name in (*UNITS, "start", "end") if name in header),
        *(pl.col(name).alias("text") for name in [each for each in CONTENTS if each in header][:1]),
        *(pl.col(name) for name in ("parent",) if name in header),
        *([pl.col(DOCUMENT).alias("document")] if DOCUMENT in header else []),
    )


def write_ground_truth(path: Path, rows: Iterator[Judgment], delimiter: str = ",") -> None:
    """`qid, group, doc_id, grade` a row."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["qid", "group", "doc_id", "grade"])
    for qid, group, document, grade in rows:
        writer.writerow([*_cells(qid, group, document), number_text(grade)])
    path.write_text(out.getvalue(), encoding="utf-8", newline="")


def write_run(path: Path, rankings: Iterator[tuple[str, list[str], list[float]]], *, scored: bool) -> None:
    """`qid, doc_id, rank, score` a row; without scores, `qid, doc_id, rank`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["qid", "doc_id", "rank", *(["score"] if scored else [])])
    for qid, ids, scores in rankings:
        for rank, (document, score) in enumerate(zip(ids, scores), 1):
            writer.writerow([*_cells(qid, document), rank, *([repr(score)] if scored else [])])
    path.write_text(out.getvalue(), encoding="utf-8", newline="")


def _cells(*texts: str) -> tuple[str, ...]:
    for text in texts:
        if "\r" in text:
            raise DataError(f"{text!r} holds a carriage return, which does not survive in CSV; write jsonl or parquet")
    return texts
