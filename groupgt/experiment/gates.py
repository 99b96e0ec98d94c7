"""Evaluates quality gates, the conditions on systems and data sets under which a build passes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from groupgt.comparison.contrast import Contrast, comparisons, contrasts_of, drop
from groupgt.comparison.draws import ENOUGH, SLACK
from groupgt.comparison.reach import counts_signs, fewest_differing, is_unreliable, least_p, out_of_reach
from groupgt.comparison.settings import Settings
from groupgt.comparison.trials import builds_of, in_trials, noise_of_difference
from groupgt.evaluation.estimates import mean_of
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.slices import Slicer
from groupgt.experiment.config import Gate
from groupgt.experiment.outcome import Against, Drop, GateResult, Outcome, Problem
from groupgt.experiment.systems import matching
from groupgt.experiment.timing import COSTS, LATENCIES, Timing, machine
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats


def judged(outcome: Outcome, timings: Mapping[tuple[str, str], Timing]) -> list[GateResult]:
    """Evaluate every gate on all matching systems and data sets. Gates pass unchecked on systems that were left out."""
    experiment, results = outcome.experiment, list[GateResult]()
    for number, gate in enumerate(experiment.config.gate, 1):
        # A pattern is matched against all systems, so that a system that is not run does not affect the others.
        names = matching(gate.system, experiment.systems)
        for dataset in matching(gate.dataset, outcome.evaluations):
            for name in names:
                blank = GateResult(number, name, dataset, gate, passed=False)
                if not experiment.systems[name].config.serves(dataset):
                    continue
                if name in experiment.chosen:
                    results.append(_checked(blank, outcome, timings))
                else:
                    results.append(replace(blank, problem="left out", passed=True))
    return results


def members(gate: Gate, truth: GroundTruth) -> Bools:
    """Return a mask of the queries in a gate's slice, shape (Q,)."""
    mask = np.ones(len(truth), dtype=np.bool_)
    for column, text, inside in Slicer(truth, list(gate.slice)) if gate.slice else ():
        if text != str(gate.slice[column]):
            mask &= ~inside
    return mask


def _checked(blank: GateResult, outcome: Outcome, timings: Mapping[tuple[str, str], Timing]) -> GateResult:
    """Evaluate one gate on one system and data set. `blank` is the result to fill in."""
    gate, system, dataset = blank.asks, blank.system, blank.dataset
    evaluation = outcome.evaluations[dataset].get(system)
    if evaluation is None:
        return replace(blank, problem="failed", detail=outcome.failed[dataset][system])
    if gate.metric in LATENCIES:
        timing = timings.get((dataset, system))
        return replace(blank, problem="no measurement") if timing is None else _latency(blank, timing)
    if gate.against == "previous":
        return _beside_former(blank, evaluation, outcome.against.get(dataset))
    if gate.is_relative:
        return _beside_baseline(blank, evaluation, outcome)
    values = _values(gate, evaluation)
    return _bounded(blank, mean_of(values), "few audited" if values.ndim > 1 and len(values) else "no query")


def _values(gate: Gate, evaluation: Evaluated) -> Floats:
    text = evaluation.text_of(gate.metric)
    return evaluation.tested.get(text, evaluation.values[text])[members(gate, evaluation.truth)]


def _bounded(blank: GateResult, value: float, otherwise: Problem = "no query") -> GateResult:
    low, high = blank.asks.min, blank.asks.max
    if math.isnan(value):
        return replace(blank, problem=otherwise)
    passed = value >= low - SLACK if low is not None else high is not None and value <= high + SLACK
    return replace(blank, value=value, passed=passed)


def _latency(blank: GateResult, timing: Timing) -> GateResult:
    # Files state times without a machine.
    if blank.metric not in COSTS and timing.machine and timing.machine != machine():
        return replace(blank, problem="other machine", detail=timing.machine.get("node", "unknown"))
    value: float | None = getattr(timing, blank.metric)
    if value is None:
        is_timeless = not timing.machine or blank.metric in COSTS
        return replace(blank, problem="no measurement" if is_timeless else "not measured")
    return _bounded(blank, value)


def _beside_baseline(blank: GateResult, evaluation: Evaluated, outcome: Outcome) -> GateResult:
    """Compare a system with the baseline. The p-value is uncorrected for a drop and corrected for a gain."""
    gate, by_name, settings = blank.asks, outcome.evaluations[blank.dataset], outcome.experiment.settings
    baseline = by_name.get(outcome.experiment.config.baseline or "")
    if baseline is None:
        return replace(blank, problem="no baseline")
    others = [name for name in by_name if name not in (blank.system, baseline.name)] if gate.must else []
    compared = {blank.system: evaluation, **{name: by_name[name] for name in others}}
    text = evaluation.text_of(gate.metric)
    values = {name: {text: _values(gate, each)} for name, each in {**compared, baseline.name: baseline}.items()}
    twos = [(name, baseline.name) for name in compared]
    inside = members(gate, evaluation.truth)
    builds = {name: {text: [side[:, inside] for side in builds_of(by_name[name], text)]} for name in values}
    contrasts = contrasts_of(values, {text: evaluation.metrics[text]}, twos, settings, builds=builds)
    return _relative(blank, baseline.name, evaluation, list(contrasts.values()), settings, baseline)


