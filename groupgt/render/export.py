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
    if path.suffix not in ENDINGS:
        raise ConfigError(f"{path}: expected a file that ends in {listed(ENDINGS)}, found {path.suffix or 'no ending'}")


def write_rows(path: Path, headers: Sequence[str], rows: Sequence[Sequence[Any]], ending: str) -> None:
    """Writes rows as .csv, .jsonl or .parquet, where columns that hold text are text and all others numbers."""
    if ending != ".parquet":
        path.write_text(rows_text(headers, rows, ending), encoding="utf-8", newline="")
        return
    import polars as pl

    columns = list(zip(*rows)) or [()] * len(headers)
    kinds = [pl.String if any(isinstance(cell, str) for cell in cells) else pl.Float64 for cells in columns]
    series = [pl.Series(name, list(cells), dtype=kind) for name, cells, kind in zip(headers, columns, kinds)]
    pl.DataFrame(series).write_parquet(path)
