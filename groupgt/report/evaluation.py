"""Report the evaluation of one run, or of several runs side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from groupgt.comparison.draws import SLACK
from groupgt.evaluation.by_call import calls_of_run
from groupgt.evaluation.estimates import Noise
from groupgt.evaluation.explain import explanation_dict
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.runs import Evaluations, means_and_slices
from groupgt.metrics.language import Metric
from groupgt.model.values import nulls
from groupgt.render import tables
from groupgt.render.document import Block, Detail, Item, Verdict
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, fixed, shortlist
from groupgt.report import means as measured
from groupgt.report.sentences import NAMED, enumerated, every, grouped, sentence_of, warning, warnings_about
from groupgt.report.tracking import tracked

if TYPE_CHECKING:
    from groupgt.render.drawing import Drawable
    from groupgt.render.page.data import Sentence


def _title(evaluations: Sequence[Evaluated]) -> list[str]:
    """Return the name of a single run, because its table does not show it. The list is empty if the run has no name."""
    return [f"run {each.name}" for each in evaluations if len(evaluations) == 1 and each.first.run.name]


def _noise(evaluations: Mapping[str, Evaluated], metrics: Sequence[str]) -> Iterable[Block]:
    """Return any notes on these metrics from trials. Import the module only if there are trials."""
    if not any(each.repeats for each in evaluations.values()):
        return ()
    from groupgt.report.trials import blocks

    return blocks(evaluations, metrics)


def _means(evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> list[Block]:
    """Return means and slices. Several runs with few slices share one table, with the slices beside the means."""
    first = evaluations[0]
    slicer, labels = list(first.slicer), {text: first.label_of(text) for text in first.metrics}
    most = max(len(labels), *(len(each) for each in grouped((by, value) for by, value, _ in slicer).values()), 0)
    if len(evaluations) == 1 or len(conventions) > 1 or not slicer or most > tables.WIDEST:
        return [*measured.grids(evaluations, conventions), *measured.slice_tables(evaluations)]
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
        rows.append([each.name, *each.means.values(), *(slices[place]["means"][text] for text, place in sliced)])
    table = Table(["run", *headers], rows, above=["", *above])
    # The slices of later metrics are hidden first, then the last slices of the first.
    titles = list(dict.fromkeys(above[len(labels) :]))[len(first.slicer.by) :]
    return [replace(table, shed=[*reversed(titles), *reversed(table.labels[1 + len(labels) :])])]


class EvaluatedTeller(Teller[Evaluated]):
    """Report the means of one run."""

    main_figure = "depth"

    def blocks(self) -> list[Block]:
        """Return the means overall and by slice, the population, and notes on the convention."""
        evaluation = self.result
        means: list[Block] = [*_title([evaluation]), measured.means_grid(evaluation)]
        means += [*measured.slice_tables([evaluation]), *measured.call_tables([evaluation])]
        noise = _noise({evaluation.name: evaluation}, list(evaluation.metrics))
        return [
            *means,
            *noise,
            measured.notes_below([evaluation], [evaluation.convention]),
            *measured.corrected_blocks([evaluation]),
        ]

    def table(self, style: str = tables.DEFAULT) -> str:
        """Return only the table of means."""
        return tables.table(*measured.means_grid(self.result), style)

    def csv_rows(self) -> Grid:
        """Return headers and one row per mean, over all queries (empty `by`) and for each slice."""
        return means_and_slices([self.result])

    def frame_rows(self) -> Grid:
        """Return the CSV rows with metric names as requested."""
        return measured.as_requested(self.csv_rows(), self.result.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return everything except per-query values as plain Python objects."""
        evaluation = self.result
        plain: dict[str, Any] = {
            "run": evaluation.name,
            "convention": evaluation.convention,
            "labeller": str(evaluation.labeller),
            "policy": nulls(evaluation.policy),
            "counts": evaluation.counts,
            "metrics": {
                text: {"metric": str(metric), "mean": evaluation.means[text], "queries": evaluation.counted(text)}
                for text, metric in evaluation.metrics.items()
            },
        }
        if evaluation.audit is not None or evaluation.annotators:
            for text, mean in evaluation.means_by_labels().items():
                plain["metrics"][text]["mean_by_labels"] = mean
        if evaluation.audit is not None:
            plain["corrected"] = nulls(measured.corrected_means(evaluation))
        if evaluation.repeats:
            from groupgt.report.trials import noise_dicts

            plain["trials"] = noise_dicts(evaluation)
        if evaluation.slicer.by:
            plain["slices"] = nulls(evaluation.slices)
        if calls := calls_of_run(evaluation):
            plain["calls"] = nulls(calls)
        return plain

    def metrics(self) -> dict[str, float]:
        """Return the means as a flat dict."""
        return tracked([([], self.result.means)])

    def noises(self) -> dict[str, Noise]:
        """Return how much each metric varies between trials."""
        from groupgt.report.trials import noises

        return noises(self.result)

    def events(self) -> Grid:
        """Return the events of each query."""
        from groupgt.report.events import events

        return events([self.result])

    def footer(self) -> list[str]:
        """Return lines that describe the population."""
        return measured.footer(self.result)

    def explain(self, qid: str, metrics: Sequence[Metric], corpus: Mapping[str, str] | None) -> str:
        """Return the hit matrix of one query and a worked example of every formula."""
        from groupgt.report.explain import explanation

        return explanation(self.result, qid, metrics, corpus)

    def explain_dict(self, qid: str) -> dict[str, Any]:
        """Return the explanation of one query as plain Python objects."""
        return explanation_dict(self.result, qid, list(self.result.metrics.values()))

    def shortfalls(self, least: Mapping[str, float]) -> str:
        """Return a message for each mean below its required minimum, or an empty text if there are none."""
        from groupgt.report.shortfalls import shortfalls

        return shortfalls(self.result, least)

    def figures(self) -> Drawable:
        """Return the figures that are available for the run, by name."""
        from groupgt.report.drawings import of_runs

        return of_runs([self.result])

    def page(self, corpus: Mapping[str, str]) -> bytes:
        """Return the HTML page of the run. `corpus` maps ids to texts."""
        from groupgt.comparison.systems import Systems
        from groupgt.render.page.page import single_page
        from groupgt.report.page import dataset_of

        return single_page(dataset_of(Systems.of({self.result.name: self.result}, passages=corpus), self.result.name))


