"""Where a difference comes from: the comparison within each slice, the slices that gain and lose most, reversals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from groupgt.comparison.contrast import Row, Scored, drop, recorrected, rows_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK
from groupgt.evaluation.slices import Slicer
from groupgt.metrics.language import Metric
from groupgt.render.tables import counted, signed

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
    slices: list[Slice] = []
    defined = slicer.truth.judgments.defined
    left_out = too_many(slicer)
    for column in (by for by in slicer.by if by not in left_out):
        parts = [
            Slice(name, value, int((mask & defined).sum()), tuple(rows_of(systems, baseline, settings, mask)))
            for name, value, mask in Slicer(slicer.truth, [column])
        ]
        rows = iter(recorrected([row for part in parts for row in part.rows], settings))
        slices += [replace(part, rows=tuple(next(rows) for _ in part.rows)) for part in parts]
    return slices


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
        for by in dict.fromkeys(part.by for part in slices):
            within = [(part, _row_in(part, row)) for part in slices if part.by == by]
            gains = [(_gain(inner, metrics), part, inner) for part, inner in within if inner.pairs]
            if len(gains) < 2:
                continue
            most, least = max(gains, key=lambda item: item[0]), min(gains, key=lambda item: item[0])
            phrases = [
                f"{word} most where {by} = {part.value} "
                f"({signed(inner.delta)}, {counted(inner.pairs, 'query', 'queries')})"
                for word, (gain, part, inner) in (("gains", most), ("loses", least))
                if (gain > SLACK if word == "gains" else gain < -SLACK)
            ]
            if phrases:
                yield f"{row.system} {' and '.join(phrases)}; overall {signed(row.delta)} in {label}"


def reversals(
    whole: Sequence[Row], slices: Sequence[Slice], metrics: Mapping[str, Metric]
) -> Iterator[tuple[Row, Slice, Row]]:
    """Slices in which a system gains where it loses over all, or loses where it gains."""
    for row in whole:
        if row.against is None:
            continue
        for part in slices:
            inner = _row_in(part, row)
            if inner.pairs and _gain(row, metrics) * _gain(inner, metrics) < 0:
                yield row, part, inner


def _row_in(part: Slice, whole: Row) -> Row:
    """The row of the same system and metric within a slice."""
    return part.index[whole.system, whole.metric]


def _gain(row: Row, metrics: Mapping[str, Metric]) -> float:
    return -drop(row.delta, higher_is_better=metrics[row.metric].higher_is_better)
