"""Lays out text for a terminal: fits tables to its width, wraps paragraphs, and adds color.

`render.document` uses this module for complete documents; cells and text are passed in exactly as they are printed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

# Minimum width, in columns, to which text in a cell is cut.
SHORTEST_COLUMNS = 20
GAP = "  "


@dataclass(frozen=True)
class Screen:
    """The output device: its width in columns (None for unlimited), and whether to show color and details.

    If it `is_ascii`, bars and badges use no other characters.
    """

    width: int | None = None
    color: bool = False
    details: bool = True
    is_ascii: bool = False


# For a file, a pipe or a page: everything, without a width limit.
PAPER = Screen()


def columns_of(text: str) -> int:
    """Return the width of text in terminal columns: two for wide characters, none for combining marks.

    >>> columns_of("map"), columns_of("検索"), columns_of("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Shortens text to at most `width` columns.

    >>> cut("Thirty days of leave", 12)
    'Thirty days…'
    """
    if columns_of(text) <= width:
        return text
    taken = 0
    for place, character in enumerate(text):
        taken += _columns(character)
        if taken > width - 1:
            return text[:place].rstrip() + "…"
    return text


def wrapped(text: str, width: int | None, indent: str = "  ") -> str:
    """Wrap each line of text to at most `width` columns, with extra indentation for continuation lines.

    >>> print(wrapped("one two three\\n  four five six", 11))
    one two
      three
      four five
        six
    """
    if width is None:
        return text
    return "\n".join("\n".join(_lines(line, width, indent)) for line in text.split("\n"))


def _lines(text: str, width: int, indent: str) -> Iterator[str]:
    if columns_of(text) <= width:
        yield text
        return
    line = text[: len(text) - len(text.lstrip())]
    indent = line + indent
    for word in re.findall(r"\S+\s*", text):
        if line.strip() and columns_of(line + word.rstrip()) > width:
            yield line.rstrip()
            line = indent
        line += word
    yield line.rstrip()


def flowed(parts: Sequence[str], width: int | None) -> str:
    """Join parts into lines of at most `width` columns, which break only between parts if they fit.

    >>> print(flowed(["one two", "three", "four five"], 16))
    one two  three
      four five
    """
    lines: list[str] = []
    for part in parts:
        if lines and (width is None or columns_of(f"{lines[-1]}{GAP}{part}") <= width):
            lines[-1] += f"{GAP}{part}"
        else:
            lines.append(f"  {part}" if lines else part)
    return wrapped("\n".join(lines), width)


class Strong(str):
    """Text of a highlighted cell, shown in bold if the format supports it."""

    __slots__ = ()


@dataclass(frozen=True)
class Cells:
    """A table of text cells; `right` marks numeric columns, and columns in `shed` may be hidden one by one.

    The first `keep` columns identify a row and are repeated in each part of a split table.
    """

    headers: list[str]
    rows: list[list[str]]
    right: list[bool]
    shed: tuple[str, ...] = ()
    keep: int = 1

    def widths(self, padding: int = 0) -> list[int]:
        """Return the width of each column."""
        return [
            max(columns_of(header) + padding, *(columns_of(row[place]) for row in self.rows), 0)
            for place, header in enumerate(self.headers)
        ]

    def of(self, places: Sequence[int]) -> Cells:
        """Return a table with only the selected columns."""
        return replace(
            self,
            headers=[self.headers[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
            right=[self.right[place] for place in places],
        )


def total(widths: Sequence[int]) -> int:
    """Return the total width of columns and the gaps between them."""
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


# Headers have the same padding as in tabulate, if there is room.
ROOM = 2


def rendered(cells: Cells, paint: Callable[[str], str] = str, padding: int = ROOM) -> str:
    """Render a table in tabulate's `simple` format; `paint` colors the cells."""
    widths = cells.widths(padding)

    def line(texts: Sequence[str], paint: Callable[[str], str]) -> str:
        row = []
        for text, width, right in zip(texts, widths, cells.right):
            blank = " " * (width - columns_of(text))
            row.append(blank + paint(text) if right else paint(text) + blank)
        return GAP.join(row).rstrip()

    lines = [line(cells.headers, str), GAP.join("-" * width for width in widths)]
    return "\n".join([*lines, *(line(row, paint) for row in cells.rows)])


def fitted(cells: Cells, width: int) -> tuple[list[Cells], list[str]]:
    """Split a table into parts of at most `width` columns; also return the headers of hidden columns.

    Columns in `shed` are hidden first, one by one; then long text is shortened; only then is the table split.
    """
    left_out: list[str] = []
    for header in cells.shed:
        if total(cells.widths()) <= width:
            break
        if header in cells.headers:
            cells = cells.of([place for place, name in enumerate(cells.headers) if name != header])
            left_out.append(header)
    cells = _shortened(cells, width)
    return list(_divided(cells, width)), left_out


def _shortened(cells: Cells, width: int) -> Cells:
    """Shortens long text to fit the width, starting with the widest columns."""
    widths = cells.widths()
    longest = list(widths)
    # The columns that identify a row are not cut if they leave room for the widest of the other columns, cut or not.
    others = [size if right else min(size, SHORTEST_COLUMNS) for size, right in zip(widths, cells.right)][cells.keep :]
    kept = cells.keep if total([*widths[: cells.keep], max(others, default=0)]) <= width else 0
    while total(longest) > width:
        text = [
            place
            for place, header in enumerate(cells.headers)
            if place >= kept and not cells.right[place] and longest[place] > max(SHORTEST_COLUMNS, columns_of(header))
        ]
        if not text:
            break
        longest[max(text, key=longest.__getitem__)] -= 1
    if longest == widths:
        return cells
    return replace(cells, rows=[[cut(text, size) for text, size in zip(row, longest)] for row in cells.rows])


def _divided(cells: Cells, width: int) -> Iterator[Cells]:
    """Split a table into as few parts as possible; each part begins with the columns that identify a row."""
    widths = cells.widths()
    kept = list(range(min(cells.keep, len(widths))))
    part = list(kept)
    for place in range(len(kept), len(widths)):
        if len(part) > len(kept) and total([widths[at] for at in (*part, place)]) > width:
            yield cells.of(part)
            part = list(kept)
        part.append(place)
    yield cells.of(part)


# --- Color.

CODES = {"bold": "1", "red": "1;31", "yellow": "33", "green": "32"}


def painted(text: str, color: str) -> str:
    """Colors text with terminal escape codes.

    >>> painted("FAILED", "red")
    '\\x1b[1;31mFAILED\\x1b[0m'
    """
    return f"\x1b[{CODES[color]}m{text}\x1b[0m" if text else text


def paint_cell(text: str) -> str:
    """Colors a cell for a terminal: failures are red, and significant or best values are bold."""
    if text == "FAILED":
        return painted(text, "red")
    return painted(text, "bold") if isinstance(text, Strong) or re.fullmatch(r"[-+]?[0-9.]+\*", text) else text


def paint_line(text: str) -> str:
    """Colors a line for a terminal: warnings are yellow, and failures are red."""
    if text.startswith("warning:"):
        return painted(text, "yellow")
    return painted(text, "red") if text.startswith(("failed:", "FAILED")) else text
