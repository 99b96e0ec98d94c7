"""Format numbers consistently and render tables in any tabulate format."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from groupgt.errors import ConfigError, near_names, printable
from groupgt.render import layout
from groupgt.render.exports import Cell

DEFAULT = "simple"
# Digits of every number in a comparison.
DIGITS = 3
# More columns of numbers than this do not fit a terminal; such tables are transposed.
WIDEST = 8
Grid = tuple[list[str], list[list[Any]]]
Table = layout.Table
# Marks of a significant difference, and of a mean that is significantly better or worse than another.
MARK, BETTER, WORSE = "*", "▲", "▼"
MARKS = (MARK, BETTER, WORSE)
# Beginning and end of a highlighted cell, by format; these two are placeholders until a table is drawn.
OPENS, CLOSES = "\ue000", "\ue001"
STRONG = {
    **dict.fromkeys(("github", "pipe", "rst"), ("**", "**")),
    **dict.fromkeys(("html", "unsafehtml"), ("<strong>", "</strong>")),
    **dict.fromkeys(("latex", "latex_raw", "latex_booktabs", "latex_longtable"), ("\\textbf{", "}")),
}
_FIGURE = re.compile(rf"[-+<>]?[0-9][0-9,]*(\.[0-9]+)?[{''.join(MARKS)}]?|[-+]?∞")
# Texts for missing numbers in columns of numbers.
_NO_FIGURE = ("", "–", "baseline", "none", "never")
# Maximum number of alternatives shown per group.
ALTERNATIVES = 5
MARKDOWN = ("github", "pipe")
_ZERO_WIDTH = "&#8203;"
# Characters with a meaning in Markdown, and their replacements.
_ESCAPES = [
    (r"[\\`\[\]|~]", r"\\\g<0>"),
    # A mark of significance follows a digit; underscores within words are no formatting.
    (r"(?<![0-9])\*|(?<!\w)_|_(?!\w)", r"\\\g<0>"),
    (r"&(?=#?\w+;)", "&amp;"),
    (r"<(?=[A-Za-z/!?])", "&lt;"),
    # Mentions of people, email addresses, and links to issues.
    (r"(?<!\w)@(?=\w)|@(?=\w+\.\w)", rf"@{_ZERO_WIDTH}"),
    (r"(?<!&)#(?=[0-9])|(?<=\bGH)-(?=[0-9])", rf"\g<0>{_ZERO_WIDTH}"),
    # Addresses.
    (r"\b([A-Za-z]+):(?=//)", r"\1&#58;"),
    (r"(?i)\bwww\.", "www&#46;"),
    # Headings, quotations and lists.
    (r"(?m)^(\s*)(>|[#+-]+(?=\s|$))", r"\1\\\2"),
    (r"(?m)^(\s*[0-9]+)([.)](?=\s|$))", r"\1\\\2"),
]


def fixed(value: float | None, digits: int = 4) -> str:
    """Format a value with a fixed number of decimals. A missing value becomes `–`."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def signed(value: float | None, digits: int = 4) -> str:
    """Format a difference with its sign. A missing value becomes `–`."""
    text = fixed(value, digits)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") else text


def minus(text: str) -> str:
    """Replace the hyphens of negative numbers with minus signs."""
    return re.sub(r"(?<![\w.-])-(?=[0-9])", "\u2212", text)


def span(interval: tuple[float, float] | None, digits: int = 4) -> str:
    """Format an interval for a table cell."""
    if interval is None or math.isnan(interval[0]):
        return "–"
    return f"{fixed(interval[0], digits)} to {fixed(interval[1], digits)}"


def small(value: float | None, digits: int = 4) -> str:
    """Format a p-value with a fixed number of decimals, or as `<0.0001` if it is smaller."""
    least = 10.0**-digits
    return f"<{fixed(least, digits)}" if value is not None and value < least else fixed(value, digits)


def counted(count: float, one: str, many: str = "") -> str:
    """Format a count, which may be a mean over trials, with its noun."""
    plural, text = f"{one[:-1]}ies" if one.endswith("y") else f"{one}s", count_text(count)
    return f"{text} {one if text == '1' else many or plural}"


def count_text(count: float) -> str:
    """Format a count that may be a mean over trials."""
    return f"{count:,.0f}" if abs(count - round(count)) < 0.05 else f"{count:,.1f}"


def counts_text(counts: Iterable[float]) -> list[str]:
    """Format counts shown side by side, all with a decimal if any is a mean over trials."""
    texts = list(map(count_text, counts))
    return [text if "." in text or not any("." in each for each in texts) else f"{text}.0" for text in texts]


