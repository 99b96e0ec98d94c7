"""The tables of the page that a comparison fills: any two systems, slices, headroom, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from groupgt.comparison import pictures
from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.pictures import Differences, interval
from groupgt.comparison.verdict import verdict
from groupgt.evaluation.report import dataset_of as evaluated
from groupgt.evaluation.report import template
from groupgt.evaluation.systems import known
from groupgt.render import figures
from groupgt.render.page import data
from groupgt.render.tables import counted


def dataset_of(found: Differences, name: str) -> data.Dataset:
    """The tables of one data set, with what its systems are against one another."""
    names = found.systems.names
    dataset = evaluated(found.systems, name)
    dataset["tests"] = _tests(found)
    dataset["verdict"] = list(verdict(found))
    if len(names) > 1:
        dataset["baseline"] = names.index(found.table.baseline)
        dataset["contrasts"] = list(_contrasts(found))
        dataset["headroom"] = _headroom(found)
        dataset["drawings"] |= _drawings(found)
    return dataset


def _contrasts(found: Differences) -> Iterator[data.Contrast]:
    """All differences: against the baseline as the tables have them, then of all others, then within slices."""
    table = found.table
    for row in table.rows:
        if row.against is not None:
            yield _contrast(found, (row.system, table.baseline, row.metric), row.against)
    for key, each in found.pairs.items():
        yield _contrast(found, key, each)
    places: dict[tuple[str, str], int] = {}
    if found.systems.evaluations:
        places = {(part["by"], part["value"]): place for place, part in enumerate(found.systems.first.slices)}
    for part in table.slices:
        for row in part.rows:
            if row.against is not None:
                own = _contrast(found, (row.system, table.baseline, row.metric), row.against)
                yield {**own, "within": places[part.by, part.value]}
    for within, pairs in found.within():
        for key, each in pairs.items():
            yield {**_contrast(found, key, each), "within": within}


def _contrast(found: Differences, key: tuple[str, str, str], each: Contrast) -> data.Contrast:
    first, second, text = key
    names, metrics = found.systems.names, list(found.systems.metrics)
    return {
        "first": names.index(first),
        "second": names.index(second),
        "metric": metrics.index(text),
        "delta": known(each.delta),
        "interval": interval(each.delta_interval),
        "pairs": each.pairs,
        "wins": each.wins,
        "ties": each.ties,
        "losses": each.losses,
        "raw": known(each.raw_p_value),
        "p": known(each.p_value),
        "effect": known(each.effect_size),
        "significant": bool(each.p_value <= found.table.settings.alpha),
    }


def _tests(found: Differences) -> list[str]:
    """How differences were tested, as foot of the tables."""
    settings = found.table.settings
    intervals = f"{100 * settings.intervals:g} % bootstrap intervals"
    if len(found.systems.names) < 2:
        return [intervals]
    kind = "not corrected" if settings.correction == "none" else f"corrected ({settings.correction})"
    told = [
        f"{settings.described}; significant at alpha {settings.alpha:g}; {intervals}",
        f"p against the baseline {kind} over {counted(comparisons(found.table.rows), 'comparison')}",
    ]
    if found.pairs:
        told.append(f"p of other pairs {kind} over {counted(len(found.pairs), 'comparison')}")
    return told


def _headroom(found: Differences) -> list[list[Any]]:
    """For each metric the best system, its mean, and what the best choice for each question would reach."""
    systems = found.systems
    return [
        [systems.metrics[each.metric].short(systems.convention), each.best, each.mean, each.per_query, each.queries]
        for each in found.table.headroom
    ]


def _drawings(found: Differences) -> dict[str, data.Drawing]:
    """Templates of the figures of differences."""
    label, baseline = found.systems.label, found.table.baseline
    about, mean = found.systems.about(label), {"value": None, "low": None, "high": None}
    sizes = {f"difference in {label}": "$label"}
    return {
        "forest": template(pictures.forest(found), {label: "$label"}),
        "differences": template(pictures.differences(found), sizes),
        "outcomes": template(pictures.outcomes(found), {f"than {baseline}": "$label"}),
        "deltas": template(figures.deltas([], about, "", "", mean, bars=True), sizes),
        "deltas many": template(figures.deltas([], about, "", "", mean, bars=False), sizes),
    }
