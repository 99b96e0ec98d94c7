"""What an experiment found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from groupgt.evaluation.result import Evaluation
from groupgt.experiment.config import Experiment

__all__ = ["Outcome", "Timing"]


@dataclass(frozen=True)
class Timing:
    """How long one system took on one dataset, in seconds."""

    dataset: str
    system: str
    build: float
    retrieve: float
    queries: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found: `evaluations[dataset][system]`, best first, and the folder the results went to."""

    experiment: Experiment
    evaluations: dict[str, dict[str, Evaluation]]
    scores: dict[tuple[str, str], dict[str, list[float]]]
    timings: list[Timing]
    folder: Path | None = None
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> dict[str, str]:
        """The best system of each dataset, by the primary metric."""
        return {dataset: next(iter(found)) for dataset, found in self.evaluations.items() if found}
