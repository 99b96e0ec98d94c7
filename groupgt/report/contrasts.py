"""Reports systems against a baseline and against each other, as sentences, tables, figures and page data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from groupgt.comparison.beside import Beside
from groupgt.comparison.contrast import Contrast, Key, Row, comparisons
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems, finite, interval
from groupgt.comparison.tests import SLACK
from groupgt.errors import ConfigError, near_names
from groupgt.evaluation.result import mean_of
from groupgt.render import figures, tables
from groupgt.render.document import Block, Table
from groupgt.render.drawing import Figure, template
from groupgt.render.page import data
from groupgt.render.tables import counted, fixed, p_text, signed, small, span
from groupgt.report import headroom
from groupgt.report.means import about, best_sentence
from groupgt.report.sentences import doubt, doubts, enumerated, every

NO_BREAK = "\u00a0"
# More comparisons than this are only counted, not named.
LISTED = 5


# --- Sentences: changes from the baseline, the best system, and warnings; all by the primary metric.

# Systems that the sentences name.
MOST_CHANGES = 3


def sentences(systems: Systems, *, brief: bool = False) -> Iterator[data.Sentence]:
    """Yields all sentences in reading order; a `brief` verdict reports only changes if there are any."""
    is_compared = len(systems.names) > 1 and systems.is_baseline_named
    if is_compared:
        yield from _changes(systems)
    if not (brief and is_compared and not any(each.differ for each in systems.against_baseline.values())):
        yield _winner(systems)
    yield from _changes_in_slices(systems)
    if not brief:
        yield from headroom.sentences(systems)
    for warning in warnings(systems):
        yield doubt(warning.removeprefix("warning: "))


def _changes(systems: Systems) -> Iterator[data.Sentence]:
    other = Other("than the baseline ", "the baseline ", systems.baseline)
    disagreeing = systems.basis == "annotators"
    yield from changes(
        systems.against_baseline, other, systems.label, systems.settings, higher=systems.higher, disagreeing=disagreeing
    )


class Other(NamedTuple):
    """The other side of a comparison in sentences: phrases to follow `worse` and `different from`, and its name."""

    than: str
    from_: str
    name: str = ""

    def parts(self, words: str, rest: str) -> list[str]:
        """Joins text before and after the name into sentence parts."""
        return [words, self.name, rest] if self.name else [words + rest]


def changes(
    contrasts: Mapping[str, Contrast],
    other: Other,
    label: str,
    settings: Settings,
    *,
    higher: bool,
    disagreeing: bool = False,
) -> Iterator[data.Sentence]:
    """Describes significant losses, then gains, largest first; if there are none, describes the largest difference.

    With `disagreeing`, intervals include disagreement between annotators.
    """
    count = comparisons(contrasts.values())
    contrasts = {name: each for name, each in contrasts.items() if each.pairs}
    if not contrasts:
        return
    by_size = sorted(contrasts, key=lambda name: -abs(contrasts[name].delta))
    for kind, verb, is_gain in (("loss", "worse", False), ("gain", "better", True)):
        names = [
            name
            for name in by_size
            if contrasts[name].significant and ((contrasts[name].delta > 0) == higher) == is_gain
        ]
        for name in names[:MOST_CHANGES]:
            rest = f": {measured(contrasts[name], settings, count, f' in {label}')}."
            parts = ["", name, *other.parts(f" is significantly {verb} {other.than}", rest)]
            yield {"kind": kind, "parts": parts}
        if more := names[MOST_CHANGES:]:
            others = f"{counted(len(more), 'other system is', 'other systems are')} significantly {verb}"
            yield {"kind": kind, "parts": [f"{others} {other.than.strip()}."]}
    if any(contrast.significant for contrast in contrasts.values()):
        return
    largest = by_size[0]
    queries = counted(contrasts[largest].pairs, "query", "queries")
    begins, within = f"No significant difference from {other.from_}", f" in {label} ({queries})"
    if not contrasts[largest].differ:
        yield {"kind": "same", "parts": other.parts(begins, f"{within}: the values are the same.")}
        return
    size = measured(contrasts[largest], settings, count)
    if disagreeing:
        low, high = contrasts[largest].delta_interval
        level = f"{100 * contrasts[largest].confidence:.3g} % CI {signed(low)} to {signed(high)}"
        size = f"{signed(contrasts[largest].delta)} is within annotators' disagreement ({level})"
    if len(contrasts) == 1:
        yield {"kind": "same", "parts": other.parts(begins, f"{within}: {size}.")}
        return
    parts = [*other.parts(begins, f"{within}; the largest is that of "), largest, f": {size}."]
    yield {"kind": "same", "parts": parts}


def measured(contrast: Contrast, settings: Settings, count: int, of: str = "") -> str:
    """Formats a difference with its CI and p-value; `count` is the number of comparisons in its family."""
    low, high = contrast.delta_interval
    level = f"{100 * contrast.confidence:.3g} % CI"
    between = "" if math.isnan(low) else f"{level} {signed(low)} to {signed(high)}; "
    is_corrected = settings.correction != "none" and count > 1
    note = f" after correction ({settings.correction}) over {counted(count, 'comparison')}" if is_corrected else ""
    chance = p_text(contrast.p_value).replace(" ", NO_BREAK)
    return f"{signed(contrast.delta)}{of} ({between}{chance}{note})"


def _winner(systems: Systems) -> data.Sentence:
    """Names the best system if it beats every other in tests, otherwise the system with the highest mean."""
    best = systems.best
    if best is None or len(systems.names) == 1 or not systems.baseline:
        return best_sentence(systems)
    tied, count = systems.tied, len(systems.names)
    mean, between = systems.mean(best), systems.intervals.get((best, systems.primary))
    over = counted(systems.queries_of(best), "query", "queries")
    level = f"{100 * systems.settings.confidence:g} % CI"
    size = f"{fixed(mean)}" + ("" if between is None else f" ({level} {span(between)})")
    if len(tied) == count:
        same = f"{every(count, 'system')} have the same mean {systems.label}: {size}, {over}."
        return {"kind": "same", "parts": [same]}
    if systems.has_clear_winner:
        rest = f" is the best of {count:,} systems in {systems.label}, significantly so: mean {size}, {over}."
        return {"kind": "best", "parts": ["", best, rest]}
    highest = "highest" if systems.higher else "lowest"
    begins = f"No clear winner among {count:,} systems; {highest} mean {systems.label}: "
    return {"kind": "same", "parts": [begins, *enumerated(tied, f", {size}, {over}.")[1:]]}


def _changes_in_slices(systems: Systems) -> Iterator[data.Sentence]:
    """Describes the largest significant loss and gain over the baseline within a slice."""
    if not systems.is_baseline_named or not systems.is_compared:
        return
    rows = [
        (row.against, part, row.system)
        for part in systems.slices
        for row in part.rows
        if row.metric == systems.primary and row.against is not None and row.against.significant
    ]
    rows.sort(key=lambda row: row[0].delta if systems.higher else -row[0].delta)
    gain = 1 if systems.higher else -1
    ends = [row for row in (*rows[:1], *rows[1:][-1:]) if row]
    for contrast, part, name in ends:
        is_gain = gain * contrast.delta > 0
        verb = "better" if is_gain else "worse"
        queries = counted(contrast.pairs, "query", "queries")
        rest = f": {signed(contrast.delta)} in {systems.label} ({queries}, {p_text(contrast.p_value)})."
        where = f" is significantly {verb} than the baseline where {part.by} = "
        yield {"kind": "gain" if is_gain else "loss", "parts": ["", name, where, part.value, rest]}


def warnings(systems: Systems) -> list[str]:
    """Returns warnings about the primary metric, such as few differing queries or excluded queries."""
    settings = systems.settings
    lines = [f"warning: {text}" for text in doubts(systems.evaluations)]
    contrasts = systems.against_baseline
    tested = {name: each for name, each in contrasts.items() if not math.isnan(each.raw_p_value) and not systems.basis}
    # Bonferroni multiplies p by the family's size; Holm multiplies the last one only by 1.
    factor = len(tested) if settings.correction == "bonferroni" else 1
    # With m queries that differ, the smallest p is 2 ÷ 2^m, times the number of comparisons.
    needed = max(1, math.ceil(1 + math.log2(max(factor, 1) / settings.alpha) - SLACK))
    few = [f"{name} in {systems.label} ({each.differ:,})" for name, each in tested.items() if 0 < each.differ < needed]
    if few:
        where = "every comparison" if 1 < len(few) == len(tested) else _some(few)
        lines.append(
            f"warning: too few queries differ for a randomization test to reach alpha {settings.alpha:g}, which takes "
            f"at least {needed}: {where}"
        )
    least = (1 / (1 + settings.resamples)) * factor
    if least > settings.alpha and settings.draws and not systems.basis:
        lines.append(
            f"warning: {settings.resamples:,} resamples cannot give a p-value below {least:.2g} over {factor:,} "
            "comparisons; increase resamples"
        )
    alone = [f"{name} in {systems.label} {each.unpaired:,}" for name, each in contrasts.items() if each.unpaired]
    if alone:
        lines.append(
            "queries evaluated in only one of the two are excluded from differences: "
            f"{_some(alone)} against {systems.baseline}"
        )
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" … and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"{', '.join(names[:LISTED])}{more}"


# --- Tables.

# Columns hidden on a narrow terminal, in this order; then CIs and raw p, but never corrected p.
SHED = ("differ", "effect", "queries")


def grids(systems: Systems, metrics: Sequence[str]) -> Iterator[Block]:
    """Yields one table per metric with one row per system."""
    level = f"{100 * systems.settings.confidence:g} % CI"
    corrected = corrected_headers(systems.settings)
    for text in metrics:
        contrasts = [row.against for row in systems.rows if row.metric == text and row.against is not None]
        of_delta = f"{100 * (contrasts[0].confidence if contrasts else systems.settings.confidence):.3g} % CI of delta"
        against = ["delta", of_delta, "p", *corrected, "effect", "wins/ties/losses", "differ"]
        headers = [systems.labels[text], "mean", level, "queries", *against]
        rows = [_cells(row, len(corrected)) for row in systems.rows if row.metric == text]
        if systems.audit is not None:
            headers.append("delta by the truth")
            means = {name: mean_of(each[:, 0]) for name, columns in systems.tested.items() for each in [columns[text]]}
            for row in rows:
                row.append("" if row[0] == systems.baseline else signed(means[row[0]] - means[systems.baseline]))
        raw = ["p"] if corrected else []
        yield Table(headers, rows, (*SHED, level, "wins/ties/losses", *raw, of_delta))


def p_header(settings: Settings) -> str:
    """Returns the column header for corrected p-values."""
    return "p" if settings.correction == "none" else f"p ({settings.correction})"


def corrected_headers(settings: Settings) -> list[str]:
    """Returns the header for corrected p-values if p-values are corrected, otherwise an empty list."""
    return [] if settings.correction == "none" else [p_header(settings)]


def delta_text(delta: float | None, *, significant: bool) -> str:
    """Formats a difference, with a mark if it is significant."""
    return marked(signed(delta), significant=significant)


def marked(text: str, *, significant: bool) -> str:
    """Appends a mark if the difference is significant."""
    return text + (tables.MARK if significant else "")


def _cells(row: Row, corrected: int) -> list[Any]:
    mean = [row.system, row.mean, span(row.interval), row.queries]
    contrast = row.against
    if contrast is None:
        return [*mean, "baseline", *[""] * (5 + corrected)]
    delta = [delta_text(contrast.delta, significant=row.significant), span(contrast.delta_interval)]
    p_values = [small(contrast.raw_p_value), small(contrast.p_value)][: 1 + corrected]
    counts = f"{contrast.wins:,}/{contrast.ties:,}/{contrast.losses:,}"
    return [*mean, *delta, *p_values, _effect(contrast.effect_size), counts, f"{contrast.differ:,}"]


def _effect(size: float) -> str:
    if math.isinf(size):
        return "∞" if size > 0 else "-∞"
    return signed(size, 2)


def beside_grid(
    beside: Beside, metric: str, headers: Sequence[str], first: Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Builds a table of comparisons by one metric; `first` has the leading cells of each row (default: the name).

    `headers` name these cells, the number of queries, and the two means.
    """
    contrasts = beside.contrasts(metric)
    level = 100 * next((each.confidence for each in contrasts.values()), 1 - beside.settings.alpha)
    rows: list[list[Any]] = []
    for name, contrast in contrasts.items():
        delta = delta_text(contrast.delta, significant=contrast.significant)
        cells = [contrast.pairs, *beside.means(name, metric), delta, span(contrast.delta_interval)]
        rows.append([*(first or {}).get(name, [name]), *cells, small(contrast.p_value)])
    return Table([*headers, "delta", f"{level:.3g} % CI", p_header(beside.settings)], rows, keep=len(headers) - 3)


