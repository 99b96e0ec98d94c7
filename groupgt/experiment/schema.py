"""What sections of an experiment file are made of: strict models, short forms, types; and their faults in our words.

`gates`, `best`, `sweeps` and `config` build their sections of it; `experiment` has faults explained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from groupgt.errors import near_names
from groupgt.experiment.yaml import Document, KeyPath
from groupgt.model.validity import shown


class Section(BaseModel):
    """A section of the file: its keys and no others, of the types that are named and no others."""

    # Built when it is first used: the parts of a model are built with the whole.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, allow_inf_nan=False)


class Short:
    """A short form, widened before validation: a value where a list or `{key: value}` is meant.

    Editors learn of it from the JSON Schema; validation has no unions, so that every fault has one place.
    """

    def __init__(self, key: str = "") -> None:
        self.key = key

    def widened(self, value: Any) -> Any:
        """The long form."""
        if not self.key:
            return value if isinstance(value, list) or value is None else [value]
        return {self.key: value} if isinstance(value, str) else value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.widened, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        long = handler(schema)
        brief = {"type": "string"} if self.key else dict(handler.resolve_ref_schema(long).get("items", {}))
        return {"anyOf": [long, brief]}


def _scalar(value: Any) -> Any:
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise PydanticCustomError("scalar", "text, a number, true or false")


LISTED = Short()
# What a column may hold; one type, so that a fault has one place.
Scalar = Annotated[Any, PlainValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Texts = Annotated[list[str], LISTED]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$", max_length=100)]
Positive = Annotated[int, Field(ge=1, le=10**15)]


# What pydantic calls a fault, and what we expected there.
EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_pattern_mismatch": "a name of letters, digits, blanks, '.', '_', '+' and '-'",
    "greater_than_equal": "a number of at least {ge}",
    "less_than_equal": "a number of at most {le}",
    "greater_than": "a number above {gt}",
    "less_than": "a number below {lt}",
    "too_short": "at least one",
    "string_too_long": "at most {max_length} characters",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
}
UNKNOWN_KEY = "extra_forbidden"


def path_of(fault: Mapping[str, Any]) -> KeyPath:
    """The path of keys at which pydantic found a fault."""
    return tuple(part for part in fault["loc"] if part != "[key]")


def explain(fault: Mapping[str, Any], document: Document, root: type[Section]) -> None:
    """Adds one fault of pydantic to a document, in our words.

    `root` is the model of the whole file, whose keys are named where one is unknown.
    """
    path = path_of(fault)
    kind, value = fault["type"], fault["input"]
    if kind == UNKNOWN_KEY:
        keys = _keys_at(root, path[:-1])
        document.fault(path, f"unknown key; known keys: {', '.join(keys)}{near_names(str(path[-1]), keys)}", key=True)
    elif kind == "missing":
        document.fault(path, "required key is missing")
    else:
        words = {key: _words_of(bound) for key, bound in fault.get("ctx", {}).items()}
        expected = EXPECTED[kind].format(**words) if kind in EXPECTED else fault["msg"]
        near = ""
        if kind == "literal_error" and isinstance(value, str):
            near = near_names(value, expected.replace(" or ", ", ").split(", "))
        document.fault(path, f"expected {expected}, found {as_yaml(value)}{near}", key="[key]" in fault["loc"])


def _words_of(bound: Any) -> str:
    """A bound, or the choices, of what was expected."""
    if isinstance(bound, int):
        return f"{bound:,}"
    return f"{bound:g}" if isinstance(bound, float) else str(bound).replace("'", "")


def as_yaml(value: Any) -> str:
    """A value as YAML would have it, roughly."""
    if value is None or value in ({}, []):
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return shown(value)


def _keys_at(root: type[Section], path: KeyPath) -> list[str]:
    """The keys of the section at a path."""
    section = root
    for part in path:
        field = next((f for name, f in section.model_fields.items() if (f.alias or name) == part), None)
        if field is not None:
            section = next(_sections_in(field.annotation), section)
        # Another part is the name of a data set or a system: it leaves the section of its values.
    return [field.alias or name for name, field in section.model_fields.items()]


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _sections_in(argument)
