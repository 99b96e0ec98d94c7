"""Opening sentences of a comparison on the primary metric: changes from the baseline, the best system, and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.reach import counts_signs, fewest_differing, is_unreliable, least_p, out_of_reach
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import ENOUGH, TESTS
from groupgt.render.page import data
from groupgt.render.tables import counted, fixed, listed, p_text, signed, span
from groupgt.report import headroom
from groupgt.report.contrasts import level, more_resamples
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
    disagreeing: bool = False,
) -> Iterator[data.Sentence]:
    """Describes significant losses, then gains, largest first; if there are none, describes the largest difference.

    With `disagreeing`, intervals include disagreement between annotators.
    """
    count = comparisons(contrasts.values())
    contrasts = {name: each for name, each in contrasts.items() if each.pairs}
    if not contrasts:
        return
    by_size = sorted(contrasts, key=lambda name: -abs(_size(contrasts[name])))
    for kind, verb in (("loss", "worse"), ("gain", "better")):
        names = [name for name in by_size if contrasts[name].standing == verb]
        for name in names[:MOST_CHANGES]:
            rest = f"{by_ranks(contrasts[name])}: {measured(contrasts[name], settings, count, f' in {label}')}."
            yield sentence_of(kind, "", name, *other.parts(f" is significantly {verb} {other.than}", rest))
        if more := names[MOST_CHANGES:]:
            others = f"{counted(len(more), 'other system is', 'other systems are')} significantly {verb}"
            yield sentence_of(kind, f"{others} {other.than.strip()}.")
    if any(each.significant for each in contrasts.values()):
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
        interval = f"{level(contrasts[largest])} {signed(low)} to {signed(high)}"
        size = f"{signed(contrasts[largest].delta)} is within annotators' disagreement ({interval})"
    if len(contrasts) == 1:
        yield sentence_of("same", *other.parts(begins, f"{within}: {size}."))
        return
    yield sentence_of("same", *other.parts(begins, f"{within}; largest difference: "), largest, f", {size}.")


def _size(contrast: Contrast) -> float:
    """Returns what the test compares: the difference of means, or of ranks."""
    return contrast.delta if contrast.ranks is None else contrast.ranks


def by_ranks(contrast: Contrast) -> str:
    """Returns words for a decision about ranks, to follow a sentence about a difference; empty for means."""
    return "" if contrast.ranks is None else " by ranks"


def measured(contrast: Contrast, settings: Settings, count: int, of: str = "", correction: str = "") -> str:
    """Formats a difference with its CI and p-value; `count` is the number of comparisons in its family.

    With a test of ranks, the difference is that of ranks. `correction` replaces that of the settings.
    """
    correction = correction or settings.corrects
    if reason := undefined(contrast, settings):
        return f"{signed(contrast.delta)}{of} ({reason})"
    low, high = contrast.delta_interval
    between = "" if math.isnan(low) else f"{level(contrast)} {signed(low)} to {signed(high)}; "
    size = signed(contrast.delta)
    if contrast.ranks is not None:
        size = f"{signed(contrast.ranks, 2)} of all signed ranks"
        between = f"better on {counted(contrast.wins, 'query')}, worse on {contrast.losses:,}; "
    is_corrected = correction != "none" and count > 1
    note = f" after correction ({correction}) over {counted(count, 'comparison')}" if is_corrected else ""
    chance = p_text(contrast.p_value).replace(" ", NO_BREAK)
    return f"{size}{of} ({between}{chance}{note})"


def of_two(
    first: str, second: str, contrast: Contrast, label: str, settings: Settings, count: int, correction: str
) -> data.Sentence:
    """Describes the difference between two systems, significant or not, and on how many queries each is better."""
    kind = {"better": "gain", "worse": "loss"}.get(contrast.standing, "same")
    decided = f" is significantly {contrast.standing} than " if contrast.significant else None
    size = measured(contrast, settings, count, f" in {label}", correction)
    counts = f"It is better on {counted(contrast.wins, 'query')}, worse on {contrast.losses:,}, and the same on "
    effect = contrast.effect_size
    rest = f": {size}. {counts}{contrast.ties:,}." + (
        f" Effect size {signed(effect, 2)}." if math.isfinite(effect) else ""
    )
    return sentence_of(
        kind, "", first, decided or " is not significantly different from ", second, by_ranks(contrast) + rest
    )


def undefined(contrast: Contrast, settings: Settings) -> str:
    """Explains why a test has no p-value for a difference that is known; empty if it has one."""
    if not math.isnan(contrast.raw_p_value) or math.isnan(contrast.delta) or contrast.pairs < 1:
        return ""
    why = "all differences are the same" if contrast.pairs > 1 else "there is only one query"
    return f"the {settings.test} test is undefined: {why}"


def unreliable(contrasts: Mapping[str, Contrast], settings: Settings) -> str:
    """Recommends the default test where so few queries differ that only it is reliable; empty if all have enough."""
    few = {name: each for name, each in contrasts.items() if is_unreliable(each, settings)}
    if not few:
        return ""
    where = listed([f"{name} {each.differ:,}" for name, each in few.items()], LISTED, " … and {:,} more")
    return (
        f"fewer than {ENOUGH} queries differ ({where}), too few for the {settings.test} test; "
        "the default, --test randomization, is exact for them"
    )


def best_sentence(systems: Systems) -> data.Sentence:
    """Names the best system if it beats every other in tests, otherwise the system with the best mean."""
    best = systems.best
    if best is None:
        return doubt("No queries to evaluate, so there is no mean")
    between = systems.intervals.get((best, systems.primary))
    interval = "" if between is None else f" ({100 * systems.settings.confidence:g}% CI {span(between)})"
    mean, over = f"{fixed(systems.mean(best))}{interval}", counted(systems.queries_of(best), "query")
    label, tied, count = systems.label, systems.tied, len(systems.names)
    kind, highest = "best", systems.extreme
    if count == 1:
        parts = ["", best, f" has a mean {label} of {mean} over {over}."]
    elif systems.baseline and systems.has_clear_winner and not TESTS[systems.settings.test].compares_means:
        begins = f" ranks significantly above {'the other system' if count == 2 else 'every other system'} in {label}"
        parts = ["", best, f"{begins}; its mean is {mean}, {over}."]
    elif systems.baseline and systems.has_clear_winner:
        parts = ["", best, f" is the best of {count:,} systems in {label}, significantly so: mean {mean}, {over}."]
    elif systems.baseline:
        kind = "same"
        begins = f"No clear winner among {count:,} systems; {highest} mean {label}: "
        parts = [begins, *enumerated(tied, f", {mean}, {over}.")[1:]]
        if len(tied) == count:
            parts = [f"{every(count, 'system')} have the same mean {label}: {mean}, {over}."]
    elif len(tied) == count:
        parts = [f"{every(count, 'system')} have the same mean {label} of {mean} over {over}."]
    elif len(tied) > 1:
        parts = enumerated(tied, f" are tied for the {highest} mean {label} of {count:,} systems: {mean} over {over}.")
    else:
        parts = ["", best, f" has the {highest} mean of {count:,} systems: {label} of {mean} over {over}."]
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
    rows.sort(key=lambda row: row[0].favors * abs(_size(row[0])))
    for contrast, part, name in (*rows[:1], *rows[1:][-1:]):
        queries = counted(contrast.pairs, "query")
        ranks = by_ranks(contrast)
        size = f"{signed(contrast.ranks, 2)} of all signed ranks" if ranks else signed(contrast.delta)
        rest = f"{ranks}: {size} in {systems.label} ({queries}, {p_text(contrast.p_value)})."
        where = f" is significantly {contrast.standing} than the baseline where {part.by} = "
        yield sentence_of("gain" if contrast.standing == "better" else "loss", "", name, where, part.value, rest)


def too_few(contrasts: Mapping[str, Contrast], label: str, settings: Settings) -> Iterator[str]:
    """Warns about contrasts that a test cannot decide: too few queries differ, or too few resamples are drawn."""
    tested = {name: each for name, each in contrasts.items() if not math.isnan(each.raw_p_value)}
    least = out_of_reach(tested, settings)
    few = {name: p for name, p in least.items() if counts_signs(tested[name], settings)}
    if few:
        factor = min(p / least_p(tested[name], settings) for name, p in few.items())
        names = [f"{name} in {label} ({tested[name].differ:,})" for name in few]
        test = "a randomization test" if settings.test == "randomization" else TESTS[settings.test].title
        where = "every comparison" if 1 < len(few) == len(tested) else listed(names, LISTED, " … and {:,} more")
        yield (
            f"too few queries differ for {test} to reach alpha {settings.alpha:g}, which takes at least "
            f"{fewest_differing(settings.alpha, factor)}: {where}"
        )
    if drawn := [p for name, p in least.items() if name not in few]:
        yield more_resamples(min(drawn), settings, len(tested))
    if doubtful := unreliable(tested, settings):
        yield doubtful


def warnings(systems: Systems) -> list[str]:
    """Returns warnings about the primary metric, such as few differing queries or excluded queries."""
    settings = systems.settings
    lines = [f"warning: {text}" for text in doubts(systems.evaluations)]
    contrasts = systems.against_baseline
    lines += [f"warning: {text}" for text in too_few({} if systems.basis else contrasts, systems.label, settings)]
    alone = [f"{name} in {systems.label} {each.unpaired:,}" for name, each in contrasts.items() if each.unpaired]
    if alone:
        lines.append(
            "queries evaluated in only one of the two are excluded from differences: "
            f"{listed(alone, LISTED, ' … and {:,} more')} against {systems.baseline}"
        )
    return lines
