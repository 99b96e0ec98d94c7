"""Build the table of systems, which the terminal, the summary and the page each render differently."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.systems import Systems, finite, interval
from groupgt.experiment.outcome import GateResult
from groupgt.render.bars import Axis, Bar, BarTable, labels
from groupgt.render.columns import level_text, signed_span
from groupgt.render.layout import Strong
from groupgt.render.page import data
from groupgt.render.tables import BETTER, DIGITS, Table, count_text, counted, counts_text, fixed, minus, signed, small
from groupgt.report.contrasts import MARK_OF, p_header
from groupgt.report.evidence import method_name
from groupgt.report.names import Names
from groupgt.report.sentences import at_cutoff

# Signs of bars, by how a system stands against the baseline.
SIGNS = {**MARK_OF, "baseline": "◆"}
# Systems that a summary shows without unfolding.
BEST = 3
# Other metrics beside the primary one on the page.
OTHERS = 2
# Number of characters that fit on the page's axis of changes at its narrowest.
AXIS_CHARS = 22


@dataclass(frozen=True)
class Standing:
    """One row. Without a comparison, `contrast` is None. If only metric values are available, `complete` is None."""

    name: str
    mean: float | None
    kind: str
    contrast: Contrast | None
    limit: float | None = None
    is_limit_broken: bool = False
    complete: float | None = None
    queries: int = 0
    lost: Sequence[str] = ()
    gained: Sequence[str] = ()
    lost_count: float = 0.0
    gained_count: float = 0.0

    @property
    def completed(self) -> str:
        """The number of complete queries out of all queries, such as `69/82`. The text is empty if unknown."""
        return "" if self.complete is None else f"{count_text(self.complete)}/{self.queries:,}"

    @property
    def changed(self) -> list[str]:
        """The numbers of queries complete only for the baseline and only for the system. Empty without a contrast."""
        return ["", ""] if self.contrast is None else counts_text([self.lost_count, self.gained_count])

    @property
    def mark(self) -> str:
        """The sign that marks a significant difference. Other differences have no sign."""
        return MARK_OF.get(self.kind, "")

    @property
    def bar(self) -> Bar | None:
        """The difference on the axis of all rows."""
        sign = SIGNS.get(self.kind, "○")
        if self.contrast is None:
            return Bar(0.0, sign=sign) if self.kind == "baseline" else None
        low, high = interval(self.contrast.delta_interval) or (None, None)
        return Bar(finite(self.contrast.delta), low, high, sign, self.limit)


def standings(systems: Systems, gates: Sequence[GateResult] = ()) -> list[Standing]:
    """Return a row for each system, best mean first."""
    contrasts = systems.against_baseline if systems.is_baseline_named and len(systems.names) > 1 else {}
    failures, baseline = systems.failures, systems.baseline
    limits = dict(_limits(systems, gates))
    rows = []
    for name in systems.names:
        kind = systems.kind(name) if contrasts else ""
        row = Standing(name, systems.mean(name), kind, contrasts.get(name), *limits.get(name, (None, False)))
        if failures is not None:
            row = replace(row, complete=failures.solved_counts[name], queries=failures.queries[name])
        if failures is not None and name in contrasts:
            pairs = failures.between(name, baseline)
            row = replace(
                row,
                lost=failures.lost(name, baseline),
                gained=failures.lost(baseline, name),
                lost_count=pairs["only_second"],
                gained_count=pairs["only_first"],
            )
        rows.append(row)
    sign = -1 if systems.higher else 1
    return sorted(rows, key=lambda row: math.inf if row.mean is None else sign * row.mean)


def _limits(systems: Systems, gates: Sequence[GateResult]) -> Iterator[tuple[str, tuple[float, bool]]]:
    """Yield the limit of each gate on a change in the primary metric, as a difference, and whether the gate failed."""
    for gate in gates:
        asks = gate.asks
        if gate.drop is None or gate.drop.baseline is None or asks.slice:
            continue
        if systems.evaluations[gate.system].text_of(gate.metric) == systems.primary:
            size = -(asks.max_drop or 0.0) if asks.min_gain is None else asks.min_gain
            yield gate.system, (size if systems.higher else -size, not gate.passed)


def lost_and_gained_note(systems: Systems, rows: Sequence[Standing]) -> str:
    """Explain the `Lost / gained` column. The text is empty if nothing is counted or compared."""
    failures = systems.failures
    if failures is None or not is_compared(rows):
        return ""
    text = f"Lost / gained: queries complete{at_cutoff(systems.cutoff)} only in the baseline / only in the system"
    if failures.populations_differ:
        text += ", of queries evaluated in both"
    return f"{text}."


def can_complete(systems: Systems) -> bool:
    """Return whether any query can be complete."""
    return systems.failures is not None and any(systems.failures.queries.values())


def interval_level(systems: Systems) -> str:
    """Return the confidence level of the intervals for changes."""
    each = next(iter(systems.against_baseline.values()), None)
    return "CI" if each is None else level_text(each.confidence)


def bars_of(systems: Systems, rows: Sequence[Standing]) -> list[Bar | None]:
    """Return the bar of each row: its change from the baseline, or its mean without a baseline."""
    if is_compared(rows):
        return [row.bar for row in rows]
    return [None if row.mean is None else Bar(row.mean, *systems.ends(row.name)) for row in rows]


def is_compared(rows: Sequence[Standing]) -> bool:
    """Return whether any row has a change from a baseline."""
    return any(row.contrast is not None for row in rows)


def table(systems: Systems, gates: Sequence[GateResult] = ()) -> BarTable:
    """Return the table of systems, with changes if they are compared with a baseline."""
    names, rows = Names(systems.names), standings(systems, gates)
    has_counts, has_changes = can_complete(systems), is_compared(rows)
    headers = ["system", systems.label, *(["change"] if has_changes else [])]
    before = len(headers)
    if has_counts:
        headers += ["lost", "gain", "complete"] if has_changes else ["complete"]
    cells = []
    for row in rows:
        line = [names[row.name], fixed(row.mean, DIGITS)]
        if has_changes:
            each = row.contrast
            line.append("baseline" if each is None else f"{signed(each.delta, DIGITS)}{row.mark or ' '}")
        counts = [*(row.changed if has_changes else ()), row.completed] if has_counts else []
        cells.append([*line, *counts])
    other, bars = markdown_table(systems, rows), bars_of(systems, rows)
    legend = [*_legend(systems, rows, bars), *(f"all {each}" for each in names.shared)]
    failed = [(name, f"failed: {why}") for name, why in systems.failed.items()]
    return BarTable(headers, cells, bars, before, other, legend, has_zero=has_changes, failed=failed)


def _legend(systems: Systems, rows: Sequence[Standing], bars: Sequence[Bar | None]) -> Iterator[str]:
    """Yield the meaning of each sign that the rows show."""
    kinds = {row.kind for row in rows}
    yield from (f"{SIGNS[kind]} significantly {kind}" for kind in MARK_OF if kind in kinds)
    if "not significant" in kinds:
        yield "○ not significant"
    if any(bar is not None and bar.low is not None for bar in bars):
        yield f"├─┤ {interval_text(systems, rows)}"
    if any(row.limit is not None for row in rows):
        yield "┊ gate limit"
    if "baseline" in kinds:
        yield "◆ baseline"
    if systems.failures is not None and can_complete(systems):
        yield f"complete: queries with all groups covered{at_cutoff(systems.cutoff)}"
        if is_compared(rows):
            yield "lost: only in baseline"
            yield "gain: only in system"
            if systems.failures.populations_differ:
                yield "lost and gain count queries evaluated in both"


def interval_text(systems: Systems, rows: Sequence[Standing]) -> str:
    """Describe the intervals, such as `97.5% CI of the change`."""
    if is_compared(rows):
        return f"{interval_level(systems)} of the change"
    return f"{level_text(systems.settings.confidence)} of the mean"


def markdown_table(systems: Systems, rows: Sequence[Standing]) -> Table:
    """Return the table with numbers in place of bars."""
    names, has_counts = Names(systems.names), can_complete(systems)
    has_changes = is_compared(rows)
    headers = ["System", systems.label]
    headers += [f"Change ({interval_level(systems)})", p_header(systems.settings)] if has_changes else []
    headers += ["Lost / gained"] if has_changes and has_counts else []
    headers += ["Complete"] if has_counts else []
    cells: list[list[Any]] = []
    for row in rows:
        name = names[row.name]
        line: list[Any] = [Strong(name) if row.mark == BETTER else name, fixed(row.mean, DIGITS)]
        contrast = row.contrast
        if contrast is not None:
            delta = f"{signed(contrast.delta, DIGITS)}{row.mark}"
            ends = (
                "" if math.isnan(contrast.delta_interval[0]) else f" ({signed_span(contrast.delta_interval, DIGITS)})"
            )
            change = minus(f"{delta}{ends}")
            line += [Strong(change) if row.mark else change, small(contrast.p_value, DIGITS)]
        elif has_changes:
            line += ["baseline", ""]
        if has_changes and has_counts:
            line.append("" if contrast is None else " / ".join(row.changed))
        if has_counts:
            line.append(row.completed)
        cells.append(line)
    cells += [[name, *[""] * (len(headers) - 2), f"failed: {why}"] for name, why in systems.failed.items()]
    return Table(headers, cells)


def shared_axis(compared: Iterable[tuple[Systems, Sequence[GateResult]]]) -> Axis | None:
    """Return one axis for the changes on several data sets, or None if some have no changes."""
    every = [(systems, standings(systems, gates)) for systems, gates in compared]
    if not all(is_compared(rows) for _, rows in every):
        return None
    return Axis.of([bar for systems, rows in every for bar in bars_of(systems, rows) if bar is not None])


def page_table(
    systems: Systems, gates: Sequence[GateResult] = (), about: Mapping[str, str] | None = None, axis: Axis | None = None
) -> data.Standings:
    """Return the table for the page, whose scripts only position its contents. Data sets may share one `axis`."""
    names, rows = Names(systems.names), standings(systems, gates)
    has_counts = can_complete(systems)
    cutoff = systems.metrics[systems.primary].cutoff
    # Complete queries have a column of their own.
    has_column = {text: has_counts and each.name == "complete" for text, each in systems.metrics.items()}
    others = [text for text in systems.metrics if not has_column[text] and text != systems.primary]
    others = sorted(others, key=lambda text: systems.metrics[text].cutoff != cutoff)[:OTHERS]
    has_changes, bars = is_compared(rows), bars_of(systems, rows)
    axis = axis or Axis.of([bar for bar in bars if bar is not None], has_zero=has_changes)
    columns = [("name", "System"), ("mean", systems.label)]
    columns += [("delta", "Change")] if has_changes else []
    columns += [("lost", "Lost / gained")] if has_changes and has_counts else []
    columns += [("complete", "Complete")] if has_counts else []
    columns += [(f"other{place}", systems.labels[text]) for place, text in enumerate(others)]
    return {
        "title": "Systems against " if has_changes else "System" if len(rows) == 1 else "Systems",
        "baseline": names[systems.baseline] if has_changes else "",
        "columns": columns,
        "interval": interval_text(systems, rows)
        if any(bar is not None and bar.low is not None for bar in bars)
        else "",
        "ticks": [
            (_share(axis, tick), minus(text), tick == 0 and has_changes)
            for tick, (_, text) in sorted(labels(axis, AXIS_CHARS).items())
        ],
        "rows": [
            _page_row(systems, names, row, bar, axis, others, (about or {}).get(row.name, ""))
            for row, bar in zip(rows, bars)
        ],
        "legend": _page_legend(rows),
        "note": " ".join(_page_notes(systems, rows, names, has_others=has_changes and bool(others))),
    }


def _share(axis: Axis, value: float) -> float:
    return round(100 * axis.share(value), 2)


def _page_legend(rows: Sequence[Standing]) -> list[tuple[str, str]]:
    kinds = {row.kind for row in rows} | {"limit" for row in rows if row.limit is not None}
    meanings = {kind: f"significantly {kind}" for kind in MARK_OF}
    meanings |= {"not significant": "not significant", "limit": "gate limit"}
    return [(kind, meaning) for kind, meaning in meanings.items() if kind in kinds]


def _page_notes(systems: Systems, rows: Sequence[Standing], names: Names, *, has_others: bool) -> Iterator[str]:
    if can_complete(systems) and (note := lost_and_gained_note(systems, rows)):
        yield note
    if has_others:
        yield "Other metrics are exploratory."
    if names.shared:
        yield f"Shared by all: {'; '.join(names.shared)}."


def _page_row(
    systems: Systems, names: Names, row: Standing, bar: Bar | None, axis: Axis, others: Sequence[str], about: str
) -> data.StandingRow:
    base, options = names.parts(row.name)
    contrast = row.contrast
    cells: dict[str, Any] = {"mean": fixed(row.mean, DIGITS)}
    sort: dict[str, Any] = {"name": row.name, "mean": row.mean}
    if contrast is not None:
        cells |= {"delta": minus(signed(contrast.delta, DIGITS)), "lost": " / ".join(row.changed)}
        sort |= {"delta": contrast.delta, "lost": row.lost_count}
    elif row.kind == "baseline":
        cells |= {"delta": "baseline", "lost": "–"}
        sort |= {"delta": 0.0, "lost": 0}
    if can_complete(systems):
        cells["complete"], sort["complete"] = row.completed, row.complete
    marks = {"delta": row.mark}
    for place, text in enumerate(others):
        mean = systems.means[row.name][text]
        cells[f"other{place}"], sort[f"other{place}"] = fixed(mean, DIGITS), mean
        if systems.is_baseline_named and text in systems.labels:
            marks[f"other{place}"] = MARK_OF.get(systems.kind(row.name, text), "")
    ends = [] if bar is None or bar.value is None else [bar.value, bar.low, bar.high]
    return {
        "name": row.name,
        "base": base,
        "options": options,
        "kind": row.kind,
        "cells": cells,
        "marks": marks,
        "sort": sort,
        "bar": [_share(axis, end) for end in ends if end is not None] or None,
        "limit": None if row.limit is None else (_share(axis, row.limit), row.is_limit_broken),
        "label": minus(_label(names[row.name], row)),
        "details": [(term, minus(text)) for term, text in _details(systems, row, about)],
        "lost": list(row.lost),
        "gained": list(row.gained),
    }


def _label(name: str, row: Standing) -> str:
    """Describe a bar for screen readers."""
    contrast = row.contrast
    if contrast is None:
        return f"{name}: {'baseline' if row.kind == 'baseline' else f'mean {fixed(row.mean, DIGITS)}'}"
    ends = contrast.delta_interval
    of = "" if math.isnan(ends[0]) else f", {level_text(contrast.confidence)} {signed_span(ends, DIGITS)}"
    words = f"significantly {row.kind}" if row.mark else "not significant"
    return f"{name}: {signed(contrast.delta, DIGITS)}{of}, {words}"


def _details(systems: Systems, row: Standing, about: str) -> Iterator[tuple[str, str]]:
    """Yield the terms and texts that an expanded row shows."""
    contrast = row.contrast
    if contrast is not None:
        ends = contrast.delta_interval
        yield "Reading", _reading(contrast)
        of = "" if math.isnan(ends[0]) else f" ({level_text(contrast.confidence)} {signed_span(ends)})"
        yield "Change", f"{signed(contrast.delta)}{of}"
        if not math.isnan(contrast.p_value):
            count, method = comparisons(systems.against_baseline.values()), systems.settings.corrects
            is_adjusted = count > 1 and method != "none"
            over = f"{method_name(method)}, {counted(count, 'comparison')}"
            how = f" ({over}; uncorrected {small(contrast.raw_p_value, DIGITS)})"
            yield "p", f"{small(contrast.p_value, DIGITS)}{how if is_adjusted else ''}"
        if math.isfinite(contrast.effect_size):
            yield "Effect size d_z", signed(contrast.effect_size, 2)
        yield "Better / same / worse", f"{contrast.wins:,} / {contrast.ties:,} / {contrast.losses:,} queries"
        if contrast.unpaired:
            yield "Not paired", f"{counted(contrast.unpaired, 'query')} with a value for only one of the two systems"
    low, high = systems.ends(row.name)
    of = "" if low is None else f" ({level_text(systems.settings.confidence)} {fixed(low)} to {fixed(high)})"
    yield f"Mean {systems.label}", f"{fixed(row.mean)}{of}"
    if row.kind == "baseline":
        yield "Role", "Baseline: all changes are relative to this system."
    if about:
        yield "System", about


def _reading(contrast: Contrast) -> str:
    """Describe the results of the test and the interval."""
    low, high = contrast.delta_interval
    verdict = "Significant" if contrast.significant else "Not significant"
    if contrast.significant and (low > 0 or high < 0):
        return f"{verdict}. The interval is entirely {'above' if low > 0 else 'below'} 0."
    if not contrast.significant and low <= 0 <= high:
        return f"{verdict}. The interval, from {_words(low)} to {_words(high)}, includes 0."
    return f"{verdict}."


def _words(change: float) -> str:
    return f"a {'fall' if change < 0 else 'rise'} of {fixed(abs(change), DIGITS)}"
