"""Combine the decisions on several data sets: the badge of the worst, and a line for each data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from groupgt.experiment.outcome import GateResult
from groupgt.render.document import Card
from groupgt.report.decision import Decision, fails
from groupgt.report.names import Names


def overall(made: Mapping[str, Decision], gates: Sequence[GateResult]) -> tuple[Decision, list[str]]:
    """Return one decision over several data sets, the worst of them first, and those whose own sentence it repeats.

    It has no evidence, because each data set has its own and no test covers all of them.
    """
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
    return replace(worst, sentence=sentence, evidence=[], note=""), repeated


def overall_card(made: Mapping[str, Decision], gates: Sequence[GateResult]) -> Card:
    """Return the decision over several data sets, with a line for each of them."""
    decision, repeated = overall(made, gates)
    lines = []
    for name, each in made.items():
        evidence = f"{' · '.join(each.evidence)}." if each.evidence else ""
        parts = ["" if name in repeated else each.text, evidence, each.note]
        lines += [f"{name}: {' '.join(filter(None, parts))}"] if any(parts) else []
    return Card(decision.shape, decision.badge, decision.sentence, lines)
