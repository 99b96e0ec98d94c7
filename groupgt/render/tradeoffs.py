"""Draw trade-off figures for swept options, latency and sample size, in the same way as `figures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupgt.render import encodings as draw
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About, Layer, Rows
from groupgt.render.layout import middle_cut
from groupgt.render.tables import count_text, fixed, shortlist


def sweep(rows: Rows, about: About, parameters: Sequence[str]) -> Figure:
    """Draw a metric against one parameter, as lines with CIs, or against two parameters, as a heat map.

    Rows: `family`, `x`, `value`, `low`, `high`. With two parameters: `x`, `y` and `value`.
    """
    best = max((row for row in rows if row.get("value") is not None), key=lambda row: row["value"], default=None)
    text = f"Mean {about.metric} by {' and '.join(parameters)}"
    if best is not None:
        place = " and ".join(f"{name} = {best[key]}" for name, key in zip(parameters, ("x", "y")))
        text += f". Best: {fixed(best['value'])} at {place if len(parameters) > 1 else best['x']}"
    if len(parameters) > 1:
        # Differences have distinct colors if they are large relative to the CIs.
        body = draw.heat_map("y", "x", draw.span_of(rows), titles=(parameters[1], parameters[0]), digits=3)
        filled = [{**row, "text": fixed(row["value"], 3)} for row in rows]
        columns = {"x": parameters[0], "y": parameters[1], "value": "mean"}
        title = f"{about.metric} by {_both(parameters)}"
        return draw.figure_of("sweep", title, about, body, filled, columns, f"{text}.")
    is_numeric = all(isinstance(row["x"], (int, float)) and not isinstance(row["x"], bool) for row in rows)
    place_of: Layer = {"field": "x", "type": "quantitative" if is_numeric else "ordinal", "title": parameters[0]}
    scale = {"zero": False, "nice": False, "padding": 24}
    place_of |= {"scale": scale} if is_numeric else {"sort": None, "axis": {"labelAngle": 0}}
    families = draw.distinct(rows, "family")
    color = draw.by_system(families, "family")
    y = {"type": "quantitative", "scale": {"zero": False}, "title": about.metric}
    mean = {"x": place_of, "y": {**y, "field": "value"}}
    interval = {"x": place_of, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    tooltip = draw.tips(family="", x=parameters[0], value="mean", low="low", high="high")
    layers = [
        draw.layer({"type": "rule", "opacity": 0.6}, {**interval, **draw.color_only(color)}),
        # Words have no order, so no line joins them.
        *([draw.layer({"type": "line"}, {**mean, **color})] if is_numeric else []),
        draw.layer(draw.points(60), {**mean, **draw.color_only(color), "tooltip": tooltip}),
    ]
    columns = {"family": "system", "x": parameters[0], "value": "mean", "low": "low", "high": "high"}
    title = f"{about.metric} by {parameters[0]}"
    return draw.figure_of("sweep", title, about, {"layer": layers, "height": 200}, rows, columns, f"{text}.")


def _both(parameters: Sequence[str]) -> str:
    """Join two option labels. A system named in both labels appears only once."""
    (first, _, one), (_, _, other) = (name.partition(" of ") for name in parameters)
    return f"{first} and {parameters[1]}" if one == other else f"{parameters[0]} and {parameters[1]}"


def latency(rows: Rows, about: About, unit: str = "median ms per query") -> Figure:
    """Draw the latency of each system. Systems on the front are not beaten in both latency and quality by any other.

    Rows, best first: `system`, `latency` with CI bounds `fast` and `slow`, `value`, `low`, `high`, `front` (yes or no).
    Names are placed on the axis, where they never overlap.
    """
    x = draw.numeric(
        "latency", scale={"type": "log", "nice": False}, title=unit, axis={**draw.LOG_AXIS, "format": "~g"}
    )
    y = draw.down("system", sort=None)
    color = draw.colored("front", ["yes", "no"], ["$better", "$same"])
    shape = draw.colored("front", ["yes", "no"], ["circle", "square"])
    key = draw.legend("on the Pareto front")
    times = {"y": y, "x": {**x, "field": "fast"}, "x2": {"field": "slow"}, "color": color}
    marks = {"color": {**color, "legend": key}, "shape": {**shape, "legend": key}}
    layers = [
        draw.layer({"type": "rule", "strokeWidth": 2}, times),
        draw.layer(
            draw.points(70), {"y": y, "x": x, **marks, "tooltip": draw.tips(system="", latency=unit, value="mean")}
        ),
    ]
    front = [f"{row['system']} ({fixed(row['value'])}, {row['latency']:.3g})" for row in rows if row["front"] == "yes"]
    body: Layer = {"layer": layers, "height": {"step": draw.STEP}}
    columns = {"system": "system", "latency": unit, "fast": "ms low", "slow": "ms high"}
    columns |= {"value": "mean", "low": "low", "high": "high", "front": "on the front"}
    text = f"On the Pareto front of {about.metric} and latency: {shortlist(front)}."
    return draw.figure_of("latency", f"Latency, best {about.metric} first", about, body, rows, columns, text)


def correlation(rows: Rows, about: About, titles: tuple[str, str]) -> Figure:
    """Draw the means of each system on one side against those on the other, from rows of `system`, `x` and `y`."""
    values = [row["x"] for row in rows]
    middle = (min(values) + max(values)) / 2
    labelled = [{**row, "label": middle_cut(row["system"], 26)} for row in rows]
    placed = [{**row, "side": "left" if row["x"] < middle else "right"} for row in labelled]
    scale = {"zero": False, "nice": False, "padding": 24}
    place = {key: draw.numeric(key, scale=scale, title=title) for key, title in zip("xy", titles)}
    columns = {"system": "system", "x": titles[0], "y": titles[1]}
    layers = [draw.layer(draw.points(70), {**place, "color": {"value": "$ink"}, "tooltip": draw.tips(**columns)})]
    for side, shift in (("left", 8), ("right", -8)):
        name = {"type": "text", "align": side, "dx": shift, "color": "$ink"}
        layers.append(draw.layer(name, {**place, "text": draw.nominal("label")}, f"datum.side === '{side}'"))
    body: Layer = {"layer": layers, "height": 280}
    text = f"Means of {len(rows)} systems: {titles[1]} against {titles[0]}."
    return draw.figure_of("correlation", f"{titles[1]} against {titles[0]}", about, body, placed, columns, text)


def funnel(rows: Rows, about: About, first: str) -> Figure:
    """Draw the groups that each stage covers, from rows of `stage`, `fate` (covered or not), `count` and `order`."""
    x = {"title": "groups", "scale": {"nice": False}, "axis": {"tickMinStep": 1, "format": ",d"}}
    colors, tooltip = {"covered": "turn4", "not covered": "turn2"}, draw.tips(stage="stage", fate="", count="groups")
    body = draw.stacked_bars(draw.down("stage"), x, "fate", colors, draw.legend(""), tooltip, 28)
    covered = [f"{row['stage']} {count_text(row['count'])}" for row in rows if row["fate"] == "covered"]
    columns = {"stage": "stage", "fate": "", "count": "groups"}
    text = f"Groups covered by each stage: {shortlist(covered)}"
    return draw.figure_of(
        "stages", f"Groups covered by each stage, starting with {first}", about, body, rows, columns, text
    )


def thresholds(rows: Rows, about: About) -> Figure:
    """Draw two shares by score threshold, from rows of `system`, `threshold`, `figure` (share name) and `share`."""
    scale = {"domain": draw.distinct(rows, "figure"), "range": [[1, 0], [5, 3]]}
    encoding = {
        "x": draw.numeric("threshold", title="score threshold", scale={"zero": False}),
        "y": {**draw.share_axis("share"), "field": "share"},
        **draw.by_system(draw.distinct(rows, "system")),
        "strokeDash": draw.nominal("figure", scale=scale, legend=draw.legend("")),
        "tooltip": draw.tips(system="", figure="", threshold="threshold", share="share"),
    }
    lines = draw.layer({"type": "line", "interpolate": "step-before", "strokeWidth": 2}, encoding)
    title = "Unanswerable queries without results, and recall of the others, by score threshold"
    body: Layer = {**lines, "height": 240}
    columns = {"system": "system", "threshold": "threshold", "figure": "figure", "share": "share"}
    text = "With a higher threshold, more unanswerable queries return nothing and fewer groups are covered"
    return draw.figure_of("thresholds", title, about, body, rows, columns, text)


def power(rows: Rows, about: About, target: float, queries: int, baseline: str, needed: Mapping[str, str]) -> Figure:
    """Draw the power to detect each difference, from rows of `system`, `difference`, `queries` and `power`.

    `needed` is the number of queries that each system needs.
    """
    systems = draw.distinct(rows, "system")
    x, y = draw.logarithmic("queries", "queries"), {**draw.share_axis("power"), "field": "power"}
    dashed = {"type": "rule", "strokeDash": [5, 3], "color": "$soft"}
    columns = {"system": "system", "difference": "difference", "queries": "queries", "power": "power"}
    tooltip = draw.tips(**columns)
    layers = [
        {"data": {"values": [{"power": target}]}, **draw.layer(dashed, {"y": y})},
        {"data": {"values": [{"queries": queries}]}, **draw.layer(dashed, {"x": x})},
        draw.layer({"type": "line", "strokeWidth": 2}, {"x": x, "y": y, "tooltip": tooltip, **draw.by_system(systems)}),
    ]
    ends = [f"{name} {needed[name]}" for name in systems]
    body: Layer = {"layer": layers, "height": 240}
    text = f"Queries needed to detect the difference in {about.metric} with {100 * target:g}% power: {shortlist(ends)}."
    return draw.figure_of("power", f"Power to detect the difference from {baseline}", about, body, rows, columns, text)
