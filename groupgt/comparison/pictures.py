"""The figures that a comparison can draw, and what they ask for: any of its systems against any other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from groupgt.comparison.compare import Comparison
from groupgt.comparison.contrast import Contrast, Row, Scored, bounds_of, contrast, mean_intervals
from groupgt.comparison.tests import SLACK, corrected
from groupgt.errors import ConfigError, near_names
from groupgt.evaluation import pictures
from groupgt.evaluation.systems import Systems, known
from groupgt.metrics.language import parse_metric
from groupgt.model.hits import Bools
from groupgt.render import figures
from groupgt.render.drawing import Figure

# Pairs times metrics, pairs times questions, and pairs times slices that are computed; of more, the best's alone.
PAIRS = 400
NUMBERS = 500_000
WITHIN = 1_500

Key = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class Differences:
    """A comparison with the systems it is of; `systems.primary` is the metric that decides.

    `has_baseline` says whether somebody named the baseline, or it is only the first.
    """

    table: Comparison
    systems: Systems
    has_baseline: bool = True

    @classmethod
    def of(cls, table: Comparison, primary: str | None = None, **more: Any) -> Differences:
        """A comparison by its own systems; `more` are fields of `Systems`.

        The primary metric is that of the comparison, where none is named.
        """
        intervals = {(row.system, row.metric): interval(row.interval) for row in table.rows}
        chosen = primary or table.primary or next(iter(table.metrics))
        if not table.evaluations:
            one = table.systems[0]
            values = {each.name: each.values for each in table.systems}
            wanted = parse_metric(chosen, one.convention)
            text = next((text for text, metric in one.metrics.items() if metric == wanted), next(iter(one.metrics)))
            alone = Systems(one.qids, one.metrics, one.convention, values, text, intervals=intervals, rules=table.rules)
            return cls(table, alone)
        first = next(iter(table.evaluations.values()))
        rest = [text for text in first.metrics if text not in table.metrics]
        if rest:
            scored = [Scored.of(name, each, rest) for name, each in table.evaluations.items()]
            intervals |= {key: interval(ends) for key, ends in mean_intervals(scored, table.settings).items()}
        always = [table.baseline] if len(table.evaluations) > 1 else []
        return cls(table, Systems.of(table.evaluations, chosen, intervals=intervals, always=always, **more))

    @cached_property
    def rows(self) -> dict[tuple[str, str], Row]:
        """The rows of the comparison by system and metric."""
        return {(row.system, row.metric): row for row in self.table.rows}

    @property
    def is_compared(self) -> bool:
        """Whether the comparison is by the primary metric too."""
        return self.systems.primary in self.table.metrics

    @cached_property
    def pairs(self) -> dict[Key, Contrast]:
        """Every two systems that the comparison does not hold against one another, by metric.

        p-values are corrected over all of these. By metrics other than the primary, and without the best, only where
        they are not too many.
        """
        primary, count = self.systems.primary, len(self.systems.qids)
        names = [name for name in self.systems.names if name != self.table.baseline or not self.is_compared]
        twos = list(combinations(names, 2))
        metrics = list(dict.fromkeys([primary, *self.table.metrics]))
        if not self.is_compared or len(twos) * len(metrics) * max(1, count // 1000) > PAIRS:
            metrics = [primary]
        if len(twos) > PAIRS or len(twos) * count > NUMBERS:
            twos = [two for two in twos if self.systems.best in two][:PAIRS]
        return self._corrected(twos, metrics)

    def within(self) -> Iterator[tuple[int, dict[Key, Contrast]]]:
        """The same by the primary metric in each slice, counted from 0, where that is not too much."""
        if not self.systems.evaluations:
            return
        twos = [(first, second) for first, second, text in self.pairs if text == self.systems.primary]
        parts = list(self.systems.first.slicer)
        if len(parts) * len(twos) > WITHIN or len(twos) * len(self.systems.qids) > NUMBERS:
            return
        for place, (_, _, mask) in enumerate(parts):
            yield place, self._corrected(twos, [self.systems.primary], mask)

    def _corrected(
        self, twos: Sequence[tuple[str, str]], metrics: Sequence[str], among: Bools | None = None
    ) -> dict[Key, Contrast]:
        settings = self.table.settings
        found: dict[Key, Contrast] = {}
        for text in metrics if twos else ():
            metric = self.systems.metrics[text]
            columns = {
                name: own[text] if among is None else own[text][among] for name, own in self.systems.values.items()
            }
            bounds = bounds_of(metric, list(columns.values()))
            firsts, seconds = [columns[first] for first, _ in twos], [columns[second] for _, second in twos]
            own = contrast(firsts, seconds, metric, bounds, settings)
            found |= {(first, second, text): each for (first, second), each in zip(twos, own)}
        p_values = corrected(settings.correction, np.array([each.raw_p_value for each in found.values()])).tolist()
        return {key: replace(each, p_value=p) for (key, each), p in zip(found.items(), p_values)}

    def between(self, first: str, second: str) -> Contrast | None:
        """One system against another by the primary metric; None where that was not computed."""
        primary = self.systems.primary
        if second == self.table.baseline and self.is_compared:
            return self.rows[first, primary].against
        if first == self.table.baseline and self.is_compared:
            return turned(self.rows[second, primary].against)
        found = self.pairs.get((first, second, primary))
        return found if found is not None else turned(self.pairs.get((second, first, primary)))

    def kind(self, name: str) -> str:
        """How a system stands against the baseline: better, worse, not significant, or baseline."""
        if name == self.table.baseline:
            return "baseline"
        each = self.between(name, self.table.baseline)
        if each is None or not each.p_value <= self.table.settings.alpha:
            return "not significant"
        return "better" if (each.delta > 0) == self.systems.higher else "worse"


def turned(each: Contrast | None) -> Contrast | None:
    """The second system against the first."""
    if each is None:
        return None
    low, high = each.delta_interval
    ends = (-high, -low)
    effect = -each.effect_size
    return replace(each, delta=-each.delta, delta_interval=ends, wins=each.losses, losses=each.wins, effect_size=effect)


def interval(ends: tuple[float, float]) -> tuple[float, float] | None:
    """The ends of an interval; None where there is none."""
    return None if math.isnan(ends[0]) else ends


def drawable(found: Differences) -> dict[str, Callable[[], Figure]]:
    """The figures that can be drawn, by name."""
    known_figures = pictures.drawable(found.systems)
    if len(found.systems.names) > 1:
        known_figures |= {
            "forest": lambda: forest(found),
            "differences": lambda: differences(found),
            "deltas": lambda: deltas(found),
            "outcomes": lambda: outcomes(found),
            "power": lambda: found.table.power().plot(),
        }
    return known_figures


def forest(found: Differences) -> Figure:
    """Means with their intervals, each marked by how it stands against the baseline."""
    systems = found.systems
    rows = []
    for name in systems.names:
        low, high = systems.ends(name)
        rows.append({"name": name, "value": systems.mean(name), "low": low, "high": high, "kind": found.kind(name)})
    return figures.forest(rows, systems.about(systems.label))


def differences(found: Differences) -> Figure:
    """Differences against the baseline with their intervals."""
    systems, baseline = found.systems, found.table.baseline
    rows = []
    for name in systems.names:
        each = None if name == baseline else found.between(name, baseline)
        if each is not None:
            low, high = interval(each.delta_interval) or (None, None)
            rows.append({"name": name, "value": known(each.delta), "low": low, "high": high, "kind": found.kind(name)})
    return figures.forest(rows, systems.about(systems.label), delta=True, title=f"Differences against {baseline}")


def outcomes(found: Differences) -> Figure:
    """Wins, ties and losses against the baseline."""
    baseline = found.table.baseline
    rows: list[dict[str, Any]] = []
    for name in found.systems.names:
        each = None if name == baseline else found.between(name, baseline)
        if each is not None:
            counts = {"better": each.wins, "same": each.ties, "worse": each.losses}
            rows += [{"system": name, "outcome": outcome, "count": count} for outcome, count in counts.items()]
    return figures.outcomes(rows, found.systems.about(found.systems.label), baseline)


def deltas(found: Differences, first: str | None = None, second: str | None = None) -> Figure:
    """The difference of every question, sorted: of the best, or the first, system against the baseline."""
    systems, baseline = found.systems, found.table.baseline
    against = second or baseline
    others = [name for name in systems.names if name != against]
    chosen = first or (systems.best if systems.best in others else others[0])
    for name in (chosen, against):
        if name not in systems.values:
            raise ConfigError(f"system {name!r} was not compared{near_names(str(name), systems.names)}")
    sign = 1 if systems.higher else -1
    values = [systems.values[name][systems.primary] for name in (str(chosen), against)]
    gains = [
        (sign * gain, place) for place, gain in enumerate((values[0] - values[1]).tolist()) if not math.isnan(gain)
    ]
    rows = []
    for number, (gain, place) in enumerate(sorted(gains, key=lambda item: (-item[0], item[1])), 1):
        kind = "better" if gain > SLACK else "worse" if gain < -SLACK else "same"
        rows.append({"qid": systems.qids[place], "place": number, "delta": sign * gain, "kind": kind})
    each = found.between(str(chosen), against)
    low, high = (None, None) if each is None else interval(each.delta_interval) or (None, None)
    mean = {"value": None if each is None else known(each.delta), "low": low, "high": high}
    return figures.deltas(rows, systems.about(systems.label), str(chosen), against, mean)
