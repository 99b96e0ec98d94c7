"""Report gate results as lines, sentences, tables and page data, and as JUnit XML for continuous integration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from groupgt.comparison.draws import ENOUGH, SLACK
from groupgt.experiment.config import Gate
from groupgt.experiment.gates import members
from groupgt.experiment.outcome import Drop, GateResult, Outcome
from groupgt.experiment.timing import COSTS
from groupgt.metrics.language import parse_metric
from groupgt.render.bars import Limits
from groupgt.render.document import Detail, Folded, Item
from groupgt.render.exports import CaseKind, junit_text
from groupgt.render.layout import Strong
from groupgt.render.page import data
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted, fixed, p_text, snippet
from groupgt.report import times
from groupgt.report.sentences import sentence_of, warning

# Maximum number of warnings about gates, of queries that a summary names, and of characters of their texts.
REASONS, FAILING, CHARS = 3, 10, 120
# Texts for gates without a value.
PROBLEMS = {
    "failed": "has no value, because the system failed: {}",
    "no query": "is undefined, because there are no queries to evaluate",
    "no baseline": "has no baseline, because the baseline failed or was not run on this data set",
    "no pair": "is undefined, because no query can be evaluated for both systems",
    "few audited": "cannot be corrected, because the audit is too small or the metric is not between 0 and 1",
    "other machine": "was measured on another machine ({}) and cached. Use --refresh to measure it on this machine",
    "no measurement": "was not measured, because the results do not contain it",
    "not measured": "was not measured when the results were cached. Use --refresh to measure it",
    "no previous run": "has no previous run to compare with (--against)",
    "new": "was not measured in the previous run",
    "refused": "cannot be compared with the previous run: {}",
    "no builds": "cannot be tested, because the previous run did not keep its individual builds",
    "left out": "was not checked, because --only left its system out",
    "no trials": "cannot be compared with run-to-run noise, because neither system has trials with saved results",
}
# Names of gate results in JUnit.
JUNIT: dict[str, CaseKind] = {
    "passed": "system-out",
    "skipped": "skipped",
    "not checked": "skipped",
    "FAILED": "failure",
}
# Signs of results in a summary.
SUMMARY_SIGNS = {
    "FAILED": "⛔",
    "allowed": "☑ allowed",
    "passed": "✔",
    "skipped": "· nothing to compare",
    "not checked": "· not checked",
}
# Order of gates by kind, failures first.
ORDER = {"failed": 0, "allowed": 1, "passed": 2, "skipped": 3}
# Width of a bar without a natural end, relative to the larger of value and limit.
ROOM = 1.3


def reason(result: GateResult) -> str:
    """Explain in one line why a gate passed or failed."""
    asks = result.asks
    where = "".join(f", {column} {value}" for column, value in asks.slice.items())
    if result.problem is not None:
        why = PROBLEMS[result.problem].format(result.detail)
    elif result.drop is not None:
        why = _drop(result, result.drop)
    else:
        bound = f"minimum {asks.min:g}" if asks.min is not None else f"maximum {asks.max:g}"
        why = f"is {fixed(result.value)} ({bound})"
    return f"{result.system} on {result.dataset}{where}: {result.metric} {why}"


def status(result: GateResult) -> str:
    """Return the word for a gate's result in tables."""
    if result.problem == "left out":
        return "not checked"
    return "skipped" if result.skipped else "passed" if result.passed else "FAILED"


def measure(result: GateResult) -> str:
    """Return what a gate measures, such as `complete@10 on type multi` or `latency p95`."""
    asks = result.asks
    where = ", ".join(f"{column} {value}" for column, value in asks.slice.items())
    name = asks.metric.removesuffix("_ms").replace("_", " ") if result.timed else asks.metric
    return f"{name} on {where}" if where else name


def limit(result: GateResult) -> str:
    """Return a gate's limit: `at least 0.8`, `drops at most 0.02` or, if lower is better, `rises at most 0.02`."""
    asks = result.asks
    least = asks.min if asks.min is not None else asks.min_gain
    most = asks.max if asks.max is not None else asks.max_drop
    verb = ("drops " if change_of(asks) == "drop" else "rises ") if asks.is_relative else ""
    return f"{verb}at least {least:g}{unit(result)}" if least is not None else f"{verb}at most {most:g}{unit(result)}"


