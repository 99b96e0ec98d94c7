"""Find, check and read a result folder of `groupgt run`, and measure its results again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from groupgt.engines.order import Direction
from groupgt.errors import ConfigError, DataError, Faults, GroupgtError, near_names, refuse
from groupgt.evaluation.reading import Reading, read_run
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.experiment.timing import Kind, Median, Timing, of_one_kind
from groupgt.formats.corpus import corpus_file
from groupgt.formats.detect import column_names
from groupgt.formats.fields import TRIAL
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import ConventionName
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats
from groupgt.model.policy import Policy
from groupgt.options import paths_of
from groupgt.plugins import find
from groupgt.results.manifest import Manifest
from groupgt.results.per_query import read_columns
from groupgt.store.files import file_name, sha256, slug
from groupgt.store.stamped import LAST, LATEST, age_of
from groupgt.store.verdicts import VerdictStore

AGAIN = "run the experiment again with this version"


@dataclass(frozen=True, eq=False)
class Scored:
    """Metric values for one system, shape (Q,) each. `origin` is the system's folder, and its name in that folder."""

    name: str
    qids: Sequence[str]
    values: Mapping[str, Floats]
    origin: tuple[Path, str]


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """A result folder. `chosen` systems on `dataset` are measured again, with files in `home` or at recorded paths."""

    path: Path
    manifest: Manifest
    dataset: str = ""
    chosen: Sequence[str] = ()
    home: Path | None = None

    @classmethod
    def read(cls, path: Path) -> ResultFolder:
        """Read a folder and its metric values, or raise `DataError`."""
        folder = cls(path, Manifest.at(path))
        _ = folder.systems
        return folder

    @classmethod
    def opened(cls, path: Path, dataset: str | None = None, systems: Sequence[str] = ()) -> ResultFolder:
        """Open one data set, with all or selected systems, in the newest result folder at a path."""
        folder = folders_of([path])[-1]
        manifest = Manifest.at(folder)
        datasets = list(manifest.counts)
        if dataset is None and len(datasets) > 1:
            raise ConfigError(f"{folder}: has the data sets {', '.join(datasets)}; choose one with --dataset")
        name = datasets[0] if dataset is None else dataset
        if name not in datasets:
            near = near_names(name, datasets)
            raise ConfigError(f"--dataset: expected {' or '.join(datasets)}, found {name!r}{near}")
        there = list(manifest.counts[name])
        unknown = [f"{each!r} is not in {folder}{near_names(each, there)}" for each in systems if each not in there]
        refuse((("--system", f"{what}; it has {', '.join(there)}") for what in unknown), ConfigError)
        return cls(folder, manifest, name, list(systems) or there)

    @property
    def stamp(self) -> str:
        """The time when the folder was written, taken from its name."""
        return self.path.name

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return self.manifest.config

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return str(self.config["name"])

    @property
    def convention(self) -> ConventionName:
        """The convention of the run."""
        return cast("ConventionName", self.manifest.convention)

    @cached_property
    def policy(self) -> Policy:
        """The policy of the run."""
        return Policy.of(self.manifest.policy)

    @property
    def labeller_spec(self) -> dict[str, Any]:
        """The labeller of the run, as in its configuration."""
        return self.config["evaluate"].get("labeller") or {"use": "id"}

    @property
    def primary(self) -> str | None:
        """The metric used to sort tables and to choose the best system."""
        return cast("str | None", self.config["evaluate"].get("primary"))

    @property
    def compare(self) -> dict[str, Any]:
        """The comparison settings: baseline, metrics, options and seed, or only the seed if nothing was compared."""
        return {**(self.config.get("compare") or {}), "seed": self.config["seed"]}

    @property
    def baseline(self) -> str | None:
        """The system that all others are compared with."""
        return None if self.across else self.compare.get("baseline")

    def baseline_among(self, systems: Sequence[str]) -> str | None:
        """Return the run's baseline, or None if not among `systems`. Raise `ConfigError` if the baseline failed."""
        name, there = self.baseline, list(self.manifest.counts[self.dataset])
        if name is None or name in (systems or there):
            return name
        if systems:
            return None
        what = f"the baseline {name} has no results on data set {self.dataset!r}"
        raise ConfigError(f"{self.path}: {what}; choose another with --baseline: {' or '.join(there)}")

    @property
    def across(self) -> str | None:
        """The data set that all others are compared with, if any."""
        return self.compare["baseline"] if self.compare.get("across") == "datasets" else None

    @property
    def tokenizer(self) -> str | None:
        """The tokenizer of the run."""
        return cast("str | None", self.config["evaluate"].get("tokenizer"))

    def latencies(self, dataset: str) -> tuple[Kind, dict[str, Median]]:
        """Return median latencies of systems on a data set, all of one kind, or raise `DataError` for invalid times."""
        names = [field.name for field in fields(Timing) if field.name != "costs"]
        try:
            rows = [row for row in self._from_timings("systems") if row["dataset"] == dataset]
            return of_one_kind({row["system"]: Timing(**{name: row[name] for name in names}) for row in rows})
        except FileNotFoundError:
            return "alone", {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            where = self.path / "timings.json"
            raise DataError(f"{where}: cannot be read: {error}; run the experiment again") from None

    @property
    def has_passed(self) -> bool:
        """Return whether the run passed. Runs of earlier versions, which did not record this, count as passed."""
        try:
            return bool(self._from_timings("passed"))
        except (OSError, ValueError, KeyError):
            return True

    def _from_timings(self, key: str) -> Any:
        return json.loads((self.path / "timings.json").read_text(encoding="utf-8"))[key]

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the run by name."""
        return {name: parse_metric(name) for name in self.manifest.metrics}

    @cached_property
    def systems(self) -> dict[str, dict[str, Scored]]:
        """Metric values by data set and system, in table order. Raises `DataError`."""
        try:
            _, metrics = self.policy, self.metrics
        except GroupgtError as error:
            raise DataError(f"{self.path / LAST}: {error}") from None
        title, columns = read_columns(self.path, list(metrics))
        rows: dict[tuple[str, str], list[int]] = {}
        for row, key in enumerate(zip(columns["dataset"], columns["run"])):
            rows.setdefault(key, []).append(row)
        faults = Faults()
        systems: dict[str, dict[str, Scored]] = {}
        for dataset, by_system in self.manifest.counts.items():
            for system, counts in by_system.items():
                places = rows.pop((dataset, system), [])
                qids = [columns["qid"][row] for row in places]
                if not len(qids) == len(set(qids)) == counts["queries"]:
                    what = f"expected one row for each of {counts['queries']:,} queries, found {len(qids):,}"
                    faults.add(title, f"data set {dataset!r}, system {system!r}: {what}")
                    continue
                values: dict[str, Floats] = {text: columns[text][places] for text in metrics}
                systems.setdefault(dataset, {})[system] = Scored(system, qids, values, (self.path, system))
        for dataset, system in rows:
            faults.add(title, f"expected only systems from the manifest, found {system!r} on data set {dataset!r}")
        faults.stop()
        return systems

    # --- Measuring again: one data set, some systems.

    @property
    def truth_path(self) -> Path:
        """The path of the saved ground truth."""
        return self.path / "truth" / f"{slug(self.dataset)}.jsonl"

    def truth(self, policy: Policy) -> GroundTruth:
        """Read the ground truth of the run."""
        if not self.truth_path.is_file():
            raise DataError(f"{self.path}: truth/{self.truth_path.name} not found; {AGAIN}")
        return Reading.of(policy=policy, truth_format="jsonl").truth(self.truth_path)

    @property
    def audit(self) -> Path | None:
        """The path of the saved audit, if any."""
        return path if (path := self.truth_path.with_suffix(".audit.jsonl")).is_file() else None

    @property
    def is_audited(self) -> bool:
        """True if any data set has a saved audit."""
        return any(replace(self, dataset=name).audit for name in self.manifest.counts)

    @cached_property
    def paths(self) -> list[Path]:
        """The paths of all chosen systems' results. Raise `DataError` if any results were not saved."""
        faults = Faults()
        paths = []
        for name in self.chosen:
            with faults.merging(DataError):
                paths.append(self.path_of(name))
        faults.stop()
        return paths

    @property
    def runs(self) -> list[tuple[str, Any]]:
        """The (name, run) pairs of all chosen systems. Raise `DataError` if any results were not saved."""
        _ = self.paths
        return [(name, self.run_of(name)) for name in self.chosen]

    def path_of(self, system: str) -> Path:
        """Return the path of a system's results, or raise `DataError` if the results were not saved."""
        path = self.kept_run(system) or self.original_run(system)
        if path is None:
            raise DataError(f"{self.path}: does not contain the run of {system!r}; {AGAIN}")
        return path

    def run_of(self, system: str) -> Any:
        """Return the path of a system's results, or the run itself if an earlier version wrote its builds as trials."""
        path = self.path_of(system)
        if not self.is_of_builds(system) or TRIAL not in (column_names(path) or ()):
            return path
        run = read_run(path)
        return replace(run, trials=tuple(replace(each, is_build=True) for each in run.trials))

    @property
    def scores(self) -> dict[str, Direction]:
        """The chosen systems whose scores are distances."""
        return {name: "ascending" for name in self.chosen if self.direction(name) == "ascending"}

    def direction(self, system: str) -> Direction:
        """Return whether the scores of a system are ascending (distances) or descending."""
        return "ascending" if self.manifest.systems[system].get("scores") == "ascending" else "descending"

    def kept_run(self, system: str) -> Path | None:
        """Return the file in this folder that contains a system's results, or None."""
        start = self.path / "runs" / slug(self.dataset) / file_name(system)
        return next((file for end in (".trec", ".jsonl") if (file := Path(f"{start}{end}")).is_file()), None)

    def is_of_builds(self, system: str) -> bool:
        """Return whether the trials of a system, or of an input, were declared to be builds."""
        names = [system]
        for name in names:
            names += self.manifest.systems.get(name, {}).get("inputs", ())
        families = self.config.get("systems", {})
        entries = [families.get(name) or families.get(name.partition("[")[0]) or {} for name in names]
        return any((entry.get("trials") or {}).get("of") == "builds" for entry in entries)

    def original_run(self, system: str) -> Path | None:
        """Return the file that a system's results were originally read from, for results too large to save."""
        resolved = self.manifest.systems[system]
        path = resolved["options"].get("path")
        if resolved["use"] != "results" or not isinstance(path, str):
            return None
        return self._unchanged(path.replace("{dataset}", self.dataset))

    @cached_property
    def corpus(self) -> Path | None:
        """The path of the corpus, if it is unchanged."""
        written = self.config["datasets"][self.dataset].get("corpus")
        return None if written is None else self._unchanged(written)

    def labeller(self, *, allow_code: bool) -> Labeller:
        """Return the labeller of the run, or raise `DataError` if one of its files is missing or has changed."""
        spec = self.labeller_spec
        options = {
            name: value.replace("{dataset}", self.dataset) if isinstance(value, str) else value
            for name, value in spec.get("with", {}).items()
        }
        faults = Faults()
        for name in paths_of(find("labeller", spec["use"]).options, options):
            if self._unchanged(options[name]) is None:
                what = f"the {spec['use']} labeller read {options[name]}, which is missing or has changed"
                way = "set the labeller and its files with --labeller and --with, or run the experiment again"
                faults.add(str(self.path), f"{what}; {way}")
        faults.stop()
        if spec.get("version"):
            options["version"] = spec["version"]
        cache, judged = self.config.get("cache"), None
        if self._home is not None and isinstance(cache, str):
            judged = VerdictStore(self._home / cache / "verdicts", reuse=True)
        sources = Sources(self.corpus, self._home or Path(), allow_code=allow_code, judged=judged)
        return labeller_of({"use": spec["use"], "with": options}, sources)

    def _unchanged(self, written: str) -> Path | None:
        """Return the path of a file named in the experiment file, or None if it is missing or has changed."""
        digest = self.manifest.files.get(written)
        if self._home is None or digest is None:
            return None
        path = self._home / written
        file = corpus_file(path)
        return path if file.is_file() and sha256(file) == digest else None

    @cached_property
    def _home(self) -> Path | None:
        if self.home is not None:
            return self.home
        try:
            experiment = self._from_timings("experiment")
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (self.path / experiment).parent.resolve() if isinstance(experiment, str) else None


def folders_of(paths: Sequence[Path]) -> list[Path]:
    """Find the result folders at paths, in experiments' folders (oldest run first), or named by a `latest` file."""
    faults = Faults()
    folders: list[Path] = []
    for path in paths:
        if path.name == LATEST and path.is_file():
            path = path.parent / path.read_text(encoding="utf-8", errors="replace").strip()
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


def order_of(qids: Sequence[str], wanted: Sequence[str], fault: str) -> NDArray[np.int64]:
    """Return the index of each wanted query in `qids`, or raise `DataError` with `fault` if the two sets differ."""
    places = {qid: place for place, qid in enumerate(qids)}
    if places.keys() != set(wanted):
        raise DataError(fault)
    return np.array([places[qid] for qid in wanted], dtype=np.int64)


def read_folders(paths: Sequence[Path]) -> list[ResultFolder]:
    """Read result folders, or raise `DataError` with the errors in all of them."""
    faults = Faults()
    folders: list[ResultFolder] = []
    for path in paths:
        with faults.merging():
            folders.append(ResultFolder.read(path))
    faults.stop()
    return folders