def pairs(systems: Systems, metrics: Sequence[str]) -> Iterator[Block]:
    """Yields a table of all pairs of systems for each metric, if pairs were requested."""
    corrected = corrected_headers(systems.settings)
    for text in metrics:
        rows: list[list[Any]] = []
        for pair in (pair for pair in systems.pairs if pair.metric == text):
            contrast = pair.against
            # The mark goes next to the p of the deciding test.
            decisive = marked(small(contrast.p_value), significant=contrast.significant)
            p_values = [small(contrast.raw_p_value), decisive] if corrected else [decisive]
            tukey = marked(small(pair.tukey), significant=pair.tukey <= systems.settings.alpha)
            rows.append([pair.first, pair.second, signed(contrast.delta), *p_values, tukey, contrast.pairs])
        if rows:
            headers = [systems.labels[text], "against", "delta", "p", *corrected, "p (Tukey's HSD)", "queries"]
            yield headers, rows


# --- Figures.


def _against_baseline(systems: Systems) -> Iterator[tuple[str, Contrast]]:
    """Yields each system's comparison with the baseline by the primary metric."""
    for name in systems.names:
        contrast = None if name == systems.baseline else systems.between(name, systems.baseline)
        if contrast is not None:
            yield name, contrast


def differences(systems: Systems) -> Figure:
    """Draws differences from the baseline with CIs."""
    rows = [{"name": name, **_delta(each), "kind": systems.kind(name)} for name, each in _against_baseline(systems)]
    title = f"Differences against {systems.baseline}"
    return figures.forest(rows, about(systems, systems.label), delta=True, title=title)


