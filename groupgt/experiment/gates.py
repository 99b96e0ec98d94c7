"""Quality gates: conditions on systems and data sets that must hold for the build to pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge
from typing_extensions import Doc

from groupgt.comparison.contrast import Contrast, comparisons, contrasts_of, drop
from groupgt.comparison.reach import counts_signs, fewest_differing, is_unreliable, least_p, out_of_reach
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import ENOUGH, SLACK
from groupgt.errors import GroupgtError, near_names
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.evaluation.slices import Slicer
from groupgt.experiment.previous import Against
from groupgt.experiment.systems import Families, System, combined, matching
from groupgt.experiment.timing import LATENCIES, Timing, machine
from groupgt.experiment.yaml import Document, Scalar
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats
from groupgt.options import KeyPath
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.experiment.config import Config
    from groupgt.experiment.outcome import Outcome

UNTIMED = (
    "is single-query latency, but this retriever is queried in batches: set evaluate.timed to the number "
    "of queries to ask a second time, one by one; or gate on batched_p50_ms or batched_p95_ms"
)

# The keys for the bound of a gate, which has exactly one of them.
BOUNDS = ("min", "max", "max_drop", "min_gain")


@dataclass(frozen=True)
class Gate:
    """A quality gate: one of min, max, max_drop and min_gain."""

    system: Annotated[str, Doc("A system, or a pattern.")]
    metric: Annotated[str, Doc("A metric that is evaluated, or a latency.")]
    dataset: Annotated[str, Doc("A data set, or a pattern.")] = "*"
    slice: Annotated[dict[str, Scalar], Doc("Columns and their values, such as {type: multi}.")] = field(
        default_factory=dict
    )
    min: Annotated[float | None, Doc("The lowest value that passes.")] = None
    max: Annotated[float | None, Doc("The highest value that passes.")] = None
    max_drop: Annotated[Annotated[float, Ge(0)] | None, Doc("The largest drop from the baseline that passes.")] = None
    min_gain: Annotated[Annotated[float, Ge(0)] | None, Doc("The smallest gain over the baseline that passes.")] = None
    against: Annotated[
        Literal["baseline", "previous"],
        Doc(
            "The reference for drop and gain: the baseline, or the same system in the previous run "
            "(`groupgt run --against`); without a previous result the gate is skipped."
        ),
    ] = "baseline"
    unless: Annotated[
        Literal["not_significant"] | None,
        Doc("not_significant: a drop passes unless compare.test finds it significant, p not corrected."),
    ] = None
    must: Annotated[
        Literal["significant"] | None,
        Doc("significant: a gain passes only where compare.test finds it significant, p corrected over all systems."),
    ] = None

    @property
    def bound(self) -> str:
        """The metric, slice and bound as text: `recall@10, type multi, min 0.8`."""
        slices = [f"{column} {value}" for column, value in self.slice.items()]
        bounds = [f"{key} {value:g}" for key in BOUNDS if (value := getattr(self, key)) is not None]
        conditions = [f"{key} {value}" for key in ("unless", "must") if (value := getattr(self, key))]
        since = ["against previous"] if self.against == "previous" else []
        return ", ".join([self.metric, *slices, *bounds, *since, *conditions])

    @property
    def is_relative(self) -> bool:
        """Returns True if the bound applies to a drop or a gain."""
        return self.max_drop is not None or self.min_gain is not None

    def reads_test(self, *, is_beyond: bool) -> bool:
        """Returns True if the verdict depends on the significance test.

        Whatever the test says, a gate on gains fails beyond its bound, and a gate on drops passes within it.
        """
        return is_beyond if self.min_gain is None and self.unless else bool(self.must) and not is_beyond


# Why a gate has no value to compare with its bound; it is skipped if there is no previous result to compare with.
Problem = Literal[
    "failed",
    "no query",
    "no baseline",
    "no pair",
    "few audited",
    "other machine",
    "not measured",
    "no previous run",
    "new",
    "refused",
]


@dataclass(frozen=True)
class Drop:
    """The drop of a system below its baseline, or below its previous result if `baseline` is None.

    `is_beyond` is True if the bound is violated. `settings` configures the significance test; `comparisons` is
    the number of contrasts in the family; `audited` differences use a different test. If the verdict depends on the
    test, and too few queries differ for it, `needed` is the number that must differ.
    """

    baseline: str | None
    lost: float
    is_beyond: bool
    against: Contrast
    settings: Settings
    comparisons: int = 1
    audited: bool = False
    needed: int | None = None


@dataclass(frozen=True)
class GateResult(Result):
    """The result of one gate (numbered from 1) for one system and data set, with the figures behind it.

    `asks` is the gate itself. If there is no `value`, `problem` is the reason and `detail` gives specifics. `drop` is
    the comparison behind a gate on a drop or a gain.
    """

    gate: int
    system: str
    dataset: str
    asks: Gate
    passed: bool
    value: float | None = None
    problem: Problem | None = None
    detail: str = ""
    drop: Drop | None = None

    @property
    def reason(self) -> str:
        """A one-line explanation of why the gate passed or failed, as shown by `print`."""
        return self.text()

    @property
    def metric(self) -> str:
        """The name of the metric or latency that the gate checks."""
        return self.asks.metric

    @property
    def skipped(self) -> bool:
        """Returns True if there was nothing to check: no previous run, or none of this system."""
        return self.passed and self.problem is not None

    @property
    def timed(self) -> bool:
        """Returns True for latency gates, whose results are reported with other timings."""
        return self.asks.metric in LATENCIES


# --- Checks of the file.


@dataclass(frozen=True, eq=False)
class GateChecks:
    """Everything needed to check gates; `metrics` is empty if any metric is invalid."""

    document: Document
    families: Families
    config: Config
    metrics: Mapping[str, Metric]
    convention: str

    def check(self, number: int, gate: Gate) -> None:
        """Checks one gate: the names it refers to must exist, and it must have exactly one bound."""
        document, path = self.document, ("gate", number)
        systems = self.families.systems
        matched, datasets = matching(gate.system, systems), matching(gate.dataset, self.config.datasets)
        if not matched and not self.families.may_be(gate.system):
            document.unknown((*path, "system"), gate.system, self.families.valid_names, also="a pattern")
        if not datasets and document.is_sound("datasets"):
            document.unknown((*path, "dataset"), gate.dataset, list(self.config.datasets), also="a pattern")
        bounds = [key for key in BOUNDS if getattr(gate, key) is not None]
        if len(bounds) != 1:
            some = f"{', '.join(BOUNDS[:-1])} and {BOUNDS[-1]}"
            document.fault(path, f"expected one of {some}, found {' and '.join(bounds) or 'nothing'}")
        for key, needed in (("unless", "max_drop"), ("must", "min_gain")):
            if getattr(gate, key) is not None and getattr(gate, needed) is None:
                document.fault((*path, key), f"`{key}` needs {needed}")
        if gate.against == "previous" and not gate.is_relative:
            document.fault((*path, "against"), "`against` needs max_drop or min_gain")
        elif gate.is_relative and gate.against == "baseline":
            key = "max_drop" if gate.max_drop is not None else "min_gain"
            self._drop((*path, key), [systems[name] for name in matched], datasets)
        if gate.metric in LATENCIES:
            self._latency(path, gate, matched)
        else:
            self._metric(path, gate)

    def _metric(self, gate_path: KeyPath, gate: Gate) -> None:
        path, text = (*gate_path, "metric"), gate.metric
        try:
            metric = parse_metric(text, self.convention)
        except GroupgtError as error:
            self.document.fault(path, f"{error}; or one of {', '.join(LATENCIES)}{near_names(text, LATENCIES)}")
            return
        for key in BOUNDS:
            bound = getattr(gate, key)
            if bound is not None and metric.definition.bounded and not 0 <= bound <= 1:
                hint = f"; for {bound:g} % write {bound / 100:g}" if 1 < bound <= 100 else ""
                self.document.fault((*gate_path, key), f"{metric.name} lies between 0 and 1, found {bound:g}{hint}")
        if self.metrics and metric not in self.metrics.values():
            valid_names = [*self.metrics, *LATENCIES]
            self.document.unknown(path, text, valid_names, "one of evaluate.metrics, or a latency: ")

    def _latency(self, path: KeyPath, gate: Gate, matched: Sequence[str]) -> None:
        if gate.slice or gate.is_relative:
            self.document.fault(path, f"{gate.metric} takes min or max, and no slice")
        if matched and not any(self._is_timed(name) for name in matched):
            self.document.fault((*path, "system"), "results read from files have no latency")
        names = [below for name in matched for below in combined(self.families.systems, name)]
        if gate.metric.startswith("latency") and not all(map(self._is_queried_singly, names)):
            self.document.fault((*path, "metric"), f"{gate.metric} {UNTIMED}")

    def _is_queried_singly(self, name: str) -> bool:
        """Returns whether a system runs any query on its own, judging by the file alone."""
        system = self.families.systems[name]
        if system.kind.build is None or system.options.asks_singly() is not False:
            return True
        return self.config.evaluate.repeats(system.kind) > 0

    def _is_timed(self, name: str) -> bool:
        system = self.families.systems[name]
        return not system.is_stored and all(self._is_timed(below) for below in system.inputs)

    def _drop(self, path: KeyPath, matched: Sequence[System], datasets: Sequence[str]) -> None:
        """Checks that a gate on a drop or a gain has a baseline on each of its data sets."""
        name = self.config.baseline
        if name is None:
            if self.document.is_sound("compare"):
                hint = "set compare.baseline, or write against: previous"
                self.document.fault(path, f"{path[-1]} needs a baseline; {hint}")
            return
        baseline = self.families.systems.get(name)
        if baseline is None:
            return
        for dataset in datasets:
            served = any(system.config.serves(dataset) for system in matched)
            if served and not baseline.config.serves(dataset):
                what = f"the baseline {name} is not run on dataset {dataset!r}; see its key `only`"
                self.document.fault(path, what)


def check_slice(number: int, gate: Gate, slicer: Slicer, dataset: str, document: Document) -> None:
    """Checks a gate's slice against the data; adds an error for each value that no query has."""
    for column, value in gate.slice.items():
        values = [text for name, text, _ in slicer if name == column]
        if str(value) not in values:
            what = f"no query of dataset {dataset!r} has {str(value)!r}; there are {', '.join(values[:20])}"
            document.fault(("gate", number, "slice", column), what)


