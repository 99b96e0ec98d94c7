"""Checks the quality gates of an experiment file: the names they refer to, their bounds and their slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groupgt.errors import GroupgtError, near_names
from groupgt.evaluation.slices import Slicer
from groupgt.experiment.config import BOUNDS, Config, Gate
from groupgt.experiment.systems import Families, System, combined, matching
from groupgt.experiment.timing import COSTS, LATENCIES
from groupgt.experiment.yaml import Document
from groupgt.metrics.language import Metric, parse_metric
from groupgt.options import KeyPath

UNTIMED = (
    "is single-query latency, but this retriever is queried in batches. Set evaluate.timed to the number of queries "
    "to run a second time, one by one, or use a gate on batched_p50_ms or batched_p95_ms"
)


@dataclass(frozen=True, eq=False)
class GateChecks:
    """Everything needed to check gates. `metrics` is empty if any metric is invalid."""

    document: Document
    families: Families
    config: Config
    metrics: Mapping[str, Metric]
    convention: str

    def check(self, number: int, gate: Gate) -> None:
        """Check that the names in a gate exist, and that it has exactly one bound."""
        document, path = self.document, ("gate", number)
        systems = self.families.systems
        matched, datasets = matching(gate.system, systems), matching(gate.dataset, self.config.datasets)
        if not matched and not self.families.may_be(gate.system):
            document.unknown((*path, "system"), gate.system, self.families.valid_names, also="a pattern")
        if not datasets and document.is_sound("datasets"):
            document.unknown((*path, "dataset"), gate.dataset, list(self.config.datasets), also="a pattern")
        if matched and datasets and not any(systems[name].config.serves(each) for name in matched for each in datasets):
            what = f"no system that matches {gate.system!r} is run on {' or '.join(datasets)}; see its `only` key"
            document.fault((*path, "system"), what)
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
        if gate.unless == "within_noise" and metric.passes is not None:
            self.document.fault(
                path, f"{metric} is computed over all trials, so single trials have no values to compare"
            )
        for key in BOUNDS:
            bound = getattr(gate, key)
            if bound is not None and metric.definition.bounded and not 0 <= bound <= 1:
                hint = f"; for {bound:g}%, write {bound / 100:g}" if 1 < bound <= 100 else ""
                self.document.fault((*gate_path, key), f"{metric.name} lies between 0 and 1, found {bound:g}{hint}")
        if self.metrics and metric not in self.metrics.values():
            valid_names = [*self.metrics, *LATENCIES]
            self.document.unknown(path, text, valid_names, "one of evaluate.metrics, or a latency or cost: ")

    def _latency(self, path: KeyPath, gate: Gate, matched: Sequence[str]) -> None:
        if gate.slice or gate.is_relative:
            self.document.fault(path, f"{gate.metric} takes min or max, but no slice")
        if gate.metric not in COSTS and matched and not any(self._is_timed(name) for name in matched):
            self.document.fault((*path, "system"), "results read from files have no latency")
        names = [below for name in matched for below in combined(self.families.systems, name)]
        if gate.metric.startswith("latency") and not all(map(self._is_queried_singly, names)):
            self.document.fault((*path, "metric"), f"{gate.metric} {UNTIMED}")

    def _is_queried_singly(self, name: str) -> bool:
        """Return whether a system runs any query on its own, judging by the file alone."""
        system = self.families.systems[name]
        if system.kind.build is None or system.options.asks_singly() is not False:
            return True
        return self.config.evaluate.repeats(system.kind) > 0

    def _is_timed(self, name: str) -> bool:
        system = self.families.systems[name]
        return not system.is_stored and all(self._is_timed(below) for below in system.inputs)

    def _drop(self, path: KeyPath, matched: Sequence[System], datasets: Sequence[str]) -> None:
        """Check that a gate on a drop or a gain has a baseline on each of its data sets."""
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
            if any(system.config.serves(dataset) for system in matched) and not baseline.config.serves(dataset):
                self.document.fault(path, f"the baseline {name} is not run on dataset {dataset!r}; see its `only` key")


def check_slice(number: int, gate: Gate, slicer: Slicer, dataset: str, document: Document) -> None:
    """Check a gate's slice against the data, and add an error for each value that no query has."""
    for column, value in gate.slice.items():
        values = [text for name, text, _ in slicer if name == column]
        if str(value) not in values:
            what = f"no query of dataset {dataset!r} has {str(value)!r}; known values: {', '.join(values[:20])}"
            document.fault(("gate", number, "slice", column), what)
