"""Decide how systems compare, in the same words for all outputs. The first applicable function in `ROWS` decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from groupgt.comparison.power import detectable_with
from groupgt.comparison.systems import Systems
from groupgt.evaluation.estimates import mean_of
from groupgt.experiment.outcome import GateResult, Outcome
from groupgt.render.document import Card
from groupgt.render.page import data
from groupgt.render.tables import DIGITS, counted, fixed, minus, p_text, signed
from groupgt.report import gates as told
from groupgt.report.evidence import Case, Tested, ends_of_mean, evidence, mean_evidence, method_name, size_of
from groupgt.report.names import Names
from groupgt.report.sentences import enumerated, every

State = Literal[
    "no result", "gate failed", "gates failed", "system failed", "loss", "losses", "gain", "gains", "best", "passed",
    "same values", "nothing significant", "ties", "no baseline", "one system",
]  # fmt: skip
Badge = Literal["Blocked", "Worse", "Better", "Passed", "Inconclusive", ""]
BADGES: dict[State, Badge] = {
    **dict.fromkeys(("no result", "gate failed", "gates failed", "system failed"), "Blocked"),
    **dict.fromkeys(("loss", "losses"), "Worse"),
    **dict.fromkeys(("gain", "gains", "best"), "Better"),
    "passed": "Passed",
    **dict.fromkeys(("same values", "nothing significant", "ties", "no baseline"), "Inconclusive"),
    "one system": "",
}
# From worst to best, as data sets are shown; without UTF-8, a letter replaces the shape.
SHAPES: dict[Badge, str] = {"Blocked": "■", "Worse": "▼", "Inconclusive": "○", "": "", "Passed": "✓", "Better": "▲"}


@dataclass(frozen=True)
class Decision:
    """A decision on one data set, about one `system` or None. Every second part of `sentence` is a system's name.

    `is_since_previous` is True if the system is compared with the previous run, not with the baseline.
    """

    state: State
    sentence: list[str]
    evidence: list[str]
    note: str = ""
    system: str | None = None
    is_since_previous: bool = False

    @property
    def badge(self) -> Badge:
        """The word on the badge, or empty."""
        return BADGES[self.state]

    @property
    def shape(self) -> str:
        """The sign on the badge, or empty."""
        return SHAPES[self.badge]

    @property
    def text(self) -> str:
        """The sentence."""
        return "".join(self.sentence)

    def place(self, systems: Systems) -> int | None:
        """Return the index of the system that views show first: the subject of the decision, or else the best."""
        about = self.system if self.system in systems.names and self.system != systems.baseline else systems.best
        return None if about is None else systems.names.index(about)

    @property
    def card(self) -> Card:
        """The decision as the first item of a text."""
        lines = [f"{' · '.join(self.evidence)}."] if self.evidence else []
        return Card(self.shape, self.badge, self.sentence, [*lines, *([self.note] if self.note else [])])

    @property
    def page(self) -> data.Decided:
        """The decision for the page."""
        return {
            "badge": self.badge,
            "system": self.system or "",
            "sentence": self.sentence,
            "evidence": list(map(minus, self.evidence)),
            "note": minus(self.note),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the decision for results.json."""
        return {
            "state": self.state,
            "badge": self.badge,
            "sentence": self.text,
            "evidence": " · ".join(self.evidence),
            "note": self.note,
        }


def decide(
    systems: Systems | None, gates: Sequence[GateResult] = (), failed: Mapping[str, str] | None = None
) -> Decision:
    """Return the decision on one data set. `systems` is None if all systems failed, and `failed` gives the reasons."""
    case = Case(systems, gates, failed or {})
    return next(decision for row in ROWS if (decision := row(case)) is not None)


