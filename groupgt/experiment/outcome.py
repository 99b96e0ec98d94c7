"""The results of an experiment as plain data, presented by `report`: evaluations, comparisons and gate results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from groupgt.comparison.across import Across, Beside
from groupgt.comparison.compare import Comparison
from groupgt.comparison.contrast import Contrast
from groupgt.comparison.outcomes import Outcomes
from groupgt.comparison.settings import Settings
from groupgt.errors import KeptWarning, printable
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.stages import Stages
from groupgt.experiment.answers import Kept
from groupgt.experiment.config import Gate
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.timing import LATENCIES, Timing
from groupgt.model.ground_truth import GroundTruth
from groupgt.render.results import Result
from groupgt.retrievers.base import Answers
from groupgt.store.files import write_bytes

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


# What is said of a system that has no results, between its name and the reason.
FAILED = "failed and has no results"
# Why a gate has no value to compare with its bound. It passes if there is no previous result to compare with, or if its
# system was left out of the run.
Problem = Literal[
    "failed",
    "no query",
    "no baseline",
    "no pair",
    "few audited",
    "other machine",
    "not measured",
    "no measurement",
    "no previous run",
    "new",
    "refused",
    "no trials",
    "no builds",
    "left out",
]


@dataclass(frozen=True)
class Drop:
    """The drop of a system below its baseline, or below its previous result if `baseline` is None.

    `comparisons` is the number of contrasts in the family. If too few queries differ for the test, `needed` is the
    number that must differ. `noise` is how much trials of the same system may differ, if the gate depends on it.
    """

    baseline: str | None
    lost: float
    is_beyond: bool
    against: Contrast
    settings: Settings
    comparisons: int = 1
    audited: bool = False
    needed: int | None = None
    noise: float | None = None


@dataclass(frozen=True)
class GateResult(Result):
    """The result of one gate (numbered from 1) for one system and data set, with the numbers that explain it.

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
        """Return True if there was nothing to check, because the system was left out or has no previous result."""
        return self.passed and self.problem is not None

    @property
    def timed(self) -> bool:
        """Return True for latency gates, whose results are reported with other timings."""
        return self.asks.metric in LATENCIES


@dataclass(frozen=True, eq=False, kw_only=True)
class Against(Beside):
    """The systems of one data set paired with their previous results for every metric.

    `before` is NaN for queries that are new or have new text. `refused` and `stored` map a system and metric to the
    reason why the system cannot be compared on this metric, or why stored values are used. All other previous results
    are measured again (`again`). `lost` and `gained` map a system to the queries that are complete within the primary
    metric's cutoff only in the previous run, or only in this run, and `counts` to their numbers (means over all pairs
    of trials). `changed` lists queries with new ground truth, and `reworded` those with new text.
    """

    qids: Sequence[str]
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    stored: Mapping[tuple[str, str], str] = field(default_factory=dict)
    added: Sequence[str] = ()
    gone: Sequence[str] = ()
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)
    gained: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    again: Mapping[str, Evaluated] = field(default_factory=dict)
    changed: Sequence[str] = ()
    reworded: Sequence[str] = ()
    queries_only_now: int = 0
    queries_only_then: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Result):
    """The outcome of an experiment. `evaluations[dataset][system]` is sorted from best to worst system.

    `comparison[dataset]` compares every system with the baseline. `systems[dataset]` compares systems on the primary
    metric, with additional data. `gates` lists gate results. `leaders[dataset]` lists the best systems of a data set,
    including ties, and `overall_leaders` the best systems over all data sets. `failed[dataset][system]` is the reason
    why a skipped system has no results. `absent[dataset]` lists ground truth ids missing from the corpus, if results
    are matched by id. `warnings[dataset]` lists the warnings that change the meaning of numbers. `kept` describes
    results that were reused. `previous` is the name of the previous run (empty if there was none, None if no comparison
    was requested), and `against[dataset]` compares every system with its results in that run. `across` compares the
    data sets with each other, if the file requests it. `stages[dataset][system]` shows at which stage a system loses
    groups. `answered[dataset][system]` compares a system's answers with its results.
    """

    experiment: Experiment
    evaluations: dict[str, dict[str, Evaluated]]
    answers: dict[tuple[str, str], Answers]
    timings: list[Timing]
    digests: dict[str, str] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    comparison: dict[str, Comparison] = field(default_factory=dict)
    systems: dict[str, Comparison] = field(default_factory=dict)
    gates: list[GateResult] = field(default_factory=list)
    leaders: dict[str, list[str]] = field(default_factory=dict)
    overall_leaders: list[str] = field(default_factory=list)
    absent: dict[str, list[str]] = field(default_factory=dict)
    warnings: dict[str, list[KeptWarning]] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    previous: str | None = None
    against: dict[str, Against] = field(default_factory=dict)
    across: Across | None = None
    stages: dict[str, dict[str, Stages]] = field(default_factory=dict)
    answered: dict[str, dict[str, Outcomes]] = field(default_factory=dict)
    folder: Path | None = None
    truths: dict[str, GroundTruth] = field(default_factory=dict, repr=False)
    passages: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def to_metrics(self) -> dict[str, float]:
        """Return the means as a flat dict, such as `{"bm25/recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names. With several data sets, each name begins with the data set.
        Undefined means are left out.
        """
        return self._teller.metrics()

    def plot(self, name: str = "means", *, dataset: str | None = None) -> Figure:
        """Draw a figure from `groupgt.render.figures.FIGURES`. `dataset` is optional if there is only one data set."""
        return self._teller.plot(name, dataset=dataset)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page of this experiment, identical to `report.html` in its result folder."""
        write_bytes(Path(path), self._teller.page())

    def __repr__(self) -> str:
        systems = sum(map(len, self.evaluations.values()))
        gates = f", {sum(gate.passed for gate in self.gates)} of {len(self.gates)} gates passed" if self.gates else ""
        best = f"best {self.best}{gates}, {self.folder}"
        return printable(f"Outcome({self.experiment.title}: {systems} evaluations, {best})")

    @property
    def best(self) -> dict[str, str | None]:
        """The best system for each data set, or the first one if several tie."""
        return {dataset: next(iter(names), None) for dataset, names in self.leaders.items()}

    @property
    def overall(self) -> str | None:
        """The best system over all data sets, or the first one if several tie."""
        return next(iter(self.overall_leaders), None)

    @property
    def passed(self) -> bool:
        """Return True if every gate passed and every data set has results."""
        return all(gate.passed for gate in self.gates) and all(self.evaluations.values())

    @property
    def retrieved(self) -> int:
        """The number of retrievals that this run made, at least in part."""
        return self.kept.retrieved

    @property
    def cached(self) -> int:
        """The number of retrievals taken from the cache."""
        return self.kept.cached

    def timing(self, dataset: str, system: str) -> Timing | None:
        """Return the timing of a system on a data set, or None if it was not timed."""
        return next((timing for timing in self.timings if (timing.dataset, timing.system) == (dataset, system)), None)
