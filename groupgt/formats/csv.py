"""Reads and writes CSV and TSV files with a header line and one judgment, result or other row per line."""

from __future__ import annotations

import csv
import io
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress, islice, repeat
from pathlib import Path
from typing import Any, Literal

from groupgt.errors import DataError, Faults, display, warn
from groupgt.formats import fields
from groupgt.formats.columns import columns_in, listed_in
from groupgt.formats.endings import ending_of
from groupgt.formats.jsonl import run_of_records
from groupgt.formats.layout import Layout, layout_of
from groupgt.formats.roles import (
    NO_COLUMNS,
    Declared,
    canonical,
    is_kind,
    missing_columns,
    query_column,
    roles_in,
    shown_names,
)
from groupgt.formats.rows import (
    SHAPE,
    Calls,
    Judgment,
    Ranking,
    RunBuilder,
    Trials,
    number_text,
    numbered,
    run_in,
    streamed,
)
from groupgt.formats.source import Source
from groupgt.formats.tables import Table, truth_of
from groupgt.formats.validity import Guard, normal_texts, rechecked
from groupgt.model import validity
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run
from groupgt.model.values import normal_text
from groupgt.model.written import Shape
from groupgt.runtime import pl

# The maximum width of a cell, and the number of rows read at a time.
WIDEST, BLOCK = 1 << 30, 1 << 12
# Blanks that may surround a number or a column name.
BLANKS = " \t\x0b\x0c"
BARE_RETURN = "found a carriage return (U+000D) within a line; quote the cell, or remove the carriage return"
# polars is slow with more columns than this.
WIDEST_TABLE = 1000


def delimiter_of(line: bytes) -> str:
    """Return the delimiter of a line: a tab if the line has one, a semicolon if it has no comma, otherwise a comma."""
    return "\t" if b"\t" in line else ";" if b";" in line and b"," not in line else ","


def _above(source: Source) -> list[bytes]:
    """Return the lines above the header if the first begins with `#` and is not itself a header."""
    first = source.first_line
    lines = source.head().split(b"\n") if first.startswith(b"#") else []
    at = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith(b"#")), 0)
    if at == 0 or names_table(first):
        return []
    mark = delimiter_of(lines[at]).encode()
    return lines[:at] if first.count(mark) != lines[at].count(mark) or names_table(lines[at]) else []


def _comments_in(source: Source) -> int:
    return sum(line.startswith(b"#") for line in source.cached(_above))


def _header_line(source: Source) -> bytes:
    """Return the first line that is neither blank nor a comment."""
    above = len(source.cached(_above))
    return source.head().split(b"\n")[above].removesuffix(b"\r") if above else source.first_line


def header_of(source: Source) -> list[str]:
    """Return the cells of the header line, or an empty list if the file is not CSV text."""
    return _cells(_header_line(source))


def names_table(line: bytes) -> bool:
    """Return whether a line contains the column names that ground truth or results need."""
    names = _cells(line)
    return is_kind(names, "truth") or is_kind(names, "run")


def _cells(line: bytes) -> list[str]:
    try:
        with _wide_cells():
            cells = next(csv.reader([line.decode()], delimiter=delimiter_of(line)), [])
    except (csv.Error, UnicodeDecodeError):
        return []
    return [cell.strip(BLANKS) for cell in cells]


@dataclass(frozen=True)
class _Text:
    """The text of a table. Each call of `lines` starts from the beginning and keeps line endings."""

    title: str
    delimiter: str
    lines: Callable[[], Iterable[str]]
    # The columns that the user declared, if they are results, whose columns are named by their roles.
    declared: Declared | None = None
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL

    @classmethod
    def of(cls, source: Source, *, keep: bool = False, run: bool = False) -> _Text:
        above = len(source.cached(_above))

        def read() -> Iterable[str]:
            if source.is_huge or (keep and source.ceiling):
                return (f"{line.decode()}\n" for line in source.raw_lines(keep=keep))
            source.check_text()
            return io.StringIO(source.data.decode(), newline="\n")

        def lines() -> Iterable[str]:
            """Return the lines, with blank lines for comments, so that line numbers do not change."""
            return chain(repeat("\n", above), islice(read(), above, None)) if above else read()

        return cls(str(source.path), delimiter_of(_header_line(source)), lines, source.columns if run else None)

    def named(self, header: list[str]) -> list[str]:
        return header if self.declared is None else list(canonical(header, self.declared))


