"""Report slices: means, differences from the baseline, and effects that the overall mean hides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groupgt.comparison.contrast import Row
from groupgt.comparison.slices import MOST_SLICES, Slice, extremes
from groupgt.comparison.systems import Systems, finite
from groupgt.render import figures, tables
from groupgt.render.document import Detail, Item
from groupgt.render.drawing import Figure
from groupgt.render.tables import DIGITS, counted, fixed, signed, small
from groupgt.report.contrasts import delta_text, p_header
from groupgt.report.means import about, transposed
from groupgt.report.sentences import grouped

# More lines than this are only counted, not listed.
LISTED = 5


def deltas(systems: Systems, metrics: Sequence[str]) -> Iterator[Item]:
    """Yield one table of differences per column and metric, followed by sentences on notable slices."""
    for by, parts in grouped((part.by, part) for part in systems.slices).items():
        if len(parts) == 1:
            yield f"every query has {by} = {parts[0].value}"
            continue
        for text in metrics:
            rows: list[list[Any]] = [["queries"]]
            for part in parts:
                # The number of queries behind a slice's differences may vary between systems.
                counts = [row.against.pairs for row in part.rows if row.metric == text and row.against is not None]
                rows[0].append(tables.range_text(counts or [part.queries]))
            for system in systems.names:
                inner = [part.index[system, text] for part in parts]
                is_baseline = system == systems.baseline
                means = (fixed(row.mean, DIGITS) for row in inner)
                rows.append([f"{system} (mean)", *means] if is_baseline else [system, *map(delta_text, inner)])
            headers = [f"{systems.labels[text]}: delta by {by}", *(part.value for part in parts)]
            yield transposed(headers, rows) if len(parts) > tables.WIDEST else (headers, rows)
    for by, count in systems.left_out.items():
        yield f"slices by {by} are omitted, because {by} has {count:,} values, more than {MOST_SLICES:,}"
    if systems.slices and metrics:
        lines = list(_extremes(systems, metrics[0]))
        more = [f"… and {len(lines) - LISTED:,} more such lines"] if len(lines) > LISTED else []
        lines = [*lines[:LISTED], *more, *_reversals(systems, metrics)]
        if lines:
            yield Detail("\n".join(lines))


def _extremes(systems: Systems, metric: str) -> Iterator[str]:
    """Describe, for each system and column, the slices with the best and worst difference."""
    higher = systems.metrics[metric].higher_is_better
    for each in extremes(systems.rows, systems.slices, metric, higher_is_better=higher):
        phrases = [
            f"{end} where {each.by} = {place[0].value} ({delta_text(place[1])}, {counted(place[1].pairs, 'query')})"
            for end, place in (("best", each.gains), ("worst", each.loses))
            if place is not None
        ]
        overall = f"overall {signed(each.overall.delta, DIGITS)} in {systems.labels[metric]}"
        yield f"{each.system}: {', '.join(phrases)}; {overall}"


def _reversals(systems: Systems, metrics: Sequence[str]) -> Iterator[str]:
    """Describe slices that contradict the overall direction. List significant slices, and count all others."""
    reversals = [reversal for reversal in systems.reversals() if reversal[0].metric in metrics]
    # Significant ones first, then those with the most queries.
    reversals.sort(key=lambda each: (not each[2].significant, -(each[2].pairs or 0), -abs(each[2].delta or 0.0)))
    significant = [reversal for reversal in reversals if reversal[2].significant]
    for reversal in significant[:LISTED]:
        yield f"reversal: {_reversal(systems, *reversal)}"
    if len(significant) > LISTED:
        yield f"… and {len(significant) - LISTED:,} more reversals"
    if others := reversals[len(significant) :]:
        slices = counted(len(others), "slice contradicts", "slices contradict")
        yield f"{slices} the overall direction (not significant), such as {_reversal(systems, *others[0])}"


def _reversal(systems: Systems, row: Row, part: Slice, inner: Row) -> str:
    where = f"{signed(inner.delta, DIGITS)} in {systems.labels[row.metric]} where {part.by} = {part.value}"
    tested = f"{counted(inner.pairs or 0, 'query')}, {p_header(systems.settings)} {small(inner.p_value, DIGITS)}"
    return f"{row.system} with {where} ({tested}), but {signed(row.delta, DIGITS)} overall"


def figure(systems: Systems) -> Figure:
    """Draw the mean of each system in each slice."""
    rows = []
    for place, (by, part, mask) in enumerate(systems.first.slicer):
        counts = {name: each.counted(systems.primary, mask) for name, each in systems.evaluations.items()}
        label = f"{by} = {part} ({tables.range_text(list(counts.values()))})"
        for name, each in systems.evaluations.items():
            value = finite(each.slices[place]["means"][systems.primary])
            rows.append({"slice": label, "system": name, "value": value, "queries": counts[name]})
    return figures.slices(rows, about(systems))