def range_text(counts: Collection[int]) -> str:
    """Format counts that may differ, such as `50 to 1,234`."""
    low, high = min(counts), max(counts)
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def part_of(count: float, total: int, one: str, verb: str = "is", verbs: str = "are") -> str:
    """Return the beginning of a sentence, such as `3 of 8 queries are`."""
    return f"{count_text(count)} of {counted(total, one)} {verb if 1 in (count, total) else verbs}"


def shortlist(texts: Sequence[str], most: int = 8, more: str = " and {:,} more") -> str:
    """Join the first few texts and count the rest."""
    return ", ".join(texts[:most]) + (more.format(len(texts) - most) if len(texts) > most else "") or "nothing"


def p_text(value: float, digits: int = 4) -> str:
    """Format a p-value for use in a sentence."""
    text = small(value, digits)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def stacked(grids: Iterable[tuple[str, Grid]]) -> Grid:
    """Stack the tables of all data sets. The first column names the data set."""
    headers: list[str] = []
    rows: list[list[Any]] = []
    for dataset, (dataset_headers, dataset_rows) in grids:
        headers = ["dataset", *dataset_headers]
        rows += [[dataset, *row] for row in dataset_rows]
    return headers, rows


def check_style(style: str, *others: str) -> None:
    """Raise `ConfigError` for an unknown format. Formats in `others` are valid in addition to tabulate's formats."""
    if style in others or style == DEFAULT:
        return
    import tabulate

    if style not in tabulate.tabulate_formats:
        near = near_names(style, [*tabulate.tabulate_formats, *others])
        names = ", ".join([*others, *tabulate.tabulate_formats])
        raise ConfigError(f"unknown format {style!r}{near}; formats: {names}")


def table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], style: str = DEFAULT) -> str:
    """Render a table. Floats have four decimals and are right-aligned, and None becomes `–`."""
    cells = cells_of(Table(headers, rows), style)
    if style == DEFAULT:
        return layout.rendered(cells)
    import tabulate

    check_style(style)
    opens, closes = STRONG.get(style, ("", ""))
    sides = ["right" if right else "left" for right in cells.right] if rows else None
    text = tabulate.tabulate(cells.rows, cells.headers, style, disable_numparse=True, colalign=sides)
    return text.replace(OPENS, opens).replace(CLOSES, closes)


def cells_of(table: Table, style: str = DEFAULT) -> layout.Cells:
    """Convert a table to text cells with right-aligned numbers."""
    columns = [[row[column] for row in table.rows] for column in range(len(table.headers))]
    right = [_are_figures(column, is_name=place < table.keep) for place, column in enumerate(columns)]
    texts = [[_cell(cell, style) for cell in row] for row in table.rows]
    for column in (place for place, is_right in enumerate(right) if is_right and style == DEFAULT):
        # Marks of significance are outside the column of digits.
        if any(row[column].endswith(MARKS) for row in texts):
            for row in texts:
                if not row[column].endswith(MARKS):
                    row[column] = type(row[column])(f"{row[column]} ")
    headers, above = ([_cell(text, style) for text in names] for names in (table.headers, table.above))
    return layout.Cells(headers, texts, table.shed, table.keep, above, table.names, right=right)


def _are_figures(cells: Sequence[Cell], *, is_name: bool) -> bool:
    """Return whether all cells of a column are numbers or formatted numbers, not names that look like numbers."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell not in _NO_FIGURE]
    if is_name and texts:
        return False
    return bool(cells) and all(map(_FIGURE.fullmatch, texts)) and (bool(texts) or any(cell != "" for cell in cells))


def snippet(text: str, size: int) -> str:
    """Return the beginning of some text on a single line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"


def _cell(cell: Cell, style: str) -> str:
    """Format a cell on a single line, without control characters, and escaped in Markdown."""
    text = (cell if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else fixed(cell)).strip()
    if not text.isprintable():
        text = printable(" ".join(text.split()))
    escaped = markdown(text) if style in MARKDOWN else text
    if isinstance(cell, layout.Strong):
        return layout.Strong(text) if style == DEFAULT else f"{OPENS}{escaped}{CLOSES}"
    return escaped


def markdown(text: str) -> str:
    """Escape text for Markdown, so that it is shown literally, never as HTML, a link or a mention."""
    for pattern, replacement in _ESCAPES:
        text = re.sub(pattern, replacement, text)
    return text
