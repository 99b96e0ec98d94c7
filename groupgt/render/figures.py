"""The figures: a function each, which takes a plain table and returns a `Figure`; nothing here knows an evaluation.

A table is a list of rows, dicts whose keys each function names. Texts that begin with `$` are colors of
`drawing.THEMES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupgt.errors import ConfigError, near_names
from groupgt.render.drawing import Figure, table_of
from groupgt.render.numbers import fixed, signed

Rows = Sequence[Mapping[str, Any]]
Layer = dict[str, Any]

WIDTH = 560
STEP = 22
# More bars than this are drawn as one area.
BARS = 600
# More systems than this are not told apart by color.
COLORS = 8
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 3], [6, 2, 1, 2, 1, 2])
LOWEST, HIGHEST = 0.0, 1.0


@dataclass(frozen=True)
class About:
    """What every figure states: the metric, how many questions, the convention and the policy; and a note, if any."""

    metric: str
    questions: int
    convention: str
    policy: str
    note: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines below the title."""
        population = f"n = {self.questions:,} question{'' if self.questions == 1 else 's'}"
        first = " · ".join(text for text in (self.metric, population) if text)
        return [first, f"convention {self.convention} · {self.policy}", *([self.note] if self.note else [])]


def forest(rows: Rows, about: About, *, delta: bool = False, title: str = "") -> Figure:
    """Means, or with `delta` differences, each with its interval.

    Rows: `name`, `value`, `low`, `high` (None where there is no interval), `kind`: better, worse, not
    significant or baseline; without kinds there is nothing to hold them against.
    """
    kinds = ["better", "worse", "not significant", "baseline"]
    color = _of("kind", kinds, ["$better", "$worse", "$same", "$ink"])
    shape = _of("kind", kinds, ["circle", "diamond", "square", "triangle-up"])
    axis = {**_y("name"), "sort": None}
    legend = _legend("against the baseline") if any(row.get("kind") for row in rows) else None
    if legend is None:
        color["legend"] = None
    layers: list[Layer] = []
    if delta:
        layers.append(_zero("x"))
    layers += [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": axis, "x": {**_x("low"), "title": None}, "x2": {"field": "high"}, "color": color},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "y": axis,
                "x": {
                    **_x("value"),
                    "title": f"{'difference in ' if delta else ''}{about.metric}",
                    "axis": {"tickCount": 5, "labelOverlap": True},
                },
                "color": {**color, "legend": legend},
                "shape": {**shape, "legend": legend},
                "tooltip": _tips(name="", value="difference" if delta else "mean", low="low", high="high"),
            },
        },
    ]
    number = signed if delta else fixed
    said = [f"{row['name']} {number(row['value'])}{_between(row, number)}" for row in rows]
    text = f"{'Differences' if delta else 'Means'} of {about.metric} with intervals: {_listed(said)}."
    return _figure(
        "forest",
        title or ("Differences with intervals" if delta else "Means with intervals"),
        about,
        {"layer": layers, "height": {"step": STEP}},
        rows,
        {"name": "system", "value": "difference" if delta else "mean", "low": "low", "high": "high", "kind": "kind"},
        text,
    )


