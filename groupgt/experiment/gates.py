"""Gates: what must hold for the build to pass, of every system and data set that they name.

Their part of an experiment file, what is checked of it, and the judging of a run, whose verdicts `runner` keeps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from typing_extensions import Doc

from groupgt.comparison.contrast import Contrast, Family, bounds_of, contrasts_in, drop
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK
from groupgt.errors import GroupgtError, near_names
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.evaluation.slices import Slicer
from groupgt.experiment.schema import Scalar
from groupgt.experiment.systems import Families, System, combined, matching
from groupgt.experiment.timing import LATENCIES, Timing, machine
from groupgt.experiment.yaml import Document, KeyPath
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Bools, Floats
from groupgt.render.results import Result

UNTIMED = (
    "is the time of one query asked alone, and this retriever is asked in batches: set evaluate.timed to the number "
    "of queries to ask a second time, one by one; or hold the gate against batched_p50_ms or batched_p95_ms"
)


@dataclass(frozen=True)
class Gate:
    """A quality gate: one of min, max and max_drop."""

    system: Annotated[str, Doc("A system, or a pattern.")]
    metric: Annotated[str, Doc("A metric that is evaluated, or a latency.")]
    dataset: Annotated[str, Doc("A data set, or a pattern.")] = "*"
    slice: Annotated[dict[str, Scalar], Doc("Columns and their values, such as {type: multi}.")] = field(
        default_factory=dict
    )
    min: Annotated[float | None, Doc("The lowest value that passes.")] = None
    max: Annotated[float | None, Doc("The highest value that passes.")] = None
    max_drop: Annotated[Annotated[float, Ge(0)] | None, Doc("The largest drop from the baseline that passes.")] = None
    unless: Annotated[
        Literal["not_significant"] | None,
        Doc("not_significant: a drop passes unless compare.test finds it significant."),
    ] = None

    @property
    def bound(self) -> str:
        """The metric, the slice and the bound: `recall@10, type multi, min 0.8`."""
        slices = [f"{column} {wanted}" for column, wanted in self.slice.items()]
        bounds = [f"{key} {value:g}" for key in ("min", "max", "max_drop") if (value := getattr(self, key)) is not None]
        return ", ".join([self.metric, *slices, *bounds, *([f"unless {self.unless}"] if self.unless else [])])


# Why a gate has nothing to hold against its bound.
Problem = Literal["failed", "no query", "no baseline", "no pair", "other machine", "not measured"]


@dataclass(frozen=True)
class Drop:
    """How far a system is below a baseline by the metric of a gate; `settings` say how its contrast was tested."""

    baseline: str
    lost: float
    is_too_much: bool
    against: Contrast
    settings: Settings


@dataclass(frozen=True)
class GateResult(Result):
    """One gate (counted from 1) on one system and data set: whether it passed, and by which figures.

    `asks` is the gate itself. Where it has no `value`, `problem` says why, and `detail` of what. `drop` holds what
    a gate on a drop compares.
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
        """Why it passed or failed, in one line: what `print` shows."""
        return self.text()

    @property
    def metric(self) -> str:
        """The metric, or the latency."""
        return self.asks.metric

    @property
    def timed(self) -> bool:
        """Whether it is about latency: its results are times too, and stand where times stand."""
        return self.asks.metric in LATENCIES


# --- What is checked of the file.


