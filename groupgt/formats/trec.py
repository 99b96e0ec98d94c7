"""TREC files: runs, qrels and subtopic qrels, as trec_eval and ndeval read them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, GroupgtWarning, display
from groupgt.formats.rows import Judgment, flat_rows, gather, number_text, run_name
from groupgt.formats.source import Source
from groupgt.formats.validity import Guard, guarded, refuse_rows
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lists, Run
from groupgt.model.validity import LONGEST_ID, id_fault, is_grade, number_of
from groupgt.runtime import pl

ITER_HINT = ", or read the second column as the group: --truth-format trec-subtopics"


def read_qrels(source: Source, policy: Policy) -> GroundTruth:
    """`qid iter doc rel`: each document is a group of one, with its grade."""
    judged = list(_judgments(source, "qid iter doc rel"))
    if len({second for _, second, _, _ in judged}) > 1:
        text = f"{source.path}: the second column holds several values; if these are subtopics, that is groups, "
        warnings.warn(f"{text}say so: --truth-format trec-subtopics", GroupgtWarning, stacklevel=2)
    return gather(flat_rows((qid, document, grade) for qid, _, document, grade in judged), policy)


def read_subtopics(source: Source, policy: Policy) -> GroundTruth:
    """`topic subtopic doc rel`: the subtopic is the group."""
    return gather(_judgments(source, "topic subtopic doc rel"), policy)


def _judgments(source: Source, expected: str) -> Iterator[Judgment]:
    faults = Faults()
    source.warn_if_empty("judgments")
    rows: list[Judgment] = []
    seen: dict[tuple[bytes, ...], int] = {}
    for number, line in enumerate(source.lines(), 1):
        cells = line.split()
        if not cells or cells[0].startswith(b"#"):
            continue
        where = f"{source.path}:{number}"
        if len(cells) != 4:
            faults.add(where, f"expected 4 columns ({expected}), found {len(cells)}")
            continue
        qid, group, document, grade_text = (cell.decode() for cell in cells)
        grade = number_of(grade_text)
        wrong = _wrong(qid, document)
        if wrong:
            faults.add(where, wrong)
        elif grade is None:
            faults.add(
                where, f"query {qid!r}: expected a number as the relevance of {document!r}, found {grade_text!r}"
            )
        elif not is_grade(grade):
            faults.add(where, f"query {qid!r}: expected a relevance within ±2^31, found {grade_text}")
        elif (key := tuple(cells[:3])) in seen or ((key := (cells[0], b"", cells[2])) in seen and "iter" in expected):
            faults.add(
                where,
                f"query {qid!r}: {document!r} is judged twice (first in line {seen[key]}); remove one"
                f"{ITER_HINT if 'iter' in expected else ''}",
            )
        else:
            seen[(cells[0], b"", cells[2]) if "iter" in expected else tuple(cells[:3])] = number
            rows.append((qid, group, document, grade))
    faults.stop()
    yield from rows


def _wrong(qid: str, document: str) -> str | None:
    for kind, name in (("query id", qid), ("document id", document)):
        fault = id_fault(name)
        if fault:
            return f"the {kind} {fault}"
    return None


def read_run(source: Source) -> Run:
    """`qid Q0 doc rank score tag`, by blanks or tabs; more columns are ignored, the rank too: the score rules."""
    if source.is_large:
        return _columns(source)
    return read_slowly(source)


def read_slowly(source: Source) -> Run:
    """Reads line by line, and names every line that is wrong."""
    faults = Faults()
    source.warn_if_empty("results")
    ids: dict[bytes, list[str]] = {}
    scores: dict[bytes, list[float]] = {}
    for number, line in enumerate(source.lines(), 1):
        cells = line.split(None, 5)
        if len(cells) < 6:
            if cells:
                faults.add(
                    f"{source.path}:{number}", f"expected 6 columns (qid Q0 doc rank score tag), found {len(cells)}"
                )
            continue
        qid, text = cells[0], cells[4]
        score = _score(text)
        if score is None:
            faults.add(
                f"{source.path}:{number}",
                f"query {qid.decode()!r}: expected a finite number as the score, found {text.decode()!r}",
            )
            continue
        if len(cells[2]) > LONGEST_ID or len(qid) > LONGEST_ID:
            which = "document id" if len(cells[2]) > LONGEST_ID else "query id"
            where = f"{source.path}:{number}: query {display(qid.decode())}"
            faults.add(where, f"the {which} is longer than {LONGEST_ID:,} bytes; shorten it")
            continue
        if qid not in ids:
            ids[qid], scores[qid] = [], []
        ids[qid].append(cells[2].decode())
        scores[qid].append(score)
    faults.stop()
    rankings = {qid.decode(): own for qid, own in ids.items()}
    lists = Lists(rankings, {qid.decode(): own for qid, own in scores.items()})
    return Run(lists, name=run_name(source), source=str(source.path))


def _score(text: bytes) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    # float takes 1_000, nan and inf; a score may be none of these.
    return score if score - score == 0 and b"_" not in text else None


def _columns(source: Source) -> Run:
    """The same as lazy columns; what polars would misread (short lines, doubled blanks, odd bytes) has no score here.

    A null score is a doubt, and doubts send the file to the slow reader.
    """
    if source.is_huge and source.is_compressed:
        return _huge(source)
    first = source.head().split(b"\n", 1)[0]
    separator = "\t" if b"\t" in first else " "
    if not source.is_plain_table(separator):
        return _huge(source) if source.is_huge else read_slowly(source)
    rows = pl.scan_csv(
        source.for_polars,
        has_header=False,
        schema=dict.fromkeys(("qid", "q0", "doc", "rank", "score", "tag"), pl.String),
        separator=separator,
        quote_char=None,
        extra_columns="ignore",
        glob=False,
    )
    # A line with five columns has no tag.
    score = pl.when(pl.col("tag").is_not_null()).then(pl.col("score").cast(pl.Float64, strict=False))
    frame = rows.select("qid", "doc", score.alias("score"))
    return Run(
        Columns(frame, lambda: (_huge if source.is_huge else read_slowly)(source), ids_checked=True),
        name=run_name(source),
        source=str(source.path),
    )


def _huge(source: Source) -> Run:
    """The same, line by line, of what should not be held as a whole."""
    title = str(source.path)

    def guard(step: Callable[[], Any]) -> Any:
        return guarded(title, "cannot be read (damaged, cut off, or not UTF-8)", step)

    return replace(run_of_lines(source.path, title, guard), name=run_name(source), source=title)


def run_of_lines(read: Path | str, title: str, guard: Guard) -> Run:
    """A run of lines, at a path or a URL, cut at white space one by one: slower than a table, and sure."""
    white, cell = r"[ \t\r\x0b\x0c]", r"[^ \t\r\x0b\x0c]+"
    pattern = rf"^{white}*({cell}){white}+{cell}{white}+({cell}){white}+{cell}{white}+({cell}){white}+{cell}"
    lines = pl.scan_lines(read, row_index_name="row").filter(~pl.col("line").str.contains(rf"^{white}*$"))
    cells = lines.select("row", cells=pl.col("line").str.strip_chars_start("\ufeff").str.extract_groups(pattern))
    names = [pl.col("cells").struct[place].alias(name) for place, name in enumerate(("qid", "doc", "text"))]
    table = cells.select("row", *names).with_columns(score=pl.col("text").cast(pl.Float64, strict=False))
    columns = Columns(
        table.select("qid", "doc", "score"),
        lambda: refuse_rows(table.select("row", "qid", "doc", "score"), title, "score", guard, place="line "),
        guard,
    )
    return Run(columns, source=title)


def write_run(path: Path, rankings: Iterator[tuple[str, list[str], list[float]]], tag: str) -> None:
    """Writes a TREC run; ids with blanks cannot be written."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, ids, scores in rankings:
            # All ids at once: one with a blank makes two words, or none.
            if " ".join([qid, *ids]).encode().split() != [name.encode() for name in (qid, *ids)]:
                _check_blanks(qid, *ids)
            file.writelines(
                f"{qid} Q0 {document} {rank} {score!r} {tag}\n"
                for rank, (document, score) in enumerate(zip(ids, scores), 1)
            )


def write_qrels(path: Path, rows: Iterator[Judgment]) -> None:
    """Writes flat qrels."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, _, document, grade in rows:
            _check_blanks(qid, document)
            file.write(f"{qid} 0 {document} {number_text(grade)}\n")


def write_subtopics(path: Path, rows: Iterator[Judgment]) -> None:
    """Writes subtopic qrels; the subtopic is the group's name or number."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for qid, group, document, grade in rows:
            _check_blanks(qid, document)
            file.write(f"{qid} {group} {document} {number_text(grade)}\n")


def _check_blanks(*names: str) -> None:
    for name in names:
        if len(name.encode().split()) != 1:
            raise DataError(
                f"the id {name!r} holds white space and cannot stand in a TREC file; write jsonl or parquet"
            )
