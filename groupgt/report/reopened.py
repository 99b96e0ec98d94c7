"""A result folder opened again: its ground truth and runs, and how they were measured, for further analysis.

`groupgt misses`, `explain`, `compare`, `depth`, `power` and `evaluate` take one in place of ground truth and runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, DataError, Faults, near_names
from groupgt.evaluation.inputs import as_ground_truth
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.formats.corpus import corpus_file
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.options import paths_of
from groupgt.plugins import find
from groupgt.report.result_folders import folders_of, manifest_at, written_policy
from groupgt.report.results import Manifest, file_name, slug
from groupgt.store.files import sha256
from groupgt.store.verdicts import VerdictStore

AGAIN = "run the experiment again with this version"


@dataclass(frozen=True, eq=False)
class Reopened:
    """One data set of a result folder, and some of its systems, in the order of its tables.

    What the folder does not hold (a corpus, what a labeller reads) is looked for beside the experiment file, and used
    where it is as it was.
    """

    folder: Path
    dataset: str
    systems: list[str]
    manifest: Manifest

    @classmethod
    def at(cls, path: Path, dataset: str | None = None, systems: Sequence[str] = ()) -> Reopened:
        """The folder that a path names, the newest where it names several; raises `DataError` or `ConfigError`."""
        folder = folders_of([path])[-1]
        manifest = manifest_at(folder)
        datasets = list(manifest["counts"])
        if dataset is None and len(datasets) > 1:
            raise ConfigError(f"{folder}: has the data sets {', '.join(datasets)}; choose one with --dataset")
        chosen = datasets[0] if dataset is None else dataset
        if chosen not in datasets:
            near = near_names(chosen, datasets)
            raise ConfigError(f"--dataset: expected {' or '.join(datasets)}, found {chosen!r}{near}")
        known = list(manifest["counts"][chosen])
        faults = Faults()
        for name in systems:
            if name not in known:
                faults.add(
                    "--system", f"{name!r} is not in {folder}{near_names(name, known)}; it has {', '.join(known)}"
                )
        faults.stop(ConfigError)
        return cls(folder, chosen, list(systems) or known, manifest)

    @property
    def convention(self) -> str:
        """The convention of the run."""
        return self.manifest["config"]["convention"]

    @property
    def metrics(self) -> list[str]:
        """The metrics of the run, by their full names."""
        return self.manifest["metrics"]

    @property
    def primary(self) -> str | None:
        """The metric that decided which system was best."""
        primary: str | None = self.manifest["config"]["evaluate"].get("primary")
        return primary

    @cached_property
    def policy(self) -> Policy:
        """The policy of the run."""
        return written_policy(self.manifest["policy"])

    @property
    def compare(self) -> Mapping[str, Any]:
        """How the run was compared: the baseline, and settings by name; empty where it was not."""
        config: Mapping[str, Any] = self.manifest["config"]
        return {**(config.get("compare") or {}), "seed": config["seed"]}

    @property
    def truth_path(self) -> Path:
        """Where the ground truth of the data set is kept."""
        return self.folder / "truth" / f"{slug(self.dataset)}.jsonl"

    def truth(self, policy: Policy) -> GroundTruth:
        """The ground truth that was measured with."""
        if not self.truth_path.is_file():
            raise DataError(f"{self.folder}: expected {self.truth_path.name} in truth, found none; {AGAIN}")
        return as_ground_truth(self.truth_path, policy, "jsonl")

    @cached_property
    def runs(self) -> list[tuple[str, Any]]:
        """(name, path) of every system; raises `DataError` with all that are kept nowhere."""
        faults = Faults()
        runs: list[tuple[str, Any]] = []
        for name in self.systems:
            start = self.folder / "runs" / slug(self.dataset) / file_name(name)
            kept = (start.with_name(f"{start.name}{ending}") for ending in (".trec", ".jsonl"))
            path = next((file for file in kept if file.is_file()), None) or self._read_from(name)
            if path is None:
                faults.add(str(self.folder), f"the run of {name!r} is not kept in it; {AGAIN}")
            else:
                runs.append((name, path))
        faults.stop()
        return runs

    def _read_from(self, system: str) -> Path | None:
        """The file that a system's results were read from, where they were too large to be kept."""
        resolved = self.manifest["systems"][system]
        path = resolved["options"].get("path")
        if resolved["use"] != "results" or not isinstance(path, str):
            return None
        return self.unchanged(path.replace("{dataset}", self.dataset))

    @cached_property
    def corpus(self) -> Path | None:
        """The corpus of the data set, where it is as it was."""
        config: Mapping[str, Any] = self.manifest["config"]
        written = config["datasets"][self.dataset].get("corpus")
        return None if written is None else self.unchanged(written)

    @property
    def tokenizer(self) -> str | None:
        """What counts tokens."""
        evaluate: Mapping[str, Any] = self.manifest["config"]["evaluate"]
        tokenizer: str | None = evaluate.get("tokenizer")
        return tokenizer

    def labeller(self, *, allow_code: bool) -> Labeller:
        """The labeller of the run; raises `DataError` where a file that it reads is gone or has changed.

        A judge is asked about what the run did not ask it.
        """
        spec: Any = self.manifest["config"]["evaluate"].get("labeller") or {"use": "id"}
        options = {
            name: value.replace("{dataset}", self.dataset) if isinstance(value, str) else value
            for name, value in spec.get("with", {}).items()
        }
        faults = Faults()
        for name in paths_of(find("labeller", spec["use"]).options, options):
            if self.unchanged(options[name]) is None:
                faults.add(
                    str(self.folder),
                    f"the labeller {spec['use']} read {options[name]}, which is gone or has changed; name the labeller "
                    "and its files with --labeller and --with, or run the experiment again",
                )
        faults.stop()
        if spec.get("version"):
            options["version"] = spec["version"]
        config: Mapping[str, Any] = self.manifest["config"]
        cache = config.get("cache")
        judged = None
        if self._home is not None and isinstance(cache, str):
            judged = VerdictStore(self._home / cache / "verdicts", reuse=True)
        sources = Sources(self.corpus, self._home or Path(), allow_code=allow_code, judged=judged)
        return labeller_of({"use": spec["use"], "with": options}, sources)

    def unchanged(self, written: str) -> Path | None:
        """A file by the name that the experiment file has for it; None where it is gone or has changed."""
        digest = self.manifest["files"].get(written)
        if self._home is None or digest is None:
            return None
        path = self._home / written
        file = corpus_file(path)
        return path if file.is_file() and sha256(file) == digest else None

    @cached_property
    def _home(self) -> Path | None:
        """The folder of the experiment file, where it is known."""
        try:
            timings = json.loads((self.folder / "timings.json").read_text(encoding="utf-8"))
            experiment = timings["experiment"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (self.folder / experiment).parent.resolve() if isinstance(experiment, str) else None