def decisions(outcome: Outcome) -> dict[str, Decision]:
    """Return the decision on every data set of an experiment, worst first."""
    made = {}
    for dataset in outcome.evaluations:
        gates = [gate for gate in outcome.gates if gate.dataset == dataset]
        made[dataset] = decide(outcome.systems.get(dataset), gates, outcome.failed.get(dataset))
    made = dict(sorted(made.items(), key=lambda item: list(SHAPES).index(item[1].badge)))
    # The system that the worst decision is about stays in view where no single system decides.
    for name, each in made.items():
        worst = next(iter(made.values()))
        if each.system is None:
            made[name] = replace(each, system=worst.system, is_since_previous=worst.is_since_previous)
    return made


def no_result(case: Case) -> Decision | None:
    """Return the decision if no query was evaluated, or if every system failed."""
    if case.all_systems is not None and case.all_systems.best is not None:
        return None
    if case.failed and case.all_systems is None:
        reasons = [first_line(next(iter(case.failed.values())))]
        return Decision("no result", [f"{every(len(case.failed), 'system')} failed."], reasons)
    systems = case.all_systems
    if systems is not None and any(systems.queries_over(text)[1] for text in systems.metrics):
        return Decision("no result", [f"No query has a value for {systems.label}."], [])
    return Decision("no result", ["No query could be evaluated."], [])


def failed_gates(case: Case) -> Decision | None:
    """Return the decision if gates failed, or if no gate has a value because a system failed."""
    failures = [gate for gate in case.gates if not gate.passed]
    if not failures:
        return None
    valued = [gate for gate in failures if gate.problem is None]
    first = (valued or failures)[0]
    name = case.names[first.system]
    if all(gate.problem == "failed" for gate in failures):
        systems = {gate.system for gate in failures}
        sentence = ["", name, ""] if len(systems) == 1 else [f"{len(systems):,} systems"]
        sentence[-1] += f" failed to run, so {counted(len(failures), 'gate has', 'gates have')} no value."
        return Decision("system failed", sentence, [first_line(first.detail)], system=first.system)
    evidence, note = _of_gate(case, first)
    note = note or corrected_note(case, first.system)
    about = first.system, first.drop is not None and first.drop.baseline is None
    if len(failures) == 1:
        return Decision("gate failed", _failure(first, name), evidence, note, *about)
    *who, count = fails(case.gates, case.names)
    of = [" of ", name, " first."] if not who else [" first."]
    sentence = [*who, f"{count}, {told.measure(first)}{of[0]}", *of[1:]]
    return Decision("gates failed", sentence, evidence, note, *about)


def fails(gates: Sequence[GateResult], names: Names) -> list[str]:
    """Return the start of the sentence on failed gates: the system (if there is only one) and the number of gates."""
    failures = [gate for gate in gates if not gate.passed]
    if len({gate.system for gate in failures}) > 1:
        return [f"{len(failures):,} of {counted(len(gates), 'gate')} failed"]
    system = failures[0].system
    of_system = sum(gate.system == system for gate in gates)
    its = "its " if of_system < len(gates) else ""
    return ["", names[system], f" fails {len(failures):,} of {its}{counted(of_system, 'gate')}"]


def _failure(gate: GateResult, name: str) -> list[str]:
    """Return the sentence about the only gate that failed."""
    asks, measure = gate.asks, told.measure(gate)
    if gate.problem is not None:
        return [f"The gate on {measure} has no value for ", name, "."]
    if gate.drop is None:
        limit = f"requires {asks.min:g}" if asks.min is not None else f"allows {asks.max:g}"
        unit, article = told.unit(gate), "a" if gate.timed else "a mean"
        return ["", name, f" has {article} {measure} of {told.value(gate)}{unit}; the gate {limit}{unit}."]
    since = " since the previous run" if gate.drop.baseline is None else ""
    change = told.change(gate)
    if asks.min_gain is None:
        rest = f"; the gate allows {asks.max_drop:g}."
    elif gate.drop.is_beyond:
        rest = f"; the gate requires {'' if gate.drop.lost < 0 else f'a {told.change_of(asks)} of '}{asks.min_gain:g}."
    else:
        rest = f"; the gate requires a significant {told.change_of(asks)}."
    return ["", name, f" {change} in {measure}{since}{rest}"]


