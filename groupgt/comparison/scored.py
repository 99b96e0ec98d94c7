"""What is compared: the values of one system for every query, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats

if TYPE_CHECKING:
    from groupgt.evaluation.result import Evaluation

__all__ = ["Scored", "bounds_of"]

Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Scored:
    """The values of one system, `values[text]` of shape (Q,), NaN where a query does not count."""

    name: str
    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    values: Mapping[str, Floats]
    convention: str

    @classmethod
    def of(cls, name: str, evaluation: Evaluation, texts: Sequence[str]) -> Scored:
        """What an evaluation found by these metrics."""
        metrics = {text: evaluation.metrics[text] for text in texts}
        values = {text: evaluation.values[text] for text in texts}
        return cls(name, evaluation.truth.qids, metrics, values, evaluation.convention)


def bounds_of(metric: Metric, columns: Sequence[Floats]) -> Bounds | None:
    """Between what the values of a metric lie; None where nothing bounds them."""
    highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=0.0)
    return (0.0, 1.0) if metric.definition.bounded and highest <= 1.0 else None