# --- Evaluation of gates.


def judged(outcome: Outcome, timings: Mapping[tuple[str, str], Timing]) -> list[GateResult]:
    """Evaluates every gate on all matching systems and data sets that were run."""
    results: list[GateResult] = []
    for number, gate in enumerate(outcome.experiment.config.gate, 1):
        # A pattern is matched against all systems, so that a system that is not run does not affect the others.
        names = matching(gate.system, outcome.experiment.systems)
        for dataset in matching(gate.dataset, outcome.evaluations):
            ran = {*outcome.evaluations[dataset], *outcome.failed.get(dataset, {})}
            for name in names:
                blank = GateResult(number, name, dataset, gate, passed=False)
                if name in ran and (result := _checked(blank, outcome, timings)) is not None:
                    results.append(result)
    return results


def members(gate: Gate, truth: GroundTruth) -> Bools:
    """Returns a mask of the queries in a gate's slice, shape (Q,)."""
    mask = np.ones(len(truth), dtype=np.bool_)
    for column, text, inside in Slicer(truth, list(gate.slice)) if gate.slice else ():
        if text != str(gate.slice[column]):
            mask &= ~inside
    return mask


def _checked(blank: GateResult, outcome: Outcome, timings: Mapping[tuple[str, str], Timing]) -> GateResult | None:
    """Evaluates one gate on one system and data set; returns None for the latency of results read from files.

    `blank` is the result to fill in; like any result without a value, it counts as not passed.
    """
    gate, system, dataset = blank.asks, blank.system, blank.dataset
    evaluation = outcome.evaluations[dataset].get(system)
    if evaluation is None:
        return replace(blank, problem="failed", detail=outcome.failed[dataset][system])
    if gate.metric in LATENCIES:
        timing = timings.get((dataset, system))
        return None if timing is None else _latency(blank, timing)
    if gate.against == "previous":
        return _beside_former(blank, evaluation, outcome.against.get(dataset))
    if gate.is_relative:
        return _beside_baseline(blank, evaluation, outcome)
    values = _values(gate, evaluation)
    return _bounded(blank, mean_of(values), "few audited" if values.ndim > 1 and len(values) else "no query")


