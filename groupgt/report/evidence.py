"""Describe the evidence for a decision: differences and means with CIs, p-values and numbers of queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from groupgt.comparison.contrast import Contrast, comparisons
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.experiment.outcome import GateResult
from groupgt.render.columns import level_text, signed_span
from groupgt.render.tables import DIGITS, counted, fixed, p_text, shortlist, signed
from groupgt.report.gates import change_of, kind, subject_of
from groupgt.report.names import Names
from groupgt.report.sentences import NAMED, every


def method_name(method: str) -> str:
    """Return the name of a correction."""
    return {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini–Hochberg"}.get(method, method)


class Tested(NamedTuple):
    """A contrast with its settings, and the number of comparisons for which its p-value is corrected."""

    contrast: Contrast
    settings: Settings
    comparisons: int = 1
    correction: str = "none"

    @property
    def is_adjusted(self) -> bool:
        """True if more than one comparison shares alpha."""
        return self.comparisons > 1 and self.correction != "none"


def size_of(contrast: Contrast) -> float:
    """Return the size of the tested difference, in means or in ranks, without rounding errors."""
    return round(abs(contrast.delta if contrast.ranks is None else contrast.ranks), 11)


def by_size(contrasts: Mapping[str, Contrast]) -> list[str]:
    """Return the names, largest change first. Ties are broken by p-value, smallest first, then by name."""
    keys = {name: (-size_of(each), each.raw_p_value) for name, each in contrasts.items()}
    return sorted(keys, key=lambda name: (*(math.inf if math.isnan(key) else key for key in keys[name]), name))


def tied_text(contrasts: Mapping[str, Contrast], ordered: Sequence[str], names: Mapping[str, str] | Names) -> str:
    """Return text to put after the first name, which lists any other systems with an equally large change."""
    largest, *rest = ordered
    tied = [names[name] for name in rest if size_of(contrasts[name]) == size_of(contrasts[largest])]
    return f" (tied with {shortlist(tied, NAMED)})" if tied else ""


@dataclass(frozen=True)
class Case:
    """The basis of a decision: systems on the primary metric, and an experiment's gates and failures."""

    all_systems: Systems | None
    gates: Sequence[GateResult]
    failed: Mapping[str, str]

    @property
    def systems(self) -> Systems:
        """The systems, for decisions that need at least one."""
        if self.all_systems is None:
            raise ValueError("no system has results")
        return self.all_systems

    @cached_property
    def names(self) -> Names:
        """The display names of all systems."""
        return Names([*(self.all_systems.names if self.all_systems else ()), *self.failed])

    @cached_property
    def subject(self) -> str | None:
        """The only system, apart from the baseline, that all gates apply to. None if gates apply to several or none."""
        return subject_of(self.gates, self.systems.baseline if self.systems.is_baseline_named else None)

    @cached_property
    def family(self) -> dict[str, Contrast]:
        """The contrasts of all systems with the baseline on the primary metric. Empty without a baseline."""
        is_compared = len(self.systems.names) > 1 and self.systems.is_baseline_named and self.systems.baseline
        return self.systems.against_baseline if is_compared else {}

    @cached_property
    def contrasts(self) -> dict[str, Contrast]:
        """The contrasts that decide: those of the only system with gates, or else of every system, largest first."""
        mine = self.family if self.subject not in self.family else {self.subject: self.family[self.subject]}
        paired = {name: each for name, each in mine.items() if each.pairs}
        return {name: paired[name] for name in by_size(paired)}

    def tied(self, ordered: Sequence[str]) -> str:
        """Name any systems whose change is as large as the first system's."""
        return tied_text(self.contrasts, ordered, self.names)

    def of_family(self, contrast: Contrast) -> Tested:
        """Return a contrast with the baseline, with the correction of its family."""
        settings = self.systems.settings
        return Tested(contrast, settings, comparisons(self.family.values()), settings.corrects)

    def passed_words(self, *, is_start: bool = False) -> str:
        """Return how many gates passed, such as `all 4 gates passed`, and how many allowed a change beyond their limit.

        The text is empty if no gate had a value.
        """
        checked = [gate for gate in self.gates if not gate.skipped]
        if not checked:
            return ""
        allowed = [change_of(gate.asks) for gate in checked if kind(gate) == "allowed"]
        what = " or ".join(sorted(set(allowed)))
        drops = f"{f', {len(allowed):,}' if len(checked) > 1 else ''} despite a {what}" if allowed else ""
        if unchecked := len(self.gates) - len(checked):
            return f"{counted(len(checked), 'gate')} passed{drops}, {unchecked:,} not checked"
        lower = {1: "the gate", 2: "both gates"}.get(len(checked), "all gates")
        return f"{every(len(checked), 'gate') if is_start else lower} passed{drops}"


def evidence(tested: Tested, lead: str = "") -> list[str]:
    """Return a difference, its CI, its p-value and the number of queries behind it. `lead` names the system."""
    contrast, queries = tested.contrast, counted(tested.contrast.pairs, "query")
    delta = f"{lead}{signed(contrast.delta, DIGITS)}"
    if math.isnan(contrast.raw_p_value):
        why = "too few queries for a p-value" if contrast.pairs < 2 else "no p-value: all differences are the same"
        return [delta, *_interval(tested), why, queries]
    p_value = p_text(contrast.p_value, DIGITS)
    method = method_name(tested.correction)
    p_value += f" ({method})" if tested.is_adjusted else ""
    if contrast.ranks is not None:
        ranks = f"{signed(contrast.ranks, 2)} of all signed ranks"
        counts = f"better on {counted(contrast.wins, 'query')}, worse on {contrast.losses:,}"
        return [f"{lead}{ranks}", counts, p_value, queries]
    return [delta, *_interval(tested), p_value, queries]


def _interval(tested: Tested) -> list[str]:
    ends = tested.contrast.delta_interval
    if math.isnan(ends[0]):
        return []
    over = f", adjusted for {tested.comparisons:,} comparisons" if tested.is_adjusted else ""
    return [f"{level_text(tested.contrast.confidence)} {signed_span(ends, DIGITS)}{over}"]


def mean_evidence(systems: Systems, name: str) -> list[str]:
    """Return a mean, its CI and the number of queries behind it."""
    ends = ends_of_mean(systems, name)
    queries = counted(systems.queries_of(name), "query")
    return [f"mean {fixed(systems.mean(name), DIGITS)}", *([ends] if ends else []), queries]


def ends_of_mean(systems: Systems, name: str) -> str:
    """Return the CI of a mean, or nothing if it has none."""
    low, high = systems.ends(name)
    if low is None:
        return ""
    return f"{level_text(systems.settings.confidence)} {fixed(low, DIGITS)} to {fixed(high, DIGITS)}"