def table(source: Source, needed: Sequence[str], faults: Faults) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row as `file:line` and its cells by column. Report rows that are too short or too long."""
    rows = _rows(_Text.of(source, keep=True), faults, needed)
    _, header = next(rows)
    for number, cells in rows:
        yield f"{source.path}:{number}", dict(zip(header, cells))


def _rows(text: _Text, faults: Faults, needed: Sequence[str] | None = ()) -> Iterator[tuple[int, list[str]]]:
    """Yield the header, then rows, with the numbers of their first lines. `needed` is None for results."""
    rows = ((number, cells) for number, cells in _parsed(text, faults) if "".join(cells).strip(BLANKS))
    number, cells = next(rows, (1, []))
    names = [cell.strip(BLANKS) for cell in cells]
    header = text.named(names)
    if not faults:
        where, needed = f"{text.title}:{number}", _needed(header) if needed is None else needed
        for name, count in Counter(names).items():
            if count > 1:
                faults.add(where, f"duplicate column {name!r}; remove one")
        if missing := [name for name in needed if header and name not in header]:
            expected = ", ".join("score (or rank)" if name == "score" else name for name in needed)
            faults.add(where, missing_columns(names, missing, expected, "run"))
    yield number, header
    if faults:
        return
    has_rows, width = False, len(header)
    for number, cells in rows:
        if len(cells) == width:
            has_rows = True
            yield number, cells
        else:
            faults.add(f"{text.title}:{number}", f"expected {width} columns ({shown_names(names)}), found {len(cells)}")
    if not has_rows and not faults:
        warn(f"{text.title}: the file is empty (0 rows)")


def _parsed(text: _Text, faults: Faults) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the number of its first line. Stop at the first row that is not valid CSV."""
    doubled: set[int] = set()
    reader = csv.reader(_noted(text.lines(), doubled), delimiter=text.delimiter, quoting=text.quoting, strict=True)
    while True:
        block: list[tuple[int, list[str]]] = []
        number, fault = reader.line_num + 1, ""
        try:
            with _wide_cells():
                for cells in islice(reader, BLOCK):
                    if reader.line_num in doubled:
                        raise csv.Error("new-line")
                    block.append((number, cells))
                    number = reader.line_num + 1
        except csv.Error as error:
            fault = BARE_RETURN if "new-line" in str(error) else f"expected a CSV row that begins on this line: {error}"
        yield from block
        if fault:
            faults.add(f"{text.title}:{number}", fault)
        if fault or len(block) < BLOCK:
            return


def _noted(lines: Iterable[str], doubled: set[int]) -> Iterator[str]:
    """Yield lines, and record those that end with several carriage returns, which `csv` reads as one line ending."""
    for number, line in enumerate(lines, 1):
        if line.endswith(("\r\r\n", "\r\r")):
            doubled.add(number)
        yield line


