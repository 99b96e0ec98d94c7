"""Resolves the entries of `systems`, including sweeps, options and fusions, to individual systems."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any, NamedTuple

from groupgt.errors import ConfigError, GroupgtError, near_names
from groupgt.evaluation.stages import cut_of
from groupgt.experiment.config import Config, SystemConfig
from groupgt.experiment.yaml import Document, as_yaml
from groupgt.formats.known import format_named, format_names
from groupgt.formats.modules import check_target
from groupgt.formats.parts import is_url
from groupgt.options import KeyPath, options_of, read_options
from groupgt.plugins import find
from groupgt.render.tables import shortlist
from groupgt.retrievers.base import RetrieverPlugin
from groupgt.retrievers.command import program_of


def variants(family: str, config: SystemConfig) -> Iterator[tuple[str, dict[str, Any], dict[str, KeyPath]]]:
    """Expand the matrix of an entry: yield each system's name and options, and where in the file each option is set."""
    plain: dict[str, KeyPath] = {key: ("systems", family, "with", key) for key in config.with_}
    keys = list(config.matrix)
    for positions in product(*(range(len(values)) for values in config.matrix.values())):
        chosen = dict(zip(keys, positions))
        swept = {key: config.matrix[key][position] for key, position in chosen.items()}
        paths: dict[str, KeyPath] = {key: ("systems", family, "matrix", key, at) for key, at in chosen.items()}
        labels = ",".join(f"{key}={label(value)}" for key, value in swept.items())
        yield f"{family}[{labels}]" if keys else family, {**config.with_, **swept}, {**plain, **paths}


