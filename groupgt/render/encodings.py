"""Define building blocks for figures: the notes below titles, encodings, layers, and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupgt.render.drawing import Figure
from groupgt.render.layout import middle_cut
from groupgt.render.tables import fixed

Rows = Sequence[Mapping[str, Any]]
Layer = dict[str, Any]
WIDTH = 560
STEP = 22
# Maximum number of systems distinguished by color.
COLORS = 8
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 3], [6, 2, 1, 2, 1, 2])
LOWEST, HIGHEST = 0.0, 1.0
# Axes: slanted names above the figure, and numbers on a logarithmic scale.
SLANTED: Layer = {"labelAngle": -35, "labelLimit": 240, "labelExpr": "$slanted", "orient": "top"}
NAMES: Layer = {"labelExpr": "$name"}
LOG_AXIS: Layer = {"tickCount": 6, "format": "~s", "grid": False}
# With more lines than this, only some are named and the others are grey.
FEW_LINES = 3
# For layers with two color scales, such as those of `tiles`.
TWO_COLORS: Layer = {"resolve": {"scale": {"color": "independent"}}}


@dataclass(frozen=True)
class About:
    """Facts shown in every figure. `level` describes the interval and its confidence level."""

    metric: str
    queries: int
    convention: str
    policy: str
    note: str = ""
    level: str = "95% CI"

    @property
    def lines(self) -> list[str]:
        """The lines below the title."""
        population = f"n = {self.queries:,} {'query' if self.queries == 1 else 'queries'}"
        first = " · ".join(text for text in (self.metric, population) if text)
        convention = f"convention {self.convention}" if self.convention else ""
        return [line for line in (first, convention, self.note) if line]


def figure_of(
    name: str, title: str, about: About, body: Layer, rows: Rows, columns: Mapping[str, str], text: str
) -> Figure:
    """Build a figure, with the facts about it below the title and in its description."""
    lines = about.lines
    spec: Layer = {
        "title": {"text": title, "subtitle": lines},
        "description": f"{text} {'. '.join([*lines, about.policy])}.",
        "data": {"name": "rows", "values": [dict(row) for row in rows]},
        **({} if "facet" in body else {"width": WIDTH, "autosize": {"type": "pad", "contains": "padding"}}),
        **body,
    }
    return Figure(name, spec, text, list(columns.values()), [[row.get(key) for key in columns] for row in rows])


def layer(mark: Layer, encoding: Layer, where: Any = None) -> Layer:
    """Return a layer with one mark per row, or per row that passes the filter `where`."""
    rows = {} if where is None else {"transform": [{"filter": where}]}
    return {**rows, "mark": mark, "encoding": encoding}


def points(size: int) -> Layer:
    """Return the mark for points of a size in square pixels."""
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def numeric(field: str, **options: Any) -> Layer:
    """Encode numbers."""
    return {"field": field, "type": "quantitative", **options}


def nominal(field: str, **options: Any) -> Layer:
    """Encode names."""
    return {"field": field, "type": "nominal", **options}


def across(field: str, **options: Any) -> Layer:
    """Return a horizontal numeric axis."""
    return numeric(field, scale={"zero": False}, **options)


def down(field: str, **options: Any) -> Layer:
    """Return a vertical axis of names."""
    return nominal(field, title=None, axis=NAMES, **options)


def zero_line(axis: str) -> Layer:
    """Return a line at zero, which means no difference."""
    line = layer({"type": "rule", "color": "$soft"}, {axis: numeric("zero")})
    return {"data": {"name": "zero", "values": [{"zero": 0}]}, **line}


def colored(field: str, values: list[str], colors: list[str]) -> Layer:
    """Encode categories as colors or shapes."""
    return nominal(field, scale={"domain": values, "range": colors})


def legend(title: str) -> Layer:
    """Return a legend below the figure."""
    return {"title": title or None, "orient": "bottom", "direction": "horizontal"}


def tips(**titles: str) -> list[Layer]:
    """Return the tooltip for a mark."""
    numbers = {"value", "low", "high", "delta", "latency", "share"}
    number, name = {"type": "quantitative", "format": ".4f"}, {"type": "nominal"}
    kinds = {field: number if field in numbers else name for field in titles}
    return [{"field": field, "title": title or field, **kinds[field]} for field, title in titles.items()]


def logarithmic(field: str, title: str) -> Layer:
    """Return a horizontal numeric axis with a logarithmic scale."""
    return {**across(field), "scale": {"type": "log", "nice": False}, "title": title, "axis": LOG_AXIS}


def share_axis(title: str) -> Layer:
    """Return a percentage axis from 0 to 100%."""
    return {"type": "quantitative", "title": title, "scale": {"domain": [LOWEST, HIGHEST]}, "axis": {"format": ".0%"}}


def named_lines(named: Sequence[str], encoding: Layer, mark: Layer) -> list[Layer]:
    """Draw lines for many systems. The `named` lines are in color, with names at the end. Other lines are grey."""
    count, names = len(named), list(named)
    color = {**colored("system", names, [f"$system{place}" for place in range(count)]), "legend": None}
    dash = nominal("system", scale={"domain": names, "range": list(map(list, DASHES[:count]))}, legend=None)
    is_named = {"field": "system", "oneOf": names}
    grey = {**mark, "strokeWidth": 1, "color": "$same", "opacity": 0.7}
    layers = [
        layer(grey, {**encoding, "detail": nominal("system")}, {"not": is_named}),
        layer({**mark, "strokeWidth": 2.2}, {**encoding, "color": color, "strokeDash": dash}, is_named),
    ]
    text = {**{axis: encoding[axis] for axis in "xy"}, "text": nominal("label"), "color": color}
    # First fade the background of the name.
    halo = {"stroke": "$ground", "strokeWidth": 4, "strokeJoin": "round"}
    for side, shift in (("above", -9), ("below", 32)):
        name = {"type": "text", "align": "right", "dy": shift, "fontWeight": 600}
        layers += [layer({**name, **behind}, text, {"field": "side", "equal": side}) for behind in (halo, {})]
    return layers


def with_labels(rows: Rows, named: Sequence[str], panel: str, value: str) -> list[dict[str, Any]]:
    """Add a `label` to the last row of each `named` system, and a `side` on which to place the label."""
    labelled = [dict(row) for row in rows]
    for each in distinct(rows, panel):
        last = {row["system"]: row for row in labelled if row[panel] == each and row["system"] in named}
        for place, row in enumerate(sorted(last.values(), key=lambda row: -(row[value] or 0.0))):
            row.update(label=middle_cut(row["system"], 30), side="above" if place == 0 else "below")
    return labelled


def by_system(systems: Sequence[str], field: str = "system") -> Layer:
    """Encode systems by color and dash pattern. Beyond the first few, all systems look the same."""
    count = len(systems)
    colors = [f"$system{place}" if place < COLORS else "$same" for place in range(count)]
    dashes = [list(DASHES[place]) if place < COLORS else [1, 2] for place in range(count)]
    # Show only the line in the legend: with points too, dashes would be drawn around their symbols.
    shown = {"values": list(systems[:COLORS]), "symbolType": "stroke", "labelExpr": "$key"}
    key = {**legend(""), **shown} if count > 1 else None
    return {
        "color": {**colored(field, list(systems), colors), "legend": key},
        "strokeDash": nominal(field, scale={"domain": list(systems), "range": dashes}, legend=key),
    }


def color_only(encoding: Layer) -> Layer:
    """Return the color of a layer whose legend belongs to another layer."""
    color = encoding["color"]
    return {"color": {key: value for key, value in color.items() if key != "legend" or value is None}}


def line_layers(encoding: Layer) -> list[Layer]:
    """Draw lines with a point at each value."""
    of_points = {**{key: value for key, value in encoding.items() if key != "strokeDash"}, **color_only(encoding)}
    return [layer({"type": "line", "strokeWidth": 2}, encoding), layer(points(25), of_points)]


def tiles(shared: Layer, color: Layer, ink: Layer, size: int, tooltip: list[Layer]) -> list[Layer]:
    """Draw colored rectangles with the `text` of their rows in a second color."""
    written = {"text": nominal("text"), "color": {**ink, "legend": None}}
    return [
        layer({"type": "rect", "stroke": "$ground", "strokeWidth": 1}, {**shared, "color": color, "tooltip": tooltip}),
        layer({"type": "text", "fontSize": size}, {**shared, **written}),
    ]


def stacked_bars(
    y: Layer, x: Layer, field: str, colors: Mapping[str, str], key: Layer, tooltip: list[Layer], step: int
) -> Layer:
    """Draw one bar per name, with parts by `field` in the `order` of the rows and their `count` as text."""
    shared = {"y": {**y, "sort": None}, "x": numeric("count", stack="zero", **x), "order": numeric("order")}
    parts, names = list(colors), list(colors.values())
    fills, inks = (colored(field, parts, [f"${start}{name}" for name in names]) for start in ("", "on"))
    bars = layer({"type": "bar"}, {**shared, "color": {**fills, "legend": key}, "tooltip": tooltip})
    text = {"text": numeric("count", format=","), "color": {**inks, "legend": None}}
    counts = layer({"type": "text", "align": "right", "dx": -4}, {**shared, **text}, "datum.count > 0")
    return {"layer": [bars, counts], "height": {"step": step}, **TWO_COLORS}


def panels(field: str, values: list[str], panel: Layer) -> Layer:
    """Repeat a figure for each value, side by side."""
    return {"facet": nominal(field, title=None, sort=values), "columns": 3, "spec": panel}


def span_of(rows: Rows) -> tuple[float, float]:
    """Return the lowest and highest number of rows with a `value` and its interval, or 0 and 1 if there is only one."""
    ends = [end for row in rows for end in (row.get("low"), row.get("high"), row.get("value")) if end is not None]
    return (min(ends), max(ends)) if len(set(ends)) > 1 else (LOWEST, HIGHEST)


def heat_map(
    row: str,
    column: str,
    domain: tuple[Any, Any],
    *,
    titles: tuple[str | None, str | None] = (None, None),
    counted: bool = False,
    digits: int = 2,
) -> Layer:
    """Draw a heat map of column `value` with stepped colors and the `text` of each row."""
    color, ink = (
        numeric("value", scale={"type": "quantize", "range": colors, "domain": [*domain]})
        for colors in ([f"${kind}{place}" for place in range(6)] for kind in ("step", "on"))
    )
    color["legend"] = {"title": None, "orient": "bottom", "format": f".{digits}f"}
    shared: Layer = {
        "y": {"field": row, "type": "ordinal", "sort": None, "title": titles[0], "axis": NAMES},
        "x": {"field": column, "type": "ordinal", "sort": None, "title": titles[1], "axis": SLANTED},
    }
    if titles != (None, None):
        shared["x"]["axis"] = {"labelAngle": 0, "orient": "top"}
    named = {row: titles[0] or row, column: titles[1] or column, "value": "mean"}
    tooltip = tips(**named, **({"queries": "queries"} if counted else {}))
    return {"layer": tiles(shared, color, ink, 11, tooltip), "height": {"step": 26}, **TWO_COLORS}


def between(row: Mapping[str, Any], number: Callable[[float | None], str]) -> str:
    """Format a confidence interval in parentheses, to follow a value."""
    return "" if row.get("low") is None else f" ({number(row['low'])} to {number(row['high'])})"


def distinct(rows: Rows, field: str) -> list[str]:
    """Return a column's distinct values in order of appearance."""
    return list(dict.fromkeys(row[field] for row in rows))


def last_means(rows: Rows, metric: str, systems: Sequence[str]) -> str:
    """Describe the value of the best systems at the last cutoff of a metric."""
    last = {row["system"]: row for row in rows if row["metric"] == metric}
    values = {name: -1.0 if row["value"] is None else round(row["value"], 11) for name, row in last.items()}
    best = sorted(name for name, value in values.items() if value == max(values.values()))
    if not best:
        return metric
    names = f"{' and '.join(best)} " if len(systems) > 1 else ""
    return f"{metric} {names}{fixed(last[best[0]]['value'])} at {last[best[0]]['k']:,}"