def _delta(contrast: Contrast | None) -> dict[str, float | None]:
    """Returns a difference and the bounds of its CI as a row for figures."""
    if contrast is None:
        return {"value": None, "low": None, "high": None}
    low, high = interval(contrast.delta_interval) or (None, None)
    return {"value": finite(contrast.delta), "low": low, "high": high}


def outcomes(systems: Systems) -> Figure:
    """Draws wins, ties and losses against the baseline."""
    rows = [
        {"system": name, "outcome": outcome, "count": count}
        for name, each in _against_baseline(systems)
        for outcome, count in (("better", each.wins), ("same", each.ties), ("worse", each.losses))
    ]
    return figures.outcomes(rows, about(systems, systems.label), systems.baseline)


def deltas(systems: Systems, first: str | None = None, second: str | None = None) -> Figure:
    """Draws sorted per-query differences between two systems (default: the best system and the baseline)."""
    against = second or systems.baseline
    others = [name for name in systems.names if name != against]
    chosen = first or (systems.best if systems.best in others else None) or others[0]
    for name in (chosen, against):
        if name not in systems.values:
            raise ConfigError(f"system {name!r} was not compared{near_names(str(name), systems.names)}")
    sign = 1 if systems.higher else -1
    values, other = (systems.values[name][systems.primary] for name in (chosen, against))
    gains = [(sign * gain, place) for place, gain in enumerate((values - other).tolist()) if not math.isnan(gain)]
    rows = []
    for number, (gain, place) in enumerate(sorted(gains, key=lambda item: (-item[0], item[1])), 1):
        kind = "better" if gain > SLACK else "worse" if gain < -SLACK else "same"
        rows.append({"qid": systems.qids[place], "place": number, "delta": sign * gain, "kind": kind})
    mean = _delta(systems.between(chosen, against))
    return figures.deltas(rows, about(systems, systems.label), chosen, against, mean)