def label(value: Any) -> str:
    """Format a value for use in a system name: normalized numbers, plain text as is, anything else as JSON."""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, list):
        return f"[{','.join(label(item) for item in value)}]"
    if isinstance(value, str) and re.fullmatch(r"[^\s,=\[\]\"]+", value) and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=not str(value).isprintable(), separators=(",", ":"))


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a pattern, preferring an exact match. Only `*` and `?` are special."""
    names = list(names)
    if pattern in names:
        return [pattern]
    return [name for name in names if fnmatchcase(name, pattern.replace("[", "[[]"))]


def combined(systems: Mapping[str, System], name: str) -> list[str]:
    """Return the name of a system followed by all its direct and indirect inputs."""
    names = [name]
    for member in names:
        names += [below for below in systems[member].inputs if below not in names]
    return names


def trials_of(systems: Mapping[str, System], name: str) -> int:
    """Return how often a system is queried. A fusion has as many trials as its inputs."""
    return max(systems[below].config.trials.n for below in combined(systems, name))


def is_of_builds(systems: Mapping[str, System], name: str) -> bool:
    """Return whether the trials of a system, or of an input, are declared to be builds."""
    return any(systems[below].config.trials.of == "builds" for below in combined(systems, name))


class Stage(NamedTuple):
    """A stage of a pipeline, whose `source` is a system of the experiment or the path of a file with results."""

    name: str
    source: str
    is_system: bool
    cutoff: int | None


def stages_of(config: SystemConfig, systems: Collection[str], dataset: str) -> Iterator[Stage]:
    """Yield the stages listed under a system, or raise `ConfigError` for an invalid cutoff."""
    for name, text in config.stages.items():
        source, cutoff = (text, None) if text in systems else cut_of(text.replace("{dataset}", dataset))
        yield Stage(name, source, source in systems, cutoff)


def placed(error: GroupgtError, dataset: str, system: str, kind: type[GroupgtError]) -> GroupgtError:
    """Return an error of the given kind. The messages begin with the data set and the system."""
    start = f"dataset {dataset!r}: "
    place = f"{start}system {system!r}: "
    texts = (place + text.removeprefix(start).removeprefix(f"system {system!r}: ") for text in error.faults)
    return kind(*texts, total=error.total)


# A sweep with more systems than this is a mistake.
MOST_SYSTEMS = 10_000
DEEPEST_FUSION = 20
# Joins the first names for a message.
some_of = partial(shortlist, most=20, more=" …")


@dataclass(frozen=True, eq=False)
class System:
    """One system with its name, its entry in the file, its retriever and inputs, and the location of each option."""

    name: str
    family: str
    config: SystemConfig
    kind: RetrieverPlugin
    options: Any
    paths: Mapping[str, KeyPath]
    inputs: tuple[str, ...] = ()

    @property
    def is_requeried(self) -> bool:
        """Return True for systems queried on every run: external code or services without a version in the file."""
        return self.kind.is_foreign and not self.config.version

    @property
    def ascending(self) -> bool:
        """Return True if lower scores are better."""
        return self.config.scores == "ascending"

    @property
    def is_stored(self) -> bool:
        """Return True if results are read from files."""
        return self.kind.build is None and self.kind.fuse is None


@dataclass(frozen=True, eq=False)
class UsersCode:
    """Decides whether user code may run. If user code may not run, using it is an error or is noted in `unchecked`."""

    document: Document
    allowed: bool
    unchecked: list[str] | None = None

    def check(self, path: KeyPath, what: str) -> None:
        """Report a check that cannot be made without user code."""
        if self.allowed:
            return
        if self.unchecked is None:
            self.document.fault(path, f"{what}; allow it with --allow-code")
        else:
            self.unchecked.append(f"{'.'.join(map(str, path))}: {what}")

    def plugin(self, kind: str, name: str, path: KeyPath) -> Any:
        """Find a plugin by name and check its requirements, or return None if there is no such plugin."""
        if not self.document.is_sound(*path):
            return None
        try:
            plugin = find(kind, name)
        except ConfigError as error:
            self.document.fault(path, str(error))
            return None
        if missing := plugin.missing():
            self.document.fault(path, f"{name} {missing}")
        if plugin.runs_code:
            self.check(path, f"{name} runs your code")
        return plugin


class Families:
    """Checks the entries of `systems` and resolves the valid ones. References to `broken` entries are not reported."""

    def __init__(self, document: Document, config: Config, code: UsersCode) -> None:
        self.document, self.config, self.code, self.fault = document, config, code, document.fault
        self.systems: dict[str, System] = {}
        raw = document.value.get("systems") if isinstance(document.value, dict) else None
        names = raw if isinstance(raw, dict) else {}
        self.broken = {str(name) for name in names if not document.is_sound("systems", name)}
        if ("systems",) in document.partial:
            self.broken.add("*")

    def walk(self) -> None:
        """Check all entries and add the valid systems."""
        for family, config in self.config.systems.items():
            faults_before = self.document.faults.total
            if family not in self.broken and "*" not in self.broken:
                self._family(family, config)
                if self.document.faults.total > faults_before:
                    self.broken.add(family)
            else:
                self.code.plugin("retriever", config.use, ("systems", family, "use"))
        self._fusions()

    @property
    def valid_names(self) -> list[str]:
        """The names of all systems and invalid entries, as suggestions for an unknown name."""
        return [*self.systems, *sorted(self.broken - {"*"})]

    def may_be(self, pattern: str) -> bool:
        """Return whether a name or pattern without a matching system may refer to an invalid entry."""
        if not self.broken:
            return False
        return "*" in self.broken or "*" in pattern or "?" in pattern or pattern.partition("[")[0] in self.broken

    def near(self, name: str, names: Iterable[str]) -> str:
        """Return a hint for an unknown system name: the pattern of a sweep, or a similar name."""
        is_swept = any(system.family == name for system in self.systems.values())
        return f" (all systems of this sweep are '{name}[*')" if is_swept else near_names(name, names)

    def _served(self, config: SystemConfig) -> list[str]:
        return [dataset for dataset in self.config.datasets if config.serves(dataset)]

    def _family(self, family: str, config: SystemConfig) -> None:
        """Check one entry of `systems` and all systems that it expands to."""
        path: KeyPath = ("systems", family)
        for position, dataset in enumerate(config.only):
            is_there = dataset in self.config.datasets or not self.document.is_sound("datasets", dataset)
            if not is_there and ("datasets",) not in self.document.partial:
                self.document.unknown((*path, "only", position), dataset, list(self.config.datasets))
        kind: RetrieverPlugin | None = self.code.plugin("retriever", config.use, (*path, "use"))
        if kind is None:
            return
        if config.inputs and kind.fuse is None:
            self.fault((*path, "inputs"), f"{config.use} does not combine other systems; remove this key", key=True)
        if config.version and not (kind.is_foreign and kind.build is not None):
            what = f"{config.use} needs no version, because files are identified by their content; remove this key"
            self.fault((*path, "version"), what, key=True)
        if config.trials.n < 2 and config.trials.of == "builds":
            self.fault((*path, "trials"), "expected at least two builds; a single build shows no variation")
        if config.trials.n > 1 and kind.build is None:
            way = "number them in the `trial` column of the file" if kind.fuse is None else "set them on its inputs"
            self.fault((*path, "trials"), f"{config.use} does not run trials; {way}", key=True)
        if kind.fuse is not None and not config.inputs:
            self.fault(path, f"{config.use} combines other systems; name them as `inputs`")
        for dataset in self._served(config):
            lacks_corpus = kind.corpus and self.config.datasets[dataset].corpus is None
            if lacks_corpus and self.document.is_sound("datasets", dataset):
                self.fault(path, f"{config.use} needs a corpus, but dataset {dataset!r} has no corpus")
        for name, values, paths in variants(family, config) if self._matrix(path, config) else ():
            options, faults = read_options(kind.options, values, show=as_yaml)
            for fault in faults:
                is_unknown = fault.kind == "unknown"
                if is_unknown and fault.option == "version":
                    fault = replace(fault, what="belongs next to `use`, not among the options")
                where = paths.get(fault.option, (*path, "with", fault.option))
                self.fault(where[:4] if is_unknown else (*where, *fault.path[1:]), fault.what, key=is_unknown)
            if options is not None:
                self.systems[name] = System(name, family, config, kind, options, paths)
                self._files(self.systems[name])

    def _matrix(self, path: KeyPath, config: SystemConfig) -> bool:
        """Check a matrix, and return whether it can be expanded."""
        faults_before = self.document.faults.total
        for key, values in config.matrix.items():
            if key in config.with_:
                self.fault((*path, "matrix", key), f"{key} is also set under `with`; keep only one", key=True)
            if any(filled[:4] == (*path, "matrix", key) for filled in self.document.written):
                what = "system names show sweep values"
                self.fault((*path, "matrix", key), f"{what}, so use environment variables only under `with`", key=True)
            labels = [label(value) for value in values]
            for position, text in enumerate(labels):
                if text in labels[:position]:
                    self.fault((*path, "matrix", key, position), f"duplicate value {text}; remove one")
        size = math.prod(len(values) for values in config.matrix.values())
        if size > MOST_SYSTEMS:
            self.fault((*path, "matrix"), f"expected at most {MOST_SYSTEMS:,} combinations, found {size:,}")
        return self.document.faults.total == faults_before

    def _files(self, system: System) -> None:
        """Check that the paths in a system's options exist for every data set."""
        kind, options = system.kind, system.options
        for option in (option for option in options_of(kind.options).values() if option.is_path):
            text = getattr(options, option.name)
            path = system.paths.get(option.name, ())
            if not text:
                if option.needed and self.document.is_sound(*path):
                    self.fault(path, "expected a path, found an empty value")
                continue
            if not is_url(text) and self.document.is_sound(*path):
                for dataset in self._served(system.config):
                    self.document.require(path, text, dataset)
        if system.is_stored and options.format is not None and not format_named(options.format, is_truth=False):
            self.document.unknown(system.paths["format"], options.format, format_names(is_truth=False))
        if options.program() and not kind.runs_code:
            self.code.check(system.paths["command"], f"{kind.name} starts this program")
        if self.code.allowed or self.code.unchecked is not None:
            try:
                if kind.imports_target:
                    check_target(options.target, self.document.folder.resolve())
                if options.program():
                    program_of(options.program(), self.document.folder.resolve())
            except ConfigError as error:
                key, _, what = str(error).partition(": ")
                self.fault(system.paths[key], what)

    def _fusions(self) -> None:
        """Check that the inputs of every fusion exist, form no cycles, and run on the same data sets."""
        faults_before = self.document.faults.total
        for name, system in list(self.systems.items()):
            if system.kind.fuse is None:
                continue
            inputs: dict[str, None] = {}
            complete = bool(system.config.inputs)
            others = [other for other in self.systems if self.systems[other].family != system.family]
            for position, pattern in enumerate(system.config.inputs):
                path: KeyPath = ("systems", system.family, "inputs", position)
                matched = matching(pattern, others)
                complete = complete and bool(matched) and not self.may_be(pattern)
                if not matched and not self.may_be(pattern):
                    near, choices = self.near(pattern, others), some_of(others) if others else "none"
                    self.fault(path, f"no other system is named {pattern!r}{near}; other systems: {choices}")
                for other, dataset in product(matched, self._served(system.config)):
                    if not self.systems[other].config.serves(dataset):
                        self.fault(path, f"{other} is not run on dataset {dataset!r}; see its `only` key")
                inputs.update(dict.fromkeys(matched))
            for key in ("weights", "least") if complete else ():
                values = getattr(system.options, key, [])
                if values and len(values) != len(inputs):
                    what = f"expected {len(inputs)} numbers, one for each input, found {len(values)}"
                    self.fault(system.paths[key], what)
            self.systems[name] = replace(system, inputs=tuple(inputs))
        if self.document.faults.total == faults_before:
            self._circles()
        for name, system in self.systems.items() if self.document.faults.total == faults_before else ():
            numbers = {self.systems[below].config.trials.n for below in combined(self.systems, name)} - {1}
            if len(numbers) > 1:
                what = f"expected inputs with the same number of trials, found {shortlist(sorted(map(str, numbers)))}"
                self.fault(("systems", system.family, "inputs"), what)

    def _circles(self) -> None:
        """Report fusions that contain themselves or are nested too deeply."""
        levels: dict[str, int] = {}
        inputs = {name: system.inputs for name, system in self.systems.items()}
        try:
            for name in TopologicalSorter(inputs).static_order():
                levels[name] = max((1 + levels[below] for below in inputs[name]), default=0)
        except CycleError as error:
            circle = error.args[1][:0:-1]  # from a fusion to its inputs
            start = min(range(len(circle)), key=lambda position: list(self.systems).index(circle[position]))
            name, what = circle[start], " → ".join([*circle[start:], *circle[: start + 1]])
            self.fault(("systems", self.systems[name].family, "inputs"), f"the fusion contains itself: {what}")
            return
        for name in sorted(self.systems, key=levels.__getitem__):
            if levels[name] > DEEPEST_FUSION:
                what = f"expected at most {DEEPEST_FUSION} levels of fusions, found {levels[name]}"
                self.fault(("systems", self.systems[name].family, "inputs"), what)
                return
