"""Pairs systems with counterparts of the same name and compares them query by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from groupgt.comparison.contrast import Contrast, Family, Values, bounds_of, contrasts_in
from groupgt.comparison.settings import Settings
from groupgt.evaluation.result import mean_of
from groupgt.metrics.language import Metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools


@dataclass(frozen=True, eq=False, kw_only=True)
class Beside:
    """Systems paired with counterparts of the same name, with values for every metric.

    `now` and `before` hold values for the same queries by name and metric, each of shape (Q,), with NaN for queries
    that do not count. Systems missing from `before` are not compared.
    """

    metrics: Mapping[str, Metric]
    primary: str
    settings: Settings
    now: Values
    before: Values
    _computed: dict[tuple[str, bytes], dict[str, Contrast]] = field(default_factory=dict, repr=False)

    def contrasts(self, metric: str | None = None, among: Bools | None = None) -> dict[str, Contrast]:
        """Compares each system with its counterpart by one metric, over all or some queries, as one family of tests."""
        metric = self.primary if metric is None else metric
        key = metric, b"" if among is None else among.tobytes()
        if key not in self._computed:
            names = [name for name in self.now if metric in self.before.get(name, {})]
            keep = slice(None) if among is None else among
            now, before = ([values[name][metric][keep] for name in names] for values in (self.now, self.before))
            parsed = self.metrics[metric]
            family = Family(parsed, now, before, bounds_of(parsed, [*now, *before]))
            self._computed[key] = dict(zip(names, contrasts_in([family], self.settings)[0])) if names else {}
        return self._computed[key]

    def means(self, name: str, metric: str) -> tuple[float, float]:
        """Returns the means of the counterpart and of the system over queries that count for both."""
        before, now = self.before[name][metric], self.now[name][metric]
        both = ~np.isnan(before) & ~np.isnan(now)
        return mean_of(before[both]), mean_of(now[both])


def texts_of(truth: GroundTruth) -> dict[str, str]:
    """Returns the texts of queries that have a text."""
    return {qid: text for qid, text in zip(truth.qids, truth.texts or ()) if text}


def reworded(qids: Iterable[str], texts: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """Returns the queries whose text differs between two data sets; texts that exist in only one are ignored.

    >>> reworded(["q1", "q2"], {"q1": "Who?", "q2": "When?"}, {"q1": "Who?", "q2": "Where?"})
    ['q2']
    """
    return [qid for qid in qids if texts.get(qid, others.get(qid)) != others.get(qid, texts.get(qid))]
