"""Reports an experiment: sentences first, then gates, tables for every data set, and times; also draws its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groupgt.comparison.compare import Comparison
from groupgt.errors import ConfigError, near_names
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.datasets import absent_ids
from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.render.document import Detail, Item, Table, Verdict, document
from groupgt.render.drawing import Drawable, Figure
from groupgt.render.page.data import Sentence
from groupgt.render.tables import Grid
from groupgt.report import across as datasets
from groupgt.report import comparison, contrasts, curves, gates, means, previous, times, verdict
from groupgt.report.sentences import doubt, enumerated, every, grouped
from groupgt.report.stages import tables_of

# What follows the gates.
LAST = ("doubt", "note")


def text(outcome: Outcome, style: str = tables.DEFAULT) -> str:
    """Formats the report without times, so that identical runs have identical text in their result folders."""
    return document(items(outcome), style, outcome.experiment.title)


def items(outcome: Outcome, *, timed: bool = False) -> Iterator[Item]:
    """Returns the full report of an outcome, verdict first; `timed` includes times."""
    return map(outcome.experiment.hide.sure, _items(outcome, timed=timed))


def _items(outcome: Outcome, *, timed: bool) -> Iterator[Item]:
    several = len(outcome.evaluations) > 1
    yield from verdicts(outcome, timed=timed)
    yield from datasets.blocks(outcome.experiment, outcome.evaluations)
    if outcome.across is not None:
        yield from datasets.tables(outcome.across)
    for dataset, by_system in outcome.evaluations.items():
        if several:
            yield f"dataset {dataset}"
        if by_system:
            yield from _tables(outcome, dataset)
    yield from gates.blocks(outcome, timed=timed)
    if timed:
        yield from times.blocks(outcome)


# --- Sentences.


def verdicts(outcome: Outcome, *, timed: bool) -> Iterator[Item]:
    """Yields sentences on gates, the best system overall, and every data set."""
    judged = [result for result in outcome.gates if not result.timed]
    on_time = [result for result in outcome.gates if timed and result.timed]
    first = [
        *gates.sentences(judged, timed=False),
        *gates.sentences(on_time, timed=True),
        *across(outcome, timed=timed),
    ]
    if len(outcome.evaluations) == 1:
        yield Verdict([*first, *sentences(outcome, next(iter(outcome.evaluations)), timed=timed)])
        return
    yield Verdict(first)
    for dataset in outcome.evaluations:
        yield f"dataset {dataset}"
        yield Verdict(sentences(outcome, dataset, timed=timed))


def sentences(outcome: Outcome, dataset: str, *, timed: bool, brief: bool = False) -> list[Sentence]:
    """Returns the sentences on one data set except gates, warnings last; `timed` adds sentences that vary by run."""
    compared = list(verdict.sentences(outcome.systems[dataset], brief=brief)) if outcome.evaluations[dataset] else []
    absent = outcome.absent.get(dataset, [])
    since = list(previous.sentences(outcome, dataset))
    failed: list[Sentence] = [
        {"kind": "doubt", "parts": ["", name, f" failed and has no results: {why}"]}
        for name, why in outcome.failed.get(dataset, {}).items()
    ]
    return [
        *(sentence for sentence in [*since, *compared] if sentence["kind"] not in LAST),
        *_best(outcome, dataset, timed=timed),
        *failed,
        *([doubt(absent_ids(dataset, absent))] if absent else []),
        *(sentence for sentence in [*since, *compared] if sentence["kind"] in LAST),
    ]


def on_time(outcome: Outcome, dataset: str) -> Iterator[Sentence]:
    """Yields the sentences on one data set that vary from run to run."""
    if not outcome.experiment.rule.is_timeless:
        yield from _best(outcome, dataset, timed=True)
    yield from gates.sentences(gates.of_dataset(outcome, dataset, timed=True), timed=True)


def across(outcome: Outcome, *, timed: bool) -> Iterator[Sentence]:
    """Names the best system over all data sets and, if they share queries, the best corpus for each system."""
    count = len({name for by_system in outcome.evaluations.values() for name in by_system})
    leaders = outcome.overall_leaders
    if count > 1 and leaders and (timed or outcome.experiment.rule.is_timeless):
        sets = every(len(outcome.evaluations), "data set").lower()
        over = f"over {sets} by {outcome.experiment.rule.words}"
        if len(leaders) == 1:
            parts = ["", leaders[0], f" is the best {over}, by mean over data sets."]
        elif len(leaders) == count:
            parts = [f"{every(count, 'system')} are tied {over}, by mean over data sets."]
        else:
            parts = enumerated(leaders, f" are tied as the best {over}, by mean over data sets.")
        yield {"kind": "best", "parts": parts}
    yield from datasets.verdict_of(outcome)


def _best(outcome: Outcome, dataset: str, *, timed: bool) -> Iterator[Sentence]:
    """Names the best system according to the file's rule, unless that rule is just the primary metric."""
    rule, leaders = outcome.experiment.rule, outcome.leaders.get(dataset, [])
    alone = outcome.experiment.config.evaluate.best.strategy == "primary" and rule.is_timeless
    if alone or len(outcome.evaluations[dataset]) < 2 or not (timed or rule.is_timeless):
        return
    first, *names = enumerated(leaders or ["none"], ".")
    yield {"kind": "best", "parts": [f"Best by {rule.words}: {first}", *names]}