def _values(gate: Gate, evaluation: Evaluation) -> Floats:
    text = evaluation.text_of(gate.metric)
    return evaluation.tested.get(text, evaluation.values[text])[members(gate, evaluation.truth)]


def _bounded(blank: GateResult, value: float, otherwise: Problem = "no query") -> GateResult:
    low, high = blank.asks.min, blank.asks.max
    if math.isnan(value):
        return replace(blank, problem=otherwise)
    passed = value >= low - SLACK if low is not None else high is not None and value <= high + SLACK
    return replace(blank, value=value, passed=passed)


def _latency(blank: GateResult, timing: Timing) -> GateResult:
    if timing.machine != machine():
        return replace(blank, problem="other machine", detail=timing.machine.get("node", "unknown"))
    value: float | None = getattr(timing, blank.metric)
    return replace(blank, problem="not measured") if value is None else _bounded(blank, value)


def _beside_baseline(blank: GateResult, evaluation: Evaluation, outcome: Outcome) -> GateResult:
    """Compares a system with the baseline; the p-value is uncorrected for a drop and corrected for a gain."""
    gate, by_name, settings = blank.asks, outcome.evaluations[blank.dataset], outcome.experiment.settings
    baseline = by_name.get(outcome.experiment.config.baseline or "")
    if baseline is None:
        return replace(blank, problem="no baseline")
    others = [name for name in by_name if name not in (blank.system, baseline.name)] if gate.must else []
    compared = {blank.system: evaluation, **{name: by_name[name] for name in others}}
    text = evaluation.text_of(gate.metric)
    values = {name: {text: _values(gate, each)} for name, each in {**compared, baseline.name: baseline}.items()}
    twos = [(name, baseline.name) for name in compared]
    contrasts = contrasts_of(values, {text: evaluation.metrics[text]}, twos, settings)
    return _relative(blank, baseline.name, evaluation, list(contrasts.values()), settings)


