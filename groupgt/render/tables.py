"""Tables of strings and numbers, in any format tabulate knows, or as JSON or CSV; and several as one document."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from groupgt.errors import ConfigError, near_names
from groupgt.render.numbers import fixed

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


Grid = tuple[list[str], list[list[Any]]]
# A table (headers, rows), or a paragraph.
Block = Grid | str

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 sans-serif; margin: 2em; }}
table {{ border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: left; }}
</style></head>
<body>
{body}
</body>
</html>"""


def document(blocks: Sequence[Block], style: str, title: str = "") -> str:
    """Tables drawn in a tabulate format; paragraphs stand between them as the format has text.

    >>> print(document(["a & b", (["run", "map"], [["x", 0.5]])], "github"))
    a & b
    <BLANKLINE>
    | run   |    map |
    |-------|--------|
    | x     | 0.5000 |
    """
    parts = [_block_text(each, style) if isinstance(each, str) else table(*each, style) for each in blocks]
    if style.startswith("latex"):
        parts = [part if isinstance(each, str) else _typeset(part) for each, part in zip(blocks, parts)]
    if style == "latex_booktabs":
        parts.insert(0, r"% needs \usepackage{booktabs}")
    body = "\n\n".join(parts)
    return PAGE.format(title=html.escape(title), body=body) if style == "html" else body


def _typeset(table: str) -> str:
    """A LaTeX table with minus signs for hyphens, raised marks, and no character that it has no font for.

    >>> _typeset(r"dense & -0.0312* & – & +∞")
    'dense & $-$0.0312$^{*}$ & -- & +$\\\\infty$'
    """
    table = re.sub(r"(?<![\w$])-(?=[0-9∞])", "$-$", table)
    table = re.sub(r"(?<=[0-9])\*", "$^{*}$", table)
    return table.replace("–", "--").replace("∞", r"$\infty$")


def _block_text(text: str, style: str) -> str:
    if style == "html":
        return f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>"
    if style.startswith("latex"):
        return re.sub("^", "% ", text, flags=re.MULTILINE)
    return text
