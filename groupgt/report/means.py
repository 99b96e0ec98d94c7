"""Report means side by side, by slice, as a forest plot, with the best run, and with notes on the population."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.evaluation.by_call import calls_of_run
from groupgt.evaluation.estimates import Corrected
from groupgt.evaluation.facts import autorag_differs, autorag_metrics, queries_below_one
from groupgt.evaluation.result import Evaluated
from groupgt.formats.tables import NONRELEVANT
from groupgt.metrics.language import Metric
from groupgt.model.policy import Policy
from groupgt.model.run import Traces
from groupgt.model.sample import SAMPLE, sample_fault
from groupgt.render import tables
from groupgt.render.document import Block, Detail, Item
from groupgt.render.exports import Cell
from groupgt.render.tables import Grid, Table, count_text, counted, fixed, span
from groupgt.report.sentences import grouped

if TYPE_CHECKING:
    from groupgt.comparison.systems import Systems
    from groupgt.render.drawing import Figure
    from groupgt.render.encodings import About

SHAPES = {"flat": "flat qrels", "subtopics": "subtopics", "groups": "groups"}
# What becomes of queries without ground truth.
UNDECLARED = "(no ground truth; set answerable: false if no answer exists)"
# Maximum number of runs in columns.
MOST_COLUMNS = 4
# Maximum number of calls of a run in a table.
SHOWN_CALLS = 10
CORRECTED = ["run", "metric", "model's labels", "audited", "corrected", "95% CI", "labels saved"]


def means_grid(evaluation: Evaluated) -> Grid:
    """Return the means of one run with one row per metric, and with one column per cutoff if they form a grid."""
    cutoffs = list(dict.fromkeys(metric.cutoff for metric in evaluation.metrics.values()))
    labels = {text: evaluation.label_of(text) for text in evaluation.metrics}
    if len(cutoffs) > 1 and len(labels) > len(cutoffs):
        names = {text: label.split("@")[0] for text, label in labels.items()}
        cells = {(names[text], metric.cutoff): evaluation.means[text] for text, metric in evaluation.metrics.items()}
        headers = ["metric", *("all" if cutoff is None else f"@{cutoff}" for cutoff in cutoffs)]
        distinct = dict.fromkeys(names.values())
        return headers, [[name, *(cells.get((name, cutoff), "") for cutoff in cutoffs)] for name in distinct]
    rows = [[label, evaluation.means[text], evaluation.counted(text)] for text, label in labels.items()]
    return ["metric", "mean", "queries"], rows


def grids(evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> list[Grid]:
    """Return tables that fit a terminal: a single table, or one per cutoff for many runs with many metrics."""
    first = evaluations[0]
    if len(conventions) > 1 or len(evaluations) <= MOST_COLUMNS or len(first.metrics) <= tables.WIDEST:
        return [side_by_side(evaluations, conventions)]
    return [_run_rows(evaluations, part) for part in parts_of(first.metrics)]


def parts_of(metrics: Mapping[str, Metric]) -> list[list[str]]:
    """Split metrics into tables that fit a terminal: a single table, or one or more per cutoff."""
    if len(metrics) <= tables.WIDEST:
        return [list(metrics)]
    return [
        texts[start : start + tables.WIDEST]
        for texts in grouped((metric.cutoff, text) for text, metric in metrics.items()).values()
        for start in range(0, len(texts), tables.WIDEST)
    ]


def side_by_side(evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> Grid:
    """Return a table with runs as rows (as columns if there are many metrics), or with conventions as columns."""
    first = evaluations[0]
    if len(conventions) > 1:
        return _by_convention(evaluations, conventions)
    if len(evaluations) == 1:
        return means_grid(first)
    if len(first.metrics) <= tables.WIDEST:
        return _run_rows(evaluations, list(first.metrics))
    rows = [[first.label_of(text), *(each.means[text] for each in evaluations)] for text in first.metrics]
    return ["metric", *(each.name for each in evaluations)], rows


def _run_rows(evaluations: Sequence[Evaluated], texts: Sequence[str]) -> Grid:
    rows = [[evaluation.name, *(evaluation.means[text] for text in texts)] for evaluation in evaluations]
    return ["run", *map(evaluations[0].label_of, texts)], rows


def _by_convention(evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> Grid:
    """Return one row per run and metric, and one column per convention. Other metrics are repeated in every column."""
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


def as_requested(grid: Grid, metrics: Mapping[str, Metric]) -> Grid:
    """Replace the names in column `metric` with the names as requested, to match per-query values."""
    headers, rows = grid
    place, names = headers.index("metric"), {str(metric): text for text, metric in metrics.items()}
    return headers, [[*row[:place], names[row[place]], *row[place + 1 :]] for row in rows]


def call_tables(evaluations: Sequence[Evaluated]) -> Iterator[Table]:
    """Yield a table for each run with calls. Each table has one row per call, with the groups that searches covered."""
    of_runs = [(evaluation.name, call) for evaluation in evaluations for call in calls_of_run(evaluation)[:SHOWN_CALLS]]
    if not of_runs:
        return
    rows: list[list[Any]] = []
    for name, call in of_runs:
        covered = f"{count_text(call.covered)} of {count_text(call.groups)}"
        repeated = None if call.repeated is None else count_text(call.repeated)
        rows.append([name, call.call, count_text(call.queries), covered, count_text(call.nothing_new), repeated])
    headers = ["run", "by call", "queries", "groups covered", "nothing new", "query repeated"]
    several = len(evaluations) > 1
    yield Table(headers, rows) if several else Table(headers[1:], [row[1:] for row in rows])


def slice_tables(evaluations: Sequence[Evaluated]) -> Iterator[Table]:
    """Yield one table per column in `by`, with one row per slice, or per metric if there are many metrics."""
    for column in evaluations[0].slicer.by:
        of_runs = []
        for evaluation in evaluations:
            headers = [column, "queries", *map(evaluation.label_of, evaluation.metrics)]
            rows: list[list[Any]] = []
            for (by, _, mask), part in zip(evaluation.slicer, evaluation.slices):
                if by == column:
                    counts = [evaluation.counted(text, mask) for text in evaluation.metrics]
                    rows.append([part["value"], tables.range_text(counts), *part["means"].values()])
            if len(evaluation.metrics) > tables.WIDEST:
                headers, rows = transposed([f"by {column}", *headers[1:]], rows)
            of_runs.append(rows)
        if len(evaluations) > 1:
            headers = [headers[0], "run", *headers[1:]]
            of_rows = zip(*of_runs)
            rows = [[row[0], run.name, *row[1:]] for of_row in of_rows for run, row in zip(evaluations, of_row)]
        yield Table(headers, rows, keep=min(len(evaluations), 2))


def transposed(headers: list[str], rows: list[list[Any]]) -> Grid:
    """Transpose a table, so that many columns fit as rows."""
    first, *others = map(list, zip(headers, *rows))
    return first, others


def with_slices(of_slices: Iterable[Any], headers: list[str], rows: list[list[Any]]) -> Grid:
    """Add the columns `by` and `slice` if any row belongs to a slice."""
    slices = [[each.by, each.value] for each in of_slices]
    if not any(by for by, _ in slices):
        return headers, rows
    return ["by", "slice", *headers], [[*part, *row] for part, row in zip(slices, rows)]


def slices_of(evaluations: Sequence[Evaluated], metric: str) -> list[Grid]:
    """Return one table per column in `by` for a single metric, with runs as rows and slices as columns."""
    first = evaluations[0]
    text = first.text_of(metric)
    sliced: list[Grid] = []
    for column in first.slicer.by:
        parts = [part for part in first.slices if part["by"] == column]
        headers = [f"{first.label_of(text)} by {column}", *(part["value"] for part in parts)]
        masks = [mask for by, _, mask in first.slicer if by == column]
        counts = (tables.range_text([each.counted(text, mask) for each in evaluations]) for mask in masks)
        rows: list[list[Any]] = [["queries", *counts]]
        for evaluation in evaluations:
            means = [part["means"][text] for part in evaluation.slices if part["by"] == column]
            rows.append([evaluation.name, *means])
        sliced.append((headers, rows))
    return sliced


def notes_below(evaluations: Sequence[Evaluated], conventions: Sequence[str], lead: str = "") -> str:
    """Return the notes below the means: population (unless `lead` states it), judged fraction, and convention."""
    notes = [*_population_notes(evaluations, conventions, None), *_notes(evaluations)]
    return "\n".join(notes[1 if lead else 0 :])


def below_means(
    evaluations: Sequence[Evaluated], conventions: Sequence[str], primary: str | None = None
) -> Iterator[Item]:
    """Yield the notes of `notes_below` under a decision, with the population as a detail."""
    yield Detail("\n".join(_population_notes(evaluations, conventions, primary)))
    if notes := list(_notes(evaluations)):
        yield "\n".join(notes)


def _population_notes(
    evaluations: Sequence[Evaluated], conventions: Sequence[str], primary: str | None
) -> Iterator[str]:
    yield from population(evaluations, conventions)
    first = evaluations[0]
    for named, texts in grouped((each.convention, text) for text, each in first.metrics.items()).items():
        if len(conventions) == 1 and named not in (None, first.convention):
            yield f"convention {named}: {', '.join(texts)}"
    yield from _judged(evaluations, primary)


def _judged(evaluations: Sequence[Evaluated], primary: str | None) -> Iterator[str]:
    """Report the fraction of judged results if the ground truth contains judged non-relevant documents."""
    means = {}
    for evaluation in evaluations:
        if (judged := evaluation.judged(primary)) is not None and not math.isnan(judged[1]):
            metric, means[evaluation.name] = judged
    if not means:
        return
    if len(means) == len(evaluations) and len(set(map(fixed, means.values()))) == 1:
        shares = fixed(next(iter(means.values())))
    elif len(means) <= MOST_COLUMNS:
        shares = ", ".join(f"{name} {fixed(mean)}" for name, mean in means.items())
    else:
        low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        shares = f"from {fixed(means[low])} ({low}) to {fixed(means[high])} ({high})"
    dropped = " before unjudged results were dropped" if evaluations[0].policy.unjudged == "drop" else ""
    yield f"{metric} {shares}{dropped}"


def evaluated_of(systems: Systems) -> str:
    """Return how many queries were evaluated, such as `82 of 88 queries evaluated (6 unanswerable)`."""
    numbers = [systems.queries_over(text)[1] for text in systems.metrics]
    low, high = min(numbers), max(numbers)
    total = counted(len(systems.qids), "query")
    if low != high:
        return f"{low:,} to {high:,} of {total} evaluated, depending on the metric"
    counts, others = systems.first.counts if systems.evaluations else {}, len(systems.qids) - high
    reasons = {"unanswerable": counts.get("unanswerable", 0), "without ground truth": counts.get("undefined", 0)}
    # The ground truth may not be the only reason.
    is_explained = others and sum(reasons.values()) == others
    named = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    return f"{high:,} of {total} evaluated{f' ({named})' if is_explained else ''}"


def population(evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> list[str]:
    """Return the footer lines: a single set if all runs agree, otherwise one line per group of runs that agree."""
    # With several conventions, the header of each column names its own.
    in_columns = len(evaluations) > 1 or "queries" not in means_grid(evaluations[0])[0]
    is_named = len(conventions) < 2
    names_of = grouped((_counts(each, is_named=is_named, in_columns=in_columns), each.name) for each in evaluations)
    rules = _rules(evaluations[0])
    if len(names_of) == 1:
        return [*next(iter(names_of)), *rules]
    usual = max(names_of, key=lambda counts: len(names_of[counts]))
    lines = []
    for counts in sorted(names_of, key=lambda counts: counts == usual):
        names = names_of[counts]
        who = "the others" if counts == usual and len(names) > 1 else ", ".join(names)
        lines.append(f"{who}: {'; '.join(counts)}")
    return [*lines, *rules]


def lead_of(evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> str:
    """Return the population as the start of a sentence, or an empty text if a run was not evaluated on all queries."""
    counts = {_counts(each, is_named=len(conventions) < 2, in_columns=True) for each in evaluations}
    total = counted(evaluations[0].counts["queries"], "query")
    population_, *more = next(iter(counts))
    convention, between, _ = population_.partition("; ")
    if len(counts) > 1 or more or not between or population_ != f"{convention}; {total}: evaluated {total.split()[0]}":
        return ""
    return f"{total}, {convention}. "


def footer(evaluation: Evaluated) -> list[str]:
    """Return the convention, all non-zero counts, and any policy or labeller that is not the default."""
    return [*_counts(evaluation), *_rules(evaluation)]


def _counts(evaluation: Evaluated, *, is_named: bool = True, in_columns: bool = False) -> tuple[str, ...]:
    """Return the convention (if `is_named`) with all non-zero counts, and a line on queries declared unanswerable.

    Tables with a column per metric do not show numbers of queries, so metrics with a different number are listed.
    """
    counts = {name: count for name, count in evaluation.counts.items() if name not in ("unanswerable", "without_row")}
    total = counted(counts.pop("queries"), "query")
    # A document that was judged alone, as in qrels, is a group; without a relevant alternative it is non-relevant.
    truth = evaluation.truth
    names = {name: name.replace("_", " ") for name in counts} | {"negative": "negative grades"}
    if truth.shape == "flat" or NONRELEVANT in truth.keys:
        names["irrelevant_groups"] = "judged non-relevant"
        counts["irrelevant_groups"] = int(truth.judgments.rejected.sum())
    shown = [f"{names[name]} {count:,}" for name, count in counts.items() if count or name == "evaluated"]
    if bool((evaluation.populations.undefined & (truth.per_query == 0)).any()):
        shown = [f"{each} {UNDECLARED}" if each.startswith("undefined") else each for each in shown]
    declared = []
    if count := evaluation.counts.get("unanswerable"):
        missing = evaluation.counts["without_row"]
        who = "it has" if count == 1 else counted(missing, "of them has", "of them have")
        rest = f"; {who} no row in the run" if missing else ""
        declared.append(f"{counted(count, 'query')} declared unanswerable{rest}")
    leveled = [
        f"{evaluation.label_of(text)}: {counted(number, 'query')}"
        for text, metric in evaluation.metrics.items()
        if (in_columns or metric.level is not None)
        and (number := evaluation.counted(text)) != evaluation.counts["evaluated"]
    ]
    shape = f" ({SHAPES[evaluation.truth.shape]})" if evaluation.is_auto else ""
    convention = f"convention {evaluation.convention}{shape}; " if is_named else ""
    return f"{convention}{total}: {', '.join(shown)}", *declared, *([", ".join(leveled)] if leveled else [])


def _rules(evaluation: Evaluated) -> list[str]:
    """Return the settings that differ from defaults or between metrics, and the origin of results and judgments."""
    return [
        *_differing_parameters(evaluation.metrics.values()),
        *([f"policy {evaluation.policy.changes}"] if evaluation.policy.changes else []),
        *([f"labeller {evaluation.labeller}"] if evaluation.labeller.name != "id" else []),
        *_traced(evaluation.first.run.traces),
        *_judged_how(evaluation.truth.columns),
    ]


def _differing_parameters(metrics: Iterable[Metric]) -> Iterator[str]:
    """Report each numeric parameter, such as p, if it differs between metrics with different names."""
    found: dict[str, dict[str, tuple[float | str, str]]] = {}
    for metric in metrics:
        for parameter in metric.formula.parameters:
            value = dict(metric.parameters).get(parameter.name, parameter.default)
            if not isinstance(value, str):
                found.setdefault(parameter.name, {})[str(replace(metric, cutoff=None))] = value, metric.name
    for name, values in found.items():
        texts_of = grouped((value, text) for text, (value, _) in values.items())
        if len(texts_of) > 1 and len({metric for _, metric in values.values()}) > 1:
            parts = [f"{value} in {' and '.join(texts)}" for value, texts in texts_of.items()]
            yield f"{name} is {', '.join(parts)}"


def _traced(traces: Traces | None) -> Iterator[str]:
    """Report how many traces match a query in the ground truth, and how long their searches took."""
    if traces is not None:
        how = f"{traces.by_id + traces.by_text:,} matched a query ({traces.by_id:,} by id, {traces.by_text:,} by text)"
        rest = f"; {traces.left_out:,} more without a search" if traces.left_out else ""
        ms = fixed(float(np.median(list(traces.ms.values()))), 2)
        what = "searches and rerankers" if traces.reranked else "searches"
        yield f"{counted(traces.count, 'trace')}: {how}{rest}; {what} took {ms} ms per query (median)"
        if traces.reranked:
            count = counted(traces.reranked, "trace contains", "traces contain")
            yield f"{count} reranker results; the otlp-searches format reads the results from before reranking"


def _judged_how(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Note the pool and sample of a judgment journal, and any use of prior judgments."""
    pools = list(dict.fromkeys(pool for pool in columns.get("pool", ()) if isinstance(pool, str)))
    if not pools or "judged_by" not in columns:
        return
    yield f"judged from pools ({', '.join(pools)}), so recall is relative to these pools"
    samples = [each for each in columns.get("sample", ()) if isinstance(each, Mapping)]
    if samples:
        of = "" if len({each.get("of") for each in samples}) > 1 else f" of {samples[0].get('of')}"
        skipped = sum(value is not None for value in columns.get("skipped", ()))
        left = f", {skipped:,} of them skipped" if skipped else ""
        yield f"a random sample: {counted(len(samples), 'query')}{of}{left}"
    yield from _assisted(columns, "query")


