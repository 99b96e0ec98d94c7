"""What a schema cannot say: names that must be known, paths that must be there, options of each retriever."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import groupgt
from groupgt.errors import ConfigError, GroupgtError, listed, near_names
from groupgt.evaluation.core import check_policy
from groupgt.experiment import selection
from groupgt.experiment.explaining import explain
from groupgt.experiment.gate import check_gate
from groupgt.experiment.matrix import LARGEST, Variant, matching, size, variants
from groupgt.experiment.schema import Config, Dataset, SystemConfig, model_of
from groupgt.experiment.systems import System
from groupgt.experiment.yamlfile import Document, Path_
from groupgt.formats.detect import RUNS, TRUTHS
from groupgt.labellers.registry import LABELLERS
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.language import Metric, parse_metric, parse_metrics
from groupgt.model.policy import Policy
from groupgt.retrievers.base import Kind
from groupgt.retrievers.callable import imported
from groupgt.retrievers.registry import absent, kind_named

__all__ = ["Checks"]


class Checks:
    """Walks a configuration, collects its faults, and resolves what is sound.

    `partial` are the paths where something at fault was left out: nothing is said of what depends on them.
    """

    def __init__(
        self, document: Document, config: Config, path: Path, *, partial: set[Path_], allow_code: bool
    ) -> None:
        self.document, self.config, self.folder = document, config, path.parent
        self.partial, self.allow_code = partial, allow_code
        self.systems: dict[str, System] = {}
        self.metrics: dict[str, Metric] = {}
        self.policy = Policy()
        self.baseline: str | None = None
        self.sound = True

    def whole(self, *path: str | int) -> bool:
        """Whether nothing at or below a path was left out."""
        return not any(each[: len(path)] == path or path[: len(each)] == each for each in self.partial)

    def walk(self) -> None:
        """Checks everything."""
        config = self.config
        if config.version != 1:
            self.document.fault(("version",), f"expected 1, found {config.version}")
        if config.groupgt is not None:
            self.requirement(config.groupgt)
        self.among(("convention",), config.convention, CONVENTIONS)
        for name, dataset in config.datasets.items():
            self.dataset(("datasets", name), dataset)
        for name, system in config.systems.items():
            self.family(name, system)
        # Where a system is at fault, nothing can be said about who names it.
        if self.sound:
            self.fusions()
            self.named_systems()
        self.evaluate()
        if self.sound and self.whole("evaluate"):
            for number, gate in enumerate(config.gate):
                if self.whole("gate", number):
                    check_gate(number, gate, self.document, config, self.systems, self.metrics)

    def among(self, path: Path_, value: str, known: Any) -> bool:
        """Whether a value is known; says so where it is not."""
        if value in known:
            return True
        self.document.fault(path, f"expected {listed(known)}, found {value!r}{near_names(value, known)}")
        return False

    def requirement(self, text: str) -> None:
        """The least version of groupgt."""
        match = re.fullmatch(r"\s*>=\s*([0-9]+(?:\.[0-9]+)*)\s*", text)
        if match is None:
            self.document.fault(("groupgt",), f'expected a least version such as ">=0.1", found {text!r}')
        elif _version(match[1]) > _version(groupgt.__version__):
            self.document.fault(("groupgt",), f"this is groupgt {groupgt.__version__}, and the file needs {text}")

    def dataset(self, path: Path_, dataset: Dataset) -> None:
        """Files and the format of a dataset."""
        if dataset.build is not None and not _exists(self.at(dataset.build)):
            self.document.fault((*path, "build"), f"there is no such file: {self.at(dataset.build)}")
        for key in ("ground_truth", "corpus"):
            given = getattr(dataset, key)
            if given is None or not self.whole(*path, key) or _exists(self.at(given)):
                continue
            if dataset.build is None:
                self.document.fault((*path, key), f"there is no such file: {self.at(given)}")
            elif not self.allow_code:
                made = f"run it (python {self.at(dataset.build)}), or add --allow-code"
                self.document.fault((*path, key), f"{self.at(given)} is not there yet; a script makes it: {made}")
        if dataset.format is not None:
            self.among((*path, "format"), dataset.format, TRUTHS)

    def at(self, given: str) -> Path:
        """A path of the file."""
        return Path(given) if Path(given).is_absolute() else (self.folder / given).resolve()

    def family(self, family: str, config: SystemConfig) -> None:
        """One entry of `systems`, and every system it stands for."""
        path: Path_ = ("systems", family)
        for position, dataset in enumerate(config.only):
            self.among((*path, "only", position), dataset, list(self.config.datasets))
        if not self.whole(*path, "use"):
            self.sound = False
            return
        try:
            kind = kind_named(config.use)
        except ConfigError as error:
            self.document.fault((*path, "use"), str(error))
            self.sound = False
            return
        if missing := absent(kind):
            self.document.fault((*path, "use"), f"{config.use} {missing}")
        if kind.runs_code and not self.allow_code:
            self.document.fault((*path, "use"), f"{config.use} runs code of yours; allow it with --allow-code")
        if config.inputs and kind.fuse is None:
            self.document.fault((*path, "inputs"), f"{config.use} combines no other systems; remove this key", key=True)
        if kind.fuse is not None and not config.inputs:
            self.document.fault(path, f"{config.use} combines other systems; name them as `inputs`")
        for key in (key for key in config.matrix if key in config.with_):
            self.document.fault((*path, "matrix", key), f"{key} stands under `with` too; remove one", key=True)
        if (count := size(config)) > LARGEST:
            self.document.fault((*path, "matrix"), f"expected at most {LARGEST:,} combinations, found {count:,}")
            return
        self.covers(path, config, kind)
        for variant in variants(family, config):
            options = self.read_options(path, kind.options, variant)
            if options is None:
                self.sound = False
                continue
            if variant.name in self.systems:
                self.document.fault((*path, "matrix"), f"{variant.name} stands twice; remove a value")
                continue
            self.systems[variant.name] = System(variant.name, family, config, kind, options, variant.paths)
            self.files(variant, options, self.served(config))

    def served(self, config: SystemConfig) -> list[str]:
        """The datasets of an entry."""
        return [name for name in self.config.datasets if not config.only or name in config.only]

    def covers(self, path: Path_, config: SystemConfig, kind: Kind) -> None:
        """Whether its datasets have what is searched."""
        for dataset in self.served(config):
            own = self.config.datasets[dataset]
            if kind.corpus and own.corpus is None and self.whole("datasets", dataset):
                self.document.fault(path, f"{config.use} searches a corpus, and dataset {dataset!r} has none")

    def files(self, variant: Variant, options: Any, datasets: Sequence[str]) -> None:
        """Whether the paths among the options lead somewhere, for every dataset."""
        for each in fields(options):
            given = getattr(options, each.name)
            if not (each.metadata.get("path") and given):
                continue
            for dataset in datasets:
                found = self.at(given.replace("{dataset}", dataset))
                if not _exists(found):
                    self.document.fault(variant.paths[each.name], f"there is no such file: {found}")
        if isinstance(getattr(options, "format", None), str):
            self.among(variant.paths["format"], options.format, RUNS)
        if hasattr(options, "target") and self.allow_code:
            try:
                imported(options.target, self.folder.resolve())
            except ConfigError as error:
                key, _, what = str(error).partition(": ")
                self.document.fault(variant.paths[key], what)

    def read_options(self, path: Path_, kind: type[Any], variant: Variant) -> Any:
        """The options of a retriever: its dataclass is its schema."""
        known = [field.name for field in fields(kind)]
        for key in (key for key in variant.options if key not in known):
            what = f"unknown key; known are {', '.join(known)}{near_names(key, known)}"
            where = variant.paths[key]
            self.document.fault(where[:4], what, key=True)
        given = {key: value for key, value in variant.options.items() if key in known}
        try:
            values = model_of(kind).model_validate(given)
            return kind(**dict(values))
        except ValidationError as error:
            for fault in error.errors():
                explain({**fault, "loc": (*path, "with", *fault["loc"])}, self.document, variant.paths)
        except ConfigError as error:
            for text in error.faults:
                key, _, what = text.partition(": ")
                self.document.fault(variant.paths.get(key, (*path, "with", key)), what)
        return None

    def fusions(self) -> None:
        """The inputs of every fusion: known, no circles, on its datasets."""
        for name, system in list(self.systems.items()):
            if system.kind.fuse is None:
                continue
            found: dict[str, None] = {}
            for position, pattern in enumerate(system.config.inputs):
                path: Path_ = ("systems", system.family, "inputs", position)
                others = [each for each, other in self.systems.items() if other.family != system.family]
                matched = matching(pattern, others)
                if not matched:
                    known = ", ".join(others[:20]) + (" …" if len(others) > 20 else "")
                    self.document.fault(
                        path, f"no other system is named {pattern!r}{near_names(pattern, others)}; there are {known}"
                    )
                found.update(dict.fromkeys(matched))
                for each in matched:
                    for dataset in self.served(system.config):
                        if not self.systems[each].serves(dataset):
                            self.document.fault(path, f"{each} is not run on dataset {dataset!r}; see its `only`")
            self.counted(system, len(found))
            self.systems[name] = replace(system, inputs=tuple(found))
        for circle in self.circles():
            self.document.fault(
                ("systems", self.systems[circle[0]].family, "inputs"), f"a fusion of itself: {' → '.join(circle)}"
            )

    def counted(self, system: System, inputs: int) -> None:
        """Lists among a fusion's options that hold a value for each input."""
        for key in ("weights", "least"):
            values = getattr(system.options, key, [])
            if values and inputs and len(values) != inputs:
                holder = "matrix" if key in system.config.matrix else "with"
                self.document.fault(
                    ("systems", system.family, holder, key),
                    f"expected {inputs} numbers, one for each input, found {len(values)}",
                )

    def circles(self) -> Iterator[tuple[str, ...]]:
        """Fusions that lead back to themselves, each once."""
        done: set[str] = set()
        for start in self.systems:
            stack: list[tuple[str, ...]] = [(start,)]
            while stack:
                path = stack.pop()
                if path[-1] in done:
                    continue
                for each in self.systems[path[-1]].inputs:
                    if each in path:
                        done.update(path)
                        yield (*path[path.index(each) :], each)
                        stack = []
                        break
                    stack.append((*path, each))
            done.add(start)

    def named_systems(self) -> None:
        """The baseline of comparisons."""
        compare = self.config.compare
        if compare is None:
            return
        if self.among(("compare", "baseline"), compare.baseline, list(self.systems)):
            self.baseline = compare.baseline

    def evaluate(self) -> None:
        """Metrics, policy, labeller, and how the best is chosen."""
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
        if not self.whole("evaluate", "metrics") or len(self.metrics) < len(section.metrics):
            return
        if section.primary is not None:
            self.metric(("evaluate", "primary"), section.primary, convention)
        for position, text in enumerate(section.best.metrics):
            self.metric(("evaluate", "best", "metrics", position), text, convention)
        selection.check(self.document, section, self.metrics, convention)

    def metric(self, path: Path_, text: str, convention: str) -> None:
        """One of the metrics, in any spelling."""
        try:
            metric = parse_metric(text, convention)
        except GroupgtError as error:
            self.document.fault(path, str(error))
            return
        if self.metrics and metric not in self.metrics.values():
            near = near_names(text, self.metrics)
            known = ", ".join(self.metrics)
            self.document.fault(path, f"expected one of the metrics ({known}), found {text!r}{near}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
