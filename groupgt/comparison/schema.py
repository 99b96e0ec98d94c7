"""The JSON Schema of a comparison: what `groupgt compare --format json` prints."""

from __future__ import annotations

from typing import Any

from groupgt.comparison.tests import CORRECTIONS, TESTS

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
# null stands for what cannot be said.
MAYBE = {"type": ["number", "null"]}
COUNT = {"type": "integer", "minimum": 0}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
P = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
ENDS = {"anyOf": [{"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}, {"type": "null"}]}
TEXTS = {"type": "array", "items": TEXT}


def _object(properties: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """An object that has all of these keys and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **rest,
    }


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}


def _counts(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


DEFINITIONS: dict[str, Any] = {
    "contrast": _object(
        {
            "delta": MAYBE,
            "delta_interval": ENDS,
            "pairs": COUNT,
            "unpaired": COUNT,
            "wins": COUNT,
            "ties": COUNT,
            "losses": COUNT,
            "spread": MAYBE,
            "effect_size": MAYBE,
            "raw_p_value": P,
            "p_value": P,
            "differ": COUNT,
        },
        description="One system against another: system − other, over the queries that count for both.",
    ),
    "row": _object(
        {
            "system": TEXT,
            "metric": TEXT,
            "mean": MAYBE,
            "interval": ENDS,
            "queries": COUNT,
            "significant": {"type": "boolean"},
            "against_baseline": {"anyOf": [{"$ref": "#/$defs/contrast"}, {"type": "null"}]},
        }
    ),
    "pair": _object(
        {"first": TEXT, "second": TEXT, "metric": TEXT, "tukey": P, "against": {"$ref": "#/$defs/contrast"}}
    ),
    "slice": _object({"by": TEXT, "value": TEXT, "queries": COUNT, "rows": _list("row")}),
    "group": _object(
        {
            "qid": TEXT,
            "group": TEXT,
            "alternatives": TEXTS,
            "systems": COUNT,
            "ranks": _counts({"type": ["integer", "null"], "minimum": 1}),
        }
    ),
    "failures": _object(
        {
            "cutoff": {"type": ["string", "null"]},
            "queries": COUNT,
            "solved": _counts(COUNT),
            "only": _counts(TEXTS),
            "everybody": COUNT,
            "nobody": TEXTS,
            "hardest": _list("group"),
        }
    ),
    "headroom": _object(
        {
            "metric": TEXT,
            "best": TEXT,
            "mean": NUMBER,
            "per_query": NUMBER,
            "queries": COUNT,
            "union_recall": MAYBE,
            "union_complete": MAYBE,
            "union_size": MAYBE,
            "single_recall": MAYBE,
        }
    ),
    "settings": _object(
        {
            "test": {"enum": list(TESTS)},
            "correction": {"enum": list(CORRECTIONS)},
            "alpha": SHARE,
            "intervals": SHARE,
            "resamples": COUNT,
            "seed": COUNT,
            "pairs": {"type": "boolean"},
        }
    ),
    "comparison": _object(
        {
            "baseline": TEXT,
            "convention": TEXT,
            "settings": {"$ref": "#/$defs/settings"},
            "metrics": _counts(TEXT),
            "comparisons": COUNT,
            "rows": _list("row"),
            "pairs": _list("pair"),
            "slices": _list("slice"),
            "reversals": {
                "type": "array",
                "items": _object({"system": TEXT, "metric": TEXT, "by": TEXT, "value": TEXT}),
            },
            "failures": {"anyOf": [{"$ref": "#/$defs/failures"}, {"type": "null"}]},
            "headroom": _list("headroom"),
            "warnings": TEXTS,
            "population": TEXTS,
        }
    ),
}


def comparison_schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "groupgt comparison",
        "$ref": "#/$defs/comparison",
        "$defs": DEFINITIONS,
    }
