"""What a comparison found, each part worked out when it is first asked for, and shown as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from groupgt.comparison.contrast import Pair, Row, Scored, comparisons, pairs_of, rows_of
from groupgt.comparison.failures import Failures, Headroom, cutoff_of, failures_of, headroom_of
from groupgt.comparison.power import alpha_of, power_of
from groupgt.comparison.power_analysis import PowerAnalysis, whose_power
from groupgt.comparison.settings import Settings
from groupgt.comparison.slices import MOST_SLICES, Slice, extremes, reversals, slices_of, too_many
from groupgt.comparison.tests import SLACK
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.systems import policy_text
from groupgt.evaluation.tables import below_means
from groupgt.evaluation.verdict import doubts
from groupgt.metrics.language import Metric
from groupgt.render import tables
from groupgt.render.document import Block, Detail, Item, Table, bare
from groupgt.render.encodings import About
from groupgt.render.tables import counted, fixed, signed, small, span

# More than this are counted and not named.
NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """Systems side by side, held against a baseline query by query.

    `evaluations` is empty where values were read from result folders; slices, failures and headroom then are too, and
    `rules` says what figures state of policy and labeller. `primary` is the metric that decides which system is best,
    the first where none is named.
    """

    baseline: str
    settings: Settings
    systems: list[Scored]
    evaluations: dict[str, Evaluation]
    footer: list[str]
    rules: str = ""
    primary: str | None = None

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics by the text asked."""
        return self.systems[0].metrics

    @property
    def convention(self) -> str:
        """The convention in force."""
        return self.systems[0].convention

    @cached_property
    def labels(self) -> dict[str, str]:
        """What tables call each metric: without the convention in force."""
        return {text: metric.short(self.convention) for text, metric in self.metrics.items()}

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each system and metric, in their order."""
        return rows_of(self.systems, self.baseline, self.settings)

    @cached_property
    def slices(self) -> list[Slice]:
        """The comparison within each slice of `by`."""
        evaluation = next(iter(self.evaluations.values()), None)
        return slices_of(self.systems, self.baseline, self.settings, evaluation.slicer) if evaluation else []

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Columns of `by` with too many values to compare in each, and how many they have."""
        evaluation = next(iter(self.evaluations.values()), None)
        return too_many(evaluation.slicer) if evaluation else {}

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every two systems by every metric, with Tukey's HSD; none unless `settings.pairs` asks for them."""
        return pairs_of(self.systems, self.settings) if self.settings.pairs else []

    @cached_property
    def failures(self) -> Failures | None:
        """Who meets which group within the largest cutoff asked; None where only values are known."""
        cutoff = cutoff_of([metric.cutoff for metric in self.metrics.values()])
        return failures_of(self.evaluations, cutoff) if self.evaluations else None

    @cached_property
    def headroom(self) -> list[Headroom]:
        """For each metric what a perfect choice among the systems, or all their results together, would reach."""
        return headroom_of(self.evaluations, self.failures, list(self.metrics)) if self.failures is not None else []

    @cached_property
    def warnings(self) -> list[str]:
        """What keeps a reader from concluding too much: few queries that differ, or that count for one alone."""
        missing = [f"warning: {text}" for text in doubts(self.evaluations)]
        return [*missing, *_weak(self.rows, self.settings, self.baseline, self.labels)]

    def power(self, *, difference: float | None = None, wanted: float = 0.8) -> PowerAnalysis:
        """How large a difference these queries show, and how many show a wanted one; needs SciPy.

        Args:
            difference: The difference to show (default: the observed one).
            wanted: The power with which to show it.
        """
        powers = power_of(self.rows, self.settings, difference=difference, wanted=wanted)
        for part in self.slices:
            powers += power_of(
                part.rows, self.settings, difference=difference, wanted=wanted, by=part.by, value=part.value
            )
        return PowerAnalysis(
            powers=tuple(powers),
            wanted=wanted,
            baseline=self.baseline,
            alpha=alpha_of(self.rows, self.settings),
            whose=whose_power(powers, self.settings),
            labels=dict(sorted(self.labels.items(), key=lambda pair: pair[0] != self.primary)),
            footer=tuple(self.footer),
            rows=self.rows,
            settings=self.settings,
            about=self._about,
            warnings=list(doubts(self.evaluations)),
        )

    @property
    def _about(self) -> About:
        """What a figure of the first metric states."""
        queries = max((row.queries for row in self.rows), default=0)
        first = next(iter(self.evaluations.values()), None)
        rules = self.rules if first is None else policy_text(first.policy)
        return About(next(iter(self.labels.values())), queries, self.convention, rules)

    def reversals(self) -> list[tuple[Row, Slice, Row]]:
        """Slices in which a system gains where it loses over all, or the other way round."""
        return list(self._reversals)

    @cached_property
    def _reversals(self) -> list[tuple[Row, Slice, Row]]:
        return list(reversals(self.rows, self.slices, self.metrics))


