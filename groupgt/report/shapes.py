"""Converts dataclasses to JSON: plain values, and types for JSON Schema, based on fields and annotations.

NaN means undefined and becomes null; any float that is not `Defined` may be null. Integers are counts.
"""

from __future__ import annotations

import math
from dataclasses import is_dataclass
from functools import lru_cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from annotated_types import Ge, Len
from typing_extensions import TypedDict

from groupgt.comparison.failures import Defined
from groupgt.render.columns import keys_of

Count = Annotated[int, Ge(0)]


def plain(value: Any) -> Any:
    """Converts a dataclass, or a list of dataclasses, to plain Python; NaN and intervals of NaN become None.

    >>> from groupgt.comparison.contrast import Row
    >>> plain(Row("bm25", "recall@5", 0.5, (math.nan, math.nan), 1, None))["interval"] is None
    True
    """
    if is_dataclass(value):
        return {key: plain(getattr(value, name)) for key, name in keys_of(type(value)).items()}
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, (list, tuple)):
        values = [plain(item) for item in value]
        return None if isinstance(value, tuple) and values and values[0] is None else values
    return value


@lru_cache
def typed(kind: Any) -> Any:
    """Returns the type that `plain` produces for a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    types = {key: _of_hint(hints[name]) for key, name in keys_of(kind).items()}
    return shape(kind.__name__, (kind.__doc__ or "").partition("\n")[0], **types)


def shape(title: str, description: str, **types: Any) -> Any:
    """Creates a mapping type with the given keys, which pydantic can turn into a schema."""
    made: Any = TypedDict(title, types)  # type: ignore[misc]  # mypy wants a class
    made.__doc__ = description
    made.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]  # pydantic looks for it
    return made


def of(generic: Any, *kinds: Any) -> Any:
    """Returns `generic[kinds]` for types created at run time, which mypy would reject."""
    return generic[kinds if len(kinds) > 1 else kinds[0]]


def _of_hint(hint: Any) -> Any:
    if hint is int:
        return Count
    if hint is Defined:
        return float
    if hint is float or get_origin(hint) is Annotated:
        return hint | None
    if get_origin(hint) is UnionType:
        return reduce(or_, map(_of_hint, get_args(hint)))
    if get_origin(hint) is tuple:
        first, last = get_args(hint)
        return of(list, _of_hint(first)) if last is ... else Annotated[list[float], Len(2, 2)] | None
    return typed(hint) if isinstance(hint, type) and is_dataclass(hint) else hint
