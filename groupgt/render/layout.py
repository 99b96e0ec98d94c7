"""Lay out text for a terminal: fit tables to its width, wrap paragraphs, and add colors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import groupby, repeat

from groupgt.records import record
from groupgt.render.exports import Cell

# Minimum width, in columns, to which text in a cell and a name are cut.
SHORTEST_COLUMNS, SHORTEST_NAME = 16, 12
GAP = "  "
# Headers have the same padding as in tabulate, if there is room.
ROOM = 2
CODES = {"bold": "1", "red": "1;31", "yellow": "33", "green": "32"}


@record
class Screen:
    """The output device. A width of None is unlimited, and `is_ascii` restricts bars and badges to ASCII."""

    width: int | None = None
    color: bool = False
    details: bool = True
    is_ascii: bool = False


# For a file, a pipe or a page: everything, without a width limit.
PAPER = Screen()


def columns_of(text: str) -> int:
    """Return the width of text in terminal columns: two for wide characters, none for combining marks."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Shorten text to at most `width` columns."""
    if columns_of(text) <= width:
        return text
    taken = 0
    for place, character in enumerate(text):
        taken += _columns(character)
        if taken > width - 1:
            return text[:place].rstrip() + "…"
    return text


def end_cut(text: str, width: int) -> str:
    """Shorten an id to at most `width` columns from its beginning, because its end identifies it."""
    if columns_of(text) <= width:
        return text
    while columns_of(text) > width - 1:
        text = text[1:]
    return f"…{text}"


