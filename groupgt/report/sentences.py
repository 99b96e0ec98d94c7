"""Build sentences from names and numbers, including warnings that limit the conclusions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from groupgt.engines.order import WAY_OUT
from groupgt.evaluation.misses import Failures
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.trials import noise_of
from groupgt.model.validity import shown
from groupgt.render.tables import counted, p_text, shortlist

if TYPE_CHECKING:
    from groupgt.render.page.data import Sentence

K = TypeVar("K")
V = TypeVar("V")
# Maximum number of names in a sentence.
NAMED = 3
# The p-value below which trials differ as a whole.
WHOLE = 0.05


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Collect values by key, in order of appearance."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def unit_of(evaluations: Iterable[Evaluated | Failures]) -> str:
    """Return the unit of the ground truth: groups, or relevant documents if it is flat."""
    return "relevant document" if any(each.truth.shape == "flat" for each in evaluations) else "group"


def at_cutoff(cutoff: object) -> str:
    """Format the cutoff at which queries are complete, for use in a sentence."""
    return "" if cutoff is None else f" at {cutoff:,}" if isinstance(cutoff, int) else f" at {cutoff}"


def every(count: int, one: str) -> str:
    """Return a phrase for all items, such as `Both runs` or `All 3 runs`."""
    return f"The {one}" if count == 1 else f"Both {one}s" if count == 2 else f"All {count:,} {one}s"


def enumerated(names: Sequence[str], then: str) -> list[str]:
    """Return sentence parts that begin with a list of names. Long lists are shortened."""
    parts: list[str] = []
    for place, name in enumerate(names[:NAMED]):
        parts += ["" if not place else " and " if place == len(names) - 1 else ", ", name]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return [*parts, f"{more}{then}"]


def appended(parts: Sequence[str], between: str, name: str, then: str) -> list[str]:
    """Append a name and text to sentence parts, so that every second part is still a name."""
    return [*parts[:-1], parts[-1] + between, name, then]


def warnings_about(evaluations: Mapping[str, Evaluated]) -> Iterator[str]:
    """Warn about means that may mislead because results are missing or repeated, or no query was evaluated."""
    if not evaluations:
        return
    runs_of = grouped(
        ((each.counts["missing"], int(each.populations.defined.sum()), each.policy.missing), name)
        for name, each in evaluations.items()
    )
    for (missing, total, rule), names in runs_of.items():
        if not missing or (rule == "skip" and 2 * missing <= total):
            continue
        who = f"{shortlist(names, NAMED)} {'has' if len(names) == 1 else 'have'}"
        if missing == total:
            yield f"{who} no results for any of {counted(total, 'query')}. Are these the right files?"
            continue
        most = ", more than half" if 2 * missing > total else ""
        then = "which score 0 (policy missing=zero; missing=skip excludes them)"
        if rule == "skip":
            then = "which means exclude (policy missing=skip; missing=zero scores them as 0)"
        lacking = np.all([evaluations[name].populations.missing for name in names], axis=0)
        example = (
            f" (such as {shown(evaluations[names[0]].truth.qids[int(lacking.argmax())])})" if lacking.any() else ""
        )
        yield f"{who} no results for {missing:,} of {counted(total, 'query')}{example}{most}, {then}"
    for each in evaluations.values():
        yield from _of_trials(each)
    first = next(iter(evaluations.values()))
    if not first.populations.defined.any() and not first.valued.any():
        yield "no query has a group that can be covered, so there are no means"
    repeating = _counted_runs(evaluations, "duplicates")
    if repeating and first.policy.duplicates in ("penalize", "keep"):
        penalized = "Repeats keep their rank but count as non-relevant"
        meaning = penalized if first.policy.duplicates == "penalize" else "Every repeat counts"
        yield f"queries with a repeated result: {repeating}. {meaning} (policy duplicates={first.policy.duplicates})"
    for is_declared, order in ((False, "rise"), (True, "fall, although declared as ascending,")):
        runs = {name: each for name, each in evaluations.items() if each.first.run.ascending == is_declared}
        if rising := _counted_runs(runs, "rising_scores"):
            way = "" if is_declared else f". Sort the results by score or, {WAY_OUT}"
            yield f"queries whose scores {order} from first to last result: {rising}. groupgt keeps that order{way}"
        if rising := _counted_runs(runs, "rising_rows"):
            best, way = ("lowest", "") if is_declared else ("highest", f"; {WAY_OUT}")
            what = f"queries whose scores {order} from first to last row: {rising}"
            yield f"{what}. groupgt sorts rows, {best} first{way}"
        if contradicted := _counted_runs(runs, "contradicted_ranks"):
            way = ", lowest first, as declared" if is_declared else f"; {WAY_OUT}"
            yield f"queries whose ranks contradict their scores: {contradicted}. groupgt sorts by score{way}"


def _counted_runs(evaluations: Mapping[str, Evaluated], name: str) -> str:
    """List the runs with a nonzero count, each with its count, or return an empty text."""
    counts = {run: evaluation.counts.get(name, 0) for run, evaluation in evaluations.items()}
    named = [f"{run} {count:,}" for run, count in counts.items() if count]
    return shortlist(named, NAMED, " and {:,} more runs") if named else ""


def subject(name: str) -> list[str]:
    """Return the beginning of a sentence about a run: its name, or `The run` if it has none."""
    return ["The run", ""] if name in ("", "results") else ["", name]


def sentence_of(kind: str, *parts: str) -> Sentence:
    """Return a sentence of this kind, made of parts. Every second part is a name."""
    return {"kind": kind, "parts": list(parts)}


def warning(text: str) -> Sentence:
    """Turn a warning into a sentence without changing its capitalization."""
    return sentence_of("doubt", text if text.endswith("?") else f"{text}.")


def _of_trials(evaluation: Evaluated) -> Iterator[str]:
    """Warn about queries without results in some trials, and about trials that differ as a whole."""
    if not evaluation.repeats:
        return
    absent = np.any([~each.labelled.present for each in evaluation.repeats], axis=0) & ~evaluation.populations.absent
    if queries := int((absent & evaluation.populations.defined).sum()):
        rule = {"zero": "which score 0 in those trials", "skip": "which their means exclude"}.get(
            evaluation.policy.missing, ""
        )
        yield f"{evaluation.name} has no results in some of its trials for {counted(queries, 'query')}, {rule}"
    for text in [] if evaluation.is_build else list(evaluation.values)[:1]:
        noise = noise_of(evaluation, text)
        if noise is not None and noise.whole_p_value < WHOLE:
            yield differing_as_a_whole([evaluation.name], evaluation.label_of(text), noise.whole_p_value)


def differing_as_a_whole(names: Sequence[str], label: str, p_value: float) -> str:
    """Warn that trials differ as a whole, as separate builds of an index do."""
    return (
        f"the trials of {' and '.join(names)} differ as a whole in {label} (F test, {p_text(p_value)}), as builds of "
        "an index do. Intervals and p-values cover these builds only. To cover other builds, name the column build "
        "instead of trial, or declare trials: {n: …, of: builds} in an experiment file"
    )
