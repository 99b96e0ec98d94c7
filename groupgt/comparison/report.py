"""The tables of the page that a comparison fills: any two systems, slices, headroom, and what is to be said of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from groupgt.comparison import pictures
from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.pictures import Differences, interval
from groupgt.comparison.tests import SLACK
from groupgt.evaluation.report import dataset_of as evaluated
from groupgt.evaluation.report import template
from groupgt.evaluation.systems import known
from groupgt.render import figures
from groupgt.render.page import data
from groupgt.render.tables import counted, p_text, signed

NO_BREAK = "\u00a0"
# Names that a sentence lists.
NAMED = 3


def dataset_of(found: Differences, name: str) -> data.Dataset:
    """The tables of one data set, with what its systems are against one another."""
    names = found.systems.names
    dataset = evaluated(found.systems, name)
    dataset["tests"] = _tests(found)
    dataset["verdict"] += [*_leads(found), *_losses(found), *_doubts(found)]
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


def _leads(found: Differences) -> Iterator[data.Sentence]:
    """By how much the best leads the baseline and the next best, and whether that is real."""
    systems, baseline = found.systems, found.table.baseline
    best = systems.best
    if best is None or len(systems.names) < 2:
        return
    if best == baseline:
        yield {"kind": "same", "parts": ["It is the baseline: no other system is better."]}
    elif (each := found.between(best, baseline)) is not None:
        over = comparisons(found.table.rows) if found.is_compared else len(found.pairs)
        yield _lead(found, "the baseline ", baseline, each, over)
    means = {name: mean for name in systems.names if (mean := systems.mean(name)) is not None}
    others = [name for name, mean in means.items() if name not in (best, baseline) and mean != means[best]]
    if others:
        choose = max if systems.higher else min
        following = choose(others, key=means.__getitem__)
        if (each := found.between(best, following)) is not None:
            over = comparisons(found.table.rows) if best == baseline and found.is_compared else len(found.pairs)
            yield _lead(found, "the next best, ", following, each, over, ",")


def _lead(found: Differences, who: str, name: str, each: Contrast, over: int, comma: str = "") -> data.Sentence:
    settings = found.table.settings
    real = each.p_value <= settings.alpha
    low, high = each.delta_interval
    between = "" if math.isnan(low) else f" (interval {signed(low)} to {signed(high)})"
    sure, doubt = (" significantly, by", "") if real else (" by", ", which may be chance")
    corrected = settings.correction != "none" and over > 1
    note = f" after correction for {counted(over, 'comparison')} ({settings.correction})" if corrected else ""
    counts = f"better on {counted(each.wins, 'question')}, worse on {each.losses:,}"
    chance = p_text(each.p_value).replace(" ", NO_BREAK)
    said = f"{comma}{sure} {signed(each.delta)}{between}{doubt}: {chance}{note}; {counts}."
    return {"kind": "gain" if real else "same", "parts": [f"It leads {who}", name, said]}


def _losses(found: Differences) -> Iterator[data.Sentence]:
    """On what the best loses to the baseline: the slice in which it loses most."""
    best, baseline, primary = found.systems.best, found.table.baseline, found.systems.primary
    if best is None or best == baseline:
        return
    lost = []
    for part in found.table.slices:
        row = part.index.get((best, primary))
        gain = math.nan if row is None or not row.pairs else row.delta if found.systems.higher else -row.delta
        if row is not None and gain < -SLACK:
            lost.append((gain, part, row))
    if lost:
        _, part, row = min(lost, key=lambda each: each[0])
        real = "significant" if row.significant else "not significant"
        said = f": {signed(row.delta)} over {counted(row.pairs, 'question')} ({real})."
        yield {"kind": "loss", "parts": [f"It loses to the baseline where {part.by} = ", part.value, said]}


def _doubts(found: Differences) -> Iterator[data.Sentence]:
    """What nobody solves, and what keeps a reader from concluding too much."""
    failures = found.table.failures
    if failures is not None and failures.nobody:
        within = ""
        if failures.cutoff is not None:
            within = (
                f" within {failures.cutoff:,} results" if isinstance(failures.cutoff, int) else f" @{failures.cutoff}"
            )
        who = "No system meets" if len(found.systems.names) > 1 else "It does not meet"
        count = f"{len(failures.nobody):,} of {counted(int(failures.counted.sum()), 'question')}"
        parts = [f"{who} all groups{within} for {count}: "]
        for name in failures.nobody[:NAMED]:
            parts += [name, ", "]
        parts[-1] = " …" if len(failures.nobody) > NAMED else "."
        yield {"kind": "doubt", "parts": parts}
    for warning in found.table.warnings:
        text = warning.removeprefix("warning: ")
        yield {"kind": "doubt", "parts": [f"{text[:1].upper()}{text[1:]}."]}


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
