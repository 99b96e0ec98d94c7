"""Generates the JSON Schema of experiment files, as printed by `groupgt schema`."""

from __future__ import annotations

import json
from typing import Any

from groupgt.experiment.config import Config
from groupgt.model.policy import PRESETS, Policy
from groupgt.options import options_of
from groupgt.plugins import find, ours
from groupgt.schemas import schema_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """Return the JSON Schema of experiment files as text, which editors use for completion and validation."""
    definitions: dict[str, Any] = {}
    schema = schema_of(Config, definitions)
    sections = {"retriever": "SystemConfig", "labeller": "LabellerConfig", "engine": "EngineConfig"}
    for kind, section in sections.items():
        names = {"enum": ours(kind)}
        # Plugins may add retrievers and labellers, so ours are examples.
        use = names if kind == "engine" else {"anyOf": [names, {"type": "string"}]}
        definitions[section]["properties"]["use"] |= use
        _add_options(kind, definitions, section, "with" if kind == "retriever" else f"{kind} with")
    evaluate = definitions["Evaluate"]["properties"]
    evaluate["tokenizer"] |= _tokenizers()
    presets = {"enum": list(PRESETS), "description": "A preset. You can override its fields."}
    fields = schema_of(Policy)["properties"]
    for field in fields.values():
        field.pop("default", None)  # depends on the preset
    evaluate["policy"] = {
        "anyOf": [presets, {"properties": {"preset": presets, **fields}, "additionalProperties": False}],
        "description": evaluate["policy"]["description"],
    }
    heading = {"$schema": DRAFT, "$id": "urn:groupgt:schema:experiment", "title": "groupgt experiment"}
    document = {**heading, "$defs": definitions, **schema}
    _refine(document)
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _refine(schema: Any) -> None:
    """Copy descriptions to alternatives, and select alternatives by type, so that editors show the right message."""
    if isinstance(schema, dict):
        branches = schema.get("anyOf", ())
        if isinstance(text := schema.get("description"), str):
            for branch in (*branches, schema.get("additionalProperties")):
                if isinstance(branch, dict):
                    branch.setdefault("description", text)
        sections = [branch for branch in branches if "$ref" in branch or "properties" in branch]
        if len(sections) == 1:
            rest = [branch for branch in schema.pop("anyOf") if branch not in sections]
            otherwise = rest[0] if len(rest) == 1 else {"anyOf": rest}
            schema |= {"if": {"type": "object"}, "then": sections[0], "else": otherwise}
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _refine(part)


def _add_options(kind: str, definitions: dict[str, Any], section: str, prefix: str) -> None:
    """Add the options that a section accepts under `with` (and `matrix`) for each value of `use`."""
    definitions[section]["allOf"] = []
    for name in ours(kind):
        options = definitions[f"{prefix} {name}"] = schema_of(find(kind, name).options)
        keys: dict[str, Any] = {"with": {"$ref": f"#/$defs/{prefix} {name}"}}
        if "matrix" in definitions[section]["properties"]:
            # Options may be under `matrix` instead, so none is required under `with`.
            options.pop("required", None)
            swept = {}
            for key, option in options["properties"].items():
                items = {"$ref": f"#/$defs/{prefix} {name}/properties/{key}"}
                swept[key] = {"description": option["description"], "type": "array", "minItems": 1, "items": items}
            keys["matrix"] = {"properties": swept, "additionalProperties": False}
        is_used = {"properties": {"use": {"const": name}}, "required": ["use"]}
        definitions[section]["allOf"].append({"if": is_used, "then": {"properties": keys}})


def _tokenizers() -> dict[str, Any]:
    """Return a schema for tokenizer names: a fixed form for built-in tokenizers, any text for plugins."""
    names = ours("tokenizer")
    written = [name + (":.+" if options_of(find("tokenizer", name).options) else "") for name in names]
    return {
        "if": {"type": "string", "pattern": f"^({'|'.join(names)})(:|$)"},
        "then": {"pattern": f"^({'|'.join(written)})$"},
    }
