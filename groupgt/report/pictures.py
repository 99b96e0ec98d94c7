"""The figures that an experiment can draw, of what it found or of result folders read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groupgt.comparison.systems import Systems
from groupgt.errors import ConfigError, near_names
from groupgt.experiment.outcome import Outcome
from groupgt.render import tradeoffs
from groupgt.render.drawing import Figure
from groupgt.report import comparison

# Systems on the front are named where their latencies differ by this factor at least.
APART = 3.0

Drawable = dict[str, Callable[[], Figure]]


def drawable(outcome: Outcome, dataset: str | None = None) -> Drawable:
    """The figures of one data set by name, the only one where none is named.

    Raises `ConfigError` for a data set that there is not, and where there are several and none is named.
    """
    name = chosen([name for name, found in outcome.evaluations.items() if found], dataset)
    systems = outcome.systems[name]
    return {
        **comparison.drawable(systems, outcome.tables[name]),
        **drawn(sweeps(outcome, systems), latency(systems, latencies(outcome, name))),
    }


def chosen(names: Sequence[str], dataset: str | None) -> str:
    """The data set that is named, or the only one; raises `ConfigError` where there is none such."""
    if dataset in names or (dataset is None and len(names) == 1):
        return names[0] if dataset is None else dataset
    found = "none named" if dataset is None else f"{dataset!r}{near_names(dataset, names)}"
    raise ConfigError(f"dataset: expected one of {', '.join(names)}, found {found}")


def drawn(swept: Mapping[str, Figure], against_latency: Figure | None) -> Drawable:
    """Figures that are drawn already; the first sweep goes without the name of its entry too."""
    found: Drawable = {name: lambda figure=figure: figure for name, figure in swept.items()}  # type: ignore[misc]
    if swept:
        found["sweep"] = next(iter(found.values()))
    if against_latency is not None:
        found["latency"] = lambda: against_latency
    return found


# --- Sweeps.


def sweeps(outcome: Outcome, systems: Systems) -> dict[str, Figure]:
    """A figure for each entry of the file that sweeps one option, or two."""
    entries = {family: config.matrix for family, config in outcome.experiment.config.systems.items()}
    members = {name: outcome.experiment.systems[name] for name in systems.names}
    options = {
        name: {key: getattr(member.options, key) for key in entries[member.family]} for name, member in members.items()
    }
    families = {name: member.family for name, member in members.items()}
    return sweeps_of(systems, entries, families, options)


def sweeps_of(
    systems: Systems,
    entries: Mapping[str, Mapping[str, Sequence[Any]]],
    families: Mapping[str, str],
    options: Mapping[str, Mapping[str, Any]],
) -> dict[str, Figure]:
    """Of entries with what they sweep, and systems with their entry and their options."""
    found: dict[str, Figure] = {}
    about = systems.about(systems.label)
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
        found[f"sweep {family}"] = tradeoffs.sweep(rows, about, [f"{key} of {family}" for key in keys])
    return found


def _place(values: Sequence[Any], value: Any) -> int:
    """Where a value stands in the file's list."""
    plain = [_plain(each) for each in values]
    return plain.index(value) if value in plain else len(plain)


def _plain(value: Any) -> Any:
    """A number or text, as an axis has it."""
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else json.dumps(value)


# --- Latency.


def latencies(outcome: Outcome, dataset: str) -> dict[str, float]:
    """The median milliseconds of a question, of systems of which they are known."""
    timings = {name: outcome.timing(dataset, name) for name in outcome.evaluations[dataset]}
    known = {name: each.latency_p50_ms or each.batched_p50_ms for name, each in timings.items() if each is not None}
    return {name: value for name, value in known.items() if value}


def latency(systems: Systems, milliseconds: Mapping[str, float]) -> Figure | None:
    """Quality against latency, where that is known of two systems at least."""
    rows: list[dict[str, Any]] = []
    for name, value in milliseconds.items():
        if (mean := systems.mean(name)) is not None:
            low, high = systems.ends(name)
            rows.append({"system": name, "latency": value, "value": mean, "low": low, "high": high})
    if len(rows) < 2:
        return None
    named = 0.0
    for row in sorted(rows, key=lambda row: -row["latency"]):
        row["front"] = "no" if any(_beats(other, row, higher=systems.higher) for other in rows) else "yes"
        # Names too near to one another would cover each other.
        if row["front"] == "yes" and (not named or row["latency"] * APART < named):
            row["label"], named = row["system"], row["latency"]
    return tradeoffs.latency(rows, systems.about(systems.label))


def _beats(other: Mapping[str, Any], row: Mapping[str, Any], *, higher: bool) -> bool:
    """Whether one is as good in both, and better in one."""
    gain = other["value"] - row["value"] if higher else row["value"] - other["value"]
    saved = row["latency"] - other["latency"]
    return bool(gain >= 0 and saved >= 0 and (gain > 0 or saved > 0))
