"""What is to be concluded of an experiment, in sentences: what its comparisons say, its gates, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from groupgt.evaluation.systems import known
from groupgt.evaluation.verdict import doubt, enumerated, every
from groupgt.experiment.datasets import absent_ids
from groupgt.experiment.outcome import Outcome
from groupgt.render.page import data
from groupgt.render.tables import counted, fixed
from groupgt.report import contrasts

# Reasons of failed gates that a sentence holds.
REASONS = 3
# Systems of which it is told on which data set they do best.
TOLD = 3
# What is read after the gates.
LAST = ("doubt", "note")


def verdict(outcome: Outcome, dataset: str, *, timed: bool) -> list[data.Sentence]:
    """All sentences of one data set, doubts last; with `timed` those on time as well, which differ from run to run."""
    sentences = list(contrasts.sentences(outcome.systems[dataset])) if outcome.evaluations[dataset] else []
    absent = outcome.absent.get(dataset, [])
    return [
        *(sentence for sentence in sentences if sentence["kind"] not in LAST),
        *_best(outcome, dataset, timed=timed),
        *_on_gates(outcome, dataset, timed=False),
        *(_on_gates(outcome, dataset, timed=True) if timed else []),
        *failed_sentences(outcome.failed.get(dataset, {})),
        *([doubt(absent_ids(dataset, absent))] if absent else []),
        *(sentence for sentence in sentences if sentence["kind"] in LAST),
    ]


def on_time(outcome: Outcome, dataset: str) -> Iterator[data.Sentence]:
    """The sentences of one data set that differ from run to run."""
    if not outcome.experiment.rule.is_timeless:
        yield from _best(outcome, dataset, timed=True)
    yield from _on_gates(outcome, dataset, timed=True)


def _on_gates(outcome: Outcome, dataset: str, *, timed: bool) -> Iterator[data.Sentence]:
    """What the gates of one data set said: those on time, or the others."""
    gates = [gate for gate in outcome.gates if gate.dataset == dataset and gate.timed == timed]
    return gate_sentences([(gate.passed, gate.reason) for gate in gates], timed=timed)


def gate_sentences(gates: Sequence[tuple[bool, str]], *, timed: bool) -> Iterator[data.Sentence]:
    """What gates said: whether each passed, and why."""
    reasons = [reason for passed, reason in gates if not passed]
    what = "latency gate" if timed else "gate"
    if reasons:
        count = every(1, what) if len(gates) == 1 else f"{len(reasons):,} of {counted(len(gates), what)}"
        yield {"kind": "failed", "parts": [f"{count} failed: {'; '.join(reasons[:REASONS])}."]}
    elif gates:
        yield {"kind": "gate", "parts": [f"{every(len(gates), what)} passed."]}


def failed_sentences(failed: Mapping[str, str]) -> Iterator[data.Sentence]:
    """Systems that have no results, and why."""
    for name, why in failed.items():
        yield {"kind": "doubt", "parts": ["", name, f" failed and has no results: {why}"]}


def across(outcome: Outcome, *, timed: bool) -> Iterator[data.Sentence]:
    """The best over several data sets; and where questions are the same, on which corpus each system does best."""
    count = len({name for found in outcome.evaluations.values() for name in found})
    leaders = outcome.overall_leaders
    if count > 1 and leaders and (timed or outcome.experiment.rule.is_timeless):
        sets = every(len(outcome.evaluations), "data set").lower()
        over = f"over {sets} by {outcome.experiment.rule.words}"
        if len(leaders) == 1:
            parts = ["", leaders[0], f" is the best {over}, by the mean of its means."]
        elif len(leaders) == count:
            parts = [f"{every(count, 'system')} are equally good {over}, by the mean of their means."]
        else:
            parts = enumerated(leaders, f" are equally good, and the best {over}, by the mean of their means.")
        yield {"kind": "best", "parts": parts}
    yield from _corpora(outcome)


def _corpora(outcome: Outcome) -> Iterator[data.Sentence]:
    """On which data set a system reaches most, and least, by the primary metric."""
    sets = {name: found for name, found in outcome.evaluations.items() if found}
    primary = outcome.experiment.config.evaluate.primary
    truths = {next(iter(found.values())).truth.digest for found in sets.values()}
    if len(sets) < 2 or len(truths) > 1 or primary is None:
        return
    first = next(iter(next(iter(sets.values())).values()))
    text = first.text_of(primary)
    label, higher = first.label_of(text), first.metrics[text].higher_is_better
    for system in list(dict.fromkeys(name for found in sets.values() for name in found))[:TOLD]:
        means = {name: known(found[system].means[text]) for name, found in sets.items() if system in found}
        ordered = sorted(
            ((mean, name) for name, mean in means.items() if mean is not None), key=lambda each: each[0], reverse=higher
        )
        if len(ordered) > 1 and fixed(ordered[0][0]) != fixed(ordered[-1][0]):
            (most, best), (least, worst) = ordered[0], ordered[-1]
            said = [" does best on the data set ", best, f" ({label} {fixed(most)}), and worst on "]
            yield {
                "kind": "note",
                "parts": ["", system, *said, worst, f" ({fixed(least)}); the queries are the same."],
            }


def _best(outcome: Outcome, dataset: str, *, timed: bool) -> Iterator[data.Sentence]:
    """The best by the rule of the file, where that is more than the primary metric alone."""
    rule, leaders = outcome.experiment.rule, outcome.leaders.get(dataset, [])
    alone = outcome.experiment.config.evaluate.best.strategy == "primary" and rule.is_timeless
    if alone or len(outcome.evaluations[dataset]) < 2 or not (timed or rule.is_timeless):
        return
    first, *names = enumerated(leaders or ["none"], ".")
    yield {"kind": "best", "parts": [f"Best by {rule.words}: {first}", *names]}