def losses(case: Case) -> Decision | None:
    """Return the decision if systems are significantly worse than the baseline and no system is better."""
    worse = [name for name, each in case.contrasts.items() if each.standing == "worse"]
    if not worse or any(each.standing == "better" for each in case.contrasts.values()):
        return None
    note = _within_limit(case, worse[0]) or corrected_note(case, worse[0])
    return _changed(case, "loss", worse, note)


def gains(case: Case) -> Decision | None:
    """Return the decision if systems are significantly better than the baseline."""
    better = [name for name, each in case.contrasts.items() if each.standing == "better"]
    if not better:
        return None
    note = (_not_best(case, better[0]) if len(better) == 1 else "") or corrected_note(case, better[0])
    # A system that is better overall may be significantly worse on a slice.
    of_slices = (text for *loss, text in in_slices(case.systems) if loss == [case.names[better[0]], "worse"])
    return _changed(case, "gain", better, note or next((f"Significantly worse on {text}." for text in of_slices), ""))


def _changed(case: Case, kind: Literal["loss", "gain"], names: Sequence[str], note: str) -> Decision:
    """Return the decision that systems are significantly better or worse, largest change first."""
    label, baseline = case.systems.label, case.names[case.systems.baseline]
    verb, count = "worse" if kind == "loss" else "better", len(case.contrasts)
    others = sum(each.significant for each in case.contrasts.values()) - len(names)
    tail = f", {counted(others, 'is', 'are')} worse" if others else ""
    tail += f"; {words}" if (words := case.passed_words()) else ""
    first, tested = names[0], case.of_family(case.contrasts[names[0]])
    if len(names) == 1:
        sentence = ["", case.names[first], f" is significantly {verb} than ", baseline, f" in {label}{tail}."]
        return Decision(kind, sentence, evidence(tested), note, first)
    who = every(count, "system") if len(names) == count else f"{len(names):,} of {count:,} systems"
    sentence = [f"{who} are significantly {verb} than ", baseline, f" in {label}{tail}."]
    found = evidence(tested, f"Largest {kind}: {case.names[first]}{case.tied(names)}, ")
    return Decision("losses" if kind == "loss" else "gains", sentence, found, note, first)


def clear_winner(case: Case) -> Decision | None:
    """Return the decision if, without a baseline, the best system is significantly better than every other."""
    systems, best = case.systems, case.systems.best
    if best is None or systems.is_baseline_named or not systems.baseline or not systems.has_clear_winner:
        return None
    others = [case.names[name] for name in systems.names if name != best]
    than, tail = " is significantly better than ", f" in {systems.label}"
    tail += f"; {words}." if (words := case.passed_words()) else "."
    after = [than, others[0], tail] if len(others) == 1 else [f"{than}every other system{tail}"]
    sentence = ["", case.names[best], *after]
    return Decision("best", sentence, mean_evidence(systems, best), "", best)


def all_passed(case: Case) -> Decision | None:
    """Return the decision if all gates passed and no difference is significant."""
    words, systems = case.passed_words(is_start=True), case.systems
    if not words:
        return None
    if case.contrasts:
        tails = {"same values": f"no query differs in {systems.label}", "not tested": f"{systems.label} was not tested"}
        tail = tails.get(_undecided(case), f"no significant difference in {systems.label}")
        largest = next(iter(case.contrasts))
        if len(case.family) > 1 and largest == case.subject and not _undecided(case):
            # Other systems may differ.
            parts = [f"{words}; ", case.names[largest], f" does not differ significantly in {systems.label}."]
            return Decision("passed", parts, _largest_evidence(case), _not_equal(case), largest)
        about = largest if len(case.contrasts) == 1 else None
        return Decision("passed", [f"{words}; {tail}."], _largest_evidence(case), _not_equal(case), about)
    best = systems.best or ""
    mean = f"a mean {systems.label} of {fixed(systems.mean(best), DIGITS)}"
    has = mean if len(systems.names) == 1 else f"the {systems.extreme} mean {systems.label}"
    return Decision("passed", [f"{words}; ", case.names[best], f" has {has}."], mean_evidence(systems, best), "", best)


