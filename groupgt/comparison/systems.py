"""The central table: systems × queries × metrics on one ground truth, and how systems compare.

A comparison, the figures and the page all use it. Expensive results are computed once, when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Generic, Literal, Self, TypeVar, overload

import numpy as np

from groupgt.comparison.contrast import (
    Contrast,
    Interval,
    Key,
    Pair,
    Row,
    Values,
    contrasts_of,
    mean_intervals,
    pairs_of,
    rows_of,
)
from groupgt.comparison.failures import Failures, Headroom, failures_of, headroom_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import Slice, reversals, slices_of, too_many
from groupgt.errors import ConfigError, listed, near_names
from groupgt.evaluation.estimates import plain_of
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.values import Budget
from groupgt.private import Hide

# Pairs times metrics, times queries, and times slices that are computed; beyond this, only those of the best system.
PAIRS = 400
NUMBERS = 500_000
WITHIN = 1_500

T = TypeVar("T")
Basis = Literal["", "audit", "annotators"]


class shared(Generic[T]):  # noqa: N801
    """A property that does not depend on the primary metric; tables that differ only in that metric share its value."""

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
class Systems:
    """Some systems on one ground truth, in the order of the tables: `values[system][metric]`, shape (Q,).

    `evaluations` has everything else that is known; it is empty if only values are known, and `population` and `rules`
    then describe what was measured. `passages` are the texts of documents, `absent` the ids of the ground truth that
    are not in the corpus, `scores` those of results that a run does not contain; `hide` removes secrets from texts.

    Systems are compared with the `baseline` by the metrics in `compared` (by all if it names none). Without a baseline
    nothing is compared, and means have no confidence intervals. `is_baseline_named` is whether the user named it;
    otherwise it is just the first.
    """

    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    convention: str
    values: Mapping[str, Mapping[str, Floats]]
    primary: str
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)
    absent: Collection[str] = ()
    scores: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    hide: Hide = field(default_factory=Hide)
    rules: str = ""
    baseline: str = ""
    settings: Settings = field(default_factory=Settings)
    compared: Sequence[str] = ()
    is_baseline_named: bool = True
    population: Sequence[str] = ()
    _computed: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, evaluations: Mapping[str, Evaluation], primary: str | None = None, **more: Any) -> Self:
        """A table from evaluations on one ground truth; the primary metric is the first by default."""
        first = next(iter(evaluations.values()))
        check_aggregates(first.metrics, "a page or figure")
        return cls(
            first.truth.qids,
            first.metrics,
            first.convention,
            {name: each.values for name, each in evaluations.items()},
            first.text_of(primary) if primary is not None else next(iter(first.metrics)),
            evaluations,
            **more,
        )

    def by(self, metric: str | None = None, **more: Any) -> Self:
        """Copies the table with all evaluated metrics and `metric` as the primary one; `more` are other fields."""
        requested = metric or self.primary
        if not self.evaluations:
            parsed = parse_metric(requested, self.convention)
            text = next((text for text, each in self.metrics.items() if each == parsed), next(iter(self.metrics)))
            return replace(self, primary=text, **more)
        values = {name: each.values for name, each in self.evaluations.items()}
        text, metrics = self.first.text_of(requested), self.first.metrics
        return replace(self, primary=text, metrics=metrics, values=values, compared=list(self._compared), **more)

    def only(self, names: Collection[str]) -> Self:
        """Copies the table with only some systems and the baseline; raises `ConfigError` for unknown systems."""
        for name in names:
            if name not in self.values:
                near = near_names(name, self.names)
                raise ConfigError(f"system: expected one of {listed(self.names)}, found {name!r}{near}")
        kept = [name for name in self.names if name in names or name == self.baseline]
        return replace(
            self,
            values={name: self.values[name] for name in kept},
            evaluations={name: each for name, each in self.evaluations.items() if name in kept},
            _computed={},
        )

    @property
    def _compared(self) -> dict[str, Metric]:
        return {text: self.metrics[text] for text in self.compared or self.metrics}

    @property
    def is_compared(self) -> bool:
        """Whether systems are compared by the primary metric."""
        return self.primary in self._compared

    @property
    def always(self) -> Sequence[str]:
        """The systems that figures always show, no matter how many there are."""
        return [self.baseline] if self.baseline and len(self.values) > 1 else []

    @cached_property
    def labels(self) -> dict[str, str]:
        """The name of each metric in tables: without the convention in force."""
        return {text: metric.label(text, self.convention) for text, metric in self.metrics.items()}

    @property
    def cutoff(self) -> int | Budget | None:
        """The cutoff within which a query must be complete: the primary metric's cutoff, or the entire ranking."""
        return self.metrics[self.primary].cutoff if self.evaluations else None

    @property
    def names(self) -> list[str]:
        """The systems, in their order."""
        return list(self.values)

    @property
    def every(self) -> list[Evaluation]:
        """The evaluations."""
        return list(self.evaluations.values())

    @property
    def first(self) -> Evaluation:
        """The first evaluation, for what all share."""
        return self.every[0]

    @property
    def label(self) -> str:
        """The name of the primary metric in tables."""
        return self.labels[self.primary]

    @property
    def higher(self) -> bool:
        """Whether higher values of the primary metric are better."""
        return self.metrics[self.primary].higher_is_better

    @property
    def audit(self) -> Evaluation | None:
        """The audit that corrects means and differences, if any."""
        return self.first.audit if self.evaluations else None

    @property
    def basis(self) -> Basis:
        """The basis of means and differences, if it is more than one ground truth."""
        if not self.evaluations:
            return ""
        return "audit" if self.first.audit else "annotators" if self.first.annotators else ""

    @cached_property
    def tested(self) -> Values:
        """The values used to test means and differences; with an audit or annotators, their values are included."""
        if not self.basis:
            return self.values
        return {name: self.evaluations[name].tested for name in self.values}

    @cached_property
    def means(self) -> dict[str, dict[str, float | None]]:
        """`means[system][metric]`, None if no query counts."""
        return {
            name: {text: finite(mean_of(columns[text])) for text in self.metrics}
            for name, columns in self.tested.items()
        }

    def mean(self, name: str) -> float | None:
        """The mean of a system by the primary metric."""
        return self.means[name][self.primary]

    def ends(self, name: str) -> tuple[float, float] | tuple[None, None]:
        """The ends of the confidence interval of that mean."""
        return self.intervals.get((name, self.primary)) or (None, None)

    def best_mean(self, metric: str) -> float | None:
        """The best mean that any system has by a metric."""
        means = [mean for name in self.names if (mean := self.means[name][metric]) is not None]
        choose = max if self.metrics[metric].higher_is_better else min
        return choose(means) if means else None

    @property
    def best(self) -> str | None:
        """The system with the best mean by the primary metric; the first of several."""
        return self.tied[0] if self.tied else None

    @property
    def tied(self) -> list[str]:
        """The systems with the best mean by the primary metric."""
        best = self.best_mean(self.primary)
        return [name for name in self.names if best is not None and self.mean(name) == best]

    def queries_of(self, name: str) -> int:
        """The number of queries in a system's mean by the primary metric."""
        return int((~np.isnan(plain_of(self.tested[name][self.primary]))).sum())

    def counts(self, evaluation: Evaluation) -> Bools:
        """Which queries count, shape (Q,)."""
        defined = evaluation.truth.judgments.defined
        return defined & evaluation.labelled.present if evaluation.policy.missing == "skip" else defined

    def solved(self, evaluation: Evaluation) -> Bools:
        """The queries that are complete within the cutoff, shape (Q,)."""
        last = views.completion_ranks(evaluation.labelled.hits)
        top = Cut.at(evaluation.labelled.hits, self.cutoff).top
        within: Bools = (last > 0) & (last <= top)
        return within

    @property
    def unsolved(self) -> int | None:
        """The number of queries that are complete for no system; None if only values are known."""
        if not self.evaluations:
            return None
        anybody = np.any([self.solved(each) for each in self.every], axis=0)
        counts = np.any([self.counts(each) for each in self.every], axis=0)
        return int((counts & ~anybody).sum())

    @cached_property
    def most_telling(self) -> Ints:
        """The positions of the queries, most informative first: those on which systems differ most, then the worst."""
        table = np.stack([columns[self.primary] for columns in self.values.values()])
        there = ~np.isnan(table)
        low = np.where(there, table, np.inf).min(axis=0)
        high = np.where(there, table, -np.inf).max(axis=0)
        counts = there.any(axis=0)
        spread = np.where(counts, high - low, -1.0)
        worst = np.where(counts, low if self.higher else -high, np.inf)
        return np.lexsort((np.arange(len(spread)), worst, -spread))

    @shared
    def rows(self) -> list[Row]:
        """A row for each system and metric, in their order."""
        return rows_of(self.tested, self._compared, self.baseline, self.settings) if self.baseline else []

    @shared
    def row_of(self) -> dict[tuple[str, str], Row]:
        """The rows by system and metric."""
        return {(row.system, row.metric): row for row in self.rows}

    @cached_property
    def intervals(self) -> Mapping[tuple[str, str], Interval | None]:
        """The confidence interval of the mean of each system by each metric; None if there is none."""
        intervals = {key: row.interval for key, row in self.row_of.items()}
        rest = {text: metric for text, metric in self.metrics.items() if text not in self._compared}
        if rest and self.baseline:
            intervals |= mean_intervals(self.tested, rest, self.settings)
        return {key: interval(ends) for key, ends in intervals.items()}

    @shared
    def slices(self) -> list[Slice]:
        """The comparison within each slice of `by`."""
        if not self.evaluations or not self.baseline:
            return []
        return slices_of(self.tested, self._compared, self.baseline, self.settings, self.first.slicer)

    @shared
    def left_out(self) -> dict[str, int]:
        """Columns of `by` with too many values to compare within each, and their numbers of values."""
        return too_many(self.first.slicer) if self.evaluations else {}

    @shared
    def pairs(self) -> list[Pair]:
        """All pairs of systems by every metric, with Tukey's HSD; empty unless `settings.pairs` is set."""
        return pairs_of(self.tested, self._compared, self.settings) if self.settings.pairs else []

    @cached_property
    def failures(self) -> Failures | None:
        """Which system covers which group within the cutoff of the primary metric; None if only values are known."""
        return failures_of(self.evaluations, self.cutoff) if self.evaluations else None

    @cached_property
    def headroom(self) -> list[Headroom]:
        """For each metric, the score of a perfect choice among the systems, or of all their results together."""
        if self.failures is None or self.basis:
            return []
        return headroom_of(self.evaluations, self.failures, list(self._compared))

    def reversals(self) -> list[tuple[Row, Slice, Row]]:
        """Slices in which a system gains although it loses overall, or vice versa."""
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
        """All pairs of systems without the baseline, by metric.

        Pairs by other metrics than the primary, and pairs without the best system, are left out if they are too many.
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
        """Those pairs within each slice (counted from 0), by the primary metric, unless there are too many."""
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
        return contrasts_of(self.tested, {text: self.metrics[text] for text in metrics}, twos, self.settings, among)

    @cached_property
    def has_clear_winner(self) -> bool:
        """Whether the system with the best mean differs significantly from every other, with uncorrected p-values.

        No further correction is needed, because all of the tests must reject.
        """
        if self.best is None or len(self.names) < 2:
            return False
        lead = self._contrasts([self.primary], [(self.best, name) for name in self.names if name != self.best])
        return all(contrast.raw_p_value <= self.settings.alpha for contrast in lead.values())

    def between(self, first: str, second: str) -> Contrast | None:
        """One system against another by the primary metric; None if that was not computed."""
        if second == self.baseline:
            return self.against_baseline.get(first)
        if first == self.baseline:
            return turned(self.against_baseline.get(second))
        contrast = self.others.get((first, second, self.primary))
        return contrast if contrast is not None else turned(self.others.get((second, first, self.primary)))

    def kind(self, name: str, metric: str | None = None) -> str:
        """Against the baseline: better, worse, not significant, or the baseline itself; empty if the system is alone.

        The metric is the primary one by default.
        """
        if not self.always:
            return ""
        if name == self.baseline:
            return "baseline"
        text = metric or self.primary
        row = self.row_of.get((name, text))
        contrast = self.against_baseline.get(name) if text == self.primary else row.against if row else None
        if contrast is None or not contrast.significant:
            return "not significant"
        return "better" if (contrast.delta > 0) == self.metrics[text].higher_is_better else "worse"


def turned(contrast: Contrast | None) -> Contrast | None:
    """The contrast of the second system against the first."""
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
    """The ends of an interval; None if there is none."""
    return None if math.isnan(ends[0]) else ends


def finite(value: float) -> float | None:
    """A number; None if it is not finite.

    >>> finite(0.5), finite(math.nan), finite(math.inf)
    (0.5, None, None)
    """
    return value if math.isfinite(value) else None