def deltas(
    rows: Rows, about: About, first: str, second: str, mean: Mapping[str, Any], *, bars: bool | None = None
) -> Figure:
    """The difference of every question, largest gain first, with the mean and its interval.

    Rows, sorted: `qid`, `place` (from 1), `delta`, `kind`: better, worse or same. `mean` has `value`, `low`, `high`.
    Questions are `bars`, or one area where there are too many to be told apart.
    """
    color = _of("kind", ["better", "worse", "same"], ["$better", "$worse", "$same"])
    value = {**_y("delta"), "type": "quantitative", "title": f"difference in {about.metric}"}
    place = {**_x("place"), "title": "questions, largest gain first", "axis": {"grid": False, "tickMinStep": 1}}
    if len(rows) <= BARS if bars is None else bars:
        marks: list[Layer] = [
            {
                "transform": [
                    {"calculate": "datum.place - 0.5", "as": "from"},
                    {"calculate": "datum.place + 0.5", "as": "to"},
                    {"calculate": "0", "as": "zero"},
                ],
                "mark": {"type": "rect", "stroke": "$ground", "strokeWidth": 0.5},
                "encoding": {
                    "x": {**place, "field": "from", "scale": {"nice": False, "zero": False}},
                    "x2": {"field": "to"},
                    "y": value,
                    "y2": {"field": "zero"},
                    "color": {**color, "legend": None},
                    "tooltip": _tips(qid="question", delta="difference"),
                },
            }
        ]
    else:
        marks = [
            {
                "mark": {"type": "area", "interpolate": "step-after"},
                "encoding": {
                    "x": {**place, "scale": {"nice": False, "zero": False}},
                    "y": value,
                    "color": {**color, "legend": None},
                },
            }
        ]
    band: list[Layer] = [
        {
            "data": {"name": "mean", "values": [dict(mean)]},
            "mark": {"type": "rect", "opacity": 0.18, "color": "$ink"},
            "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
        },
        {
            "data": {"name": "mean", "values": [dict(mean)]},
            "mark": {"type": "rule", "strokeDash": [5, 3], "color": "$ink"},
            "encoding": {"y": {"field": "value", "type": "quantitative"}},
        },
    ]
    wins, losses = (sum(row["kind"] == kind for row in rows) for kind in ("better", "worse"))
    text = (
        f"{first} against {second} by {about.metric}, question by question: {wins:,} better, {losses:,} worse, "
        f"{len(rows) - wins - losses:,} the same; mean {signed(mean['value'])}{_between(mean, signed)}."
    )
    return _figure(
        "deltas",
        f"{first} against {second}",
        About(about.metric, about.questions, about.convention, about.policy, "dashed: the mean; band: its interval"),
        {"layer": [*marks, *band, _zero("y")], "height": 240},
        rows,
        {"place": "place", "qid": "question", "delta": "difference"},
        text,
    )


