"""Sums by key, added one after the other in the order of rows: a query's bits never depend on another query's rows."""

from __future__ import annotations

import numpy as np

from groupgt.model.hits import Floats, Ints

__all__ = ["total"]


def total(key: Ints, terms: Floats, size: int) -> Floats:
    """Σ terms for each key, shape (size,).

    >>> total(np.array([0, 0, 2]), np.array([1.0, 2.0, 4.0]), 3).tolist()
    [3.0, 0.0, 4.0]
    """
    return np.bincount(key, terms, minlength=size).astype(np.float64, copy=False)
