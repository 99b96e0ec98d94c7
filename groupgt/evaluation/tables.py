"""Tables of one evaluation or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupgt.errors import printable
from groupgt.evaluation.result import Evaluation
from groupgt.render import tables
from groupgt.render.exports import nulls

# More runs than this do not stand in columns.
MANY = 4


def side_by_side(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Headers and rows: one run alone as its own table, several in rows (in columns, where metrics are many).

    Several conventions stand in columns.
    """
    first = evaluations[0]
    if len(conventions) > 1:
        return _by_convention(evaluations, conventions)
    if len(evaluations) == 1:
        return first.grid()
    labels = [first.label_of(text) for text in first.metrics]
    if len(labels) <= tables.WIDEST:
        return ["run", *labels], [[each.name, *each.means.values()] for each in evaluations]
    return ["metric", *(each.name for each in evaluations)], [
        [label, *(each.means[text] for each in evaluations)] for label, text in zip(labels, first.metrics)
    ]


def grids(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> list[tuple[list[str], list[list[Any]]]]:
    """The same as tables that fit a terminal: many runs with many metrics stand in one table for each cutoff."""
    first = evaluations[0]
    if len(conventions) > 1 or len(evaluations) <= MANY or len(first.metrics) <= tables.WIDEST:
        return [side_by_side(evaluations, conventions)]
    columns: dict[object, list[str]] = {}
    for text, metric in first.metrics.items():
        columns.setdefault(metric.cutoff, []).append(text)
    parts = [
        texts[start : start + tables.WIDEST]
        for texts in columns.values()
        for start in range(0, len(texts), tables.WIDEST)
    ]
    return [
        (
            ["run", *(first.label_of(text) for text in part)],
            [[each.name, *(each.means[text] for text in part)] for each in evaluations],
        )
        for part in parts
    ]


def slices_of(evaluations: Sequence[Evaluation], metric: str) -> list[tuple[list[str], list[list[Any]]]]:
    """For each column of `by`, one metric: a row a run, a column a slice."""
    first = evaluations[0]
    text = first.text_of(metric)
    found = []
    for column in first.slicer.by:
        parts = [part for part in first.slices if part["by"] == column]
        headers = [f"{first.label_of(text)} by {column}", *(part["value"] for part in parts)]
        rows: list[list[Any]] = [["queries", *(part["queries"] for part in parts)]]
        for each in evaluations:
            rows.append([each.name, *(part["means"][text] for part in each.slices if part["by"] == column)])
        found.append((headers, rows))
    return found


def _by_convention(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """A row for each run and metric, a column for each convention; what has no convention stands in all of them."""
    several = len(evaluations) > 1
    rows: list[list[Any]] = []
    for evaluation in evaluations:
        cells: dict[str, dict[str | None, float]] = {}
        for text, metric in evaluation.metrics.items():
            cells.setdefault(metric.short(metric.convention), {})[metric.convention] = evaluation.means[text]
        for label, means in cells.items():
            values = [means.get(convention, means.get(None, "")) for convention in conventions]
            rows.append([*([evaluation.name] if several else []), label, *values])
    return [*(["run"] if several else []), "metric", *conventions], rows


def slices_side_by_side(evaluations: Sequence[Evaluation]) -> list[tuple[list[str], list[list[Any]]]]:
    """For each column of `by`, one table over all runs."""
    if len(evaluations) == 1:
        return evaluations[0].slice_grids()
    grids = []
    for grid in zip(*(each.slice_grids() for each in evaluations)):
        headers = [grid[0][0][0], "run", *grid[0][0][1:]]
        rows = [
            [row[0], evaluation.name, *row[1:]]
            for rows in zip(*(rows for _, rows in grid))
            for evaluation, row in zip(evaluations, rows)
        ]
        grids.append((headers, rows))
    return grids


def summary(evaluations: Sequence[Evaluation], conventions: Sequence[str], style: str) -> str:
    """The tables and their populations, as text in a tabulate format."""
    parts = [tables.table(*grid, style) for grid in grids(evaluations, conventions)]
    parts += [tables.table(*grid, style) for grid in slices_side_by_side(evaluations)]
    return "\n\n".join([*parts, printable("\n".join(population(evaluations, conventions)))])


def means_and_slices(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[list[Any]]]:
    """Headers and a row for each mean, of the whole (where `by` is empty) and of each slice."""
    rows: list[list[Any]] = []
    for each in evaluations:
        for text, metric in each.metrics.items():
            rows.append([each.name, "", "", str(metric), each.means[text], each.counted(text)])
        for part in each.slices:
            for text, mean in part["means"].items():
                name = str(each.metrics[text])
                rows.append([each.name, part["by"], part["value"], name, mean, part["queries"]])
    return ["run", "by", "value", "metric", "mean", "queries"], rows


def population(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> list[str]:
    """The footers: once where all runs agree, else a line for those that do."""
    footers = [each.footer() for each in evaluations]
    if len(conventions) > 1:
        footers = [[counts.split("; ", 1)[1], *others] for counts, *others in footers]
    if len({counts for counts, *_ in footers}) == 1:
        return footers[0]
    alike: dict[str, list[str]] = {}
    for each, (counts, *_) in zip(evaluations, footers):
        alike.setdefault(counts, []).append(each.name)
    most = max(alike, key=lambda counts: len(alike[counts]))
    told = {
        counts: "the others" if counts == most and len(names) > 1 else ", ".join(names)
        for counts, names in alike.items()
    }
    return [*(f"{told[counts]}: {counts}" for counts in sorted(alike, key=lambda each: each == most)), *footers[0][1:]]


def per_query_rows(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[list[Any]]]:
    """`run, qid` and one column a metric; None where a query does not count."""
    headers = ["run", "qid", *evaluations[0].metrics]
    rows: list[list[Any]] = []
    for each in evaluations:
        columns = (nulls(values.tolist()) for values in each.values.values())
        rows += [[each.name, qid, *cells] for qid, *cells in zip(each.truth.qids, *columns)]
    return headers, rows