def _assisted(columns: Mapping[str, Sequence[Any]], query: str) -> Iterator[str]:
    """Note the queries that were not judged independently of prior judgments."""
    if count := sum(value is True for value in columns.get("assisted", ())):
        yield f"{counted(count, query)} judged with prior judgments in view, not independently"


def _notes(evaluations: Sequence[Evaluated]) -> Iterator[str]:
    """Yield notes on the `autorag` convention if any metric uses it."""
    first = evaluations[0]
    if not autorag_metrics(first):
        return
    if names_of := grouped((count, name) for name, count in queries_below_one(first).items()):
        parts = []
        for count, (*others, last) in names_of.items():
            parts.append(f"in {', '.join(others)}{' and ' if others else ''}{last} for {count:,}")
        parts[0] += f" of {counted(int(first.populations.defined.sum()), 'query')}"
        yield (
            f"the autorag convention scores even a perfect ranking below 1 {' and '.join(parts)}. The coverage "
            "convention scores it 1"
        )
    differing = [evaluation.name for evaluation in evaluations if autorag_differs(evaluation)]
    if differing:
        runs = differing[0] if len(differing) == 1 else f"{len(differing):,} runs"
        of_runs = "" if len(evaluations) == 1 else f" for {runs}"
        why = "it skips queries without results, counts repeats and breaks ties differently"
        yield f"AutoRAG reports different means{of_runs}, because {why}. Use --policy autorag to match it"


