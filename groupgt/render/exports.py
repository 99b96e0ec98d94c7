"""Export data with full double precision and without NaN: JSON, CSV, JSON Lines, Parquet, and JUnit XML."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from groupgt.errors import ConfigError, listed
from groupgt.model.values import as_json, nulls
from groupgt.runtime import pl

Cell = str | int | float | None
ENDINGS = (".csv", ".jsonl", ".parquet")
# Characters that spreadsheets read as the beginning of a formula.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
# Kinds of test cases: passed without any of these; a passed case may have output.
CaseKind = Literal["failure", "error", "skipped", "system-out"]


def json_text(value: Any) -> str:
    """Format JSON with full double precision, over several lines."""
    return as_json(value, indent=2)


class _Lines(list[str]):
    """A file-like object for `csv.writer` that collects lines."""

    write = list.append


def csv_text(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Format CSV with full double precision. Undefined values are empty cells, and spreadsheet formulas are escaped."""
    lines = _Lines()
    # The writer quotes cells that contain part of its line end, such as a single carriage return.
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow([_harmless(header) for header in headers])
    for row in rows:
        writer.writerow([_harmless(cell) if isinstance(cell, str) else nulls(cell) for cell in row])
    return "".join(line[:-2] + "\n" for line in lines)


def as_written(text: str) -> str:
    """Return the original text of a cell that `csv_text` escaped."""
    return text[1:] if text[:1] == "'" and _harmless(text[1:]) == text else text


def _harmless(text: str) -> str:
    if text[:1] == "'" and text.lstrip("'")[:1] in FORMULAS:
        return "'" + text  # otherwise it would look like an escaped text
    # Numbers and cutoffs such as @10 are safe.
    is_plain = re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?|@[0-9]+", text) is not None
    return "'" + text if text[:1] in FORMULAS and not is_plain else text


def check_ending(path: Path, endings: Sequence[str] = ENDINGS, option: str = "") -> None:
    """Raise `ConfigError` if a file extension is not among the known ones. Messages begin with the `option`."""
    if path.suffix.lower() not in endings:
        found = path.suffix or "no ending"
        raise ConfigError(f"{option}{path}: expected a file that ends in {listed(endings)}, found {found}")


def write_rows(path: Path, headers: Sequence[str], rows: Sequence[Sequence[Any]], ending: str) -> None:
    """Write rows as .csv, .jsonl or .parquet. The type of each column is inferred from its values."""
    ending = ending.lower()
    if ending == ".parquet":
        frame_of(headers, rows).write_parquet(path)
        return
    if ending == ".csv":
        text = csv_text(headers, rows)
    else:
        text = "".join(as_json(dict(zip(headers, row))) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="")


def frame_of(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Convert rows to a polars frame. None and NaN become null, and column types are inferred from the values."""
    columns = list(zip(*rows)) or [()] * len(headers)
    series = []
    for name, cells in zip(headers, columns):
        kinds = {type(cell) for cell in cells if cell is not None}
        kind = pl.String if str in kinds else pl.Int64 if kinds == {int} else pl.Float64
        series.append(pl.Series(name, list(cells), dtype=kind))
    return pl.DataFrame(series).fill_nan(None)


def junit_text(suite: str, cases: Sequence[tuple[str, str, CaseKind, str]], notes: Sequence[str] = ()) -> str:
    """Format cases (class, name, kind, text) as a JUnit suite. A case without text has passed."""
    # It also imports urllib, email and http.
    from xml.sax.saxutils import escape, quoteattr

    def quoted(text: str) -> str:
        return quoteattr(xml_text(text))

    counts: Counter[str] = Counter(kind for _, _, kind, text in cases if text)
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    told = " ".join(f'{name}="{counts[kind]}"' for name, kind in kinds.items())
    opening = f'  <testsuite name={quoted(suite)} tests="{len(cases)}" {told}>'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", opening]
    for family, name, kind, text in cases:
        start = f"    <testcase classname={quoted(family)} name={quoted(name)}"
        if not text:
            lines.append(f"{start}/>")
        else:
            message = "" if kind == "system-out" else f" message={quoted(text)}"
            lines += [f"{start}>", f"      <{kind}{message}>{escape(xml_text(text))}</{kind}>", "    </testcase>"]
    if notes:
        lines.append(f"    <system-out>{escape(xml_text(chr(10).join(notes)))}</system-out>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"])


def xml_text(text: str) -> str:
    """Replace characters that are invalid in XML (and in SVG) with U+FFFD."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
