"""Where a difference comes from: the comparison within each slice, the slices that gain and lose most, reversals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from groupgt.comparison.contrast import Row, Scored, drop, recorrected, rows_of
from groupgt.comparison.tests import SLACK, Settings
from groupgt.evaluation.slices import Slicer
from groupgt.metrics.language import Metric
from groupgt.render.numbers import signed

MOST_SLICES = 200


@dataclass(frozen=True)
class Slice:
    """The rows of one slice: the questions whose column `by` has this value, `queries` of which are defined.

    p-values are corrected over all slices of the column.
    """

    by: str
    value: str
    queries: int
    rows: tuple[Row, ...]

    @cached_property
    def index(self) -> dict[tuple[str, str], Row]:
        """The row of each system and metric."""
        return {(row.system, row.metric): row for row in self.rows}


def slices_of(systems: Sequence[Scored], baseline: str, settings: Settings, slicer: Slicer) -> list[Slice]:
    """The comparison within every slice."""
    found: list[Slice] = []
    defined = slicer.truth.judgments.defined
    many = too_many(slicer)
    for column in (by for by in slicer.by if by not in many):
        own = [
            Slice(name, value, int((mask & defined).sum()), tuple(rows_of(systems, baseline, settings, mask)))
            for name, value, mask in Slicer(slicer.truth, [column])
        ]
        rows = iter(recorrected([row for each in own for row in each.rows], settings))
        found += [replace(each, rows=tuple(next(rows) for _ in each.rows)) for each in own]
    return found


def too_many(slicer: Slicer) -> dict[str, int]:
    """Columns that divide queries into more slices than a comparison in each makes sense of, and how many they have."""
    counts = {by: len(set(slicer.texts(by))) for by in slicer.by}
    return {by: count for by, count in counts.items() if count > MOST_SLICES}


def extremes(
    whole: Sequence[Row], slices: Sequence[Slice], metrics: Mapping[str, Metric], metric: str, label: str
) -> Iterator[str]:
    """For each system and column, in words: the slice in which it gains most, and that in which it loses most."""
    for row in whole:
        if row.metric != metric or row.against is None:
            continue
        for by in dict.fromkeys(each.by for each in slices):
            own = [(part, _row(part, row)) for part in slices if part.by == by]
            known = [(_gain(each, metrics), part, each) for part, each in own if each.pairs]
            if len(known) < 2:
                continue
            most, least = max(known, key=_first), min(known, key=_first)
            told = [
                f"{word} most where {by} = {part.value} ({signed(each.delta)}, {_queries(each)})"
                for word, (gain, part, each) in (("gains", most), ("loses", least))
                if (gain > SLACK if word == "gains" else gain < -SLACK)
            ]
            if told:
                yield f"{row.system} {' and '.join(told)}; over all {signed(row.delta)} in {label}"


def reversals(
    whole: Sequence[Row], slices: Sequence[Slice], metrics: Mapping[str, Metric]
) -> Iterator[tuple[Row, Slice, Row]]:
    """Slices in which a system gains where it loses over all, or loses where it gains."""
    for row in whole:
        if row.against is None:
            continue
        for part in slices:
            each = _row(part, row)
            if each.pairs and _gain(row, metrics) * _gain(each, metrics) < 0:
                yield row, part, each


def _row(part: Slice, like: Row) -> Row:
    return part.index[like.system, like.metric]


def _gain(row: Row, metrics: Mapping[str, Metric]) -> float:
    return -drop(row.delta, higher_is_better=metrics[row.metric].higher_is_better)


def _first(item: tuple[float, Slice, Row]) -> float:
    return item[0]


def _queries(row: Row) -> str:
    return f"{row.pairs:,} {'query' if row.pairs == 1 else 'queries'}"
