"""The leaderboard of systems and metrics, which is the first table of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groupgt.comparison.systems import Systems
from groupgt.render.document import Table
from groupgt.render.layout import Strong
from groupgt.render.tables import BETTER, WORSE, fixed, signed, small, span
from groupgt.report.contrasts import p_header
from groupgt.report.means import parts_of

MARKS = {"better": BETTER, "worse": WORSE}


def grids(systems: Systems) -> Iterator[Table]:
    """Yields tables with one row per system; highlights the best mean and marks differences from the baseline.

    The primary metric also gets its difference, CI and p. If there are many metrics, they are split by cutoff, and the
    table with the primary metric comes first.
    """
    parts = parts_of(systems.metrics)
    parts.sort(key=lambda part: systems.primary not in part)
    against = _against(systems)
    for place, part in enumerate(parts):
        more = against if place == 0 else {}
        headers = ["run", *(systems.labels[text] for text in part), *more.get("", [])]
        yield Table(headers, [[name, *_means(systems, name, part), *more.get(name, [])] for name in systems.names])


def primary_grid(systems: Systems) -> Table:
    """Returns a leaderboard with only the primary metric and the number of queries."""
    against = _against(systems)
    headers = ["run", systems.label, *against.get("", []), "queries"]
    rows = [
        [name, *_means(systems, name, [systems.primary]), *against.get(name, []), systems.queries_of(name)]
        for name in systems.names
    ]
    return Table(headers, rows)


def _means(systems: Systems, name: str, metrics: Sequence[str]) -> Iterator[str]:
    for text in metrics:
        mean = systems.means[name][text]
        mark = MARKS.get(systems.kind(name, text), "") if systems.is_baseline_named else ""
        is_best = len(systems.names) > 1 and mean is not None and mean == systems.best_mean(text)
        yield Strong(fixed(mean) + mark) if is_best else fixed(mean) + mark


def _against(systems: Systems) -> dict[str, list[Any]]:
    """Returns cells that compare each system with the baseline by the primary metric; the key "" has the headers."""
    contrasts = systems.against_baseline if systems.is_baseline_named and len(systems.names) > 1 else {}
    if not contrasts:
        return {}
    level = 100 * next(iter(contrasts.values())).confidence
    cells: dict[str, list[Any]] = {"": [f"delta {systems.label}", f"{level:.3g} % CI", p_header(systems.settings)]}
    for name in systems.names:
        cells[name] = ["baseline", "", ""]
    for name, each in contrasts.items():
        cells[name] = [signed(each.delta), span(each.delta_interval), small(each.p_value)]
    return cells
