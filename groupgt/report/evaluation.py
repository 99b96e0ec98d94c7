"""Report the evaluation of one run, or of several runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.by_call import calls_of_run
from groupgt.evaluation.explain import explanation_dict
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import Evaluations, means_and_slices
from groupgt.metrics.language import Metric
from groupgt.render import tables
from groupgt.render.document import Block, Detail, Item, Verdict
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table
from groupgt.report.best import best_runs, ranked
from groupgt.report.means import (
    as_requested,
    call_tables,
    corrected_blocks,
    footer,
    grids,
    lead_of,
    means_grid,
    notes_below,
    side_by_side,
    slice_tables,
)
from groupgt.report.sentences import grouped, warning, warnings_about
from groupgt.report.tracking import tracked

if TYPE_CHECKING:
    from groupgt.render.drawing import Drawable


def _title(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the name of a single run, which no column of its table contains; empty if it has none."""
    return [f"run {each.name}" for each in evaluations if len(evaluations) == 1 and each.run.name]


def _noise(evaluations: Mapping[str, Evaluation], metrics: Sequence[str]) -> Iterable[Block]:
    """Return notes on these metrics from trials, if there are any. The module is imported only then."""
    if not any(each.trials for each in evaluations.values()):
        return ()
    from groupgt.report.trials import blocks

    return blocks(evaluations, metrics)


