"""Faults of the schema in our words, each at its place."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from groupgt.errors import near_names
from groupgt.experiment.description.schema import known_keys
from groupgt.experiment.description.yamlfile import Document, Path_
from groupgt.model.ids import shown as shown_value
from groupgt.retrievers.registry import RETRIEVERS

__all__ = ["explain"]


def explain(fault: Any, document: Document, places: dict[str, Path_] | None = None) -> None:
    """Adds one fault of pydantic; `places` are the paths of a system's options, which may stand in its matrix."""
    path: Path_ = tuple(part for part in fault["loc"] if part != "[key]")
    is_key = "[key]" in fault["loc"]
    for length in range(len(path), 0, -1) if places else ():
        known = (places or {}).get(str(path[length - 1]))
        if known is not None and path[: length - 1] == (*known[:2], "with"):
            path = (*known, *path[length:])
            break
    kind, found, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        keys = known_keys(path[:-1])
        what = f"unknown key; known are {', '.join(keys)}{near_names(str(path[-1]), keys)}"
        if _is_option(path, document):
            what = "an option stands under `with`, or with a list of values under `matrix`"
        document.fault(path, what, key=True)
        return
    if kind == "missing":
        document.fault(path, "this key is needed and missing")
        return
    expected = {
        "string_type": "text",
        "int_type": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping",
        "model_attributes_type": "a mapping",
        "string_pattern_mismatch": "a name of letters, digits, blanks, '.', '_', '+' and '-'",
        "greater_than_equal": f"a number of at least {_number(context.get('ge'))}",
        "less_than_equal": f"a number of at most {_number(context.get('le'))}",
        "greater_than": f"a number above {_number(context.get('gt'))}",
        "less_than": f"a number below {_number(context.get('lt'))}",
        "too_short": "at least one",
        "string_too_long": f"at most {context.get('max_length')} characters",
        "finite_number": "a finite number",
        "literal_error": str(context.get("expected", "")).replace("'", ""),
    }.get(kind, fault["msg"])
    shown = _shown(found)
    near = ""
    if kind == "literal_error" and isinstance(found, str):
        near = near_names(found, expected.replace(" or ", ", ").split(", "))
    document.fault(path, f"expected {expected}, found {shown}{near}", key=is_key)


def _is_option(path: Path_, document: Document) -> bool:
    """Whether a key of a system is one of its retriever's."""
    if len(path) != 3 or path[0] != "systems":
        return False
    use = document.value["systems"][path[1]].get("use")
    return use in RETRIEVERS and path[2] in {each.name for each in fields(RETRIEVERS[use].options)}


def _shown(found: Any) -> str:
    """A value as YAML would have it, roughly."""
    if found is None or found in ({}, []):
        return "nothing"
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, (dict, list)):
        return "a mapping" if isinstance(found, dict) else "a list"
    return shown_value(found)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value or 0:g}"
