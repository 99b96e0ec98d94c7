"""The entries of `systems`: sweeps, options and fusions resolved to single systems."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from groupgt.errors import ConfigError, near_names
from groupgt.experiment.schema import Config, SystemConfig, explain, model_of
from groupgt.experiment.yaml import Document, Path_
from groupgt.formats.detect import RUNS
from groupgt.formats.modules import imported
from groupgt.formats.parts import is_url
from groupgt.retrievers.base import Kind
from groupgt.retrievers.registry import absent, kind_named

# More systems than this are a slip, not a sweep.
LARGEST = 10_000


@dataclass(frozen=True)
class Variant:
    """One system of a sweep: its name, its options, and the path in the file that each option comes from."""

    name: str
    options: dict[str, Any]
    paths: dict[str, Path_]


def size(config: SystemConfig) -> int:
    """How many systems an entry becomes."""
    count = 1
    for values in config.matrix.values():
        count *= len(values)
    return count


def variants(family: str, config: SystemConfig) -> Iterator[Variant]:
    """Every combination of an entry's matrix, the last key varying fastest.

    >>> config = SystemConfig.model_validate({"use": "bm25", "matrix": {"k1": [0.9, 1.20], "b": [1.0]}})
    >>> [each.name for each in variants("bm25", config)]
    ['bm25[k1=0.9,b=1]', 'bm25[k1=1.2,b=1]']
    """
    plain = {key: ("systems", family, "with", key) for key in config.with_}
    keys = list(config.matrix)
    for places in product(*(range(len(values)) for values in config.matrix.values())):
        chosen = {key: config.matrix[key][place] for key, place in zip(keys, places)}
        paths: dict[str, Path_] = {key: ("systems", family, "matrix", key, place) for key, place in zip(keys, places)}
        listed = ",".join(f"{key}={label(value)}" for key, value in chosen.items())
        yield Variant(f"{family}[{listed}]" if keys else family, {**config.with_, **chosen}, {**plain, **paths})


def label(value: Any) -> str:
    """How a name shows a value: numbers in one way, plain text as it is, anything else as JSON.

    >>> [label(each) for each in (1.0, 1, 0.40, 1e-3, True, "english", [0.3, 1.0])]
    ['1', '1', '0.4', '0.001', 'true', 'english', '[0.3,1]']
    """
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, list):
        return f"[{','.join(label(each) for each in value)}]"
    if isinstance(value, str) and re.fullmatch(r"[^\s,=\[\]\"]+", value) and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=not str(value).isprintable(), separators=(",", ":"))


def matching(pattern: str, names: Iterable[str] | Mapping[str, Any]) -> list[str]:
    """The names that a pattern means: exactly that one, else those it matches; only `*` and `?` are special.

    >>> matching("bm25[k1=0.9]", ["bm25[k1=0.9]", "bm25k"]), matching("bm*", ["bm25", "lsa"])
    (['bm25[k1=0.9]'], ['bm25'])
    """
    known = list(names)
    if pattern in known:
        return [pattern]
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return [name for name in known if re.fullmatch(expression, name, re.DOTALL)]


@dataclass(frozen=True, eq=False)
class System:
    """One system: its name, the entry of the file it comes from, what makes it, and what it is made from.

    `paths` says where in the file each of its options stands.
    """

    name: str
    family: str
    config: SystemConfig
    kind: Kind
    options: Any
    paths: Mapping[str, Path_]
    inputs: tuple[str, ...] = ()

    def serves(self, dataset: str) -> bool:
        """Whether it is run on a dataset."""
        return not self.config.only or dataset in self.config.only

    @property
    def is_stored(self) -> bool:
        """Whether its results are read from files."""
        return self.kind.build is None and self.kind.fuse is None


# Fusions of fusions go no deeper than this.
DEEPEST = 20


def placed(folder: Path, given: str) -> Path:
    """A path of the file: relative ones are relative to its folder; what is no path stays as it is."""
    joined = os.path.join(folder, given)  # a Path would swallow a trailing slash
    try:
        return Path(joined).resolve()
    except (OSError, ValueError, RuntimeError):
        return Path(joined)


def exists(path: Path) -> bool:
    """Whether there is such a file or folder, or what a pattern matches; what cannot be a path is none."""
    try:
        return path.exists() or (glob.has_magic(str(path)) and next(glob.iglob(str(path)), None) is not None)
    except (OSError, ValueError):
        return False


class Families:
    """Checks the entries of `systems` and resolves those that are sound.

    `broken` are entries at fault: nothing is said of who names a system that one of them may stand for.
    """

    def __init__(self, document: Document, config: Config, folder: Path, *, allow_code: bool) -> None:
        self.document, self.config, self.folder, self.allow_code = document, config, folder, allow_code
        self.systems: dict[str, System] = {}
        given = document.value.get("systems") if isinstance(document.value, dict) else None
        self.broken = {str(name) for name in given or () if not document.whole("systems", name)}
        if not document.whole_at("systems"):
            self.broken.add("*")

    def walk(self) -> dict[str, System]:
        """Checks everything; every system by its name."""
        for family, config in self.config.systems.items():
            before = self.document.faults.total
            if family not in self.broken and "*" not in self.broken:
                self._family(family, config)
                if self.document.faults.total > before:
                    self.broken.add(family)
            else:
                self._use(family, config)
        self._fusions()
        return self.systems

    def may_be(self, pattern: str) -> bool:
        """Whether a name or pattern that fits no system may mean one of an entry at fault."""
        if not self.broken:
            return False
        return "*" in self.broken or "*" in pattern or "?" in pattern or pattern.partition("[")[0] in self.broken

    def hint(self, name: str) -> str:
        """What to write for the entry of a sweep, which is no system itself."""
        swept = any(system.family == name for system in self.systems.values())
        return f" (all systems of this sweep are '{name}[*')" if swept else ""

    def served(self, config: SystemConfig) -> list[str]:
        """The datasets of an entry."""
        return [name for name in self.config.datasets if not config.only or name in config.only]

    def _use(self, family: str, config: SystemConfig) -> Kind | None:
        path: Path_ = ("systems", family)
        if not self.document.whole(*path, "use"):
            return None
        try:
            kind = kind_named(config.use)
        except ConfigError as error:
            self.document.fault((*path, "use"), str(error))
            return None
        if missing := absent(kind):
            self.document.fault((*path, "use"), f"{config.use} {missing}")
        if kind.runs_code and not self.allow_code:
            self.document.fault((*path, "use"), f"{config.use} runs code of yours; allow it with --allow-code")
        return kind

    def _family(self, family: str, config: SystemConfig) -> None:
        """One entry of `systems`, and every system it stands for."""
        path: Path_ = ("systems", family)
        for position, dataset in enumerate(config.only):
            known = [*self.config.datasets, *self.document.left_out("datasets")]
            if dataset not in known and self.document.whole_at("datasets"):
                self.document.unknown((*path, "only", position), dataset, list(self.config.datasets))
        kind = self._use(family, config)
        if kind is None:
            return
        if config.inputs and kind.fuse is None:
            self.document.fault((*path, "inputs"), f"{config.use} combines no other systems; remove this key", key=True)
        if kind.fuse is not None and not config.inputs:
            self.document.fault(path, f"{config.use} combines other systems; name them as `inputs`")
        for dataset in self.served(config):
            own = self.config.datasets[dataset]
            if kind.corpus and own.corpus is None and self.document.whole("datasets", dataset):
                self.document.fault(path, f"{config.use} searches a corpus, and dataset {dataset!r} has none")
        if self._matrix(path, config):
            for variant in variants(family, config):
                self._variant(family, config, kind, variant)

    def _matrix(self, path: Path_, config: SystemConfig) -> bool:
        """Whether a matrix can be expanded."""
        before = self.document.faults.total
        for key, values in config.matrix.items():
            if key in config.with_:
                self.document.fault((*path, "matrix", key), f"{key} stands under `with` too; remove one", key=True)
            if self.document.is_filled((*path, "matrix", key)):
                what = (
                    "values of a sweep are part of names, which are shown; set what the environment holds under `with`"
                )
                self.document.fault((*path, "matrix", key), what, key=True)
            labels = [label(value) for value in values]
            for position, each in enumerate(labels):
                if each in labels[:position]:
                    self.document.fault((*path, "matrix", key, position), f"{each} stands twice; remove one")
        if (count := size(config)) > LARGEST:
            self.document.fault((*path, "matrix"), f"expected at most {LARGEST:,} combinations, found {count:,}")
        return self.document.faults.total == before

    def _variant(self, family: str, config: SystemConfig, kind: Kind, variant: Variant) -> None:
        options = self._options(family, kind.options, variant)
        if options is not None:
            self.systems[variant.name] = System(variant.name, family, config, kind, options, variant.paths)
            self._files(variant, kind, options, self.served(config))

    def _options(self, family: str, kind: type[Any], variant: Variant) -> Any:
        """The options of a retriever: its dataclass is its schema."""
        path: Path_ = ("systems", family)
        known = [field.name for field in fields(kind)]
        for key in (key for key in variant.options if key not in known):
            what = f"unknown key; known are {', '.join(known)}{near_names(key, known)}"
            self.document.fault(variant.paths[key][:4], what, key=True)
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

    def _files(self, variant: Variant, kind: Kind, options: Any, datasets: Sequence[str]) -> None:
        """Whether the paths among the options lead somewhere, for every dataset."""
        for each in (each for each in fields(options) if each.metadata.get("path")):
            given = getattr(options, each.name)
            path = variant.paths.get(each.name, ())
            if not given:
                if each.default is MISSING and self.document.whole(*path):
                    self.document.fault(path, "expected a path, found nothing")
                continue
            for dataset in datasets:
                found = placed(self.folder, given.replace("{dataset}", dataset))
                if not is_url(given) and not exists(found) and self.document.whole(*path):
                    self.document.fault(path, f"there is no such file: {found}")
        stored = kind.build is None and kind.fuse is None
        if stored and options.format is not None and options.format not in RUNS:
            self.document.unknown(variant.paths["format"], options.format, RUNS)
        if kind.runs_code and self.allow_code:
            try:
                imported(options.target, self.folder.resolve())
            except ConfigError as error:
                key, _, what = str(error).partition(": ")
                self.document.fault(variant.paths[key], what)

    def _fusions(self) -> None:
        """The inputs of every fusion: known, no circles, on its datasets."""
        before = self.document.faults.total
        for name, system in list(self.systems.items()):
            if system.kind.fuse is None:
                continue
            found: dict[str, None] = {}
            complete = bool(system.config.inputs)
            others = [each for each, other in self.systems.items() if other.family != system.family]
            for position, pattern in enumerate(system.config.inputs):
                matched = matching(pattern, others)
                complete = complete and bool(matched) and not self.may_be(pattern)
                self._input(system, ("systems", system.family, "inputs", position), pattern, matched, others)
                found.update(dict.fromkeys(matched))
            if complete:
                self._counted(system, len(found))
            self.systems[name] = replace(system, inputs=tuple(found))
        if self.document.faults.total == before:
            self._circles()

    def _input(self, system: System, path: Path_, pattern: str, matched: Sequence[str], others: Sequence[str]) -> None:
        if not matched and not self.may_be(pattern):
            known = ", ".join(others[:20]) + (" …" if len(others) > 20 else "")
            near = self.hint(pattern) or near_names(pattern, others)
            self.document.fault(path, f"no other system is named {pattern!r}{near}; there are {known or 'none'}")
        for each in matched:
            for dataset in self.served(system.config):
                if not self.systems[each].serves(dataset):
                    self.document.fault(path, f"{each} is not run on dataset {dataset!r}; see its `only`")

    def _counted(self, system: System, inputs: int) -> None:
        """Lists among a fusion's options that hold a value for each input."""
        for key in ("weights", "least"):
            values = getattr(system.options, key, [])
            if values and len(values) != inputs:
                what = f"expected {inputs} numbers, one for each input, found {len(values)}"
                self.document.fault(system.paths[key], what)

    def _circles(self) -> None:
        """Fusions that lead back to themselves, or are too deep; a level is one more than that of its inputs."""
        level = {name: 0 for name, system in self.systems.items() if not system.inputs}
        waiting = [name for name in self.systems if name not in level]
        while waiting:
            ready = [name for name in waiting if all(each in level for each in self.systems[name].inputs)]
            if not ready:
                break
            level |= {name: 1 + max(level[each] for each in self.systems[name].inputs) for name in ready}
            waiting = [name for name in waiting if name not in level]
        for name in waiting:
            if name in (trail := self._trail(name)):
                family = self.systems[name].family
                shown = " → ".join([name, *trail])
                self.document.fault(("systems", family, "inputs"), f"a fusion of itself: {shown}")
                return
        for name, found in level.items():
            if found > DEEPEST:
                path: Path_ = ("systems", self.systems[name].family, "inputs")
                self.document.fault(path, f"expected at most {DEEPEST} fusions one upon the other, found {found}")
                return

    def _trail(self, name: str) -> list[str]:
        """The way from a system through inputs back to it, or to nowhere."""
        reached: dict[str, str] = {}
        stack = [name]
        while stack:
            here = stack.pop()
            for each in self.systems[here].inputs:
                if each == name:
                    trail = [name]
                    while here != name:
                        trail.append(here)
                        here = reached[here]
                    return trail[::-1]
                if each not in reached:
                    reached[each] = here
                    stack.append(each)
        return []
