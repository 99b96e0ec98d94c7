"""What an experiment would do, and what of it is done already."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupgt.experiment.cache import Keeper, cache_of
from groupgt.experiment.datasets import read_all
from groupgt.experiment.experiment import load
from groupgt.experiment.retrieval import Task, needed


def plan(
    path: str | os.PathLike[str],
    *,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    refresh: bool = False,
    allow_code: bool = False,
) -> tuple[list[str], list[list[Any]]]:
    """Checks everything that can be checked without retrieving; headers and rows of what would be done."""
    experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code)
    data = read_all(experiment)
    keeper = Keeper(cache_of(experiment), refresh)
    rows: list[list[Any]] = []
    tasks: dict[tuple[str, str], list[Task]] = {}
    for task in needed(experiment):
        tasks.setdefault((task.dataset, task.system), []).append(task)
    reported = set(experiment.pairs())
    order = {name: place for place, name in enumerate(experiment.systems)}
    places = {name: place for place, name in enumerate(data)}
    for dataset, name in sorted({*reported, *tasks}, key=lambda pair: (places[pair[0]], order[pair[1]])):
        system, own = experiment.systems[name], data[dataset]
        mine = tasks.get((dataset, name), [])
        size = len(own.corpus) if own.corpus is not None and not (system.is_stored or system.inputs) else None
        uses = f"{system.config.use} ({system.kind.note})" if system.kind.note else system.config.use
        if system.is_stored:
            will = "read"
        elif system.inputs:
            will = "combine"
        else:
            kept = sum(keeper.kept(experiment, own, task) is not None for task in mine)
            will = "cached" if kept == len(mine) else "retrieve" if not kept else f"retrieve {len(mine) - kept}"
        rows.append([dataset, name, uses, len(own.truth), size, len(experiment.metrics), will])
    return ["dataset", "system", "uses", "questions", "documents", "metrics", "will"], rows
