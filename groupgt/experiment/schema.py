"""Common parts of experiment file sections: value types, and formatting of values in messages.

Each section is a frozen dataclass that `groupgt.options` parses.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from annotated_types import Ge, Le

from groupgt.model.validity import shown
from groupgt.options import Rule, Short

NAME = r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$"
MOST_CHARS = 100


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


LISTED = Short()
# The possible values of a column; one type, so that an error has one location.
Scalar = Annotated[Any, Rule("text, a number, true or false", _is_scalar, {"type": ["string", "number", "boolean"]})]
Texts = Annotated[list[str], LISTED]
Name = Annotated[
    str,
    Rule(
        f"a name of letters, digits, blanks, '.', '_', '+' and '-', at most {MOST_CHARS} characters",
        lambda value: len(value) <= MOST_CHARS and re.fullmatch(NAME[1:-1], value) is not None,
        {"maxLength": MOST_CHARS, "pattern": NAME, "type": "string"},
    ),
]
Positive = Annotated[int, Ge(1), Le(10**15)]


def as_yaml(value: Any) -> str:
    """Formats a value as YAML, approximately."""
    if value is None or value in ({}, []):
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return shown(value)
