"""Experiment files: read, checked all at once with line and column, and resolved."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from groupgt.engines.choice import Engine, engine_of
from groupgt.errors import ConfigError, near_names
from groupgt.experiment.description.changing import change
from groupgt.experiment.description.checks import Checks
from groupgt.experiment.description.explaining import explain
from groupgt.experiment.description.families import Families, placed
from groupgt.experiment.description.matrix import matching
from groupgt.experiment.description.schema import Config
from groupgt.experiment.description.systems import System
from groupgt.experiment.description.yamlfile import Document, Path_, plain_text, read_yaml
from groupgt.formats.parts import is_url
from groupgt.metrics.language import Metric
from groupgt.model.policy import Policy

__all__ = ["Experiment", "load"]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A checked experiment file: the configuration, its systems by name, those that are reported, and the metrics.

    `document` knows where everything stands, for faults that only the data can show.
    """

    path: Path
    document: Document
    config: Config
    systems: dict[str, System]
    chosen: list[str]
    metrics: dict[str, Metric]
    policy: Policy
    allow_code: bool = False

    @cached_property
    def engine(self) -> Engine:
        """What labels stored results."""
        section = self.config.engine
        return engine_of({"use": section.use, "with": section.with_})

    def at(self, path: str) -> Path:
        """A path of the file: relative ones are relative to the file."""
        return placed(self.path.parent, path)

    def located(self, path: str) -> str:
        """The same as text; a URL stays as it is."""
        return path if is_url(path) else str(self.at(path))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every (dataset, system) that is to be evaluated."""
        for dataset in self.config.datasets:
            for name in self.chosen:
                if self.systems[name].serves(dataset):
                    yield dataset, name

    def options(self, system: str, dataset: str) -> Any:
        """The options of a system on one dataset: its paths are absolute, `{dataset}` is filled in."""
        options = self.systems[system].options
        given = {name: getattr(options, name) for name in self.paths_of(system)}
        return replace(
            options, **{name: self.located(path.replace("{dataset}", dataset)) for name, path in given.items()}
        )

    def paths_of(self, system: str) -> list[str]:
        """Which options of a system are paths that are given: those of files, and of a folder where it is there."""
        options = self.systems[system].options
        return [
            each.name
            for each in fields(options)
            if (given := getattr(options, each.name))
            and (each.metadata.get("path") or (each.metadata.get("folder") and self.at(given).is_dir()))
        ]


def load(path: Path, *, changes: Sequence[str] = (), only: Sequence[str] = (), allow_code: bool = False) -> Experiment:
    """Reads and checks an experiment file; raises `ConfigError` with every fault, each with line and column.

    `changes` are settings such as `evaluate.k=[5]`; `only` are patterns of the systems to report; code of the user's
    is refused without `allow_code`.
    """
    document = read_yaml(path)
    for each in changes:
        change(document, each)
    config = _validated(document)
    if config is None:
        document.faults.fail(ConfigError)
    checks = Checks(document, config, path, allow_code=allow_code)
    checks.walk()
    systems = checks.families.systems
    chosen = _chosen(document, checks.families, only, checks.baseline)
    document.sort()
    document.faults.stop(ConfigError)
    return Experiment(path, document, config, systems, chosen, checks.metrics, checks.policy, allow_code)


def _chosen(document: Document, families: Families, only: Sequence[str], baseline: str | None) -> list[str]:
    """The systems to report: those that are asked for, and the baseline they are compared with."""
    names = list(families.systems)
    if not only:
        return names
    found = {baseline}
    for pattern in only:
        matched = matching(pattern, names)
        if not matched and not families.may_be(pattern):
            near = families.hint(pattern) or near_names(pattern, names)
            shown = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
            document.faults.add(f"--only {plain_text(pattern)}", f"no system has this name{near}; there are {shown}")
        found.update(matched)
    return [name for name in names if name in found]


# What stands in for a key that is needed and at fault, so that the rest can be checked as well.
STAND_INS: dict[Path_, Any] = {
    ("version",): 1,
    ("name",): "name",
    ("evaluate",): {"metrics": ["recall"]},
    ("evaluate", "metrics"): ["recall"],
    ("datasets",): {"dataset": {"ground_truth": "."}},
    ("systems",): {"system": {"use": ""}},
}


def _validated(document: Document) -> Config | None:
    """The configuration; what is at fault is explained, and left out or stood in for: so the rest is checked too."""
    value = copy.deepcopy(document.value)
    unset = set(document.partial)
    for attempt in range(4):
        try:
            return Config.model_validate(value)
        except ValidationError as error:
            found = error.errors()
            for fault in found:
                if attempt == 0 and tuple(fault["loc"]) not in unset:
                    explain(fault, document)
            for fault in sorted(found, key=lambda each: str(each["loc"]), reverse=True):
                path = tuple(part for part in fault["loc"] if part != "[key]")
                _leave_out(value, path, fault["type"], document.partial)
    return None


def _leave_out(value: Any, path: Path_, kind: str, partial: set[Path_]) -> None:
    if not path:
        return
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return
    partial.add(path)
    if path in STAND_INS and isinstance(value, dict):
        value[path[-1]] = copy.deepcopy(STAND_INS[path])
    elif kind == "missing" and isinstance(value, dict):
        value[path[-1]] = ""
    elif isinstance(value, dict):
        value.pop(path[-1], None)
    elif isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value):
        if path[0] == "gate":
            value[path[-1]] = {"system": "*", "metric": ""}  # those after it keep their places
        else:
            value.pop(path[-1])
