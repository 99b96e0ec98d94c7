"""Evaluation on Apache Spark. `per_query` and `means` are for those who go on there; they are found when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name not in ("means", "per_query"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("groupgt.evaluation.per_query.spark"), name)
