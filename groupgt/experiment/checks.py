"""Checks the configuration of an experiment, and resolves its systems, metrics, policy and convention."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec

import groupgt
from groupgt.comparison.tests import TESTS
from groupgt.errors import ConfigError, GroupgtError, near_names
from groupgt.evaluation.reading import Reading
from groupgt.experiment.best import check_best
from groupgt.experiment.config import BOUNDS, Config, Dataset, EngineConfig, Gate, LabellerConfig, SystemConfig
from groupgt.experiment.systems import Families, System, UsersCode, combined, matching, some_of, stages_of
from groupgt.experiment.timing import COSTS, LATENCIES, UNTIMED
from groupgt.experiment.yaml import Document, exists
from groupgt.formats.known import format_named, format_names
from groupgt.formats.source import neighbors
from groupgt.formats.tokenizers import check_tokenizer
from groupgt.metrics.base import OF_SHAPE, ConventionName
from groupgt.metrics.language import Metric, parse_metric, parse_metrics, warn_of_idle_cutoffs
from groupgt.metrics.values import check_aggregates, check_policy
from groupgt.model.policy import Policy
from groupgt.model.written import Shape
from groupgt.options import KeyPath, paths_of, read_options
from groupgt.plugins import Plugin


class Checks:
    """Checks a configuration and resolves the valid parts. Errors caused by another error are not reported."""

    def __init__(self, document: Document, config: Config, *, allow_code: bool, unchecked: list[str] | None) -> None:
        self.document, self.config, self.fault = document, config, document.fault
        self.code = UsersCode(document, allowed=allow_code, unchecked=unchecked)
        self.families = Families(document, config, self.code)
        self.metrics: dict[str, Metric] = {}
        self.convention: ConventionName = OF_SHAPE["groups"]
        self.policy = Policy()

    def walk(self) -> None:
        """Run all checks."""
        config = self.config
        if config.groupgt is not None:
            self._requirement(config.groupgt)
        for name, dataset in config.datasets.items():
            self._dataset(("datasets", name), dataset)
        self.families.walk()
        for name, system in config.systems.items():
            self._stages(("systems", name, "stages"), system)
            self._answers(("systems", name, "answers"), system)
        self._baseline()
        self._labeller(config.evaluate.labeller)
        self._plugin("engine", ("engine",), self.config.engine)
        self._policy()
        self._tokenizer()
        self._convention()
        are_valid = self._metrics()
        # If a gate is left out, those after it have other numbers in the file.
        written = self.document.value.get("gate")
        if isinstance(written, list) and len(config.gate) == len(written):
            for number, gate in enumerate(config.gate):
                if self.document.is_sound("gate", number):
                    self._gate(number, gate, are_valid=are_valid)
        self._output()

    def _requirement(self, text: str) -> None:
        match = re.fullmatch(r"\s*>=\s*([0-9]+(?:\.[0-9]+)*)\s*", text)
        if match is None:
            self.fault(("groupgt",), f'expected a minimum version such as ">=0.1", found {text!r}')
        elif _version(match[1]) > _version(groupgt.__version__):
            self.fault(("groupgt",), f"this is groupgt {groupgt.__version__}, but the file needs {text}")

    def _dataset(self, path: KeyPath, dataset: Dataset) -> None:
        compare = self.config.compare
        named = dataset.reading["truth_format"]
        if dataset.reading["audit"] is not None and compare is not None and compare.across == "datasets":
            self.fault((*path, "audit"), "an audit cannot correct differences between data sets (compare.across)")
        for key in ("ground_truth", "queries", "corpus", "audit"):
            text = getattr(dataset, key)
            if text is None or not self.document.is_sound(*path, key):
                continue
            file = self.document.resolved(text)
            if not text.strip():
                self.fault((*path, key), f"expected a path, found {text!r}")
            elif not exists(file):
                hint = f"; {dataset.fetch}" if dataset.fetch else ""
                self.fault((*path, key), f"file not found: {file}{hint or neighbors(file)}")
        if named is not None and self.document.is_sound(*path, "format") and not format_named(named, is_truth=True):
            self.document.unknown((*path, "format"), named, format_names(is_truth=True))

    def _stages(self, path: KeyPath, system: SystemConfig) -> None:
        if system.stages and system.matrix:
            self.fault(path, "all systems of a sweep would have the same stages; give this system its own entry")
        systems = self.families.systems
        for name, text in system.stages.items():
            for dataset in (each for each in self.config.datasets if system.serves(each)):
                try:
                    (stage,) = stages_of(replace(system, stages={name: text}), systems, dataset)
                except ConfigError as error:
                    self.fault((*path, name), str(error))
                    break
                file, is_system = self.document.resolved(stage.source), stage.is_system
                if not (is_system or self.families.may_be(stage.source) or exists(file)):
                    what = f"file not found: {file}; no system has this name{near_names(stage.source, systems)}"
                    self.fault((*path, name), what)
                    break
                if is_system and not systems[stage.source].config.serves(dataset):
                    what = f"the system {stage.source} is not run on dataset {dataset!r}; see its `only` key"
                    self.fault((*path, name), what)

    def _answers(self, path: KeyPath, system: SystemConfig) -> None:
        if system.answers is None:
            return
        if system.matrix:
            self.fault(path, "all systems of a sweep would have the same answers; give this system its own entry")
        for dataset in (each for each in self.config.datasets if system.serves(each)):
            for key, text in system.answers.paths(dataset).items():
                self.document.require((*path, key), text, dataset)

    def _baseline(self) -> None:
        compare = self.config.compare
        if compare is None or not self.document.is_sound("compare", "baseline"):
            return
        test = compare.settings(self.config.seed).test
        if TESTS[test].needs_scipy and find_spec("scipy") is None:
            self.fault(("compare", "test"), f"{test} needs SciPy: pip install 'groupgt[stats]'")
        if compare.across == "datasets":
            if compare.baseline not in self.config.datasets and self.document.is_sound("datasets"):
                path, kind = ("compare", "baseline"), "one of the data sets: "
                self.document.unknown(path, compare.baseline, self.config.datasets, kind)
        elif compare.baseline not in self.families.systems and not self.families.may_be(compare.baseline):
            self.document.unknown(("compare", "baseline"), compare.baseline, self.families.valid_names)

    def _labeller(self, labeller: LabellerConfig) -> None:
        """Check the labeller, its options, and the files it refers to for every data set."""
        path: KeyPath = ("evaluate", "labeller")
        plugin = self._plugin("labeller", path, labeller)
        if plugin is not None and plugin.runs_code and "version" in labeller.with_:
            self.fault((*path, "with", "version"), "belongs next to `use`, not among the options", key=True)
        elif plugin is not None and labeller.version and not plugin.runs_code:
            self.fault((*path, "version"), f"{plugin.name} needs no version; remove this key", key=True)
        for key in paths_of(plugin.options, labeller.with_) if plugin is not None else ():
            for dataset in self.config.datasets:
                self.document.require((*path, "with", key), labeller.with_[key], dataset)

    def _plugin(self, kind: str, path: KeyPath, section: LabellerConfig | EngineConfig) -> Plugin | None:
        """Find the plugin for a section and check its options, or return None if there is no such plugin."""
        plugin: Plugin | None = self.code.plugin(kind, section.use, (*path, "use"))
        for fault in read_options(plugin.options, section.with_)[1] if plugin is not None else ():
            self.fault((*path, "with", *fault.path), fault.what, key=fault.is_of_key)
        return plugin

    def _policy(self) -> None:
        section = self.config.evaluate.policy
        try:
            self.policy = Policy.of(section)
        except GroupgtError as error:
            for text in error.faults:
                field = next((name for name in section if name in text), "")
                self.fault(("evaluate", "policy", *([field] if field else [])), text)

    def _tokenizer(self) -> None:
        tokenizer = self.config.evaluate.tokenizer
        if tokenizer is not None:
            with self.document.faulting(("evaluate", "tokenizer")):
                if check_tokenizer(tokenizer, allow_code=True)[0].runs_code:
                    self.code.check(("evaluate", "tokenizer"), f"{tokenizer} runs your code")

    def _output(self) -> None:
        """Check the result and cache folders, and that results can be written in the requested formats."""
        config, document = self.config, self.document
        for path, folder in ((("cache",), config.cache), (("output", "folder"), config.output.folder)):
            if folder is not None and (not folder.strip() or "\0" in folder) and document.is_sound(*path):
                document.fault(path, f"expected a folder, found {folder!r}")
        if config.engine.use == "spark" and "runs" in config.output.formats and document.is_sound("output"):
            stored = [system.name for system in self.families.systems.values() if system.is_stored]
            if stored:
                what = f"the results of {some_of(stored)} stay on a cluster and cannot be written as runs"
                document.fault(("output", "formats", config.output.formats.index("runs")), what)

    def _convention(self) -> None:
        """Set the convention from the file, or from the ground truth if its shape is the same for all data sets."""
        named = self.config.convention
        if named != "auto":
            self.convention = named
            return
        shapes: dict[str, Shape] = {}
        for name, dataset in self.config.datasets.items():
            path = self.document.resolved(dataset.ground_truth)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Data that are unreadable, or not built yet, are reported when the data are read.
                with suppress(GroupgtError, OSError):
                    shapes[name] = Reading.of(**dataset.reading).whole_truth(path).shape
        if len(set(shapes.values())) > 1:
            listing = ", ".join(f"{name} ({shape})" for name, shape in shapes.items())
            what = f"data sets have ground truth of different shapes, whose default conventions differ: {listing}"
            self.fault(("convention",), f"{what}; choose one convention, such as `convention: coverage`")
        elif shapes:
            self.convention = OF_SHAPE[next(iter(shapes.values()))]

    def _metrics(self) -> bool:
        """Check the metrics and all references to them. Return whether all metrics are valid."""
        section, document, convention = self.config.evaluate, self.document, self.convention
        are_valid = document.is_sound("evaluate", "metrics") and document.is_sound("evaluate", "k")
        for position, text in enumerate(section.metrics):
            try:
                parsed = parse_metrics([text], convention, section.k)
                check_policy(self.policy, parsed)
                check_aggregates(parsed, "an experiment")
                self.metrics |= parsed
            except GroupgtError as error:
                document.fault(("evaluate", "metrics", position), str(error))
                are_valid = False
        if are_valid:
            warn_of_idle_cutoffs(section.metrics, convention, section.k)
        if section.primary is not None and document.is_sound("evaluate", "primary"):
            self._metric(("evaluate", "primary"), section.primary, are_valid=are_valid)
        best_are_valid = [
            self._metric(("evaluate", "best", "metrics", position), text, are_valid=are_valid)
            for position, text in enumerate(section.best.metrics)
        ]
        for position, text in enumerate(self.config.compare.metrics if self.config.compare is not None else ()):
            self._metric(("compare", "metrics", position), text, are_valid=are_valid)
        is_sound = document.is_sound("evaluate", "best") and document.is_sound("evaluate", "primary")
        if are_valid and all(best_are_valid) and is_sound:
            check_best(document, section, self.metrics, convention)
        return are_valid

    def _metric(self, path: KeyPath, text: str, *, are_valid: bool) -> bool:
        """Check that a text names one of the experiment's metrics, or any valid metric if some of them are invalid."""
        try:
            metric = parse_metric(text, self.convention)
        except GroupgtError as error:
            self.fault(path, str(error))
            return False
        if are_valid and metric not in self.metrics.values():
            self.document.unknown(path, text, list(self.metrics), "one of the metrics: ")
            return False
        return True

    # --- Gates.

    def _gate(self, number: int, gate: Gate, *, are_valid: bool) -> None:
        """Check that the names in a gate exist, and that it has exactly one bound."""
        document, path, fault = self.document, ("gate", number), self.fault
        systems = self.families.systems
        matched, datasets = matching(gate.system, systems), matching(gate.dataset, self.config.datasets)
        if not matched and not self.families.may_be(gate.system):
            document.unknown((*path, "system"), gate.system, self.families.valid_names, also="a pattern")
        if not datasets and document.is_sound("datasets"):
            document.unknown((*path, "dataset"), gate.dataset, list(self.config.datasets), also="a pattern")
        if matched and datasets and not any(systems[name].config.serves(each) for name in matched for each in datasets):
            what = f"no system that matches {gate.system!r} is run on {' or '.join(datasets)}; see its `only` key"
            fault((*path, "system"), what)
        bounds = [key for key in BOUNDS if getattr(gate, key) is not None]
        if len(bounds) != 1:
            some = f"{', '.join(BOUNDS[:-1])} and {BOUNDS[-1]}"
            fault(path, f"expected one of {some}, found {' and '.join(bounds) or 'nothing'}")
        for key, needed in (("unless", "max_drop"), ("must", "min_gain")):
            if getattr(gate, key) is not None and getattr(gate, needed) is None:
                fault((*path, key), f"`{key}` needs {needed}")
        if gate.against == "previous" and not gate.is_relative:
            fault((*path, "against"), "`against` needs max_drop or min_gain")
        elif gate.is_relative and gate.against == "baseline":
            key = "max_drop" if gate.max_drop is not None else "min_gain"
            self._drop((*path, key), [systems[name] for name in matched], datasets)
        if gate.metric in LATENCIES:
            self._latency(path, gate, matched)
        else:
            self._gate_metric(path, gate, are_valid=are_valid)

    def _gate_metric(self, gate_path: KeyPath, gate: Gate, *, are_valid: bool) -> None:
        path, text = (*gate_path, "metric"), gate.metric
        try:
            metric = parse_metric(text, self.convention)
        except GroupgtError as error:
            self.fault(path, f"{error}; or one of {', '.join(LATENCIES)}{near_names(text, LATENCIES)}")
            return
        if gate.unless == "within_noise" and metric.passes is not None:
            self.fault(path, f"{metric} is computed over all trials, so single trials have no values to compare")
        for key in BOUNDS:
            bound = getattr(gate, key)
            if bound is not None and metric.definition.bounded and not 0 <= bound <= 1:
                hint = f"; for {bound:g}%, write {bound / 100:g}" if 1 < bound <= 100 else ""
                self.fault((*gate_path, key), f"{metric.name} lies between 0 and 1, found {bound:g}{hint}")
        if are_valid and metric not in self.metrics.values():
            valid_names = [*self.metrics, *LATENCIES]
            self.document.unknown(path, text, valid_names, "one of evaluate.metrics, or a latency or cost: ")

    def _latency(self, path: KeyPath, gate: Gate, matched: Sequence[str]) -> None:
        if gate.slice or gate.is_relative:
            self.fault(path, f"{gate.metric} takes min or max, but not a slice")
        if gate.metric not in COSTS and matched and not any(self._is_timed(name) for name in matched):
            self.fault((*path, "system"), "results read from files have no latency")
        names = [below for name in matched for below in combined(self.families.systems, name)]
        if gate.metric.startswith("latency") and not all(map(self._is_queried_singly, names)):
            self.fault((*path, "metric"), f"{gate.metric} {UNTIMED}")

    def _is_queried_singly(self, name: str) -> bool:
        """Return whether any of a system's queries is sent on its own, judging by the file alone."""
        system = self.families.systems[name]
        if system.kind.build is None or system.options.asks_singly() is not False:
            return True
        return self.config.evaluate.repeats(system.kind) > 0

    def _is_timed(self, name: str) -> bool:
        system = self.families.systems[name]
        return not system.is_stored and all(self._is_timed(below) for below in system.inputs)

    def _drop(self, path: KeyPath, matched: Sequence[System], datasets: Sequence[str]) -> None:
        """Check that a gate on a drop or a gain has a baseline on each of its data sets."""
        name = self.config.baseline
        if name is None:
            if self.document.is_sound("compare"):
                hint = "set compare.baseline, or write against: previous"
                self.fault(path, f"{path[-1]} needs a baseline; {hint}")
            return
        baseline = self.families.systems.get(name)
        if baseline is None:
            return
        for dataset in datasets:
            if any(system.config.serves(dataset) for system in matched) and not baseline.config.serves(dataset):
                self.fault(path, f"the baseline {name} is not run on dataset {dataset!r}; see its `only` key")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
