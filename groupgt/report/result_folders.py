"""Result folders read back: found by the paths that name them, checked, and turned into values to compare.

`groupgt report` reads them here and hands them to `history`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from groupgt.errors import DataError, Faults, GroupgtError
from groupgt.evaluation.systems import policy_text
from groupgt.formats import csv
from groupgt.formats.parquet import read_table
from groupgt.formats.source import Source
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Floats
from groupgt.model.policy import Policy
from groupgt.model.validity import number_of
from groupgt.render.exports import as_written
from groupgt.report.results import ConfigSections, Manifest
from groupgt.store.stamped import LAST, LATEST, age_of


def written_policy(text: str) -> Policy:
    """A policy as manifests hold it: `str` of it."""
    return Policy.of(text)


@dataclass(frozen=True, eq=False)
class Scored:
    """The values of one system, `values[text]` of shape (Q,), NaN where a query does not count."""

    name: str
    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    values: Mapping[str, Floats]
    convention: str


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """One result folder of `groupgt run`: `truths` holds the digest of each data set's ground truth.

    `systems[dataset][name]` holds the values of a system, in the order of the tables, `resolved[name]` what it is.
    """

    path: Path
    name: str
    version: str
    convention: str
    policy: str
    config: ConfigSections
    truths: dict[str, str]
    systems: dict[str, dict[str, Scored]]
    resolved: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def stamp(self) -> str:
        """When it was written, as its name says."""
        return self.path.name

    @property
    def labeller(self) -> str:
        """What decided which result hits which alternative, and its options."""
        return json.dumps(self.config["evaluate"].get("labeller"), sort_keys=True, ensure_ascii=False)

    @property
    def rules(self) -> str:
        """What figures state of policy and labeller."""
        name = (self.config["evaluate"].get("labeller") or {}).get("use", "id")
        return policy_text(written_policy(self.policy)) + ("" if name == "id" else f" · labeller {name}")

    @property
    def primary(self) -> str | None:
        """The metric that sorts its tables."""
        return self.config["evaluate"].get("primary")

    @property
    def baseline(self) -> str | None:
        """What its systems are compared with."""
        compare = self.config.get("compare")
        return None if compare is None else compare["baseline"]

    @property
    def compared_metrics(self) -> list[str]:
        """The metrics that it was to be compared by, none where all were."""
        compare = self.config.get("compare")
        return [] if compare is None else compare.get("metrics", [])

    @property
    def entries(self) -> dict[str, Any]:
        """The entries of `systems` in the file, by name."""
        entries: dict[str, Any] = dict(self.config).get("systems", {})  # type: ignore[assignment]
        return entries

    @property
    def settings(self) -> dict[str, Any]:
        """How it compared: the options of `Settings` by name, as far as they are known."""
        return {**(self.config.get("compare") or {}), "seed": self.config["seed"]}

    def latencies(self, dataset: str) -> dict[str, float]:
        """The median milliseconds of a question, of systems of which they are known; raises `DataError`."""
        file = self.path / "timings.json"
        try:
            timings = json.loads(file.read_text(encoding="utf-8"))["systems"]
            found = {
                each["system"]: each["latency_p50_ms"] or each["batched_p50_ms"]
                for each in timings
                if each["dataset"] == dataset
            }
            return {name: float(value) for name, value in found.items() if value}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{file}: cannot be read: {error}; run the experiment again") from None


# --- Found.


def folders_of(paths: Sequence[Path]) -> list[Path]:
    """The result folders that paths name: themselves, or all below an experiment's folder, oldest first.

    `latest`, the file beside them, names the newest. Raises `DataError` with every path that names none.
    """
    faults = Faults()
    folders: list[Path] = []
    for path in paths:
        if path.name == LATEST and path.is_file():
            path = path.parent / _newest(path, faults)
        if (path / LAST).is_file():
            folders.append(path)
            continue
        manifests = [*path.glob(f"*/{LAST}"), *path.glob(f"*/*/{LAST}")]
        below = sorted((file.parent for file in manifests if not file.parent.name.startswith(".")), key=age_of)
        if not below:
            what = "no such folder" if not path.exists() else f"no {LAST} in it, nor in a folder below it"
            faults.add(str(path), f"expected a result folder of `groupgt run`, found {what}")
        folders += below
    faults.stop()
    distinct: dict[Path, Path] = {}
    for path in folders:
        distinct.setdefault(path.resolve(), path)
    return list(distinct.values())


def _newest(path: Path, faults: Faults) -> str:
    """The name in `latest`."""
    try:
        name = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        name, what = "", str(error)
    else:
        what = repr(name)
    if not name or Path(name).name != name or name.startswith(".") or not name.isprintable():
        faults.add(str(path), f"expected the name of a result folder beside it, found {what}")
        return "."
    return name


# --- Read.


def read_folders(paths: Sequence[Path]) -> list[ResultFolder]:
    """Reads result folders; raises `DataError` with the faults of all of them."""
    faults = Faults()
    folders: list[ResultFolder] = []
    for path in paths:
        try:
            folders.append(read_folder(path))
        except GroupgtError as error:
            faults.merge(error)
    faults.stop()
    return folders


def read_folder(path: Path) -> ResultFolder:
    """Reads a result folder; raises `DataError` where a part of it is missing or damaged."""
    manifest = manifest_at(path)
    config = manifest["config"]
    try:
        metrics = {name: parse_metric(name) for name in manifest["metrics"]}
    except GroupgtError as error:
        raise DataError(f"{path / LAST}: {error}") from None
    queries = {
        dataset: {system: counts["queries"] for system, counts in by_system.items()}
        for dataset, by_system in manifest["counts"].items()
    }
    return ResultFolder(
        path,
        config["name"],
        manifest["groupgt"],
        config["convention"],
        manifest["policy"],
        config,
        manifest["ground_truth"],
        _systems(path, metrics, config["convention"], queries),
        manifest["systems"],
    )


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


def manifest_at(folder: Path) -> Manifest:
    """The manifest of a result folder, whose parts are what they should be."""
    file = folder / LAST
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    try:
        _adapter().validate_python(parsed, strict=True)
        manifest: Manifest = parsed
        is_sound = _is_sound(manifest)
    except ValidationError:
        is_sound = False
    if not is_sound:
        what = "expected what this version writes of config, metrics, policy, ground truth and counts"
        raise DataError(f"{file}: {what}, found something else; run the experiment again")
    return manifest


def _is_sound(manifest: Manifest) -> bool:
    """Whether the parts of a manifest that are used here fit each other."""
    truths, counts = manifest["ground_truth"], manifest["counts"]
    return (
        manifest["config"]["convention"] in CONVENTIONS
        and bool(manifest["metrics"])
        and bool(truths)
        and set(counts) == set(truths)
        and all("queries" in counted for by_system in counts.values() for counted in by_system.values())
    )


# The columns of text, which come first.
TEXTS = 3


def _systems(
    path: Path, metrics: dict[str, Metric], convention: str, queries: dict[str, dict[str, int]]
) -> dict[str, dict[str, Scored]]:
    """The values of every data set and system, from per_query.parquet or per_query.csv."""
    title, columns = _columns(path, [*("dataset", "run", "qid"), *metrics])
    rows: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(zip(columns["dataset"], columns["run"])):
        rows.setdefault(key, []).append(row)
    faults = Faults()
    systems: dict[str, dict[str, Scored]] = {}
    for dataset, by_system in queries.items():
        for system, count in by_system.items():
            own_rows = rows.pop((dataset, system), [])
            qids = [columns["qid"][row] for row in own_rows]
            if len(qids) != count or len(set(qids)) != count:
                what = f"expected one row for each of {count:,} queries, found {len(qids):,}"
                faults.add(title, f"data set {dataset!r}, system {system!r}: {what}")
                continue
            values: dict[str, Floats] = {text: columns[text][own_rows] for text in metrics}
            systems.setdefault(dataset, {})[system] = Scored(system, qids, metrics, values, convention)
    for dataset, system in rows:
        faults.add(title, f"expected the systems of the manifest, found {system!r} on data set {dataset!r} as well")
    faults.stop()
    return systems


def _columns(path: Path, names: list[str]) -> tuple[str, dict[str, Any]]:
    """The file that holds the values, and its columns: three of text, then numbers."""
    parquet, table = path / "per_query.parquet", path / "per_query.csv"
    if parquet.is_file():
        return str(parquet), _checked(str(parquet), _of_parquet(Source.at(parquet), names), names)
    if table.is_file():
        return str(table), _checked(str(table), _of_csv(Source.at(table), names), names)
    raise DataError(
        f"{path}: expected per_query.csv or per_query.parquet, found neither; "
        "have the experiment write one of them: output.formats: [csv] or [parquet]"
    )


def _of_csv(source: Source, names: list[str]) -> dict[str, Any]:
    faults = Faults()
    cells: dict[str, list[Any]] = {name: [] for name in names}
    header = {as_written(name): name for name in csv.header_of(source)}
    for where, row in csv.table(source, tuple(header.get(name, name) for name in names), faults):
        for place, name in enumerate(names):
            cell = row[header[name]]
            if place < TEXTS:
                cells[name].append(as_written(cell))
                continue
            value = number_of(cell) if cell else np.nan
            if value is None:
                faults.add(where, f"expected a number in the column {name!r}, found {cell!r}")
            cells[name].append(np.nan if value is None else value)
    faults.stop()
    return {name: own if place < TEXTS else np.array(own) for place, (name, own) in enumerate(cells.items())}


def _of_parquet(source: Source, names: list[str]) -> dict[str, Any]:
    frame = read_table(source)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise DataError(f"{source.path}: expected the columns {', '.join(missing)}, found {', '.join(frame.columns)}")
    for place, name in enumerate(names):
        kind = frame.schema[name]
        if not (kind.is_float() if place >= TEXTS else str(kind) == "String"):
            expected = "numbers" if place >= TEXTS else "text"
            raise DataError(f"{source.path}: expected {expected} in the column {name!r}, found {kind}")
    texts = {name: frame[name].to_list() for name in names[:TEXTS]}
    return {**texts, **{name: frame[name].fill_null(float("nan")).to_numpy() for name in names[TEXTS:]}}


def _checked(title: str, columns: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The columns; raises `DataError` where one holds what no evaluation writes."""
    faults = Faults()
    for place, name in enumerate(names):
        if place < TEXTS:
            if None in columns[name]:
                faults.add(title, f"expected text in every row of the column {name!r}, found null")
            continue
        values = columns[name][~np.isnan(columns[name])]
        bounded = parse_metric(name).definition.bounded
        # Three metrics of the literature may pass 1 a little, so that only far more is taken for damage.
        wrong = values[~np.isfinite(values) | (values < 0) | (values > (2 if bounded else np.inf))]
        if len(wrong):
            faults.add(title, f"expected values of {name}, found {wrong[0]:g}")
    faults.stop()
    return columns