def depth(rows: Rows, about: About, unit: str = "results") -> Figure:
    """Metrics against the number of results, or a budget of tokens or characters, looked at.

    Rows: `system`, `metric`, `k`, `value`; a panel for each metric.
    """
    systems = _distinct(rows, "system")
    title = {"results": "k: results looked at", "tokens": "budget in tokens", "chars": "budget in characters"}
    encoding = {
        "x": {**_x("k"), "scale": {"type": "log", "nice": False}, "title": title.get(unit, unit), "axis": _log_axis()},
        "y": {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": True}},
        "tooltip": _tips(system="system", metric="metric", k="k", value="mean"),
        **_by_system(systems),
    }
    metrics = _distinct(rows, "metric")
    ends = [_end(rows, metric, systems) for metric in metrics]
    return _figure(
        "depth",
        "How much is found, by how deep one looks",
        about,
        {**_panels("metric", metrics, {"layer": _line(encoding), "width": 220, "height": 200})},
        rows,
        {"system": "system", "metric": "metric", "k": unit if unit != "results" else "k", "value": "mean"},
        f"Means against depth for {_listed(systems)}: {_listed(ends)}.",
    )


def ecdf(rows: Rows, about: About) -> Figure:
    """The share of questions whose first hit, and whose last group, has come by each rank.

    Rows: `system`, `kind` (a panel each), `rank`, `share`.
    """
    systems = _distinct(rows, "system")
    encoding = {
        "x": {**_x("rank"), "scale": {"type": "log", "nice": False}, "title": "rank", "axis": _log_axis()},
        "y": {
            "field": "share",
            "type": "quantitative",
            "title": "share of questions",
            "scale": {"domain": [LOWEST, HIGHEST]},
            "axis": {"format": ".0%"},
        },
        "tooltip": _tips(system="system", kind="", rank="by rank", share="share"),
        **_by_system(systems),
    }
    kinds = _distinct(rows, "kind")
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    panel = {"layer": [{"mark": mark, "encoding": encoding}], "width": 330, "height": 200}
    reached = []
    for kind in kinds:
        for system in systems:
            shares = [row["share"] for row in rows if row["kind"] == kind and row["system"] == system]
            reached.append(f"{system} {kind} {fixed(max(shares, default=None), 2)}")
    return _figure(
        "ecdf",
        "By which rank it is found",
        about,
        _panels("kind", kinds, panel),
        rows,
        {"system": "system", "kind": "what", "rank": "rank", "share": "share of questions"},
        f"Shares of questions reached in the end: {_listed(reached)}.",
    )


def outcomes(rows: Rows, about: About, baseline: str) -> Figure:
    """How many questions each system answers better, as well as, and worse than the baseline.

    Rows: `system`, `outcome` (better, same, worse), `count`.
    """
    kinds = ["better", "same", "worse"]
    shared = {
        "y": {**_y("system"), "sort": None},
        "x": {"field": "count", "type": "quantitative", "stack": "zero", "title": "questions"},
        "order": {"field": "order", "type": "quantitative"},
    }
    layers: list[Layer] = [
        {
            "mark": {"type": "bar", "stroke": "$ground", "strokeWidth": 1},
            "encoding": {
                **shared,
                "color": {
                    **_of("outcome", kinds, ["$turn4", "$turn2", "$turn0"]),
                    "legend": {**_legend(f"than {baseline}"), "symbolType": "square"},
                },
                "tooltip": _tips(system="system", outcome="", count="questions"),
            },
        },
        {
            "transform": [{"filter": "datum.count > 0"}],
            "mark": {"type": "text", "align": "right", "dx": -4},
            "encoding": {
                **shared,
                "text": {"field": "count", "type": "quantitative", "format": ","},
                "color": {**_of("outcome", kinds, ["$onturn4", "$onturn2", "$onturn0"]), "legend": None},
            },
        },
    ]
    said = []
    for system in _distinct(rows, "system"):
        counts = {row["outcome"]: row["count"] for row in rows if row["system"] == system}
        said.append(f"{system} {counts.get('better', 0):,} better, {counts.get('worse', 0):,} worse")
    return _figure(
        "outcomes",
        f"Wins, ties and losses against {baseline}",
        about,
        {
            "transform": [{"calculate": "indexof(['better', 'same', 'worse'], datum.outcome)", "as": "order"}],
            "layer": layers,
            "height": {"step": STEP + 4},
            "resolve": {"scale": {"color": "independent"}},
        },
        rows,
        {"system": "system", "outcome": "outcome", "count": "questions"},
        f"Questions better and worse than {baseline} by {about.metric}: {_listed(said)}.",
    )


def slices(rows: Rows, about: About, *, delta: bool = False, domain: tuple[Any, Any] = (LOWEST, HIGHEST)) -> Figure:
    """The mean, or with `delta` the difference, of each system in each slice.

    Rows: `slice`, `system`, `value`, `queries`, `mark` (`*` where significant).
    """
    number = signed if delta else fixed
    said = [
        f"{row['system']} where {row['slice']} {number(row['value'])}" for row in rows if row.get("value") is not None
    ]
    return _figure(
        "slices",
        "Differences by slice" if delta else "Means by slice",
        about,
        _heat("slice", "value", "datum.text", delta=delta, domain=domain, counted=True),
        [{**row, "text": _short(row["value"], delta=delta) + row.get("mark", "")} for row in rows],
        {"slice": "slice", "system": "system", "value": "difference" if delta else "mean", "queries": "questions"},
        f"{'Differences' if delta else 'Means'} of {about.metric} by slice: {_listed(said)}.",
    )


# What the rank at which a group is met counts as.
RANKS = ("rank 1", "2 to 3", "4 to 10", "later", "not met")


def group_ranks(rows: Rows, about: About) -> Figure:
    """Which system meets which group, and at what rank.

    Rows: `group`, `system`, `rank` (None where it is not met).
    """
    filled = [{**row, "met": _rank_kind(row["rank"]), "text": str(row["rank"] or "✕")} for row in rows]
    shared = {
        "y": {**_y("group"), "sort": None},
        "x": {"field": "system", "type": "nominal", "sort": None, "title": None, "axis": _slanted()},
    }
    colors = ["$step5", "$step4", "$step3", "$step1", "$turn1"]
    inks = ["$on5", "$on4", "$on3", "$on1", "$onturn1"]
    layers: list[Layer] = [
        {
            "mark": {"type": "rect", "stroke": "$ground", "strokeWidth": 1},
            "encoding": {
                **shared,
                "color": {
                    **_of("met", list(RANKS), colors),
                    "legend": {**_legend("first hit"), "columns": 5, "symbolType": "square"},
                },
                "tooltip": _tips(group="group", system="system", text="rank"),
            },
        },
        {
            "mark": {"type": "text", "fontSize": 10},
            "encoding": {
                **shared,
                "text": {"field": "text", "type": "nominal"},
                "color": {**_of("met", list(RANKS), inks), "legend": None},
            },
        },
    ]
    groups, systems = _distinct(rows, "group"), _distinct(rows, "system")
    met = [f"{name} {sum(row['rank'] is not None for row in rows if row['system'] == name):,}" for name in systems]
    return _figure(
        "groups",
        "Which groups are met, and at what rank",
        about,
        {
            "layer": layers,
            "height": {"step": 18},
            "resolve": {"scale": {"color": "independent"}},
        },
        filled,
        {"group": "group", "system": "system", "rank": "rank of the first hit"},
        f"Of {len(groups):,} groups are met: {_listed(met)}.",
    )


def sweep(rows: Rows, about: About, parameters: Sequence[str]) -> Figure:
    """A metric over one parameter, as lines with intervals, or over two, as a heat map.

    Rows: `family`, `x`, `value`, `low`, `high`; with two parameters `x`, `y` and `value`.
    """
    best = max((row for row in rows if row.get("value") is not None), key=lambda row: row["value"], default=None)
    said = f"Means of {about.metric} over {' and '.join(parameters)}"
    if best is not None:
        place = " and ".join(f"{name} = {best[key]}" for name, key in zip(parameters, ("x", "y")))
        said += f"; the highest is {fixed(best['value'])}, where {place}"
    if len(parameters) > 1:
        body = _heat(
            "y", "value", "datum.text", column="x", titles=(parameters[1], parameters[0]), domain=None, digits=3
        )
        filled = [{**row, "text": _short(row["value"], digits=3)} for row in rows]
        columns = {"x": parameters[0], "y": parameters[1], "value": "mean"}
        title = f"{about.metric} by {parameters[0]} and {parameters[1]}"
        return _figure("sweep", title, about, body, filled, columns, f"{said}.")
    numeric = all(isinstance(row["x"], (int, float)) and not isinstance(row["x"], bool) for row in rows)
    place_of: Layer = {"field": "x", "type": "quantitative" if numeric else "ordinal", "title": parameters[0]}
    place_of |= (
        {"scale": {"zero": False, "nice": False, "padding": 24}}
        if numeric
        else {"sort": None, "axis": {"labelAngle": 0}}
    )
    families = _distinct(rows, "family")
    color = _by_system(families, "family")
    value = {"type": "quantitative", "scale": {"zero": False}, "title": about.metric}
    layers = [
        {
            "mark": {"type": "rule", "opacity": 0.6},
            "encoding": {"x": place_of, "y": {**value, "field": "low"}, "y2": {"field": "high"}, **_color_only(color)},
        },
        {"mark": {"type": "line"}, "encoding": {"x": place_of, "y": {**value, "field": "value"}, **color}},
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {
                "x": place_of,
                "y": {**value, "field": "value"},
                **_color_only(color),
                "tooltip": _tips(family="", x=parameters[0], value="mean", low="low", high="high"),
            },
        },
    ]
    columns = {"family": "system", "x": parameters[0], "value": "mean", "low": "low", "high": "high"}
    title = f"{about.metric} by {parameters[0]}"
    return _figure("sweep", title, about, {"layer": layers, "height": 200}, rows, columns, f"{said}.")


