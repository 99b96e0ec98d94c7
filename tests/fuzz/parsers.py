"""Strict readings of each format in a few lines, which share no code with the product.

Each takes the bytes of a file and returns its rows, or raises `Refused` where the file is at fault, or `Unsure` where
its rules leave the meaning open: readers must then agree with one another, but need not agree with these.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

LIMIT = 1 << 16
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
RANK = re.compile(r"[+-]?[0-9]+(\.0*)?")

Run = dict[str, list[tuple[str, float]]]
Truth = dict[str, list[dict[str, float]]]


class Refused(Exception):
    """The file is at fault."""


class Unsure(Exception):
    """The file may be read in several ways."""


def text_of(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(str(error)) from None
    return text.removeprefix("\ufeff")


def lines_of(data: bytes) -> Iterator[str]:
    """Lines end with a line feed, or with a carriage return before it; the last may end with either."""
    lines = text_of(data).split("\n")
    for position, line in enumerate(lines):
        if position == len(lines) - 1 and line.endswith("\r"):
            raise Unsure("a carriage return at the very end")
        yield line.removesuffix("\r")


def check_id(name: str) -> str:
    if not name.strip() or len(name.encode("utf-8", "surrogatepass")) > LIMIT:
        raise Refused(f"blank or too long: {name[:20]!r}")
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c == "\ufeff" for c in name):
        raise Refused(f"a character that no id holds: {name[:20]!r}")
    return name


def unread(*cells: str) -> None:
    """Cells that nobody reads may hold what no id may, and readers may refuse the file for it."""
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c == "\ufeff" for cell in cells for c in cell):
        raise Unsure("an odd character where nobody looks")


def number(text: str) -> float:
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise Refused(f"no number: {text[:20]!r}")
    return float(text)


def words(line: str) -> list[str]:
    """Cells between blanks, tabs and the two other blanks of ASCII; no other white space parts cells."""
    return [cell for cell in re.split("[ \t\x0b\x0c]+", line) if cell]


def trec_run(data: bytes) -> Run:
    run: Run = {}
    for line in lines_of(data):
        cells = words(line)
        if "\r" in line:
            raise Refused("a bare carriage return")
        if not cells:
            continue
        is_row = len(cells) >= 6 and RANK.fullmatch(cells[3]) and NUMBER.fullmatch(cells[4])
        if cells[0].startswith("#") and not is_row:
            continue
        if not 6 <= len(cells) <= 10 or (len(cells) > 6 and NUMBER.fullmatch(cells[5])):
            raise Refused(f"{len(cells)} cells")
        qid, second, doc, rank, score, *rest = cells
        unread(second, *rest)
        if not RANK.fullmatch(rank):
            raise Refused(f"no rank: {rank!r}")
        run.setdefault(check_id(qid), []).append((check_id(doc), number(score)))
    return run


def _gathered(rows: list[tuple[str, str, str, float]]) -> Truth:
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for qid, group, doc, grade in rows:
        groups.setdefault(qid, {}).setdefault(group, {})[doc] = grade
    return {qid: list(own.values()) for qid, own in groups.items()}


def qrels(data: bytes, *, subtopics: bool = False) -> Truth:
    rows: list[tuple[str, str, str, float]] = []
    seen = set()
    for line in lines_of(data):
        cells = words(line)
        if "\r" in line:
            raise Refused("a bare carriage return")
        if not cells or (cells[0].startswith("#") and (len(cells) != 4 or not NUMBER.fullmatch(cells[3]))):
            continue
        if len(cells) != 4:
            raise Refused(f"{len(cells)} cells")
        qid, second, doc, grade = cells
        key = (qid, second, doc) if subtopics else (qid, doc)
        if key in seen:
            raise Refused("judged twice")
        seen.add(key)
        if abs(number(grade)) > 2**31:
            raise Refused("out of range")
        unread(second)
        rows.append((check_id(qid), second if subtopics else doc, check_id(doc), number(grade)))
    return _gathered(rows)


def _check_header(text: str) -> None:
    first = text.split("\n", 1)[0].removesuffix("\r")
    if not first.strip():
        raise Unsure("a header that is blank")
    if "\r" in first and '"' in first:
        raise Unsure("a carriage return in a header with quotes")
    if "\r" in first and "\n" in text:
        raise Refused("a header that holds a carriage return")


def table(data: bytes, delimiter: str) -> Iterator[dict[str, str]]:
    """CSV with a header; quotes stand around whole cells, and nowhere else."""
    text = text_of(data)
    _check_header(text)
    if "\0" in text:
        raise Unsure("NUL, perhaps where nobody looks")
    rows: list[list[str]] = [[]]
    at, size = 0, len(text)
    while at <= size:
        if at < size and text[at] == '"':
            end = at + 1
            while True:
                end = text.find('"', end)
                if end < 0:
                    raise Unsure("a quote is not closed")
                if text[end + 1 : end + 2] != '"':
                    break
                end += 2
            cell, at = text[at + 1 : end].replace('""', '"'), end + 1
            if at < size and text[at] not in (delimiter, "\n", "\r"):
                raise Unsure("text after a quoted cell")
            if "\n" in cell or "\r" in cell:
                raise Unsure("a line end in a cell")
        else:
            end = min((place for sign in (delimiter, "\n") if (place := text.find(sign, at)) >= 0), default=size)
            cell, at = text[at:end], end
            if '"' in cell:
                raise Unsure("a quote within a cell")
        bare = cell.removesuffix("\r") if at == size or text[at] == "\n" else cell
        if at == size and bare != cell:
            raise Unsure("a carriage return at the very end")
        if "\r" in bare:
            raise Refused("a bare carriage return")
        rows[-1].append(bare)
        if at >= size:
            break
        if text[at] == "\r":
            at += 1
            if text[at : at + 1] != "\n":
                raise Unsure("a carriage return at the very end") if at == size else Refused("a bare carriage return")
        if text[at] == "\n":
            rows.append([])
        at += 1
    header = [cell.strip(" \t\x0b\x0c") for cell in rows[0]]
    if len(set(header)) < len(header):
        raise Refused("a column twice")
    for row in rows[1:]:
        if not any(cell.strip() for cell in row):
            if len(row) > 1 or row != [""]:
                raise Unsure("a row of blank cells")
            continue
        if len(row) != len(header):
            raise Refused(f"{len(row)} cells under {len(header)} columns")
        yield dict(zip(header, row))


def delimiter_of(data: bytes) -> str:
    first = data.split(b"\n", 1)[0]
    return "\t" if b"\t" in first else ";" if b";" in first and b"," not in first else ","


def columns_of(data: bytes) -> set[str]:
    _check_header(text_of(data))
    if not text_of(data).strip():
        raise Unsure("an empty file")
    if not text_of(data).split("\n", 1)[0].strip():
        raise Unsure("blank lines before the header")
    header = text_of(data).split("\n", 1)[0].removesuffix("\r")
    blanks = " \t\x0b\x0c"
    return {cell.strip(blanks).strip('"').strip(blanks) for cell in header.split(delimiter_of(data))}


def csv_run(data: bytes) -> Run:
    rows = list(table(data, delimiter_of(data)))
    columns = columns_of(data)
    order = "score" if "score" in columns else "rank"
    run: Run = {}
    if not {"qid", "doc_id", order} <= columns:
        raise Unsure("another column may have its role")
    for row in rows:
        value = number(row[order].strip(" \t\x0b\x0c"))
        run.setdefault(check_id(row["qid"]), []).append(
            (check_id(row["doc_id"]), value if order == "score" else -value)
        )
    return run


def csv_truth(data: bytes) -> Truth:
    rows = []
    columns = columns_of(data)
    if columns - {"qid", "group", "doc_id", "grade"}:
        raise Unsure("another column may have its role")
    is_flat = "group" not in columns and {"qid", "doc_id", "grade"} <= columns
    if not is_flat and not {"qid", "group", "doc_id"} <= columns:
        raise Unsure("another column may have its role")
    for number_of_row, row in enumerate(table(data, delimiter_of(data))) if is_flat else ():
        if row["grade"].strip() != row["grade"]:
            raise Unsure("blanks beside a grade")
        grade = number(row["grade"])
        if abs(grade) > 2**31:
            raise Refused("out of range")
        rows.append((check_id(row["qid"]), str(number_of_row), check_id(row["doc_id"]), grade))
    if is_flat:
        if len({(qid, document) for qid, _, document, _ in rows}) < len(rows):
            raise Unsure("a judgment twice")
        return _gathered(rows)
    for row in table(data, delimiter_of(data)):
        if "grade" in row and row["grade"].strip() != row["grade"]:
            raise Unsure("blanks beside a grade")
        grade = number(row["grade"]) if "grade" in row else 1.0
        if abs(grade) > 2**31:
            raise Refused("out of range")
        unread(row["group"])
        rows.append((check_id(row["qid"]), row["group"], check_id(row["doc_id"]), grade))
    if len({row[:3] for row in rows}) < len(rows):
        raise Unsure("a judgment twice")
    return _gathered(rows)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise Refused("a key twice")
    return dict(pairs)


def _objects(data: bytes) -> Iterator[dict[str, Any]]:
    text = text_of(data)
    if text.lstrip(" \t\r\n").startswith("["):
        raise Unsure("an array, or a line that is none")
    if not text.lstrip().partition("\n")[0].rstrip().endswith("}"):
        raise Unsure("an object over several lines, or a line that is none")
    for line in text.split("\n"):
        if not line.strip(" \t\r\x0b\x0c"):
            continue
        if not line.strip():
            raise Unsure("a line of other blanks")
        try:
            value = json.loads(line, object_pairs_hook=_pairs, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise Refused(str(error)) from None
        if not isinstance(value, dict):
            raise Refused("no object")
        yield value


def _refuse(what: str) -> Any:
    raise Refused(what)


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Refused(f"no id: {value!r}")
    return check_id(str(value))


def _score(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refused(f"no score: {value!r}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise Refused("not finite")
    return found


def jsonl_run(data: bytes) -> Run:
    """Nested rows `retrieved_ids` with `retrieve_scores`, or a row a result."""
    nested: Run = {}
    long: Run = {}
    for row in _objects(data):
        lists = [key for key in row if key.startswith("retrieved_ids")]
        if "qid" not in row:
            raise Unsure("another key may have its role")
        qid = _id(row["qid"])
        if lists == ["retrieved_ids"]:
            ids = row["retrieved_ids"]
            if qid in nested or not isinstance(ids, list):
                raise Refused("a query twice, or no list")
            scores = row.get("retrieve_scores")
            if scores is None:
                raise Unsure("no scores")
            if not isinstance(scores, list) or len(scores) != len(ids):
                raise Refused("scores that do not fit")
            for score in scores:
                _score(score)
            # The order of a list is given: scores do not change it.
            nested[qid] = [(_id(name), -float(place)) for place, name in enumerate(ids)]
        elif lists or set(row) != {"qid", "doc_id", "score"}:
            raise Unsure("other keys")
        else:
            long.setdefault(qid, []).append((_id(row["doc_id"]), _score(row["score"])))
    if nested and long:
        raise Refused("both shapes")
    return nested or long


def jsonl_truth(data: bytes) -> Truth:
    truth: Truth = {}
    for row in _objects(data):
        if not {"qid", "retrieval_gt"} <= set(row):
            raise Unsure("another key may have its role")
        qid, groups = _id(row["qid"]), row["retrieval_gt"]
        if qid in truth:
            raise Refused("a query twice")
        if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
            raise Refused("not a list of lists") if isinstance(groups, (int, str, float)) else Unsure("other shapes")
        if not all(isinstance(cell, (str, int)) for group in groups for cell in group) or not all(groups):
            raise Unsure("empty groups, or other shapes of alternatives")
        truth[qid] = [dict.fromkeys(map(_id, group), 1.0) for group in groups]
    return truth
