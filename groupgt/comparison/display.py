"""A comparison as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.comparison.contrast import Row, comparisons
from groupgt.comparison.failures import Failures
from groupgt.comparison.schema import FailuresDict
from groupgt.comparison.slices import MOST_SLICES, Slice, extremes
from groupgt.comparison.tests import SLACK, Settings
from groupgt.render import tables
from groupgt.render.numbers import counted, fixed, signed, small, span
from groupgt.render.tables import Block

if TYPE_CHECKING:
    from groupgt.comparison.result import Comparison
    from groupgt.evaluation.result import Evaluation

# More than this are counted and not told.
TOLD = 5
MARK = "*"


def blocks(table: Comparison, metrics: Sequence[str] | None = None, *, population: bool = True) -> Iterator[Block]:
    """The tables, where differences come from, who fails where, the test and the population."""
    chosen = list(table.metrics) if metrics is None else list(metrics)
    yield from main_blocks(table, chosen)
    yield from _pairs(table, chosen)
    yield from _slices(table, chosen)
    yield from _failures(table, chosen)
    yield from table.warnings
    yield "\n".join([_footer(table), *(table.footer if population else [])])


def main_blocks(table: Comparison, metrics: Sequence[str] | None = None) -> Iterator[Block]:
    """One table a metric: a row a system."""
    level = f"{100 * table.settings.intervals:g} % interval"
    corrected = [] if table.settings.correction == "none" else [_p(table.settings)]
    against = ["delta", f"{level} of delta", "p", *corrected, "effect", "wins/ties/losses", "differ"]
    for text in table.metrics if metrics is None else metrics:
        headers = [_label(table, text), "mean", level, "queries", *against]
        yield headers, [_cells(row, len(corrected)) for row in table.rows if row.metric == text]


def _label(table: Comparison, text: str) -> str:
    return table.metrics[text].short(table.convention)


def _p(settings: Settings) -> str:
    return "p" if settings.correction == "none" else f"p ({settings.correction})"


def _cells(row: Row, corrected: int) -> list[Any]:
    first = [row.system, row.mean, span(row.interval), row.queries]
    each = row.against
    if each is None:
        return [*first, "baseline", *[""] * (5 + corrected)]
    delta = [signed(each.delta) + (MARK if row.significant else ""), span(each.delta_interval)]
    values = [small(each.raw_p_value), small(each.p_value)][: 1 + corrected]
    counts = f"{each.wins:,}/{each.ties:,}/{each.losses:,}"
    return [*first, *delta, *values, _effect(each.effect_size), counts, f"{each.differ:,}"]


def _effect(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return signed(value, 2)


def _pairs(table: Comparison, metrics: Sequence[str]) -> Iterator[Block]:
    corrected = [] if table.settings.correction == "none" else [_p(table.settings)]
    for text in metrics:
        rows: list[list[Any]] = []
        for pair in (each for each in table.pairs if each.metric == text):
            each = pair.against
            mark = MARK if each.p_value <= table.settings.alpha else ""
            values = [small(each.raw_p_value), small(each.p_value)][: 1 + len(corrected)]
            rows.append([pair.first, pair.second, signed(each.delta) + mark, *values, small(pair.tukey), each.pairs])
        if rows:
            yield [_label(table, text), "against", "delta", "p", *corrected, "p (Tukey's HSD)", "queries"], rows


def _slices(table: Comparison, metrics: Sequence[str]) -> Iterator[Block]:
    """For each column one table a metric, of deltas; and in words what stands out."""
    for by in dict.fromkeys(part.by for part in table.slices):
        own = [part for part in table.slices if part.by == by]
        if len(own) == 1:
            yield f"every query has {by} = {own[0].value}"
            continue
        for text in metrics:
            rows: list[list[Any]] = [["queries", *(_population(part, text) for part in own)]]
            for system in (each.name for each in table.systems):
                found = [part.index[system, text] for part in own]
                if system == table.baseline:
                    rows.append([f"{system} (mean)", *(fixed(row.mean) for row in found)])
                else:
                    rows.append([system, *(signed(row.delta) + (MARK if row.significant else "") for row in found)])
            headers = [f"{_label(table, text)}: delta by {by}", *(part.value for part in own)]
            yield _turned(headers, rows) if len(own) > tables.WIDEST else (headers, rows)
    for by, count in table.left_out.items():
        yield f"slices by {by} are left out: it has {count:,} values, more than {MOST_SLICES:,}"
    if table.slices and metrics:
        told = list(extremes(table.rows, table.slices, table.metrics, metrics[0], _label(table, metrics[0])))
        if len(told) > TOLD:
            told = [*told[:TOLD], f"… and {len(told) - TOLD:,} more such lines"]
        turned = list(_reversals(table, metrics))
        if told or turned:
            yield "\n".join([*told, *turned])


def _reversals(table: Comparison, metrics: Sequence[str]) -> Iterator[str]:
    """Slices that go the other way than the whole: those that are significant, and how many others there are."""
    found = [each for each in table.reversals() if each[0].metric in metrics]
    # What is significant first, then what rests on most queries.
    found.sort(key=lambda each: (not each[2].significant, -each[2].pairs, -abs(each[2].delta)))
    real = [each for each in found if each[2].significant]
    for row, part, each in real[:TOLD]:
        yield f"reversal: {_reversal(table, row, part, each)}"
    if len(real) > TOLD:
        yield f"… and {len(real) - TOLD:,} more reversals"
    if rest := found[len(real) :]:
        slices = counted(len(rest), "slice goes", "slices go")
        yield f"{slices} the other way than the whole, not significantly; such as {_reversal(table, *rest[0])}"


def _reversal(table: Comparison, row: Row, part: Slice, each: Row) -> str:
    whole, within = (_verb(table.metrics, one) for one in (row, each))
    return (
        f"{row.system} {whole} {signed(row.delta)} in {_label(table, row.metric)} over all, and {within} "
        f"{signed(each.delta)} where {part.by} = {part.value} "
        f"({counted(each.pairs, 'query', 'queries')}, {_p(table.settings)} {small(each.p_value)})"
    )


def _population(part: Slice, text: str) -> str:
    """How many queries stand behind the deltas of a slice; from … to, where systems differ in that."""
    pairs = [row.pairs for row in part.rows if row.metric == text and row.against is not None]
    low, high = min(pairs, default=part.queries), max(pairs, default=part.queries)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _turned(headers: list[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """A row a slice, where there are many."""
    columns = zip(headers[1:], *(row[1:] for row in rows))
    return [headers[0], *(row[0] for row in rows)], [list(cells) for cells in columns]


def _verb(metrics: Mapping[str, Any], row: Row) -> str:
    return "gains" if (row.delta > 0) == metrics[row.metric].higher_is_better else "loses"


def _failures(table: Comparison, metrics: Sequence[str]) -> Iterator[Block]:
    found = table.failures
    if found is None or len(found.systems) < 2:
        return
    count = int(found.counted.sum())
    if not count:
        yield "no query counts"
        return
    within = f"@{found.cutoff}" if found.cutoff is not None else "in the whole ranking"
    rows: list[list[Any]] = []
    for place, name in enumerate(found.systems):
        solved = int(found.solved[found.counted, place].sum())
        against = found.between(name, table.baseline)
        gained, lost = ("", "") if name == table.baseline else (str(against["only_first"]), str(against["only_second"]))
        rows.append([name, solved, len(found.only(name)), gained, lost])
    yield [f"complete {within}", "solved", "only by it", "gained over baseline", "lost to baseline"], rows
    nobody, everybody = found.nobody, found.everybody
    line = f"of {counted(count, 'query', 'queries')} {len(everybody):,} solved by every system, {len(nobody):,} by none"
    yield line + (f": {', '.join(nobody[:TOLD])}{' …' if len(nobody) > TOLD else ''}" if nobody else "")
    headroom = [each for each in table.headroom if each.metric in metrics]
    if headroom:
        cells: list[list[Any]] = []
        for each in headroom:
            label, gain = _label(table, each.metric), fixed(abs(each.per_query - each.mean))
            cells.append([label, each.best, each.mean, each.per_query, gain, each.queries])
        yield ["headroom", "best system", "its mean", "best of each query", "gain at most", "queries"], cells
        union = headroom[0]
        size = alone = ""
        if not math.isnan(union.union_size):
            size = f" ({fixed(union.union_size, 1)} different ones a query)"
            depth = max(math.ceil(union.union_size), 1)
            alone = f"; the best run alone has recall.coverage@{depth} {fixed(union.single_recall)}"
        yield (
            f"the union of all results {within}{size} reaches recall.coverage {fixed(union.union_recall)}, "
            f"complete.coverage {fixed(union.union_complete)}{alone}\n"
            "headroom is an upper bound, which grows with the number of runs by chance too"
        )


def warnings_of(rows: Sequence[Row], settings: Settings, baseline: str, labels: Mapping[str, str]) -> list[str]:
    """Comparisons in which too few queries differ for the test to reach alpha, and queries that count for one alone."""
    compared = [row for row in rows if row.against is not None and not math.isnan(row.raw_p_value)]
    # The smallest p of a comparison is multiplied by their number, but Holm's last by 1 alone.
    factor = len(compared) if settings.correction == "bonferroni" else 1
    # The smallest p of m queries that differ is 2 ÷ 2^m, times the number of comparisons.
    needed = max(1, math.ceil(1 + math.log2(max(factor, 1) / settings.alpha) - SLACK))
    out = []
    few = [f"{row.system} in {labels[row.metric]} ({row.differ:,})" for row in compared if row.differ < needed]
    if few:
        more = f" … and {len(few) - TOLD:,} more" if len(few) > TOLD else ""
        out.append(
            f"warning: fewer than {needed} queries differ, so that no randomization test can reach alpha "
            f"{settings.alpha:g}: {', '.join(few[:TOLD])}{more}"
        )
    least = (1 / (1 + settings.resamples)) * factor
    if least > settings.alpha and settings.test in ("randomization", "bootstrap"):
        out.append(
            f"warning: {settings.resamples:,} resamples cannot show a p below {least:.2g} over {factor:,} comparisons; "
            "draw more"
        )
    lone = [f"{row.system} in {labels[row.metric]} {row.unpaired:,}" for row in rows if row.against and row.unpaired]
    if lone:
        more = f" … and {len(lone) - TOLD:,} more" if len(lone) > TOLD else ""
        told = f"{', '.join(lone[:TOLD])}{more}"
        out.append(f"queries that count for one of the two alone are left out of deltas: {told} against {baseline}")
    return out


def missing_of(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Runs that lack results of queries, which then count as failures."""
    out = []
    for name, each in evaluations.items():
        missing, total = each.counts["missing"], int(each.truth.judgments.defined.sum())
        if missing and each.policy.missing == "zero":
            out.append(
                f"warning: {name} has no results for {missing:,} of {counted(total, 'query', 'queries')}, "
                "which count as zero (policy missing=zero; missing=skip leaves them out)"
            )
    return out


