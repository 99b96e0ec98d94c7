"""Quantiles of the normal distribution and of Student's t distribution."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

# Beyond this many degrees of freedom, Student's quantile comes from a series expansion.
MANY_DEGREES = 1000


def normal_quantile(level: float) -> float:
    """Return the z such that a standard normal variable lies within ±z with probability `level`."""
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=64)
def student_quantile(level: float, degrees: int) -> float:
    """Return the t such that a Student's t variable lies within ±t with probability `level`.

    Uses bisection on the distribution function, a finite sum for integer degrees of freedom (Abramowitz & Stegun 26.7.3
    and 26.7.4), or the Cornish-Fisher expansion beyond 1,000 degrees of freedom.
    """
    z = normal_quantile(level)
    if degrees > MANY_DEGREES:
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / degrees + second / degrees**2
    low, high = z, 2 * z + 1
    while student_within(high, degrees) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_within(middle, degrees) < level else (low, middle)
    return high


def student_within(t: float, degrees: int) -> float:
    """Return the probability that a Student's t variable lies within ±t."""
    angle = math.atan(t / math.sqrt(degrees))
    squared, odd = math.cos(angle) ** 2, degrees % 2
    term, summed = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for step in range(1, (degrees - 1) // 2 + 1 if odd else degrees // 2 + 1):
        summed += term
        term *= squared * (2 * step) / (2 * step + 1) if odd else squared * (2 * step - 1) / (2 * step)
    share = math.sin(angle) * summed
    return 2 / math.pi * (angle + share) if odd else share
