"""The handbook in three chunkings, as the README shows it."""

from __future__ import annotations

import warnings
from pathlib import Path

from groupgt.experiment.display import Outcome
from groupgt.experiment.runner import run_experiment
from groupgt.render import tables

CONFIG = Path(__file__).parents[2] / "configs" / "rechunk.yaml"
IDS = "examples/handbook/questions.jsonl"


def run(folder: Path, *changes: str) -> Outcome:
    return run_experiment(CONFIG, output=folder, changes=[f"cache={folder / 'cache'}", *changes])


def by_ids(folder: Path) -> Outcome:
    """The same questions and chunks, by the ids that were judged."""
    truths = [f"datasets.{name}.ground_truth=../{IDS}" for name in ("fixed", "sentences", "pages")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(folder, "evaluate.labeller=id", *truths)


def table(folder: Path) -> str:
    """A row for each chunking: by spans every metric, by ids the first."""
    spans, ids = run(folder), by_ids(folder)
    found = {name: own["bm25"] for name, own in spans.evaluations.items()}
    first = next(iter(found.values()))
    headers = ["chunks", *map(first.label_of, first.metrics), "by ids: recall@10"]
    rows = [[name, *each.means.values(), ids.evaluations[name]["bm25"]["recall@10"]] for name, each in found.items()]
    return tables.table(headers, rows)
