"""Result folders: written, described by a schema, and read back."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import groupgt
from groupgt.comparison.contrast import Scored
from groupgt.comparison.schema import DEFINITIONS
from groupgt.engines.rankings import all_rankings
from groupgt.errors import DataError, Faults, GroupgtError
from groupgt.experiment.display import as_dict, compared, means, per_query, report, times_dict
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.retrieval import libraries
from groupgt.formats import csv, frames, jsonl, trec
from groupgt.formats.source import Source
from groupgt.formats.write import write_flat
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Floats
from groupgt.model.validity import number_of
from groupgt.render import tables
from groupgt.render.exports import write_rows
from groupgt.render.tables import as_written
from groupgt.retrievers.base import strictly_falling
from groupgt.store.files import write_folder

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
MEANS = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}


def results_schema() -> dict[str, Any]:
    """The schema, draft 2020-12; keys that a file does not ask for are absent."""
    evaluation = {
        "type": "object",
        "properties": {
            "run": TEXT,
            "convention": TEXT,
            "labeller": TEXT,
            "policy": {"type": "object", "additionalProperties": TEXT},
            "counts": {"type": "object", "additionalProperties": COUNT},
            "metrics": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"metric": TEXT, "mean": {"type": ["number", "null"]}, "queries": COUNT},
                    "required": ["metric", "mean", "queries"],
                    "additionalProperties": False,
                },
            },
            "slices": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"by": TEXT, "value": TEXT, "queries": COUNT, "means": MEANS},
                    "required": ["by", "value", "queries", "means"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["run", "convention", "labeller", "policy", "counts", "metrics"],
        "additionalProperties": False,
    }
    gate = {
        "type": "object",
        "properties": {
            "gate": {"type": "integer", "minimum": 1},
            "system": TEXT,
            "dataset": TEXT,
            "metric": TEXT,
            "passed": {"type": "boolean"},
            "reason": TEXT,
            "value": {"type": ["number", "null"]},
        },
        "required": ["gate", "system", "dataset", "metric", "passed", "reason", "value"],
        "additionalProperties": False,
    }
    dataset = {
        "type": "object",
        "properties": {
            "best": {"type": ["string", "null"]},
            "systems": {"type": "array", "items": {"$ref": "#/$defs/evaluation"}},
            "failed": {"type": "object", "additionalProperties": TEXT},
            "comparison": {"$ref": "#/$defs/comparison"},
        },
        "required": ["systems"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "groupgt results",
        "type": "object",
        "properties": {
            "name": TEXT,
            "datasets": {"type": "object", "additionalProperties": {"$ref": "#/$defs/dataset"}},
            "best": TEXT,
            "gates": {"type": "array", "items": {"$ref": "#/$defs/gate"}},
        },
        "required": ["name", "datasets"],
        "additionalProperties": False,
        "$defs": {**DEFINITIONS, "evaluation": evaluation, "gate": gate, "dataset": dataset},
    }


Writer = Callable[[Path], None]
# Formats that are the report in another style of tables.
STYLES = {
    "table": ("table.txt", tables.DEFAULT),
    "markdown": ("table.md", "github"),
    "latex": ("table.tex", "latex_booktabs"),
    "html": ("table.html", "html"),
}


def write_results(outcome: Outcome, folder: Path) -> Path:
    """Writes `<folder>/<name>/<time>-<digest>/`, whole or not at all, and returns it."""
    config = outcome.experiment.config
    formats = config.output.formats
    files: dict[str, Writer] = {}
    for name, style in (STYLES[each] for each in formats if each in STYLES):
        files[name] = _text(report(outcome, style) + "\n")
    if "json" in formats:
        files["results.json"] = _text(tables.json_text(as_dict(outcome)) + "\n")
    if "csv" in formats:
        files["means.csv"] = _text(tables.csv_text(*means(outcome)))
        files["per_query.csv"] = _text(tables.csv_text(*per_query(outcome)))
        if outcome.comparison:
            files["comparison.csv"] = _text(tables.csv_text(*compared(outcome)))
    if "parquet" in formats:
        files["per_query.parquet"] = lambda path: write_rows(path, *per_query(outcome), ".parquet")
    if "runs" in formats:
        for dataset, found in outcome.evaluations.items():
            for system in found:
                ending, write = _run(outcome, dataset, system)
                files[f"runs/{slug(dataset)}/{slug(system)}{ending}"] = write
            truth = next((each.truth for each in found.values()), None)
            if (
                truth is not None
                and not truth.forms
                and not any(name.split() != [name] for name in (*truth.qids, *truth.ids))
            ):
                files[f"truth/{slug(dataset)}.qrels"] = partial(write_flat, truth=truth)
    files["timings.json"] = _text(tables.json_text(times_dict(outcome)) + "\n")
    manifest = _manifest(outcome)
    files["manifest.json"] = _text(manifest)
    digest = hashlib.sha256(manifest.encode()).hexdigest()[:8]
    return write_folder(folder / slug(config.name), digest, files)


def _text(text: str) -> Writer:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8", newline="")

    return write


def _run(outcome: Outcome, dataset: str, system: str) -> tuple[str, Writer]:
    """A run in the order that was evaluated, TREC's or (for ids with blanks) JSON Lines, and the ending of its file.

    Equal scores are told apart in their last bit.
    """
    evaluation = outcome.evaluations[dataset][system]
    answers = outcome.answers.get((dataset, system))
    kept = (answers.scores if answers is not None else None) or {}

    def rows() -> Iterator[tuple[str, list[str], list[float]]]:
        for qid, (ids, scores) in all_rankings(evaluation.run, evaluation.policy):
            own = kept.get(qid) or scores or [1 / rank for rank in range(1, len(ids) + 1)]
            yield qid, ids, strictly_falling(own)

    found = answers.ids.items() if answers is not None else ()
    if any(" ".join([qid, *ids]).split() != [qid, *ids] for qid, ids in found):
        return ".jsonl", lambda path: jsonl.write_run(path, rows(), scored=True)
    return ".trec", lambda path: trec.write_run(path, rows(), slug(system))


def _manifest(outcome: Outcome) -> str:
    """What determines the results: digests of files, versions, the resolved configuration, the seed, the counts.

    What came from the environment stands there as the file has it.
    """
    experiment = outcome.experiment
    config, document = experiment.config, experiment.document
    manifest = {
        "groupgt": groupgt.__version__,
        "python": platform.python_version(),
        "libraries": libraries(list(experiment.systems.values())),
        "files": outcome.digests,
        "seed": config.seed,
        "ground_truth": {
            dataset: next(iter(found.values())).truth.digest for dataset, found in outcome.evaluations.items() if found
        },
        "metrics": [str(metric) for metric in experiment.metrics.values()],
        "policy": str(experiment.policy),
        "config": document.shown(config.model_dump(by_alias=True), ()),
        "systems": {name: _options(outcome, name) for name in experiment.chosen},
        "counts": {
            dataset: {system: each.counts for system, each in found.items()}
            for dataset, found in outcome.evaluations.items()
        },
    }
    return json.dumps(manifest, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _options(outcome: Outcome, name: str) -> dict[str, Any]:
    """The options of one system, defaults included."""
    system = outcome.experiment.systems[name]
    shown = outcome.experiment.document.shown
    options = {
        each.name: shown(getattr(system.options, each.name), system.paths.get(each.name, ()))
        for each in fields(system.options)
    }
    inputs = {"inputs": system.inputs} if system.inputs else {}
    return {"use": system.config.use, "options": options, **inputs, "files": slug(name)}


def slug(name: str) -> str:
    """A name for files: itself where it is harmless, else its letters and digits and a short hash.

    >>> slug("bm25"), slug("bm25[k1=0.9]")
    ('bm25', 'bm25-k1-0-9-a3d217')
    """
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80]
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


# The columns of text, which come first.
TEXTS = 3


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
    def labeller(self) -> str:
        """What decided which result hits which alternative, and its options."""
        return json.dumps(self.config["evaluate"].get("labeller"), sort_keys=True, ensure_ascii=False)

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
    """The result folders that paths name: themselves, or all below an experiment's folder, oldest first.

    `latest`, the file beside them, names the newest. Raises `DataError` with every path that names none.
    """
    faults = Faults()
    found: list[Path] = []
    for path in paths:
        if path.name == "latest" and path.is_file():
            path = path.parent / _newest(path, faults)
        if (path / "manifest.json").is_file():
            found.append(path)
            continue
        below = [*path.glob("*/manifest.json"), *path.glob("*/*/manifest.json")]
        own = sorted((each.parent for each in below if not each.parent.name.startswith(".")), key=age_of)
        if not own:
            what = "no such folder" if not path.exists() else "no manifest.json in it, nor in a folder below it"
            faults.add(str(path), f"expected a result folder of `groupgt run`, found {what}")
        found += own
    faults.stop()
    distinct: dict[Path, Path] = {}
    for path in found:
        distinct.setdefault(path.resolve(), path)
    return list(distinct.values())


def age_of(path: Path) -> tuple[str, int]:
    """What sorts result folders by their time: the second in their name, then when the last file was written."""
    return path.name.split("-")[0], (path / "manifest.json").stat().st_mtime_ns


def _newest(path: Path, faults: Faults) -> str:
    """The name in `latest`."""
    try:
        name = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        name, what = "", str(error)
    else:
        what = repr(name)
    if not name or Path(name).name != name or name.startswith("."):
        faults.add(str(path), f"expected the name of a result folder beside it, found {what}")
        return "."
    return name


def read_folders(paths: Sequence[Path]) -> list[ResultFolder]:
    """Reads result folders; raises `DataError` with the faults of all of them."""
    faults = Faults()
    found: list[ResultFolder] = []
    for path in paths:
        try:
            found.append(read_folder(path))
        except GroupgtError as error:
            faults.merge(error)
    faults.stop()
    return found


def read_folder(path: Path) -> ResultFolder:
    """Reads a result folder; raises `DataError` where a part of it is missing or damaged."""
    manifest = _read_manifest(path)
    config = manifest["config"]
    try:
        metrics = {name: parse_metric(name) for name in manifest["metrics"]}
    except GroupgtError as error:
        raise DataError(f"{path / 'manifest.json'}: {error}") from None
    counts = {name: {run: own["queries"] for run, own in each.items()} for name, each in manifest["counts"].items()}
    return ResultFolder(
        path,
        config["name"],
        manifest["groupgt"],
        config["convention"],
        manifest["policy"],
        config,
        manifest["ground_truth"],
        _systems(path, metrics, config["convention"], counts),
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, whose parts that are used here are what they should be."""
    file = path / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    config = manifest.get("config") if isinstance(manifest, dict) else None
    compare = config.get("compare") if isinstance(config, dict) else None
    sound = (
        isinstance(config, dict)
        and isinstance(config.get("name"), str)
        and config.get("convention") in CONVENTIONS
        and isinstance(config.get("evaluate"), dict)
        and (compare is None or isinstance(compare, dict))
        and isinstance(manifest.get("groupgt"), str)
        and isinstance(manifest.get("policy"), str)
        and _texts(manifest.get("metrics"))
        and isinstance(manifest.get("ground_truth"), dict)
        and _texts([*manifest["ground_truth"].values()])
        and isinstance(manifest.get("counts"), dict)
        and set(manifest["counts"]) == set(manifest["ground_truth"])
        and all(isinstance(own, dict) for own in manifest["counts"].values())
        and all(
            isinstance(each, dict) and "queries" in each for own in manifest["counts"].values() for each in own.values()
        )
    )
    if not sound:
        what = "expected what this version writes of config, metrics, policy, ground truth and counts"
        raise DataError(f"{file}: {what}, found something else; run the experiment again")
    found: dict[str, Any] = manifest
    return found


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _systems(
    path: Path, metrics: dict[str, Metric], convention: str, expected: dict[str, dict[str, int]]
) -> dict[str, dict[str, Scored]]:
    """The values of every data set and system, from per_query.parquet or per_query.csv."""
    title, columns = _columns(path, [*("dataset", "run", "qid"), *metrics])
    rows: dict[tuple[str, str], list[int]] = {}
    for at, key in enumerate(zip(columns["dataset"], columns["run"])):
        rows.setdefault(key, []).append(at)
    faults = Faults()
    found: dict[str, dict[str, Scored]] = {}
    for dataset, names in expected.items():
        for run, count in names.items():
            own = rows.pop((dataset, run), [])
            qids = [columns["qid"][at] for at in own]
            if len(qids) != count or len(set(qids)) != count:
                what = f"expected one row for each of {count:,} queries, found {len(qids):,}"
                faults.add(title, f"data set {dataset!r}, system {run!r}: {what}")
                continue
            values: dict[str, Floats] = {text: columns[text][own] for text in metrics}
            found.setdefault(dataset, {})[run] = Scored(run, qids, metrics, values, convention)
    for dataset, run in rows:
        faults.add(title, f"expected the systems of the manifest, found {run!r} on data set {dataset!r} as well")
    faults.stop()
    return found


def _columns(path: Path, names: list[str]) -> tuple[str, dict[str, Any]]:
    """The file that holds the values, and its columns: three of text, then numbers."""
    parquet, table = path / "per_query.parquet", path / "per_query.csv"
    if parquet.is_file():
        return str(parquet), _checked(str(parquet), _of_parquet(Source.at(parquet), names), names)
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
            if place < TEXTS:
                cells[name].append(as_written(cell))
                continue
            value = number_of(cell) if cell else np.nan
            if value is None:
                faults.add(where, f"expected a number in the column {name!r}, found {cell!r}")
            cells[name].append(np.nan if value is None else value)
    faults.stop()
    found = {name: own if place < TEXTS else np.array(own) for place, (name, own) in enumerate(cells.items())}
    return str(table), _checked(str(table), found, names)


def _of_parquet(source: Source, names: list[str]) -> dict[str, Any]:
    frame = frames.read_table(source)
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
