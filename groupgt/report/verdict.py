"""Opening sentences of a comparison on the primary metric: changes from the baseline, the best system, and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import SLACK
from groupgt.render.page import data
from groupgt.render.tables import counted, fixed, listed, p_text, signed, span
from groupgt.report import headroom
from groupgt.report.sentences import doubt, doubts, enumerated, every, sentence_of

NO_BREAK = "\u00a0"
# More comparisons than this are only counted, not named.
LISTED = 5
# Systems that the sentences name.
MOST_CHANGES = 3


def sentences(systems: Systems, *, brief: bool = False) -> Iterator[data.Sentence]:
    """Yields all sentences in reading order; a `brief` verdict reports only changes if there are any."""
    is_compared = len(systems.names) > 1 and systems.is_baseline_named
    if is_compared:
        yield from changes(
            systems.against_baseline,
            Other("than the baseline ", "the baseline ", systems.baseline),
            systems.label,
            systems.settings,
            higher=systems.higher,
            disagreeing=systems.annotators_differ,
        )
    if not (brief and is_compared and not any(each.differ for each in systems.against_baseline.values())):
        yield best_sentence(systems)
    yield from _changes_in_slices(systems)
    if not brief:
        yield from headroom.sentences(systems)
    for warning in warnings(systems):
        yield doubt(warning.removeprefix("warning: "))


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
    significant = [(name, (contrasts[name].delta > 0) == higher) for name in by_size if contrasts[name].significant]
    for kind, verb, is_gain in (("loss", "worse", False), ("gain", "better", True)):
        names = [name for name, gains in significant if gains == is_gain]
        for name in names[:MOST_CHANGES]:
            rest = f": {measured(contrasts[name], settings, count, f' in {label}')}."
            yield sentence_of(kind, "", name, *other.parts(f" is significantly {verb} {other.than}", rest))
        if more := names[MOST_CHANGES:]:
            others = f"{counted(len(more), 'other system is', 'other systems are')} significantly {verb}"
            yield sentence_of(kind, f"{others} {other.than.strip()}.")
    if significant:
        return
    largest = by_size[0]
    queries = counted(contrasts[largest].pairs, "query")
    begins, within = f"No significant difference from {other.from_}", f" in {label} ({queries})"
    if not contrasts[largest].differ:
        yield sentence_of("same", *other.parts(begins, f"{within}: the values are the same."))
        return
    size = measured(contrasts[largest], settings, count)
    if disagreeing:
        low, high = contrasts[largest].delta_interval
        level = f"{100 * contrasts[largest].confidence:.3g} % CI {signed(low)} to {signed(high)}"
        size = f"{signed(contrasts[largest].delta)} is within annotators' disagreement ({level})"
    if len(contrasts) == 1:
        yield sentence_of("same", *other.parts(begins, f"{within}: {size}."))
        return
    yield sentence_of("same", *other.parts(begins, f"{within}; largest difference: "), largest, f", {size}.")


def measured(contrast: Contrast, settings: Settings, count: int, of: str = "") -> str:
    """Formats a difference with its CI and p-value; `count` is the number of comparisons in its family."""
    low, high = contrast.delta_interval
    level = f"{100 * contrast.confidence:.3g} % CI"
    between = "" if math.isnan(low) else f"{level} {signed(low)} to {signed(high)}; "
    is_corrected = settings.correction != "none" and count > 1
    note = f" after correction ({settings.correction}) over {counted(count, 'comparison')}" if is_corrected else ""
    chance = p_text(contrast.p_value).replace(" ", NO_BREAK)
    return f"{signed(contrast.delta)}{of} ({between}{chance}{note})"


def best_sentence(systems: Systems) -> data.Sentence:
    """Names the best system if it beats every other in tests, otherwise the system with the best mean."""
    best = systems.best
    if best is None:
        return doubt("No queries to evaluate, so there is no mean")
    between = systems.intervals.get((best, systems.primary))
    interval = "" if between is None else f" ({100 * systems.settings.confidence:g} % CI {span(between)})"
    mean, over = f"{fixed(systems.mean(best))}{interval}", counted(systems.queries_of(best), "query")
    label, tied, count = systems.label, systems.tied, len(systems.names)
    kind = "best"
    if count == 1:
        parts = ["", best, f" has a mean {label} of {mean} over {over}."]
    elif systems.baseline and systems.has_clear_winner:
        parts = ["", best, f" is the best of {count:,} systems in {label}, significantly so: mean {mean}, {over}."]
    elif systems.baseline:
        kind = "same"
        begins = f"No clear winner among {count:,} systems; {'highest' if systems.higher else 'lowest'} mean {label}: "
        parts = [begins, *enumerated(tied, f", {mean}, {over}.")[1:]]
        if len(tied) == count:
            parts = [f"{every(count, 'system')} have the same mean {label}: {mean}, {over}."]
    elif len(tied) == count:
        parts = [f"{every(count, 'system')} have the same mean {label} of {mean} over {over}."]
    elif len(tied) > 1:
        parts = enumerated(tied, f" are tied for the highest mean {label} of {count:,} systems: {mean} over {over}.")
    else:
        parts = ["", best, f" has the highest mean of {count:,} systems: {label} of {mean} over {over}."]
    return sentence_of(kind, *parts)


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
    for contrast, part, name in (*rows[:1], *rows[1:][-1:]):
        is_gain = contrast.delta > 0 if systems.higher else contrast.delta < 0
        verb = "better" if is_gain else "worse"
        queries = counted(contrast.pairs, "query")
        rest = f": {signed(contrast.delta)} in {systems.label} ({queries}, {p_text(contrast.p_value)})."
        where = f" is significantly {verb} than the baseline where {part.by} = "
        yield sentence_of("gain" if is_gain else "loss", "", name, where, part.value, rest)


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
        where = "every comparison" if 1 < len(few) == len(tested) else listed(few, LISTED, " … and {:,} more")
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
            f"{listed(alone, LISTED, ' … and {:,} more')} against {systems.baseline}"
        )
    return lines
