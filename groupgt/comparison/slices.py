"""Compare systems within slices of the queries, and find the largest gains and losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groupgt.comparison.contrast import NO_TRIALS, Contrast, Row, Values, among, contrasts_of, drop, rows_of
from groupgt.comparison.draws import SLACK
from groupgt.comparison.settings import Settings
from groupgt.evaluation.estimates import plain_of
from groupgt.evaluation.slices import Slicer
from groupgt.metrics.language import Metric

MOST_SLICES = 200


@dataclass(frozen=True)
class Slice:
    """The table rows for one slice, which contains all queries with the same value in column `by`.

    p-values are corrected over all systems and all values of the column, separately for each metric.
    """

    by: str
    value: str
    queries: int
    rows: tuple[Row, ...]

    @cached_property
    def index(self) -> dict[tuple[str, str], Row]:
        """Rows keyed by system and metric."""
        return {(row.system, row.metric): row for row in self.rows}


def slices_of(
    values: Values,
    metrics: Mapping[str, Metric],
    baseline: str,
    settings: Settings,
    slicer: Slicer,
    in_trials: Values = NO_TRIALS,
) -> list[Slice]:
    """Compare systems within every slice. For each metric, systems × values of a column form a family."""
    slices: list[Slice] = []
    left_out = too_many(slicer)
    names = [name for name in values if name != baseline]
    for by in (by for by in slicer.by if by not in left_out):
        masks = {value: mask for _, value, mask in Slicer(slicer.truth, [by])}
        parts = {value: among(values, metrics, mask) for value, mask in masks.items()}
        cells = {(value, name): part[name] for value, part in parts.items() for name in values}
        twos = [((value, name), (value, baseline)) for value in parts for name in names]
        contrasts = contrasts_of(cells, metrics, twos, settings)
        for value, part in parts.items():
            here = {
                (name, baseline, text): contrasts[(value, name), (value, baseline), text]
                for name in names
                for text in metrics
            }
            trials = {
                name: {text: each[:, masks[value]] for text, each in of_metrics.items()}
                for name, of_metrics in in_trials.items()
            }
            rows = rows_of(part, metrics, baseline, settings, here, in_trials=trials)
            columns = [~np.isnan(plain_of(column)) for each in part.values() for column in each.values()]
            slices.append(Slice(by, value, int(np.any(columns, axis=0).sum()), tuple(rows)))
    return slices


def too_many(slicer: Slicer) -> dict[str, int]:
    """Return the columns that have too many slices to compare systems within each slice, and their slice counts."""
    counts = {by: len(set(slicer.texts(by))) for by in slicer.by}
    return {by: count for by, count in counts.items() if count > MOST_SLICES}


@dataclass(frozen=True)
class Extreme:
    """The slices of one column in which a system gains most and loses most, with the contrasts."""

    system: str
    overall: Contrast
    by: str
    gains: tuple[Slice, Contrast] | None
    loses: tuple[Slice, Contrast] | None


def extremes(rows: Sequence[Row], slices: Sequence[Slice], metric: str, *, higher_is_better: bool) -> Iterator[Extreme]:
    """Yield, for each system and column, the slices with the largest gain and the largest loss on one metric."""
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
            gain, loss = most[1:] if most[0] > SLACK else None, least[1:] if least[0] < -SLACK else None
            if gain or loss:
                yield Extreme(row.system, row.against, by, gain, loss)