def _beside_former(blank: GateResult, evaluation: Evaluation, against: Against | None) -> GateResult:
    """Compares a system with its previous result; a gain is corrected over all comparisons with the previous run."""
    gate, system, text = blank.asks, blank.system, evaluation.text_of(blank.metric)
    if against is None:
        return replace(blank, problem="no previous run", passed=True)
    if system in against.added:
        return replace(blank, problem="new", passed=True)
    if (system, text) in against.refused:
        return replace(blank, problem="refused", detail=against.refused[system, text])
    among = members(gate, evaluation.truth) if gate.slice else None
    contrasts = dict(against.contrasts(text, among, None if gate.must else system))
    contrast = contrasts.pop(system)
    return _relative(blank, None, evaluation, [contrast, *contrasts.values()], against.settings)


def _relative(
    blank: GateResult, baseline: str | None, evaluation: Evaluation, family: Sequence[Contrast], settings: Settings
) -> GateResult:
    """Checks the bound on a drop or a gain for the first contrast in a family."""
    contrast, gate = family[0], blank.asks
    if not contrast.pairs or math.isnan(contrast.delta):
        return replace(blank, problem="few audited" if contrast.pairs else "no pair")
    metric, audited = evaluation.metrics[evaluation.text_of(gate.metric)], evaluation.audit is not None
    lost = drop(contrast.delta, higher_is_better=metric.higher_is_better)
    is_sure = contrast.standing == ("worse" if gate.min_gain is None else "better")
    is_beyond, passed = (bool(each[0]) for each in decided(gate, np.array([lost]), np.array([is_sure])))
    needed = _needed(family, settings) if gate.reads_test(is_beyond=is_beyond) and not audited else None
    behind = Drop(baseline, lost, is_beyond, contrast, settings, comparisons(family), audited, needed)
    return replace(blank, value=contrast.delta, drop=behind, passed=passed)


def _needed(family: Sequence[Contrast], settings: Settings) -> int | None:
    """Returns how many queries must differ for the first contrast of a family; None if enough do, or none does."""
    least = out_of_reach(dict(enumerate(family)), settings).get(0)
    if least is not None and counts_signs(family[0], settings):
        return fewest_differing(settings.alpha, least / least_p(family[0], settings))
    return ENOUGH if is_unreliable(family[0], settings) else None


def decided(gate: Gate, lost: Floats, is_sure: Bools) -> tuple[Bools, Bools]:
    """Decides a gate on a drop or a gain for any number of comparisons: whether each is beyond the bound, and passes.

    `is_sure` marks the comparisons in which the test that the gate reads finds the drop or the gain significant.
    """
    if gate.min_gain is not None:
        is_enough = -lost >= gate.min_gain - SLACK
        return ~is_enough, is_enough & is_sure if gate.must else is_enough
    is_within = lost <= (gate.max_drop or 0.0) + SLACK
    return ~is_within, is_within | ~is_sure if gate.unless else is_within