@dataclass(frozen=True, eq=False)
class GateChecks:
    """What gates are checked against: names of the file, its metrics, its baseline, how many questions are timed.

    `metrics` are empty where not all of them are known, `baseline` is None where nothing is compared.
    """

    document: Document
    families: Families
    datasets: Collection[str]
    metrics: Mapping[str, Metric]
    convention: str
    baseline: str | None
    timed: int | None

    def check(self, number: int, gate: Gate) -> None:
        """Adds the faults of one gate: what it names must be there, and it must ask one thing."""
        document, path = self.document, ("gate", number)
        systems = self.families.systems
        matched, datasets = matching(gate.system, systems), matching(gate.dataset, self.datasets)
        if not matched and not self.families.may_be(gate.system):
            document.unknown((*path, "system"), gate.system, self.families.known, also="a pattern")
        if not datasets and document.is_sound("datasets"):
            document.unknown((*path, "dataset"), gate.dataset, list(self.datasets), also="a pattern")
        asked = [key for key in ("min", "max", "max_drop") if getattr(gate, key) is not None]
        if len(asked) != 1:
            document.fault(path, f"expected one of min, max and max_drop, found {' and '.join(asked) or 'nothing'}")
        if gate.max_drop is not None:
            self._drop((*path, "max_drop"), [systems[name] for name in matched], datasets)
        if gate.unless is not None and gate.max_drop is None:
            document.fault((*path, "unless"), "`unless` needs max_drop")
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
        for key in ("min", "max", "max_drop"):
            bound = getattr(gate, key)
            if bound is not None and metric.definition.bounded and not 0 <= bound <= 1:
                hint = f"; for {bound:g} % write {bound / 100:g}" if 1 < bound <= 100 else ""
                self.document.fault((*gate_path, key), f"{metric.name} lies between 0 and 1, found {bound:g}{hint}")
        if self.metrics and metric not in self.metrics.values():
            known = [*self.metrics, *LATENCIES]
            self.document.unknown(path, text, known, "one of evaluate.metrics, or a latency: ")

    def _latency(self, path: KeyPath, gate: Gate, matched: Sequence[str]) -> None:
        if gate.slice or gate.max_drop is not None:
            self.document.fault(path, f"{gate.metric} takes min or max, and no slice")
        if matched and not any(self._is_timed(name) for name in matched):
            self.document.fault((*path, "system"), "results read from files have no latency")
        names = [below for name in matched for below in combined(self.families.systems, name)]
        if gate.metric.startswith("latency") and not all(map(self._is_asked_alone, names)):
            self.document.fault((*path, "metric"), f"{gate.metric} {UNTIMED}")

    def _is_asked_alone(self, name: str) -> bool:
        """Whether some question is asked alone, as far as the file tells."""
        system = self.families.systems[name]
        if system.kind.build is None or system.options.asks_singly() is not False:
            return True
        return bool(self.timed) if self.timed is not None else system.kind.cheap

    def _is_timed(self, name: str) -> bool:
        system = self.families.systems[name]
        return not system.is_stored and all(self._is_timed(below) for below in system.inputs)

    def _drop(self, path: KeyPath, matched: Sequence[System], datasets: Sequence[str]) -> None:
        """Whether there is a baseline wherever a drop is asked for."""
        if self.baseline is None:
            if self.document.is_sound("compare"):
                self.document.fault(path, "max_drop needs a baseline; set compare.baseline")
            return
        baseline = self.families.systems.get(self.baseline)
        if baseline is None:
            return
        for dataset in datasets:
            if not baseline.serves(dataset) and any(system.serves(dataset) for system in matched):
                what = f"the baseline {self.baseline} is not run on dataset {dataset!r}; see its key `only`"
                self.document.fault(path, what)


def check_slice(number: int, gate: Gate, slicer: Slicer, dataset: str, document: Document) -> None:
    """Faults of a gate's slice, which only the data can show: a column, and a value that some question has."""
    for column, value in gate.slice.items():
        values = [text for name, text, _ in slicer if name == column]
        if str(value) not in values:
            what = f"no query of dataset {dataset!r} has {str(value)!r}; there are {', '.join(values[:20])}"
            document.fault(("gate", number, "slice", column), what)


# --- What a run is judged by.


@dataclass(frozen=True, eq=False)
class Findings:
    """What gates are held against, by data set and system: evaluations, why others failed, and how long each took.

    `settings` say what is significant; `baseline` is None where nothing is compared.
    """

    systems: Mapping[str, System]
    evaluations: Mapping[str, Mapping[str, Evaluation]]
    failed: Mapping[str, Mapping[str, str]]
    timings: Mapping[tuple[str, str], Timing]
    settings: Settings
    baseline: str | None