def change_of(asks: Gate) -> str:
    """Name the change that a gate limits: `drop` or `gain`; if lower values are better, `rise` or `drop`."""
    worse, better = ("drop", "gain") if parse_metric(asks.metric).higher_is_better else ("rise", "drop")
    return worse if asks.min_gain is None else better


def unit(result: GateResult) -> str:
    """Return the unit of a gate's numbers, with the space before it."""
    return " ms" if result.asks.metric.endswith("_ms") else ""


def value(result: GateResult) -> str:
    """Return the value that a gate compares with its limit (or the change, for a drop or a gain), with three digits."""
    if result.value is None:
        return "–"
    if result.drop is not None:
        return change(result)
    if result.asks.metric in COSTS:
        return times.cost_text(result.value)
    digits = 3 if result.value < 1 or not result.timed else 2 if result.value < 10 else 1 if result.value < 100 else 0
    return fixed(result.value, digits)


def _found(result: GateResult) -> str:
    return value(result) if result.value is None else f"{value(result)}{unit(result)}"


def change(result: GateResult) -> str:
    """Return how the metric changed, for a gate on a drop or a gain: `fell 0.034`."""
    delta = 0.0 if result.value is None else result.value
    if abs(delta) < SLACK:
        return "did not change"
    return f"{'rose' if delta > 0 else 'fell'} {fixed(abs(delta), 3)}"


def why(result: GateResult) -> str:
    """Explain why a gate has no value. The text is empty if the gate has a value."""
    text = "" if result.problem is None else PROBLEMS[result.problem].format(result.detail)
    return text.partition("\n")[0].removeprefix("is ").removeprefix("has ")


class GateResultTeller(Teller[GateResult]):
    """Report a single gate result in one line."""

    def blocks(self) -> list[Item]:
        """Return the gate result as a single line."""
        return [reason(self.result)]

    def csv_rows(self) -> Grid:
        """Return headers and the row of one gate."""
        gate = self.result
        row = [gate.gate, gate.system, gate.dataset, gate.passed, reason(gate)]
        return ["gate", "system", "dataset", "passed", "reason"], [row]

    def to_dict(self) -> dict[str, Any]:
        """Return the gate result as plain Python objects."""
        headers, [row] = self.csv_rows()
        return dict(zip(headers, row, strict=True))


def _drop(result: GateResult, drop: Drop) -> str:
    asks, against, settings = result.asks, drop.against, drop.settings
    is_gain = asks.min_gain is not None
    than = "in the previous run" if drop.baseline is None else drop.baseline
    by = -drop.lost if is_gain else drop.lost
    word = "better" if is_gain else "worse"
    side = f"{word} than {than} by {fixed(by)}" if by > 0 else f"no {word} than {than}"
    bound = f"minimum {asks.min_gain:g}" if is_gain else f"maximum {asks.max_drop:g}"
    text = f"is {side} ({bound}, {counted(against.pairs, 'query')})"
    if drop.noise is not None and drop.is_beyond:
        side = "within" if result.passed else "beyond"
        return f"{text}; the {change_of(asks)} is {side} noise, which is up to {fixed(drop.noise)} in 95% of cases"
    if not asks.reads_test(is_beyond=drop.is_beyond):
        return text
    p_value = against.p_value if is_gain else against.raw_p_value
    if math.isnan(p_value):
        return f"{text}; too few queries for the {settings.test} test to give a p-value"
    is_corrected = is_gain and settings.corrects != "none"
    over = f"corrected ({settings.corrects}) for {counted(drop.comparisons, 'comparison')}"
    test = "t test, corrected by the audit" if drop.audited else settings.test
    how = f"{test}, {p_text(p_value)}, {over if is_corrected else 'not corrected'}, alpha {settings.alpha:g}"
    few = _few(drop)
    significant = "significant" if result.passed == is_gain else "not significant"
    return f"{text}; the {change_of(asks)} is {significant} ({how}){few and f'. {few}'}"


def _few(drop: Drop) -> str:
    """Explain that too few queries differ for a gate's test. The text is empty if enough queries differ."""
    if drop.needed is None:
        return ""
    count = f"Only {counted(drop.against.differ, 'query differs', 'queries differ')}"
    if drop.needed < ENOUGH:
        return f"{count}, but significance needs at least {drop.needed}"
    return f"{count}, and the {drop.settings.test} test is unreliable below {drop.needed}. Use test: randomization"


