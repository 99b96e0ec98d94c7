"""The public name of `per_query` for Arrow. It is found when it is asked for, since engines know no metrics."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name != "per_query":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("groupgt.evaluation.per_query.arrow").per_query
