"""Corrections of p-values for the number of comparisons that a table makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groupgt.model.hits import Floats

__all__ = ["CORRECTIONS", "corrected"]


def corrected(correction: str, p_values: Floats) -> Floats:
    """p-values corrected over all of them; NaN are no comparisons and stay.

    >>> corrected("holm", np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    found = np.array(p_values, dtype=np.float64)
    known = ~np.isnan(found)
    found[known] = CORRECTIONS[correction](found[known])
    return found


def holm(p_values: Floats) -> Floats:
    """Holm 1979: the i-th smallest times (number − i + 1), none below the one before it, at most 1."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    found = np.empty(len(order))
    found[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0) if len(order) else 0.0
    return found


def bonferroni(p_values: Floats) -> Floats:
    """Bonferroni: times their number, at most 1."""
    return np.minimum(p_values * len(p_values), 1.0)


CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "none": lambda p_values: p_values,
}
