"""The JSON Schema of experiment files, for editors."""

from __future__ import annotations

import inspect
import json
from typing import Any

from groupgt.engines.choice import ENGINES
from groupgt.experiment.description.schema import Config, model_of
from groupgt.labellers.registry import LABELLERS, kind_named
from groupgt.metrics.base import CONVENTIONS
from groupgt.model.policy import CHOICES, PRESETS
from groupgt.retrievers.registry import RETRIEVERS

__all__ = ["schema_text"]


def schema_text() -> str:
    """The schema: what `groupgt schema` prints."""
    return json.dumps(_schema(), ensure_ascii=False, indent=2) + "\n"


def _schema() -> dict[str, Any]:
    whole = Config.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    system = definitions["SystemConfig"]
    # Plugins may add names: the known ones are examples, and what `with` holds depends on `use`.
    system["properties"]["use"]["anyOf"] = [{"enum": list(RETRIEVERS)}, {"type": "string"}]
    system["allOf"] = []
    for name, kind in RETRIEVERS.items():
        options = model_of(kind.options).model_json_schema(by_alias=True)
        options["description"] = inspect.getdoc(kind.options) or ""
        # What is swept stands under `matrix`, so that nothing is required here.
        options.pop("required", None)
        definitions[f"with {name}"] = options
        system["allOf"].append(
            {
                "if": {"properties": {"use": {"const": name}}, "required": ["use"]},
                "then": {"properties": {"with": {"$ref": f"#/$defs/with {name}"}, "matrix": _swept(name, options)}},
            }
        )
    labeller = definitions["Use"]
    labeller["properties"]["use"]["enum"] = list(LABELLERS)
    labeller["allOf"] = []
    for name in LABELLERS:
        made = kind_named(name)
        options = model_of(made.options).model_json_schema(by_alias=True)
        options["description"] = inspect.getdoc(made.options) or ""
        definitions[f"labeller with {name}"] = options
        then = {"properties": {"with": {"$ref": f"#/$defs/labeller with {name}"}}}
        labeller["allOf"].append({"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": then})
    engine = definitions["EngineConfig"]
    engine["properties"]["use"]["enum"] = list(ENGINES)
    fields = {name: {"enum": list(choices)} for name, choices in CHOICES.items()}
    presets = {"enum": list(PRESETS)}
    definitions["Evaluate"]["properties"]["policy"] = {
        "anyOf": [presets, {"properties": {"preset": presets, **fields}, "additionalProperties": False}]
    }
    whole["properties"]["convention"]["enum"] = list(CONVENTIONS)
    whole["properties"]["version"]["const"] = 1
    for model in [whole, *definitions.values()]:
        model.pop("title", None)
        for each in model.get("properties", {}).values():
            each.pop("title", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "groupgt experiment", **whole}


def _swept(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """What `matrix` may hold for a retriever: of each option a list of values."""
    properties = {
        key: {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/with {name}/properties/{key}"}}
        for key in options.get("properties", {})
    }
    return {"properties": properties, "additionalProperties": False}
