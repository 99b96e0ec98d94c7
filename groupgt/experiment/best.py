"""Selects the best system by one or several metrics (AutoRAG's strategies), with an optional latency limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from groupgt.comparison.draws import SLACK
from groupgt.evaluation.result import Evaluated
from groupgt.experiment.config import Evaluate
from groupgt.experiment.timing import Timing
from groupgt.experiment.yaml import Document
from groupgt.metrics.language import Metric, parse_metric
from groupgt.runtime import pl


@dataclass(frozen=True, eq=False)
class BestRule:
    """A rule that selects the best system by `metrics` (`texts` in the file), with an optional latency limit."""

    strategy: str
    texts: Sequence[str]
    metrics: Sequence[Metric]
    max_latency_ms: float | None

    @classmethod
    def of(cls, section: Evaluate, metrics: Mapping[str, Metric], convention: str) -> BestRule:
        """Build the rule from an experiment file. The metrics must be valid but need not be evaluated."""
        best, primary = section.best, section.primary or next(iter(metrics))
        texts = [primary] if best.strategy == "primary" else list(best.metrics or metrics)
        parsed = [metrics[text] if text in metrics else parse_metric(text, convention) for text in texts]
        return cls(best.strategy, texts, parsed, best.max_latency_ms)

    @property
    def is_timeless(self) -> bool:
        """Return True if the choice does not depend on latency."""
        return self.max_latency_ms is None

    @property
    def words(self) -> str:
        """The rule as text, for use in a sentence."""
        rule = self.texts[0] if self.strategy == "primary" else f"{self.strategy} of {', '.join(self.texts)}"
        return rule if self.is_timeless else f"{rule}, at most {self.max_latency_ms:g} ms per query (median)"

    def means_of(self, evaluation: Evaluated) -> list[float]:
        """Return the means that this rule compares."""
        return [evaluation.means[evaluation.text_of(text)] for text in self.texts]

    def chosen(self, means: Mapping[str, Sequence[float]]) -> list[str]:
        """Return the systems with the highest score, in the given order. The list is empty if there are no scores."""
        higher = [metric.higher_is_better for metric in self.metrics]
        values = scores(self.strategy, list(means.values()), higher) if means else []
        greatest = max((value for value in values if not math.isnan(value)), default=math.nan)
        return [name for name, value in zip(means, values) if abs(value - greatest) <= SLACK]

    def is_quick(self, timing: Timing | None) -> bool:
        """Return whether the median latency of single queries is known and within the limit."""
        if self.max_latency_ms is None:
            return True
        latency = None if timing is None else timing.latency_p50_ms
        return latency is not None and latency <= self.max_latency_ms


def check_best(document: Document, section: Evaluate, metrics: Mapping[str, Metric], convention: str) -> None:
    """Add an error to the document for each problem in `evaluate.best`."""
    path, best = ("evaluate", "best"), section.best
    if best.max_latency_ms is not None and section.timed == 0:
        document.fault((*path, "max_latency_ms"), "max_latency_ms needs timed queries, but evaluate.timed is 0")
    if best.strategy == "primary":
        if best.metrics:
            document.fault((*path, "metrics"), "the primary strategy uses only `evaluate.primary`; remove this key")
    elif best.strategy != "rank":
        rule = BestRule.of(section, metrics, convention)
        lower = [text for text, metric in zip(rule.texts, rule.metrics) if not metric.higher_is_better]
        if lower:
            what = f"needs metrics where higher is better, but lower is better for {', '.join(lower)}; omit them"
            document.fault((*path, "metrics"), f"{best.strategy} {what}")


def best_systems(
    rule: BestRule, evaluations: Mapping[str, Mapping[str, Evaluated]], timings: Mapping[tuple[str, str], Timing]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the best systems per data set and overall (by macro mean), including all ties."""
    best: dict[str, list[str]] = {}
    means_everywhere: dict[str, list[list[float]]] = {}
    for dataset, by_system in evaluations.items():
        quick = [name for name in by_system if rule.is_quick(timings.get((dataset, name)))]
        means = {name: rule.means_of(by_system[name]) for name in quick}
        best[dataset] = rule.chosen(means)
        for name, row in means.items():
            means_everywhere.setdefault(name, []).append(row)
    macro = {
        name: [math.fsum(column) / len(rows) for column in zip(*rows)]
        for name, rows in means_everywhere.items()
        if len(rows) == len(evaluations)
    }
    return best, rule.chosen(macro) if len(evaluations) > 1 else []


def scores(strategy: str, means: Sequence[Sequence[float]], higher: Sequence[bool]) -> list[float]:
    """Return the score of each system from its means, shape (systems, metrics). Higher is better.

    `primary` and `mean`: the average of the means. `rank`: Σ 1 ÷ rank of the system on each metric; tied systems share
    the average of their ranks. `normalized_mean`: the average of (m − min) ÷ (max − min) over systems, 0 if all are
    equal. A system with an undefined mean has no score.
    """
    table = np.array(means, dtype=np.float64) * np.where(np.array(higher, dtype=np.bool_), 1.0, -1.0)
    has_means = ~np.isnan(table).any(axis=1)
    if not has_means.any():
        return [math.nan] * len(table)
    values = table[has_means]
    if strategy == "rank":
        values = 1 / pl.DataFrame(values, orient="row").select(pl.all().rank("average", descending=True)).to_numpy()
    elif strategy == "normalized_mean":
        low, high = values.min(axis=0), values.max(axis=0)
        values = np.divide(values - low, high - low, out=np.zeros_like(values), where=high > low)
    parts = 1 if strategy == "rank" else values.shape[1]
    totals = np.full(len(table), np.nan)
    totals[has_means] = [math.fsum(row) / parts for row in values.tolist()]
    return totals.tolist()
