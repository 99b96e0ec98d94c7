"""Evaluations of several runs as tables: side by side for people, a row a mean or a query for files.

The commands, the report of an experiment and its files are made of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupgt.evaluation.result import Evaluation
from groupgt.render import tables
from groupgt.render.exports import nulls
from groupgt.render.tables import Grid

# More runs than this do not stand in columns.
MOST_COLUMNS = 4


def grids(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> list[Grid]:
    """Tables that fit a terminal: one, or of many runs with many metrics one for each cutoff."""
    first = evaluations[0]
    if len(conventions) > 1 or len(evaluations) <= MOST_COLUMNS or len(first.metrics) <= tables.WIDEST:
        return [side_by_side(evaluations, conventions)]
    by_cutoff: dict[object, list[str]] = {}
    for text, metric in first.metrics.items():
        by_cutoff.setdefault(metric.cutoff, []).append(text)
    parts = [
        texts[start : start + tables.WIDEST]
        for texts in by_cutoff.values()
        for start in range(0, len(texts), tables.WIDEST)
    ]
    return [
        (
            ["run", *(first.label_of(text) for text in part)],
            [[evaluation.name, *(evaluation.means[text] for text in part)] for evaluation in evaluations],
        )
        for part in parts
    ]


def side_by_side(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> Grid:
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
        return ["run", *labels], [[evaluation.name, *evaluation.means.values()] for evaluation in evaluations]
    return ["metric", *(evaluation.name for evaluation in evaluations)], [
        [label, *(evaluation.means[text] for evaluation in evaluations)] for label, text in zip(labels, first.metrics)
    ]


def _by_convention(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> Grid:
    """A row for each run and metric, a column for each convention; what has no convention stands in all of them."""
    several = len(evaluations) > 1
    rows: list[list[Any]] = []
    for evaluation in evaluations:
        means_of: dict[str, dict[str | None, float]] = {}
        for text, metric in evaluation.metrics.items():
            means_of.setdefault(metric.short(metric.convention), {})[metric.convention] = evaluation.means[text]
        for label, means in means_of.items():
            values = [means.get(convention, means.get(None, "")) for convention in conventions]
            rows.append([*([evaluation.name] if several else []), label, *values])
    return [*(["run"] if several else []), "metric", *conventions], rows


def slices_side_by_side(evaluations: Sequence[Evaluation]) -> list[Grid]:
    """For each column of `by`, one table over all runs."""
    if len(evaluations) == 1:
        return evaluations[0].slice_grids()
    joined: list[Grid] = []
    # Of one column of `by` at a time, the grid of each run.
    for of_runs in zip(*(evaluation.slice_grids() for evaluation in evaluations)):
        (column, *headers), _ = of_runs[0]
        rows = [
            [row[0], evaluation.name, *row[1:]]
            for same_rows in zip(*(rows for _, rows in of_runs))
            for evaluation, row in zip(evaluations, same_rows)
        ]
        joined.append(([column, "run", *headers], rows))
    return joined


def population(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> list[str]:
    """The footers: once where all runs agree, else a line for those that do."""
    footers = [evaluation.footer() for evaluation in evaluations]
    if len(conventions) > 1:
        # Which convention stands above each column.
        footers = [[counts.split("; ", 1)[1], *others] for counts, *others in footers]
    if len({counts for counts, *_ in footers}) == 1:
        return footers[0]
    names_of: dict[str, list[str]] = {}
    for evaluation, (counts, *_) in zip(evaluations, footers):
        names_of.setdefault(counts, []).append(evaluation.name)
    usual = max(names_of, key=lambda counts: len(names_of[counts]))
    lines = []
    for counts in sorted(names_of, key=lambda counts: counts == usual):
        names = names_of[counts]
        lines.append(f"{'the others' if counts == usual and len(names) > 1 else ', '.join(names)}: {counts}")
    return [*lines, *footers[0][1:]]


def below_means(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> str:
    """What stands below a table of means: the population, and what to know of the convention."""
    from groupgt.evaluation.convention import notes

    return "\n".join([*population(evaluations, conventions), *notes(evaluations)])


def means_and_slices(evaluations: Sequence[Evaluation]) -> Grid:
    """Headers and a row for each mean, of the whole (where `by` is empty) and of each slice."""
    rows: list[list[Any]] = []
    for evaluation in evaluations:
        for text, metric in evaluation.metrics.items():
            rows.append([evaluation.name, "", "", str(metric), evaluation.means[text], evaluation.counted(text)])
        for part in evaluation.slices:
            for text, mean in part["means"].items():
                metric_name = str(evaluation.metrics[text])
                rows.append([evaluation.name, part["by"], part["value"], metric_name, mean, part["queries"]])
    return ["run", "by", "slice", "metric", "mean", "queries"], rows


def per_query_rows(evaluations: Sequence[Evaluation]) -> Grid:
    """`run, qid` and one column a metric; None where a query does not count."""
    headers = ["run", "qid", *evaluations[0].metrics]
    rows: list[list[Any]] = []
    for evaluation in evaluations:
        columns = (nulls(values.tolist()) for values in evaluation.values.values())
        rows += [[evaluation.name, qid, *cells] for qid, *cells in zip(evaluation.truth.qids, *columns)]
    return headers, rows
