"""The one table: systems × queries × metrics on one ground truth, and how they stand against one another.

A comparison, the figures and the page all ask it; what it takes long to compute is computed once, when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Generic, Self, TypeVar, overload

from groupgt.comparison.contrast import (
    Contrast,
    Interval,
    Key,
    Pair,
    Row,
    contrasts_of,
    mean_intervals,
    pairs_of,
    rows_of,
)
from groupgt.comparison.failures import Failures, Headroom, failures_of, headroom_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import Slice, reversals, slices_of, too_many
from groupgt.evaluation.systems import Systems as SideBySide
from groupgt.evaluation.systems import largest_cutoff
from groupgt.metrics.language import parse_metric
from groupgt.model.hits import Bools

# Pairs times metrics, pairs times queries, and pairs times slices that are computed; of more, the best's alone.
PAIRS = 400
NUMBERS = 500_000
WITHIN = 1_500

T = TypeVar("T")


class shared(Generic[T]):  # noqa: N801
    """A property that does not depend on which metric is primary: it is computed once for tables that differ in it."""

    def __init__(self, func: Callable[[Any], T]) -> None:
        self.func, self.__doc__ = func, func.__doc__

    @overload
    def __get__(self, table: None, owner: type) -> Self: ...
    @overload
    def __get__(self, table: Systems, owner: type) -> T: ...
    def __get__(self, table: Systems | None, owner: type) -> Self | T:
        if table is None:
            return self
        name = self.func.__name__
        if name not in table._computed:
            table._computed[name] = self.func(table)
        value: T = table._computed[name]
        return value


@dataclass(frozen=True, eq=False, repr=False)
class Systems(SideBySide):
    """Some systems on one ground truth, in the order of the tables: `values[system][metric]`, shape (Q,).

    Those that are `compared` by these metrics (by all, where none is named) are held against the `baseline`; where
    there is none nothing is compared, and means have no intervals. `is_baseline_named` says whether somebody named it,
    or it is only the first. `population` says what was measured where there are no evaluations.
    """

    baseline: str = ""
    settings: Settings = field(default_factory=Settings)
    compared: Sequence[str] = ()
    is_baseline_named: bool = True
    population: Sequence[str] = ()
    _computed: dict[str, Any] = field(default_factory=dict)

    def by(self, metric: str | None = None, **more: Any) -> Self:
        """The same table, of all metrics that were evaluated, one of which is the primary; `more` are other fields."""
        wanted = metric or self.primary
        if not self.evaluations:
            asked = parse_metric(wanted, self.convention)
            text = next((text for text, each in self.metrics.items() if each == asked), next(iter(self.metrics)))
            return replace(self, primary=text, **more)
        values = {name: each.values for name, each in self.evaluations.items()}
        text, metrics = self.first.text_of(wanted), self.first.metrics
        return replace(self, primary=text, metrics=metrics, values=values, compared=self._compared, **more)

    @property
    def _compared(self) -> Sequence[str]:
        return self.compared or list(self.metrics)

    @property
    def is_compared(self) -> bool:
        """Whether systems are compared by the primary metric too."""
        return self.primary in self._compared

    @property
    def always(self) -> Sequence[str]:
        """Systems that figures show however many there are."""
        return [self.baseline] if self.baseline and len(self.values) > 1 else []

    @cached_property
    def labels(self) -> dict[str, str]:
        """What tables call each metric: without the convention in force."""
        return {text: metric.short(self.convention) for text, metric in self.metrics.items()}

    @shared
    def rows(self) -> list[Row]:
        """A row for each system and metric, in their order."""
        metrics = {text: self.metrics[text] for text in self._compared}
        return rows_of(self.values, metrics, self.baseline, self.settings) if self.baseline else []

    @shared
    def row_of(self) -> dict[tuple[str, str], Row]:
        """The rows by system and metric."""
        return {(row.system, row.metric): row for row in self.rows}

    @cached_property
    def intervals(self) -> Mapping[tuple[str, str], Interval | None]:
        """The interval of the mean of each system by each metric; None where there is none."""
        intervals = {key: row.interval for key, row in self.row_of.items()}
        rest = {text: metric for text, metric in self.metrics.items() if text not in self._compared}
        if rest and self.baseline:
            intervals |= mean_intervals(self.values, rest, self.settings)
        return {key: interval(ends) for key, ends in intervals.items()}

    @shared
    def slices(self) -> list[Slice]:
        """The comparison within each slice of `by`."""
        if not self.evaluations:
            return []
        metrics = {text: self.metrics[text] for text in self._compared}
        return slices_of(self.values, metrics, self.baseline, self.settings, self.first.slicer)

    @shared
    def left_out(self) -> dict[str, int]:
        """Columns of `by` with too many values to compare in each, and how many they have."""
        return too_many(self.first.slicer) if self.evaluations else {}

    @shared
    def pairs(self) -> list[Pair]:
        """Every two systems by every metric, with Tukey's HSD; none unless `settings.pairs` asks for them."""
        metrics = {text: self.metrics[text] for text in self._compared}
        return pairs_of(self.values, metrics, self.settings) if self.settings.pairs else []

    @shared
    def failures(self) -> Failures | None:
        """Who meets which group within the largest cutoff asked; None where only values are known."""
        cutoff = largest_cutoff(self.metrics[text] for text in self._compared)
        return failures_of(self.evaluations, cutoff) if self.evaluations else None

    @shared
    def headroom(self) -> list[Headroom]:
        """For each metric what a perfect choice among the systems, or all their results together, would reach."""
        return headroom_of(self.evaluations, self.failures, self._compared) if self.failures is not None else []

    def reversals(self) -> list[tuple[Row, Slice, Row]]:
        """Slices in which a system gains where it loses over all, or the other way round."""
        return list(reversals(self.rows, self.slices))

    @cached_property
    def against_baseline(self) -> dict[str, Contrast]:
        """Every other system compared with the baseline by the primary metric."""
        if self.is_compared:
            return {name: row.against for name in self.names if (row := self.row_of[name, self.primary]).against}
        twos = [(name, self.baseline) for name in self.names if name != self.baseline]
        return {first: each for (first, *_), each in self._contrasts([self.primary], twos).items()}

    @cached_property
    def others(self) -> dict[Key, Contrast]:
        """Every two systems neither of which is the baseline, by metric.

        By metrics other than the primary, and without the best, only where they are not too many.
        """
        primary, count = self.primary, len(self.qids)
        twos = list(combinations([name for name in self.names if name != self.baseline], 2))
        metrics = list(dict.fromkeys([primary, *self._compared]))
        if not self.is_compared or len(twos) * len(metrics) * max(1, count // 1000) > PAIRS:
            metrics = [primary]
        if len(twos) > PAIRS or len(twos) * count > NUMBERS:
            twos = [two for two in twos if self.best in two][:PAIRS]
        return self._contrasts(metrics, twos)

    def others_within(self) -> Iterator[tuple[int, dict[Key, Contrast]]]:
        """The same by the primary metric in each slice, counted from 0, where that is not too much."""
        if not self.evaluations:
            return
        twos = [(first, second) for first, second, text in self.others if text == self.primary]
        parts = list(self.first.slicer)
        if len(parts) * len(twos) > WITHIN or len(twos) * len(self.qids) > NUMBERS:
            return
        for place, (_, _, mask) in enumerate(parts):
            yield place, self._contrasts([self.primary], twos, mask)

    def _contrasts(
        self, metrics: Sequence[str], twos: Sequence[tuple[str, str]], among: Bools | None = None
    ) -> dict[Key, Contrast]:
        return contrasts_of(self.values, {text: self.metrics[text] for text in metrics}, twos, self.settings, among)

    @cached_property
    def has_clear_winner(self) -> bool:
        """Whether the system with the best mean differs significantly from every other, each p not corrected.

        That all of them must reject is the correction already.
        """
        if self.best is None or len(self.names) < 2:
            return False
        lead = self._contrasts([self.primary], [(self.best, name) for name in self.names if name != self.best])
        return all(contrast.raw_p_value <= self.settings.alpha for contrast in lead.values())

    def between(self, first: str, second: str) -> Contrast | None:
        """One system against another by the primary metric; None where that was not computed."""
        if second == self.baseline:
            return self.against_baseline.get(first)
        if first == self.baseline:
            return turned(self.against_baseline.get(second))
        contrast = self.others.get((first, second, self.primary))
        return contrast if contrast is not None else turned(self.others.get((second, first, self.primary)))

    def kind(self, name: str) -> str:
        """How a system stands against the baseline: better, worse, not significant, or baseline."""
        if name == self.baseline:
            return "baseline"
        contrast = self.against_baseline.get(name)
        if contrast is None or not contrast.significant:
            return "not significant"
        return "better" if (contrast.delta > 0) == self.higher else "worse"


def turned(contrast: Contrast | None) -> Contrast | None:
    """The second system against the first."""
    if contrast is None:
        return None
    low, high = contrast.delta_interval
    return replace(
        contrast,
        delta=-contrast.delta,
        delta_interval=(-high, -low),
        wins=contrast.losses,
        losses=contrast.wins,
        effect_size=-contrast.effect_size,
    )


def interval(ends: Interval) -> Interval | None:
    """The ends of an interval; None where there is none."""
    return None if math.isnan(ends[0]) else ends
