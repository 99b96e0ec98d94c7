"""Sums that do not depend on the order of their terms, and sums by key."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from groupgt.model.hits import Floats, Ints

# The least double is one unit: every double is a whole number of them.
SCALE = 1074
HALF = 32


def exact_sum(values: Floats) -> int:
    """The sum of finite doubles in units of 2^−1074: a whole number, so that sums of parts add up exactly.

    >>> exact_sum(np.array([0.5, 0.25])) == 3 << 1072
    True
    """
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    # Doubles below the normal ones have fewer bits: what is shifted out of them is zero.
    place = exponent.astype(np.int64) - 53 + SCALE
    total = 0
    for each in np.unique(place).tolist():
        own = whole[place == each]
        # In halves, so that 2^31 of them fit 64 bits.
        part = (int((own >> HALF).sum()) << HALF) + int((own & ((1 << HALF) - 1)).sum())
        total += part << each if each >= 0 else part >> -each
    return total


def rounded(parts: Iterable[int]) -> float:
    """The double nearest to the sum of such parts.

    >>> rounded([exact_sum(np.array([0.1] * 10))])
    1.0
    """
    return sum(parts) / (1 << SCALE)


def total(key: Ints, terms: Floats, size: int) -> Floats:
    """Σ terms for each key, shape (size,).

    >>> total(np.array([0, 0, 2]), np.array([1.0, 2.0, 4.0]), 3).tolist()
    [3.0, 0.0, 4.0]
    """
    return np.bincount(key, terms, minlength=size).astype(np.float64, copy=False)
