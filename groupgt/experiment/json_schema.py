"""The output of `groupgt schema`: the JSON Schema of experiment files."""

from __future__ import annotations

import json
from typing import Any

from groupgt.experiment.config import Config
from groupgt.model.policy import PRESETS, Policy
from groupgt.options import options_of, schema_of
from groupgt.plugins import find, ours

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """The schema of experiment files as text, for completion and validation in editors."""
    return json.dumps(_experiment_schema(), ensure_ascii=False, indent=2) + "\n"


def without_titles(schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Removes titles, which only repeat the keys."""
    for part in [schema, *definitions.values()]:
        part.pop("title", None)
        for key in part.get("properties", {}).values():
            key.pop("title", None)


def _experiment_schema() -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    schema = schema_of(Config, definitions)
    _add_options("retriever", definitions, "SystemConfig", "with")
    _add_options("labeller", definitions, "LabellerConfig", "labeller with")
    _add_options("engine", definitions, "EngineConfig", "engine with")
    definitions["SystemConfig"]["properties"]["use"]["anyOf"] = _names("retriever")
    definitions["LabellerConfig"]["properties"]["use"]["anyOf"] = _names("labeller")
    definitions["EngineConfig"]["properties"]["use"]["enum"] = ours("engine")
    evaluate = definitions["Evaluate"]["properties"]
    evaluate["tokenizer"] |= _tokenizers()
    presets = {"enum": list(PRESETS), "description": "A preset, some fields of which may be changed."}
    fields = {name: _without_default(field) for name, field in schema_of(Policy)["properties"].items()}
    evaluate["policy"] = {
        "anyOf": [presets, {"properties": {"preset": presets, **fields}, "additionalProperties": False}],
        "description": evaluate["policy"]["description"],
    }
    whole = {"$schema": DRAFT, "title": "groupgt experiment", "$defs": definitions, **schema}
    _describe_branches(whole)
    return whole


def _describe_branches(schema: Any) -> None:
    """Repeats the description of a key in each of its alternatives, where editors look for it."""
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _describe_branches(part)
    if isinstance(schema, dict) and isinstance(text := schema.get("description"), str):
        for branch in (*schema.get("anyOf", ()), schema.get("additionalProperties")):
            if isinstance(branch, dict):
                branch.setdefault("description", text)
                _describe_branches(branch)


def _without_default(schema: dict[str, Any]) -> dict[str, Any]:
    """A field of a policy without its default, which the preset determines."""
    return {key: value for key, value in schema.items() if key != "default"}


def _names(kind: str) -> list[dict[str, Any]]:
    """The names of a kind; plugins may add some, so ours are examples."""
    return [{"enum": ours(kind)}, {"type": "string"}]


def _add_options(kind: str, definitions: dict[str, Any], section: str, prefix: str) -> None:
    """Adds the options that `with` (and `matrix`) of a section accept, depending on `use`."""
    definitions[section]["allOf"] = []
    for name in ours(kind):
        options = definitions[f"{prefix} {name}"] = schema_of(find(kind, name).options)
        keys: dict[str, Any] = {"with": {"$ref": f"#/$defs/{prefix} {name}"}}
        if "matrix" in definitions[section]["properties"]:
            # Options may be under `matrix` instead, so none is required under `with`.
            options.pop("required", None)
            swept = {
                key: {
                    "description": option["description"],
                    **{"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/{prefix} {name}/properties/{key}"}},
                }
                for key, option in options["properties"].items()
            }
            keys["matrix"] = {"properties": swept, "additionalProperties": False}
        definitions[section]["allOf"].append(_where_used(name, keys))


def _tokenizers() -> dict[str, Any]:
    """The names of tokenizers: ours have a fixed form, others are those of plugins."""
    names = ours("tokenizer")
    written = [name + (":.+" if options_of(find("tokenizer", name).options) else "") for name in names]
    return {
        "if": {"type": "string", "pattern": f"^({'|'.join(names)})(:|$)"},
        "then": {"pattern": f"^({'|'.join(written)})$"},
    }


def _where_used(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """The required form of keys if `use` is this name."""
    return {"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": {"properties": keys}}
