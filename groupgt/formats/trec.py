"""Reads and writes TREC runs, qrels and subtopic qrels as interpreted by trec_eval and ndeval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import numpy as np

from groupgt import native
from groupgt.errors import DataError, Faults, display, first_of, warn
from groupgt.formats.fields import ids_fault, score_fault
from groupgt.formats.roles import roles_in
from groupgt.formats.rows import Judgment, Ranking, RunBuilder, number_text, order_fault, run_in, streamed, write_lines
from groupgt.formats.source import Source
from groupgt.formats.tables import Judged, grades_of
from groupgt.formats.validity import is_number, number_of, rechecked
from groupgt.model import validity
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lines, Lists, Run
from groupgt.model.values import RANK
from groupgt.model.written import Shape
from groupgt.records import record
from groupgt.runtime import pl

RUN_COLUMNS = "qid Q0 doc rank score tag"
MIN_COLUMNS, MAX_COLUMNS = 6, 10
BARE_RETURN = "found a carriage return (U+000D) within a line; end lines with line feeds"
ITER_HINT = ", or read the second column as the group: --truth-format trec-subtopics"


QRELS, WITHOUT_ITER, SUBTOPICS = "qid iter doc rel", "qid doc rel", "topic subtopic doc rel"
MARCO = "qid pid rank"


def read_qrels(source: Source, policy: Policy, columns: str = "", *, named: bool = True) -> GroundTruth:
    """Read qrels with these columns. Unless the format is `named`, a second column with several values is an error."""
    if not columns and _has_header(source):
        return _with_header(source, policy)
    rows = _rows(source, columns)
    if not named and rows.width == len(QRELS.split()) and len(set(rows.column(1))) > 1:
        judged(source, QRELS, rows)  # reports invalid lines first
        ways = "trec-subtopics if they are subtopics (groups), --truth-format trec if they have no meaning"
        raise DataError(f"{source.path}: the second column has several values; add --truth-format {ways}")
    columns = columns or (WITHOUT_ITER if _is_without_iter(source, rows) else QRELS)
    judgments = judged(source, columns, rows)
    shape: Shape = "subtopics" if columns == SUBTOPICS else "flat"
    return judgments.truth(policy, shape, sound=rows.is_sound, comments=rows.comments)


def _with_header(source: Source, policy: Policy) -> GroundTruth:
    from groupgt.formats import csv

    width, count = len(_header(source)), 0

    def lines() -> Iterator[str]:
        """Yield lines with tabs between words. A comment becomes a blank line, so that line numbers do not change."""
        nonlocal count
        for line in source.lines(keep=True):
            is_comment = line.startswith(b"#") and _is_comment(line.split(), width)
            count += is_comment
            yield "\n" if is_comment else "\t".join(line.decode().split()) + "\n"

    truth = csv.read_ground_truth(source, policy, words=lines)
    return replace(truth, comments=count)


def _has_header(source: Source) -> bool:
    """Return whether the first line contains column names, separated by blanks or tabs."""
    names = _header(source)
    return {"qid", "doc_id"} <= roles_in(names, "truth").keys() and not any(map(validity.is_number, names))


def _header(source: Source) -> list[str]:
    """Return the words of the first line that is not blank and does not begin with `#`."""
    lines = (line for line in source.head().split(b"\n") if line.strip() and not line.startswith(b"#"))
    return next(lines, b"").decode("utf-8", "replace").split()


@record
class _Rows:
    """The words of qrels, `width` per line. `others` are lines of another width. `comments` counts `#` lines."""

    words: Sequence[str]
    width: int
    # The numbers of the lines; None if no line is suspicious.
    numbers: Sequence[int] | None = None
    others: Mapping[int, bytes] = field(default_factory=dict)
    comments: int = 0

    @property
    def is_sound(self) -> bool:
        """True if every id is valid and every line has the same number of words."""
        return self.numbers is None

    def column(self, at: int) -> Sequence[str]:
        """Return the words at one position of every line."""
        return self.words[at :: self.width]

    def place(self, row: int) -> int:
        """Return the line number of a row."""
        return row + 1 if self.numbers is None else self.numbers[row]


def _rows(source: Source, columns: str) -> _Rows:
    """Split qrels into words, all at once if that is safe, and line by line otherwise."""
    source.warn_if_empty("judgments")
    rows = None if source.is_huge else _split(source)
    if rows is not None and (not columns or len(columns.split()) == rows.width):
        return rows
    lines = [(number, line, cells) for number, line in enumerate(source.lines(keep=True), 1) if (cells := line.split())]
    widths = {len(cells) for *_, cells in lines if not cells[0].startswith(b"#")} or {len(lines[0][2]) if lines else 4}
    width = len((columns or (WITHOUT_ITER if widths == {3} else QRELS)).split())
    data = [(number, line, cells) for number, line, cells in lines if not _is_comment(cells, width)]
    sound = [(number, cells) for number, line, cells in data if len(cells) == width and b"\r" not in line]
    others = {number: line for number, line, cells in data if len(cells) != width or b"\r" in line}
    words = [cell.decode() for _, cells in sound for cell in cells]
    return _Rows(words, width, [number for number, _ in sound], others, len(lines) - len(data))


def _is_comment(cells: Sequence[bytes], width: int) -> bool:
    """Return whether a line begins with `#` and is not a row, because of its number of words or its last word."""
    if not cells[0].startswith(b"#"):
        return False
    return len(cells) != width or validity.number_of(cells[-1].decode("utf-8", "replace")) is None


def _split(source: Source) -> _Rows | None:
    """Split all lines into words at once. Return None if line widths differ or a line may be invalid."""
    data = source.data
    source.check_text()
    letters = np.frombuffer(data, dtype=np.uint8)
    if not len(letters) or data.startswith(b"#") or b"\n#" in data or validity.holds_odd_letters(letters):
        return None
    blank = letters <= ord(" ")
    controls = int(np.count_nonzero(letters < ord(" ")))
    returns = data.count(b"\r\n") if b"\r" in data else 0
    if controls != data.count(b"\n") + data.count(b"\t") + returns:
        return None
    starts = np.flatnonzero(~blank & np.concatenate(([True], blank[:-1])))
    ends = np.flatnonzero(letters == ord("\n"))
    width = int(np.searchsorted(starts, ends[0])) if len(ends) else len(starts)
    if width not in (3, 4) or len(starts) % width:
        return None
    # Every line has `width` words if each row begins after the end of the line before and ends before the next one.
    firsts, lasts = starts[::width], starts[width - 1 :: width]
    if len(firsts) - len(ends) not in (0, 1) or np.diff(starts).max(initial=0) > validity.LONGEST_ID:
        return None
    if not (bool((lasts[: len(ends)] < ends).all()) and bool((firsts[1:] > ends[: len(firsts) - 1]).all())):
        return None
    return _Rows(data.decode().split(), width)


def _is_without_iter(source: Source, rows: _Rows) -> bool:
    """Return whether qrels are `qid doc rel`, or raise `DataError` if they may also be `qid iter doc`."""
    if rows.width != len(WITHOUT_ITER.split()) or rows.others or not rows.words:
        return False
    qids, documents, cells = map(rows.column, range(3))
    grades = set(cells)
    numbers = map(validity.number_of, grades)
    if not all(number is not None and number.is_integer() for number in numbers):
        return False
    if len(set(zip(qids, documents))) < len(qids):
        return False
    if len(set(zip(qids, cells))) < len(qids) or len(grades) < 2 <= len(qids):
        return True
    what = f"expected 4 columns ({QRELS}), found 3, which may be {WITHOUT_ITER} or qid iter doc"
    raise DataError(f"{source.path}: {what}; if they are {WITHOUT_ITER}, add --truth-format trec-no-iter")


def judged(source: Source, columns: str, rows: _Rows | None = None) -> Judged:
    """Return the judgments of qrels with these columns. Raise `DataError` with every line of another width."""
    rows = _rows(source, columns) if rows is None else rows
    if rows.others or (rows.words and rows.width != len(columns.split())):
        _report(source, columns, rows)
    names = columns.split()
    cells = rows.column(len(names) - 1)

    def place(row: int) -> str:
        return f"{source.path}:{rows.place(row)}"

    documents, groups = rows.column(len(names) - 2), rows.column(1) if columns == SUBTOPICS else None
    grades, hint = grades_of(cells, text=True), ITER_HINT if columns == QRELS else ""
    return Judged(rows.column(0), documents, cells, grades, groups, place, called="relevance", unique=True, hint=hint)


def _report(source: Source, columns: str, rows: _Rows) -> None:
    """Raise `DataError` with every line that does not have these columns."""
    faults = Faults()
    width = len(columns.split())
    lines = dict(rows.others)
    if rows.width != width:
        others = enumerate(source.lines(keep=True), 1)
        lines |= {number: line for number, line in others if line.strip() and not line.startswith(b"#")}
    for number, line in sorted(lines.items()):
        cells = line.split()
        what = f"expected {width} columns ({columns}), found {len(cells)}"
        if len(cells) == 5:
            rel, method, probability = (validity.number_of(cell.decode()) for cell in cells[2:])
            if rel is not None and method is not None and probability is not None and 0 < probability <= 1:
                what += ": these are prels (qid doc rel method probability); keep qid, 0, doc and rel"
            elif method is not None:
                what += "; remove everything after the relevance"
        faults.add(f"{source.path}:{number}", BARE_RETURN if b"\r" in line else what)
    faults.stop()


def are_ranked(lines: Iterable[bytes]) -> bool:
    """Return whether lines are `qid pid rank`, as in MS MARCO runs. Ranks start at 0 or 1 and occur once per query."""
    ranks: dict[bytes, list[int]] = {}
    for cells in map(bytes.split, lines):
        if len(cells) != len(MARCO.split()) or not cells[2].isdigit():
            return False
        ranks.setdefault(cells[0], []).append(int(cells[2]))
    return all(min(of_query) <= 1 and len(set(of_query)) == len(of_query) for of_query in ranks.values())


def _read_ranks(source: Source) -> Run:
    """Read `qid pid rank`, or raise `DataError` if the third column contains anything but ranks."""
    lines = [(number, line) for number, line in enumerate(source.lines(), 1) if line.strip()]
    rows = [(number, line) for number, line in lines if not line.startswith(b"#") or are_ranked([line])]
    if not are_ranked(line for _, line in rows):
        what = f"groupgt reads 3 columns as {MARCO} only if each query's ranks start at 0 or 1 and do not repeat"
        way = "Add a header line (qid, doc_id, score), or swap TRUTH and RUN if these are qrels"
        raise DataError(f"{source.path}:1: expected {MIN_COLUMNS} columns ({RUN_COLUMNS}), found 3. {what}. {way}")
    builder = RunBuilder()
    for number, (qid, document, rank) in ((number, line.decode().split()) for number, line in rows):
        if fault := ids_fault(qid, document):
            builder.faults.add(f"{source.path}:{number}", fault)
        builder.add(qid, document, -float(rank))
    return replace(builder.run(source), comments=len(lines) - len(rows))


def read_run(source: Source) -> Run:
    """Read `qid Q0 doc rank score tag`, separated by spaces or tabs, or `qid pid rank`."""
    first = _header(source) or source.first_line.decode("utf-8", "replace").split()
    if len(first) == len(MARCO.split()) and first[2].isdigit():
        return _read_ranks(source)
    if not source.is_large:
        if native.built is None or source.is_blank:
            return _read_lines(source)
        return run_in(source, Lines(source.part, 0, len(source.data), partial(source.cached, _read_lines)))
    # Parts can be read separately if they are in memory, or stored uncompressed.
    has_parts = not (source.is_compressed and source.is_huge)
    if native.built is None or source.streamed or not has_parts:
        return _streamed(source)
    lines = Lines(source.part, *source.extent, partial(_read_strictly, source), partial(_streamed, source))
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
    ranks: dict[bytes, list[bytes]] = {}
    for qid, document, score, rank in _results(source.lines(), str(source.path), faults, odd=odd):
        if qid not in ids:
            ids[qid], scores[qid], ranks[qid] = [], [], []
        ids[qid].append(document.decode())
        scores[qid].append(score)
        ranks[qid].append(rank)
    faults.stop()
    fields = {RANK: lambda: {qid.decode(): list(map(float, row)) for qid, row in ranks.items()}}
    rankings = {qid.decode(): ranking for qid, ranking in ids.items()}
    lists = Lists(rankings, {qid.decode(): row for qid, row in scores.items()}, fields=fields)
    return replace(run_in(source, lists), comments=_count_comments(source))


def _count_comments(source: Source) -> int:
    """Count the lines that begin with `#` and are not results."""
    if source.is_huge or not (source.data.startswith(b"#") or b"\n#" in source.data):
        return 0
    return sum(line.startswith(b"#") and not is_result(line) for line in source.lines())


def _results(
    lines: Iterable[bytes], title: str, faults: Faults, *, odd: bool = True
) -> Iterator[tuple[bytes, bytes, float, bytes]]:
    """Yield the query, document, score and rank of each line, and report invalid lines."""
    for number, line in enumerate(lines, 1):
        cells = line.split()
        fault = None
        if odd or len(cells) != MIN_COLUMNS or not cells[3].isdigit() or len(line) > validity.LONGEST_ID:
            if not cells:
                continue
            fault = _line_fault(line, cells)
        if not fault:
            if (score := validity.number_of_bytes(cells[4])) is not None:
                yield cells[0], cells[2], score, cells[3]
                continue
            fault = f"query {display(cells[0].decode())}: {score_fault(cells[4].decode())}"
        if not cells[0].startswith(b"#") or is_result(line):
            faults.add(f"{title}:{number}", fault)


def tag_of(source: Source) -> str:
    """Return the tag in the sixth column. Warn if there are several tags, and raise `DataError` if there is none."""
    rows = (line.split(None, MIN_COLUMNS) for line in source.lines())
    tags = dict.fromkeys(cells[MIN_COLUMNS - 1] for cells in rows if len(cells) >= MIN_COLUMNS)
    if not tags:
        what = "expected a TREC run, whose sixth column is its tag"
        raise DataError(f"{source.path}: {what}; name the run with NAME=PATH")
    first, *others = (tag.decode("utf-8", "replace") for tag in tags)
    if others:
        what = f"expected one tag (the run's name), found {len(tags):,}: {first_of([first, *others], 4)}"
        warn(f"{source.path}: {what}; groupgt uses the first tag as the name")
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
        way = "; a table with other columns needs a header line, such as qid, doc_id, score"
        return f"{what}{way}" if len(cells) < MIN_COLUMNS else f"{what}: are two lines joined?"
    qid, _, document, rank, _, sixth = (cell.decode() for cell in cells[:MIN_COLUMNS])
    if len(cells) > MIN_COLUMNS and validity.is_number(sixth):
        fault: str | None = f"{what}, and the sixth is the number {sixth}; does an id contain a blank?"
    elif not validity.is_rank(rank):
        header = "; if this is a header line, remove it" if rank.isalpha() else ""
        fault = f"expected a whole number as the rank, found {display(rank)}{header}"
    else:
        fault = ids_fault(qid, document)
    return None if fault is None else f"query {display(qid)}: {fault}"


def _streamed(source: Source) -> Run:
    """Return lazy columns if the byte layout is regular. Otherwise, use the strict reader."""
    from groupgt.formats.layout import layout_of

    separator = "\t" if b"\t" in source.first_line else " "
    width = len(source.first_line.split())
    layout = layout_of(source, separator, words=True)
    if not MIN_COLUMNS <= width <= MAX_COLUMNS or not layout.has_columns(width):
        return _read_strictly(source)
    names = [*("qid", "q0", "doc", "rank", "score", "tag"), *map(str, range(MIN_COLUMNS, width))]
    schema = dict.fromkeys(names, pl.String) | {"rank": pl.Int64, "score": pl.Float64}
    rows = pl.scan_csv(
        source.for_polars,
        has_header=False,
        schema=schema,
        separator=separator,
        quote_char=None,
        ignore_errors=True,
        glob=False,
    )
    # The last column of a short line is null; ranks beyond 64 bits, or with a point, are left to the strict reader.
    is_complete = pl.col(names[-1]).is_not_null() & pl.col("rank").is_not_null()
    if width > MIN_COLUMNS:
        is_complete &= ~is_number(pl.col("tag"))
    frame = rows.select("qid", "doc", pl.when(is_complete).then(pl.col("score")).alias("score"), RANK)
    return run_in(source, rechecked(frame, partial(_read_strictly, source), ids_checked=layout.plain_ids))


def _read_strictly(source: Source) -> Run:
    """Read an irregular or invalid file line by line. Return huge files as columns."""
    return _checked(str(source.path), source.lines) if source.is_huge else _read_lines(source)


def _checked(title: str, lines: Callable[[], Iterable[bytes]]) -> Run:
    """Parse lines one by one and stream them as columns, or raise `DataError` with every invalid line."""

    def rows(faults: Faults) -> Iterator[tuple[str, str, float]]:
        for qid, document, score, _ in _results(lines(), title, faults):
            yield qid.decode(), document.decode(), score

    return streamed(rows, {"qid": pl.String, "doc": pl.String, "score": pl.Float64}, title)


def columns_at(url: str, lines: Callable[[], Iterator[bytes]]) -> Columns:
    """Return the results at a URL as columns. Invalid lines have no score, and `lines` helps to locate errors."""
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


def run_fault(
    rankings: Iterable[tuple[str, Sequence[str], Sequence[float] | None]], *, in_single: bool = False
) -> str | None:
    """Explain why results (best first) cannot be a TREC run, read `in_single` precision, or return None if they can."""
    with_scores: dict[bool, str] = {}
    for qid, ids, scores in rankings:
        # All ids at once: one with a blank would split into two words, or none.
        line = " ".join((qid, *ids)).encode()
        words = line.split()
        if len(words) != 1 + len(ids) or b" ".join(words) != line:
            return _blank_fault((qid, *ids))
        if ids:
            with_scores.setdefault(scores is not None, qid)
        if len(with_scores) > 1:
            return f"query {with_scores[True]!r} has scores, but {with_scores[False]!r} has no scores; write jsonl"
        if scores is not None and (fault := order_fault(qid, ids, scores)):
            return fault
        if scores is not None and in_single:
            with np.errstate(over="ignore"):
                single: list[float] = np.array(scores, dtype=np.float32).tolist()
            if fault := order_fault(qid, ids, single):
                return fault
    return None


def judgments_fault(rows: Iterable[Judgment]) -> str | None:
    """Explain why judgments cannot be written as qrels, or return None if they can."""
    return _blank_fault(name for qid, _, document, _ in rows for name in (qid, document))


def _blank_fault(names: Iterable[str]) -> str | None:
    for name in names:
        if name.encode().split() != [name.encode()]:
            return f"the id {name!r} contains white space, which a TREC file cannot store; write jsonl or parquet"
    return None


def write_run(path: Path, rankings: Iterable[Ranking], tag: str) -> None:
    """Write a TREC run that has passed `run_fault`. Results without scores get 1 ÷ rank."""

    def lines(qid: str, ids: list[str], scores: Sequence[float] | None) -> str:
        numbers = [1 / rank for rank in range(1, len(ids) + 1)] if scores is None else scores
        return "".join([f"{qid} Q0 {ids[at]} {at + 1} {score!r} {tag}\n" for at, score in enumerate(numbers)])

    write_lines(path, (lines(*ranking) for ranking in rankings))


def write_qrels(path: Path, rows: Iterable[Judgment], *, grouped: bool = False) -> None:
    """Write qrels that have passed `judgments_fault`. If `grouped`, the second column contains the groups."""
    cells = ((qid, group if grouped else 0, document, number_text(grade)) for qid, group, document, grade in rows)
    write_lines(path, (f"{qid} {group} {document} {grade}\n" for qid, group, document, grade in cells))
