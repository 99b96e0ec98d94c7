"""Floats as text: the one place where digits are chosen."""

from __future__ import annotations

import math

__all__ = ["fixed"]


def fixed(value: float | None, digits: int = 4) -> str:
    """A value with a fixed number of digits; `–` where there is none.

    >>> fixed(0.5), fixed(None), fixed(float("nan")), fixed(-0.00001)
    ('0.5000', '–', '–', '0.0000')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text
