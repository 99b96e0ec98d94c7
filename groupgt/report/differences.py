"""Describe differences between two systems, runs or data sets, and warn about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.draws import ENOUGH
from groupgt.comparison.reach import counts_signs, fewest_differing, is_unreliable, least_p, out_of_reach
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import TESTS
from groupgt.evaluation.trials import p_of_f, values_in_trials
from groupgt.render.columns import level_text, signed_span
from groupgt.render.page import data
from groupgt.render.tables import DIGITS, counted, p_text, shortlist, signed
from groupgt.report.contrasts import more_resamples
from groupgt.report.decision import in_slices
from groupgt.report.evidence import by_size, method_name, tied_text
from groupgt.report.sentences import WHOLE, differing_as_a_whole, sentence_of, warning, warnings_about

NO_BREAK = "\u00a0"
# More comparisons than this are only counted, not named.
LISTED = 5
# Systems that the sentences name.
MOST_CHANGES = 3


class Other(NamedTuple):
    """The other side of a comparison, with its name and the phrases that follow `worse` and `different from`."""

    than: str
    from_: str
    name: str = ""

    def parts(self, words: str, rest: str) -> list[str]:
        """Return sentence parts: the text before the name, the name, and the text after it."""
        return [words, self.name, rest] if self.name else [words + rest]


def changes(contrasts: Mapping[str, Contrast], other: Other, label: str, settings: Settings) -> Iterator[data.Sentence]:
    """Describe significant losses, then gains, largest first. If no difference is significant, describe the largest."""
    count = comparisons(contrasts.values())
    contrasts = {name: each for name, each in contrasts.items() if each.pairs}
    if not contrasts:
        return
    ordered = by_size(contrasts)
    for kind, verb in (("loss", "worse"), ("gain", "better")):
        names = [name for name in ordered if contrasts[name].standing == verb]
        for name in names[:MOST_CHANGES]:
            rest = f"{by_ranks(contrasts[name])}: {measured(contrasts[name], settings, count, f' in {label}')}."
            yield sentence_of(kind, "", name, *other.parts(f" is significantly {verb} {other.than}", rest))
        if more := names[MOST_CHANGES:]:
            others = f"{counted(len(more), 'other system is', 'other systems are')} significantly {verb}"
            yield sentence_of(kind, f"{others} {other.than.strip()}.")
    if any(each.significant for each in contrasts.values()):
        return
    largest = ordered[0]
    queries = counted(contrasts[largest].pairs, "query")
    begins, within = f"No significant difference from {other.from_}", f" in {label} ({queries})"
    if not contrasts[largest].differ:
        yield sentence_of("same", *other.parts(begins, f"{within}: the values are the same."))
        return
    size = measured(contrasts[largest], settings, count)
    if len(contrasts) == 1:
        yield sentence_of("same", *other.parts(begins, f"{within}: {size}."))
    else:
        tied = tied_text(contrasts, ordered, {name: name for name in ordered})
        yield sentence_of("same", *other.parts(begins, f"{within}. Largest difference: "), largest, f"{tied}, {size}.")


def by_ranks(contrast: Contrast) -> str:
    """Return ` by ranks` (to follow a difference) if the test compares ranks, otherwise an empty text."""
    return "" if contrast.ranks is None else " by ranks"


def measured(contrast: Contrast, settings: Settings, count: int, of: str = "", correction: str = "") -> str:
    """Format a difference with its CI and p-value. `count` is the number of comparisons in the family."""
    correction = correction or settings.corrects
    if reason := undefined(contrast, settings):
        return f"{signed(contrast.delta, DIGITS)}{of} ({reason})"
    ends = contrast.delta_interval
    between = "" if math.isnan(ends[0]) else f"{level_text(contrast.confidence)} {signed_span(ends, DIGITS)}; "
    size = signed(contrast.delta, DIGITS)
    if contrast.ranks is not None:
        size = f"{signed(contrast.ranks, 2)} of all signed ranks"
        between = f"better on {counted(contrast.wins, 'query')}, worse on {contrast.losses:,}; "
    is_corrected = correction != "none" and count > 1
    note = f" after correction ({method_name(correction)}) for {counted(count, 'comparison')}" if is_corrected else ""
    chance = p_text(contrast.p_value, DIGITS).replace(" ", NO_BREAK)
    return f"{size}{of} ({between}{chance}{note})"


def of_two(
    first: str, second: str, contrast: Contrast, label: str, settings: Settings, count: int, correction: str
) -> data.Sentence:
    """Describe the difference between two systems, significant or not, and on how many queries each is better."""
    kind = {"better": "gain", "worse": "loss"}.get(contrast.standing, "same")
    than = f"significantly {contrast.standing} than" if contrast.significant else "not significantly different from"
    size = measured(contrast, settings, count, f" in {label}", correction)
    counts = f"It is better on {counted(contrast.wins, 'query')}, worse on {contrast.losses:,}, and the same on "
    effect = f" Effect size {signed(contrast.effect_size, 2)}." if math.isfinite(contrast.effect_size) else ""
    rest = f"{by_ranks(contrast)}: {size}. {counts}{contrast.ties:,}.{effect}"
    return sentence_of(kind, "", first, f" is {than} ", second, rest)


def undefined(contrast: Contrast, settings: Settings) -> str:
    """Explain why a test has no p-value for a known difference. The text is empty if the test has a p-value."""
    if not math.isnan(contrast.raw_p_value) or math.isnan(contrast.delta) or contrast.pairs < 1:
        return ""
    why = "all differences are the same" if contrast.pairs > 1 else "there is only one query"
    return f"the {settings.test} test is undefined, because {why}"


def unreliable(contrasts: Mapping[str, Contrast], settings: Settings) -> str:
    """Recommend the default test if too few queries differ for the chosen test to be reliable."""
    few = [f"{name} {each.differ:,}" for name, each in contrasts.items() if is_unreliable(each, settings)]
    if not few:
        return ""
    where = shortlist(few, LISTED, " … and {:,} more")
    why = f"fewer than {ENOUGH} queries differ ({where}), too few for the {settings.test} test"
    return f"{why}. The default, --test randomization, is exact even then"


def too_few(contrasts: Mapping[str, Contrast], label: str, settings: Settings) -> Iterator[str]:
    """Warn about contrasts that a test cannot decide with so few differing queries or resamples."""
    tested = {name: each for name, each in contrasts.items() if not math.isnan(each.raw_p_value)}
    least = out_of_reach(tested, settings)
    few = {name: p for name, p in least.items() if counts_signs(tested[name], settings)}
    if few:
        factor = min(p / least_p(tested[name], settings) for name, p in few.items())
        names = [f"{name} {tested[name].differ:,}" for name in few]
        test = "A randomization test" if settings.test == "randomization" else TESTS[settings.test].title
        start = f"too few queries differ in {label} ({shortlist(names, LISTED, ' … and {:,} more')})"
        if len(few) == 1:
            (name,) = few
            start = f"{name} differs on only {counted(tested[name].differ, 'query')} in {label}"
        elif len(few) == len(tested):
            start = f"too few queries differ in {label} in every comparison"
        least_queries = fewest_differing(settings.alpha, factor)
        yield f"{start}. {test} needs at least {least_queries:,} to reach alpha {settings.alpha:g}"
    if drawn := [p for name, p in least.items() if name not in few]:
        yield more_resamples(min(drawn), settings, len(tested))
    if text := unreliable(tested, settings):
        yield text


def notes(systems: Systems, told: str = "") -> Iterator[data.Sentence]:
    """Yield a decision's largest loss and gain within slices (except those already in `told`), then its warnings."""
    rows = list(in_slices(systems))
    for name, standing, text in (*rows[:1], *rows[1:][-1:]):
        if text not in told:
            kind = "gain" if standing == "better" else "loss"
            yield sentence_of(kind, "By slice: ", name, f" is significantly {standing} on {text}.")
    yield from map(warning, systems.warned)
    for line in warnings(systems):
        yield warning(line.removeprefix("warning: "))


