"""Experiment files: read, checked all at once with line and column, and resolved."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import groupgt
from groupgt.engines.choice import ENGINES, Engine, engine_of
from groupgt.errors import ConfigError, GroupgtError, near_names
from groupgt.experiment.best import check_best
from groupgt.experiment.gates import check_gate
from groupgt.experiment.schema import Config, Dataset, Use, explain
from groupgt.experiment.systems import Families, System, exists, matching, placed
from groupgt.experiment.yaml import Document, Path_, change, plain_text, read_yaml
from groupgt.formats.detect import TRUTHS
from groupgt.formats.parts import is_url
from groupgt.formats.tokenizers import check_tokenizer
from groupgt.labellers.options import options_of
from groupgt.labellers.registry import LABELLERS, kind_named, paths_of
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.language import Metric, parse_metric, parse_metrics
from groupgt.metrics.values import check_policy
from groupgt.model.policy import Policy


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


class Checks:
    """Walks a configuration, collects its faults, and resolves what is sound.

    Nothing is said of what only follows from another fault.
    """

    def __init__(self, document: Document, config: Config, path: Path, *, allow_code: bool) -> None:
        self.document, self.config, self.folder, self.allow_code = document, config, path.parent, allow_code
        self.families = Families(document, config, path.parent, allow_code=allow_code)
        self.metrics: dict[str, Metric] = {}
        self.policy = Policy()
        self.baseline: str | None = None

    def walk(self) -> None:
        """Checks everything."""
        config = self.config
        if config.version != 1:
            self.document.fault(("version",), f"expected 1, found {config.version}")
        if config.groupgt is not None:
            self._requirement(config.groupgt)
        self._among(("convention",), config.convention, CONVENTIONS)
        for name, dataset in config.datasets.items():
            self._dataset(("datasets", name), dataset)
        systems = self.families.walk()
        self._baseline()
        # A convention that is not known was said above; names and cutoffs can be looked at all the same.
        convention = config.convention if config.convention in CONVENTIONS else CONVENTIONS[0]
        known = self._evaluate(convention)
        for number, gate in enumerate(config.gate):
            if self.document.whole("gate", number):
                metrics = self.metrics if known else {}
                check_gate(number, gate, self.document, config, self.families, systems, metrics, convention)
        for path, folder in ((("cache",), config.cache), (("output", "folder"), config.output.folder)):
            if folder is not None and (not folder.strip() or "\0" in folder) and self.document.whole(*path):
                self.document.fault(path, f"expected a folder, found {folder!r}")

    def _among(self, path: Path_, value: str, known: Any) -> bool:
        """Whether a value is known; says so where it is not."""
        if value in known or not self.document.whole(*path):
            return value in known
        self.document.unknown(path, value, known)
        return False

    def _requirement(self, text: str) -> None:
        """The least version of groupgt."""
        match = re.fullmatch(r"\s*>=\s*([0-9]+(?:\.[0-9]+)*)\s*", text)
        if match is None:
            self.document.fault(("groupgt",), f'expected a least version such as ">=0.1", found {text!r}')
        elif _version(match[1]) > _version(groupgt.__version__):
            self.document.fault(("groupgt",), f"this is groupgt {groupgt.__version__}, and the file needs {text}")

    def _dataset(self, path: Path_, dataset: Dataset) -> None:
        """Files and the format of a dataset."""
        build = None if dataset.build is None else placed(self.folder, dataset.build)
        if build is not None and not exists(build) and self.document.whole(*path, "build"):
            self.document.fault((*path, "build"), f"there is no such file: {build}")
        for key in ("ground_truth", "corpus"):
            given = getattr(dataset, key)
            if given is None or not self.document.whole(*path, key):
                continue
            found = placed(self.folder, given)
            if not given.strip():
                self.document.fault((*path, key), f"expected a path, found {given!r}")
            elif not exists(found) and build is None:
                self.document.fault((*path, key), f"there is no such file: {found}")
            elif not exists(found) and not self.allow_code:
                made = f"run it (python {build}), or add --allow-code"
                self.document.fault((*path, key), f"{found} is not there yet; a script makes it: {made}")
        if dataset.format is not None:
            self._among((*path, "format"), dataset.format, TRUTHS)

    def _baseline(self) -> None:
        """The baseline of comparisons."""
        compare = self.config.compare
        if compare is None or not self.document.whole("compare", "baseline"):
            return
        if compare.test in ("t", "wilcoxon") and find_spec("scipy") is None:
            self.document.fault(("compare", "test"), f"{compare.test} needs SciPy: pip install 'groupgt[stats]'")
        if compare.baseline in self.families.systems:
            self.baseline = compare.baseline
        elif not self.families.may_be(compare.baseline):
            self.document.unknown(("compare", "baseline"), compare.baseline, list(self.families.systems))

    def _evaluate(self, convention: str) -> bool:
        """Metrics, policy, labeller, and how the best is chosen; whether all metrics are known."""
        section, document = self.config.evaluate, self.document
        self._labeller(section.labeller)
        self._engine()
        try:
            self.policy = Policy.of(section.policy)
        except GroupgtError as error:
            for text in error.faults:
                field = next((name for name in section.policy if name in text), "")
                document.fault(("evaluate", "policy", *([field] if field else [])), text)
        if section.tokenizer is not None:
            try:
                check_tokenizer(section.tokenizer, allow_code=self.allow_code)
            except GroupgtError as error:
                document.fault(("evaluate", "tokenizer"), str(error))
        known = document.whole("evaluate", "metrics") and document.whole("evaluate", "k")
        for position, text in enumerate(section.metrics):
            try:
                found = parse_metrics([text], convention, section.k)
                check_policy(self.policy, found)
                self.metrics |= found
            except GroupgtError as error:
                document.fault(("evaluate", "metrics", position), str(error))
                known = False
        if section.primary is not None and document.whole("evaluate", "primary"):
            self._metric(("evaluate", "primary"), section.primary, convention, known=known)
        best = [
            self._metric(("evaluate", "best", "metrics", position), text, convention, known=known)
            for position, text in enumerate(section.best.metrics)
        ]
        for position, text in enumerate(self.config.compare.metrics if self.config.compare is not None else ()):
            self._metric(("compare", "metrics", position), text, convention, known=known)
        if known and all(best) and document.whole("evaluate", "best") and document.whole("evaluate", "primary"):
            check_best(document, section, self.metrics, convention)
        return known

    def _labeller(self, labeller: Use) -> None:
        """The labeller, its options, and the files they name, of every data set."""
        path: Path_ = ("evaluate", "labeller")
        if not self._among((*path, "use"), labeller.use, list(LABELLERS)):
            return
        kind = kind_named(labeller.use)
        _, faults = options_of(kind.options, labeller.with_)
        for key, what in faults:
            self.document.fault((*path, "with", key), what, key=what.startswith("unknown"))
        if labeller.use == "code" and not self.allow_code:
            self.document.fault((*path, "use"), "code runs code of yours; allow it with --allow-code")
        for key in paths_of(kind, labeller.with_):
            given = labeller.with_[key]
            for dataset in self.config.datasets:
                found = placed(self.folder, given.replace("{dataset}", dataset))
                if not exists(found):
                    self.document.fault((*path, "with", key), f"there is no such file: {found}")

    def _engine(self) -> None:
        """The engine and its options."""
        engine = self.config.engine
        if not self._among(("engine", "use"), engine.use, list(ENGINES)):
            return
        _, faults = options_of(ENGINES[engine.use], engine.with_)
        for key, what in faults:
            self.document.fault(("engine", "with", key), what, key=what.startswith("unknown"))
        if engine.use == "spark" and find_spec("pyspark") is None:
            self.document.fault(("engine", "use"), "spark needs PySpark: pip install 'groupgt[spark]'")

    def _metric(self, path: Path_, text: str, convention: str, *, known: bool) -> bool:
        """Whether it is one of the metrics, in any spelling; where not all are `known`, whether it is a metric."""
        try:
            metric = parse_metric(text, convention)
        except GroupgtError as error:
            self.document.fault(path, str(error))
            return False
        if known and metric not in self.metrics.values():
            self.document.unknown(path, text, list(self.metrics), "one of the metrics: ")
            return False
        return True


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