def notes(gates: Sequence[GateResult]) -> Iterator[data.Sentence]:
    """Report how many gates were skipped, and warn about gates whose test has too few differing queries."""
    counts = Counter(map(status, gates))
    if skipped := counts["skipped"]:
        why = "because there is no previous result to compare with"
        yield sentence_of("note", f"{counted(skipped, 'gate was', 'gates were')} skipped, {why}.")
    if left := counts["not checked"]:
        yield sentence_of("note", f"{counted(left, 'gate was', 'gates were')} not checked because of --only.")
    few = [reason(gate) for gate in gates if gate.passed and gate.drop is not None and gate.drop.needed is not None]
    yield from map(warning, few[:REASONS])


def blocks(outcome: Outcome, *, timed: bool) -> Iterator[Item]:
    """Yield a detail for each gate, explaining its result."""
    chosen = sorted((gate for gate in outcome.gates if timed or not gate.timed), key=lambda gate: gate.gate)
    if chosen:
        yield Detail("\n".join(f"gate {gate.gate} {status(gate)}: {reason(gate)}" for gate in chosen))


def summary(gates: Sequence[GateResult], baseline: str | None) -> Iterator[Item]:
    """Yield the gates of a summary: failed and allowed gates in a table, passed gates in a folded one."""
    whole = table(gates, baseline).other
    rows = [[SUMMARY_SIGNS[str(row[0])], *map(str, row[1:])] for row in whole.rows]
    failed, allowed = SUMMARY_SIGNS["FAILED"], SUMMARY_SIGNS["allowed"]
    shown = [row for row in rows if row[0] in (failed, allowed)]
    headers = ["", *whole.headers[1:]]
    if shown:
        yield Table(headers, [[row[0], *map(Strong, row[1:])] if row[0] == failed else row for row in shown])
    if rest := [row for row in rows if row not in shown]:
        passed = sum(row[0] == SUMMARY_SIGNS["passed"] for row in rest)
        others = f", {len(rest) - passed:,} not checked" if passed < len(rest) else ""
        yield Folded(f"{counted(passed, 'gate')} passed{others}", [Table(headers, rest)])


def failed(outcome: Outcome, dataset: str) -> Iterator[Folded]:
    """Yield a table of failed gates on a data set, with the queries that fail them, worst first."""
    gates = [gate for gate in outcome.gates if gate.dataset == dataset and not gate.passed]
    rows: list[list[Any]] = [
        [gate.gate, "FAILED", reason(gate), ", ".join(_failing(outcome, gate)) or "–"] for gate in gates
    ]
    if rows:
        headers = ["gate", "result", "why", "queries that fail it"]
        yield Folded("Queries that fail a gate", [Table(headers, rows)])


def _failing(outcome: Outcome, gate: GateResult, *, with_texts: bool = False) -> Iterator[str]:
    """Yield the first queries that fail a gate that did not pass, and the number of others."""
    worst = [] if gate.passed else _worst(outcome, gate)
    for place in worst[:FAILING]:
        truth = outcome.evaluations[gate.dataset][gate.system].truth
        text = truth.texts[place] if with_texts and truth.texts else None
        yield f"{truth.qids[place]}: {snippet(text, CHARS)}" if text else truth.qids[place]
    if len(worst) > FAILING:
        yield f"and {len(worst) - FAILING:,} more"


def _worst(outcome: Outcome, gate: GateResult) -> list[int]:
    """Return the places of queries beyond a gate's bound, or worse than what it compares with, worst first."""
    if gate.timed or gate.problem is not None:
        return []
    evaluation = outcome.evaluations[gate.dataset][gate.system]
    metric = evaluation.text_of(gate.metric)
    values = np.where(members(gate.asks, evaluation.truth), evaluation.values[metric], np.nan)
    bound: Any = gate.asks.min if gate.asks.min is not None else gate.asks.max
    sign = 1 if gate.asks.min is not None else -1
    if gate.drop is not None:
        own, baseline = outcome.evaluations[gate.dataset], gate.drop.baseline
        before = outcome.against[gate.dataset].before[gate.system] if baseline is None else own[baseline].values
        bound = before[metric]
        sign = 1 if evaluation.metrics[metric].higher_is_better else -1
    below = sign * (bound - values)
    failing = np.flatnonzero(below > SLACK)
    return list(failing[np.argsort(-below[failing], kind="stable")].tolist())


