"""Sweeps: an entry of `systems` with a `matrix` stands for one system for each combination, each with its own name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import Field

from groupgt.experiment.schema import Section, Texts
from groupgt.experiment.yaml import KeyPath


class SystemConfig(Section):
    """One system, or with `matrix` one for each combination: what it uses, with which options, on which data sets."""

    use: str = Field(description="The retriever.")
    with_: dict[str, Any] = Field(default={}, alias="with", description="The options of the retriever.")
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={}, description="Options with a list of values each: one system for each combination."
    )
    inputs: Texts = Field(default=[], description="The systems that a fusion combines, by name or pattern.")
    only: Texts = Field(default=[], description="The data sets it is run on; all where none is named.")
    on_error: Literal["fail", "skip"] = Field(
        default="fail", description="fail: the run stops; skip: the system is reported as failed, never scored as 0."
    )

    @property
    def size(self) -> int:
        """How many systems it stands for."""
        return math.prod(len(values) for values in self.matrix.values())

    def serves(self, dataset: str) -> bool:
        """Whether its systems are run on a data set."""
        return not self.only or dataset in self.only


@dataclass(frozen=True)
class Variant:
    """One system of a sweep: its name, its options, and the path in the file that each option comes from."""

    name: str
    options: dict[str, Any]
    paths: dict[str, KeyPath]


def variants(family: str, config: SystemConfig) -> Iterator[Variant]:
    """Every combination of an entry's matrix, the last key varying fastest.

    >>> config = SystemConfig.model_validate({"use": "bm25", "matrix": {"k1": [0.9, 1.20], "b": [1.0]}})
    >>> [variant.name for variant in variants("bm25", config)]
    ['bm25[k1=0.9,b=1]', 'bm25[k1=1.2,b=1]']
    """
    plain: dict[str, KeyPath] = {key: ("systems", family, "with", key) for key in config.with_}
    keys = list(config.matrix)
    for positions in product(*(range(len(values)) for values in config.matrix.values())):
        swept = {key: config.matrix[key][position] for key, position in zip(keys, positions)}
        paths: dict[str, KeyPath] = {
            key: ("systems", family, "matrix", key, position) for key, position in zip(keys, positions)
        }
        labels = ",".join(f"{key}={label(value)}" for key, value in swept.items())
        yield Variant(f"{family}[{labels}]" if keys else family, {**config.with_, **swept}, {**plain, **paths})


def label(value: Any) -> str:
    """How a name shows a value: numbers in one way, plain text as it is, anything else as JSON.

    >>> [label(value) for value in (1.0, 1, 0.40, 1e-3, True, "english", [0.3, 1.0])]
    ['1', '1', '0.4', '0.001', 'true', 'english', '[0.3,1]']
    """
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, list):
        return f"[{','.join(label(item) for item in value)}]"
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
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    return [name for name in known if expression.fullmatch(name)]
