"""Selects the labelling engine by the type of results, or by name with options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from groupgt.errors import ConfigError, display
from groupgt.options import Doc, Minimum, Rule, chosen
from groupgt.plugins import Plugin

UNITS = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}


def size_of(value: Any) -> int:
    """Parse a number of bytes, a whole number or text such as `2GB` or `512 MiB`, or raise `ConfigError`."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)(i?)b?", str(value).strip().lower())
    size = 0
    if match is not None and (match[2] or not match[3]):
        step = 1024 ** (UNITS[match[2]] // 3) if match[3] else 10 ** UNITS[match[2]]
        size = int(float(match[1]) * step)
    if not size:
        raise ConfigError(f"expected a size such as 2GB or 512MiB, found {display(value)}")
    return size


def is_size(value: Any) -> bool:
    """Return whether a value is a positive size."""
    try:
        return size_of(value) > 0
    except ConfigError:
        return False


def _are_settings(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


SIZE = "a size such as 2GB or 512MiB"
Ceiling = Annotated[Any, Rule(SIZE, lambda value: value == "" or is_size(value), {"type": ["integer", "string"]})]
Settings = Annotated[Any, Rule("Spark settings by name", _are_settings, {"type": "object"})]


# As many queries with 1,000 results each are about 50 MB of ids and scores.
BUCKET = 500
Bucket = Annotated[
    int, Minimum(1), Doc("Maximum number of queries that a cluster worker labels at a time, with all of their results.")
]


@dataclass(frozen=True)
class Auto:
    """Options for results on a cluster."""

    bucket: Bucket = BUCKET


@dataclass(frozen=True)
class Streaming:
    """Options for reading all files as columns, even small ones."""

    memory: Annotated[Ceiling, Doc("Memory limit of the process, such as 2GB (default: none).")] = ""


@dataclass(frozen=True)
class Spark:
    """Options for the Spark session, which is the current one or a new one."""

    master: Annotated[str, Doc("Spark master for a new session.")] = ""
    bucket: Bucket = BUCKET
    config: Annotated[Settings, Doc("Settings for a new Spark session, by name.")] = field(default_factory=dict)


AUTO = Plugin(Auto, summary="Labels lists in memory, streams files and frames, and labels cluster results in place.")
STREAMING = Plugin(Streaming, summary="Reads all files as a stream of columns, within a memory limit.")
SPARK = Plugin(
    Spark,
    summary="Reads parquet and JSON Lines with Spark, and labels the results there.",
    modules={"pyspark": "spark"},
)


@dataclass(frozen=True)
class Engine:
    """An engine name with its options."""

    name: str = "auto"
    options: Any = field(default_factory=Auto)

    @property
    def ceiling(self) -> int:
        """The process's memory limit while reading rows, in bytes (0: no limit)."""
        memory = self.options.memory if isinstance(self.options, Streaming) else ""
        return size_of(memory) if memory != "" else 0

    @property
    def bucket(self) -> int:
        """The maximum number of queries that a worker of a cluster labels together."""
        return int(getattr(self.options, "bucket", BUCKET))


def engine_of(spec: Any) -> Engine:
    """Select an engine by name or by `{"use": name, "with": {option: value}}`, or raise `ConfigError`."""
    if isinstance(spec, Engine):
        return spec
    plugin, options = chosen("engine", spec)
    return Engine(plugin.name, options)
