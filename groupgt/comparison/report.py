"""The tables of the page that a comparison fills: every two systems, slices, headroom, and the verdict on differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from groupgt.comparison.contrast import Contrast, Row, Scored, bounds_of, comparisons, contrast, mean_intervals
from groupgt.comparison.result import Comparison
from groupgt.comparison.tests import SLACK, corrected
from groupgt.evaluation.report import Systems, template
from groupgt.model.hits import Bools
from groupgt.render import figures
from groupgt.render.figures import Figure
from groupgt.render.numbers import counted, p_text, signed
from groupgt.render.page import data

# Differences that are computed beyond those against the baseline: of two systems by one metric, times questions.
PAIRS = 400
NUMBERS = 1_000_000
WITHIN = 1_500
# Names that a sentence lists.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Differences:
    """A comparison with the systems it is of, as the page has them."""

    table: Comparison
    systems: Systems

    @classmethod
    def of(cls, table: Comparison, primary: str | None = None, **more: Any) -> Differences:
        """A comparison by its own systems, with more of `Systems`; the primary metric is the first, if none is named."""
        evaluations = table.evaluations
        intervals = {(row.system, row.metric): _interval(row.interval) for row in table.rows}
        if evaluations:
            first = next(iter(evaluations.values()))
            rest = [text for text in first.metrics if text not in table.metrics]
            scored = [Scored.of(name, each, rest) for name, each in evaluations.items()]
            intervals |= {key: _interval(ends) for key, ends in mean_intervals(scored, table.settings).items()}
            always = [table.baseline] if len(evaluations) > 1 else []
            systems = Systems.of(evaluations, primary, intervals=intervals, always=always, **more)
        else:
            one = table.systems[0]
            chosen = primary if primary in one.metrics else next(iter(one.metrics))
            values = {each.name: each.values for each in table.systems}
            systems = Systems(one.qids, one.metrics, one.convention, values, chosen, intervals=intervals)
        return cls(table, systems)

    @property
    def names(self) -> list[str]:
        """The systems, in their order."""
        return list(self.systems.values)

    def dataset(self, name: str) -> data.Dataset:
        """The tables of one data set, with what its systems are against one another."""
        dataset = self.systems.dataset(name)
        dataset["baseline"] = self.names.index(self.table.baseline) if len(self.names) > 1 else None
        dataset["contrasts"] = list(self._contrasts())
        dataset["tests"] = self._tests()
        dataset["headroom"] = self._headroom()
        dataset["verdict"] += [*self._sentences(), *self._doubts()]
        dataset["drawings"] |= self._drawings()
        return dataset

    # Differences

    @cached_property
    def rows(self) -> dict[tuple[str, str], Row]:
        """The rows of the comparison by system and metric."""
        return {(row.system, row.metric): row for row in self.table.rows}

    @cached_property
    def pairs(self) -> dict[tuple[str, str, str], Contrast]:
        """Every two systems that are not the baseline, by metric; p-values are corrected over all of these pairs."""
        names = [name for name in self.names if name != self.table.baseline]
        twos = list(combinations(names, 2))
        metrics = list(self.table.metrics)
        if self.systems.primary not in metrics:
            metrics.insert(0, self.systems.primary)
        if len(twos) * len(metrics) > PAIRS or len(twos) * len(metrics) * len(self.systems.qids) > NUMBERS:
            metrics = [self.systems.primary]
        if len(twos) > PAIRS or len(twos) * len(self.systems.qids) > NUMBERS:
            best = self.systems.best
            twos = [two for two in twos if best in two][:PAIRS]
        return self._corrected(twos, metrics, None)

    def _corrected(
        self, twos: Sequence[tuple[str, str]], metrics: Sequence[str], among: Bools | None
    ) -> dict[tuple[str, str, str], Contrast]:
        found: dict[tuple[str, str, str], Contrast] = {}
        if not twos:
            return found
        values = self.systems.values
        for text in metrics:
            metric = self.systems.metrics[text]
            columns = {
                name: own[text] if among is None else own[text][among]
                for name, own in values.items()
                if any(name in two for two in twos)
            }
            bounds = bounds_of(metric, list(columns.values()))
            own = contrast([columns[a] for a, _ in twos], [columns[b] for _, b in twos], metric, bounds, self.table.settings)
            found |= {(a, b, text): each for (a, b), each in zip(twos, own)}
        raw = np.array([each.raw_p_value for each in found.values()])
        p_values = corrected(self.table.settings.correction, raw).tolist()
        return {key: replace(each, p_value=p) for (key, each), p in zip(found.items(), p_values)}

    def _contrasts(self) -> Iterator[data.Contrast]:
        """All differences: against the baseline as the tables have them, then of all others, then within slices."""
        if len(self.names) < 2:
            return
        for row in self.table.rows:
            if row.against is not None:
                yield self._contrast(row.system, self.table.baseline, row.metric, row.against, significant=row.significant)
        for (first, second, text), each in self.pairs.items():
            yield self._contrast(first, second, text, each)
        places = {(part["by"], part["value"]): place for place, part in enumerate(self.systems.first.slices)} if self.systems.evaluations else {}
        for part in self.table.slices:
            within = places[part.by, part.value]
            for row in part.rows:
                if row.against is not None:
                    found = self._contrast(row.system, self.table.baseline, row.metric, row.against, significant=row.significant)
                    yield {**found, "within": within}
        for within, pairs in self._pairs_within():
            for (first, second, text), each in pairs.items():
                yield {**self._contrast(first, second, text, each), "within": within}

    def _pairs_within(self) -> Iterator[tuple[int, dict[tuple[str, str, str], Contrast]]]:
        """The same of every two systems in each slice, by the primary metric, where these are not too many."""
        if not self.systems.evaluations:
            return
        twos = [(a, b) for a, b, text in self.pairs if text == self.systems.primary]
        parts = list(self.systems.first.slicer)
        if len(parts) * len(twos) > WITHIN or len(twos) * len(self.systems.qids) > NUMBERS:
            return
        for within, (_, _, mask) in enumerate(parts):
            yield within, self._corrected(twos, [self.systems.primary], mask)

    def _contrast(
        self, first: str, second: str, text: str, each: Contrast, *, significant: bool | None = None
    ) -> data.Contrast:
        real = each.p_value <= self.table.settings.alpha if significant is None else significant
        return {
            "first": self.names.index(first),
            "second": self.names.index(second),
            "metric": list(self.systems.metrics).index(text),
            "delta": _known(each.delta),
            "interval": _interval(each.delta_interval),
            "pairs": each.pairs,
            "wins": each.wins,
            "ties": each.ties,
            "losses": each.losses,
            "raw": _known(each.raw_p_value),
            "p": _known(each.p_value),
            "effect": _known(each.effect_size),
            "significant": bool(real),
        }

    def between(self, first: str, second: str) -> Contrast | None:
        """One system against another by the primary metric, where that was computed."""
        if second == self.table.baseline:
            row = self.rows.get((first, self.systems.primary))
            return None if row is None else row.against
        found = self.pairs.get((first, second, self.systems.primary))
        if found is None and (other := self.pairs.get((second, first, self.systems.primary))) is not None:
            low, high = other.delta_interval
            found = replace(
                other, delta=-other.delta, delta_interval=(-high, -low), wins=other.losses, losses=other.wins
            )
        return found

    # Sentences

    def _tests(self) -> list[str]:
        """How differences were tested, as foot of the tables."""
        settings = self.table.settings
        kind = "not corrected" if settings.correction == "none" else f"corrected ({settings.correction})"
        over = counted(comparisons(self.table.rows), "comparison")
        told = [
            f"{settings.described}; significant at alpha {settings.alpha:g}; {100 * settings.intervals:g} % bootstrap intervals",
            f"p against the baseline {kind} over {over}",
        ]
        if self.pairs:
            told.append(f"p of other pairs {kind} over {counted(len(self.pairs), 'comparison')}")
        return told

    def _sentences(self) -> Iterator[data.Sentence]:
        best, baseline = self.systems.best, self.table.baseline
        if best is None or len(self.names) < 2:
            return
        if best == baseline:
            yield {"kind": "same", "parts": ["It is the baseline: no other system is better."]}
        elif (each := self.between(best, baseline)) is not None:
            yield self._lead("the baseline ", baseline, each, comparisons(self.table.rows))
        means = {name: own[self.systems.primary] for name, own in self.systems.means.items()}
        others = [name for name in self.names if name not in (best, baseline) and means[name] != means[best] and means[name] is not None]
        if others:
            choose = max if self.systems.higher else min
            following = choose(others, key=lambda name: means[name] or 0.0)
            if (next_best := self.between(best, following)) is not None:
                yield self._lead("the next best, ", following, next_best, len(self.pairs))
        yield from self._loss(best)

    def _lead(self, who: str, name: str, each: Contrast, over: int) -> data.Sentence:
        settings = self.table.settings
        real = each.p_value <= settings.alpha
        low, high = each.delta_interval
        between = "" if math.isnan(low) else f" (interval {signed(low)} to {signed(high)})"
        sure = "significantly, by" if real else "by"
        doubt = "" if real else ", which may be chance"
        note = "" if settings.correction == "none" else f", {settings.correction} over {counted(over, 'comparison')}"
        counts = f"better on {counted(each.wins, 'question')}, worse on {each.losses:,}"
        said = f" {sure} {signed(each.delta)}{between}{doubt}: {p_text(each.p_value)}{note}; {counts}."
        return {"kind": "gain" if real else "same", "parts": [f"It leads {who}", name, said]}

    def _loss(self, best: str) -> Iterator[data.Sentence]:
        """On what the best loses: slices in which it is worse than the baseline, or than the best of each."""
        baseline = self.table.baseline
        if best == baseline:
            return
        own = []
        for part in self.table.slices:
            row = part.index.get((best, self.systems.primary))
            if row is not None and row.pairs and (row.delta < -SLACK if self.systems.higher else row.delta > SLACK):
                own.append((row.delta if self.systems.higher else -row.delta, part, row))
        if not own:
            return
        _, part, row = min(own, key=lambda item: item[0])
        real = "significant" if row.significant else "not significant"
        text = f"It loses to the baseline where {part.by} = "
        yield {"kind": "loss", "parts": [text, part.value, f": {signed(row.delta)} over {counted(row.pairs, 'question')} ({real})."]}

    def _doubts(self) -> Iterator[data.Sentence]:
        failures = self.table.failures
        if failures is not None and failures.nobody:
            within = "" if failures.cutoff is None else f" within {_within(failures.cutoff)}"
            names = failures.nobody
            who = "No system meets" if len(self.names) > 1 else "It does not meet"
            parts = [f"{who} all groups{within} for {counted(len(names), 'question')} of {int(failures.counted.sum()):,}: "]
            for name in names[:NAMED]:
                parts += [name, ", "]
            parts[-1] = " …" if len(names) > NAMED else "."
            yield {"kind": "doubt", "parts": parts}
        for warning in self.table.warnings:
            text = warning.removeprefix("warning: ")
            yield {"kind": "doubt", "parts": [f"{text[:1].upper()}{text[1:]}."]}

    def _headroom(self) -> list[list[Any]]:
        return [
            [self.systems.metrics[each.metric].short(self.systems.convention), each.best, each.mean, each.per_query, each.queries]
            for each in self.table.headroom
        ]

    # Figures

    def figures(self) -> dict[str, Figure]:
        """The figures of differences, by name."""
        if len(self.names) < 2:
            return {}
        found = {"forest": self.forest(), "differences": self.differences(), "outcomes": self.outcomes()}
        others = [name for name in self.names if name != self.table.baseline]
        best = self.systems.best
        first = best if best in others else others[0]
        found["deltas"] = self.deltas(first)
        if self.table.slices:
            found["slice_differences"] = self.slices()
        return found

    def _drawings(self) -> dict[str, data.Drawing]:
        """Templates of the figures of differences."""
        if len(self.names) < 2:
            return {}
        label, baseline = self.systems.label, self.table.baseline
        about, mean = self.systems.about(label), {"value": None, "low": None, "high": None}
        sizes = {f"difference in {label}": "$label"}
        return {
            "forest": template(self.forest(), {label: "$label"}),
            "differences": template(self.differences(), sizes),
            "outcomes": template(self.outcomes(), {f"than {baseline}": "$label"}),
            "deltas": template(figures.deltas([], about, "", "", mean, bars=True), sizes),
            "deltas many": template(figures.deltas([], about, "", "", mean, bars=False), sizes),
        }

    def forest(self) -> Figure:
        """Means with their intervals, each marked by how it stands against the baseline."""
        rows = []
        for name, own in self.systems.means.items():
            low, high = self.systems.intervals.get((name, self.systems.primary)) or (None, None)
            rows.append({"name": name, "value": own[self.systems.primary], "low": low, "high": high, "kind": self._kind(name)})
        return figures.forest(rows, self.systems.about(self.systems.label))

    def _kind(self, name: str) -> str:
        row = self.rows.get((name, self.systems.primary))
        if name == self.table.baseline:
            return "baseline"
        if row is None or not row.significant:
            return "not significant"
        return "better" if (row.delta > 0) == self.systems.higher else "worse"

    def differences(self) -> Figure:
        """Differences against the baseline with their intervals."""
        rows = []
        for name in self.names:
            row = self.rows.get((name, self.systems.primary))
            if row is not None and row.against is not None:
                low, high = _interval(row.delta_interval) or (None, None)
                rows.append({"name": name, "value": _known(row.delta), "low": low, "high": high, "kind": self._kind(name)})
        about = self.systems.about(self.systems.label)
        return figures.forest(rows, about, delta=True, title=f"Differences against {self.table.baseline}")

    def outcomes(self) -> Figure:
        """Wins, ties and losses against the baseline."""
        rows = []
        for name in self.names:
            each = self.between(name, self.table.baseline) if name != self.table.baseline else None
            if each is not None:
                for outcome, count in (("better", each.wins), ("same", each.ties), ("worse", each.losses)):
                    rows.append({"system": name, "outcome": outcome, "count": count})
        return figures.outcomes(rows, self.systems.about(self.systems.label), self.table.baseline)

    def deltas(self, first: str, second: str | None = None) -> Figure:
        """The difference of every question, sorted."""
        second = second or self.table.baseline
        text, sign = self.systems.primary, 1 if self.systems.higher else -1
        differences = self.systems.values[first][text] - self.systems.values[second][text]
        known = [(sign * value, place) for place, value in enumerate(differences.tolist()) if not math.isnan(value)]
        rows = []
        for number, (value, place) in enumerate(sorted(known, key=lambda item: (-item[0], item[1])), 1):
            kind = "better" if value > SLACK else "worse" if value < -SLACK else "same"
            rows.append({"qid": self.systems.qids[place], "place": number, "delta": sign * value, "kind": kind})
        each = self.between(first, second)
        low, high = (None, None) if each is None else _interval(each.delta_interval) or (None, None)
        mean = {"value": None if each is None else _known(each.delta), "low": low, "high": high}
        return figures.deltas(rows, self.systems.about(self.systems.label), first, second, mean)

    def slices(self) -> Figure:
        """Differences against the baseline by slice."""
        rows = []
        most = 0.0
        for part in self.table.slices:
            for name in self.names:
                row = part.index.get((name, self.systems.primary))
                if row is None or row.against is None:
                    continue
                value = _known(row.delta)
                most = max(most, abs(value or 0.0))
                label = f"{part.by} = {part.value} ({row.pairs:,})"
                mark = "*" if row.significant else ""
                rows.append({"slice": label, "system": name, "value": value, "queries": row.pairs, "mark": mark})
        about = self.systems.about(self.systems.label, f"against {self.table.baseline}; * significant")
        return figures.slices(rows, about, delta=True, domain=(-(most or 1.0), most or 1.0))


def _within(cutoff: object) -> str:
    return f"the first {cutoff} results" if isinstance(cutoff, int) else str(cutoff)


def _interval(interval: tuple[float, float]) -> tuple[float, float] | None:
    return None if math.isnan(interval[0]) else interval


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
