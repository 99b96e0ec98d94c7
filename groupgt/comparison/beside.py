"""Pairs systems with counterparts of the same name, and compares them query by query."""

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
    """Some systems, each paired with another one, by every metric.

    `now` and `before` are the values of the same queries by name and metric, shape (Q,) each: NaN if a query does not
    count. Names that are not in `before` are not compared.
    """

    metrics: Mapping[str, Metric]
    primary: str
    settings: Settings
    now: Values
    before: Values
    _computed: dict[tuple[str, bytes], dict[str, Contrast]] = field(default_factory=dict, repr=False)

    def contrasts(self, metric: str | None = None, among: Bools | None = None) -> dict[str, Contrast]:
        """Compares each system with its counterpart by one metric, over all or some queries: one family."""
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
        """The means of the counterpart and of this system, over the queries that count for both."""
        before, now = self.before[name][metric], self.now[name][metric]
        both = ~np.isnan(before) & ~np.isnan(now)
        return mean_of(before[both]), mean_of(now[both])


def texts_of(truth: GroundTruth) -> dict[str, str]:
    """The texts of queries that have one."""
    return {qid: text for qid, text in zip(truth.qids, truth.texts or ()) if text}


def reworded(qids: Iterable[str], texts: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """The queries whose text differs in the other data set; a text that only one of the two has is ignored.

    >>> reworded(["q1", "q2"], {"q1": "Who?", "q2": "When?"}, {"q1": "Who?", "q2": "Where?"})
    ['q2']
    """
    return [qid for qid in qids if texts.get(qid, others.get(qid)) != others.get(qid, texts.get(qid))]
