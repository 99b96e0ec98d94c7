"""The results of an experiment as plain data, presented by `report`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from groupgt.comparison.across import Across
from groupgt.comparison.compare import Comparison
from groupgt.errors import Doubt, printable
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.stages import Stages
from groupgt.experiment.answers import Kept
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.gates import GateResult
from groupgt.experiment.previous import Against
from groupgt.experiment.timing import Timing
from groupgt.model.ground_truth import GroundTruth
from groupgt.render.results import Result
from groupgt.retrievers.base import Answers
from groupgt.store.files import write_bytes

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Result):
    """The outcome of an experiment; `evaluations[dataset][system]` is sorted from best to worst system.

    `comparison[dataset]` compares every system with the baseline; `systems[dataset]` does so for the primary metric,
    with additional data. `gates` lists gate results. `leaders[dataset]` lists the best systems of a data set, including
    ties, and `overall_leaders` the best systems over all data sets. `failed[dataset][system]` is the reason why a
    skipped system has no results. `absent[dataset]` lists ground truth ids missing from the corpus, if results are
    matched by id. `doubts[dataset]` lists the warnings that change the meaning of numbers. `kept` describes results
    that were reused. `previous` is the name of the previous run (empty if there was none, None if no comparison was
    requested), and `against[dataset]` compares every system with its results in that run.
    `across` compares the data sets with each other, if the file requests it. `stages[dataset][system]` shows at which
    stage a system loses groups.
    """

    experiment: Experiment
    evaluations: dict[str, dict[str, Evaluation]]
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
    doubts: dict[str, list[Doubt]] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    previous: str | None = None
    against: dict[str, Against] = field(default_factory=dict)
    across: Across | None = None
    stages: dict[str, dict[str, Stages]] = field(default_factory=dict)
    folder: Path | None = None
    truths: dict[str, GroundTruth] = field(default_factory=dict, repr=False)
    passages: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def to_metrics(self) -> dict[str, float]:
        """Returns the means as a flat dict, such as `{"bm25/recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names; with several data sets, each name begins with the data set.
        Undefined means are left out.
        """
        return self._teller.metrics()

    def plot(self, name: str = "means", *, dataset: str | None = None) -> Figure:
        """Draws a figure from `groupgt.render.figures.FIGURES`; `dataset` is optional if there is only one."""
        return self._teller.plot(name, dataset=dataset)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes a self-contained HTML page of this experiment, identical to `report.html` in its result folder."""
        write_bytes(Path(path), self._teller.page())

    def __repr__(self) -> str:
        systems = sum(map(len, self.evaluations.values()))
        gates = f", {sum(gate.passed for gate in self.gates)} of {len(self.gates)} gates passed" if self.gates else ""
        best = f"best {self.best}{gates}, {self.folder}"
        return printable(f"Outcome({self.experiment.title}: {systems} evaluations, {best})")

    @property
    def best(self) -> dict[str, str | None]:
        """The best system for each data set; the first one if several tie."""
        return {dataset: next(iter(names), None) for dataset, names in self.leaders.items()}

    @property
    def overall(self) -> str | None:
        """The best system over all data sets; the first one if several tie."""
        return next(iter(self.overall_leaders), None)

    @property
    def passed(self) -> bool:
        """Returns True if every gate passed."""
        return all(gate.passed for gate in self.gates)

    @property
    def idle_gates(self) -> list[int]:
        """The numbers of the gates that matched no system."""
        matched = {gate.gate for gate in self.gates}
        return [number for number in range(1, len(self.experiment.config.gate) + 1) if number not in matched]

    @property
    def retrieved(self) -> int:
        """The number of retrievals that this run made, at least in part."""
        return self.kept.retrieved

    @property
    def cached(self) -> int:
        """The number of retrievals taken from the cache."""
        return self.kept.cached

    def timing(self, dataset: str, system: str) -> Timing | None:
        """Returns the timing of a system on a data set, or None if it was not timed."""
        matches = (timing for timing in self.timings if (timing.dataset, timing.system) == (dataset, system))
        return next(matches, None)
