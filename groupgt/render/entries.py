"""Fit entries to a terminal. An entry is a name with its text, followed by lines that end in ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupgt.errors import first_of, printable
from groupgt.records import record
from groupgt.render import layout
from groupgt.render.layout import (
    GAP,
    SHORTEST_COLUMNS,
    Screen,
    columns_of,
    cut,
    end_cut,
    painted,
    wrapped,
)
from groupgt.render.tables import ALTERNATIVES, Table, snippet

# Lines of the text of an entry on a terminal, and its characters elsewhere.
TEXT_LINES, TEXT_CHARS = 2, 100
MARK, ASCII_MARK = "✗", "x"


@record
class Line:
    """A missing part of an entry, with its cells, its interchangeable ids, and the text of the first id."""

    cells: Sequence[str]
    ids: Sequence[str] = ()
    text: str = ""


@record
class Entry:
    """A listed item with its name, a count, its text, its lines, and the number of further lines."""

    name: str
    count: str
    text: str
    lines: Sequence[Line]
    more: str = ""


@record
class Entries:
    """A title, entries, and a last line. `other` is a table for all formats except a terminal's."""

    title: str
    entries: Sequence[Entry]
    other: Table
    foot: str

    def lines(self, screen: Screen) -> str:
        """Return the entries for a terminal. Ids keep their end, and text fills the remaining width."""
        heads = _padded([(entry.name, entry.count) for entry in self.entries], screen.width and screen.width - 2)
        below = [line.cells for entry in self.entries for line in entry.lines]
        rows = iter(_padded(below, screen.width and screen.width - 6))
        blocks = []
        for entry, head in zip(self.entries, heads):
            lines = list(_head(entry, head, screen))
            mark = ASCII_MARK if screen.is_ascii else MARK
            for line, cells in zip(entry.lines, rows):
                start = f"    {mark} {GAP.join([*cells, ''])}"
                if screen.width is not None and screen.width - columns_of(start) < 2 * SHORTEST_COLUMNS:
                    lines.append(start)
                    start = " " * 6
                lines.append(start + _ids(line, screen.width and screen.width - columns_of(start)))
            lines += [f"      {entry.more}"] if entry.more else []
            blocks.append("\n".join(map(str.rstrip, lines)))
        title, foot = (wrapped(printable(each), screen.width) for each in (self.title, f"  {self.foot}"))
        return "\n\n".join([title, *blocks, foot])


def _padded(rows: Sequence[Sequence[str]], room: int | None) -> list[list[str]]:
    """Return rows whose cells are as wide as their column. Names, in the first column, are cut to fit the room."""
    size = max(map(len, rows), default=0)
    cells = layout.Cells([""] * size, [list(map(_flat, row)) for row in rows], right=[False] + [True] * size)
    if room is not None:
        cells = layout.shorter(cells, room)
    widths = cells.widths()
    return [[cell + " " * (width - columns_of(cell)) for cell, width in zip(row, widths)] for row in cells.rows]


def _head(entry: Entry, cells: Sequence[str], screen: Screen) -> Iterator[str]:
    """Yield the lines with an entry's name, count and text. The text starts on the first line if it fits."""
    head = f"  {GAP.join(cells)}"
    if screen.width is None:
        yield f"{head}{GAP}{snippet(printable(entry.text), TEXT_CHARS)}"
        return
    indent = columns_of(head) + len(GAP)
    is_beside = screen.width - indent >= 2 * SHORTEST_COLUMNS
    indent = indent if is_beside else 4
    lines = wrapped(_flat(entry.text), screen.width - indent, "").split("\n")
    last = cut(" ".join(lines[TEXT_LINES - 1 :]), screen.width - indent)
    texts = [*lines[: TEXT_LINES - 1], *([last] if last else [])]
    head = painted(head, "bold") if screen.color else head
    yield f"{head}{GAP}{texts.pop(0)}" if is_beside else head
    yield from (" " * indent + text for text in texts)


def _ids(line: Line, room: int | None) -> str:
    """Return as many ids as fit, and the text of the first if there is room left."""
    ids, text = list(map(_flat, line.ids)), snippet(printable(line.text), TEXT_CHARS)
    shown = first_of(ids, ALTERNATIVES, " or ")
    if room is not None and columns_of(shown) > room:
        more = f" or {len(ids) - 1:,} more" if len(ids) > 1 else ""
        shown = f"{end_cut(ids[0], max(room - columns_of(more), SHORTEST_COLUMNS))}{more}"
    if room is None:
        return f"{shown}: {text}" if text else shown
    left = room - columns_of(shown) - 2
    return f"{shown}: {cut(text, left)}" if text and left >= SHORTEST_COLUMNS else shown


def _flat(text: str) -> str:
    return printable(" ".join(text.split()))
