"""Draw tables with a bar in each row on a terminal. Bars show intervals on one axis, or values and their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from groupgt.errors import printable
from groupgt.records import record
from groupgt.render.layout import GAP, SHORTEST_NAME, Screen, columns_of, flowed, middle_cut, painted, wrapped
from groupgt.render.tables import Table

# Columns of a bar: the minimum, the width at which names are cut, and the maximum.
SHORTEST_BAR, SHORT_BAR, LONGEST_BAR = 9, 20, 41
# Columns of the bar of a gate.
GATE_BAR = 14
# Maximum number of characters in a line that explains signs.
WIDEST_LEGEND = 100
# Characters of bars, and in the same order those for a terminal without UTF-8.
DRAWN = "├┤─│┼┊○▲▼◆█░┃"
ASCII = "||-|+:o^v#=.|"
# Margin on both sides of an axis, as a share of its length.
ROOM = 0.05


@dataclass(frozen=True)
class Bar:
    """A value with its interval on the table's axis. `sign` marks the value, and `limit` is a second value to draw."""

    value: float | None
    low: float | None = None
    high: float | None = None
    sign: str = "○"
    limit: float | None = None

    @property
    def ends(self) -> list[float]:
        """All numbers that the axis must include."""
        return [each for each in (self.value, self.low, self.high, self.limit) if each is not None]


@record
class Axis:
    """An axis from `low` to `high`, with ticks at round numbers. An axis of changes includes 0 and shows signs."""

    low: float
    high: float
    ticks: tuple[float, ...]
    has_zero: bool

    @classmethod
    def of(cls, bars: Sequence[Bar], *, has_zero: bool = True) -> Axis:
        """Return the axis that all bars fit on."""
        ends = [*(end for bar in bars for end in bar.ends), *([0.0] if has_zero else [])] or [0.0]
        low, high = min(ends), max(ends)
        size = (high - low) or 1.0
        low, high = low - ROOM * size, high + ROOM * size
        powers = (10.0**power for power in range(math.floor(math.log10(size)) - 1, 99))
        step = next(step for power in powers for step in (power, 2 * power, 5 * power) if size / step <= 4)
        first, last = math.ceil(low / step), math.floor(high / step)
        return cls(low, high, tuple(place * step for place in range(first, last + 1)), has_zero)

    def share(self, value: float) -> float:
        """Return the position of a number on the axis, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def text(self, tick: float) -> str:
        """Return the label of a tick, with enough decimals to tell all ticks apart."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else abs(tick) or 1.0
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        if not round(tick, 9):
            return "0"
        return f"{tick:+.{decimals}f}" if self.has_zero else f"{tick:.{decimals}f}"


