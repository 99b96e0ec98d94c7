"""The figures that a comparison can draw: from `Differences` to the tables that `render.figures` takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from groupgt.comparison.differences import Differences, interval
from groupgt.comparison.draws import SLACK
from groupgt.errors import ConfigError, near_names
from groupgt.evaluation import pictures
from groupgt.evaluation.systems import known
from groupgt.render import figures
from groupgt.render.drawing import Figure


def drawable(found: Differences) -> dict[str, Callable[[], Figure]]:
    """The figures that can be drawn, by name."""
    known_figures = pictures.drawable(found.systems)
    if len(found.systems.names) > 1:
        known_figures |= {
            "forest": lambda: forest(found),
            "differences": lambda: differences(found),
            "deltas": lambda: deltas(found),
            "outcomes": lambda: outcomes(found),
        }
    return known_figures


def forest(found: Differences) -> Figure:
    """Means with their intervals, each marked by how it stands against the baseline."""
    systems = found.systems
    rows = []
    for name in systems.names:
        low, high = systems.ends(name)
        rows.append({"name": name, "value": systems.mean(name), "low": low, "high": high, "kind": found.kind(name)})
    return figures.forest(rows, systems.about(systems.label))


def differences(found: Differences) -> Figure:
    """Differences against the baseline with their intervals."""
    systems, baseline = found.systems, found.table.baseline
    rows = []
    for name in systems.names:
        each = None if name == baseline else found.between(name, baseline)
        if each is not None:
            low, high = interval(each.delta_interval) or (None, None)
            rows.append({"name": name, "value": known(each.delta), "low": low, "high": high, "kind": found.kind(name)})
    return figures.forest(rows, systems.about(systems.label), delta=True, title=f"Differences against {baseline}")


def outcomes(found: Differences) -> Figure:
    """Wins, ties and losses against the baseline."""
    baseline = found.table.baseline
    rows: list[dict[str, Any]] = []
    for name in found.systems.names:
        each = None if name == baseline else found.between(name, baseline)
        if each is not None:
            counts = {"better": each.wins, "same": each.ties, "worse": each.losses}
            rows += [{"system": name, "outcome": outcome, "count": count} for outcome, count in counts.items()]
    return figures.outcomes(rows, found.systems.about(found.systems.label), baseline)


def deltas(found: Differences, first: str | None = None, second: str | None = None) -> Figure:
    """The difference of every question, sorted: of the best, or the first, system against the baseline."""
    systems, baseline = found.systems, found.table.baseline
    against = second or baseline
    others = [name for name in systems.names if name != against]
    chosen = first or (systems.best if systems.best in others else others[0])
    for name in (chosen, against):
        if name not in systems.values:
            raise ConfigError(f"system {name!r} was not compared{near_names(str(name), systems.names)}")
    sign = 1 if systems.higher else -1
    values = [systems.values[name][systems.primary] for name in (str(chosen), against)]
    gains = [
        (sign * gain, place) for place, gain in enumerate((values[0] - values[1]).tolist()) if not math.isnan(gain)
    ]
    rows = []
    for number, (gain, place) in enumerate(sorted(gains, key=lambda item: (-item[0], item[1])), 1):
        kind = "better" if gain > SLACK else "worse" if gain < -SLACK else "same"
        rows.append({"qid": systems.qids[place], "place": number, "delta": sign * gain, "kind": kind})
    each = found.between(str(chosen), against)
    low, high = (None, None) if each is None else interval(each.delta_interval) or (None, None)
    mean = {"value": None if each is None else known(each.delta), "low": low, "high": high}
    return figures.deltas(rows, systems.about(systems.label), str(chosen), against, mean)
