"""Tables as files: what the ending says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, listed
from groupgt.render.tables import csv_text, nulls

__all__ = ["ENDINGS", "check_ending", "rows_text", "write_rows"]

ENDINGS = (".csv", ".jsonl", ".parquet")


def rows_text(headers: Sequence[str], rows: Sequence[Sequence[Any]], ending: str) -> str:
    """Rows as CSV or JSON Lines, with full doubles."""
    if ending == ".csv":
        return csv_text(headers, rows)
    return "".join(json.dumps(nulls(dict(zip(headers, row))), ensure_ascii=False) + "\n" for row in rows)


def check_ending(path: Path) -> None:
    """Raises `ConfigError` for a file whose ending names no format."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{path}: expected a file that ends in {listed(ENDINGS)}, found {path.suffix or 'no ending'}")


def write_rows(path: Path, headers: Sequence[str], rows: Sequence[Sequence[Any]], ending: str) -> None:
    """Writes rows as .csv, .jsonl or .parquet, whose columns are text, whole numbers or doubles by what they hold."""
    if ending != ".parquet":
        path.write_text(rows_text(headers, rows, ending), encoding="utf-8", newline="")
        return
    import polars as pl

    columns = list(zip(*rows)) or [()] * len(headers)
    series = [pl.Series(name, list(cells), dtype=_kind(cells)) for name, cells in zip(headers, columns)]
    pl.DataFrame(series).write_parquet(path)


def _kind(cells: Sequence[Any]) -> Any:
    """What a column of parquet holds."""
    import polars as pl

    kinds = {type(cell) for cell in cells if cell is not None}
    return pl.String if str in kinds else pl.Int64 if kinds == {int} else pl.Float64