def nothing_significant(case: Case) -> Decision | None:
    """Return the decision if no difference from the baseline is significant."""
    if not case.contrasts:
        return None
    label, baseline = case.systems.label, case.names[case.systems.baseline]
    largest, count = next(iter(case.contrasts)), len(case.contrasts)
    undecided = _undecided(case)
    if undecided == "same values":
        sentence = ["", case.names[largest], " and ", baseline, f" have the same {label} on every query."]
        if count > 1:
            sentence = [f"{every(count + 1, 'system')} have the same {label} on every query."]
        queries = counted(case.contrasts[largest].pairs, "query")
        return Decision("same values", sentence, [f"mean {fixed(case.systems.mean(largest), DIGITS)}", queries])
    one, none = "does not differ significantly from", "differs significantly from"
    if undecided == "not tested":
        one, none = "could not be tested against", "could be tested against"
    sentence = ["", case.names[largest], f" {one} ", baseline, f" in {label}."]
    if count > 1:
        sentence = [f"No system {none} the baseline in {label}."]
    about = largest if count == 1 else None
    return Decision("nothing significant", sentence, _largest_evidence(case), _not_equal(case), about)


def highest_mean(case: Case) -> Decision | None:
    """Return the decision if there are several systems and no baseline to test them against."""
    systems, tied = case.systems, case.systems.tied
    if len(systems.names) == 1:
        return None
    mean = f"{systems.extreme} mean {systems.label}"
    shown = [case.names[name] for name in tied]
    sentence = enumerated(shown, f" share the {mean}, but there is no baseline.")
    if len(tied) == len(systems.names):
        sentence = [f"{every(len(tied), 'system')} share the {mean}, but there is no baseline."]
    elif len(tied) == 1:
        sentence = ["", shown[0], f" has the {mean}, but no baseline to test against."]
    state: State = "ties" if len(tied) > 1 else "no baseline"
    return Decision(state, sentence, mean_evidence(systems, tied[0]), corrected_note(case), tied[0])


def one_system(case: Case) -> Decision:
    """Return the decision if there is only one system."""
    systems, best = case.systems, case.systems.best or ""
    over = f" over {counted(systems.queries_of(best), 'query')}."
    mean = fixed(systems.mean(best), DIGITS)
    ends = ends_of_mean(systems, best)
    sentence = ["", case.names[best], f" has a mean {systems.label} of {mean}{over}"]
    return Decision("one system", sentence, [ends] if ends else [], corrected_note(case), best)


ROWS: tuple[Callable[[Case], Decision | None], ...] = (
    no_result,
    failed_gates,
    losses,
    gains,
    clear_winner,
    all_passed,
    nothing_significant,
    highest_mean,
    one_system,
)


def _undecided(case: Case) -> str:
    """Return why no contrast is significant: `same values`, `not tested`, or empty if a test found no difference."""
    if not any(each.differ for each in case.contrasts.values()):
        return "same values"
    return "not tested" if all(math.isnan(each.raw_p_value) for each in case.contrasts.values()) else ""


def _largest_evidence(case: Case) -> list[str]:
    """Return the evidence for the largest change, with the system's name if there are several systems."""
    name, contrast = next(iter(case.contrasts.items()))
    lead = f"Largest change: {case.names[name]}{case.tied(list(case.contrasts))}, " if len(case.contrasts) > 1 else ""
    lead = lead or (f"{case.names[name]}: " if len(case.family) > 1 else "")
    return evidence(case.of_family(contrast), lead)


