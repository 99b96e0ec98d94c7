"""An AutoRAG project as an experiment file, and whether the figures that AutoRAG stored come out again."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from groupgt.experiment.autorag import experiment_text, stored_means
from groupgt.experiment.runner import run_experiment
from groupgt.store.files import write_text

__all__ = ["Imported", "import_project"]

# Means are sums in another order there: they may differ by a few bits.
SLACK = 1e-9


@dataclass(frozen=True)
class Imported:
    """How many systems a project holds, how many means AutoRAG stored of them, and those that come out otherwise."""

    systems: int
    means: int
    different: list[str]


def import_project(project: Path, target: Path) -> Imported:
    """Writes the experiment file of a project, runs it, and sets its means beside those that AutoRAG stored."""
    write_text(target, experiment_text(project, target))
    stored = stored_means(project)
    with tempfile.TemporaryDirectory() as folder:
        found = next(iter(run_experiment(target, output=folder).evaluations.values()))
    different = [
        f"{system}: {metric} is {found[system][metric]:.6f} here, and {mean:.6f} was stored"
        for system, means in stored.items()
        for metric, mean in means.items()
        if not math.isclose(found[system][metric], mean, rel_tol=0, abs_tol=SLACK)
    ]
    return Imported(len(stored), sum(map(len, stored.values())), different)