def latency(rows: Rows, about: About, unit: str = "median ms a question") -> Figure:
    """Quality against latency; the front holds what nothing beats in both.

    Rows: `system`, `latency`, `value`, `low`, `high`, `front` (yes or no); those with a `label` are named in it.
    """
    x = {
        "field": "latency",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 24},
        "title": unit,
        "axis": {**_log_axis(), "format": "~g"},
    }
    y = {"type": "quantitative", "scale": {"zero": False}, "title": about.metric}
    color = _of("front", ["yes", "no"], ["$better", "$same"])
    shape = _of("front", ["yes", "no"], ["circle", "square"])
    legend = _legend("on the Pareto front")
    layers: list[Layer] = [
        {
            "transform": [{"filter": "datum.front === 'yes'"}],
            "mark": {"type": "line", "interpolate": "step-after", "color": "$better", "strokeDash": [4, 3]},
            "encoding": {"x": x, "y": {**y, "field": "value"}},
        },
        {
            "mark": {"type": "rule", "opacity": 0.6},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": color},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "x": x,
                "y": {**y, "field": "value"},
                "color": {**color, "legend": legend},
                "shape": {**shape, "legend": legend},
                "tooltip": _tips(system="", latency=unit, value="mean"),
            },
        },
        {
            "transform": [{"filter": "datum.label"}],
            "mark": {"type": "text", "align": "center", "dy": -10, "style": "guide-label", "limit": 160},
            "encoding": {"x": x, "y": {**y, "field": "value"}, "text": {"field": "label", "type": "nominal"}},
        },
    ]
    front = [f"{row['system']} ({fixed(row['value'])}, {row['latency']:.3g})" for row in rows if row["front"] == "yes"]
    return _figure(
        "latency",
        "Quality against latency",
        about,
        {"layer": layers, "height": 280},
        rows,
        {"system": "system", "latency": unit, "value": "mean", "low": "low", "high": "high", "front": "on the front"},
        f"On the Pareto front of {about.metric} and latency: {_listed(front)}.",
    )


