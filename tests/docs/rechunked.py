"""The handbook in three chunkings, as the README shows it."""

from __future__ import annotations

from pathlib import Path

from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.report.run import run_experiment

CONFIG = Path(__file__).parents[2] / "configs" / "rechunk.yaml"


def run(folder: Path, *changes: str) -> Outcome:
    return run_experiment(CONFIG, output=folder, changes=[f"cache={folder / 'cache'}", *changes])


def table(outcome: Outcome) -> str:
    """A row for each chunking."""
    found = {name: own["bm25"] for name, own in outcome.evaluations.items()}
    first = next(iter(found.values()))
    headers = ["chunks", *map(first.label_of, first.metrics)]
    return tables.table(headers, [[name, *each.means.values()] for name, each in found.items()])