def _weak(rows: Sequence[Row], settings: Settings, baseline: str, labels: Mapping[str, str]) -> list[str]:
    """Comparisons in which too few queries differ for the test to reach alpha, and queries that count for one alone."""
    compared = [row for row in rows if row.against is not None and not math.isnan(row.raw_p_value)]
    # The smallest p of a comparison is multiplied by their number, but Holm's last by 1 alone.
    factor = len(compared) if settings.correction == "bonferroni" else 1
    # The smallest p of m queries that differ is 2 ÷ 2^m, times the number of comparisons.
    needed = max(1, math.ceil(1 + math.log2(max(factor, 1) / settings.alpha) - SLACK))
    lines = []
    few = [f"{row.system} in {labels[row.metric]} ({row.differ:,})" for row in compared if row.differ < needed]
    if few:
        where = "every comparison" if 1 < len(few) == len(compared) else _some(few)
        lines.append(
            f"warning: too few queries differ for a randomization test to reach alpha {settings.alpha:g}, which takes "
            f"at least {needed}: {where}"
        )
    least = (1 / (1 + settings.resamples)) * factor
    if least > settings.alpha and settings.draws:
        lines.append(
            f"warning: {settings.resamples:,} resamples cannot give a p-value below {least:.2g} over {factor:,} "
            "comparisons; increase resamples"
        )
    alone = [f"{row.system} in {labels[row.metric]} {row.unpaired:,}" for row in rows if row.against and row.unpaired]
    if alone:
        lines.append(
            f"queries that count for only one of the two are left out of deltas: {_some(alone)} against {baseline}"
        )
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" … and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def items(findings: Findings, metrics: Sequence[str] | None = None, *, brief: bool = False) -> Iterator[Item]:
    """The tables, where differences come from and who fails where; at last the test.

    A `brief` one has the tables of means and deltas alone; all else are details.
    """
    chosen = list(findings.metrics) if metrics is None else list(metrics)
    yield from main_blocks(findings, chosen)
    for item in (*_pairs(findings, chosen), *_slices(findings, chosen), *_failures(findings, chosen)):
        yield Detail(bare(item)) if brief else item
    yield _footer(findings)


# Lost questions that a summary names.
LOST = 20


def changed(findings: Findings) -> Iterator[Item]:
    """Only what differs significantly from the baseline, and which questions were lost with it."""
    rows = [row for row in findings.rows if row.against is not None and row.significant]
    if not rows:
        yield f"Nothing differs significantly from {findings.baseline}."
        return
    headers = ["system", "metric", "mean", f"against {findings.baseline}", _p_header(findings.settings)]
    cells: list[list[Any]] = [
        [row.system, findings.labels[row.metric], row.mean, signed(row.delta), small(row.p_value)] for row in rows
    ]
    yield headers, cells
    for name in dict.fromkeys(row.system for row in rows) if findings.failures is not None else ():
        lost = findings.failures.lost(name, findings.baseline) if findings.failures is not None else []
        if lost:
            named = f"{', '.join(lost[:LOST])}{' …' if len(lost) > LOST else ''}"
            queries = counted(len(lost), "query", "queries")
            yield f"{queries} that {findings.baseline} solves and {name} does not: {named}"