def corrected_means(evaluation: Evaluated) -> dict[str, Corrected]:
    """Return the means corrected by the audit. If trials are builds, the CIs of the means cover other builds, too."""
    if not evaluation.is_build:
        return evaluation.corrected
    from groupgt.comparison.trials import builds_of, over_builds

    means = dict(evaluation.corrected)
    for text, each in means.items():
        sides = builds_of(evaluation, text)
        estimate = over_builds(evaluation.tested[text], sides) if sides else None
        if estimate is not None:
            means[text] = replace(each, interval=estimate.at(0.95, (0.0, 1.0)))
    return means


def corrected_blocks(evaluations: Sequence[Evaluated], *, compared: bool = False) -> Iterator[Block]:
    """Yield a table of corrected means with a note, or nothing without an audit."""
    first = evaluations[0]
    if first.audit is None:
        return
    rows: list[list[Cell]] = []
    for evaluation in evaluations:
        for text, each in corrected_means(evaluation).items():
            figures: list[Cell] = [each.judged, each.audited, each.mean, span(each.interval), round(each.saved)]
            rows.append([evaluation.name, evaluation.label_of(text), *figures])
    # A single run is not named.
    first_column = 0 if len(evaluations) > 1 else 1
    yield Table(CORRECTED[first_column:], [row[first_column:] for row in rows], keep=2 - first_column)
    yield "\n".join(corrected_notes(first, compared=compared))


