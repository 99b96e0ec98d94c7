"""Draw figures from plain tables, with one function per figure.

Each table is a list of dicts, whose keys are documented in the function that draws it. Strings that begin with `$` are
colors defined in `themes.THEMES`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from groupgt.errors import ConfigError, near_names
from groupgt.render import encodings as draw
from groupgt.render.drawing import Drawable, Figure
from groupgt.render.encodings import About, Layer, Rows
from groupgt.render.tables import count_text, fixed, shortlist, signed
from groupgt.render.themes import RANK_ENDS, RANKS

# More bars than this are drawn as one area.
MOST_BARS = 600
# The content of each figure, by name.
FIGURES: dict[str, str] = {
    "means": "means with confidence intervals",
    "differences": "differences from the baseline with confidence intervals",
    "queries": "per-query differences, sorted, with mean and CI",
    "scatter": "each query's values in two systems, with labels for the largest differences",
    "depth": "recall, complete and ndcg against k, or against a budget",
    "iprec": "interpolated precision at eleven points of recall",
    "ecdf": "fraction of queries with a hit, and fraction of complete queries, by rank",
    "outcomes": "wins, ties and losses against the baseline",
    "slices": "a heat map of slices and systems",
    "groups": "heat map of groups × systems: rank of the first hit",
    "sweep": "a metric against one or two swept options",
    "latency": "quality against latency, with the Pareto front",
    "correlation": "means of systems on one side against those on the other",
    "trials": "each query's values over the trials of a system, noisiest first",
    "stages": "the groups that each stage of a pipeline covers",
    "thresholds": "unanswerable queries without results, and recall, by score threshold",
    "power": "the power to detect a difference, against the number of queries",
}


def forest(rows: Rows, about: About, *, delta: bool = False, title: str = "") -> Figure:
    """Draw means, or differences if `delta` is set, each with its CI.

    Rows: `name`, `value`, `low`, `high` (None without a CI), and `kind`: better, worse, not significant or baseline.
    Omit `kind` if systems are not compared with a baseline.
    """
    kinds = ["better", "worse", "not significant", *([] if delta else ["baseline"])]
    color = draw.colored("kind", kinds, ["$better", "$worse", "$same", "$ink"][: len(kinds)])
    shape = draw.colored("kind", kinds, ["circle", "diamond", "square", "triangle-up"][: len(kinds)])
    axis = draw.down("name", sort=None)
    occurring = [kind for kind in kinds if any(row.get("kind") == kind for row in rows)]
    key = {**draw.legend("" if delta else "against the baseline"), "values": occurring}
    # A kind outside the domain of the scales would not be drawn at all.
    colors = {"color": color} if occurring else {}
    marks = {"color": {**color, "legend": key}, "shape": {**shape, "legend": key}} if occurring else {}
    one_color = {} if occurring else {"color": "$ink"}
    label = f"{'difference in ' if delta else ''}{about.metric}"
    value = "difference" if delta else "mean"
    ends = {"y": axis, "x": draw.across("low", title=label), "x2": {"field": "high"}, **colors}
    middle = {"y": axis, "x": draw.across("value", title=label, axis={"tickCount": 5, "labelOverlap": True})}
    tooltip = draw.tips(name="", value=value, low="low", high="high")
    layers = [
        *([draw.zero_line("x")] if delta else []),
        draw.layer({"type": "rule", "strokeWidth": 2, **one_color}, ends),
        draw.layer({**draw.points(70), **one_color}, {**middle, **marks, "tooltip": tooltip}),
    ]
    number = signed if delta else fixed
    values = [f"{row['name']} {number(row['value'])}{draw.between(row, number)}" for row in rows]
    name, what = ("differences", "Differences") if delta else ("means", "Means")
    text = f"{what} of {about.metric} with {about.level}: {shortlist(values)}."
    body: Layer = {"layer": layers, "height": {"step": draw.STEP}}
    columns = {"name": "system", "value": value, "low": "low", "high": "high", "kind": "kind"}
    return draw.figure_of(name, f"{title or what} with {about.level}", about, body, rows, columns, text)


def deltas(
    rows: Rows, about: About, first: str, second: str, mean: Mapping[str, Any], *, bars: bool | None = None
) -> Figure:
    """Draw per-query differences from largest gain to largest loss, with the mean and its CI.

    Rows, sorted: `qid`, `place` (from 1), `delta`, and `kind`: better, worse or same. `mean` contains `value`, `low`,
    `high`. Queries are drawn as `bars`, or as a single area if there are too many to tell apart.
    """
    color = {**draw.colored("kind", ["better", "worse", "same"], ["$better", "$worse", "$same"]), "legend": None}
    value = draw.numeric("delta", title=f"difference in {about.metric}")
    scale, axis = {"nice": False, "zero": False}, {"grid": False, "tickMinStep": 1}
    place = draw.numeric("place", scale=scale, title="queries, largest gain first", axis=axis)
    marks = draw.layer({"type": "area", "interpolate": "step-after"}, {"x": place, "y": value, "color": color})
    if len(rows) <= MOST_BARS if bars is None else bars:
        ends = {"from": "datum.place - 0.5", "to": "datum.place + 0.5", "zero": "0"}
        sides = {"x": {**place, "field": "from"}, "x2": {"field": "to"}, "y": value, "y2": {"field": "zero"}}
        encoding = {**sides, "color": color, "tooltip": draw.tips(qid="query", delta="difference")}
        bar = draw.layer({"type": "rect", "stroke": "$ground", "strokeWidth": 0.5}, encoding)
        marks = {"transform": [{"calculate": text, "as": name} for name, text in ends.items()], **bar}
    limits = {"y": draw.numeric("low"), "y2": {"field": "high"}}
    band = draw.layer({"type": "rect", "opacity": 0.18, "color": "$ink"}, limits)
    line = draw.layer({"type": "rule", "strokeDash": [5, 3], "color": "$ink"}, {"y": draw.numeric("value")})
    of_mean = [{"data": {"name": "mean", "values": [dict(mean)]}, **each} for each in (band, line)]
    wins, losses = (sum(row["kind"] == kind for row in rows) for kind in ("better", "worse"))
    shown = f"{signed(mean['value'])}{draw.between(mean, signed)}"
    text = (
        f"{first} against {second} by {about.metric}, query by query: {wins:,} better, {losses:,} worse, "
        f"{len(rows) - wins - losses:,} the same; mean {shown}, {about.level}."
    )
    title = f"{first} against {second}"
    body: Layer = {"layer": [marks, *of_mean, draw.zero_line("y")], "height": 240}
    columns = {"place": "place", "qid": "query", "delta": "difference"}
    about = replace(about, note=f"dashed: mean; band: {about.level}")
    return draw.figure_of("queries", title, about, body, rows, columns, text)


def scatter(rows: Rows, about: About, first: str, second: str) -> Figure:
    """Draw each query's values in one system against its values in another. Equal values lie on the diagonal.

    Rows, one for each place, furthest apart first: `x` (second system), `y` (first system), `times` (queries at this
    place), `qids`, `kind` (better, worse or same) and `name` (empty for no name). Names are placed on the side with
    more room.
    """
    values = [row[axis] for row in rows for axis in "xy"]
    ends = [min(values, default=0.0), max(values, default=1.0)]
    scale = {"zero": False, "nice": False, "padding": 16}
    place = {"x": draw.numeric("x", title=second, scale=scale), "y": draw.numeric("y", title=first, scale=scale)}
    color = {**draw.colored("kind", ["better", "worse", "same"], ["$better", "$worse", "$same"]), "legend": None}
    times = sorted({row["times"] for row in rows})
    few_times = times if len(times) <= 4 else [times[0], times[len(times) // 2], times[-1]]
    key = {**draw.legend("queries"), "values": few_times}
    size = draw.numeric("times", scale={"zero": True, "range": [0, 300]}, legend=key if times[1:] else None)
    columns = {"qids": "queries", "x": second, "y": first, "times": "number"}
    middle = sum(ends) / 2
    marks = {**place, "color": color, "size": size, "tooltip": draw.tips(**columns)}
    sides = [draw.layer({**draw.points(60), "opacity": 0.8}, marks)]
    for side, shift, where in (("left", 10, f"datum.x < {middle}"), ("right", -10, f"datum.x >= {middle}")):
        mark = {"type": "text", "align": side, "dx": shift, "color": "$ink"}
        sides.append(draw.layer(mark, {**place, "text": draw.nominal("name")}, f"datum.name && {where}"))
    line = draw.layer({"type": "line", "color": "$soft", "strokeDash": [5, 3]}, place)
    diagonal = {"data": {"name": "diagonal", "values": [{"x": end, "y": end} for end in ends]}, **line}
    counts = {kind: sum(row["times"] for row in rows if row["kind"] == kind) for kind in ("better", "worse", "same")}
    named = shortlist([row["name"] for row in rows if row["name"]])
    title = f"{first} against {second}"
    body: Layer = {"layer": [diagonal, *sides], "width": 330, "height": 330}
    text = (
        f"{about.metric} of {first} against {second}, query by query: {counts['better']:,} better, "
        f"{counts['worse']:,} worse, {counts['same']:,} the same{f'; furthest apart: {named}' if named else ''}."
    )
    return draw.figure_of("scatter", title, replace(about, note="dashed: equal values"), body, rows, columns, text)


def depth(rows: Rows, about: About, unit: str = "results", named: Sequence[str] = ()) -> Figure:
    """Draw metrics against the number of results, or against a budget of tokens, characters or search calls.

    Rows: `system`, `metric`, `k`, `value`. Each metric has a panel. With many systems, only `named` systems stand out.
    """
    systems = draw.distinct(rows, "system")
    title = {
        "results": "k (cutoff)",
        "tokens": "budget in tokens",
        "chars": "budget in characters",
        "calls": "search calls",
    }
    encoding = {
        "x": draw.logarithmic("k", title.get(unit, unit)),
        "y": draw.numeric("value", title=None, scale={"zero": True}),
        "tooltip": draw.tips(system="system", metric="metric", k="k", value="mean"),
    }
    layers, rows, about = _lines(rows, about, encoding, named, "metric", {"type": "line"})
    metrics = draw.distinct(rows, "metric")
    ends = [draw.last_means(rows, metric, systems) for metric in metrics]
    body = draw.panels("metric", metrics, {"layer": layers, "width": 220, "height": 200})
    columns = {"system": "system", "metric": "metric", "k": unit if unit != "results" else "k", "value": "mean"}
    text = f"Means against depth for {shortlist(systems)}: {shortlist(ends)}."
    return draw.figure_of("depth", "Metrics by cutoff", about, body, rows, columns, text)


def _lines(
    rows: Rows, about: About, encoding: Layer, named: Sequence[str], panel: str, mark: Layer
) -> tuple[list[Layer], Rows, About]:
    """Return layers, rows and a note for one line per system. With many systems, only `named` systems have labels."""
    systems = draw.distinct(rows, "system")
    chosen = [name for name in systems if name in named]
    if len(systems) <= draw.FEW_LINES or not chosen:
        encoding = {**encoding, **draw.by_system(systems)}
        steps = [draw.layer({**mark, "strokeWidth": 2}, encoding)]
        return steps if "interpolate" in mark else draw.line_layers(encoding), rows, about
    value = encoding["y"]["field"]
    grey = f"grey: {len(systems) - len(chosen):,} others"
    about = replace(about, note=f"{about.note}, {grey}" if about.note else grey)
    return draw.named_lines(chosen, encoding, mark), draw.with_labels(rows, chosen, panel, value), about


def precision_recall(rows: Rows, about: About, named: Sequence[str] = ()) -> Figure:
    """Draw interpolated precision against recall at the eleven points 0, 0.1, … 1.

    Rows: `system`, `recall`, `precision`. With many systems, only the `named` systems stand out.
    """
    systems, names = draw.distinct(rows, "system"), {"x": "recall", "y": "precision"}
    encoding = {
        **{axis: draw.numeric(name, title=name, scale={"domain": [0, 1]}) for axis, name in names.items()},
        "tooltip": draw.tips(system="system", recall="recall", precision="precision"),
    }
    in_one = [{**row, "panel": ""} for row in rows]
    layers, rows, about = _lines(in_one, about, encoding, named, "panel", {"type": "line"})
    halves = {row["system"]: row["precision"] for row in rows if row["recall"] == 0.5}
    ends = [f"{name} {fixed(halves[name])}" for name in systems]
    body: Layer = {"layer": layers, "width": 330, "height": 250}
    columns = {"system": "system", "recall": "recall", "precision": "precision"}
    text = f"Interpolated precision at a recall of 0.5: {shortlist(ends)}."
    return draw.figure_of("iprec", "Interpolated precision at each recall", about, body, rows, columns, text)


def ecdf(rows: Rows, about: About, named: Sequence[str] = ()) -> Figure:
    """Draw, up to each rank, the share of queries with a hit and the share with all groups covered.

    Rows: `system`, `kind` (one panel each), `rank`, `share`. With many systems, only the `named` systems stand out.
    """
    systems = draw.distinct(rows, "system")
    encoding = {
        "x": draw.logarithmic("rank", "rank"),
        "y": {"field": "share", **draw.share_axis("share of queries")},
        "tooltip": draw.tips(system="system", kind="", rank="by rank", share="share"),
    }
    kinds = draw.distinct(rows, "kind")
    mark = {"type": "line", "interpolate": "step-after"}
    layers, rows, about = _lines(rows, about, encoding, named, "kind", mark)
    panel = {"layer": layers, "width": 330, "height": 200}
    # Shares grow with the rank.
    last = {(row["kind"], row["system"]): row["share"] for row in rows}
    reached = [f"{name} {kind} {fixed(last.get((kind, name)), 2)}" for kind in kinds for name in systems]
    body = draw.panels("kind", kinds, panel)
    columns = {"system": "system", "kind": "what", "rank": "rank", "share": "share of queries"}
    text = f"Fraction of queries by the last rank: {shortlist(reached)}."
    return draw.figure_of("ecdf", "Ranks of first hit and completion", about, body, rows, columns, text)


def outcomes(rows: Rows, about: About, baseline: str) -> Figure:
    """Draw wins, ties and losses, from rows of `system`, `outcome` (better, same, worse) and `count`."""
    kinds = {"better": "turn4", "same": "turn2", "worse": "turn0"}
    x, key = {"title": "queries", "scale": {"nice": False}}, {**draw.legend(f"than {baseline}"), "symbolType": "square"}
    tooltip = draw.tips(system="system", outcome="", count="queries")
    body = draw.stacked_bars(draw.down("system"), x, "outcome", kinds, key, tooltip, draw.STEP + 4)
    body["layer"][0]["mark"] |= {"stroke": "$ground", "strokeWidth": 1}
    counts_by_system = []
    for system in draw.distinct(rows, "system"):
        counts = {row["outcome"]: row["count"] for row in rows if row["system"] == system}
        counts_by_system.append(f"{system} {counts.get('better', 0):,} better, {counts.get('worse', 0):,} worse")
    spec: Layer = {"transform": [{"calculate": f"indexof({list(kinds)}, datum.outcome)", "as": "order"}], **body}
    columns = {"system": "system", "outcome": "outcome", "count": "queries"}
    text = f"Queries better and worse than {baseline} by {about.metric}: {shortlist(counts_by_system)}."
    return draw.figure_of("outcomes", f"Wins, ties and losses against {baseline}", about, spec, rows, columns, text)


def slices(rows: Rows, about: About, domain: tuple[Any, Any] | None = None) -> Figure:
    """Draw the mean of each system in each slice, from rows of `slice`, `system`, `value` and `queries`."""
    values = [f"{row['system']} where {row['slice']} {fixed(row['value'])}" for row in rows if row["value"] is not None]
    body = draw.heat_map("slice", "system", domain or draw.span_of(rows), counted=True)
    filled = [{**row, "text": fixed(row["value"], 2)} for row in rows]
    columns = {"slice": "slice", "system": "system", "value": "mean", "queries": "queries"}
    text = f"Means of {about.metric} by slice: {shortlist(values)}."
    return draw.figure_of("slices", "Means by slice", about, body, filled, columns, text)


def group_ranks(rows: Rows, about: About, covered: Mapping[str, float]) -> Figure:
    """Draw the rank at which each system covers each group (or None), from rows of `group`, `system` and `rank`.

    `covered` has the number of groups that each system covers, which may be a mean over trials.
    """
    classes = [RANKS[-1 if row["rank"] is None else bisect_left(RANK_ENDS, row["rank"])] for row in rows]
    filled = [{**row, "met": met, "text": str(row["rank"] or "✕")} for row, met in zip(rows, classes)]
    shared = {"y": draw.down("group", sort=None), "x": draw.nominal("system", sort=None, title=None, axis=draw.SLANTED)}
    colors = ["$step5", "$step4", "$step3", "$step1", "$turn1"]
    inks = ["$on5", "$on4", "$on3", "$on1", "$onturn1"]
    key = {**draw.legend("first hit"), "columns": 5, "symbolType": "square"}
    color, ink = ({**draw.colored("met", list(RANKS), each), "legend": key} for each in (colors, inks))
    layers = draw.tiles(shared, color, ink, 10, draw.tips(group="group", system="system", text="rank"))
    groups, counts = draw.distinct(rows, "group"), [f"{name} {count_text(count)}" for name, count in covered.items()]
    body: Layer = {"layer": layers, "height": {"step": 18}, **draw.TWO_COLORS}
    columns = {"group": "group", "system": "system", "rank": "rank of the first hit"}
    text = f"Groups covered, of {len(groups):,}: {shortlist(counts)}."
    return draw.figure_of("groups", "Covered groups by rank of the first hit", about, body, filled, columns, text)


def trials(rows: Rows, about: About, floors: Sequence[str]) -> Figure:
    """Draw the values of queries over the trials of each system, noisiest first. `floors` describe the noise of means.

    Rows: `query`, `system`, `value`, `times` (the number of trials with this value).
    """
    systems = draw.distinct(rows, "system")
    encoding = {
        "y": draw.down("query", sort=None),
        "x": draw.across("value", title=about.metric),
        "size": draw.numeric("times", scale={"zero": True, "range": [0, 160]}, legend=draw.legend("trials")),
        "tooltip": draw.tips(query="query", system="system", value="value", times="trials"),
    }
    body = draw.panels(
        "system", systems, {"layer": [draw.layer({**draw.points(60), "color": "$ink"}, encoding)], "width": 220}
    )
    columns = {"system": "system", "query": "query", "value": "value", "times": "trials"}
    text = f"Values of {about.metric} over trials: {shortlist(floors)}."
    return draw.figure_of("trials", "Values over trials, noisiest queries first", about, body, rows, columns, text)


def check_figure(name: str, also: Sequence[str] = ()) -> None:
    """Raise `ConfigError` for an unknown figure, and suggest similar names. `also` lists further valid names."""
    names = [*FIGURES, *(each for each in also if each not in FIGURES)]
    if name not in names:
        raise ConfigError(f"unknown figure {name!r}{near_names(name, names)}; figures: {', '.join(names)}")


def figure_named(name: str, figures: Drawable, needs: str = "") -> Figure:
    """Draw the figure with this name, or raise `ConfigError`. `needs` explains what unavailable figures require."""
    if name in figures:
        return figures[name]()
    check_figure(name, list(figures))
    raise ConfigError(f"figure {name!r} is not available for this result; available: {', '.join(figures)}{needs}")
