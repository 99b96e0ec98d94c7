"""What `groupgt schema` prints of what is written: the JSON Schemas of results and comparisons."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from groupgt.comparison.schema import ComparisonDict
from groupgt.experiment.json_schema import DRAFT, without_titles
from groupgt.report.results import Results


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
    without_titles(schema, definitions)
    for part in [schema, *definitions.values()]:
        part["additionalProperties"] = False
    return {"$schema": DRAFT, "title": title, **schema, "$defs": definitions}