def kind(result: GateResult) -> str:
    """Return the outcome of a gate: failed, allowed (a non-significant drop beyond the limit), passed or skipped."""
    if not result.passed or result.skipped:
        return "skipped" if result.passed else "failed"
    is_beyond = result.drop is not None and result.asks.max_drop is not None and result.drop.is_beyond
    return "allowed" if is_beyond else "passed"


def subject_of(gates: Sequence[GateResult], baseline: str | None) -> str | None:
    """Return the only system, other than the baseline, that gates apply to, or None if there is not exactly one."""
    systems = {gate.system for gate in gates if gate.system != baseline and gate.problem != "left out"}
    return systems.pop() if len(systems) == 1 else None


def focus_of(gates: Sequence[GateResult], baseline: str | None) -> str | None:
    """Return the system that a page's gates are about: the subject of all gates, or else the only failing system."""
    failing = {gate.system for gate in gates if not gate.passed}
    return subject_of(gates, baseline) or (failing.pop() if len(failing) == 1 else None)


def page_title(gates: Sequence[GateResult], baseline: str | None) -> str:
    """Return the heading of a page's gates. The page folds gates that passed on systems without failures."""
    focus = focus_of(gates, baseline)
    about = [gate for gate in gates if gate.system == focus]
    return title(about if any(not gate.passed for gate in about) else gates, focus)


def rest(result: GateResult, subject: str | None, baseline: str | None) -> str:
    """Return the text after the measure: the system, the limit, and the reference for a drop or a gain."""
    words = f" {limit(result)}" if result.system == subject else f" of {result.system} {limit(result)}"
    if result.asks.is_relative:
        than = "the previous run" if result.asks.against == "previous" else baseline or "the baseline"
        words += f" {'over' if result.asks.min_gain is not None else 'from'} {than}"
        words += ", significant" if result.asks.must else ""
    return words


def remark(result: GateResult) -> str:
    """Return why a gate has no value, or why a drop beyond its limit is allowed. Other gates have no remark."""
    if result.problem is not None:
        return why(result)
    if kind(result) == "allowed" and result.drop is not None:
        if result.drop.noise is not None:
            return f"within noise, which is up to {fixed(result.drop.noise, 3)}"
        return f"not significant (uncorrected {p_text(result.drop.against.raw_p_value, 3)})"
    return ""


def shares(result: GateResult) -> tuple[float, float] | None:
    """Return the shares of a bar that the value and the limit fill, or None without a value."""
    if result.value is None:
        return None
    asks = result.asks
    bound = next(limit for limit in (asks.min, asks.max, asks.max_drop, asks.min_gain) if limit is not None)
    compared = result.value
    if result.drop is not None:
        compared = max(0.0, -result.drop.lost if asks.min_gain is not None else result.drop.lost)
    is_share = result.drop is None and not result.timed and max(compared, bound) <= 1
    end = 1.0 if is_share else ROOM * max(compared, bound) or 1.0
    return compared / end, bound / end


def title(gates: Sequence[GateResult], subject: str | None) -> str:
    """Return the heading of the gates: `Gates on candidate: 1 of 5 failed`."""
    counts = Counter(map(status, gates))
    failures, count = counts["FAILED"], len(gates)
    unchecked = {word: number for word in ("skipped", "not checked") if (number := counts[word])}
    on = f" on {subject}" if subject is not None and all(gate.system == subject for gate in gates) else ""
    words = f"{failures:,} of {count:,} failed" if count > 1 else "failed"
    if not failures:
        rest = count - sum(unchecked.values())
        passed = f"{rest:,}" if unchecked else {1: "", 2: "both"}.get(count, f"all {count:,}")
        parts = [f"{passed} passed".strip()] if rest else []
        words = ", ".join(parts + [f"{number:,} {word}" if count > 1 else word for word, number in unchecked.items()])
    return f"{'Gate' if count == 1 else 'Gates'}{on}: {words}"


