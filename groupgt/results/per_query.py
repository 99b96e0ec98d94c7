"""Read per-query values from per_query.parquet or per_query.csv in a result folder, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults
from groupgt.evaluation.result import BY_LABELS
from groupgt.formats import csv
from groupgt.formats.parquet import read_table
from groupgt.formats.source import Source
from groupgt.model.validity import number_of
from groupgt.render.exports import as_written

# Text columns; each other column contains the values of a metric.
TEXT_COLUMNS = ("dataset", "run", "qid")


def read_columns(folder: Path, metrics: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the file name and its columns, with metric values as numbers, or raise `DataError`."""
    for ending, read in ((".parquet", _of_parquet), (".csv", _of_csv)):
        file = folder / f"per_query{ending}"
        if file.is_file():
            return str(file), read(Source.at(file), metrics)
    expected = "expected per_query.csv or per_query.parquet, found neither"
    raise DataError(f"{folder}: {expected}; add csv or parquet to the experiment's output.formats")


def _of_csv(source: Source, metrics: Sequence[str]) -> dict[str, Any]:
    faults = Faults()
    cells: dict[str, list[Any]] = {name: [] for name in (*TEXT_COLUMNS, *metrics)}
    header = {as_written(name).removesuffix(BY_LABELS): name for name in csv.header_of(source)}
    for where, row in csv.table(source, tuple(header.get(name, name) for name in cells), faults):
        for name in TEXT_COLUMNS:
            cells[name].append(as_written(row[header[name]]))
        for name in metrics:
            cell = row[header[name]]
            value = number_of(cell) if cell else np.nan
            if value is None:
                faults.add(where, f"expected a number in the {name!r} column, found {cell!r}")
            cells[name].append(np.nan if value is None else value)
    faults.stop()
    return {name: np.array(values) if name in metrics else values for name, values in cells.items()}


def _of_parquet(source: Source, metrics: Sequence[str]) -> dict[str, Any]:
    frame = read_table(source).rename(lambda name: name.removesuffix(BY_LABELS))
    names = [*TEXT_COLUMNS, *metrics]
    if missing := [name for name in names if name not in frame.columns]:
        raise DataError(f"{source.path}: expected the columns {', '.join(missing)}, found {', '.join(frame.columns)}")
    texts = {name: frame[name].to_list() for name in TEXT_COLUMNS}
    return {**texts, **{name: frame[name].fill_null(float("nan")).to_numpy() for name in metrics}}