def middle_cut(text: str, width: int) -> str:
    """Shorten a name to at most `width` columns in its middle, because both ends identify it."""
    if columns_of(text) <= width:
        return text
    return cut(text, width - width // 2) + end_cut(text, width // 2 + 1)[1:]


def wrapped(text: str, width: int | None, indent: str = "  ") -> str:
    """Wrap each line of text to at most `width` columns, with extra indentation for continuation lines."""
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
    """Join parts into lines of at most `width` columns, which break only between parts if they fit."""
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


@record
class Table:
    """A table. If the table is too wide, columns in `shed` are hidden one by one.

    The first `keep` columns identify a row and are repeated in each part of a split table. Like columns in `names`,
    these columns contain names, not text. `above` contains the title of each column's group, or is empty. `shed` and
    `names` refer to columns by header, and `shed` also to groups by title.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    shed: Sequence[str] = ()
    keep: int = 1
    above: Sequence[str] = ()
    names: Sequence[str] = ()

    @property
    def labels(self) -> list[str]:
        """Headers that also name the group of a column, such as `map by tier: free`."""
        labels = [f"{title}: {header}" if title else header for title, header in zip(self.above, self.headers)]
        return labels or list(self.headers)


@record
class Cells(Table):
    """A table of text cells. `right` marks numeric columns."""

    rows: Sequence[Sequence[str]]
    right: Sequence[bool] = field(kw_only=True)

    def widths(self, padding: int = 0) -> list[int]:
        """Return the width of each column. The first column of a group makes room for its title."""
        columns = zip(self.headers, zip(*self.rows) if self.rows else repeat(()))
        widths = [max([columns_of(header) + padding, *map(columns_of, column)]) for header, column in columns]
        for start, end in self.groups:
            widths[start] += max(0, columns_of(self.above[start]) - total(widths[start:end]))
        return widths

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The first column of each group, and the column after the group's last one."""
        titles = groupby(enumerate(self.above), lambda pair: pair[1])
        places = [[place for place, _ in pairs] for title, pairs in titles if title]
        return [(group[0], group[-1] + 1) for group in places]

    def of(self, places: Sequence[int]) -> Cells:
        """Return a table with only the selected columns."""
        return replace(
            self,
            headers=[self.headers[place] for place in places],
            rows=[[row[place] for place in places] for row in self.rows],
            right=[self.right[place] for place in places],
            above=[self.above[place] for place in places if self.above],
        )

    def is_text(self, place: int, text: str) -> bool:
        """Return whether a cell contains text, not a name."""
        return " " in text and place >= self.keep and self.headers[place] not in self.names

    def least(self) -> list[int]:
        """Return the minimum width of each column. Names stay distinct, and numbers are not cut."""
        least = []
        labels = self.labels
        for place, (header, width) in enumerate(zip(self.headers, self.widths())):
            texts = {row[place] for row in self.rows}
            if self.right[place] or not {labels[place], *self.above[place : place + 1]}.isdisjoint(self.shed):
                size = width
            elif any(self.is_text(place, text) for text in texts):
                size = max(columns_of(header), SHORTEST_COLUMNS)
            else:
                size = max(columns_of(header), SHORTEST_NAME)
                while size < width and len({middle_cut(text, size) for text in texts}) < len(texts):
                    size += 1
            least.append(min(size, width))
        return least


def total(widths: Sequence[int]) -> int:
    """Return the total width of columns and the gaps between them."""
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


def rendered(cells: Cells, paint: Callable[[str], str] = str, padding: int = ROOM) -> str:
    """Render a table in tabulate's `simple` format. `paint` colors the cells."""
    widths = cells.widths(padding)

    def line(texts: Sequence[str], paint: Callable[[str], str]) -> str:
        row = []
        for text, width, right in zip(texts, widths, cells.right):
            blank = " " * (width - columns_of(text))
            row.append(blank + paint(text) if right else paint(text) + blank)
        return GAP.join(row).rstrip()

    lines = [line(cells.headers, str), GAP.join("-" * width for width in widths)]
    if cells.groups:
        titles = ""
        for start, _ in cells.groups:
            left = total([*widths[:start], 0])
            titles += " " * (left - columns_of(titles)) + cells.above[start]
        lines.insert(0, titles)
    return "\n".join([*lines, *(line(row, paint) for row in cells.rows)])


def fitted(cells: Cells, width: int) -> tuple[list[Cells], list[str]]:
    """Cut text, hide columns in `shed`, and then split a table to fit the width. Also return the hidden columns."""
    left_out: list[str] = []
    for name in cells.shed:
        if total(cells.least()) <= width:
            break
        # It names a column, or a group of them.
        names = [(label, *cells.above[at : at + 1]) for at, label in enumerate(cells.labels)]
        kept = [place for place, of_column in enumerate(names) if name not in of_column]
        if len(kept) < len(names):
            cells = cells.of(kept)
            left_out.append(name)
    cells = shorter(cells, width)
    return list(_divided(cells, width)), left_out


def shorter(cells: Cells, width: int) -> Cells:
    """Shorten names in their middle and long text at its end to fit the width, starting with the widest columns."""
    widths, least = cells.widths(), cells.least()
    # In a split table, the columns that identify a row are not cut if they leave room for the widest other column.
    if total([*widths[: cells.keep], max(least[cells.keep :], default=0)]) <= width < total(least):
        least[: cells.keep] = widths[: cells.keep]
    longest = list(widths)
    while total(longest) > width:
        places = [place for place, size in enumerate(longest) if size > least[place]]
        if not places:
            break
        others = [place for place in places if place >= cells.keep]
        longest[max(others or places, key=longest.__getitem__)] -= 1
    if longest == widths:
        return cells
    rows = [
        [(cut if cells.is_text(place, text) else middle_cut)(text, longest[place]) for place, text in enumerate(row)]
        for row in cells.rows
    ]
    return replace(cells, rows=rows)


def _divided(cells: Cells, width: int) -> Iterator[Cells]:
    """Split a table into as few parts as possible. Each part begins with the columns that identify a row."""
    widths = cells.widths()
    kept = list(range(min(cells.keep, len(widths))))
    part = list(kept)
    for place in range(len(kept), len(widths)):
        if len(part) > len(kept) and total([widths[at] for at in (*part, place)]) > width:
            yield cells.of(part)
            part = list(kept)
        part.append(place)
    yield cells.of(part)


def painted(text: str, color: str) -> str:
    """Color text with terminal escape codes."""
    return f"\x1b[{CODES[color]}m{text}\x1b[0m" if text else text


def paint_cell(text: str) -> str:
    """Color a cell for a terminal. Failures are red, and significant or best values are bold."""
    if text == "FAILED":
        return painted(text, "red")
    return painted(text, "bold") if isinstance(text, Strong) or re.fullmatch(r"[-+]?[0-9.]+[*▲▼]", text) else text


def paint_line(text: str) -> str:
    """Color a line for a terminal. Warnings are yellow, and failures are red."""
    if text.startswith("warning:"):
        return painted(text, "yellow")
    return painted(text, "red") if text.startswith(("failed:", "FAILED")) else text
