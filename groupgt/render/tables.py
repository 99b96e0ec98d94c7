"""Tables for people, in any format tabulate knows, and several of them as one document."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from groupgt.errors import ConfigError, near_names, printable
from groupgt.render.exports import Cell
from groupgt.render.numbers import fixed

DEFAULT = "simple"
# More columns of figures than this do not fit a terminal: such tables are turned.
WIDEST = 8
Grid = tuple[list[str], list[list[Any]]]
# A table (headers, rows), or a paragraph.
Block = Grid | str


def check_style(style: str, *others: str) -> None:
    """Raises `ConfigError` for a format that is not known; `others` are known besides tabulate's."""
    if style in others:
        return
    import tabulate

    if style not in tabulate.tabulate_formats:
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


def _is_figure(cell: Cell) -> bool:
    """Whether a cell is a number, or the text of one."""
    return not isinstance(cell, str) or re.fullmatch(r"[-+]?[0-9]+\.[0-9]+", cell) is not None


def snippet(text: str, size: int) -> str:
    """The beginning of a text, on one line.

    >>> snippet("Thirty days\\nof leave", 20), snippet("Thirty days of leave", 12)
    ('Thirty days of leave', 'Thirty days…')
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"


def _cell(cell: Cell, style: str) -> str:
    """The text of a cell on one line, where nothing commands a terminal and a bar is no border."""
    text = _text(cell)
    if not text.isprintable():
        text = printable(" ".join(text.split()))
    return text.replace("|", "\\|") if style in ("github", "pipe") else text


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return fixed(cell)


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
    parts = [drawn(block, style) for block in blocks]
    if style.startswith("latex"):
        parts = [part if isinstance(block, str) else _typeset(part) for block, part in zip(blocks, parts)]
    if style == "latex_booktabs":
        parts.insert(0, r"% needs \usepackage{booktabs}")
    body = "\n\n".join(parts)
    return PAGE.format(title=html.escape(printable(title)), body=body) if style == "html" else body


def drawn(block: Block, style: str) -> str:
    """A table in a tabulate format, or a paragraph as that format has text."""
    if not isinstance(block, str):
        return table(*block, style)
    text = printable(block)
    if style == "html":
        return f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>"
    if style.startswith("latex"):
        return re.sub("^", "% ", text, flags=re.MULTILINE)
    return text


def _typeset(table: str) -> str:
    """A LaTeX table with minus signs for hyphens, raised marks, and no character that it has no font for.

    >>> _typeset(r"dense & -0.0312* & – & +∞")
    'dense & $-$0.0312$^{*}$ & -- & +$\\\\infty$'
    """
    table = re.sub(r"(?<![\w$])-(?=[0-9∞])", "$-$", table)
    table = re.sub(r"(?<=[0-9])\*", "$^{*}$", table)
    return table.replace("–", "--").replace("∞", r"$\infty$")
