"""What `groupgt schema` prints: the JSON Schema of experiment files."""

from __future__ import annotations

import json
from typing import Any

from groupgt.experiment.config import Config
from groupgt.metrics.base import CONVENTIONS
from groupgt.model.policy import CHOICES, PRESETS
from groupgt.options import options_of, schema_of
from groupgt.plugins import find, ours

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """The schema of experiment files, by which editors complete and check them, as text."""
    return json.dumps(_experiment_schema(), ensure_ascii=False, indent=2) + "\n"


def without_titles(schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Titles say no more than the keys do."""
    for part in [schema, *definitions.values()]:
        part.pop("title", None)
        for key in part.get("properties", {}).values():
            key.pop("title", None)


def _experiment_schema() -> dict[str, Any]:
    whole = Config.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    _add_systems(definitions)
    for kind, section in (("labeller", "LabellerConfig"), ("engine", "EngineConfig")):
        _add_options(kind, definitions, section)
    definitions["LabellerConfig"]["properties"]["use"]["anyOf"] = _names("labeller")
    definitions["EngineConfig"]["properties"]["use"]["enum"] = ours("engine")
    definitions["Evaluate"]["properties"]["tokenizer"] |= _tokenizers()
    choices: dict[str, Any] = {name: {"enum": list(known)} for name, known in CHOICES.items()}
    choices["level"] = {"type": "number", "exclusiveMinimum": 0}
    choices["importance"] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    presets = {"enum": list(PRESETS)}
    definitions["Evaluate"]["properties"]["policy"] = {
        "anyOf": [presets, {"properties": {"preset": presets, **choices}, "additionalProperties": False}]
    }
    whole["properties"]["convention"]["enum"] = list(CONVENTIONS)
    whole["properties"]["version"]["const"] = 1
    without_titles(whole, definitions)
    return {"$schema": DRAFT, "title": "groupgt experiment", **whole}


def _add_systems(definitions: dict[str, Any]) -> None:
    """What `with` and `matrix` of a system may hold, by its retriever."""
    system = definitions["SystemConfig"]
    system["properties"]["use"]["anyOf"] = _names("retriever")
    system["allOf"] = []
    for name in ours("retriever"):
        options = schema_of(find("retriever", name).options)
        # What is swept stands under `matrix`, so that nothing is required here.
        options.pop("required", None)
        definitions[f"with {name}"] = options
        swept = {
            key: {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/with {name}/properties/{key}"}}
            for key in options.get("properties", {})
        }
        keys = {
            "with": {"$ref": f"#/$defs/with {name}"},
            "matrix": {"properties": swept, "additionalProperties": False},
        }
        system["allOf"].append(_where_used(name, keys))


def _names(kind: str) -> list[dict[str, Any]]:
    """The names of a kind: plugins may add some, so that ours are examples."""
    return [{"enum": ours(kind)}, {"type": "string"}]


def _add_options(kind: str, definitions: dict[str, Any], section: str) -> None:
    """What `with` of a section may hold, by what it uses."""
    definitions[section]["allOf"] = []
    for name in ours(kind):
        definitions[f"{kind} with {name}"] = schema_of(find(kind, name).options)
        keys = {"with": {"$ref": f"#/$defs/{kind} with {name}"}}
        definitions[section]["allOf"].append(_where_used(name, keys))


def _tokenizers() -> dict[str, Any]:
    """The names of tokenizers: ours are written as they must be, others are those of plugins."""
    names = ours("tokenizer")
    written = [name + (":.+" if options_of(find("tokenizer", name).options) else "") for name in names]
    return {
        "if": {"type": "string", "pattern": f"^({'|'.join(names)})(:|$)"},
        "then": {"pattern": f"^({'|'.join(written)})$"},
    }


def _where_used(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """What keys must hold where a part is chosen by this name."""
    return {"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": {"properties": keys}}
