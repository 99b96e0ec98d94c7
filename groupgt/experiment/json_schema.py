"""What `groupgt schema` prints: the JSON Schema of experiment files, and of what is written."""

from __future__ import annotations

import inspect
import json
from typing import Any

from pydantic import TypeAdapter

from groupgt.comparison.schema import ComparisonDict
from groupgt.engines.choice import ENGINES
from groupgt.experiment.config import Config
from groupgt.experiment.results import Results
from groupgt.experiment.schema import model_of
from groupgt.labellers.registry import LABELLERS, kind_named
from groupgt.metrics.base import CONVENTIONS
from groupgt.model.policy import CHOICES, PRESETS
from groupgt.retrievers.registry import RETRIEVERS

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def results_schema() -> dict[str, Any]:
    """The schema of results.json; keys that a file does not ask for are absent."""
    return _written_schema(Results, "groupgt results")


def comparison_schema() -> dict[str, Any]:
    """The schema of a comparison as JSON."""
    return _written_schema(ComparisonDict, "groupgt comparison")


def _written_schema(kind: Any, title: str) -> dict[str, Any]:
    """The schema of a `TypedDict`: it has these keys and no others."""
    schema = TypeAdapter(kind).json_schema()
    definitions = schema.pop("$defs", {})
    _without_titles(schema, definitions)
    for part in [schema, *definitions.values()]:
        part["additionalProperties"] = False
    return {"$schema": DRAFT, "title": title, **schema, "$defs": definitions}


def _without_titles(schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Titles say no more than the keys do."""
    for part in [schema, *definitions.values()]:
        part.pop("title", None)
        for key in part.get("properties", {}).values():
            key.pop("title", None)


def schema_text() -> str:
    """The schema of experiment files, by which editors complete and check them, as text."""
    return json.dumps(_experiment_schema(), ensure_ascii=False, indent=2) + "\n"


def _experiment_schema() -> dict[str, Any]:
    whole = Config.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    _add_systems(definitions)
    _add_labellers(definitions)
    definitions["EngineConfig"]["properties"]["use"]["enum"] = list(ENGINES)
    choices = {name: {"enum": list(known)} for name, known in CHOICES.items()}
    presets = {"enum": list(PRESETS)}
    definitions["Evaluate"]["properties"]["policy"] = {
        "anyOf": [presets, {"properties": {"preset": presets, **choices}, "additionalProperties": False}]
    }
    whole["properties"]["convention"]["enum"] = list(CONVENTIONS)
    whole["properties"]["version"]["const"] = 1
    _without_titles(whole, definitions)
    return {"$schema": DRAFT, "title": "groupgt experiment", **whole}


def _add_systems(definitions: dict[str, Any]) -> None:
    """What `with` and `matrix` of a system may hold, by its retriever."""
    system = definitions["SystemConfig"]
    # Plugins may add names: the known ones are examples, and what `with` holds depends on `use`.
    system["properties"]["use"]["anyOf"] = [{"enum": list(RETRIEVERS)}, {"type": "string"}]
    system["allOf"] = []
    for name, kind in RETRIEVERS.items():
        options = _options_schema(kind.options)
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


def _add_labellers(definitions: dict[str, Any]) -> None:
    """What `with` of a labeller may hold, by its name."""
    labeller = definitions["Use"]
    labeller["properties"]["use"]["enum"] = list(LABELLERS)
    labeller["allOf"] = []
    for name in LABELLERS:
        definitions[f"labeller with {name}"] = _options_schema(kind_named(name).options)
        labeller["allOf"].append(_where_used(name, {"with": {"$ref": f"#/$defs/labeller with {name}"}}))


def _options_schema(options: type[Any]) -> dict[str, Any]:
    return {**model_of(options).model_json_schema(by_alias=True), "description": inspect.getdoc(options) or ""}


def _where_used(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """What keys must hold where a part is chosen by this name."""
    return {"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": {"properties": keys}}
