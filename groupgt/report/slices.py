"""What slices show: means, and what they hide in the mean of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupgt.evaluation.result import Evaluation
from groupgt.render.tables import Grid


def slices_of(evaluations: Sequence[Evaluation], metric: str) -> list[Grid]:
    """For each column of `by`, one metric: a row a run, a column a slice."""
    first = evaluations[0]
    text = first.text_of(metric)
    sliced: list[Grid] = []
    for column in first.slicer.by:
        parts = [part for part in first.slices if part["by"] == column]
        headers = [f"{first.label_of(text)} by {column}", *(part["value"] for part in parts)]
        rows: list[list[Any]] = [["queries", *(part["queries"] for part in parts)]]
        for evaluation in evaluations:
            means = [part["means"][text] for part in evaluation.slices if part["by"] == column]
            rows.append([evaluation.name, *means])
        sliced.append((headers, rows))
    return sliced
