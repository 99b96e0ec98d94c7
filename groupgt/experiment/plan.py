"""What an experiment would do, and what of it is done already: the table of `groupgt run --check`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupgt.experiment.cache import Keeper, cache_of
from groupgt.experiment.datasets import Data, read_all
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.process import shared_process
from groupgt.experiment.retrieval import Task, needed
from groupgt.render.tables import Grid

HEADERS = ["dataset", "system", "uses", "questions", "documents", "metrics", "will"]


def plan(
    path: str | os.PathLike[str],
    *,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    refresh: bool = False,
    allow_code: bool = False,
) -> Grid:
    """Checks everything that can be checked without retrieving; headers and rows of what would be done."""
    with shared_process():
        experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code)
        datasets = read_all(experiment)
        keeper = Keeper(cache_of(experiment), refresh)
        tasks: dict[tuple[str, str], list[Task]] = {pair: [] for pair in experiment.pairs()}
        for task in needed(experiment):
            tasks.setdefault((task.dataset, task.system), []).append(task)
        order = {name: place for place, name in enumerate(experiment.systems)}
        rows = [
            _row(experiment, data, dataset, name, keeper, tasks[dataset, name])
            for dataset, data in datasets.items()
            for name in sorted((name for served, name in tasks if served == dataset), key=order.__getitem__)
        ]
    return HEADERS, rows


def _row(
    experiment: Experiment, data: Data, dataset: str, name: str, keeper: Keeper, tasks: Sequence[Task]
) -> list[Any]:
    """One system on one data set: one that is reported, or that one of these combines."""
    system = experiment.systems[name]
    uses = f"{system.config.use} ({system.kind.note})" if system.kind.note else system.config.use
    documents = None
    if system.is_stored:
        will = "read"
    elif system.inputs:
        will = "combine"
    else:
        documents = None if data.corpus is None else len(data.corpus)
        kept = sum(keeper.kept(experiment, data, task) is not None for task in tasks)
        will = "cached" if kept == len(tasks) else "retrieve" if not kept else f"retrieve {len(tasks) - kept}"
    return [dataset, name, uses, len(data.truth), documents, len(experiment.metrics), will]
