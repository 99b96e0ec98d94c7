"""How the outcome of an experiment is shown: sentences, tables, the best, gates; and apart from these, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from groupgt.comparison.compare import Comparison
from groupgt.errors import printable
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.tables import MOST_COLUMNS, below_means, grids, slices_side_by_side
from groupgt.experiment.answers import KeptAnswers
from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.render.document import Block, Detail, Item, Table, Verdict, document
from groupgt.render.exports import junit_text
from groupgt.render.tables import Grid, counted, fixed
from groupgt.report import shared
from groupgt.report.comparison import changed
from groupgt.report.comparison import items as items_of
from groupgt.report.contrasts import delta_text
from groupgt.report.slices import slices_of

if TYPE_CHECKING:
    pass


# After so many seconds in code of the user's it is said how to keep its answers.
LONG = 30.0


def text(outcome: Outcome, style: str = tables.DEFAULT) -> str:
    """The same in any tabulate format: what the result folder holds, the same bytes each time."""
    return document(items(outcome), style, outcome.experiment.title)


def from_cache(outcome: Outcome) -> str:
    """One line: what was not asked again, and when it was asked; empty where all is of this run."""
    kept = outcome.kept
    retrievals = kept.cached - sum(not each.earlier.interrupted for each in kept.answers)
    parts = [f"from the cache: {counted(retrievals, 'retrieval')}"] if retrievals else []
    parts += (_earlier(outcome, each) for each in kept.answers)
    if kept.verdicts:
        since = f"; changed since: {', '.join(kept.changed)}" if kept.changed else ""
        parts.append(f"{kept.verdicts:,} of {kept.verdicts + kept.judged:,} verdicts are of earlier runs{since}")
    return "; ".join(parts) + (" (--refresh asks all again)" if parts else "")


def _earlier(outcome: Outcome, kept: KeptAnswers) -> str:
    name = f"{kept.dataset}: {kept.system}" if len(outcome.evaluations) > 1 else kept.system
    earlier = kept.earlier
    what = f"{earlier.count:,} of {kept.queries:,} answers of {name} are from the run"
    at = earlier.at.replace("T", " ").removesuffix("Z")
    since = f"; changed since: {', '.join(earlier.changed)}" if earlier.changed else ""
    way = f"resumed: {what} interrupted" if earlier.interrupted else f"reused: {what} that ended"
    return f"{way} at {at} UTC{since}"


def ways_to_keep(outcome: Outcome) -> str:
    """One line: how answers that took long are kept; empty where none did."""
    slow = {name: seconds for name, seconds in outcome.kept.seconds.items() if seconds > LONG}
    if not slow:
        return ""
    times = " and ".join(f"{name} ({seconds:,.0f} s)" for name, seconds in slow.items())
    return f"each run asks {times} again: to keep what they say, name a `version` beside `use`, or run with --reuse"


def items(outcome: Outcome, *, timed: bool = False) -> Iterator[Item]:
    """Everything that is said of an outcome, the verdict first; with `timed` what is time, too."""
    return map(outcome.experiment.hide.sure, _items(outcome, timed=timed))


def _items(outcome: Outcome, *, timed: bool) -> Iterator[Item]:
    from groupgt.report.verdict import across, verdict

    several = len(outcome.evaluations) > 1
    yield Verdict(list(across(outcome, timed=timed)))
    for dataset in outcome.evaluations:
        if several:
            yield f"dataset {dataset}"
        yield Verdict(verdict(outcome, dataset, timed=timed))
    yield from _gates(outcome, timed=timed)
    yield from shared.blocks_of(outcome.experiment, outcome.evaluations)
    for dataset, by_system in outcome.evaluations.items():
        if several:
            yield f"dataset {dataset}"
        if by_system:
            yield from _tables(outcome, dataset)
    if timed:
        yield from _times(outcome)


def summary(outcome: Outcome) -> str:
    """Short Markdown for a pull request: verdict, gates that failed, what differs significantly from the baseline."""
    from groupgt.report.verdict import across, verdict

    parts: list[Item] = [f"## {outcome.experiment.title}", Verdict(list(across(outcome, timed=True)))]
    for dataset in outcome.evaluations:
        if len(outcome.evaluations) > 1:
            parts.append(f"### {dataset}")
        parts.append(Verdict(verdict(outcome, dataset, timed=True)))
        failed: list[list[Any]] = [
            [gate.gate, "FAILED", gate.reason] for gate in outcome.gates if gate.dataset == dataset and not gate.passed
        ]
        if failed:
            parts.append((["gate", "result", "why"], failed))
        if dataset in outcome.comparison:
            parts += changed(outcome.comparison[dataset])
    return document(outcome.experiment.hide.sure(parts), "github")


def junit_report(outcome: Outcome) -> str:
    """The gates as JUnit XML: a case is named by what it is held against and what it asks, wherever it stands."""
    cases: list[tuple[str, str, str | None]] = []
    used: Counter[tuple[str, str]] = Counter()
    for gate in outcome.gates:
        case = f"{gate.dataset}.{gate.system}", gate.bound
        used[case] += 1
        again = f" ({used[case]})" if used[case] > 1 else ""
        cases.append((case[0], f"{case[1]}{again}", None if gate.passed else gate.reason))
    return junit_text(outcome.experiment.title, outcome.experiment.hide.sure(cases))


def failure_summary(title: str, why: str) -> str:
    """The summary of a run that ended in an error, as text that no Markdown is read in."""
    lines = "\n".join(f"    {line}" for line in printable(why).splitlines())
    return f"## {title}\n\nThe run failed, and no gate was judged:\n\n{lines}"


def failure_junit(title: str, why: str) -> str:
    """The same as JUnit XML: one case that could not be tried."""
    return junit_text(title, [("run", title, why)], "error")


def _tables(outcome: Outcome, dataset: str) -> Iterator[Item]:
    evaluations = list(outcome.evaluations[dataset].values())
    convention, primary = outcome.experiment.config.convention, outcome.experiment.config.evaluate.primary
    yield from grids(evaluations, [convention])
    if len(evaluations) > MOST_COLUMNS and primary is not None:
        yield from map(Detail, slices_of(evaluations, primary))
    else:
        sliced = slices_side_by_side(evaluations)
        yield from (Detail(Table(*grid, keep=1 if len(evaluations) == 1 else 2)) for grid in sliced)
    if dataset in outcome.comparison and len(evaluations) > 1:
        yield from _against(outcome, dataset)
    yield outcome.experiment.hide(below_means(evaluations, [convention]))
    yield Detail(f"policy {evaluations[0].policy}")


def _against(outcome: Outcome, dataset: str) -> Iterator[Item]:
    """The whole comparison by the primary metric (by all, where that is not compared), and the deltas of all others."""
    comparison, primary = outcome.comparison[dataset], outcome.experiment.config.evaluate.primary
    first = next(iter(outcome.evaluations[dataset].values()))
    compared = list(comparison.metrics)
    in_full = [text for text in compared if primary is not None and text == first.text_of(primary)] or compared
    if len(in_full) < len(compared):
        yield from map(Detail, _deltas(comparison, first))
    yield from items_of(comparison, in_full, brief=True)


def _deltas(comparison: Comparison, first: Evaluation) -> Iterator[Grid]:
    """What each system gains against the baseline; one table for each cutoff, where there are many metrics."""
    columns: dict[object, list[str]] = {}
    for text, metric in comparison.metrics.items():
        columns.setdefault(metric.cutoff if len(comparison.metrics) > tables.WIDEST else None, []).append(text)
    for texts in columns.values():
        headers = [f"against {comparison.baseline}", "queries", *(first.label_of(text) for text in texts)]
        rows: list[list[Any]] = []
        for name in (name for name in comparison.names if name != comparison.baseline):
            by_metric = [comparison[name][text] for text in texts]
            cells = [delta_text(row.delta, significant=row.significant) for row in by_metric]
            rows.append([name, min(row.pairs or 0 for row in by_metric), *cells])
        yield headers, rows


def _gates(outcome: Outcome, *, timed: bool) -> Iterator[Block]:
    """The gates as a table, with `timed` those on time too, and a line for those that nothing was held against."""
    gates = sorted((gate for gate in outcome.gates if timed or not gate.timed), key=lambda gate: gate.gate)
    if gates:
        rows: list[list[Any]] = [[gate.gate, "passed" if gate.passed else "FAILED", gate.reason] for gate in gates]
        yield ["gate", "result", "why"], rows
    if idle := outcome.idle_gates:
        yield f"{'gate' if len(idle) == 1 else 'gates'} {' and '.join(map(str, idle))} matched no system"


def _times(outcome: Outcome) -> Iterator[Block]:
    """How long each system took: other figures each time."""
    several = len(outcome.evaluations) > 1
    rows: list[list[Any]] = []
    for timing in outcome.timings:
        single, batched = (timing.latency_p50_ms, timing.latency_p95_ms), (timing.batched_p50_ms, timing.batched_p95_ms)
        name = f"{timing.dataset}: {timing.system}" if several else timing.system
        rows.append([name, _digits(timing.build_s), len(timing.single_ms), *map(_digits, (*single, *batched))])
    if rows:
        headers = ["time", "build s", "timed", "p50 ms", "p95 ms", "batched p50 ms", "batched p95 ms"]
        yield Table(headers, rows, ("timed", "batched p95 ms", "batched p50 ms"))


def _digits(value: float | None) -> str | None:
    return None if value is None else fixed(value, 2)
