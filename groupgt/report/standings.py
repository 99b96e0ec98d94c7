"""The table of systems: means, changes from the baseline with their CIs, queries lost and gained, complete queries.

`standings` returns its rows, which the terminal and the summary draw in their own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from groupgt.comparison.contrast import Contrast
from groupgt.comparison.systems import Systems, finite, interval
from groupgt.experiment.outcome import GateResult
from groupgt.render.bars import Bar, BarTable
from groupgt.render.layout import Strong
from groupgt.render.tables import BETTER, WORSE, Table, fixed, minus, signed, small
from groupgt.report.evidence import CORRECTIONS, DIGITS, between, level
from groupgt.report.names import Names
from groupgt.report.sentences import at_cutoff

MARKS = {"better": BETTER, "worse": WORSE}
# Signs of bars, by how a system stands against the baseline.
SIGNS = {**MARKS, "baseline": "◆"}
# Systems that a summary shows without unfolding.
BEST = 3


@dataclass(frozen=True)
class Standing:
    """One row; `contrast` is None for the baseline and without one, `complete` if only values are available."""

    name: str
    mean: float | None
    kind: str
    contrast: Contrast | None
    lost: Sequence[str] = ()
    gained: Sequence[str] = ()
    complete: int | None = None
    limit: float | None = None

    @property
    def mark(self) -> str:
        """The sign of a significant difference; empty for any other."""
        return MARKS.get(self.kind, "")

    @property
    def bar(self) -> Bar | None:
        """The difference on the axis of all rows."""
        sign = SIGNS.get(self.kind, "○")
        if self.contrast is None:
            return Bar(0.0, sign=sign) if self.kind == "baseline" else None
        low, high = interval(self.contrast.delta_interval) or (None, None)
        return Bar(finite(self.contrast.delta), low, high, sign, self.limit)


def standings(systems: Systems, gates: Sequence[GateResult] = ()) -> list[Standing]:
    """Return a row for each system, the best mean first."""
    contrasts = systems.against_baseline if systems.is_baseline_named and len(systems.names) > 1 else {}
    failures, baseline = systems.failures, systems.baseline
    counts = {} if failures is None else failures.solved_counts
    limits = dict(_limits(systems, gates))
    rows = []
    for name in systems.names:
        lost = gained = ()  # type: tuple[()] | list[str]
        if failures is not None and name in contrasts:
            lost, gained = failures.lost(name, baseline), failures.lost(baseline, name)
        kind = systems.kind(name) if contrasts else ""
        contrast = contrasts.get(name)
        rows.append(
            Standing(name, systems.mean(name), kind, contrast, lost, gained, counts.get(name), limits.get(name))
        )
    sign = -1 if systems.higher else 1
    return sorted(rows, key=lambda row: math.inf if row.mean is None else sign * row.mean)


def _limits(systems: Systems, gates: Sequence[GateResult]) -> Iterator[tuple[str, float]]:
    """Yield the limit of a gate on a change of the primary metric, as a difference."""
    for gate in gates:
        asks = gate.asks
        if gate.drop is None or gate.drop.baseline is None or asks.slice:
            continue
        if systems.evaluations[gate.system].text_of(gate.metric) == systems.primary:
            size = -(asks.max_drop or 0.0) if asks.min_gain is None else asks.min_gain
            yield gate.system, size if systems.higher else -size


def counted_queries(systems: Systems) -> int:
    """Return how many queries can be complete."""
    return 0 if systems.failures is None else int(systems.failures.counted.sum())


def interval_level(systems: Systems) -> str:
    """Return the level of the intervals of changes."""
    each = next(iter(systems.against_baseline.values()), None)
    return "CI" if each is None else level(each.confidence)


def bars_of(systems: Systems, rows: Sequence[Standing]) -> list[Bar | None]:
    """Return what each row draws: its change from the baseline, or its mean where there is none."""
    if is_compared(rows):
        return [row.bar for row in rows]
    return [None if row.mean is None else Bar(row.mean, *systems.ends(row.name)) for row in rows]


def is_compared(rows: Sequence[Standing]) -> bool:
    """Return whether any row has a change from a baseline."""
    return any(row.contrast is not None for row in rows)


# --- The terminal and other texts.


def table(systems: Systems, gates: Sequence[GateResult] = ()) -> BarTable:
    """Return the table of systems, with changes if they are compared with a baseline."""
    names, rows = Names(systems.names), standings(systems, gates)
    total, has_changes = counted_queries(systems), is_compared(rows)
    headers = ["system", systems.label, *(["change"] if has_changes else [])]
    before = len(headers)
    if total:
        headers += ["lost", "gain", "done"] if has_changes else ["done"]
    cells = []
    for row in rows:
        line = [names[row.name], fixed(row.mean, DIGITS)]
        counts = []
        if has_changes:
            each = row.contrast
            line.append("baseline" if each is None else f"{signed(each.delta, DIGITS)}{row.mark or ' '}")
            counts = ["", ""] if each is None else [f"{len(row.lost):,}", f"{len(row.gained):,}"]
        cells.append([*line, *counts, f"{row.complete or 0:,}/{total:,}"] if total else line)
    other, bars = markdown_table(systems, rows), bars_of(systems, rows)
    legend = [*_legend(systems, rows, bars), *(f"all {each}" for each in names.shared)]
    return BarTable(headers, cells, bars, before, other, legend, has_zero=has_changes)


def _legend(systems: Systems, rows: Sequence[Standing], bars: Sequence[Bar | None]) -> Iterator[str]:
    """Yield the meaning of each sign that the rows show."""
    kinds = {row.kind for row in rows}
    yield from (f"{SIGNS[kind]} significantly {kind}" for kind in MARKS if kind in kinds)
    if "not significant" in kinds:
        yield "○ not significant"
    if any(bar is not None and bar.low is not None for bar in bars):
        yield f"├─┤ {interval_text(systems, rows)}"
    if any(row.limit is not None for row in rows):
        yield "┊ gate limit"
    if "baseline" in kinds:
        yield "◆ baseline"
    if counted_queries(systems):
        yield f"done: complete{at_cutoff(systems.cutoff)}"


def interval_text(systems: Systems, rows: Sequence[Standing]) -> str:
    """Return what the intervals are: `97.5% CI of the change`."""
    if is_compared(rows):
        return f"{interval_level(systems)} of the change"
    return f"{level(systems.settings.confidence)} of the mean"


def markdown_table(systems: Systems, rows: Sequence[Standing]) -> Table:
    """Return the table with numbers in place of bars."""
    names, total = Names(systems.names), counted_queries(systems)
    has_changes = is_compared(rows)
    headers = ["System", systems.label]
    headers += [f"Change ({interval_level(systems)})", _p_title(systems)] if has_changes else []
    headers += ["Lost / gained"] if has_changes and total else []
    headers += ["Complete"] if total else []
    cells: list[list[Any]] = []
    for row in rows:
        name = names[row.name]
        line: list[Any] = [Strong(name) if row.mark == BETTER else name, fixed(row.mean, DIGITS)]
        contrast = row.contrast
        if contrast is not None:
            delta = f"{signed(contrast.delta, DIGITS)}{row.mark}"
            ends = "" if math.isnan(contrast.delta_interval[0]) else f" ({between(contrast.delta_interval)})"
            change = minus(f"{delta}{ends}")
            line += [Strong(change) if row.mark else change, small(contrast.p_value, DIGITS)]
        elif has_changes:
            line += ["baseline", ""]
        if has_changes and total:
            line.append("" if contrast is None else f"{len(row.lost):,} / {len(row.gained):,}")
        if total:
            line.append(f"{row.complete or 0:,}/{total:,}")
        cells.append(line)
    return Table(headers, cells)


def _p_title(systems: Systems) -> str:
    method = systems.settings.corrects
    return "p" if method == "none" else f"p ({CORRECTIONS.get(method, method)})"
