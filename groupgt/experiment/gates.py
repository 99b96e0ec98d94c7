"""Gates: what must hold for the build to pass, for every system and data set that they name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupgt.comparison.contrast import Contrast, bounds_of, contrast, drop
from groupgt.comparison.tests import SLACK, Settings
from groupgt.errors import GroupgtError
from groupgt.evaluation.result import Evaluation, mean_of
from groupgt.evaluation.slices import Slicer
from groupgt.experiment.schema import Config, Gate
from groupgt.experiment.systems import Families, System, matching
from groupgt.experiment.timing import LATENCIES, Timing, machine
from groupgt.experiment.yaml import Document, Path_
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Bools
from groupgt.render.numbers import counted, fixed, p_text

# What a gate may ask of a timing.


def check_gate(
    number: int,
    gate: Gate,
    document: Document,
    config: Config,
    families: Families,
    systems: Mapping[str, System],
    metrics: Mapping[str, Metric],
    convention: str,
) -> None:
    """Faults of one gate: what it names must be there, and it must ask one thing.

    `metrics` are empty where not all of them are known.
    """
    path: Path_ = ("gate", number)
    matched = matching(gate.system, systems)
    datasets = matching(gate.dataset, config.datasets)
    if not matched and not families.may_be(gate.system):
        document.unknown((*path, "system"), gate.system, list(systems), also="a pattern")
    if not datasets and document.whole("datasets"):
        document.unknown((*path, "dataset"), gate.dataset, list(config.datasets), also="a pattern")
    asked = [key for key in ("min", "max", "max_drop") if getattr(gate, key) is not None]
    if len(asked) != 1:
        found = " and ".join(asked) or "nothing"
        document.fault(path, f"expected one of min, max and max_drop, found {found}")
    if gate.max_drop is not None:
        _check_drop(path, document, config, systems, matched, datasets)
    if gate.unless is not None and gate.max_drop is None:
        document.fault((*path, "unless"), "a drop is significant or not; it goes with max_drop")
    if gate.metric in LATENCIES:
        if gate.slice or gate.max_drop is not None:
            document.fault(path, f"{gate.metric} has a min or max, and no slices")
        if matched and not any(_is_timed(name, systems) for name in matched):
            document.fault((*path, "system"), "results that are read from files have no latency")
        if gate.metric.startswith("latency") and not config.evaluate.timed:
            document.fault((*path, "metric"), f"{gate.metric} needs questions that are timed; evaluate.timed is 0")
        return
    try:
        asked_for = parse_metric(gate.metric, convention)
    except GroupgtError as error:
        document.fault((*path, "metric"), f"{error}; or one of {', '.join(LATENCIES)}")
        return
    if metrics and asked_for not in metrics.values():
        known = [*metrics, *LATENCIES]
        document.unknown((*path, "metric"), gate.metric, known, "one of evaluate.metrics, or a latency: ")


def _check_drop(
    path: Path_,
    document: Document,
    config: Config,
    systems: Mapping[str, System],
    matched: Sequence[str],
    datasets: Sequence[str],
) -> None:
    """Whether there is a baseline wherever a drop is asked for."""
    if config.compare is None:
        if document.whole("compare"):
            document.fault((*path, "max_drop"), "a drop is against a baseline; name it as compare.baseline")
        return
    baseline = systems.get(config.compare.baseline)
    if baseline is None:
        return
    for dataset in datasets:
        if not baseline.serves(dataset) and any(systems[name].serves(dataset) for name in matched):
            what = f"the baseline {baseline.name} is not run on dataset {dataset!r}; see its `only`"
            document.fault((*path, "max_drop"), what)


def _is_timed(name: str, systems: Mapping[str, System]) -> bool:
    system = systems[name]
    return not system.is_stored and all(_is_timed(each, systems) for each in system.inputs)


def check_slice(number: int, gate: Gate, slicer: Slicer, dataset: str, document: Document) -> None:
    """Faults of a gate's slice, which only the data can show: a column, and a value that some question has."""
    for column, value in gate.slice.items():
        values = [text for name, text, _ in slicer if name == column]
        if str(value) not in values:
            known = ", ".join(values[:20])
            document.fault(
                ("gate", number, "slice", column),
                f"no question of dataset {dataset!r} has {str(value)!r}; there are {known}",
            )


@dataclass(frozen=True)
class GateResult:
    """One gate (counted from 1) on one system and dataset: whether it passed, and why in one line.

    `timed` gates are about latency: their results are times too, and stand where times stand.
    """

    gate: int
    system: str
    dataset: str
    metric: str
    passed: bool
    reason: str
    value: float | None = None
    timed: bool = False