class EvaluationsTeller(Teller[Evaluations]):
    """Report the means of several runs side by side."""

    def blocks(self) -> list[Item]:
        """Return the best run with warnings, the means overall and by slice, best run first, and the population."""
        evaluations, conventions = ranked(list(self.result.values())), self.result.conventions
        lead = measured.lead_of(evaluations, conventions)
        best = list(best_runs(evaluations, lead))
        notes = measured.notes_below(evaluations, conventions, lead=lead if best else "")
        return [
            Verdict([*best, *map(warning, warnings_about(self.result))]),
            *_title(evaluations),
            *_means(evaluations, conventions),
            *measured.call_tables(evaluations),
            *_noise(self.result, list(evaluations[0].metrics)[: None if len(evaluations) == 1 else 1]),
            *([notes] if notes else []),
            *measured.corrected_blocks(evaluations),
            Detail(f"policy {evaluations[0].policy}"),
        ]

    def csv_rows(self) -> Grid:
        """Return headers and one row per run or, with slices, one row per mean."""
        evaluations = list(self.result.values())
        if any(evaluation.slicer.by for evaluation in evaluations):
            return means_and_slices(evaluations)
        return measured.side_by_side(evaluations, self.result.conventions)

    def frame_rows(self) -> Grid:
        """Return headers and one row per mean."""
        evaluations = list(self.result.values())
        return measured.as_requested(means_and_slices(evaluations), evaluations[0].metrics)

    def metrics(self) -> dict[str, float]:
        """Return the means of each run as a flat dict."""
        return tracked(([name], evaluation.means) for name, evaluation in self.result.items())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python."""
        return {"runs": [evaluation.to_dict() for evaluation in self.result.values()]}


def ranked(evaluations: Sequence[Evaluated]) -> list[Evaluated]:
    """Sort runs by their mean of the first metric, best first. Undefined means come last, and ties keep their order."""
    text, metric = next(iter(evaluations[0].metrics.items()))
    return sorted(evaluations, key=lambda each: metric.worth(each.means[text]), reverse=True)


def best_runs(evaluations: Sequence[Evaluated], lead: str = "") -> Iterator[Sentence]:
    """Name the runs that are best on most metrics, then the best ones on other metrics, without a significance test."""
    evaluations = sorted(evaluations, key=lambda each: each.name)
    first = evaluations[0]
    ahead: dict[str, list[str]] = {}
    decided, equal = 0, []
    for text, metric in first.metrics.items():
        means = {each.name: mean for each in evaluations if not math.isnan(mean := each.means[text])}
        if not means or max(means.values()) - min(means.values()) <= SLACK:
            equal += [text] if len(means) > 1 else []
            continue
        decided += 1
        top = max(means.values()) if metric.higher_is_better else min(means.values())
        for name in (name for name, mean in means.items() if abs(mean - top) <= SLACK):
            ahead.setdefault(name, []).append(text)
    same = [first.label_of(text) for text in equal]
    if equal and not decided:
        on = same[0] if len(equal) == 1 else "every metric"
        yield sentence_of("same", f"{lead}{every(len(evaluations), 'run')} have the same mean on {on}.")
    if not decided:
        return
    most = max(map(len, ahead.values()))
    texts = next(texts for texts in ahead.values() if len(texts) == most)
    winners = [name for name, ofs in ahead.items() if ofs == texts]
    names = {name: shortlist([first.label_of(text) for text in ofs], NAMED, " …") for name, ofs in ahead.items()}
    is_all = decided == most and not equal and decided > 1
    on = every(decided, "metric").lower() if is_all else names[winners[0]]
    told = [text for ofs in ahead.values() for text in ofs]
    word = "Highest" if all(first.metrics[text].higher_is_better for text in told) else "Best"
    (top,) = (each.means[texts[0]] for each in evaluations if each.name == winners[0])
    value = fixed(top) if not is_all and len(texts) == 1 else f"{first.label_of(texts[0])} {fixed(top)}"
    parts = enumerated(winners, f" ({'tied, ' if len(winners) > 1 else ''}{value})")
    parts[0] = f"{lead}{word} mean of {len(evaluations):,} runs on {on}: {parts[0]}"
    others = grouped((names[name], name) for name in ahead if name not in winners)
    for where, tied in [*others.items()][:NAMED]:
        head, *tail = enumerated(tied, " (tied)" if len(tied) > 1 else "")
        parts = [*parts[:-1], f"{parts[-1]}; on {where}: {head}", *tail]
    if same:
        parts[-1] += f"; {every(len(evaluations), 'run').lower()} have the same {shortlist(same, NAMED, ' …')}"
    parts[-1] += "."
    yield sentence_of("best", *parts)
    yield sentence_of("note", "Is that significant? groupgt compare … --baseline NAME")