def judged(gates: Sequence[Gate], findings: Findings) -> list[GateResult]:
    """Every gate on every system and data set that it names and that was run."""
    results: list[GateResult] = []
    for number, gate in enumerate(gates, 1):
        # A pattern is held against all systems, so that one that is not run now changes nothing for the others.
        names = matching(gate.system, findings.systems)
        for dataset in matching(gate.dataset, findings.evaluations):
            ran = {*findings.evaluations[dataset], *findings.failed.get(dataset, {})}
            for name in names:
                if name in ran:
                    results += _Trial(number, gate, name, dataset).verdicts(findings)
    return results


def members(gate: Gate, evaluation: Evaluation) -> Bools:
    """Which queries are in a gate's slice, shape (Q,)."""
    mask = np.ones(len(evaluation.truth), dtype=np.bool_)
    for column, text, inside in Slicer(evaluation.truth, list(gate.slice)) if gate.slice else ():
        if text != str(gate.slice[column]):
            mask &= ~inside
    return mask


@dataclass(frozen=True, eq=False)
class _Trial:
    """One gate held against one system on one data set."""

    number: int
    gate: Gate
    system: str
    dataset: str

    def verdicts(self, findings: Findings) -> Iterator[GateResult]:
        """One verdict; none of the latency of results that were read from files."""
        evaluation = findings.evaluations[self.dataset].get(self.system)
        if evaluation is None:
            yield self._failed("failed", findings.failed[self.dataset][self.system])
        elif self.gate.metric in LATENCIES:
            timing = findings.timings.get((self.dataset, self.system))
            if timing is not None:
                yield self._latency(timing)
        elif self.gate.max_drop is not None:
            baseline = findings.evaluations[self.dataset].get(findings.baseline or "")
            yield self._drop(evaluation, baseline, self.gate.max_drop, findings.settings)
        else:
            yield self._bounded(mean_of(self._values(evaluation)))

    def _failed(self, problem: Problem, detail: str = "") -> GateResult:
        """A gate fails where there is nothing to hold it against."""
        return GateResult(
            self.number, self.system, self.dataset, self.gate, passed=False, problem=problem, detail=detail
        )

    def _passed(self, value: float, drop: Drop | None = None, *, passed: bool) -> GateResult:
        return GateResult(self.number, self.system, self.dataset, self.gate, passed, value, drop=drop)

    def _values(self, evaluation: Evaluation) -> Floats:
        """The values of the gate's metric in the gate's slice."""
        return evaluation.values[evaluation.text_of(self.gate.metric)][members(self.gate, evaluation)]

    def _bounded(self, value: float) -> GateResult:
        if math.isnan(value):
            return self._failed("no query")
        if self.gate.min is not None:
            return self._passed(value, passed=value >= self.gate.min - SLACK)
        return self._passed(value, passed=self.gate.max is not None and value <= self.gate.max + SLACK)

    def _latency(self, timing: Timing) -> GateResult:
        if timing.machine != machine():
            return self._failed("other machine", timing.machine.get("node", "unknown"))
        value: float | None = getattr(timing, self.gate.metric)
        return self._failed("not measured") if value is None else self._bounded(value)

    def _drop(self, evaluation: Evaluation, baseline: Evaluation | None, most: float, settings: Settings) -> GateResult:
        if baseline is None:
            return self._failed("no baseline")
        metric = evaluation.metrics[evaluation.text_of(self.gate.metric)]
        columns = [self._values(evaluation), self._values(baseline)]
        family = Family(metric, columns[:1], columns[1:], bounds_of(metric, columns))
        against = contrasts_in([family], settings)[0][0]
        if not against.pairs:
            return self._failed("no pair")
        lost = drop(against.delta, higher_is_better=metric.higher_is_better)
        is_too_much = not lost <= most + SLACK
        passed = not is_too_much
        if self.gate.unless is not None and is_too_much:
            # One gate is one question: its p-value does not depend on what else the table compares.
            passed = against.raw_p_value > settings.alpha
        return self._passed(against.delta, Drop(baseline.name, lost, is_too_much, against, settings), passed=passed)
