"""Means under a model's judgments, corrected by an annotator's judgments of a random sample of the queries.

For a query, f is the metric under the model's ground truth and Y under the annotator's. A is the sample of n queries, B
the N others:

    c = Σ_A (Y − Ȳ)(f − f̄) ÷ n,   v = Σ_{A∪B} (f − mean f)² ÷ (n + N − 1),   λ = c ÷ ((1 + n÷N) v), within 0 and 1
    corrected = λ · mean_B f + mean_A (Y − λ f)
    variance = λ² v ÷ N + s² ÷ n,   s² = (Σ_A (r − mean r)² + 2 h²) ÷ (n + 1),   r = Y − λ f

and the interval is corrected ± t · √variance with n − 1 degrees of freedom, cut to the range of the metric. h is half
of that range: without it, samples whose values are all 0 or all 1 would give intervals without width. λ is 0 if all
values of the model are equal, or if every query is in the sample. Queries without a value count as 0 on both sides.

Source: Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv 2311.01453; the term in h is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from groupgt.evaluation.quantiles import student_quantile
from groupgt.model.hits import Bools, Floats

# Fewer audited queries say too little about the model.
FEWEST = 10


@dataclass(frozen=True)
class Corrected:
    """A mean, corrected by an audit, and its parts.

    `judged` is the mean under the model's ground truth over all queries, `audited` the annotator's over the sample.
    `effective` is the number of audited queries that would give an interval of this width without the model.
    """

    mean: float
    interval: tuple[float, float]
    judged: float
    audited: float
    effective: float
    weight: float
    sample: int
    queries: int

    @property
    def saved(self) -> float:
        """The number of audited queries that the model's judgments save."""
        return self.effective - self.sample


def corrected(
    judged: Floats, audited: Floats, is_audited: Bools, bounds: tuple[float, float], level: float = 0.95
) -> Corrected:
    """The corrected mean of a metric within bounds.

    Args:
        judged: The metric under the model's ground truth, for every query, shape (Q,).
        audited: The metric under the annotator's, for the sample, in the same order, shape (n,).
        is_audited: Which queries are in the sample, shape (Q,).
        bounds: The lowest and the highest possible value.
        level: The confidence level of the interval.

    >>> import numpy as np
    >>> judged = np.array([1.0, 1.0, 0.0, 1.0] * 10)
    >>> found = corrected(judged, np.array([1.0, 0.0, 0.0, 1.0] * 5), np.arange(40) < 20, (0.0, 1.0))
    >>> found.judged, found.audited, round(found.mean, 4), round(found.weight, 4)
    (0.75, 0.5, 0.5, 0.325)
    """
    n, others = int(is_audited.sum()), int((~is_audited).sum())
    inside = judged[is_audited]
    v = float(judged.var(ddof=1)) if len(judged) > 1 else 0.0
    weight = 0.0
    if v > 0 and others:
        c = float(((audited - audited.mean()) * (inside - inside.mean())).mean())
        weight = min(max(c / ((1 + n / others) * v), 0.0), 1.0)
    half = (bounds[1] - bounds[0]) / 2
    rest = audited - weight * inside
    mean = float(rest.mean()) + (weight * float(judged[~is_audited].mean()) if others else 0.0)
    variance = _spread(rest, half) / n + (weight**2 * v / others if others else 0.0)
    reach = student_quantile(level, n - 1) * math.sqrt(variance)
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in (mean - reach, mean + reach))
    return Corrected(
        mean=mean,
        interval=(low, high),
        judged=float(judged.mean()),
        audited=float(audited.mean()),
        effective=_spread(audited, half) / variance,
        weight=weight,
        sample=n,
        queries=len(judged),
    )


def _spread(values: Floats, half: float) -> float:
    """The variance of a query, s², as if two more values had been half of the range away from the mean."""
    return (float(((values - values.mean()) ** 2).sum()) + 2 * half**2) / (len(values) + 1)
