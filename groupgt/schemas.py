"""Derives the JSON Schema of a dataclass from its options."""

from __future__ import annotations

from dataclasses import is_dataclass
from inspect import getdoc
from typing import Any, Literal, get_args, get_origin

from groupgt.options import BOUNDS, TYPES, Rule, Short, as_dict, limits, note_in, options_of, unwrapped


def schema_of(kind: type[Any], definitions: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass, with its docstring. Add nested dataclasses to `definitions`."""
    definitions = {} if definitions is None else definitions
    options = options_of(kind)
    properties = {}
    for key, option in options.items():
        schema = _schema(option.hint, definitions)
        if option.description:
            schema["description"] = option.description
        if not option.needed:
            schema["default"] = as_dict(option.default)
        properties[key] = dict(sorted(schema.items()))
    required = [key for key, option in options.items() if option.needed]
    return {
        "additionalProperties": False,
        "description": getdoc(kind) or "",
        "properties": properties,
        **({"required": required} if required else {}),
        "type": "object",
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    plain, notes = unwrapped(hint)
    rule = note_in(notes, Rule)
    schema = dict(rule.schema) if rule is not None else _type_schema(plain, definitions)
    schema |= {BOUNDS[name][0]: bound for name, bound in limits(hint).items()}
    for minimum in (note.min_length for note in notes if getattr(note, "min_length", 0)):
        schema["minItems" if schema["type"] == "array" else "minProperties"] = minimum
    if (short := note_in(notes, Short)) is not None:
        schema = {"anyOf": [schema, {"type": TYPES[short.kind][1]} if short.key else schema["items"]]}
    return {"anyOf": [schema, {"type": "null"}]} if None in notes else schema


def _type_schema(plain: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    kind, arguments = get_origin(plain) or plain, get_args(plain)
    if kind is Literal:
        return {"enum": list(arguments), "type": "string"}
    if is_dataclass(kind):
        if plain.__name__ not in definitions:
            definitions[plain.__name__] = schema_of(plain, definitions)
        return {"$ref": f"#/$defs/{plain.__name__}"}
    if kind is list:
        return {"items": _schema(arguments[0], definitions), "type": "array"}
    if kind is dict:
        item, key = _schema(arguments[1], definitions), _schema(arguments[0], definitions)
        if "pattern" in key:
            names = {"propertyNames": {"maxLength": key["maxLength"]}} if "maxLength" in key else {}
            return {"patternProperties": {key["pattern"]: item}, **names, "type": "object"}
        return {"additionalProperties": item or True, "type": "object"}
    return {"type": TYPES[kind][1]} if kind in TYPES else {}
