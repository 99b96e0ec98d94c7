"""Options of labellers: read from a mapping, checked all at once, each fault with its key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from groupgt.errors import GroupgtError, near_names
from groupgt.model.spans import Chunks
from groupgt.model.validity import shown

LARGEST = 1e300
EXPECTED = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}


def options_of(kind: type[Any], given: Mapping[str, Any], *, texts: bool = False) -> tuple[Any, list[tuple[str, str]]]:
    """The options that a mapping holds, None where some are at fault; and (key, what is wrong) of each fault.

    With `texts`, as a shell has them, numbers and truth values are read from text.
    """
    known = {field.name: field for field in fields(kind)}
    hints = get_type_hints(kind)
    faults: list[tuple[str, str]] = []
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            some = f"known are {', '.join(known)}" if known else "there are none"
            faults.append((str(key), f"unknown option {str(key)!r}; {some}{near_names(str(key), known)}"))
            continue
        value = _from_text(value, hints[key]) if texts and isinstance(value, str) else value
        if not _fits(value, hints[key]):
            faults.append((key, f"expected {EXPECTED[hints[key]]}, found {shown(value)}"))
            continue
        if known[key].metadata.get("path") and not isinstance(value, (str, os.PathLike, Mapping, Chunks)):
            faults.append((key, f"expected a path or a mapping, found {shown(value)}"))
            continue
        values[key] = float(value) if hints[key] is float else value
    try:
        made = kind(**values)
    except GroupgtError as error:
        told = {key for key, _ in faults}
        split = [text.partition(": ") for text in error.faults]
        faults += [(key, what) for key, _, what in split if key not in told]
    return (None, faults) if faults else (made, [])


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return value is not None
    if kind is float:
        # NaN is not at most anything.
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _from_text(text: str, kind: Any) -> Any:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return text
    return text
