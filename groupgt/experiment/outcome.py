"""What a run found: evaluations, comparisons, gates, the best. `runner` makes it; `results` and `display` read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from groupgt.comparison.result import Comparison
from groupgt.errors import printable
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.gates import GateResult
from groupgt.experiment.timing import Timing
from groupgt.retrievers.base import Answers


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What an experiment found: `evaluations[dataset][system]`, best first, and the folder the results went to.

    `comparison[dataset]` holds every system against the baseline, `gates` each gate's result,
    `failed[dataset][system]` why a system that may be skipped has no results. `retrieved` and `cached` count
    retrievals, `cached_live` those of these whose answers come from outside and may have changed.
    """

    experiment: Experiment
    evaluations: dict[str, dict[str, Evaluation]]
    answers: dict[tuple[str, str], Answers]
    timings: list[Timing]
    digests: dict[str, str] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    comparison: dict[str, Comparison] = field(default_factory=dict)
    gates: list[GateResult] = field(default_factory=list)
    best: dict[str, str | None] = field(default_factory=dict)
    overall: str | None = None
    retrieved: int = 0
    cached: int = 0
    cached_live: int = 0
    folder: Path | None = None
    passages: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    texts: dict[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        systems = sum(map(len, self.evaluations.values()))
        gates = f", {sum(gate.passed for gate in self.gates)} of {len(self.gates)} gates passed" if self.gates else ""
        best = f"best {self.best}{gates}, {self.folder}"
        return printable(f"Outcome({self.experiment.config.name}: {systems} evaluations, {best})")

    @property
    def passed(self) -> bool:
        """Whether every gate holds."""
        return all(gate.passed for gate in self.gates)

    def timing(self, dataset: str, system: str) -> Timing | None:
        """How long a system took on a dataset, where that is known."""
        known = (timing for timing in self.timings if (timing.dataset, timing.system) == (dataset, system))
        return next(known, None)