FIGURES = {"differences": differences, "queries": deltas, "outcomes": outcomes}


# --- The page.


def page_rows(systems: Systems) -> Iterator[list[Any]]:
    """Yields all differences: from the baseline in table order, between all other pairs, and within slices."""
    names, metrics = systems.names, list(systems.metrics)

    def of_baseline(rows: Sequence[Row]) -> dict[Key, Contrast]:
        return {(row.system, systems.baseline, row.metric): row.against for row in rows if row.against is not None}

    families = [(-1, of_baseline(systems.rows)), (-1, systems.others)]
    if systems.slices:
        places = {(part["by"], part["value"]): place for place, part in enumerate(systems.first.slices)}
        families += [(places[part.by, part.value], of_baseline(part.rows)) for part in systems.slices]
    for within, contrasts in chain(families, systems.others_within()):
        for (first, second, text), each in contrasts.items():
            yield [
                *(names.index(first), names.index(second), metrics.index(text), within),
                *(finite(each.delta), interval(each.delta_interval), each.pairs, each.wins, each.ties, each.losses),
                *map(finite, (each.raw_p_value, each.p_value, each.effect_size, each.confidence)),
                int(each.significant),
            ]


def templates(systems: Systems) -> dict[str, data.Drawing]:
    """Returns templates for the difference figures."""
    label, stated, nothing = systems.label, about(systems, systems.label), _delta(None)
    sizes = {f"difference in {label}": "$label"}
    return {
        "differences": template(differences(systems), sizes),
        "outcomes": template(outcomes(systems), {f"than {systems.baseline}": "$label"}),
        "queries": template(figures.deltas([], stated, "", "", nothing, bars=True), sizes),
        "queries many": template(figures.deltas([], stated, "", "", nothing, bars=False), sizes),
    }
