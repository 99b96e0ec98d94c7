"""Experiment files: read, checked all at once with line and column, and resolved."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import groupgt
from groupgt.errors import ConfigError, GroupgtError, listed, near_names
from groupgt.evaluation.core import check_policy
from groupgt.experiment.schema import OUTPUTS, Config, Dataset, SystemConfig, known_keys, model_of
from groupgt.experiment.yamlfile import Document, Path_, read_yaml
from groupgt.formats.detect import RUNS, TRUTHS
from groupgt.labellers.registry import LABELLERS
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.language import Metric, parse_metric, parse_metrics
from groupgt.model.policy import Policy
from groupgt.retrievers.registry import RETRIEVERS

__all__ = ["Experiment", "load"]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A checked experiment file: the configuration, the options of each system, and the metrics by their text."""

    path: Path
    config: Config
    options: dict[str, Any]
    metrics: dict[str, Metric]
    policy: Policy

    def at(self, path: str) -> Path:
        """A path of the file: relative ones are relative to the file."""
        return (self.path.parent / path).resolve() if not Path(path).is_absolute() else Path(path)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every (dataset, system) that is to be evaluated."""
        for dataset in self.config.datasets:
            for name, system in self.config.systems.items():
                if not system.only or dataset in system.only:
                    yield dataset, name


def load(path: Path) -> Experiment:
    """Reads and checks an experiment file; raises `ConfigError` with every fault, each with line and column."""
    document = read_yaml(path)
    config = _validated(document)
    if config is None:
        document.faults.fail(ConfigError)
    checks = _Checks(document, config, path)
    checks.walk()
    document.faults.stop(ConfigError)
    return Experiment(path, config, checks.options, checks.metrics, checks.policy)


def _validated(document: Document) -> Config | None:
    """The configuration; what is at fault in it is explained, and left out so that the rest can be checked as well."""
    value = copy.deepcopy(document.value)
    for _ in range(2):
        try:
            return Config.model_validate(value)
        except ValidationError as error:
            if document.value != value:
                return None
            for fault in error.errors():
                _explain(fault, document)
            for fault in sorted(error.errors(), key=lambda each: str(each["loc"]), reverse=True):
                _leave_out(value, fault["loc"])
    return None


# What stands in for a key that is needed and at fault, so that the rest can be checked as well.
STAND_INS: dict[Path_, Any] = {("version",): 1, ("name",): "name"}


def _leave_out(value: Any, path: Path_) -> None:
    if not path:
        return
    if path in STAND_INS and isinstance(value, dict):
        value[path[0]] = STAND_INS[path]
        return
    for part in path[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict) or (isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value)):
        value.pop(path[-1], None) if isinstance(value, dict) else value.pop(int(path[-1]))


def _explain(fault: Any, document: Document) -> None:
    """One fault of pydantic in our words, at its place."""
    path = tuple(part for part in fault["loc"] if part != "[key]")
    kind, found, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = known_keys(path[:-1])
        document.fault(path, f"unknown key; known are {', '.join(known)}{near_names(str(path[-1]), known)}", key=True)
        return
    if kind == "missing":
        document.fault(path, "this key is needed and missing")
        return
    expected = {
        "string_type": "text",
        "int_type": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "model_attributes_type": "a mapping",
        "string_pattern_mismatch": "a name of letters, digits, blanks, '.', '_', '+' and '-'",
        "greater_than_equal": f"a number of at least {context.get('ge')}",
        "less_than_equal": f"a number of at most {context.get('le')}",
        "too_short": "at least one",
        "string_too_long": f"at most {context.get('max_length')} characters",
    }.get(kind, fault["msg"])
    shown = repr(found) if not isinstance(found, (dict, list)) else {dict: "a mapping", list: "a list"}[type(found)]
    shown = "nothing" if found in ({}, [], None) else shown
    document.fault(tuple(part for part in path if isinstance(part, (str, int))), f"expected {expected}, found {shown}")


class _Checks:
    """What a schema cannot say: names that must be known, paths that must be there, options of each retriever."""

    def __init__(self, document: Document, config: Config, path: Path) -> None:
        self.document, self.config, self.folder = document, config, path.parent
        self.options: dict[str, Any] = {}
        self.metrics: dict[str, Metric] = {}
        self.policy = Policy()

    def walk(self) -> None:
        config = self.config
        if config.version != 1:
            self.document.fault(("version",), f"expected 1, found {config.version}")
        if config.groupgt is not None:
            self.requirement(config.groupgt)
        self.among(("convention",), config.convention, CONVENTIONS)
        for name, dataset in config.datasets.items():
            self.dataset(("datasets", name), dataset)
        for name, system in config.systems.items():
            self.system(name, system)
        self.evaluate()
        for position, each in enumerate(config.output.formats):
            self.among(("output", "formats", position), each, OUTPUTS)

    def among(self, path: Path_, value: str, known: Any) -> bool:
        if value in known:
            return True
        self.document.fault(path, f"expected {listed(known)}, found {value!r}{near_names(value, known)}")
        return False

    def requirement(self, text: str) -> None:
        match = re.fullmatch(r"\s*>=\s*([0-9]+(?:\.[0-9]+)*)\s*", text)
        if match is None:
            self.document.fault(("groupgt",), f'expected a least version such as ">=0.1", found {text!r}')
        elif _version(match[1]) > _version(groupgt.__version__):
            self.document.fault(("groupgt",), f"this is groupgt {groupgt.__version__}, and the file needs {text}")

    def dataset(self, path: Path_, dataset: Dataset) -> None:
        for key in ("ground_truth", "corpus"):
            given = getattr(dataset, key)
            if given is not None and not _exists(self.at(given)):
                self.document.fault((*path, key), f"there is no such file: {self.at(given)}")
        if dataset.format is not None:
            self.among((*path, "format"), dataset.format, TRUTHS)

    def at(self, given: str) -> Path:
        return Path(given) if Path(given).is_absolute() else (self.folder / given).resolve()

    def system(self, name: str, system: SystemConfig) -> None:
        path: Path_ = ("systems", name)
        for position, dataset in enumerate(system.only):
            self.among((*path, "only", position), dataset, list(self.config.datasets))
        if not self.among((*path, "use"), system.use, list(RETRIEVERS)):
            return
        kind = RETRIEVERS[system.use]
        options = self.read_options((*path, "with"), kind.options, system.with_)
        if options is None:
            return
        self.options[name] = options
        datasets = system.only or list(self.config.datasets)
        for dataset in (each for each in datasets if each in self.config.datasets):
            if kind.build is not None and self.config.datasets[dataset].corpus is None:
                self.document.fault(path, f"{system.use} searches a corpus, and dataset {dataset!r} has none")
            if system.use == "results":
                found = self.at(options.at(dataset))
                if not _exists(found):
                    self.document.fault((*path, "with", "path"), f"there is no such file: {found}")
                if options.format is not None:
                    self.among((*path, "with", "format"), options.format, RUNS)

    def read_options(self, path: Path_, kind: type[Any], given: dict[str, Any]) -> Any:
        """The options of a retriever: its dataclass is its schema."""
        known = [field.name for field in fields(kind)]
        for key in (key for key in given if key not in known):
            self.document.fault(
                (*path, key), f"unknown key; known are {', '.join(known)}{near_names(key, known)}", key=True
            )
        try:
            values = model_of(kind).model_validate({key: given[key] for key in given if key in known})
            return kind(**dict(values))
        except ValidationError as error:
            for fault in error.errors():
                _explain({**fault, "loc": (*path, *fault["loc"])}, self.document)
        except ConfigError as error:
            for text in error.faults:
                key, _, what = text.partition(": ")
                self.document.fault((*path, key), what)
        return None

    def evaluate(self) -> None:
        section = self.config.evaluate
        self.among(("evaluate", "labeller", "use"), section.labeller.use, list(LABELLERS))
        if section.labeller.with_:
            self.document.fault(("evaluate", "labeller", "with"), f"the labeller {section.labeller.use} has no options")
        try:
            self.policy = Policy.of(section.policy)
        except GroupgtError as error:
            for text in error.faults:
                field = next((name for name in section.policy if name in text), "")
                self.document.fault(("evaluate", "policy", *([field] if field else [])), text)
        # A convention that is not known was said above; names and cutoffs can be looked at all the same.
        convention = self.config.convention if self.config.convention in CONVENTIONS else CONVENTIONS[0]
        for position, text in enumerate(section.metrics):
            try:
                self.metrics |= parse_metrics([text], convention, section.k)
                for metric in self.metrics.values():
                    _ = metric.k  # a budget cannot be evaluated here
                check_policy(self.policy, self.metrics)
            except GroupgtError as error:
                self.document.fault(("evaluate", "metrics", position), str(error))
        if section.primary is not None and len(self.metrics) >= len(section.metrics):
            self.primary(section.primary, convention)

    def primary(self, text: str, convention: str) -> None:
        try:
            metric = parse_metric(text, convention)
        except GroupgtError as error:
            self.document.fault(("evaluate", "primary"), str(error))
            return
        if self.metrics and metric not in self.metrics.values():
            near = near_names(text, self.metrics)
            known = ", ".join(self.metrics)
            self.document.fault(("evaluate", "primary"), f"expected one of the metrics ({known}), found {text!r}{near}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
