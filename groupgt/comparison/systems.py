"""Define the table of systems × queries × metrics that comparisons, figures and the page use."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import combinations
from typing import Any, Literal, Self, TypeVar

import numpy as np

from groupgt.comparison.contrast import (
    NO_INTERVAL,
    Contrast,
    Interval,
    Key,
    Row,
    Values,
    among,
    contrasts_of,
    mean_intervals,
    rows_of,
)
from groupgt.comparison.draws import SLACK
from groupgt.comparison.headroom import Headroom, headroom_of
from groupgt.comparison.pairs import Pair, contrasts_of_pairs, pairs_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import Slice, slices_of, too_many
from groupgt.comparison.trials import all_builds, all_in_trials, over_builds
from groupgt.errors import ConfigError, listed, near_names
from groupgt.evaluation.estimates import mean_of, plain_of
from groupgt.evaluation.misses import Failures, failures_of
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.trials import noise_of
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.values import Budget
from groupgt.private import Hide

# Limits of pairs times metrics, times queries, and times slices; beyond them, only pairs with the best system.
PAIRS = 400
NUMBERS = 500_000
WITHIN = 1_500

# Fields that change only the presentation.
SHOWN = {"passages", "absent", "scores", "hide", "failed"}

T = TypeVar("T")
Basis = Literal["", "audit", "annotators"]


def shared(func: Callable[[Any], T]) -> cached_property[T]:
    """Make a cached property that `Systems.by` shares between tables that differ only in their primary metric."""

    @wraps(func)
    def once(table: Systems) -> T:
        if func.__name__ not in table._computed:
            table._computed[func.__name__] = func(table)
        value: T = table._computed[func.__name__]
        return value

    return cached_property(once)


@dataclass(frozen=True, eq=False, repr=False)
class Systems:
    """Systems evaluated on one ground truth, in table order. `values[system][metric]` has shape (Q,).

    `evaluations` is empty if only metric values are available. `policy` and `labeller` (empty if results were matched
    by id) then describe the measurement, and `means_of_builds` names systems whose values are means over builds. For
    systems from result folders, `population` names the folders, and `warned` contains their warnings. `passages` maps
    ids to texts, `absent` contains the ground-truth ids missing from the corpus, and `hide` removes secrets from texts.
    `failed` maps systems without results to the first line of the reason.

    Systems are compared with the `baseline` on the metrics in `compared` (default: all). Without a baseline, nothing is
    compared, and means have no confidence intervals. `is_baseline_named` is True if the user chose the baseline, and
    False if it is simply the first system.
    """

    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    convention: str
    values: Mapping[str, Mapping[str, Floats]]
    primary: str
    evaluations: Mapping[str, Evaluated] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)
    absent: Collection[str] = ()
    hide: Hide = field(default_factory=Hide)
    policy: Policy = field(default_factory=Policy)
    labeller: str = ""
    baseline: str = ""
    settings: Settings = field(default_factory=Settings)
    compared: Sequence[str] = ()
    is_baseline_named: bool = True
    population: Sequence[str] = ()
    warned: Sequence[str] = ()
    means_of_builds: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    # Not carried over by `replace`, so results are always computed again.
    _computed: dict[str, Any] = field(init=False, default_factory=dict)

    @classmethod
    def of(cls, evaluations: Mapping[str, Evaluated], primary: str | None = None, **more: Any) -> Self:
        """Build a table from evaluations on one ground truth. The primary metric defaults to the first."""
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
        """Copy the table with all evaluated metrics and `metric` as the primary one. `more` sets other fields."""
        requested = metric or self.primary
        if not self.evaluations:
            parsed = parse_metric(requested, self.convention)
            text = next((text for text, each in self.metrics.items() if each == parsed), next(iter(self.metrics)))
            other = replace(self, primary=text, **more)
        else:
            values = {name: each.values_per_query for name, each in self.evaluations.items()}
            text, metrics = (
                self.first.text_of(requested),
                {each: self.first.metrics[each] for each in values[self.names[0]]},
            )
            other = replace(self, primary=text, metrics=metrics, values=values, compared=list(self._compared), **more)
        if more.keys() <= SHOWN:
            # Another primary metric changes no comparison.
            object.__setattr__(other, "_computed", self._computed)
        return other

    def only(self, names: Collection[str]) -> Self:
        """Copy the table with the named systems and the baseline, or raise `ConfigError` for unknown systems."""
        for name in names:
            if name not in self.values:
                near = near_names(name, self.names)
                raise ConfigError(f"system: expected one of {listed(self.names)}, found {name!r}{near}")
        kept = [name for name in self.names if name in names or name == self.baseline]
        return replace(
            self,
            values={name: self.values[name] for name in kept},
            evaluations={name: each for name, each in self.evaluations.items() if name in kept},
        )

    @property
    def _compared(self) -> dict[str, Metric]:
        return {text: self.metrics[text] for text in self.compared or self.metrics}

    @property
    def is_compared(self) -> bool:
        """True if systems are compared on the primary metric."""
        return self.primary in self._compared

    @property
    def always(self) -> Sequence[str]:
        """Systems that figures always show, no matter how many systems there are."""
        return [self.baseline] if self.baseline and len(self.values) > 1 else []

    @cached_property
    def labels(self) -> dict[str, str]:
        """Metric names for tables, without the current convention."""
        return {text: metric.label(text, self.convention) for text, metric in self.metrics.items()}

    @property
    def cutoff(self) -> int | Budget | None:
        """The cutoff for completeness: the primary metric's cutoff, or None for the entire ranking."""
        return self.metrics[self.primary].cutoff if self.evaluations else None

    @property
    def names(self) -> list[str]:
        """Names of the systems, in table order."""
        return list(self.values)

    @property
    def every(self) -> list[Evaluated]:
        """All evaluations, in table order."""
        return list(self.evaluations.values())

    @property
    def first(self) -> Evaluated:
        """The first evaluation, used for properties that all evaluations share."""
        return self.every[0]

    @property
    def label(self) -> str:
        """The name of the primary metric in tables."""
        return self.labels[self.primary]

    @property
    def higher(self) -> bool:
        """True if higher values of the primary metric are better."""
        return self.metrics[self.primary].higher_is_better

    @property
    def extreme(self) -> str:
        """The word for the best mean of the primary metric: `highest` or `lowest`."""
        return "highest" if self.higher else "lowest"

    @property
    def audit(self) -> Evaluated | None:
        """The audit that corrects means and differences, or None."""
        return self.first.audit if self.evaluations else None

    @property
    def basis(self) -> Basis:
        """The basis for means and differences: `audit`, `annotators`, or empty for a single ground truth."""
        if not self.evaluations:
            return ""
        return "audit" if self.first.audit else "annotators" if self.first.annotators else ""

    @cached_property
    def tested(self) -> Values:
        """The values used for means and tests, including values from an audit or from annotators."""
        if not self.basis:
            return self.values
        return {name: self.evaluations[name].tested for name in self.values}

    @property
    def shown(self) -> Values:
        """One value per query for each system and metric, as tables show them."""
        return {name: each.shown for name, each in self.evaluations.items()} or self.values

    @property
    def annotators_differ(self) -> bool:
        """True if annotators give any query different values for the primary metric."""
        columns = [values[self.primary] for values in self.tested.values()] if self.basis == "annotators" else []
        return any(bool((np.ptp(column, axis=-1) > 0).any()) for column in columns)

    @cached_property
    def means(self) -> dict[str, dict[str, float | None]]:
        """Means by system and metric, `means[system][metric]`, or None if no query counts."""
        return {
            name: {text: finite(mean_of(columns[text])) for text in self.metrics}
            for name, columns in self.tested.items()
        }

    def mean(self, name: str) -> float | None:
        """Return a system's mean for the primary metric."""
        return self.means[name][self.primary]

    def ends(self, name: str) -> tuple[float, float] | tuple[None, None]:
        """Return the confidence interval for a system's mean of the primary metric."""
        return self.intervals.get((name, self.primary)) or (None, None)

    def is_best(self, name: str, metric: str) -> bool:
        """Return whether a system has the best mean for a metric, alone or tied."""
        mean, choose = self.means[name][metric], max if self.metrics[metric].higher_is_better else min
        means = [each for other in self.names if (each := self.means[other][metric]) is not None]
        return mean is not None and abs(mean - choose(means)) <= SLACK

    @property
    def best(self) -> str | None:
        """The system with the best mean for the primary metric, or the first by name if several are tied."""
        return self.tied[0] if self.tied else None

    @property
    def tied(self) -> list[str]:
        """All systems that share the best mean for the primary metric, by name."""
        return sorted(name for name in self.names if self.is_best(name, self.primary))

    def queries_of(self, name: str, metric: str | None = None) -> int:
        """Return the number of queries in a system's mean for a metric (default: the primary one)."""
        return int((~np.isnan(plain_of(self.tested[name][metric or self.primary]))).sum())

    def queries_over(self, metric: str) -> tuple[int, int]:
        """Return the smallest and the largest number of queries behind any of a metric's means."""
        numbers = [self.queries_of(name, metric) for name in self.names]
        return min(numbers), max(numbers)

    @cached_property
    def most_telling(self) -> Ints:
        """Query indices, sorted by the largest spread between systems, then by the lowest performance."""
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
        """Comparison rows for each system and metric, in table order."""
        if not self.baseline:
            return []
        rows = rows_of(
            self.tested, self._compared, self.baseline, self.settings, builds=self.builds, in_trials=self.in_trials
        )
        return self._for_queries(rows)

    @cached_property
    def in_trials(self) -> Values:
        """The values of systems in each of their trials, shape (r, Q), or nothing if means have another basis."""
        return {} if self.basis else all_in_trials(self.evaluations)

    @cached_property
    def builds(self) -> dict[str, dict[str, list[Floats]]]:
        """The values in each trial, by metric, of systems whose trials are builds."""
        unknown = [np.full((1, len(self.qids)), math.nan)]
        means = {name: dict.fromkeys(self.metrics, unknown) for name in self.means_of_builds}
        return {**means, **all_builds(self.evaluations)}

    def _for_queries(self, rows: Sequence[Row], queries: Bools | None = None) -> list[Row]:
        """Return rows in which intervals of means cover other trials of these queries, if the settings ask for it."""
        if self.settings.these_queries:
            return [replace(row, interval=self._for_these(row.system, row.metric, queries)) for row in rows]
        return [replace(row, interval=self._over_builds(row)) if row.system in self.builds else row for row in rows]

    def _over_builds(self, row: Row) -> Interval:
        sides = self.builds[row.system][row.metric]
        estimate = over_builds(self.tested[row.system][row.metric], sides) if sides else None
        bounds = (0.0, 1.0) if self.metrics[row.metric].definition.bounded else (-math.inf, math.inf)
        return row.interval if estimate is None else estimate.at(self.settings.confidence, bounds)

    def _for_these(self, name: str, metric: str, queries: Bools | None = None) -> Interval:
        noise = noise_of(self.evaluations[name], metric, self.settings.confidence, queries)
        return NO_INTERVAL if noise is None else noise.interval

    @shared
    def row_of(self) -> dict[tuple[str, str], Row]:
        """Comparison rows keyed by system and metric."""
        return {(row.system, row.metric): row for row in self.rows}

    @cached_property
    def intervals(self) -> Mapping[tuple[str, str], Interval | None]:
        """Confidence intervals for the means, keyed by system and metric, or None if undefined."""
        intervals = {key: row.interval for key, row in self.row_of.items()}
        rest = {text: metric for text, metric in self.metrics.items() if text not in self._compared}
        if rest and self.baseline and self.settings.these_queries:
            intervals |= {(name, text): self._for_these(name, text) for name in self.names for text in rest}
        elif rest and self.baseline:
            intervals |= mean_intervals(self.tested, rest, self.settings, self.in_trials)
        return {key: interval(ends) for key, ends in intervals.items()}

    @shared
    def slices(self) -> list[Slice]:
        """Comparisons within each slice."""
        if not self.evaluations or not self.baseline:
            return []
        slicer = self.first.slicer
        masks = {(by, value): mask for by, value, mask in slicer}
        slices = slices_of(self.tested, self._compared, self.baseline, self.settings, slicer, self.in_trials)
        if not self.settings.these_queries:
            return slices
        return [replace(part, rows=tuple(self._for_queries(part.rows, masks[part.by, part.value]))) for part in slices]

    @shared
    def left_out(self) -> dict[str, int]:
        """Slice columns that have too many values to compare systems within each slice, and their value counts."""
        return too_many(self.first.slicer) if self.evaluations else {}

    @shared
    def pairs(self) -> list[Pair]:
        """Comparisons of all pairs of systems, if `settings.pairs` is set."""
        return pairs_of(self.tested, self._compared, self.settings) if self.settings.pairs else []

    @cached_property
    def failures(self) -> Failures | None:
        """Groups covered by each system within the primary metric's cutoff, or None if only values are available."""
        return failures_of(self.evaluations, self.cutoff) if self.evaluations else None

    @cached_property
    def headroom(self) -> list[Headroom]:
        """Scores that a perfect choice among the systems, or a union of their results, would reach for each metric.

        The list is empty if there are trials, because a union of results grows with every trial.
        """
        if self.failures is None or self.basis or any(each.repeats for each in self.every):
            return []
        return headroom_of(self.evaluations, self.failures, list(self._compared))

    def reversals(self) -> list[tuple[Row, Slice, Row]]:
        """Return slices in which a system gains although it loses overall, or vice versa."""
        opposite = []
        for row in self.rows:
            for part in self.slices if row.against is not None else ():
                inner = part.index[row.system, row.metric]
                if inner.pairs and (row.delta or 0.0) * (inner.delta or 0.0) < 0:
                    opposite.append((row, part, inner))
        return opposite

    @cached_property
    def against_baseline(self) -> dict[str, Contrast]:
        """Contrasts between all other systems and the baseline, on the primary metric."""
        if self.is_compared:
            return {row.system: row.against for row in self.rows if row.metric == self.primary and row.against}
        twos = [(name, self.baseline) for name in self.names if name != self.baseline]
        contrasts = contrasts_of(self.tested, self._chosen([self.primary]), twos, self.settings, builds=self.builds)
        return {first: each for (first, *_), each in contrasts.items()}

    @cached_property
    def others(self) -> dict[Key, Contrast]:
        """Contrasts between all pairs of systems, excluding the baseline, keyed by systems and metric.

        If all `pairs` are requested, the result is their contrasts. Otherwise, if there are too many pairs, non-primary
        metrics and pairs without the best system are left out.
        """
        if self.pairs and self.is_compared:
            pairs = (each for each in self.pairs if self.baseline not in (each.first, each.second))
            return {(each.first, each.second, each.metric): each.against for each in pairs}
        primary, count = self.primary, len(self.qids)
        twos = list(combinations([name for name in self.names if name != self.baseline], 2))
        metrics = list(dict.fromkeys([primary, *self._compared]))
        if not self.is_compared or len(twos) * len(metrics) * max(1, count // 1000) > PAIRS:
            metrics = [primary]
        if len(twos) > PAIRS or len(twos) * count > NUMBERS:
            twos = [two for two in twos if self.best in two][:PAIRS]
        return contrasts_of_pairs(self.tested, self._chosen(metrics), twos, self.settings)

    def others_within(self) -> Iterator[tuple[int, dict[Key, Contrast]]]:
        """Yield slice indices with the primary metric's contrasts for pairs in `others`, unless there are too many."""
        if not self.evaluations:
            return
        twos = [(first, second) for first, second, text in self.others if text == self.primary]
        parts = list(self.first.slicer)
        if len(parts) * len(twos) > WITHIN or len(twos) * len(self.qids) > NUMBERS:
            return
        for place, (_, _, mask) in enumerate(parts):
            inside = among(self.tested, [self.primary], mask)
            yield place, contrasts_of_pairs(inside, self._chosen([self.primary]), twos, self.settings)

    @property
    def has_tested(self) -> bool:
        """True if a difference or an interval has been computed, both of which depend on the settings."""
        computed = {*vars(self), *self._computed}
        return bool(computed & {"rows", "slices", "pairs", "intervals", "against_baseline", "others", "lead"})

    def _chosen(self, metrics: Sequence[str]) -> dict[str, Metric]:
        return {text: self.metrics[text] for text in metrics}

    @cached_property
    def lead(self) -> dict[str, Contrast]:
        """Contrasts between the best system and every other on the primary metric, with uncorrected p-values."""
        best = self.best
        if best is None:
            return {}
        twos = [(best, name) for name in self.names if name != best]
        alone = replace(self.settings, correction="none")
        lead = contrasts_of(self.tested, self._chosen([self.primary]), twos, alone, builds=self.builds)
        return {name: contrast for (_, name, _), contrast in lead.items()}

    @property
    def has_clear_winner(self) -> bool:
        """True if the best system is significantly better than every other system, with uncorrected p-values.

        No correction is needed, because the best system must win every test.
        """
        return bool(self.lead) and all(contrast.standing == "better" for contrast in self.lead.values())

    def between(self, first: str, second: str) -> Contrast | None:
        """Return the contrast between two systems on the primary metric, or None if it was not computed."""
        if second == self.baseline:
            return self.against_baseline.get(first)
        if first == self.baseline:
            contrast, other = None, self.against_baseline.get(second)
        else:
            contrast, other = (self.others.get((*two, self.primary)) for two in ((first, second), (second, first)))
        return contrast if contrast is not None or other is None else other.turned

    def kind(self, name: str, metric: str | None = None) -> str:
        """Classify a system as `better`, `worse` or `not significant` against the baseline, or as `baseline` itself.

        Return an empty string if there are no other systems. The default metric is the primary one.
        """
        if not self.always:
            return ""
        if name == self.baseline:
            return "baseline"
        text = metric or self.primary
        row = self.row_of.get((name, text))
        contrast = self.against_baseline.get(name) if text == self.primary else row.against if row else None
        return "not significant" if contrast is None else contrast.standing


def interval(ends: Interval) -> Interval | None:
    """Return the interval, or None if it is undefined."""
    return None if math.isnan(ends[0]) else ends


def finite(value: float) -> float | None:
    """Return the number, or None if it is not finite."""
    return value if math.isfinite(value) else None