def notes(findings: Findings) -> Iterator[Item]:
    """The population: as it was read from result folders, or counted."""
    if not findings.evaluations:
        yield "\n".join(findings.footer)
        return
    evaluations = list(findings.evaluations.values())
    yield below_means(evaluations, [findings.convention])
    yield Detail(f"policy {evaluations[0].policy}")


# Columns that a narrow terminal does without, first first.
SHED = ("differ", "effect", "p", "queries")


def main_blocks(findings: Findings, metrics: Sequence[str] | None = None) -> Iterator[Block]:
    """One table a metric: a row a system."""
    level = f"{100 * findings.settings.intervals:g} % interval"
    corrected = _corrected_headers(findings.settings)
    against = ["delta", f"{level} of delta", "p", *corrected, "effect", "wins/ties/losses", "differ"]
    for text in findings.metrics if metrics is None else metrics:
        headers = [findings.labels[text], "mean", level, "queries", *against]
        rows = [_cells(row, len(corrected)) for row in findings.rows if row.metric == text]
        shed = [name for name in SHED if name != "p" or corrected]
        yield Table(headers, rows, (*shed, level, "wins/ties/losses", f"{level} of delta"))


def _p_header(settings: Settings) -> str:
    return "p" if settings.correction == "none" else f"p ({settings.correction})"


def _corrected_headers(settings: Settings) -> list[str]:
    """The header of corrected p-values, where there are any beside the raw ones."""
    return [] if settings.correction == "none" else [_p_header(settings)]


def _cells(row: Row, corrected: int) -> list[Any]:
    mean = [row.system, row.mean, span(row.interval), row.queries]
    contrast = row.against
    if contrast is None:
        return [*mean, "baseline", *[""] * (5 + corrected)]
    delta = [signed(contrast.delta) + (tables.MARK if row.significant else ""), span(contrast.delta_interval)]
    p_values = [small(contrast.raw_p_value), small(contrast.p_value)][: 1 + corrected]
    counts = f"{contrast.wins:,}/{contrast.ties:,}/{contrast.losses:,}"
    return [*mean, *delta, *p_values, _effect(contrast.effect_size), counts, f"{contrast.differ:,}"]


def _effect(size: float) -> str:
    if math.isinf(size):
        return "∞" if size > 0 else "-∞"
    return signed(size, 2)


def _pairs(findings: Findings, metrics: Sequence[str]) -> Iterator[Block]:
    corrected = _corrected_headers(findings.settings)
    for text in metrics:
        rows: list[list[Any]] = []
        for pair in (pair for pair in findings.pairs if pair.metric == text):
            contrast = pair.against
            delta = signed(contrast.delta) + (tables.MARK if contrast.p_value <= findings.settings.alpha else "")
            p_values = [small(contrast.raw_p_value), small(contrast.p_value)][: 1 + len(corrected)]
            rows.append([pair.first, pair.second, delta, *p_values, small(pair.tukey), contrast.pairs])
        if rows:
            headers = [findings.labels[text], "against", "delta", "p", *corrected, "p (Tukey's HSD)", "queries"]
            yield headers, rows