def _means(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> list[Block]:
    """Return means and slices. Several runs with few slices share one table, with the slices beside the means."""
    first = evaluations[0]
    slicer, labels = list(first.slicer), {text: first.label_of(text) for text in first.metrics}
    most = max(len(labels), *(len(each) for each in grouped((by, value) for by, value, _ in slicer).values()), 0)
    if len(evaluations) == 1 or len(conventions) > 1 or not slicer or most > tables.WIDEST:
        return [*grids(evaluations, conventions), *slice_tables(evaluations)]
    sliced = [(text, place) for text in labels for place in range(len(slicer))]
    headers = [*labels.values(), *(slicer[place][1] for _, place in sliced)]
    above = [*("" for _ in labels), *(f"{labels[text]} by {slicer[place][0]}" for text, place in sliced)]
    counts = [
        *([each.counted(text) for each in evaluations] for text in labels),
        *([each.counted(text, slicer[place][2]) for each in evaluations] for text, place in sliced),
    ]
    rows: list[list[Any]] = [["queries", *map(tables.range_text, counts)]]
    for each in evaluations:
        slices = each.slices
        rows.append([each.name, *each.deciding.values(), *(slices[place]["means"][text] for text, place in sliced)])
    table = Table(["run", *headers], rows, above=["", *above])
    # The slices of later metrics are hidden first, then the last slices of the first.
    titles = list(dict.fromkeys(above[len(labels) :]))[len(first.slicer.by) :]
    return [replace(table, shed=[*reversed(titles), *reversed(table.labels[1 + len(labels) :])])]


class EvaluationTeller(Teller[Evaluation]):
    """Report the means of one run."""

    main_figure = "depth"

    def blocks(self) -> list[Block]:
        """Return the means overall and by slice, the population, and note on the convention."""
        evaluation = self.result
        means: list[Block] = [*_title([evaluation]), means_grid(evaluation), *slice_tables([evaluation])]
        means += call_tables([evaluation])
        noise = _noise({evaluation.name: evaluation}, list(evaluation.metrics))
        return [*means, *noise, notes_below([evaluation], [evaluation.convention]), *corrected_blocks([evaluation])]

    def table(self, style: str = tables.DEFAULT) -> str:
        """Return only the table of means."""
        return tables.table(*means_grid(self.result), style)

    def csv_rows(self) -> Grid:
        """Return headers and one row per mean, over all queries (empty `by`) and for each slice."""
        return means_and_slices([self.result])

    def frame_rows(self) -> Grid:
        """Return the CSV rows with metric names as requested."""
        return as_requested(self.csv_rows(), self.result.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except per-query values as plain Python."""
        evaluation = self.result
        plain: dict[str, Any] = {
            "run": evaluation.name,
            "convention": evaluation.convention,
            "labeller": str(evaluation.labeller),
            "policy": nulls(evaluation.policy),
            "counts": evaluation.counts,
            "metrics": {
                text: {"metric": str(metric), "mean": evaluation.deciding[text], "queries": evaluation.counted(text)}
                for text, metric in evaluation.metrics.items()
            },
        }
        if evaluation.audit is not None or evaluation.annotators:
            for text, mean in evaluation.means.items():
                plain["metrics"][text]["mean_by_labels"] = mean
        if evaluation.audit is not None:
            plain["corrected"] = nulls(evaluation.corrected)
        if evaluation.trials:
            from groupgt.render.columns import jsonable
            from groupgt.report.trials import noises

            plain["trials"] = {text: jsonable(noise) for text, noise in noises(evaluation).items()}
            if evaluation.audit is not None or evaluation.annotators:
                for text, noise in plain["trials"].items():
                    noise |= {"mean_by_labels": noise["mean"], "mean": nulls(evaluation.deciding[text])}
        if evaluation.slicer.by:
            plain["slices"] = nulls(evaluation.slices)
        if calls := calls_of_run(evaluation):
            plain["calls"] = nulls(calls)
        return plain

    def metrics(self) -> dict[str, float]:
        """Return the means as a flat dict."""
        return tracked([([], self.result.deciding)])

    def events(self) -> Grid:
        """Return the events of each query."""
        from groupgt.report.events import events

        return events([self.result])

    def footer(self) -> list[str]:
        """Return lines that describe the population."""
        return footer(self.result)

    def explain(self, qid: str, metrics: Sequence[Metric], corpus: Mapping[str, str] | None) -> str:
        """Return the hit matrix of one query and a worked example of every formula."""
        from groupgt.report.explain import explanation

        return explanation(self.result, qid, metrics, corpus)

    def explain_dict(self, qid: str) -> dict[str, Any]:
        """Return the explanation of one query as plain Python."""
        return explanation_dict(self.result, qid, list(self.result.metrics.values()))

    def shortfalls(self, least: Mapping[str, float]) -> str:
        """Return a message for each mean below its required minimum; empty if there are none."""
        from groupgt.report.shortfalls import shortfalls

        return shortfalls(self.result, least)

    def figures(self) -> Drawable:
        """Return the available figures of the run by name."""
        from groupgt.report.data import drawable_of

        return drawable_of([self.result])

    def page(self, corpus: Mapping[str, str]) -> bytes:
        """Return the HTML page of the run; `corpus` maps ids to texts."""
        from groupgt.comparison.systems import Systems
        from groupgt.render.page.page import single_page
        from groupgt.report.data import dataset_of

        return single_page(dataset_of(Systems.of({self.result.name: self.result}, passages=corpus), self.result.name))


class EvaluationsTeller(Teller[Evaluations]):
    """Report the means of several runs side by side."""

    def blocks(self) -> list[Item]:
        """Return the best run with warnings, the means overall and by slice, best run first, and the population."""
        evaluations, conventions = ranked(list(self.result.values())), self.result.conventions
        lead = lead_of(evaluations, conventions)
        best = list(best_runs(evaluations, lead))
        notes = notes_below(evaluations, conventions, lead=lead if best else "")
        return [
            Verdict([*best, *map(warning, warnings_about(self.result))]),
            *_title(evaluations),
            *_means(evaluations, conventions),
            *call_tables(evaluations),
            *_noise(self.result, list(evaluations[0].metrics)[: None if len(evaluations) == 1 else 1]),
            *([notes] if notes else []),
            *corrected_blocks(evaluations),
            Detail(f"policy {evaluations[0].policy}"),
        ]

    def csv_rows(self) -> Grid:
        """Return headers and one row per run or, with slices, one row per mean."""
        evaluations = list(self.result.values())
        is_sliced = any(evaluation.slicer.by for evaluation in evaluations)
        return means_and_slices(evaluations) if is_sliced else side_by_side(evaluations, self.result.conventions)

    def frame_rows(self) -> Grid:
        """Return headers and one row per mean."""
        evaluations = list(self.result.values())
        return as_requested(means_and_slices(evaluations), evaluations[0].metrics)

    def metrics(self) -> dict[str, float]:
        """Return the means of each run as a flat dict."""
        return tracked(([name], evaluation.deciding) for name, evaluation in self.result.items())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python."""
        return {"runs": [evaluation.to_dict() for evaluation in self.result.values()]}