def _of_gate(case: Case, gate: GateResult) -> tuple[list[str], str]:
    """Return the evidence for a failed gate, and a note on whether a test agrees."""
    systems = case.systems
    if gate.problem is not None:
        return [told.why(gate)], ""
    if (tested := _tested_by(case, gate)) is not None:
        return evidence(tested), _reconciled(gate, tested)
    if not (gate.timed or gate.asks.slice):
        return mean_evidence(systems.by(systems.evaluations[gate.system].text_of(gate.metric)), gate.system), ""
    # What the gate measures has no CI: the primary metric says how good the system is.
    if gate.system in case.family:
        return evidence(case.of_family(case.family[gate.system]), f"{systems.label} "), ""
    return mean_evidence(systems, gate.system), ""


def _tested_by(case: Case, gate: GateResult) -> Tested | None:
    """Return the contrast behind a gate: the contrast that decides the gate, or else the one in the comparison."""
    if gate.drop is None:
        return None
    drop = gate.drop
    own = Tested(drop.against, drop.settings, drop.comparisons, drop.settings.corrects if gate.asks.must else "none")
    if gate.asks.reads_test(is_beyond=drop.is_beyond) or drop.baseline is None or gate.asks.slice:
        return own
    is_primary = case.systems.evaluations[gate.system].text_of(gate.metric) == case.systems.primary
    return case.of_family(case.family[gate.system]) if is_primary and gate.system in case.family else own


def _reconciled(gate: GateResult, tested: Tested) -> str:
    """Explain whether the significance test of a drop agrees with a gate that failed on it."""
    low, _ = tested.contrast.delta_interval
    if gate.asks.min_gain is not None or math.isnan(tested.contrast.p_value) or math.isnan(low):
        return ""
    change = told.change_of(gate.asks)
    if tested.contrast.significant:
        return f"The test agrees: the {change} is significantly different from 0."
    return f"The measured {change} is beyond the limit, but its interval includes 0, so chance cannot be ruled out."


def _within_limit(case: Case, name: str) -> str:
    """Report that a significant drop is within the limit of a gate that passed."""
    for gate in case.gates:
        drop = gate.drop
        if drop is None or gate.asks.max_drop is None or gate.system != name or drop.baseline is None:
            continue
        is_primary = case.systems.evaluations[name].text_of(gate.metric) == case.systems.primary
        if not is_primary or gate.asks.slice or drop.is_beyond:
            continue
        ends = case.contrasts[name].delta_interval
        far = ends[0] if case.systems.higher else ends[1]
        line = f"Significant, yet within the limit of {gate.asks.max_drop:g}"
        if abs(far) > gate.asks.max_drop:
            line += f"; the interval reaches {signed(far, DIGITS)}, so a larger {told.change_of(gate.asks)} is possible"
        return f"{line}."
    return ""


def _not_best(case: Case, name: str) -> str:
    """Report that a system beats the baseline, but is not significantly better than another system."""
    systems = case.systems
    others = [each for each in systems.names if each not in (name, systems.baseline)]
    if not others:
        return ""
    if name != systems.best:
        best = systems.best or ""
        mean = fixed(systems.mean(best), DIGITS)
        return f"Better than the baseline, not the best: {case.names[best]} has the {systems.extreme} mean, {mean}."
    unbeaten = [each for each in others if (lead := systems.lead.get(each)) is not None and lead.standing != "better"]
    if not unbeaten:
        return ""
    nearest = min(unbeaten, key=lambda each: (size_of(systems.lead[each]), each))
    lead = systems.lead[nearest]
    p_value = "" if math.isnan(lead.raw_p_value) else f" (uncorrected {p_text(lead.raw_p_value, DIGITS)})"
    against = f"{signed(lead.delta, DIGITS)} against {case.names[nearest]} is not significant{p_value}"
    return f"Better than the baseline, not proven best: {against}."