def _slices(findings: Findings, metrics: Sequence[str]) -> Iterator[Item]:
    """For each column one table a metric, of deltas; and in words what stands out."""
    for by in dict.fromkeys(part.by for part in findings.slices):
        parts = [part for part in findings.slices if part.by == by]
        if len(parts) == 1:
            yield f"every query has {by} = {parts[0].value}"
            continue
        for text in metrics:
            rows: list[list[Any]] = [["queries", *(_population(part, text) for part in parts)]]
            for system in (scored.name for scored in findings.systems):
                inner = [part.index[system, text] for part in parts]
                if system == findings.baseline:
                    rows.append([f"{system} (mean)", *(fixed(row.mean) for row in inner)])
                else:
                    rows.append(
                        [system, *(signed(row.delta) + (tables.MARK if row.significant else "") for row in inner)]
                    )
            headers = [f"{findings.labels[text]}: delta by {by}", *(part.value for part in parts)]
            yield _turned(headers, rows) if len(parts) > tables.WIDEST else (headers, rows)
    for by, count in findings.left_out.items():
        yield f"slices by {by} are left out: it has {count:,} values, more than {MOST_SLICES:,}"
    if findings.slices and metrics:
        label = findings.labels[metrics[0]]
        lines = list(extremes(findings.rows, findings.slices, findings.metrics, metrics[0], label))
        if len(lines) > NAMED:
            lines = [*lines[:NAMED], f"… and {len(lines) - NAMED:,} more such lines"]
        lines += _reversals(findings, metrics)
        if lines:
            yield Detail("\n".join(lines))


