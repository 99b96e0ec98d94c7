"""Result folders read back: what was evaluated, on which ground truth, and every query's values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.comparison.scored import Scored
from groupgt.errors import DataError, Faults
from groupgt.formats import csv, frames
from groupgt.formats.rows import finite
from groupgt.formats.source import Source
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Floats
from groupgt.render.tables import as_written

__all__ = ["ResultFolder", "folders_of", "read_folder"]

NEEDED = ("config", "ground_truth", "metrics", "policy", "groupgt", "seed")


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """One result folder of `groupgt run`: `truths` holds the digest of each data set's ground truth.

    `systems[dataset][name]` holds the values of a system, in the order of the tables.
    """

    path: Path
    name: str
    version: str
    convention: str
    policy: str
    config: dict[str, Any]
    truths: dict[str, str]
    systems: dict[str, dict[str, Scored]]

    @property
    def stamp(self) -> str:
        """When it was written, as its name says."""
        return self.path.name

    @property
    def primary(self) -> str | None:
        """The metric that sorts its tables."""
        found: str | None = self.config["evaluate"].get("primary")
        return found

    @property
    def baseline(self) -> str | None:
        """What its systems are compared with."""
        found: str | None = (self.config.get("compare") or {}).get("baseline")
        return found


def folders_of(paths: Sequence[Path]) -> list[Path]:
    """The result folders that paths name: themselves, or all of an experiment's folder, oldest first.

    `latest`, the file beside them, names the newest. Raises `DataError` with every path that names none.
    """
    faults = Faults()
    found: list[Path] = []
    for path in paths:
        if path.name == "latest" and path.is_file():
            path = path.parent / path.read_text(encoding="utf-8").strip()
        if (path / "manifest.json").is_file():
            found.append(path)
            continue
        own = sorted(each.parent for each in path.glob("*/manifest.json") if not each.parent.name.startswith("."))
        if not own:
            what = "no such folder" if not path.exists() else "no manifest.json in it, nor in a folder below it"
            faults.add(str(path), f"expected a result folder of `groupgt run`, found {what}")
        found += own
    faults.stop()
    return list(dict.fromkeys(found))


def read_folder(path: Path) -> ResultFolder:
    """Reads a result folder; raises `DataError` where a part of it is missing or damaged."""
    manifest = _manifest(path)
    config = manifest["config"]
    metrics = {name: parse_metric(name) for name in manifest["metrics"]}
    return ResultFolder(
        path,
        config["name"],
        manifest["groupgt"],
        config["convention"],
        manifest["policy"],
        config,
        manifest["ground_truth"],
        _systems(path, metrics, config["convention"]),
    )


def _manifest(path: Path) -> dict[str, Any]:
    file = path / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    missing = [key for key in NEEDED if not isinstance(manifest, dict) or key not in manifest]
    if missing:
        what = f"expected {', '.join(missing)} in it, found none; run the experiment again with this version"
        raise DataError(f"{file}: {what}")
    found: dict[str, Any] = manifest
    return found


def _systems(path: Path, metrics: dict[str, Metric], convention: str) -> dict[str, dict[str, Scored]]:
    """The values of every data set and system, from per_query.parquet or per_query.csv."""
    columns = _columns(path, [*("dataset", "run", "qid"), *metrics])
    datasets, runs = (np.array(columns[name], dtype=object) for name in ("dataset", "run"))
    found: dict[str, dict[str, Scored]] = {}
    for dataset, run in dict.fromkeys(zip(columns["dataset"], columns["run"])):
        own = np.flatnonzero((datasets == dataset) & (runs == run))
        values: dict[str, Floats] = {text: columns[text][own] for text in metrics}
        qids = [columns["qid"][at] for at in own.tolist()]
        found.setdefault(dataset, {})[run] = Scored(run, qids, metrics, values, convention)
    return found


def _columns(path: Path, names: list[str]) -> dict[str, Any]:
    parquet, table = path / "per_query.parquet", path / "per_query.csv"
    if parquet.is_file():
        return _of_parquet(Source.at(parquet), names)
    if not table.is_file():
        raise DataError(
            f"{path}: expected per_query.csv or per_query.parquet, found neither; "
            "have the experiment write one of them: output.formats: [csv] or [parquet]"
        )
    faults = Faults()
    cells: dict[str, list[Any]] = {name: [] for name in names}
    written = {as_written(name): name for name in csv.header_of(Source.at(table))}
    for where, row in csv.table(Source.at(table), tuple(written.get(name, name) for name in names), faults):
        for place, name in enumerate(names):
            cell = row[written[name]]
            if place < 3:
                cells[name].append(as_written(cell))
                continue
            value = finite(cell) if cell else np.nan
            if value is None:
                faults.add(where, f"expected a number in the column {name!r}, found {cell!r}")
            cells[name].append(np.nan if value is None else value)
    faults.stop()
    return {name: own if place < 3 else np.array(own) for place, (name, own) in enumerate(cells.items())}


def _of_parquet(source: Source, names: list[str]) -> dict[str, Any]:
    frame = frames.read_table(source)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise DataError(f"{source.path}: expected the columns {', '.join(missing)}, found {', '.join(frame.columns)}")
    texts = {name: frame[name].to_list() for name in names[:3]}
    return {**texts, **{name: frame[name].fill_null(float("nan")).to_numpy() for name in names[3:]}}
