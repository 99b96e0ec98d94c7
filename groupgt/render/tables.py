"""Numbers as text, the one place where digits are chosen; and tables of them, in any format tabulate knows."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

from groupgt.errors import ConfigError, near_names, printable
from groupgt.render.exports import Cell


def fixed(value: float | None, digits: int = 4) -> str:
    """A value with a fixed number of digits; `–` where there is none.

    >>> fixed(0.5), fixed(None), fixed(float("nan")), fixed(-0.00001)
    ('0.5000', '–', '–', '0.0000')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def signed(value: float | None, digits: int = 4) -> str:
    """A difference, with its sign; `–` where there is none.

    >>> signed(0.5), signed(-0.25), signed(0.0), signed(float("nan"))
    ('+0.5000', '-0.2500', '0.0000', '–')
    """
    text = fixed(value, digits)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") else text


def span(interval: tuple[float, float] | None, digits: int = 4) -> str:
    """An interval, for a cell of a table.

    >>> span((0.25, 0.75)), span((float("nan"), float("nan")))
    ('0.2500 to 0.7500', '–')
    """
    if interval is None or math.isnan(interval[0]):
        return "–"
    return f"{fixed(interval[0], digits)} to {fixed(interval[1], digits)}"


def small(value: float | None) -> str:
    """A p-value: four digits, or that it is below them.

    >>> small(0.0312), small(0.00001), small(0.0), small(None)
    ('0.0312', '<0.0001', '<0.0001', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    return fixed(value) if value >= 0.0001 else "<0.0001"


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> counted(1, "query", "queries"), counted(1200, "query", "queries"), counted(2, "system")
    ('1 query', '1,200 queries', '2 systems')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def p_text(value: float) -> str:
    """A p-value in a sentence.

    >>> p_text(0.0312), p_text(0.00001)
    ('p = 0.0312', 'p < 0.0001')
    """
    text = small(value)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


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
