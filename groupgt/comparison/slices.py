"""Where a difference comes from: the comparison within each slice, the slices that gain and lose most, reversals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from groupgt.comparison.contrast import Contrast, Row, Values, drop, recorrected, rows_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK
from groupgt.evaluation.slices import Slicer
from groupgt.metrics.language import Metric

MOST_SLICES = 200


@dataclass(frozen=True)
class Slice:
    """The rows of one slice: the queries whose column `by` has this value, `queries` of which are defined.

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


def slices_of(
    values: Values, metrics: Mapping[str, Metric], baseline: str, settings: Settings, slicer: Slicer
) -> list[Slice]:
    """The comparison within every slice."""
    slices: list[Slice] = []
    defined = slicer.truth.judgments.defined
    left_out = too_many(slicer)
    for column in (by for by in slicer.by if by not in left_out):
        parts = [
            Slice(name, value, int((mask & defined).sum()), tuple(rows_of(values, metrics, baseline, settings, mask)))
            for name, value, mask in Slicer(slicer.truth, [column])
        ]
        rows = iter(recorrected([row for part in parts for row in part.rows], settings))
        slices += [replace(part, rows=tuple(next(rows) for _ in part.rows)) for part in parts]
    return slices


def too_many(slicer: Slicer) -> dict[str, int]:
    """Columns that divide queries into more slices than a comparison in each makes sense of, and how many they have."""
    counts = {by: len(set(slicer.texts(by))) for by in slicer.by}
    return {by: count for by, count in counts.items() if count > MOST_SLICES}


@dataclass(frozen=True)
class Extreme:
    """The slices of one column in which a system gains and loses most, with its contrasts there; None where none is."""

    system: str
    overall: Contrast
    by: str
    gains: tuple[Slice, Contrast] | None
    loses: tuple[Slice, Contrast] | None


def extremes(rows: Sequence[Row], slices: Sequence[Slice], metric: str, *, higher_is_better: bool) -> Iterator[Extreme]:
    """For each system and column the slices in which it gains and loses most by one metric, where there are any."""
    for row in rows:
        if row.metric != metric or row.against is None:
            continue
        for by in dict.fromkeys(part.by for part in slices):
            within = [(part, part.index[row.system, metric].against) for part in slices if part.by == by]
            gains = [
                (-drop(inner.delta, higher_is_better=higher_is_better), part, inner)
                for part, inner in within
                if inner is not None and inner.pairs
            ]
            if len(gains) < 2:
                continue
            most, least = max(gains, key=lambda item: item[0]), min(gains, key=lambda item: item[0])
            if most[0] > SLACK or least[0] < -SLACK:
                yield Extreme(
                    row.system,
                    row.against,
                    by,
                    most[1:] if most[0] > SLACK else None,
                    least[1:] if least[0] < -SLACK else None,
                )


def reversals(rows: Sequence[Row], slices: Sequence[Slice]) -> Iterator[tuple[Row, Slice, Row]]:
    """Slices in which a system gains where it loses over all, or loses where it gains."""
    for row in rows:
        for part in slices if row.against is not None else ():
            inner = part.index[row.system, row.metric]
            if inner.pairs and (row.delta or 0.0) * (inner.delta or 0.0) < 0:
                yield row, part, inner
