"""The JSON Schema of `results.json`."""

from __future__ import annotations

from typing import Any

from groupgt.comparison.outline import DEFINITIONS

__all__ = ["results_schema"]

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
MEANS = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}


def results_schema() -> dict[str, Any]:
    """The schema, draft 2020-12; keys that a file does not ask for are absent."""
    evaluation = {
        "type": "object",
        "properties": {
            "run": TEXT,
            "convention": TEXT,
            "labeller": TEXT,
            "policy": {"type": "object", "additionalProperties": TEXT},
            "counts": {"type": "object", "additionalProperties": COUNT},
            "metrics": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {"metric": TEXT, "mean": {"type": ["number", "null"]}, "queries": COUNT},
                    "required": ["metric", "mean", "queries"],
                    "additionalProperties": False,
                },
            },
            "slices": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"by": TEXT, "value": TEXT, "queries": COUNT, "means": MEANS},
                    "required": ["by", "value", "queries", "means"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["run", "convention", "labeller", "policy", "counts", "metrics"],
        "additionalProperties": False,
    }
    gate = {
        "type": "object",
        "properties": {
            "gate": {"type": "integer", "minimum": 1},
            "system": TEXT,
            "dataset": TEXT,
            "metric": TEXT,
            "passed": {"type": "boolean"},
            "reason": TEXT,
            "value": {"type": ["number", "null"]},
        },
        "required": ["gate", "system", "dataset", "metric", "passed", "reason", "value"],
        "additionalProperties": False,
    }
    dataset = {
        "type": "object",
        "properties": {
            "best": {"type": ["string", "null"]},
            "systems": {"type": "array", "items": {"$ref": "#/$defs/evaluation"}},
            "failed": {"type": "object", "additionalProperties": TEXT},
            "comparison": {"$ref": "#/$defs/comparison"},
        },
        "required": ["systems"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "groupgt results",
        "type": "object",
        "properties": {
            "name": TEXT,
            "datasets": {"type": "object", "additionalProperties": {"$ref": "#/$defs/dataset"}},
            "best": TEXT,
            "gates": {"type": "array", "items": {"$ref": "#/$defs/gate"}},
        },
        "required": ["name", "datasets"],
        "additionalProperties": False,
        "$defs": {**DEFINITIONS, "evaluation": evaluation, "gate": gate, "dataset": dataset},
    }
