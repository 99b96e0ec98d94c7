"""Draws sweeps: the primary metric against one or two options of a system."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from groupgt.comparison.systems import Systems
from groupgt.experiment.outcome import Outcome
from groupgt.render import tradeoffs
from groupgt.render.drawing import Figure
from groupgt.report.means import about


def figures(outcome: Outcome, systems: Systems) -> dict[str, Figure]:
    """Returns a figure for each entry in the file that sweeps one or two options."""
    entries = {family: config.matrix for family, config in outcome.experiment.config.systems.items()}
    members = {name: outcome.experiment.systems[name] for name in systems.names}
    options = {
        name: {key: getattr(member.options, key) for key in entries[member.family]} for name, member in members.items()
    }
    families = {name: member.family for name, member in members.items()}
    return figures_of(systems, entries, families, options)


def figures_of(
    systems: Systems,
    entries: Mapping[str, Mapping[str, Sequence[Any]]],
    families: Mapping[str, str],
    options: Mapping[str, Mapping[str, Any]],
) -> dict[str, Figure]:
    """Draws sweeps from entries with their swept options; `families` and `options` are given by system name."""
    figures: dict[str, Figure] = {}
    stated = about(systems, systems.label)
    for family, matrix in entries.items():
        keys = [key for key, values in matrix.items() if len(values) > 1]
        members = [name for name in systems.names if families.get(name) == family]
        if len(members) < 2 or len(keys) not in (1, 2):
            continue
        axes = dict(zip(("x", "y"), keys))
        rows = []
        for name in members:
            low, high = systems.ends(name)
            row = {"family": family, "value": systems.mean(name), "low": low, "high": high}
            rows.append(row | {axis: _plain(options[name][key]) for axis, key in axes.items()})
        rows.sort(key=lambda row: [_place(matrix[key], row[axis]) for axis, key in axes.items()])
        figures[f"sweep {family}"] = tradeoffs.sweep(rows, stated, [f"{key} of {family}" for key in keys])
    return figures


def _place(values: Sequence[Any], value: Any) -> int:
    """Returns the index of a value in the file's list."""
    plain = [_plain(each) for each in values]
    return plain.index(value) if value in plain else len(plain)


def _plain(value: Any) -> Any:
    """Converts a value to a number or text for an axis."""
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else json.dumps(value)