# Each figure by name, and what it shows.
FIGURES: dict[str, str] = {
    "forest": "means, or deltas against the baseline, with their intervals",
    "deltas": "the delta of every question, sorted, with the mean and its interval",
    "depth": "recall, complete and ndcg against k, or against a budget",
    "ecdf": "by which rank the first hit, and all groups, have come",
    "outcomes": "wins, ties and losses against the baseline",
    "slices": "a heat map of slices and systems",
    "groups": "a heat map of groups and systems: what is met, and at what rank",
    "sweep": "a metric over one swept option, or two",
    "latency": "quality against latency, with the Pareto front",
}


def figure_named(name: str, known: Mapping[str, Callable[[], Figure]]) -> Figure:
    """One of some figures; raises `ConfigError` for a name that is none of them, with near ones."""
    if name in known:
        return known[name]()
    if name in FIGURES:
        raise ConfigError(f"figure {name!r} cannot be drawn of this; there are {', '.join(known)}")
    raise ConfigError(f"figure {name!r} is not known{near_names(name, FIGURES)}; figures are {', '.join(FIGURES)}")


def _figure(
    name: str, title: str, about: About, body: Layer, rows: Rows, columns: Mapping[str, str], text: str
) -> Figure:
    lines = about.lines
    whole: Layer = {
        "title": {"text": title, "subtitle": lines},
        "description": f"{text} {'. '.join(lines)}.",
        "data": {"name": "rows", "values": [dict(row) for row in rows]},
        **({} if "facet" in body else {"width": WIDTH, "autosize": {"type": "pad", "contains": "padding"}}),
        **body,
    }
    return Figure(name, whole, text, *table_of(rows, columns))


def _x(field: str) -> Layer:
    return {"field": field, "type": "quantitative", "scale": {"zero": False}}


def _y(field: str) -> Layer:
    return {"field": field, "type": "nominal", "title": None}


def _zero(axis: str) -> Layer:
    """The line of no difference."""
    return {
        "data": {"name": "zero", "values": [{"zero": 0}]},
        "mark": {"type": "rule", "color": "$soft"},
        "encoding": {axis: {"field": "zero", "type": "quantitative"}},
    }


def _of(field: str, values: list[str], colors: list[str]) -> Layer:
    return {"field": field, "type": "nominal", "scale": {"domain": values, "range": colors}}


def _legend(title: str) -> Layer:
    return {"title": title, "orient": "bottom", "direction": "horizontal"}


def _tips(**titles: str) -> list[Layer]:
    """What is shown of a mark that is pointed at."""
    numbers = {"value", "low", "high", "delta", "latency", "share"}
    return [
        {
            "field": field,
            "title": title or field,
            **({"type": "quantitative", "format": ".4f"} if field in numbers else {"type": "nominal"}),
        }
        for field, title in titles.items()
    ]


def _slanted() -> Layer:
    return {"labelAngle": -35, "labelLimit": 180, "orient": "top"}


def _log_axis() -> Layer:
    return {"tickCount": 6, "format": "~s", "grid": False}