def _beside_former(blank: GateResult, evaluation: Evaluated, against: Against | None) -> GateResult:
    """Compare a system with its previous result, and correct gains over all comparisons with the previous run."""
    gate, system, text = blank.asks, blank.system, evaluation.text_of(blank.metric)
    if against is None:
        return replace(blank, problem="no previous run", passed=True)
    if system in against.added:
        return replace(blank, problem="new", passed=True)
    if (system, text) in against.refused:
        return replace(blank, problem="refused", detail=against.refused[system, text])
    among = members(gate, evaluation.truth) if gate.slice else None
    contrasts = dict(against.contrasts(text, among, None if gate.must else system))
    family = [contrasts.pop(system), *contrasts.values()]
    builds = against.builds_before.get(system, {}).get(text, ())
    again, is_unknown = against.again.get(system), any(len(each) < 2 for each in builds)
    return _relative(blank, None, evaluation, family, against.settings, again, is_unknown=is_unknown)


def _relative(
    blank: GateResult,
    baseline: str | None,
    evaluation: Evaluated,
    family: Sequence[Contrast],
    settings: Settings,
    other: Evaluated | None = None,
    *,
    is_unknown: bool = False,
) -> GateResult:
    """Check the bound on a drop or a gain for the first contrast in a family.

    `other` is the evaluation to compare with, or None if only metric values are known. `is_unknown` is True if only the
    mean over the other side's builds is known.
    """
    contrast, gate = family[0], blank.asks
    if not contrast.pairs or math.isnan(contrast.delta):
        return replace(blank, problem="few audited" if contrast.pairs else "no pair")
    text = evaluation.text_of(gate.metric)
    metric, audited = evaluation.metrics[text], evaluation.is_corrected(text)
    lost = drop(contrast.delta, higher_is_better=metric.higher_is_better)
    is_sure, noise = contrast.standing == ("worse" if gate.min_gain is None else "better"), None
    if gate.unless == "within_noise":
        noise = None if other is None else _noise(gate, evaluation, other)
        is_sure = noise is not None and lost > noise + SLACK
    is_beyond, passed = (bool(each[0]) for each in decided(gate, np.array([lost]), np.array([is_sure])))
    if gate.unless == "within_noise" and noise is None and is_beyond:
        return replace(blank, problem="no trials")
    if gate.reads_test(is_beyond=is_beyond) and is_unknown:
        return replace(blank, problem="no builds")
    needed = _needed(family, settings) if gate.reads_test(is_beyond=is_beyond) and not audited else None
    behind = Drop(baseline, lost, is_beyond, contrast, settings, comparisons(family), audited, needed, noise)
    return replace(blank, value=contrast.delta, drop=behind, passed=passed)


def _noise(gate: Gate, evaluation: Evaluated, other: Evaluated) -> float | None:
    """Return how far apart noise alone may move two evaluations on a gate's queries, or None without trials."""
    inside = members(gate, evaluation.truth)
    qids = [qid for place, qid in enumerate(evaluation.truth.qids) if inside[place] and qid in other.truth.index]
    text = evaluation.text_of(gate.metric)
    sides = [(in_trials(each, each.text_of(gate.metric), qids), each.is_build) for each in (evaluation, other)]
    return noise_of_difference(sides, bounded=evaluation.metrics[text].definition.bounded)


def _needed(family: Sequence[Contrast], settings: Settings) -> int | None:
    """Return how many queries must differ in a family's first contrast, or None if enough differ or no number helps."""
    least = out_of_reach(dict(enumerate(family)), settings).get(0)
    if least is not None and counts_signs(family[0], settings):
        return fewest_differing(settings.alpha, least / least_p(family[0], settings))
    return ENOUGH if is_unreliable(family[0], settings) else None


def decided(gate: Gate, lost: Floats, is_sure: Bools) -> tuple[Bools, Bools]:
    """Return which comparisons are beyond a gate's bound, and which pass. `is_sure` marks significant comparisons."""
    if gate.min_gain is not None:
        is_enough = -lost >= gate.min_gain - SLACK
        return ~is_enough, is_enough & is_sure if gate.must else is_enough
    is_within = lost <= (gate.max_drop or 0.0) + SLACK
    return ~is_within, is_within | ~is_sure if gate.unless else is_within