@contextmanager
def _wide_cells() -> Iterator[None]:
    """Temporarily raise the process-wide limit on cell size."""
    before = csv.field_size_limit(WIDEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_ground_truth(
    source: Source, policy: Policy, *, words: Callable[[], Iterable[str]] | None = None
) -> GroundTruth:
    """Read ground truth that has one row per judgment or per query. `words` returns lines of tab-separated words."""
    faults = Faults()
    text = _Text.of(source, keep=True)
    if words is not None:
        text = replace(text, lines=words, delimiter="\t", quoting=csv.QUOTE_NONE)
    (_, header), *located = _rows(text, faults)
    columns = dict(zip(header, zip(*(row for _, row in located)))) if located else dict.fromkeys(header, ())
    title = str(source.path)
    table = Table(title, header, columns.__getitem__, lambda row: f"{title}:{located[row][0]}", True, f"{title}:1")
    truth = truth_of(replace(table, faults=faults, declared=source.columns), policy)
    return replace(truth, comments=_comments_in(source))


def read_run(source: Source) -> Run:
    """Read one row per result (`qid, doc_id, score`, or `rank`) or per query (`qid, retrieved_ids`)."""
    roles = roles_in(header_of(source), "run", source.columns)
    if fields.trial_column(roles, str(source.path)) or ("retrieved_ids" in roles and "doc_id" not in roles):
        return _read_records(source, roles)
    if (column := fields.repeats_in(header_of(source))) is not None and (query := roles.get("qid", roles.get("query"))):
        rows = table(source, (), Faults())
        fields.refuse_repeats(((where, row[query], row[column]) for where, row in rows), column)
    run = _streamed(source) if source.is_large else _read_rows(source)
    return replace(run, comments=_comments_in(source))


def _read_records(source: Source, roles: Mapping[str, str]) -> Run:
    """Read rows of trials, or rows whose results are a list in JSON or Python syntax."""
    faults = Faults()
    records = []
    header = header_of(source)
    scores = columns_in(header, source.columns).get("retrieve_scores")
    lists = [roles["retrieve_scores"]] if "retrieve_scores" in roles and not (scores and scores.separator) else []
    lists += [name for name in fields.LISTS if name in header]
    numbers = [roles[role] for role in ("score", "rank") if role in roles]
    for place, row in table(source, (), faults):
        cells = {name: listed_in(cell, place, faults) if name in lists else cell for name, cell in row.items()}
        for name in numbers:
            number = validity.number_of(row[name].strip(BLANKS))
            cells[name] = row[name] if number is None else number
        if cost := row.get("cost", "").strip(BLANKS):
            cells["cost"] = cost if (number := validity.number_of(cost)) is None else number
        else:
            cells.pop("cost", None)
        records.append((place, cells))
    faults.stop()
    return run_of_records(source, records)


def _read_rows(source: Source) -> Run:
    """Read results into lists row by row, or raise `DataError` with every invalid row."""
    builder = RunBuilder()
    for qid, document, score, cells in _results(_Text.of(source, run=True), builder.faults):
        # An empty cell counts as missing, as in columns.
        kept = fields.fields_of(
            {"doc_id": document, "score": score, **{name: cell or None for name, cell in cells.items()}}
        )
        builder.add(qid, document, score, fields.units_of(cells, str.strip), kept)
    return builder.run(source, by_text=query_column(canonical(header_of(source), source.columns)) == "query")


def _results(text: _Text, faults: Faults) -> Iterator[tuple[str, str, float, dict[str, str]]]:
    """Yield the query, document, score (or negative rank) and other cells of each row. Report invalid rows."""
    rows = _rows(text, faults, None)
    _, header = next(rows)
    if faults or not header:
        deque(rows, maxlen=0)  # warns if the file is empty
        return
    query, _, order = needed = _needed(header)
    sign = 1.0 if order == "score" else -1.0
    qid_at, document_at, score_at = map(header.index, needed)
    others = [(name, header.index(name)) for _, name in fields.carried(tuple(header))]
    call_at = dict(others).get(fields.CALL_COLUMN)
    for number, row in rows:
        qid, document = row[qid_at] if query == "qid" else normal_text(row[qid_at]), row[document_at]
        score = validity.number_of(row[score_at].strip(BLANKS))
        call = fields.NO_CALL if call_at is None else row[call_at].strip()
        if fault := fields.result_fault(qid, document, score, row[score_at], order, call):
            faults.add(f"{text.title}:{number}: query {display(qid)}", fault)
        elif score is not None:
            yield qid, document, sign * score, {name: row[at] for name, at in others}


def _needed(header: Sequence[str]) -> tuple[str, str, str]:
    """Return the columns that the header of a run must have: queries, documents, and scores or ranks."""
    return query_column(header), "doc_id", "rank" if "rank" in header and "score" not in header else "score"


def _streamed(source: Source) -> Run:
    """Return lazy columns if the byte layout is regular. Otherwise, use the strict reader."""
    header = list(canonical(header_of(source), source.columns))
    needed, names = _needed(header), set(header)
    has_columns = set(needed) <= names and len(names) == len(header) <= WIDEST_TABLE and not source.cached(_above)
    layout = layout_of(source, delimiter_of(_header_line(source))) if has_columns else Layout(regular=False)
    if not layout.has_columns(len(header)):
        return _read_strictly(source)
    delimiter, schema = delimiter_of(_header_line(source)), dict.fromkeys(header, pl.String) | {needed[-1]: pl.Float64}
    scanned = pl.scan_csv(source.for_polars, separator=delimiter, schema=schema, ignore_errors=True, glob=False)
    frame, recheck = _columns(scanned, header), partial(_read_strictly, source)
    return run_in(source, rechecked(frame, recheck, ids_checked=layout.plain_ids))


def _read_strictly(source: Source) -> Run:
    """Read an irregular or invalid file row by row. Return huge files as columns."""
    if not source.is_huge:
        return _read_rows(source)
    header = canonical(header_of(source), source.columns)
    return run_in(source, _checked(_Text.of(source, run=True), header).contents)


def columns_at(url: str, guard: Guard, lines: Callable[[], Iterable[bytes]]) -> Columns:
    """Return the results at a URL as columns. `lines` is called only to locate errors."""
    separator = "\t" if ending_of(url) == ".tsv" else ","
    names = guard(pl.scan_csv(url, separator=separator, infer_schema=False).collect_schema).names()
    header = list(canonical(names))
    if column := fields.trial_column(header, url):
        what = f"a table with a {column!r} column cannot be read from a URL; download it, or use parquet"
        raise DataError(f"{url}: {what}")
    needed = _needed(header)
    if missing := [name for name in needed if name not in header]:
        raise DataError(f"{url}: {missing_columns(names, missing, 'qid, doc_id and score or rank', 'run')}")
    text = _Text(url, separator, lambda: (f"{line.decode()}\n" for line in lines()), NO_COLUMNS)
    schema: dict[str, type[pl.DataType]] = dict.fromkeys(header, pl.String) | {needed[-1]: pl.Float64}
    scanned = pl.scan_csv(url, separator=separator, schema=schema, ignore_errors=True)
    # All columns are read, as polars counts the cells of a row only in these.
    has_cells = pl.any_horizontal(pl.all().is_not_null())
    return rechecked(_columns(scanned.filter(has_cells), header), partial(_checked, text, header))


def _columns(scanned: pl.LazyFrame, header: list[str]) -> pl.LazyFrame:
    """Return the columns of results. All cells are text, except for scores and ranks."""
    query, _, order = _needed(header)
    number = pl.col(order)
    # Whether a row has as many cells as the header: polars fills short rows with nulls.
    complete = pl.col(header[-1]).is_not_null()
    qid = pl.col("qid") if query == "qid" else normal_texts(pl.col("query"))
    score = pl.when(complete).then(number if order == "score" else -number).alias("score")
    kept = ((pl.col(name), field) for field, name in fields.carried(tuple(header)))
    others = ((_lengths(cells) if field.is_integer else cells).alias(field.name) for cells, field in kept)
    return scanned.select(qid.alias("qid"), pl.col("doc_id").alias("doc"), score, *others)


def _checked(text: _Text, header: Sequence[str]) -> Run:
    """Parse rows one by one and stream them as columns, or raise `DataError` with every invalid row."""
    kept = fields.carried(tuple(header))
    schema: dict[str, type[pl.DataType]] = {"qid": pl.String, "doc": pl.String, "score": pl.Float64}
    schema |= {field.name: pl.Int64 if field.is_integer else pl.String for field, _ in kept}

    def rows(faults: Faults) -> Iterator[tuple[str | float | None, ...]]:
        for qid, document, score, cells in _results(text, faults):
            others = ((field, cells[name]) for field, name in kept)
            cast = (field.number(cell.strip()) if field.is_integer else cell or None for field, cell in others)
            yield qid, document, score, *cast

    return streamed(rows, schema, text.title)


def _lengths(cells: pl.Expr) -> pl.Expr:
    """Convert cells to lengths by the rules of `length_of`. Invalid cells become null."""
    plain = cells.str.strip_chars()
    return pl.when(plain.str.contains(r"^[0-9]{1,16}$")).then(plain.cast(pl.Int64, strict=False))


def write_ground_truth(path: Path, rows: Iterator[Judgment], shape: Shape, delimiter: str = ",") -> None:
    """Write `qid, group, doc_id, grade`. Omit `group` for the `flat` shape, and add a shape column for `groups`."""
    kept = [True, shape != "flat", True, True, shape == "groups"]
    cells = ((qid, group, document, number_text(grade), shape) for qid, group, document, grade in rows)
    header = compress(("qid", "group", "doc_id", "grade", SHAPE), kept)
    _write(path, [*header], (list(compress(row, kept)) for row in cells), delimiter)


def write_run(path: Path, rankings: Sequence[Ranking], *, calls: Calls | None, trials: Trials) -> None:
    """Write `qid, doc_id, rank, score, call, trial` (or `build`). Omit scores or calls unless all results have them."""
    scored = all(scores is not None for _, _, scores in rankings)
    has = {"score": scored, fields.CALL_COLUMN: bool(calls), **dict.fromkeys(trials, True)}
    cells = (
        [qid, document, rank, *compress([repr(score), called, trial], has.values())]
        for (qid, ids, scores), of_results, trial in numbered(rankings, calls, trials)
        for rank, (document, score, called) in enumerate(zip(ids, scores or ids, of_results or ids), 1)
    )
    _write(path, ["qid", "doc_id", "rank", *compress(has, has.values())], cells)


def _write(path: Path, header: list[str], rows: Iterable[list[Any]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(chain((header,), rows))