def table(gates: Sequence[GateResult], baseline: str | None) -> Limits:
    """Return the gates for a terminal, failures first, and as a table for other formats."""
    subject = subject_of(gates, baseline)
    rows, cells = [], []
    # Gates that passed on systems without a failed gate, if there are several.
    about = {gate.system for gate in gates if not gate.passed}
    folded = [gate for gate in gates if about and kind(gate) == "passed" and gate.system not in about]
    folded = folded if len(folded) > 1 else []
    ordered = sorted(gates, key=lambda gate: (ORDER[kind(gate)], gate.gate))
    for gate in ordered:
        word = "allowed" if kind(gate) == "allowed" else status(gate)
        note = f", {remark(gate)}" if remark(gate) else ""
        what = f"{measure(gate)}{rest(gate, subject, baseline)}{note}"
        rows.append((word, what, shares(gate), _found(gate)))
        cells.append([word, what, _found(gate)])
    heading = title(gates, subject)
    # Only a terminal lists folded gates last.
    rows = [row for _, row in sorted(zip(ordered, rows), key=lambda each: each[0] in folded)]
    return Limits(heading, rows, Table([heading, "what", "value"], cells, keep=2), len(folded))


def page_rows(outcome: Outcome, dataset: str, *, timed: bool) -> list[data.Gate]:
    """Convert the gate results of a data set for the page: latency gates if `timed`, otherwise all other gates."""
    baseline = outcome.experiment.config.baseline
    subject = focus_of(outcome.gates, baseline)
    own = [gate for gate in outcome.gates if gate.dataset == dataset and gate.timed == timed]
    return [_page_row(gate, rest(gate, subject, baseline), *_shown(outcome, gate)) for gate in own]


def _shown(outcome: Outcome, gate: GateResult) -> tuple[dict[str, str] | None, list[str]]:
    """Return the URL parameters that list the queries that fail a gate, or None without any, and their ids."""
    worst = _worst(outcome, gate)
    if not worst:
        return None, []
    evaluation = outcome.evaluations[gate.dataset][gate.system]
    shown = {"m": evaluation.text_of(gate.metric), "show": f"gate:{gate.gate}", "a": gate.system}
    if gate.drop is not None and gate.drop.baseline is not None:
        shown["b"] = gate.drop.baseline
    return shown, [evaluation.truth.qids[place] for place in worst]


def _page_row(gate: GateResult, words: str, shown: dict[str, str] | None, queries: list[str]) -> data.Gate:
    parts, told = shares(gate), kind(gate).capitalize()
    if gate.problem is not None:
        told = "Not checked" if gate.problem == "left out" else "Nothing to compare" if gate.skipped else "No value"
    return {
        "number": gate.gate,
        "system": gate.system,
        "result": status(gate),
        "reason": reason(gate),
        "order": ORDER[kind(gate)],
        "kind": kind(gate),
        "status": told,
        "measure": measure(gate),
        "rest": words,
        "note": remark(gate),
        "value": _found(gate),
        "shares": None if parts is None else [round(100 * min(part, 1.0), 2) for part in parts],
        "shown": shown,
        "queries": queries,
        "over": kind(gate) in ("failed", "allowed") and {gate.asks.max, gate.asks.max_drop} != {None},
    }


def junit_report(outcome: Outcome) -> str:
    """Format gates as JUnit XML. Each case is named after its data set, system and bound, not its number."""
    cases: list[tuple[str, str, CaseKind, str]] = []
    used: Counter[tuple[str, str]] = Counter()
    for gate in outcome.gates:
        case = f"{gate.dataset}.{gate.system}", gate.asks.bound
        used[case] += 1
        again = f" ({used[case]})" if used[case] > 1 else ""
        # A gate that passed says why if that needs care.
        is_told = not gate.passed or gate.skipped or (gate.drop is not None and gate.drop.needed is not None)
        failing = list(_failing(outcome, gate, with_texts=True))
        lines = [reason(gate), *(["Queries that fail it, worst first:", *failing] if failing else [])]
        cases.append((case[0], f"{case[1]}{again}", JUNIT[status(gate)], "\n".join(lines) if is_told else ""))
    for dataset, failed in outcome.failed.items():
        if not outcome.evaluations[dataset]:
            cases += [(f"{dataset}.{system}", "results", "error", why) for system, why in failed.items()]
    notes = [each.text for each in chain.from_iterable(outcome.warnings.values())]
    if reused := times.reused(outcome):
        notes.append(reused)
    return junit_text(outcome.experiment.title, *outcome.experiment.hide.sure((cases, notes)))


def failure_junit(title: str, why: str) -> str:
    """Format a run that ended in an error as JUnit XML with a single case."""
    return junit_text(title, [("run", title, "error", why)])
