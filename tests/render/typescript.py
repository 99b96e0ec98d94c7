"""Writes TypedDicts as TypeScript, so that the page's scripts are checked with the types that Python fills in."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

NAMES = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null", Any: "any"}


def interfaces(kinds: Iterable[Any]) -> str:
    """Declarations of the types and of all that they refer to."""
    found: dict[str, str] = {}
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop()
        if kind.__name__ not in found:
            hints = get_type_hints(kind, include_extras=True)
            fields = (
                f"  {name}{'?' if get_origin(hint) is NotRequired else ''}: {written(hint)};"
                for name, hint in hints.items()
            )
            found[kind.__name__] = "\n".join([f"interface {kind.__name__} {{", *fields, "}"])
            waiting += [part for hint in hints.values() for part in parts(hint) if is_typeddict(part)]
    return "\n".join(found.values())


def parts(hint: Any) -> list[Any]:
    return [hint, *(part for each in get_args(hint) for part in parts(each))]


def written(hint: Any) -> str:
    """A type in TypeScript.

    >>> written(dict[str, list[int | None]]), written(tuple[float, float])
    ('Record<string, Array<number | null>>', '[number, number]')
    """
    origin, inner = get_origin(hint), [written(each) for each in get_args(hint)]
    if origin is list:
        return f"Array<{inner[0]}>"
    if origin is dict:
        return f"Record<string, {inner[1]}>"
    if origin is tuple:
        return f"[{', '.join(inner)}]"
    if origin is UnionType:
        return " | ".join(inner)
    if origin is NotRequired:
        return inner[0]
    return NAMES.get(hint) or hint.__name__
