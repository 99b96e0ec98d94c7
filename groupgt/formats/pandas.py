"""Frames of pandas, column by column: as columns of polars, with ids under the same rules as everywhere.

pandas has many ways to say that a cell is missing, and keeps any object in a column; its own way to Arrow needs
pyarrow.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isnan
from typing import Any

import numpy as np

from groupgt.errors import Faults, display
from groupgt.model.validity import id_text, plain
from groupgt.runtime import pl


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of pandas; it is not imported for asking."""
    return type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "columns")


def to_polars(value: Any, wanted: Collection[str], ids: Collection[str], title: str) -> pl.DataFrame:
    """The wanted columns of a frame, those that hold ids as text; raises `DataError` for cells that are no ids."""
    faults = Faults()
    columns: dict[str, pl.Series] = {}
    for at, name in enumerate(map(str, value.columns)):
        if name in columns:
            faults.add(title, f"the column {name!r} stands twice; rename or drop one")
        elif name in wanted:
            columns[name] = _series(value.iloc[:, at], name, name in ids, title, faults)
    faults.stop()
    return pl.DataFrame(columns)


def _series(column: Any, name: str, holds_ids: bool, title: str, faults: Faults) -> pl.Series:
    """A column of polars."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return pl.Series(name, column.to_numpy())
    cells = cells_of(column)
    if holds_ids:
        nested = any(isinstance(cell, list) for cell in cells)
        texts = [_ids(cell, f"{title}: row {row}", name, faults) for row, cell in enumerate(cells, 1)]
        return pl.Series(name, texts, dtype=pl.List(pl.String) if nested else pl.String, strict=False)
    try:
        return pl.Series(name, cells)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        if any(isinstance(cell, (list, dict)) for cell in cells):
            return pl.Series(name, cells, strict=False)
        # What polars has no kind for, such as numbers beside words, is text to whom it concerns.
        return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)


def _ids(cell: Any, where: str, name: str, faults: Faults) -> Any:
    """An id as text, or a list of them; whatever else is at fault."""
    if isinstance(cell, list):
        return [_ids(inner, where, name, faults) for inner in cell]
    text = id_text(cell)
    if text is None and cell is not None:
        what = f"expected text or integers in the column {name!r}, found {display(cell)} of type {type(cell).__name__}"
        faults.add(where, what)
    return text


def cells_of(column: Any) -> list[Any]:
    """The cells of a column: None where one is missing, lists where an array is nested."""
    import pandas as pd

    missing = (None, pd.NA, pd.NaT)
    numbers = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"

    def cell_of(cell: Any) -> Any:
        if any(cell is nothing for nothing in missing) or (not numbers and isinstance(cell, float) and isnan(cell)):
            return None
        cell = plain(cell)
        return [cell_of(inner) for inner in cell] if isinstance(cell, (list, tuple)) else cell

    return [cell_of(cell) for cell in column.tolist()]