@record
class BarTable:
    """A table with a bar after its first `before` columns. The first column is a name, and all others are numbers.

    Rows of `failed` consist of a name and a reason, and come last.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    bars: Sequence[Bar | None]
    before: int
    other: Table
    legend: Sequence[str] = ()
    has_zero: bool = True
    failed: Sequence[tuple[str, str]] = ()

    def lines(self, screen: Screen) -> str:
        """Return the table for a terminal. If it is too wide, names are cut, then columns after the bars are hidden."""
        every = (self.headers, *self.rows, *([name] + [""] * (len(self.headers) - 1) for name, _ in self.failed))
        headers, *rows = [[printable(cell) for cell in row] for row in every]
        widths, room = self._fitted([headers, *rows], screen.width)
        if room < SHORTEST_BAR:
            headers, *rows = [row[: self.before] for row in (headers, *rows)]
            widths, room = self._fitted([headers, *rows], screen.width)
        room = min(max(room, SHORTEST_BAR), LONGEST_BAR)
        axis = Axis.of([bar for bar in self.bars if bar is not None], has_zero=self.has_zero)
        lines = [self._line(headers, widths, _ticks(axis, room))]
        for row, bar in zip(rows, self.bars):
            line = self._line(row, widths, _drawn(bar, axis, room))
            is_marked = bar is not None and bar.sign in "▲▼"
            lines.append(painted(line, "bold") if screen.color and is_marked else line)
        for row, (_, why) in zip(rows[len(self.rows) :], self.failed):
            name, indent = middle_cut(row[0], widths[0]), widths[0] + len(GAP)
            text = wrapped(" " * indent + printable(why), screen.width or WIDEST_LEGEND, "")
            lines.append(name + " " * (indent - columns_of(name)) + text[indent:])
        if self.legend:
            lines.append(flowed(list(map(printable, self.legend)), min(screen.width or WIDEST_LEGEND, WIDEST_LEGEND)))
        text = "\n".join(lines)
        return text.translate(str.maketrans(DRAWN, ASCII)) if screen.is_ascii else text

    def _fitted(self, rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[int], int]:
        """Return the widths of columns, and the remaining width for bars."""
        widths = [max(map(columns_of, column)) for column in zip(*rows)]
        if width is None:
            return widths, LONGEST_BAR
        room = width - sum(widths) - len(GAP) * self.before - (len(widths) - self.before)
        cut = min(max(0, SHORT_BAR - room), max(0, widths[0] - SHORTEST_NAME))
        return [widths[0] - cut, *widths[1:]], room + cut

    def _line(self, row: Sequence[str], widths: Sequence[int], bar: str) -> str:
        name = middle_cut(row[0], widths[0])
        texts = [name + " " * (widths[0] - columns_of(name))]
        texts += [" " * (width - columns_of(cell)) + cell for cell, width in zip(row[1:], widths[1:])]
        return GAP.join([*texts[: self.before], " ".join([bar, *texts[self.before :]])]).rstrip()


def labels(axis: Axis, width: int) -> dict[float, tuple[int, str]]:
    """Return the column and the label of each tick on an axis of this many characters, 0 first. Labels never touch."""
    line, placed = [" "] * width, {}
    for tick in sorted(axis.ticks, key=lambda tick: tick != 0):
        text = axis.text(tick)
        start = min(max(_place(axis, tick, width) - len(text) // 2, 0), width - len(text))
        if all(cell == " " for cell in line[max(start - 1, 0) : start + len(text) + 1]):
            line[start : start + len(text)] = text
            placed[tick] = start, text
    return placed


def _ticks(axis: Axis, width: int) -> str:
    line = " " * width
    for start, text in labels(axis, width).values():
        line = f"{line[:start]}{text}{line[start + len(text) :]}"
    return line


def _drawn(bar: Bar | None, axis: Axis, width: int) -> str:
    if bar is None or bar.value is None:
        return " " * width
    line = [" "] * width
    zero = _place(axis, 0.0, width) if axis.has_zero else None
    if bar.low is not None and bar.high is not None:
        start, end = _place(axis, bar.low, width), _place(axis, bar.high, width)
        line[start : end + 1] = "─" * (end + 1 - start)
        line[start], line[end] = "├", "┤"
    if zero is not None and bar.sign != "◆":
        line[zero] = "│" if line[zero] in " ├┤" else "┼"
    if bar.limit is not None:
        line[_place(axis, bar.limit, width)] = "┊"
    line[_place(axis, bar.value, width)] = bar.sign
    return "".join(line)


def _place(axis: Axis, value: float, width: int) -> int:
    return round(axis.share(value) * (width - 1))


@record
class Limits:
    """Rows with a result, a measure, a bar (the shares of its width that the value and the limit fill), and a value."""

    title: str
    rows: Sequence[tuple[str, str, tuple[float, float] | None, str]]
    other: Table
    folded: int = 0

    def lines(self, screen: Screen) -> str:
        """Return the gates for a terminal. Reasons wrap and are never cut."""
        width, hidden = screen.width or 100, 0 if screen.details else self.folded
        rows = self.rows[: len(self.rows) - hidden]
        first, last = max(len(row[0]) for row in rows), max(columns_of(row[3]) for row in rows)
        room = width - first - last - 2 * len(GAP)
        # A narrow terminal has no bars.
        bar = GATE_BAR if room - GATE_BAR - len(GAP) >= SHORT_BAR else 0
        room = min(max(columns_of(row[1]) for row in rows), max(SHORT_BAR, room - (bar and bar + len(GAP))))
        lines = [printable(self.title)]
        for status, what, shares, value in rows:
            start, *rest = wrapped(printable(what), room, "").split("\n")
            parts = [status.ljust(first), start + " " * (room - columns_of(start)), _filled(shares, bar), value]
            line = GAP.join(filter(None, parts))
            lines.append(painted(line, "red") if screen.color and status == "FAILED" else line)
            lines += [" " * (first + len(GAP)) + more for more in rest]
        if hidden:
            lines.append(f"passed{' ' * (first - 6)}{GAP}{hidden:,} more gates, on other systems")
        text = "\n".join(line.rstrip() for line in lines)
        return text.translate(str.maketrans(DRAWN, ASCII)) if screen.is_ascii else text


def _filled(shares: tuple[float, float] | None, width: int) -> str:
    if shares is None or not width:
        return " " * width
    value, limit = (min(max(share, 0.0), 1.0) for share in shares)
    full = round(value * width)
    line = list("█" * full + "░" * (width - full))
    line[min(round(limit * width), width - 1)] = "┃"
    return "".join(line)