# --- Tables.


def _tables(outcome: Outcome, dataset: str) -> Iterator[Item]:
    evaluations = list(outcome.evaluations[dataset].values())
    convention, primary = outcome.experiment.convention, outcome.experiment.primary
    is_compared = dataset in outcome.comparison and len(evaluations) > 1
    if not is_compared:
        if len(evaluations) > 1:
            yield from contrasts.leaderboards(outcome.systems[dataset])
        else:
            yield from means.grids(evaluations, [convention])
    if len(evaluations) > means.MOST_COLUMNS:
        yield from map(Detail, means.slices_of(evaluations, primary))
    else:
        sliced = means.slice_grids(evaluations)
        yield from (Detail(Table(*grid, keep=1 if len(evaluations) == 1 else 2)) for grid in sliced)
    if is_compared:
        table = outcome.comparison[dataset]
        compared = list(table.metrics)
        # In full by the primary metric, or by all if it is not compared.
        in_full = [text for text in compared if text == evaluations[0].text_of(primary)] or compared
        if len(in_full) < len(compared):
            yield from map(Detail, _deltas(table, evaluations[0]))
        yield from comparison.items(outcome.systems[dataset], in_full, brief=True)
    yield from previous.blocks(outcome, dataset)
    for name, stages in outcome.stages.get(dataset, {}).items():
        yield f"stages of {name}"
        yield from tables_of(stages)
    yield outcome.experiment.hide(means.below_means(evaluations, [convention]))
    yield from means.corrected_blocks(evaluations, compared=is_compared)
    yield Detail(f"policy {evaluations[0].policy}")


def _deltas(table: Comparison, first: Evaluation) -> Iterator[Grid]:
    """Yields each system's differences from the baseline, in one table per cutoff if there are many metrics."""
    by_cutoff = len(table.metrics) > tables.WIDEST
    for texts in grouped((each.cutoff if by_cutoff else None, text) for text, each in table.metrics.items()).values():
        headers = [f"against {table.baseline}", "queries", *(first.label_of(text) for text in texts)]
        rows: list[list[Any]] = []
        for name in (name for name in table.names if name != table.baseline):
            by_metric = [table[name][text] for text in texts]
            cells = [contrasts.delta_text(row) for row in by_metric]
            rows.append([name, min(row.pairs or 0 for row in by_metric), *cells])
        yield headers, rows


# --- Figures.


def drawable(outcome: Outcome, dataset: str | None = None) -> Drawable:
    """Returns the available figures of one data set (default: the only one) by name.

    Raises `ConfigError` if the data set does not exist, or if there are several and `dataset` is None.
    """
    name = chosen([name for name, by_system in outcome.evaluations.items() if by_system], dataset)
    systems = outcome.systems[name]
    latency = times.figure(systems, times.latencies(outcome, name))
    return {
        **comparison.drawable(systems, outcome.comparison.get(name, systems)),
        **existing_figures(curves.sweeps(outcome, systems), latency),
    }


def chosen(names: Sequence[str], dataset: str | None) -> str:
    """Returns the requested data set, or the only one; raises `ConfigError` if there is no such data set."""
    if dataset in names or (dataset is None and len(names) == 1):
        return names[0] if dataset is None else dataset
    what = "none named" if dataset is None else f"{dataset!r}{near_names(dataset, names)}"
    raise ConfigError(f"dataset: expected one of {', '.join(names)}, found {what}")


def existing_figures(swept: Mapping[str, Figure], against_latency: Figure | None) -> Drawable:
    """Wraps finished figures as functions; the first sweep is also available as just `sweep`."""
    drawings: Drawable = {name: lambda figure=figure: figure for name, figure in swept.items()}  # type: ignore[misc]
    if swept:
        drawings["sweep"] = next(iter(drawings.values()))
    if against_latency is not None:
        drawings["latency"] = lambda: against_latency
    return drawings
