"""What evaluations of one ground truth show: means side by side, which run is best, and the population below them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import Evaluations
from groupgt.evaluation.tables import below_means, footer
from groupgt.evaluation.verdict import NAMED, appended, doubt, doubts, enumerated, every
from groupgt.render import tables
from groupgt.render.document import Block, Detail, Item, Table, Verdict
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import Grid
from groupgt.report.slices import slice_grids, slices_side_by_side

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure
    from groupgt.render.page import data

# More runs than this do not stand in columns.
MOST_COLUMNS = 4


class EvaluationTeller(Teller[Evaluation]):
    """The means of one run."""

    main_figure = "depth"

    def blocks(self) -> list[Block]:
        """The means, those of each slice, the population, and what to know of the convention."""
        evaluation = self.result
        return [means_grid(evaluation), *slice_grids(evaluation), below_means([evaluation], [evaluation.convention])]

    def table(self, style: str = tables.DEFAULT) -> str:
        """The means."""
        return tables.table(*means_grid(self.result), style)

    def csv_rows(self) -> Grid:
        """Headers and a row for each mean, of the whole (where `by` is empty) and of each slice."""
        return means_and_slices([self.result])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of each query as plain Python."""
        evaluation = self.result
        plain: dict[str, Any] = nulls(
            {
                "run": evaluation.name,
                "convention": evaluation.convention,
                "labeller": str(evaluation.labeller),
                "policy": {name: getattr(evaluation.policy, name) for name in evaluation.policy.__dataclass_fields__},
                "counts": evaluation.counts,
                "metrics": {
                    text: {"metric": str(metric), "mean": evaluation.means[text], "queries": evaluation.counted(text)}
                    for text, metric in evaluation.metrics.items()
                },
                **({"slices": evaluation.slices} if evaluation.slicer.by else {}),
            }
        )
        return plain

    def footer(self) -> list[str]:
        """The population."""
        return footer(self.result)

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The figures of this run."""
        from groupgt.evaluation.pictures import drawable
        from groupgt.evaluation.systems import Systems

        return drawable(Systems.of({self.result.name: self.result}))

    def page(self, corpus: Mapping[str, str]) -> bytes:
        """The page of this run; `corpus` holds texts by id."""
        from groupgt.evaluation.report import dataset_of
        from groupgt.evaluation.systems import Systems
        from groupgt.render.page.page import single_page

        return single_page(dataset_of(Systems.of({self.result.name: self.result}, passages=corpus), self.result.name))


class EvaluationsTeller(Teller[Evaluations]):
    """The means of several runs side by side."""

    def blocks(self) -> list[Item]:
        """Which run is best and what is doubtful, the means, those of each slice, and the population."""
        evaluations, conventions = list(self.result.values()), self.result.conventions
        return [
            Verdict([*best_runs(evaluations), *map(doubt, doubts(self.result))]),
            *grids(evaluations, conventions),
            *(Table(*grid, keep=1 if len(evaluations) == 1 else 2) for grid in slices_side_by_side(evaluations)),
            below_means(evaluations, conventions),
            Detail(f"policy {evaluations[0].policy}"),
        ]

    def csv_rows(self) -> Grid:
        """Headers and a row for each run; with slices a row for each mean."""
        evaluations = list(self.result.values())
        is_sliced = any(evaluation.slicer.by for evaluation in evaluations)
        return means_and_slices(evaluations) if is_sliced else side_by_side(evaluations, self.result.conventions)

    def frame_rows(self) -> Grid:
        """Headers and a row for each mean."""
        return means_and_slices(list(self.result.values()))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python."""
        return {"runs": [evaluation.to_dict() for evaluation in self.result.values()]}


# --- Tables.


