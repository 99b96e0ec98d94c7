"""Ids: text, or integers read as their decimal text; anything else is an error. One rule for both sides."""

from __future__ import annotations

from typing import Any

__all__ = ["id_text", "is_integer", "plain"]


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


def plain(value: Any) -> Any:
    """A list, where the value is an array or series that knows `tolist` or `to_list`; else the value itself."""
    if isinstance(value, (list, tuple, str, dict)):
        return value
    for method in ("tolist", "to_list", "to_pylist"):
        convert = getattr(value, method, None)
        if convert is not None:
            return convert()
    return value