def _footer(table: Comparison) -> str:
    settings = table.settings
    lines = [
        f"against {table.baseline}: {settings.described}, p {_corrected(settings, comparisons(table.rows))}, "
        f"{MARK} significant at alpha {settings.alpha:g}; {100 * settings.intervals:g} % bootstrap intervals"
        + ("" if settings.draws else f", {counted(settings.resamples, 'resample')}, seed {settings.seed}")
    ]
    if settings.correction != "none":
        for by in dict.fromkeys(part.by for part in table.slices):
            count = sum(comparisons(part.rows) for part in table.slices if part.by == by)
            lines.append(f"slices by {by}: p {_corrected(settings, count)}")
        if table.pairs:
            lines.append(
                f"pairs: p {_corrected(settings, len(table.pairs))}; Tukey's HSD over {len(table.systems):,} runs"
            )
    return "\n".join(lines)


def _corrected(settings: Settings, count: int) -> str:
    if settings.correction == "none":
        return "not corrected"
    return f"corrected ({settings.correction}) over {counted(count, 'comparison')}"


def csv_rows(table: Comparison) -> tuple[list[str], list[list[Any]]]:
    """Headers and a row for each system and metric, of the whole (where `by` is empty) and of each slice."""
    headers = [
        *("by", "value", "run", "metric", "mean", "low", "high", "queries"),
        *("baseline", "delta", "delta_low", "delta_high", "pairs", "unpaired", "wins", "ties", "losses"),
        *("spread", "effect_size", "raw_p_value", "p_value", "significant"),
    ]
    rows: list[list[Any]] = [["", "", *_csv_cells(table, row)] for row in table.rows]
    for part in table.slices:
        rows += [[part.by, part.value, *_csv_cells(table, row)] for row in part.rows]
    return headers, rows


def _csv_cells(table: Comparison, row: Row) -> list[Any]:
    cells: list[Any] = [row.system, str(table.metrics[row.metric]), row.mean, *row.interval, row.queries]
    each = row.against
    if each is None:
        return [*cells, *[None] * 14]
    numbers = [each.delta, *each.delta_interval, each.pairs, each.unpaired, each.wins, each.ties, each.losses]
    effect = each.effect_size if math.isfinite(each.effect_size) else None
    return [*cells, table.baseline, *numbers, each.spread, effect, each.raw_p_value, each.p_value, int(row.significant)]


def failures_dict(found: Failures | None, most: int = 20) -> FailuresDict | None:
    """Who solves what, as plain Python."""
    if found is None:
        return None
    hardest: Any = found.hardest(most)
    return {
        "cutoff": None if found.cutoff is None else str(found.cutoff),
        "queries": int(found.counted.sum()),
        "solved": {name: int(found.solved[found.counted, place].sum()) for place, name in enumerate(found.systems)},
        "only": {name: found.only(name) for name in found.systems},
        "everybody": len(found.everybody),
        "nobody": found.nobody,
        "hardest": hardest,
    }
