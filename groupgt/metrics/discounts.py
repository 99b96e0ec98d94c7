"""Discounts by rank, and the sums of discounts that normalizers need. Nothing here grows with k."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from groupgt.model.hits import Floats, Ints

TABLE = 1 << 12
DIRECT = 1 << 16


@lru_cache(maxsize=1)
def _log2_table() -> Floats:
    # math.log2, not np.log2: vectorized logarithms differ in the last bit from one processor to the next.
    return np.array([math.inf] + [1.0 / math.log2(rank + 1) for rank in range(1, TABLE)])


def log2(rank: Ints) -> Floats:
    """1 ÷ log2(rank + 1)."""
    table = _log2_table()
    if not rank.size or int(rank.max()) < TABLE:
        result: Floats = table[rank]
        return result
    distinct, where = np.unique(rank, return_inverse=True)
    values = np.array([1.0 / math.log2(number + 1) for number in distinct.tolist()])
    return values[where]


def inverse(rank: Ints) -> Floats:
    """1 ÷ rank."""
    return 1.0 / rank


def power(base: float, exponent: Ints) -> Floats:
    """base ** exponent, each distinct exponent computed once and in the same way on every processor."""
    if not exponent.size:
        return np.zeros(0)
    highest = int(exponent.max())
    if highest < DIRECT:
        return np.array([base**number for number in range(highest + 1)])[exponent]
    distinct, where = np.unique(exponent, return_inverse=True)
    return np.array([base ** float(number) for number in distinct.tolist()])[where]


def geometric_sum(base: float, discount: Callable[[Ints], Floats], k: Ints) -> Floats:
    """Σ_{r=1..k} base^(r−1) · discount(r), for each k, shape (Q,); 0 ≤ base ≤ 1, discount is `log2` or `inverse`.

    Summed term by term while r ≤ 65,536 and continued by the Euler–Maclaurin formula beyond, so that k = 10^12 costs
    no more than k = 10^5 and memory does not depend on k.
    """
    distinct, where = np.unique(k, return_inverse=True)
    highest = int(min(distinct[-1], DIRECT)) if len(distinct) else 0
    ranks = np.arange(1, highest + 1, dtype=np.int64)
    head = np.concatenate(([0.0], np.cumsum(power(base, ranks - 1) * discount(ranks)))) if highest else np.zeros(1)
    values = head[np.minimum(distinct, highest)]
    for position in np.flatnonzero(distinct > DIRECT):
        values[position] += _tail(base, discount is log2, float(distinct[position]))
    result: Floats = values[where]
    return result


def _tail(base: float, logarithmic: bool, k: float) -> float:
    """Σ_{r=65,537..k} of the same terms: ∫ f + (f(k) − f(a)) ÷ 2 + (f'(k) − f'(a)) ÷ 12, a = 65,536."""
    if base == 0.0:
        return 0.0
    decay = math.log(base)

    def term(x: float) -> float:
        return math.exp(decay * (x - 1)) / (math.log2(x + 1) if logarithmic else x)

    def slope(x: float) -> float:
        relative = 1 / ((x + 1) * math.log(x + 1)) if logarithmic else 1 / x
        return term(x) * (decay - relative)

    start = float(DIRECT)
    # Beyond this point every term is below 1e-300 of the first.
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