def corrected_notes(evaluation: Evaluated, *, compared: bool = False) -> Iterator[str]:
    """Explain what numbers from an audit or several annotators reflect. Otherwise, yield nothing."""
    if evaluation.annotators:
        count = 1 + len(evaluation.annotators)
        shared = set(evaluation.truth.qids).intersection(*(other.truth.qids for other in evaluation.annotators))
        queries = f"{counted(len(shared), 'query')} that all of them judged"
        yield f"averaged over {count} annotators and {queries}; intervals and p-values account for their disagreement"
        yield "these intervals do not reflect strictness that all annotators share"
    audit = evaluation.audit
    if audit is None:
        return
    entries = audit.truth.columns.get(SAMPLE, ())
    is_recorded = sample_fault(audit.truth.qids, entries, evaluation.truth.qids) is None
    of = f"an audit of {len(audit.truth):,} of {counted(len(evaluation.truth), 'query')}"
    yield f"corrected by {of}, {'a recorded' if is_recorded else 'assumed to be a'} random sample"
    yield from _assisted(audit.truth.columns, "audited query")
    yield (
        "corrected numbers exclude queries to which neither the model nor the annotator gives a value. Where only the "
        "model gives one, the annotator's value counts as 0"
    )
    if skipped := sum(value is not None for value in audit.truth.columns.get("skipped", ())):
        yield f"the annotator skipped {counted(skipped, 'audited query')}, which count as 0"
    if compared:
        yield "each difference is corrected on its own, so it may differ from the difference between corrected means"
    if others := [text for text in evaluation.metrics if not evaluation.is_corrected(text)]:
        yield f"not corrected: {', '.join(others)} (an audit corrects only metrics of answerable queries)"
    if left := [text for text in evaluation.metrics if text not in [*others, *evaluation.corrected]]:
        yield f"not corrected: {', '.join(left)} (no value per query, or not between 0 and 1)"


def forest(systems: Systems) -> Figure:
    """Draw means with CIs, each marked by its comparison with the baseline."""
    from groupgt.render import figures

    rows = []
    for name in systems.names:
        low, high = systems.ends(name)
        rows.append({"name": name, "value": systems.mean(name), "low": low, "high": high, "kind": systems.kind(name)})
    return figures.forest(rows, about(systems))


def about(systems: Systems, label: str = "", note: str = "", level: str = "") -> About:
    """Return the notes shown in every figure of these systems (default: for the primary metric and CIs of means)."""
    from groupgt.render.encodings import About

    policy, labeller = systems.policy, systems.labeller
    if systems.evaluations:
        policy, matching = systems.first.policy, systems.first.labeller
        labeller = "" if matching.name == "id" else systems.hide(str(matching))
    rules = policy_text(policy) + (f" · labeller {labeller}" if labeller else "")
    level = level or f"{100 * systems.settings.confidence:g}% CI"
    queries = max(map(systems.queries_of, systems.names))
    return About(label or systems.label, queries, systems.convention, rules, note, level)


def policy_text(policy: Policy) -> str:
    """Describe a policy by its differences from the default."""
    return f"policy {policy.changes}" if policy.changes else "default policy"
