"""What slices show: the means in each; `slice_contrasts` tells the differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupgt.evaluation.result import Evaluation
from groupgt.render import tables
from groupgt.render.tables import Grid


def slice_grids(evaluation: Evaluation) -> list[Grid]:
    """One table per column of `by`: a row a slice, or a row a metric where these are many."""
    labels = [evaluation.label_of(text) for text in evaluation.metrics]
    grids: list[Grid] = []
    for column in evaluation.slicer.by:
        parts = [part for part in evaluation.slices if part["by"] == column]
        if len(labels) <= tables.WIDEST:
            cells = [[part["value"], part["queries"], *part["means"].values()] for part in parts]
            grids.append(([column, "queries", *labels], cells))
            continue
        rows: list[list[Any]] = [["queries", *(part["queries"] for part in parts)]]
        rows += [[label, *(part["means"][text] for part in parts)] for label, text in zip(labels, evaluation.metrics)]
        grids.append(([f"by {column}", *(part["value"] for part in parts)], rows))
    return grids


def slices_side_by_side(evaluations: Sequence[Evaluation]) -> list[Grid]:
    """For each column of `by`, one table over all runs."""
    if len(evaluations) == 1:
        return slice_grids(evaluations[0])
    joined: list[Grid] = []
    # Of one column of `by` at a time, the grid of each run.
    for of_runs in zip(*map(slice_grids, evaluations)):
        (column, *headers), _ = of_runs[0]
        rows = [
            [row[0], evaluation.name, *row[1:]]
            for same_rows in zip(*(rows for _, rows in of_runs))
            for evaluation, row in zip(evaluations, same_rows)
        ]
        joined.append(([column, "run", *headers], rows))
    return joined


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
