"""Define columns of records. A dataclass declares the heading and format of each field once, for all outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from groupgt.render.tables import fixed, signed, small

Format = Literal["count", "value", "difference", "differences", "p", "effect", "share", "level"]


def effect_text(size: float) -> str:
    """Format an effect size, which is infinite if all differences are the same."""
    return f"{'-' if size < 0 else ''}∞" if math.isinf(size) else signed(size, 2)


def level_text(confidence: float) -> str:
    """Format an interval's level, such as `98.3% CI`."""
    return f"{100 * confidence:.3g}% CI"


def signed_span(ends: tuple[float, float], digits: int = 4) -> str:
    """Format the interval of a difference."""
    return "–" if math.isnan(ends[0]) else f"{signed(ends[0], digits)} to {signed(ends[1], digits)}"


FORMATS: dict[Format, Callable[[Any], str]] = {
    "count": "{:,}".format,
    "value": fixed,
    "difference": signed,
    "differences": signed_span,
    "p": small,
    "effect": effect_text,
    "share": lambda share: signed(share, 2),
    "level": level_text,
}


@dataclass(frozen=True)
class Column:
    """How a field is presented: its heading, the format of its values, and whether CSV files include it."""

    heading: str
    format: Format
    in_csv: bool

    def text(self, value: Any) -> str:
        """Return a value of the field as text."""
        return FORMATS[self.format](value)


def shown(heading: str, format: Format, *, in_csv: bool = True, **more: Any) -> dict[str, Any]:
    """Return the metadata of a visible field. `more` is metadata for other purposes."""
    return {"column": Column(heading, format, in_csv), **more}


def columns_of(kind: type[Any]) -> dict[str, Column]:
    """Return a record's columns by field name. Every field must declare a column, or None for no column."""
    declared = {field.name: field.metadata["column"] for field in fields(kind)}
    return {name: each for name, each in declared.items() if each is not None}


def keys_of(kind: type[Any]) -> dict[str, str]:
    """Return the fields that are exported as JSON, by key. The metadata `key` renames a field."""
    every = fields(kind)
    if any("column" in field.metadata for field in every):
        return {name: name for name in columns_of(kind)}
    return {field.metadata.get("key", field.name): field.name for field in every}


def texts_of(record: Any) -> list[str]:
    """Return all fields as text, in the order of `columns_of`."""
    return [column.text(getattr(record, name)) for name, column in columns_of(type(record)).items()]


def csv_headers(kind: type[Any]) -> list[str]:
    """Return the headers of the CSV columns. An interval has two columns."""
    headers: list[str] = []
    for name in _in_csv(kind):
        start = name.removesuffix("_interval")
        headers += [name] if start == name else [f"{start}_low", f"{start}_high"]
    return headers


def csv_cells(record: Any) -> list[Any]:
    """Return the cells below `csv_headers` with full double precision. Numbers that are not finite become None."""
    cells: list[Any] = []
    for name in _in_csv(type(record)):
        value = getattr(record, name)
        if isinstance(value, tuple):
            cells += value
        else:
            cells.append(value if math.isfinite(value) else None)
    return cells


def _in_csv(kind: type[Any]) -> list[str]:
    return [name for name, column in columns_of(kind).items() if column.in_csv]


def jsonable(value: Any) -> Any:
    """Convert dataclasses and lists of them to plain Python. NaN and intervals of NaN become None."""
    if is_dataclass(value):
        return {key: jsonable(getattr(value, name)) for key, name in keys_of(type(value)).items()}
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, (list, tuple)):
        values = [jsonable(item) for item in value]
        return None if isinstance(value, tuple) and values and values[0] is None else values
    return value
