"""Computes rank discounts and the gains of ideal rankings for normalization, at a cost that does not grow with k."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from groupgt.errors import MetricError
from groupgt.metrics.base import ratio
from groupgt.metrics.views import nth
from groupgt.model.hits import Floats, Ints, Judgments
from groupgt.model.values import total
from groupgt.records import record

TABLE = 1 << 12
DIRECT = 1 << 16


@lru_cache(maxsize=1)
def _log2_table() -> Floats:
    # math.log2, not np.log2: vectorized logarithms differ in the last bit between processors.
    return np.array([math.inf] + [1.0 / math.log2(rank + 1) for rank in range(1, TABLE)])


def log2(rank: Ints) -> Floats:
    """Return 1 ÷ log2(rank + 1)."""
    table = _log2_table()
    if not rank.size or int(rank.max()) < TABLE:
        return table[rank]
    distinct, where = np.unique(rank, return_inverse=True)
    return np.array([1.0 / math.log2(number + 1) for number in distinct.tolist()])[where]


def inverse(rank: Ints) -> Floats:
    """Return 1 ÷ rank."""
    return 1.0 / rank


def power(base: float, exponent: Ints) -> Floats:
    """Return base ** exponent, computed once per distinct exponent and with identical results on every processor."""
    if not exponent.size:
        return np.zeros(0)
    highest = int(exponent.max())
    if highest < DIRECT:
        return np.array([base**number for number in range(highest + 1)])[exponent]
    distinct, where = np.unique(exponent, return_inverse=True)
    return np.array([base ** float(number) for number in distinct.tolist()])[where]


def geometric_sum(base: float, discount: Callable[[Ints], Floats], k: Ints) -> Floats:
    """Return Σ_{r=1..k} base^(r−1) · discount(r) for each k, shape (Q,); 0 ≤ base ≤ 1.

    `discount` is `log2` or `inverse`. Terms up to r = 65,536 are added one by one. The Euler–Maclaurin formula covers
    the rest, so that k = 10^12 costs no more than k = 10^5 and memory does not depend on k.
    """
    distinct, where = np.unique(k, return_inverse=True)
    highest = int(min(distinct[-1], DIRECT)) if len(distinct) else 0
    ranks = np.arange(1, highest + 1, dtype=np.int64)
    head = np.concatenate(([0.0], np.cumsum(power(base, ranks - 1) * discount(ranks)))) if highest else np.zeros(1)
    values = head[np.minimum(distinct, highest)]
    for position in np.flatnonzero(distinct > DIRECT):
        values[position] += _tail(base, discount is log2, float(distinct[position]))
    return values[where]


def _tail(base: float, logarithmic: bool, k: float) -> float:
    """Return Σ_{r=65,537..k} of the same terms: ∫ f + (f(k) − f(a)) ÷ 2 + (f'(k) − f'(a)) ÷ 12, a = 65,536."""
    if base == 0.0:
        return 0.0
    decay = math.log(base)

    def term(x: float) -> float:
        return math.exp(decay * (x - 1)) / (math.log2(x + 1) if logarithmic else x)

    def slope(x: float) -> float:
        relative = 1 / ((x + 1) * math.log(x + 1)) if logarithmic else 1 / x
        return term(x) * (decay - relative)

    start = float(DIRECT)
    # Beyond this point every term is below 1e-300 times the first.
    end = min(k, start + 700 / -decay) if decay < 0 else k
    nodes, weights = np.polynomial.legendre.leggauss(24)
    integral, low = 0.0, math.log(start)
    high = math.log(end)
    pieces = max(1, math.ceil((high - low) * 16))
    for piece in range(pieces):
        left = low + (high - low) * piece / pieces
        right = low + (high - low) * (piece + 1) / pieces
        middle, half = (left + right) / 2, (right - left) / 2
        for node, weight in zip(nodes.tolist(), weights.tolist()):
            x = math.exp(middle + half * node)
            integral += weight * half * term(x) * x
    return integral + (term(end) - term(start)) / 2 + (slope(end) - slope(start)) / 12


HIGHEST_EXPONENT = 1000.0

Discount = Callable[[Ints], Floats]


@record
class IdealGains:
    """The gains of each query's ideal ranking by rank. Rows are sorted by query and rank."""

    query: Ints
    rank: Ints
    gain: Floats

    def discounted(self, judgments: Judgments, discount: Discount, depth: Ints | None) -> Floats:
        """Return Σ gain · discount(rank) over ranks ≤ depth, shape (Q,), summed in rank order as for runs."""
        terms = self.gain * discount(self.rank)
        if depth is not None:
            # Deeper ranks add 0.
            terms *= self.rank <= depth[self.query]
        return total(self.query, terms, judgments.size)


def descending(query: Ints, gain: Floats) -> IdealGains:
    """Sort gains within each query, largest first."""
    if not (np.all(query[1:] >= query[:-1]) and np.all((query[1:] != query[:-1]) | (gain[1:] <= gain[:-1]))):
        order = np.lexsort((-gain, query))
        query, gain = query[order], gain[order]
    return IdealGains(query, nth(query), gain)


def sorted_grades(judgments: Judgments, gain: str) -> IdealGains:
    """Return the gains of each query's relevant documents, highest grade first."""

    def make() -> IdealGains:
        grade = judgments.document_grade
        chosen = np.flatnonzero(grade > 0)
        return descending(judgments.document_query[chosen], gain_of(grade[chosen], gain, judgments))

    return judgments.once(("sorted grades", gain), make)


def gain_of(grade: Floats, gain: str, judgments: Judgments) -> Floats:
    """Return each grade's gain: the grade (`linear`) or 2^grade − 1 (`exp`). Raise `MetricError` if any is too high."""
    if gain == "linear":
        return grade
    highest = judgments.once("highest grade", lambda: float(judgments.alternative_grade.max(initial=0.0)))
    if highest > HIGHEST_EXPONENT:
        at = int(np.argmax(judgments.alternative_grade))
        qid = judgments.qid(int(judgments.alternative_query[at]))
        what = f"the gain 2^grade - 1 supports grades up to {HIGHEST_EXPONENT:g}, found {highest:g}"
        raise MetricError(f"query {qid!r}: {what}; use gain=linear, or smaller grades")
    # There are few distinct grades, and Python's power is identical on every processor.
    distinct, where = np.unique(grade, return_inverse=True)
    return np.array([exponential(each) for each in distinct.tolist()])[where] if len(distinct) else grade


def exponential(grade: float) -> float:
    """Compute 2^grade − 1 accurately, even for tiny grades."""
    return math.expm1(grade * math.log(2)) if abs(grade) < 1e-3 else 2.0**grade - 1.0


def share_of(reached: Floats, ideal: Floats) -> Floats:
    """Compute reached ÷ ideal, capped at 1. A ranking within rounding error of the ideal gets exactly 1."""
    share = ratio(reached, ideal)
    share[(ideal > 0) & (reached >= ideal * (1 - 1e-15))] = 1.0
    return share
