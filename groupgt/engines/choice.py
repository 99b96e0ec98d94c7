"""Which engine labels: chosen by what results are, or by name, with options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupgt.errors import ConfigError, Faults, listed, near_names
from groupgt.labellers.options import options_of
from groupgt.model.validity import shown

UNITS = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}


def size_of(given: Any) -> int:
    """A number of bytes, as a whole number or as text such as `2GB` or `512 MiB`; raises `ConfigError`.

    >>> size_of("2GB"), size_of("512 MiB"), size_of(1000)
    (2000000000, 536870912, 1000)
    """
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)(i?)b?", str(given).strip().lower())
    size = 0
    if found is not None and (found[2] or not found[3]):
        step = 1024 ** (UNITS[found[2]] // 3) if found[3] else 10 ** UNITS[found[2]]
        size = int(float(found[1]) * step)
    if not size:
        raise ConfigError(f"expected a size such as 2GB or 512MiB, found {shown(given)}")
    return size


@dataclass(frozen=True)
class Auto:
    """Lists are labelled in memory, files and frames as a stream, frames of Spark on Spark; there are no options."""


@dataclass(frozen=True)
class Streaming:
    """Files are read as columns, however small; `memory` is how much the process may hold, such as 2GB."""

    memory: Any = ""

    def __post_init__(self) -> None:
        if self.memory != "":
            _check("memory", self.memory)

    @property
    def ceiling(self) -> int:
        """That many bytes; 0 is no limit."""
        return size_of(self.memory) if self.memory != "" else 0


@dataclass(frozen=True)
class Spark:
    """Files are read by Spark: by the session there is, or a new one at `master`, with settings of `config`.

    A ground truth of up to `broadcast` bytes of ids is sent to every executor.
    """

    master: str = ""
    broadcast: Any = "256MB"
    config: Any = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check("broadcast", self.broadcast)
        if not isinstance(self.config, Mapping) or not all(isinstance(key, str) for key in self.config):
            raise ConfigError(f"config: expected settings of Spark by name, found {shown(self.config)}")

    @property
    def largest(self) -> int:
        """`broadcast` in bytes."""
        return size_of(self.broadcast)


def _check(key: str, size: Any) -> None:
    try:
        size_of(size)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


ENGINES: dict[str, type[Any]] = {"auto": Auto, "streaming": Streaming, "spark": Spark}


@dataclass(frozen=True)
class Engine:
    """An engine by its name, with its options."""

    name: str = "auto"
    options: Any = field(default_factory=Auto)

    @property
    def ceiling(self) -> int:
        """How many bytes the process may hold while rows go by; 0 is no limit."""
        return self.options.ceiling if isinstance(self.options, Streaming) else 0


def engine_of(spec: Any, *, texts: bool = False) -> Engine:
    """An engine of a name or `{"use": name, "with": {option: value}}`; raises `ConfigError` with every fault.

    >>> engine_of({"use": "streaming", "with": {"memory": "2GB"}}).ceiling
    2000000000
    """
    if isinstance(spec, Engine):
        return spec
    if isinstance(spec, str):
        spec = {"use": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("use"), str) or set(spec) - {"use", "with"}:
        raise ConfigError(f'engine: expected a name, or {{"use": name, "with": {{…}}}}, found {shown(spec)}')
    name, given = spec["use"], spec.get("with") or {}
    if name not in ENGINES:
        raise ConfigError(f"engine: expected {listed(ENGINES)}, found {name!r}{near_names(name, ENGINES)}")
    if not isinstance(given, Mapping):
        raise ConfigError(f"engine with: expected options by name, found {shown(given)}")
    options, wrong = options_of(ENGINES[name], given, texts=texts)
    faults = Faults()
    for key, what in wrong:
        faults.add(f"engine {name}: {key}", what)
    faults.stop(ConfigError)
    return Engine(name, options)