def whole(systems: Systems) -> Iterator[str]:
    """Warn if the trials of a system and the baseline differ as a whole when combined, but not separately."""
    for name in systems.against_baseline if systems.evaluations and systems.is_baseline_named else ():
        pair = [systems.evaluations[each] for each in (name, systems.baseline)]
        values = [each for one in pair if (each := values_in_trials(one, systems.primary)) is not None]
        if any(one.is_build for one in pair):
            continue
        if len(values) == 2 and (p_value := p_of_f(values)) < WHOLE and all(p_of_f([each]) >= WHOLE for each in values):
            yield differing_as_a_whole([each.name for each in pair], systems.label, p_value)


def warnings(systems: Systems) -> list[str]:
    """Return warnings about the primary metric, such as few differing queries or excluded queries."""
    # Without a baseline, no difference from the first system is shown.
    contrasts = systems.against_baseline if systems.is_baseline_named else {}
    undecided = too_few({} if systems.basis else contrasts, systems.label, systems.settings)
    found = chain(warnings_about(systems.evaluations), whole(systems), undecided)
    lines = [f"warning: {text}" for text in found]
    alone = [f"{name} in {systems.label} {each.unpaired:,}" for name, each in contrasts.items() if each.unpaired]
    if alone:
        exclude = f"differences from {systems.baseline} exclude queries evaluated for only one of the two systems"
        lines.append(f"{exclude}: {shortlist(alone, LISTED, ' … and {:,} more')}")
    return lines
