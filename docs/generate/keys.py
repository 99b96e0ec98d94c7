"""Every key of an experiment file, with type, default and an example, from the JSON Schema and tested files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from docs.generate import ROOT
from docs.generate.markdown import block, code, page, plain
from groupgt.experiment.json_schema import schema_text

# What a mapping of names, and a list, are called on the way to a key.
NAME, ITEM = "NAME", "[]"
Path = tuple[str, ...]


@dataclass(frozen=True)
class Key:
    """One key: its path, its schema, and whether a file must have it."""

    path: Path
    schema: Mapping[str, Any]
    needed: bool

    @property
    def name(self) -> str:
        """The name on the page, such as `evaluate.depth`, `systems.NAME.use` or `gate[].min`."""
        return ".".join(self.path).replace(f".{ITEM}", ITEM)


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema_text())
    return found


def _resolved(part: Mapping[str, Any]) -> Mapping[str, Any]:
    name = part.get("$ref", "")
    return {**schema()["$defs"][name.rpartition("/")[2]], **part} if name else part


def _parts(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a schema, or its alternatives if it has any."""
    part = _resolved(part)
    branches = part.get("anyOf") or ([part["then"], part["else"]] if "else" in part else [])
    return [one for each in branches for one in _parts(each)] or [part]


def keys_of(part: Mapping[str, Any] | None = None, path: Path = ()) -> Iterator[Key]:
    """Yield every key of a section and of the sections below it."""
    section = _resolved(schema() if part is None else part)
    for name, held in section.get("properties", {}).items():
        key = Key((*path, name), held, name in section.get("required", ()))
        yield key
        for one in _parts(held):
            yield from _below(one, key.path)


def _below(part: Mapping[str, Any], path: Path) -> Iterator[Key]:
    if "properties" in part:
        yield from keys_of(part, path)
    for more in (part.get("additionalProperties"), *part.get("patternProperties", {}).values()):
        if isinstance(more, Mapping):
            for one in _parts(more):
                yield from _below(one, (*path, NAME))
    items = part.get("items")
    if isinstance(items, Mapping):
        for one in _parts(items):
            yield from _below(one, (*path, ITEM))


def type_of(part: Mapping[str, Any]) -> str:
    """Return the types of a value in words."""
    names = [_type(one) for one in _parts(part)]
    return " or ".join(dict.fromkeys(names))


# A bound that is there against slips of the keyboard.
ENDLESS = 10**9
WORDS = {
    "string": "string",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "mapping",
    "array": "list",
}


def _type(part: Mapping[str, Any]) -> str:
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    if "const" in part:
        return f"the number {part['const']}" if isinstance(part["const"], int) else str(part["const"])
    kinds = part.get("type", "object" if "properties" in part else "string")
    words = " or ".join(WORDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
    if kinds == "array" and part.get("items"):
        return f"list of ({type_of(part['items'])})"
    low, high = part.get("minimum"), part.get("maximum")
    above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
    bounds = [("≥", low), (">", above), ("≤", high), ("<", below)]
    told = " and ".join(f"{sign} {value:,}" for sign, value in bounds if value is not None and value < ENDLESS)
    return f"{words} {told}".strip()


@cache
def files() -> list[tuple[str, Any]]:
    """Return the experiment files that the project ships, which its tests run."""
    places = [ROOT / "groupgt/experiment/starter_files/experiment.yaml", *sorted((ROOT / "configs").glob("*.yaml"))]
    return [(path.name, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in places]


def example(key: Key) -> tuple[str, str]:
    """Return an example of the key with the file it comes from, or else with its default or a value of its type."""
    for name, held in files():
        for value in _held(held, key.path):
            return _yaml(key, value), name
    return _yaml(key, _value(key)), ""


def _held(held: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield held
    elif path[0] == ITEM and isinstance(held, list):
        for one in held:
            yield from _held(one, path[1:])
    elif path[0] == NAME and isinstance(held, dict):
        for one in held.values():
            yield from _held(one, path[1:])
    elif isinstance(held, dict) and path[0] in held:
        yield from _held(held[path[0]], path[1:])


def _value(key: Key) -> Any:
    """Return a value to show: the default if it is informative, otherwise the smallest value of its type."""
    default = key.schema.get("default")
    if default not in (None, [], {}, ""):
        return default
    for part in _parts(key.schema):
        if "enum" in part:
            return part["enum"][-1]
        kinds = part.get("type")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        if kind in ("integer", "number"):
            return part.get("minimum", 0.5 if kind == "number" else 1) or 1
        if kind == "boolean":
            return True
        if kind == "array":
            return ["…"]
        if kind == "string":
            return "…"
    return {}


def _yaml(key: Key, value: Any) -> str:
    """Return the value below its key and the last section on the path, as YAML."""
    section = next((place for place in reversed(range(len(key.path) - 1)) if key.path[place] not in (NAME, ITEM)), None)
    whole: Any = {key.path[-1]: value}
    if section is not None:
        for part in reversed(key.path[section : len(key.path) - 1]):
            whole = [whole] if part == ITEM else {"mine" if part == NAME else part: whole}
    style = None if isinstance(next(iter(whole.values())), (dict, list)) else False
    return str(yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, default_flow_style=style, width=100))


def description_of(key: Key) -> str:
    """Return the description of the key or of its section."""
    told = [one.get("description", "") for one in (_resolved(key.schema), *_parts(key.schema))]
    return next(filter(None, told), "")


def _default(key: Key) -> str:
    if key.needed:
        return "Required."
    default = key.schema.get("default")
    return "No default." if default is None else f"Default: {code(json.dumps(default, ensure_ascii=False))}."


def pages() -> dict[str, str]:
    every = list(keys_of())
    parts = []
    for key in every:
        text, where = example(key)
        source = f" (as in {code(where)})" if where else ""
        parts += [
            f"## {key.name}",
            plain(description_of(key)),
            f"Type: {plain(type_of(key.schema))}. {_default(key)}",
            f"Example{source}:",
            block(text, "yaml"),
        ]
    return {
        "reference/experiment-file.md": page(
            "Keys of an experiment file",
            f"This page lists all {len(every)} keys, each with its type, its default and an example. {code(NAME)} is a "
            f"name that you choose, and {code(ITEM)} is any item of a list.",
            "The keys under `with` are the options of the [retriever](retrievers.md), [labeller](labellers.md) or "
            "[engine](engines.md) that you use. `groupgt schema` prints everything as JSON Schema. "
            "[Experiments](../experiments.md) explains how the parts work together.",
            *parts,
        )
    }