def judged(
    gates: Mapping[int, Gate],
    config: Config,
    systems: Mapping[str, System],
    evaluations: Mapping[str, Mapping[str, Evaluation]],
    failed: Mapping[str, Mapping[str, str]],
    timings: Mapping[tuple[str, str], Timing],
    settings: Settings,
) -> list[GateResult]:
    """Every gate on every system and dataset that it names and that was run; `settings` say what is significant."""
    results: list[GateResult] = []
    for number, gate in gates.items():
        for dataset in matching(gate.dataset, config.datasets):
            found = evaluations[dataset]
            known = [*found, *failed.get(dataset, {})]
            # A pattern is held against all systems, so that one that is not run now changes nothing for the others.
            for name in (each for each in matching(gate.system, systems) if each in known):
                if name not in found:
                    reason = f"has no value: the system failed: {failed[dataset][name]}"
                    results.append(_result(number, gate, name, dataset, None, reason))
                elif gate.metric in LATENCIES:
                    results += _latency(number, gate, name, dataset, timings)
                else:
                    baseline = found.get(config.compare.baseline) if config.compare is not None else None
                    results.append(_measured(number, gate, name, dataset, found[name], baseline, settings))
    return results


def _result(
    number: int, gate: Gate, name: str, dataset: str, value: float | None, reason: str, *, passed: bool = False
) -> GateResult:
    where = "".join(f", {column} {_text(wanted)}" for column, wanted in gate.slice.items())
    line = f"{name} on {dataset}{where}: {gate.metric} {reason}"
    return GateResult(number + 1, name, dataset, gate.metric, passed, line, value, gate.metric in LATENCIES)


def _measured(
    number: int,
    gate: Gate,
    name: str,
    dataset: str,
    evaluation: Evaluation,
    baseline: Evaluation | None,
    settings: Settings,
) -> GateResult:
    among = _mask(evaluation, gate.slice)
    text = evaluation.text_of(gate.metric)
    values = evaluation.values[text] if among is None else evaluation.values[text][among]
    if gate.max_drop is None:
        return _bounded(number, gate, name, dataset, mean_of(values))
    if baseline is None:
        return _result(
            number, gate, name, dataset, None, "has no baseline here: that was not run on this data set, or failed"
        )
    found = _against(evaluation, baseline, text, among, settings)
    if not found.pairs:
        return _result(number, gate, name, dataset, None, "has no value: no query counts for both")
    lost = drop(found.delta, higher_is_better=evaluation.metrics[text].higher_is_better)
    passed = lost <= gate.max_drop + SLACK
    change = f"is worse than {baseline.name} by {fixed(lost)}" if lost > 0 else f"is no worse than {baseline.name}"
    reason = f"{change}, at most {gate.max_drop:g} is allowed ({counted(found.pairs, 'query', 'queries')})"
    if gate.unless is not None and not passed:
        # One gate is one question: its p-value does not depend on what else the table compares.
        passed = found.raw_p_value > settings.alpha
        shown = f"{settings.test}, {p_text(found.raw_p_value)}, not corrected, alpha {settings.alpha:g}"
        if math.isnan(found.raw_p_value):
            reason += f"; {settings.test} has no p-value for so few queries"
        else:
            reason += f"; the drop is {'not ' if passed else ''}significant ({shown})"
    return _result(number, gate, name, dataset, found.delta, reason, passed=passed)


def _against(
    evaluation: Evaluation, baseline: Evaluation, text: str, among: Bools | None, settings: Settings
) -> Contrast:
    columns = [each.values[text] if among is None else each.values[text][among] for each in (evaluation, baseline)]
    metric = evaluation.metrics[text]
    return contrast(columns[:1], columns[1:], metric, bounds_of(metric, columns), settings)[0]


def _bounded(number: int, gate: Gate, name: str, dataset: str, value: float) -> GateResult:
    if math.isnan(value):
        return _result(number, gate, name, dataset, None, "has no value: no query counts")
    bound, word = (gate.min, "least") if gate.min is not None else (gate.max, "most")
    verb = "needed" if gate.min is not None else "allowed"
    limit = math.nan if bound is None else bound
    passed = value >= limit - SLACK if gate.min is not None else value <= limit + SLACK
    return _result(
        number, gate, name, dataset, value, f"is {fixed(value)}, at {word} {limit:g} is {verb}", passed=passed
    )


def _latency(
    number: int, gate: Gate, name: str, dataset: str, timings: Mapping[tuple[str, str], Timing]
) -> Iterator[GateResult]:
    timing = timings.get((dataset, name))
    if timing is None:
        return  # results that were read from files
    if timing.machine != machine():
        where = timing.machine.get("node", "unknown")
        reason = f"was measured on another machine ({where}) and kept; measure here with --refresh"
        yield _result(number, gate, name, dataset, None, reason)
        return
    value: float | None = getattr(timing, gate.metric)
    if value is None:
        yield _result(number, gate, name, dataset, None, "was not measured; measure with --refresh")
        return
    yield _bounded(number, gate, name, dataset, value)


def _mask(evaluation: Evaluation, wanted: Mapping[str, Any]) -> Bools | None:
    """Which queries are in a slice; None for all."""
    if not wanted:
        return None
    mask = np.ones(len(evaluation.truth), dtype=np.bool_)
    for column, text, members in Slicer(evaluation.truth, list(wanted)):
        if text != _text(wanted[column]):
            mask &= ~members
    return mask


def _text(value: Any) -> str:
    return str(value)
