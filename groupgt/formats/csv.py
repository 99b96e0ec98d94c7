"""CSV and TSV: one judgment or one result a row, under a header line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from groupgt.errors import DataError, Faults, near_names
from groupgt.formats.rows import Judgment, finite, gather, ordered_run, run_name
from groupgt.formats.source import Source, bad_id
from groupgt.model.ground_truth import GRADE_LIMIT, GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run

__all__ = ["delimiter_of", "header_of", "read_ground_truth", "read_run", "table", "write_ground_truth", "write_run"]


def delimiter_of(line: bytes) -> str:
    """A tab where there is one, else a comma."""
    return "\t" if b"\t" in line else ","


def header_of(source: Source) -> list[str]:
    """The cells of the first line."""
    first = source.head().split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    return [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter_of(first.encode())), [])]


def table(source: Source, needed: Iterable[str], faults: Faults) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row as `file:line` and its cells by column; short and long rows are collected as faults."""
    lines = source.lines()
    source.warn_if_empty("rows")
    text = (line.decode() for line in lines)
    rows = csv.reader(text, delimiter=delimiter_of(lines[0]), strict=True)
    header = [cell.strip() for cell in next(rows, [])]
    for name in needed if header else ():
        if name not in header:
            faults.add(
                f"{source.path}:1", f"expected the column {name!r}, found {', '.join(header)}{near_names(name, header)}"
            )
    if faults:
        return
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            faults.add(f"{source.path}:{rows.line_num}", f"expected a row of CSV: {error}")
            return
        where = f"{source.path}:{rows.line_num}"
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            faults.add(where, f"expected {len(header)} columns ({', '.join(header)}), found {len(row)}")
            continue
        yield where, dict(zip(header, row))


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """`qid, group, doc_id[, grade]` a row."""
    faults = Faults()
    rows: list[Judgment] = []
    for where, row in table(source, ("qid", "group", "doc_id"), faults):
        where = f"{where}: query {row['qid']!r}"
        grade = finite(row["grade"]) if row.get("grade") else 1.0
        wrong = bad_id(row["qid"]) or bad_id(row["doc_id"])
        if wrong:
            faults.add(where, f"an id {wrong}")
        elif grade is None or abs(grade) > GRADE_LIMIT:
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
    for where, row in table(source, ("qid", "doc_id", order), faults):
        where = f"{where}: query {row['qid']!r}"
        score = finite(row[order].strip())
        wrong = bad_id(row["qid"]) or bad_id(row["doc_id"])
        if wrong:
            faults.add(where, f"an id {wrong}")
        elif score is None:
            faults.add(where, f"expected a finite number as the {order}, found {row[order]!r}")
        else:
            own = found.setdefault(row["qid"], ([], []))
            own[0].append(row["doc_id"])
            own[1].append(sign * score)
    faults.stop()
    return ordered_run(source, {}, found)


def _columns(source: Source) -> Run:
    import polars as pl

    header = header_of(source)
    order = "score" if "score" in header else "rank"
    if not {"qid", "doc_id", order} <= set(header):
        return read_slowly(source)
    first = source.head().split(b"\n", 1)[0]
    frame = pl.scan_csv(source.path, separator=delimiter_of(first), infer_schema=False, glob=False)
    number = pl.col(order).cast(pl.Float64, strict=False)
    complete = pl.col(header[-1]).is_not_null()
    frame = frame.select(
        pl.col("qid"),
        pl.col("doc_id").alias("doc"),
        pl.when(complete).then(number if order == "score" else -number).alias("score"),
    )
    return Run(
        columns=Columns(frame, lambda: read_slowly(source), path=source.path),
        name=run_name(source),
        source=str(source.path),
    )


def write_ground_truth(path: Path, rows: Iterator[Judgment], delimiter: str = ",") -> None:
    """`qid, group, doc_id, grade` a row."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["qid", "group", "doc_id", "grade"])
    for qid, group, document, grade in rows:
        writer.writerow([qid, group, document, f"{grade:g}"])
    _write(path, out)


def write_run(path: Path, rankings: Iterator[tuple[str, list[str], list[float]]], *, scored: bool) -> None:
    """`qid, doc_id, rank, score` a row; without scores, `qid, doc_id, rank`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["qid", "doc_id", "rank", *(["score"] if scored else [])])
    for qid, ids, scores in rankings:
        for rank, (document, score) in enumerate(zip(ids, scores), 1):
            writer.writerow([qid, document, rank, *([repr(score)] if scored else [])])
    _write(path, out)


def _write(path: Path, out: io.StringIO) -> None:
    try:
        path.write_text(out.getvalue(), encoding="utf-8", newline="")
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
