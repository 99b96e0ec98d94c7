"""Lines on logarithmic axes as plain SVG: small panels side by side, a row for each quantity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

WIDTH, MARGIN, HEAD, FOOT = 1060, 16, 96, 6
PLOT_HEIGHT, LEFT, RIGHT, TITLE, AXIS = 170, 48, 74, 30, 56
# Between two labels at the ends of lines, of two rows each.
APART = 31
# A card of its own stands behind, light or dark as the reader's system is, so that any page may be around it.
STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #4a525b; }
.title { font-size: 20px; font-weight: 600; fill: #16191d; }
.head { font-size: 13px; font-weight: 600; fill: #16191d; }
.card { fill: #ffffff; stroke: #d5dade; }
.grid { stroke: #e6e9ec; }
.axis { stroke: #8b949e; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.s0 { stroke: #0a5fd0; } .s1 { stroke: #b4490c; stroke-dasharray: 5 3; }
.d0 { fill: #0a5fd0; } .d1 { fill: #b4490c; }
.e0 { fill: #0a5fd0; font-weight: 600; } .e1 { fill: #b4490c; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #b3bcc6; }
  .title, .head { fill: #f0f3f6; }
  .card { fill: #12161c; stroke: #323a44; }
  .grid { stroke: #262d36; }
  .axis { stroke: #76808b; }
  .s0 { stroke: #6cb0ff; } .s1 { stroke: #f2a065; }
  .d0, .e0 { fill: #6cb0ff; } .d1, .e1 { fill: #f2a065; }
}
""".strip()


@dataclass(frozen=True)
class Panel:
    """Lines over one axis: `lines[name]` is a value for each of `at`."""

    title: str
    axis: str
    at: Sequence[float]
    lines: dict[str, Sequence[float]]


@dataclass(frozen=True)
class Row:
    """Panels that share a quantity and its range; `shown` writes a value with its unit."""

    title: str
    panels: Sequence[Panel]
    shown: Callable[[float], str]


def draw(title: str, text: Sequence[str], rows: Sequence[Row]) -> str:
    """The picture; `text` stands under the title, a line each."""
    tall = TITLE + PLOT_HEIGHT + AXIS
    height = HEAD + tall * len(rows) + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(" ".join([*text, *_told(rows)]))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        _text(MARGIN + 8, 38, title, "title"),
        *(_text(MARGIN + 8, 60 + 18 * number, line) for number, line in enumerate(text)),
    ]
    for number, row in enumerate(rows):
        wide = (WIDTH - 2 * MARGIN) / len(row.panels)
        values = [value for panel in row.panels for line in panel.lines.values() for value in line]
        scale = _Scale(min(values), max(values))
        for place, panel in enumerate(row.panels):
            parts += _panel(row, panel, scale, MARGIN + place * wide, HEAD + number * tall, wide)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _told(rows: Sequence[Row]) -> list[str]:
    """The ends of all lines in words, for who cannot see them."""
    return [
        f"{row.title} by {panel.title}, at {count(panel.at[-1])}: "
        + ", ".join(f"{name} {row.shown(line[-1])}" for name, line in panel.lines.items())
        + "."
        for row in rows
        for panel in row.panels
    ]


class _Scale:
    """A logarithmic axis from one step to another: 1, 3, 10, 30, …"""

    def __init__(self, least: float, most: float) -> None:
        steps = sorted(base * 10.0**power for power in range(-6, 12) for base in (1, 3))
        low = max((step for step in steps if step <= least * 1.02), default=least)
        high = min((step for step in steps if step >= most * 0.98), default=most)
        self.ticks = [step for step in steps if low <= step <= high]
        self.low, self.span = math.log(low), math.log(high / low) or 1.0

    def __call__(self, value: float) -> float:
        return (math.log(value) - self.low) / self.span


def _panel(row: Row, panel: Panel, scale: _Scale, x: float, y: float, wide: float) -> list[str]:
    left, right = x + LEFT, x + wide - RIGHT
    top, bottom = y + TITLE, y + TITLE + PLOT_HEIGHT
    span = math.log(panel.at[-1] / panel.at[0]) or 1.0

    def across(value: float) -> float:
        return left + 8 + (right - left - 8) * math.log(value / panel.at[0]) / span

    def up(value: float) -> float:
        return bottom - (bottom - top) * scale(value)

    parts = [_text(x + 8, y + 16, f"{row.title} by {panel.title}", "head")]
    for tick in scale.ticks:
        parts.append(_line(left, up(tick), right, up(tick), "grid"))
        parts.append(_text(left - 6, up(tick) + 4, f"{tick:,g}", anchor="end"))
    parts.append(_line(left, bottom, right, bottom, "axis"))
    for value in panel.at:
        parts.append(_line(across(value), bottom, across(value), bottom + 4, "axis"))
        parts.append(_text(across(value), bottom + 18, count(value), anchor="middle"))
    parts.append(_text((left + right) / 2, bottom + 36, panel.axis, anchor="middle"))
    for number, line in enumerate(panel.lines.values()):
        points = [(across(at), up(value)) for at, value in zip(panel.at, line, strict=True)]
        shape = " ".join(f"{each:.1f},{other:.1f}" for each, other in points)
        parts.append(f'<polyline class="line s{number}" points="{shape}"/>')
        parts += [f'<circle class="d{number}" cx="{each:.1f}" cy="{other:.1f}" r="2.8"/>' for each, other in points]
    ends = _spread([up(line[-1]) for line in panel.lines.values()], top, bottom)
    for number, ((name, line), end) in enumerate(zip(panel.lines.items(), ends, strict=True)):
        parts.append(_text(right + 8, end - 1, name, f"e{number}"))
        parts.append(_text(right + 8, end + 13, row.shown(line[-1])))
    return parts


def _spread(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Places for labels, as near to those wanted as can be, none on another."""
    found = list(places)
    order = sorted(range(len(found)), key=found.__getitem__)
    for above, below in pairwise(order):
        if (short := APART - (found[below] - found[above])) > 0:
            found[above] -= short / 2
            found[below] += short / 2
    # Both stay beside the panel.
    over = max(max(found) - (bottom - 13), 0.0)
    under = max((top + 6) - min(found), 0.0)
    return [place - over + under for place in found]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    chosen = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{chosen}{placed} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def count(value: float) -> str:
    """A number as short as may be: 100, 10k, 1M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def megabytes(value: float) -> str:
    return f"{value / 1000:.2g} GB" if value >= 1000 else f"{value:.0f} MB"