def _by_system(systems: Sequence[str], field: str = "system") -> Layer:
    """Color and dash of each system; beyond the first few all look alike."""
    count = len(systems)
    colors = [f"$system{place}" if place < COLORS else "$same" for place in range(count)]
    dashes = [list(DASHES[place]) if place < COLORS else [1, 2] for place in range(count)]
    legend = _legend("") if count > 1 else None
    if legend is not None:
        legend |= {"title": None, "values": list(systems[:COLORS])}
    return {
        "color": {**_of(field, list(systems), colors), "legend": legend},
        "strokeDash": {
            "field": field,
            "type": "nominal",
            "scale": {"domain": list(systems), "range": dashes},
            "legend": legend,
        },
    }


def _color_only(encoding: Layer) -> Layer:
    """The color of a layer whose legend another layer has."""
    color = encoding["color"]
    return {"color": {key: value for key, value in color.items() if key != "legend" or value is None}}


def _line(encoding: Layer) -> list[Layer]:
    points = {**{key: value for key, value in encoding.items() if key != "strokeDash"}, **_color_only(encoding)}
    return [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": encoding},
        {"mark": {"type": "point", "filled": True, "size": 25, "opacity": 1}, "encoding": points},
    ]


def _panels(field: str, values: list[str], panel: Layer) -> Layer:
    return {
        "facet": {"field": field, "type": "nominal", "title": None, "sort": values},
        "columns": 3,
        "spec": panel,
    }


def _heat(
    row: str,
    value: str,
    text: str,
    *,
    column: str = "system",
    titles: tuple[str | None, str | None] = (None, None),
    delta: bool = False,
    domain: tuple[Any, Any] | None = (LOWEST, HIGHEST),
    counted: bool = False,
    digits: int = 2,
) -> Layer:
    """A heat map of rows and columns, in steps of color with the figures written in them."""
    kind = "turn" if delta else "step"
    places = range(5 if delta else 6)
    scale: Layer = {"type": "quantize", "range": [f"${kind}{place}" for place in places]}
    inks: Layer = {"type": "quantize", "range": [f"$on{kind if delta else ''}{place}" for place in places]}
    if domain is not None:
        scale["domain"] = inks["domain"] = list(domain)
    shared: Layer = {
        "y": {"field": row, "type": "ordinal", "sort": None, "title": titles[0]},
        "x": {"field": column, "type": "ordinal", "sort": None, "title": titles[1], "axis": _slanted()},
    }
    if titles != (None, None):
        shared["x"]["axis"] = {"labelAngle": 0, "orient": "top"}
    tips = _tips(**{row: titles[0] or row, column: titles[1] or column, value: "difference" if delta else "mean"})
    return {
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "$ground", "strokeWidth": 1},
                "encoding": {
                    **shared,
                    "color": {
                        "field": value,
                        "type": "quantitative",
                        "scale": scale,
                        "legend": {"title": None, "orient": "bottom", "format": f"{'+' if delta else ''}.{digits}f"},
                    },
                    "tooltip": [*tips, *(_tips(queries="questions") if counted else [])],
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    **shared,
                    "text": {"field": text.removeprefix("datum."), "type": "nominal"},
                    "color": {"field": value, "type": "quantitative", "scale": inks, "legend": None},
                },
            },
        ],
        "height": {"step": 26},
        "resolve": {"scale": {"color": "independent"}},
    }


def _rank_kind(rank: int | None) -> str:
    if rank is None:
        return RANKS[4]
    return RANKS[0] if rank == 1 else RANKS[1] if rank <= 3 else RANKS[2] if rank <= 10 else RANKS[3]


def _short(value: float | None, *, delta: bool = False, digits: int = 2) -> str:
    return (signed if delta else fixed)(value, digits)


def _between(row: Mapping[str, Any], number: Callable[[float | None], str]) -> str:
    return "" if row.get("low") is None else f" ({number(row['low'])} to {number(row['high'])})"


def _distinct(rows: Rows, field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def _end(rows: Rows, metric: str, systems: Sequence[str]) -> str:
    """What the best system reaches by a metric in the end."""
    last = {row["system"]: row for row in rows if row["metric"] == metric}
    best = max(last.values(), key=lambda row: -1.0 if row["value"] is None else row["value"], default=None)
    if best is None:
        return metric
    name = f"{best['system']} " if len(systems) > 1 else ""
    return f"{metric} {name}{fixed(best['value'])} at {best['k']:,}"


def _listed(texts: Sequence[str], most: int = 8) -> str:
    kept = list(texts[:most])
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(kept) + more if kept else "nothing"