def _not_equal(case: Case) -> str:
    """Warn that systems without a significant difference may still differ by less than the queries can detect."""
    name, contrast = next(iter(case.contrasts.items()))
    if note := corrected_note(case, name):
        return note
    if not contrast.differ or contrast.pairs < 2 or math.isnan(contrast.raw_p_value):
        return ""
    systems, of = case.systems, case.of_family(contrast)
    alpha = of.settings.alpha / (of.comparisons if of.is_adjusted else 1)
    least = detectable_with(contrast, systems.metrics[systems.primary], of.settings.test, alpha)
    queries = (f"For {case.names[name]}, " if len(case.contrasts) > 1 else "") + counted(contrast.pairs, "query")
    have = "are too few for 80% power at any change"
    if least is not None:
        have = f"have 80% power only for changes of {fixed(least, DIGITS)} or more"
    return f"Not significant does not mean equal. {queries} {have}."


def corrected_note(case: Case, name: str | None = None) -> str:
    """Explain the effect of an audit or of several annotators."""
    systems = case.systems
    if systems.annotators_differ:
        return "The interval includes disagreement between annotators."
    if systems.audit is None or not systems.first.is_corrected(systems.primary):
        return ""
    uncorrected = ""
    if name in case.contrasts:
        own, baseline = (systems.values[each][systems.primary] for each in (name, systems.baseline))
        uncorrected = f"; uncorrected change {signed(mean_of(own - baseline), DIGITS)}"
    return f"Corrected by an audit of {counted(len(systems.audit.truth), 'query')}{uncorrected}."


def in_slices(systems: Systems) -> Iterator[tuple[str, str, str]]:
    """Yield systems that are significantly worse or better in slices, with these slices. Losses come first."""
    if not systems.is_baseline_named or not systems.is_compared:
        return
    names, corrects = Names(systems.names), systems.settings.corrects
    by = f", {method_name(corrects)}" if corrects != "none" else ""
    rows = [
        (row.against, part, row.system)
        for part in systems.slices
        for row in part.rows
        if row.metric == systems.primary and row.against is not None and row.against.significant
    ]
    for contrast, part, name in sorted(rows, key=lambda row: (row[0].favors * size_of(row[0]), row[2], row[1].value)):
        size, p_value = signed(contrast.delta, DIGITS), p_text(contrast.p_value, DIGITS)
        yield names[name], contrast.standing, f"{part.by} {part.value}, {size} ({p_value}{by})"


def first_line(text: str) -> str:
    """Return the first line of an error."""
    return text.strip().partition("\n")[0]


def overall(made: Mapping[str, Decision], gates: Sequence[GateResult]) -> tuple[Decision, list[str]]:
    """Return one decision for several data sets, based on the worst one, and the data sets that share its sentence."""
    dataset, worst = next(iter(made.items()))
    failures = [gate for gate in gates if not gate.passed]
    sentence, repeated = worst.sentence, list(made)
    if len(failures) > 1 and worst.state != "system failed":
        counts = Counter(gate.dataset for gate in failures)
        where = ", ".join(f"{counts[name]:,} on {name}" for name in made if counts[name])
        *who, count = fails(gates, Names(gate.system for gate in gates))
        sentence, repeated = [*who, f"{count}: {where}."], []
    elif any(each.sentence != worst.sentence for each in made.values()):
        start, *rest = worst.sentence
        sentence, repeated = ["On ", dataset, f", {start[:1].lower()}{start[1:]}", *rest], [dataset]
    # Each data set has its own evidence, and no test covers all of them.
    return replace(worst, sentence=sentence, evidence=[], note=""), repeated


def overall_card(made: Mapping[str, Decision], gates: Sequence[GateResult]) -> Card:
    """Return the decision over several data sets, with a line for each data set."""
    decision, repeated = overall(made, gates)
    lines = []
    for name, each in made.items():
        parts = [*([] if name in repeated else [each.text]), *each.card.lines]
        lines += [f"{name}: {' '.join(parts)}"] if parts else []
    return Card(decision.shape, decision.badge, decision.sentence, lines)
