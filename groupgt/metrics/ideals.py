"""Ideal rankings of all queries, as gains by rank; the gain of a grade; and values as a share of their ideal.

Metrics that normalize build their ideals from these: sorted gains where that is all there is to an ideal, and what
`covering` and `diversity` find where it is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from groupgt.errors import MetricError
from groupgt.model.hits import Floats, Ints, Judgments
from groupgt.model.sums import total

HIGHEST_EXPONENT = 1000.0

Discount = Callable[[Ints], Floats]


@dataclass(frozen=True, eq=False)
class IdealGains:
    """What an ideal ranking of each query gains at each rank: rows sorted by query and rank."""

    query: Ints
    rank: Ints
    gain: Floats

    def discounted(self, judgments: Judgments, discount: Discount, depth: Ints | None) -> Floats:
        """Σ gain · discount(rank) over ranks ≤ depth, shape (Q,), summed in rank order as a run's gains are."""
        terms = self.gain * discount(self.rank)
        if depth is None:
            return total(self.query, terms, judgments.size)
        kept = self.rank <= depth[self.query]
        return total(self.query[kept], terms[kept], judgments.size)


def descending(query: Ints, gain: Floats) -> IdealGains:
    """Gains sorted within each query, largest first."""
    order = np.lexsort((-gain, query))
    query = query[order]
    counts = np.bincount(query) if len(query) else np.zeros(0, dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    rank = np.arange(len(query), dtype=np.int64) - starts[query] + 1
    return IdealGains(query, rank, gain[order])


def sorted_grades(judgments: Judgments, gain: str) -> IdealGains:
    """The relevant documents of each query, highest grade first."""

    def make() -> IdealGains:
        grade = judgments.document_grade
        chosen = np.flatnonzero(grade > 0)
        return descending(judgments.document_query[chosen], gain_of(grade[chosen], gain, judgments))

    return judgments.once(("sorted grades", gain), make)


def gain_of(grade: Floats, gain: str, judgments: Judgments) -> Floats:
    """The gain of each grade: itself (`linear`), or 2^grade − 1 (`exp`); `MetricError` for grades too high for that."""
    if gain == "linear":
        return grade
    highest = judgments.once("highest grade", lambda: float(judgments.alternative_grade.max(initial=0.0)))
    if highest > HIGHEST_EXPONENT:
        at = int(np.argmax(judgments.alternative_grade))
        qid = judgments.qid(int(judgments.alternative_query[at]))
        raise MetricError(
            f"query {qid!r}: the gain 2^grade - 1 takes grades up to {HIGHEST_EXPONENT:g}, found {highest:g}; "
            "use gain=linear, or smaller grades"
        )
    # Distinct grades are few, and Python's power has the same bits on every processor.
    distinct, where = np.unique(grade, return_inverse=True)
    return np.array([exponential(each) for each in distinct.tolist()])[where] if len(distinct) else grade


def exponential(grade: float) -> float:
    """2^grade − 1; a tiny grade keeps its digits."""
    return math.expm1(grade * math.log(2)) if abs(grade) < 1e-3 else 2.0**grade - 1.0


def share_of(reached: Floats, ideal: Floats) -> Floats:
    """reached ÷ ideal, capped at 1; a ranking within rounding of the ideal is 1 and not 0.9999999999999999."""
    share = np.zeros(len(reached))
    np.divide(reached, ideal, out=share, where=ideal > 0)
    share[(ideal > 0) & (reached >= ideal * (1 - 1e-15))] = 1.0
    return share
