"""Find comparisons that a test cannot decide, because few queries differ or too few resamples are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from groupgt.comparison.contrast import Contrast
from groupgt.comparison.draws import ENOUGH, SLACK
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import CORRECTIONS, TESTS, corrected

K = TypeVar("K")


def least_p(contrast: Contrast, settings: Settings) -> float:
    """Return the least p-value possible: 2 ÷ 2^m if m queries differ in one direction, or 1 ÷ (1 + resamples)."""
    if math.isnan(contrast.raw_p_value):
        return math.nan
    if counts_signs(contrast, settings):
        return min(1.0, 2.0 ** (1 - contrast.differ))
    return 1 / (1 + settings.resamples) if settings.draws else 0.0


def counts_signs(contrast: Contrast, settings: Settings) -> bool:
    """Return whether the number of differing queries limits the p-value, because all sign patterns are counted."""
    test = TESTS[settings.test]
    return not test.compares_means or (test.is_exact and contrast.differ < ENOUGH)


def out_of_reach(contrasts: Mapping[K, Contrast], settings: Settings, correction: str = "") -> dict[K, float]:
    """Return the comparisons of a family that cannot be significant, with the smallest corrected p-values possible."""
    least = np.array([least_p(each, settings) for each in contrasts.values()])
    correction = correction or settings.corrects
    # Methods that decide all pairs together reach the smallest p-value of a single pair.
    best = corrected(correction if correction in CORRECTIONS else "none", least).tolist()
    return {
        name: p for (name, each), p in zip(contrasts.items(), best) if each.differ and p > settings.alpha * (1 + SLACK)
    }


def fewest_differing(alpha: float, comparisons: float = 1) -> int:
    """Return how many queries must differ, all in one direction, for a test of signs to reach alpha."""
    return max(1, math.ceil(1 + math.log2(max(comparisons, 1) / alpha) - SLACK))


def is_unreliable(contrast: Contrast, settings: Settings) -> bool:
    """Return whether too few queries differ for any test except randomization, which is then exact."""
    return not TESTS[settings.test].is_exact and 0 < contrast.differ < ENOUGH
