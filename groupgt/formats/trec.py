"""Reads and writes TREC runs, qrels and subtopic qrels as interpreted by trec_eval and ndeval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from groupgt import native
from groupgt.errors import DataError, Faults, display, warn
from groupgt.formats.fields import Judgments, ids_fault, score_fault
from groupgt.formats.layout import layout_of
from groupgt.formats.rows import (
    Judgment,
    Ranking,
    checked_columns,
    gather,
    number_text,
    order_fault,
    run_in,
    write_lines,
)
from groupgt.formats.source import Source
from groupgt.formats.validity import is_number, number_of, rechecked
from groupgt.model import validity
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lines, Lists, Run
from groupgt.runtime import pl

RUN_COLUMNS = "qid Q0 doc rank score tag"
MIN_COLUMNS, MAX_COLUMNS = 6, 10
BARE_RETURN = "found a carriage return (U+000D) that ends no line; end lines with line feeds"
ITER_HINT = ", or read the second column as the group: --truth-format trec-subtopics"


QRELS, WITHOUT_ITER, SUBTOPICS = "qid iter doc rel", "qid doc rel", "topic subtopic doc rel"


def read_qrels(source: Source, policy: Policy, columns: str = "") -> GroundTruth:
    """Read qrels with these columns, or else `qid iter doc rel`, or `qid doc rel` if unambiguous.

    Each subtopic is a group; without subtopics, each document is its own group.
    """
    columns = columns or (WITHOUT_ITER if _is_without_iter(source) else QRELS)
    return gather(judgments(source, columns), policy, shape="subtopics" if columns == SUBTOPICS else "flat")


def read_unnamed(source: Source, policy: Policy) -> GroundTruth:
    """Read qrels if the user named no format; raises `DataError` if the second column may contain subtopics."""
    if not _is_without_iter(source) and len({second for _, second, _, _ in judgments(source, QRELS)}) > 1:
        raise DataError(
            f"{source.path}: the second column has several values; add --truth-format trec-subtopics if they are "
            "subtopics (groups), --truth-format trec if they mean nothing"
        )
    return read_qrels(source, policy)


def _is_without_iter(source: Source) -> bool:
    """Return whether qrels have the columns `qid doc rel`, as in MS MARCO and Cranfield.

    Raises `DataError` if they may also be `qid iter doc`.
    The last column contains grades, not documents, if a value repeats within a query, or if there is only one value.
    """
    rows: list[list[bytes]] = []
    for cells in map(bytes.split, source.lines(keep=True)):
        if cells and not cells[0].startswith(b"#"):
            if len(cells) != 3:
                return False
            rows.append(cells)
    grades = {grade for _, _, grade in rows}
    numbers = [validity.number_of(grade.decode()) for grade in grades]
    if not rows or not all(number is not None and number.is_integer() for number in numbers):
        return False
    if len({(qid, document) for qid, document, _ in rows}) < len(rows):
        return False
    if len({(qid, grade) for qid, _, grade in rows}) < len(rows) or len(grades) < 2 <= len(rows):
        return True
    what = f"expected 4 columns ({QRELS}), found 3, which may be {WITHOUT_ITER} or qid iter doc"
    raise DataError(f"{source.path}: {what}; if they are {WITHOUT_ITER}, say so: --truth-format trec-no-iter")


def judgments(source: Source, expected: str) -> list[Judgment]:
    """Read all lines of qrels with the `expected` columns; raises `DataError` with every error."""
    source.warn_if_empty("judgments")
    width = len(expected.split())
    grouped, hint = "subtopic" in expected, ITER_HINT if expected == QRELS else ""
    judged = Judgments(lambda number: f"{source.path}:{number}", called="relevance", grouped=grouped, hint=hint)
    for number, line in enumerate(source.lines(keep=True), 1):
        cells = line.split()
        if b"\r" in line:
            judged.faults.add(judged.where(number), BARE_RETURN)
        elif not cells or cells[0].startswith(b"#"):
            continue
        elif len(cells) != width:
            what = f"expected {width} columns ({expected}), found {len(cells)}"
            if len(cells) == 5:
                rel, method, probability = (validity.number_of(cell.decode()) for cell in cells[2:])
                if rel is not None and method is not None and probability is not None and 0 < probability <= 1:
                    what += ": these are prels (qid doc rel method probability); keep qid, 0, doc and rel"
                elif method is not None:
                    what += "; remove everything after the relevance"
            judged.faults.add(judged.where(number), what)
        else:
            qid, group, document, grade_text = (cells[at].decode() for at in (0, 1, -2, -1))
            judged.add(number, qid, group, document, validity.number_of(grade_text), grade_text)
    return judged.rows()


def read_run(source: Source) -> Run:
    """Read `qid Q0 doc rank score tag`, separated by spaces or tabs.

    The score determines the order; the rank and up to four additional columns are ignored.
    """
    if not source.is_large:
        return _read_lines(source)
    # Parts can be read separately if they are in memory, or stored uncompressed.
    has_parts = not (source.is_compressed and source.is_huge)
    if native.built is None or source.streamed or not has_parts:
        return _streamed(source)
    lines = Lines(source.part, *source.extent, read=partial(_streamed, source), recheck=partial(_read_strictly, source))
    return run_in(source, lines)


def _read_lines(source: Source) -> Run:
    faults = Faults()
    source.warn_if_empty("results")
    # Bytes that may be invalid in ids, or a carriage return within a line.
    data = np.frombuffer(source.data, dtype=np.uint8)
    returns = source.data.count(b"\r\n") + source.data.endswith(b"\r")
    expected = source.data.count(b"\n") + source.data.count(b"\t") + returns
    odd = int(np.count_nonzero(data < ord(" "))) != expected or validity.holds_odd_letters(data)
    ids: dict[bytes, list[str]] = {}
    scores: dict[bytes, list[float]] = {}
    for qid, document, score in _results(source.lines(), str(source.path), faults, odd=odd):
        if qid not in ids:
            ids[qid], scores[qid] = [], []
        ids[qid].append(document.decode())
        scores[qid].append(score)
    faults.stop()
    lists = Lists(
        {qid.decode(): ranking for qid, ranking in ids.items()}, {qid.decode(): row for qid, row in scores.items()}
    )
    return run_in(source, lists)


def _results(
    lines: Iterable[bytes], title: str, faults: Faults, *, odd: bool = True
) -> Iterator[tuple[bytes, bytes, float]]:
    """Yield the query, document and score of each line; invalid lines are collected as errors."""
    for number, line in enumerate(lines, 1):
        cells = line.split()
        fault = None
        if odd or len(cells) != MIN_COLUMNS or not cells[3].isdigit() or len(line) > validity.LONGEST_ID:
            if not cells:
                continue
            fault = _line_fault(line, cells)
        if not fault:
            score = validity.number_of_bytes(cells[4])
            if score is not None:
                yield cells[0], cells[2], score
                continue
            fault = f"query {display(cells[0].decode())}: {score_fault(cells[4].decode())}"
        faults.add(f"{title}:{number}", fault)


def tag_of(source: Source) -> str:
    """Return the run tag from the sixth column; if there are several tags, return the first with a warning.

    Raises `DataError` if there is none.
    """
    rows = (line.split(None, MIN_COLUMNS) for line in source.lines())
    tags = dict.fromkeys(cells[MIN_COLUMNS - 1] for cells in rows if len(cells) >= MIN_COLUMNS)
    if not tags:
        raise DataError(f"{source.path}: expected a TREC run, whose sixth column is its tag; name it by NAME=PATH")
    first, *others = (tag.decode("utf-8", "replace") for tag in tags)
    if others:
        warn(f"{source.path}: has {len(tags):,} tags, {first} and {', '.join(others[:3])}; the first names the run")
    return first


def is_result(line: bytes) -> bool:
    """Return whether a line is certainly a result, judging by its rank and score."""
    cells = line.split()
    is_ranked = len(cells) >= MIN_COLUMNS and validity.is_rank(cells[3].decode("utf-8", "replace"))
    return is_ranked and validity.number_of_bytes(cells[4]) is not None


def _line_fault(line: bytes, cells: Sequence[bytes]) -> str | None:
    """Return the error in a line of results, ignoring its score."""
    if b"\r" in line:
        return BARE_RETURN
    what = f"expected {MIN_COLUMNS} columns ({RUN_COLUMNS}), found {len(cells)}"
    if not MIN_COLUMNS <= len(cells) <= MAX_COLUMNS:
        return what if len(cells) < MIN_COLUMNS else f"{what}: are two lines joined?"
    qid, _, document, rank, _, sixth = (cell.decode() for cell in cells[:MIN_COLUMNS])
    if len(cells) > MIN_COLUMNS and validity.is_number(sixth):
        fault: str | None = f"{what}, the sixth being the number {sixth}: does an id contain a blank?"
    elif not validity.is_rank(rank):
        fault = f"expected a whole number as the rank, found {display(rank)}"
    else:
        fault = ids_fault(qid, document)
    return None if fault is None else f"query {display(qid)}: {fault}"


def _streamed(source: Source) -> Run:
    """Return lazy columns if the byte layout is regular; otherwise use the strict reader."""
    separator = "\t" if b"\t" in source.first_line else " "
    width = len(source.first_line.split())
    layout = layout_of(source, separator, words=True)
    if not MIN_COLUMNS <= width <= MAX_COLUMNS or not layout.has_columns(width):
        return _read_strictly(source)
    names = [*("qid", "q0", "doc", "rank", "score", "tag"), *map(str, range(MIN_COLUMNS, width))]
    rows = pl.scan_csv(
        source.for_polars,
        has_header=False,
        schema=dict.fromkeys(names, pl.String) | {"rank": pl.Int64, "score": pl.Float64},
        separator=separator,
        quote_char=None,
        ignore_errors=True,
        glob=False,
    )
    # The last column of a short line is null; ranks beyond 64 bits, or with a point, are left to the strict reader.
    is_complete = pl.col(names[-1]).is_not_null() & pl.col("rank").is_not_null()
    if width > MIN_COLUMNS:
        is_complete &= ~is_number(pl.col("tag"))
    frame = rows.select("qid", "doc", pl.when(is_complete).then(pl.col("score")).alias("score"))
    return run_in(source, rechecked(frame, partial(_read_strictly, source), ids_checked=layout.plain_ids))


def _read_strictly(source: Source) -> Run:
    """Read an irregular or invalid file line by line; huge files are returned as columns."""
    return _checked(str(source.path), source.lines) if source.is_huge else _read_lines(source)


def _checked(title: str, lines: Callable[[], Iterable[bytes]]) -> Run:
    """Parse lines one by one and stream them as columns; raises `DataError` with every invalid line."""

    def rows(faults: Faults) -> Iterator[tuple[str, str, float]]:
        for qid, document, score in _results(lines(), title, faults):
            yield qid.decode(), document.decode(), score

    return checked_columns(rows, {"qid": pl.String, "doc": pl.String, "score": pl.Float64}, title)


def columns_at(url: str, lines: Callable[[], Iterator[bytes]]) -> Columns:
    """Return the results at a URL as columns; `lines` is only called to locate errors.

    Lines are split at whitespace, which is slower than reading a table but reliable; invalid lines get no score.
    """
    blank, cell = r"[ \t\x0b\x0c]", r"[^ \t\r\x0b\x0c\x00]+"
    columns = (f"({cell})", cell, f"({cell})", validity.RANK, f"({cell})", f"({cell})")
    pattern = f"^{blank}*" + f"{blank}+".join(columns)
    pattern += f"((?:{blank}+{cell}){{0,{MAX_COLUMNS - MIN_COLUMNS}}}){blank}*$"
    scanned = pl.scan_lines(url, row_index_name="row").filter(~pl.col("line").str.contains(f"^{blank}*$"))
    line = pl.when(pl.col("row") == 0).then(pl.col("line").str.strip_prefix("\ufeff")).otherwise(pl.col("line"))
    # The group for the point of a rank comes between.
    names = ["qid", "doc", "point", "text", "sixth", "more"]
    cells = scanned.select(line.str.extract_groups(pattern).struct.rename_fields(names).alias("cells")).unnest("cells")
    joined = (pl.col("more") != "") & is_number(pl.col("sixth"))
    frame = cells.select("qid", "doc", pl.when(~joined).then(number_of(pl.col("text"))).alias("score"))
    return rechecked(frame, partial(_checked, url, lines))


def run_fault(rankings: Iterable[tuple[str, Sequence[str], Sequence[float]]]) -> str | None:
    """Explain why results, given best first, cannot be written as a TREC run; returns None if they can.

    Ids must not contain whitespace, and TREC readers order results by score, and equal scores by id.
    """
    for qid, ids, scores in rankings:
        # All ids at once: one with a blank would split into two words, or none.
        line = " ".join((qid, *ids)).encode()
        words = line.split()
        if len(words) != 1 + len(ids) or b" ".join(words) != line:
            return _blank_fault(qid, *ids)
        if fault := order_fault(qid, ids, scores):
            return fault
    return None


def judgments_fault(rows: Iterable[Judgment]) -> str | None:
    """Explain why judgments cannot be written as qrels; returns None if they can."""
    for qid, _, document, _ in rows:
        if qid.startswith("#"):
            return f"the query id {qid!r} would be read as a comment; write jsonl, csv or parquet"
        if fault := _blank_fault(qid, document):
            return fault
    return None


def _blank_fault(*names: str) -> str | None:
    for name in names:
        if name.encode().split() != [name.encode()]:
            return f"the id {name!r} contains white space, which a TREC file cannot store; write jsonl or parquet"
    return None


def write_run(path: Path, rankings: Iterable[Ranking], tag: str) -> None:
    """Write a TREC run that has passed `run_fault`."""
    blocks = (
        "".join([f"{qid} Q0 {ids[at]} {at + 1} {score!r} {tag}\n" for at, score in enumerate(scores)])
        for qid, ids, scores in rankings
    )
    write_lines(path, blocks)


def write_qrels(path: Path, rows: Iterable[Judgment], *, grouped: bool = False) -> None:
    """Write qrels that have passed `judgments_fault`.

    If they are `grouped`, the subtopic column contains the name or number of the group, without whitespace.
    """
    lines = (
        f"{qid} {group if grouped else 0} {document} {number_text(grade)}\n" for qid, group, document, grade in rows
    )
    write_lines(path, lines)
