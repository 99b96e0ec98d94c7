"""What an id and a score may be, in Python; `groupgt.formats.validity` says the same to polars."""

from __future__ import annotations

import math
from typing import Any

from groupgt.errors import display

# What a message shows of a value; rooms on the right may know it by this name.
shown = display


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; a bool is none."""
    if type(value) is int:
        return True
    return not isinstance(value, bool) and hasattr(value, "__index__") and type(value).__name__ not in ("bool", "bool_")


def id_text(value: Any) -> str | None:
    """The id as text, or None where the value is no id.

    >>> id_text("007"), id_text(7), id_text(7.0), id_text(True)
    ('007', '7', None, None)
    """
    if isinstance(value, str):
        return str(value)
    if is_integer(value):
        return str(int(value))
    return None


def finite_number(value: Any) -> float | None:
    """A finite number of any numeric type as a double, or None; text and bools are no numbers.

    >>> finite_number(2), finite_number(True), finite_number("2"), finite_number(float("nan"))
    (2.0, None, None, None)
    """
    if isinstance(value, (bool, str)) or not (is_integer(value) or hasattr(value, "__float__")):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def plain(value: Any) -> Any:
    """A list, where the value is an array or series that knows `tolist` or `to_list`; else the value itself."""
    if isinstance(value, (list, tuple, str, dict)):
        return value
    for method in ("tolist", "to_list", "to_pylist"):
        convert = getattr(value, method, None)
        if convert is not None:
            return convert()
    return value