def _population(part: Slice, text: str) -> str:
    """How many queries stand behind the deltas of a slice; from … to, where systems differ in that."""
    pairs = [row.pairs for row in part.rows if row.metric == text and row.against is not None]
    low, high = min(pairs, default=part.queries), max(pairs, default=part.queries)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _turned(headers: list[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """A row a slice, where there are many."""
    columns = zip(headers[1:], *(row[1:] for row in rows))
    return [headers[0], *(row[0] for row in rows)], [list(cells) for cells in columns]


def _reversals(findings: Findings, metrics: Sequence[str]) -> Iterator[str]:
    """Slices that go the other way than the whole: those that are significant, and how many others there are."""
    reversals = [reversal for reversal in findings.reversals() if reversal[0].metric in metrics]
    # What is significant first, then what rests on most queries.
    reversals.sort(key=lambda reversal: (not reversal[2].significant, -reversal[2].pairs, -abs(reversal[2].delta)))
    significant = [reversal for reversal in reversals if reversal[2].significant]
    for reversal in significant[:NAMED]:
        yield f"reversal: {_reversal(findings, *reversal)}"
    if len(significant) > NAMED:
        yield f"… and {len(significant) - NAMED:,} more reversals"
    if others := reversals[len(significant) :]:
        slices = counted(len(others), "slice contradicts", "slices contradict")
        yield f"{slices} the overall direction, not significantly; such as {_reversal(findings, *others[0])}"


def _reversal(findings: Findings, row: Row, part: Slice, inner: Row) -> str:
    return (
        f"{row.system} {_verb(findings.metrics, row)} {signed(row.delta)} in {findings.labels[row.metric]} overall, "
        f"and {_verb(findings.metrics, inner)} {signed(inner.delta)} where {part.by} = {part.value} "
        f"({counted(inner.pairs, 'query', 'queries')}, {_p_header(findings.settings)} {small(inner.p_value)})"
    )


def _verb(metrics: Mapping[str, Metric], row: Row) -> str:
    return "gains" if (row.delta > 0) == metrics[row.metric].higher_is_better else "loses"


def _failures(findings: Findings, metrics: Sequence[str]) -> Iterator[Item]:
    failures = findings.failures
    if failures is None or len(failures.systems) < 2:
        return
    count = int(failures.counted.sum())
    if not count:
        yield "no query counts"
        return
    within = f"@{failures.cutoff}" if failures.cutoff is not None else "in the whole ranking"
    rows: list[list[Any]] = []
    for name, solved in failures.solved_counts.items():
        against = failures.between(name, findings.baseline)
        is_baseline = name == findings.baseline
        gained, lost = ("", "") if is_baseline else (str(against["only_first"]), str(against["only_second"]))
        rows.append([name, solved, len(failures.only(name)), gained, lost])
    yield [f"complete {within}", "solved", "only by this run", "gained over baseline", "lost to baseline"], rows
    nobody, everybody = failures.nobody, failures.everybody
    line = f"of {counted(count, 'query', 'queries')}, {len(everybody):,} solved by every run, {len(nobody):,} by none"
    yield Detail(line + (f": {', '.join(nobody[:NAMED])}{' …' if len(nobody) > NAMED else ''}" if nobody else ""))
    yield from map(Detail, _headroom(findings, metrics, within))


def _headroom(findings: Findings, metrics: Sequence[str], within: str) -> Iterator[Block]:
    headroom = [best for best in findings.headroom if best.metric in metrics]
    if not headroom:
        return
    cells: list[list[Any]] = []
    for best in headroom:
        gain = fixed(abs(best.per_query - best.mean))
        cells.append([findings.labels[best.metric], best.best, best.mean, best.per_query, gain, best.queries])
    yield ["headroom", "best system", "mean", "best run per query", "maximum gain", "queries"], cells
    union = headroom[0]
    size = alone = ""
    if not math.isnan(union.union_size):
        size = f" ({fixed(union.union_size, 1)} distinct results per query)"
        depth = max(math.ceil(union.union_size), 1)
        alone = f"; the best run alone has recall.coverage@{depth} {fixed(union.single_recall)}"
    yield (
        f"the union of all results {within}{size} reaches recall.coverage {fixed(union.union_recall)}, "
        f"complete.coverage {fixed(union.union_complete)}{alone}\n"
        "headroom is an upper bound; it also grows by chance with the number of runs"
    )


def _footer(findings: Findings) -> str:
    settings = findings.settings
    lines = [
        f"against {findings.baseline}: {settings.described}, p {_corrected(settings, comparisons(findings.rows))}, "
        f"{tables.MARK} significant at alpha {settings.alpha:g}; {100 * settings.intervals:g} % bootstrap intervals"
        + ("" if settings.draws else f", {counted(settings.resamples, 'resample')}, seed {settings.seed}")
    ]
    if settings.correction != "none":
        for by in dict.fromkeys(part.by for part in findings.slices):
            count = sum(comparisons(part.rows) for part in findings.slices if part.by == by)
            lines.append(f"slices by {by}: p {_corrected(settings, count)}")
        if findings.pairs:
            lines.append(
                f"pairs: p {_corrected(settings, len(findings.pairs))}; Tukey's HSD over {len(findings.systems):,} runs"
            )
    return "\n".join(lines)


def _corrected(settings: Settings, count: int) -> str:
    if settings.correction == "none":
        return "not corrected"
    return f"corrected ({settings.correction}) over {counted(count, 'comparison')}"


def csv_rows(findings: Findings) -> tuple[list[str], list[list[Any]]]:
    """Headers and a row for each system and metric, of the whole (where `by` is empty) and of each slice."""
    headers = [
        *("by", "slice", "run", "metric", "mean", "low", "high", "queries"),
        *("baseline", "delta", "delta_low", "delta_high", "pairs", "unpaired", "wins", "ties", "losses"),
        *("spread", "effect_size", "raw_p_value", "p_value", "significant"),
    ]
    rows: list[list[Any]] = [["", "", *_csv_cells(findings, row)] for row in findings.rows]
    for part in findings.slices:
        rows += [[part.by, part.value, *_csv_cells(findings, row)] for row in part.rows]
    return headers, rows


def _csv_cells(findings: Findings, row: Row) -> list[Any]:
    cells: list[Any] = [row.system, str(findings.metrics[row.metric]), row.mean, *row.interval, row.queries]
    contrast = row.against
    if contrast is None:
        return [*cells, *[None] * 14]
    delta = [contrast.delta, *contrast.delta_interval]
    counts = [contrast.pairs, contrast.unpaired, contrast.wins, contrast.ties, contrast.losses]
    effect = contrast.effect_size if math.isfinite(contrast.effect_size) else None
    tail = [contrast.spread, effect, contrast.raw_p_value, contrast.p_value, int(row.significant)]
    return [*cells, findings.baseline, *delta, *counts, *tail]
