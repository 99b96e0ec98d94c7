"""Report what each gate can detect, before a run, from the values of earlier runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from groupgt.comparison.draws import SLACK
from groupgt.comparison.settings import Settings
from groupgt.errors import DataError, GroupgtError, display
from groupgt.evaluation.estimates import mean_of
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.experiment.config import Gate
from groupgt.experiment.datasets import Data
from groupgt.experiment.detectable import Detectable, detectable, has_limits, share_of_changes
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.gates import members
from groupgt.experiment.previous import former_values
from groupgt.experiment.systems import matching
from groupgt.experiment.timing import LATENCIES
from groupgt.formats.parts import are_parts, is_url
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats
from groupgt.options import read_section
from groupgt.render.tables import counted, fixed
from groupgt.report.gates import change_of
from groupgt.results.folder import ResultFolder, Scored, folders_of
from groupgt.results.previous import earlier_runs, former_of
from groupgt.store.files import slug
from groupgt.store.stamped import age_of

# Values of one system and metric in the newest earlier runs, newest first, by query; raises `DataError` without any.
Runs = Callable[[str, str, Metric], Sequence[Floats]]


@dataclass(frozen=True)
class _Known:
    """The data available before a run: `systems` and `truths` by data set, and the values of earlier `runs`."""

    gates: Sequence[Gate]
    systems: Mapping[str, Sequence[str]]
    truths: Mapping[str, GroundTruth]
    runs: Runs
    baseline: str | None
    settings: Settings
    convention: str

    def lines(self) -> Iterator[str]:
        """Yield a line for each gate on each data set and system, except gates on latency."""
        for number, gate in enumerate(self.gates, 1):
            for dataset in matching(gate.dataset, self.systems) if gate.metric not in LATENCIES else ():
                names = matching(gate.system, self.systems[dataset])
                is_shared = gate.is_relative and gate.against == "baseline"
                # A drop starts from the baseline's values, whatever the system.
                for name in [gate.system] if is_shared and names else names:
                    start = f"gate {number} ({gate.bound}), {name} on {dataset}"
                    try:
                        yield f"{start}: {self._text(gate, dataset, self.baseline if is_shared else name)}"
                    except GroupgtError as error:
                        yield f"{start}: its sensitivity is unknown, because {error}"

    def _text(self, gate: Gate, dataset: str, name: str | None) -> str:
        if name is None:
            raise DataError("there is no baseline")
        metric, inside = parse_metric(gate.metric, self.convention), members(gate, self.truths[dataset])
        runs = [values[inside] for values in self.runs(dataset, name, metric)]
        values = runs[0][~np.isnan(runs[0])]
        if not len(values):
            raise DataError(f"no query has a value for {name}")
        if not gate.is_relative:
            return _of_bound(gate, mean_of(values))
        if gate.unless == "within_noise":
            raise DataError("the gate depends on how much the run's trials vary")
        is_gain = gate.min_gain is not None
        if not has_limits(metric, is_gain=is_gain):
            raise DataError(f"{metric.name} has no {'best' if is_gain else 'worst'} value")
        others = max(len(self.systems[dataset]) - (gate.against == "baseline"), 1)
        return detected(gate, detectable(gate, values, metric, self.settings, others, share_of_changes(runs)))


def detected(gate: Gate, found: Detectable) -> str:
    """Describe the drop or gain that a gate detects 8 times in 10."""
    what, way = change_of(gate), "worse" if gate.min_gain is None else "better"
    size = f"with {counted(found.queries, 'query')}"
    if found.one_way is None:
        limit = "a total loss" if way == "worse" else "the largest possible gain"
        return f"{size}, no {what} is large enough for this gate to catch it 8 times in 10, not even {limit}"
    both = "none" if found.both_ways is None else f"{found.both_ways:.2g} or more"
    text = (
        f"{size}, this gate catches a true {what} of {found.one_way:.2g} or more (8 times in 10) if queries only get "
    )
    text += f"{way}. If {100 * found.share:.2g}% of queries also change in both directions, it catches {both}"
    if gate.max_drop is not None and found.one_way > gate.max_drop + SLACK:
        how = "passes unless significant" if gate.unless else "always fails"
        text += f". A measured {what} beyond {gate.max_drop:g} {how}"
    return text


def _of_bound(gate: Gate, mean: float) -> str:
    """Describe how far the mean of an earlier run is from a bound."""
    bound = gate.min if gate.min is not None else gate.max or 0.0
    room, change, back = (mean - bound, "drops", "rises") if gate.min is not None else (bound - mean, "rises", "drops")
    if room < -SLACK:
        return f"fails at the earlier mean of {fixed(mean)}; passes if the mean {back} by at least {fixed(-room)}"
    return f"fails if the mean {change} by more than {fixed(room)} (it was {fixed(mean)})"


def in_experiment(experiment: Experiment, datasets: Mapping[str, Data], against: Path | None) -> Iterator[str]:
    """Yield what each gate of an experiment can detect, based on runs in the folder `against` or in its own folder."""
    config = experiment.config
    path = against or experiment.at(config.output.folder) / slug(experiment.title)

    @cache
    def folders() -> list[ResultFolder]:
        is_there = os.path.isfile(path) or (os.path.isdir(path) and os.listdir(path))
        return list(islice(earlier_runs(path, experiment), 2)) if is_there else []

    def runs(dataset: str, name: str, metric: Metric) -> list[Floats]:
        data, found, why = datasets[dataset], [], "this system has no earlier run"
        if data.request.audit is not None:
            raise DataError("an audit corrects the differences")
        for folder in folders():
            if name in folder.manifest.counts.get(dataset, {}):
                try:
                    found.append(former_values(former_of(folder, dataset, experiment), data, name, metric))
                except GroupgtError as error:
                    why = str(error)
        if not found and name in experiment.systems and experiment.systems[name].is_stored:
            if is_url(experiment.options(name, dataset).path) or config.engine.use == "spark":
                raise DataError("this system has no earlier run, and groupgt does not read its results before a run")
            found.append(_measured(experiment, data, dataset, name, metric))
        if not found:
            raise DataError(why)
        return found

    served = {dataset: [name for each, name in experiment.pairs() if each == dataset] for dataset in datasets}
    truths = {dataset: data.truth for dataset, data in datasets.items()}
    settings, convention = experiment.settings, experiment.convention
    return _Known(config.gate, served, truths, runs, config.baseline, settings, convention).lines()


def _measured(experiment: Experiment, data: Data, dataset: str, name: str, metric: Metric) -> Floats:
    """Evaluate a system from its stored results, without running anything."""
    options, text = experiment.options(name, dataset), str(metric)
    run = data.request.reading.but(parts=are_parts(options.path), **options.how).run(options.path, data.truth, name)
    request = replace(data.request, metrics={text: metric}, by=())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run reports suspicious data
        return evaluate_run(request, data.truth, run, name).values[text]


def in_folder(folder: ResultFolder, settings: Settings) -> Iterator[str]:
    """Yield what each gate of a result folder's experiment can detect in the next run on one of its data sets."""
    gates = [read_section(Gate, each, display)[0] for each in folder.config.get("gate", [])]
    truth, dataset = folder.truth(folder.policy), folder.dataset

    @cache
    def scored() -> list[Mapping[str, Scored]]:
        siblings = folders_of([folder.path.parent]) if folder.path.parent.is_dir() else []
        older = [each for each in siblings if age_of(each) < age_of(folder.path)][-1:]
        return [ResultFolder.read(each).systems.get(dataset, {}) for each in (folder.path, *older)]

    def runs(dataset: str, name: str, metric: Metric) -> list[Floats]:
        if folder.audit is not None:
            raise DataError("an audit corrects the differences")
        found = []
        for systems in scored():
            values = systems[name].values.get(str(metric)) if name in systems else None
            if values is not None:
                places = {qid: place for place, qid in enumerate(systems[name].qids)}
                at = np.array([places.get(qid, -1) for qid in truth.qids])
                found.append(np.where(at < 0, np.nan, values[at]))
        if not found:
            raise DataError(f"the folder has no values for {name}")
        return found

    systems, baseline = {dataset: list(folder.manifest.counts[dataset])}, folder.baseline
    return _Known(gates, systems, {dataset: truth}, runs, baseline, settings, folder.convention).lines()
