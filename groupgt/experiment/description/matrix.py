"""Sweeps: one entry of `systems` with a `matrix` becomes a system for each combination, each with a name of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from groupgt.experiment.description.schema import SystemConfig
from groupgt.experiment.description.yamlfile import Path_

__all__ = ["LARGEST", "Variant", "label", "matching", "size", "variants"]

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
