"""Tables of strings and numbers, in any format tabulate knows, or as JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from groupgt.errors import ConfigError, near_names
from groupgt.render.numbers import fixed

__all__ = [
    "DEFAULT",
    "WIDEST",
    "Cell",
    "as_written",
    "check_style",
    "csv_text",
    "formats",
    "json_text",
    "nulls",
    "shown",
    "table",
]

DEFAULT = "simple"
# More columns of figures than this do not fit a terminal: such tables are turned.
WIDEST = 8
Cell = str | int | float | None
# What a spreadsheet takes for the beginning of a formula.
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def formats() -> list[str]:
    """The names of the formats that `table` takes."""
    import tabulate

    return list(tabulate.tabulate_formats)


def check_style(style: str, *others: str) -> None:
    """Raises `ConfigError` for a format that is not known; `others` are known besides tabulate's."""
    import tabulate

    if style not in tabulate.tabulate_formats and style not in others:
        near = near_names(style, [*tabulate.tabulate_formats, *others])
        known = ", ".join([*others, *tabulate.tabulate_formats])
        raise ConfigError(f"format: {style!r} is not known{near}; formats are {known}")


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], style: str = DEFAULT) -> str:
    """Draws a table; floats have four digits and stand right, None is `–`.

    >>> print(table(["run", "map"], [["a", 0.5]]))
    run       map
    -----  ------
    a      0.5000
    """
    import tabulate

    check_style(style)
    numeric = [all(_is_figure(row[column]) for row in rows) for column in range(len(headers))]
    return tabulate.tabulate(
        [[_cell(cell, style) for cell in row] for row in rows],
        headers=[_cell(header, style) for header in headers],
        tablefmt=style,
        disable_numparse=True,
        colalign=["right" if right else "left" for right in numeric] if rows else None,
    )


def shown(headers: Sequence[str], rows: Sequence[Sequence[Cell]], style: str) -> str:
    """A table in a tabulate format, or as `json` or `csv`."""
    if style == "json":
        return json_text([dict(zip(headers, row)) for row in rows])
    return csv_text(headers, rows).rstrip("\n") if style == "csv" else table(headers, rows, style)


def _is_figure(cell: Cell) -> bool:
    """Whether a cell is a number, or the text of one."""
    return not isinstance(cell, str) or re.fullmatch(r"[-+]?[0-9]+\.[0-9]+", cell) is not None


def _cell(cell: Cell, style: str) -> str:
    """The text of a cell on one line; a bar is no border."""
    text = _text(cell)
    if not text.isprintable():
        text = " ".join(text.split())
    return text.replace("|", "\\|") if style in ("github", "pipe") else text


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return fixed(cell)


def nulls(value: Any) -> Any:
    """The same structure with None for NaN and infinities: JSON has neither.

    >>> nulls({"a": [float("nan"), float("inf"), 1.0]})
    {'a': [None, None, 1.0]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: nulls(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [nulls(each) for each in value]
    return value


def json_text(value: Any) -> str:
    """JSON with full doubles and null for NaN."""
    return json.dumps(nulls(value), ensure_ascii=False, indent=2, allow_nan=False)


def csv_text(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """CSV with full doubles; an undefined value is an empty cell, and text that a spreadsheet would run is quoted.

    >>> csv_text(["qid", "map"], [["=1+1", 0.25], ["q2", None]]).splitlines()
    ['qid,map', "'=1+1,0.25", 'q2,']
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_harmless(header) for header in headers])
    for row in rows:
        writer.writerow([_harmless(cell) if isinstance(cell, str) else nulls(cell) for cell in row])
    return out.getvalue()


def as_written(text: str) -> str:
    """The text that `csv_text` made harmless, as it was.

    >>> as_written("'=1+1"), as_written("it's"), as_written("''-2")
    ('=1+1', "it's", "'-2")
    """
    return text[1:] if text[:1] == "'" and _harmless(text[1:]) == text else text


def _harmless(text: str) -> str:
    if text[:1] == "'" and text.lstrip("'")[:1] in FORMULAS:
        return "'" + text  # else it could not be told from one that was made harmless
    return "'" + text if text[:1] in FORMULAS and not _is_plain(text) else text


def _is_plain(text: str) -> bool:
    """Whether a spreadsheet would take it for a number, or it is a cutoff of ours such as @10."""
    return re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?|@[0-9]+", text) is not None
