"""Floats as text: the one place where digits are chosen."""

from __future__ import annotations

import math


def fixed(value: float | None, digits: int = 4) -> str:
    """A value with a fixed number of digits; `–` where there is none.

    >>> fixed(0.5), fixed(None), fixed(float("nan")), fixed(-0.00001)
    ('0.5000', '–', '–', '0.0000')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def signed(value: float | None, digits: int = 4) -> str:
    """A difference, with its sign; `–` where there is none.

    >>> signed(0.5), signed(-0.25), signed(0.0), signed(float("nan"))
    ('+0.5000', '-0.2500', '0.0000', '–')
    """
    text = fixed(value, digits)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") else text


def span(interval: tuple[float, float] | None, digits: int = 4) -> str:
    """An interval, for a cell of a table.

    >>> span((0.25, 0.75)), span((float("nan"), float("nan")))
    ('0.2500 to 0.7500', '–')
    """
    if interval is None or math.isnan(interval[0]):
        return "–"
    return f"{fixed(interval[0], digits)} to {fixed(interval[1], digits)}"


def small(value: float | None) -> str:
    """A p-value: four digits, or that it is below them.

    >>> small(0.0312), small(0.00001), small(0.0), small(None)
    ('0.0312', '<0.0001', '<0.0001', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    return fixed(value) if value >= 0.0001 else "<0.0001"


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> counted(1, "query", "queries"), counted(1200, "query", "queries"), counted(2, "system")
    ('1 query', '1,200 queries', '2 systems')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def p_text(value: float) -> str:
    """A p-value in a sentence.

    >>> p_text(0.0312), p_text(0.00001)
    ('p = 0.0312', 'p < 0.0001')
    """
    text = small(value)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"