def means_grid(evaluation: Evaluation) -> Grid:
    """The means of one run: a row a metric, and a column a cutoff where the metrics form such a grid."""
    cutoffs = list(dict.fromkeys(metric.cutoff for metric in evaluation.metrics.values()))
    labels = {text: evaluation.label_of(text) for text in evaluation.metrics}
    if len(cutoffs) > 1 and len(labels) > len(cutoffs):
        names = {text: label.split("@")[0] for text, label in labels.items()}
        cells = {(names[text], metric.cutoff): evaluation.means[text] for text, metric in evaluation.metrics.items()}
        headers = ["metric", *("all" if cutoff is None else f"@{cutoff}" for cutoff in cutoffs)]
        return headers, [
            [name, *(cells.get((name, cutoff), "") for cutoff in cutoffs)] for name in dict.fromkeys(names.values())
        ]
    return ["metric", "mean", "queries"], [
        [label, evaluation.means[text], evaluation.counted(text)] for text, label in labels.items()
    ]


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
    return [_run_rows(evaluations, part) for part in parts]


def side_by_side(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> Grid:
    """One run alone as its own table, several in rows (in columns, where metrics are many); conventions in columns."""
    first = evaluations[0]
    if len(conventions) > 1:
        return _by_convention(evaluations, conventions)
    if len(evaluations) == 1:
        return means_grid(first)
    if len(first.metrics) <= tables.WIDEST:
        return _run_rows(evaluations, list(first.metrics))
    return ["metric", *(evaluation.name for evaluation in evaluations)], [
        [first.label_of(text), *(evaluation.means[text] for evaluation in evaluations)] for text in first.metrics
    ]


def _run_rows(evaluations: Sequence[Evaluation], texts: Sequence[str]) -> Grid:
    """A row a run, a column for each of some metrics."""
    rows = [[evaluation.name, *(evaluation.means[text] for text in texts)] for evaluation in evaluations]
    return ["run", *map(evaluations[0].label_of, texts)], rows


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


# --- Sentences.


def best_runs(evaluations: Sequence[Evaluation]) -> Iterator[data.Sentence]:
    """Which run is best by how many of the metrics; nothing is tested."""
    first = evaluations[0]
    ahead: dict[str, list[str]] = {}
    decided, equal = 0, []
    for text, metric in first.metrics.items():
        means = {evaluation.name: mean for evaluation in evaluations if not math.isnan(mean := evaluation.means[text])}
        if len(set(means.values())) < 2:
            equal += [first.label_of(text)] if len(means) > 1 else []
            continue
        decided += 1
        top = max(means.values()) if metric.higher_is_better else min(means.values())
        for name in (name for name, mean in means.items() if mean == top):
            ahead.setdefault(name, []).append(first.label_of(text))
    if equal and not decided:
        by = equal[0] if len(equal) == 1 else "each metric"
        yield {"kind": "same", "parts": [f"{every(len(evaluations), 'run')} have the same mean by {by}."]}
    if not decided:
        return
    most = max(map(len, ahead.values()))
    first_labels = next(labels for labels in ahead.values() if len(labels) == most)
    winners = [name for name, labels in ahead.items() if labels == first_labels]
    if decided == most:
        by = _some(first_labels) if equal or decided == 1 else every(decided, "metric").lower()
    elif any(labels != first_labels and len(labels) == most for labels in ahead.values()):
        by = _some(first_labels)
    else:
        by = f"{most} of {decided} metrics"
    verb = "is the" if len(winners) == 1 else "are equally good, and the"
    parts = enumerated(winners, f" {verb} best of {len(evaluations):,} runs by {by}")
    for name, others in [pair for pair in ahead.items() if pair[0] not in winners][:NAMED]:
        parts = appended(parts, "; ", name, f" by {_some(others)}")
    if equal:
        parts[-1] += f"; {every(len(evaluations), 'run').lower()} have the same {_some(equal)}"
    parts[-1] += ". `groupgt compare` says which differences are real."
    yield {"kind": "best", "parts": parts}


def _some(labels: Sequence[str]) -> str:
    return f"{', '.join(labels[:NAMED])}{' …' if len(labels) > NAMED else ''}"
