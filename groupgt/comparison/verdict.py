"""What is to be concluded of a comparison, in sentences: who is best, by how much, whether that is real, and doubts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.pictures import Differences
from groupgt.comparison.tests import SLACK
from groupgt.evaluation.verdict import NAMED, best_sentence, doubt
from groupgt.render.page import data
from groupgt.render.tables import counted, p_text, signed

NO_BREAK = "\u00a0"


def verdict(found: Differences) -> Iterator[data.Sentence]:
    """All sentences, in the order in which they are read."""
    yield best_sentence(found.systems)
    yield from _leads(found)
    yield from _losses(found)
    yield from _doubts(found)


def _leads(found: Differences) -> Iterator[data.Sentence]:
    """By how much the best leads the baseline and the next best, and whether that is real."""
    systems, baseline = found.systems, found.table.baseline
    best = systems.best
    if best is None or len(systems.names) < 2:
        return
    tied = systems.tied
    if len(tied) == len(systems.names):
        return
    if found.has_baseline and baseline in tied:
        same = ["It is the baseline: no other system is better."] if len(tied) == 1 else _unbeaten(baseline)
        yield {"kind": "same", "parts": same}
    elif best != baseline and (each := found.between(best, baseline)) is not None:
        over = comparisons(found.table.rows) if found.is_compared else len(found.pairs)
        yield _lead(found, "the baseline ", baseline, each, over)
    means = {name: mean for name in systems.names if (mean := systems.mean(name)) is not None}
    others = [name for name in means if name != baseline and name not in tied]
    if others:
        choose = max if systems.higher else min
        following = choose(others, key=means.__getitem__)
        if (each := found.between(best, following)) is not None:
            over = comparisons(found.table.rows) if best == baseline and found.is_compared else len(found.pairs)
            yield _lead(found, "the next best, ", following, each, over, ",")


def _unbeaten(baseline: str) -> list[str]:
    return ["No system is better than the baseline ", baseline, "."]


def _subject(found: Differences) -> list[str]:
    """The best system as the beginning of a sentence: by its name, where the sentence before named several."""
    tied = found.systems.tied
    return ["It", ""] if len(tied) == 1 else ["", tied[0]]


def _lead(found: Differences, who: str, name: str, each: Contrast, over: int, comma: str = "") -> data.Sentence:
    settings = found.table.settings
    real = each.p_value <= settings.alpha
    low, high = each.delta_interval
    between = "" if math.isnan(low) else f" (interval {signed(low)} to {signed(high)})"
    sure, doubt = (" significantly, by", "") if real else (" by", ", which may be chance")
    corrected = settings.correction != "none" and over > 1
    note = f" after correction for {counted(over, 'comparison')} ({settings.correction})" if corrected else ""
    counts = f"better on {counted(each.wins, 'query', 'queries')}, worse on {each.losses:,}"
    chance = p_text(each.p_value).replace(" ", NO_BREAK)
    said = f"{comma}{sure} {signed(each.delta)}{between}{doubt}: {chance}{note}; {counts}."
    return {"kind": "gain" if real else "same", "parts": [*_subject(found), f" leads {who}", name, said]}


def _losses(found: Differences) -> Iterator[data.Sentence]:
    """On what the best loses to the baseline: the slice in which it loses most."""
    best, baseline, primary = found.systems.best, found.table.baseline, found.systems.primary
    if best is None or best == baseline:
        return
    lost = []
    for part in found.table.slices:
        row = part.index.get((best, primary))
        gain = math.nan if row is None or not row.pairs else row.delta if found.systems.higher else -row.delta
        if row is not None and gain < -SLACK:
            lost.append((gain, part, row))
    if lost:
        _, part, row = min(lost, key=lambda each: each[0])
        real = "significant" if row.significant else "not significant"
        said = f": {signed(row.delta)} over {counted(row.pairs, 'query', 'queries')} ({real})."
        yield {
            "kind": "loss",
            "parts": [*_subject(found), f" loses to the baseline where {part.by} = ", part.value, said],
        }


def _doubts(found: Differences) -> Iterator[data.Sentence]:
    """What nobody solves, and what keeps a reader from concluding too much."""
    failures = found.table.failures
    if failures is not None and failures.nobody:
        within = ""
        if failures.cutoff is not None:
            within = (
                f" within {failures.cutoff:,} results" if isinstance(failures.cutoff, int) else f" @{failures.cutoff}"
            )
        who = "No system meets" if len(found.systems.names) > 1 else "It does not meet"
        count = f"{len(failures.nobody):,} of {counted(int(failures.counted.sum()), 'query', 'queries')}"
        parts = [f"{who} all groups{within} for {count}: "]
        for name in failures.nobody[:NAMED]:
            parts += [name, ", "]
        parts[-1] = " …" if len(failures.nobody) > NAMED else "."
        yield {"kind": "note", "parts": parts}
    for warning in found.table.warnings:
        yield doubt(warning.removeprefix("warning: "))
