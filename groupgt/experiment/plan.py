"""Plans a run without retrieving anything: runs all possible checks and lists each system and labeller."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from groupgt.errors import ConfigError, Faults, GroupgtError
from groupgt.experiment.cache import AnswerCache, Task, needed
from groupgt.experiment.datasets import Data, read_all
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import Fresh, shared_process
from groupgt.experiment.retrieval import left_behind
from groupgt.labellers.code import Code

HEADERS = ["dataset", "system", "uses", "queries", "documents", "metrics", "calls", "will"]


class Plan(NamedTuple):
    """A table of planned work, plus the checks that were skipped because they would run user code."""

    headers: list[str]
    rows: list[list[Any]]
    unchecked: list[str]
    experiment: Experiment


def plan(
    path: str | os.PathLike[str],
    *,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    refresh: bool = False,
    reuse: bool = False,
    allow_code: bool = False,
) -> Plan:
    """Checks everything that can be checked without retrieval; raises the same errors as a run."""
    with shared_process() as secrets:
        experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code, dry=True, secrets=secrets)
        cache = AnswerCache.of(experiment, refresh=refresh, reuse=reuse)
        datasets = read_all(experiment, cache.verdicts())
        pairs = [pair for pair in experiment.pairs() if pair[0] in datasets]
        tasks: dict[tuple[str, str], list[Task]] = {pair: [] for pair in pairs}
        for task in needed(experiment, datasets, pairs):
            tasks.setdefault((task.dataset, task.name), []).append(task)
        faults = Faults()
        rows: list[list[Any]] = []
        for dataset, data in datasets.items():
            names = [name for name in experiment.systems if (dataset, name) in tasks]
            rows += [_row(experiment, data, dataset, name, cache, tasks[dataset, name], faults) for name in names]
            rows += _verdicts(experiment, data, dataset, sum(served == dataset for served, _ in pairs))
        faults.stop(ConfigError)
        hide = experiment.hide
        return Plan(HEADERS, hide.sure(rows), hide(experiment.unchecked or []), experiment)


def _row(
    experiment: Experiment,
    data: Data,
    dataset: str,
    name: str,
    cache: AnswerCache,
    tasks: Sequence[Task],
    faults: Faults,
) -> list[Any]:
    """Describes one system on one data set, either a reported system or an input to a fusion."""
    system = experiment.systems[name]
    uses = f"{system.config.use} ({system.kind.note})" if system.kind.note else system.config.use
    documents, count = None, 0
    if system.is_stored:
        will = "read"
    elif system.inputs:
        will = "combine"
    else:
        documents = None if data.corpus is None else len(data.corpus)
        waiting = [task for task in tasks if cache.kept(task) is None]
        singly = system.options.asks_singly()
        if system.kind.runs_code and experiment.allow_code:
            try:  # it is imported in a new process to see how it is called
                with closing(Fresh(name, system.kind, system.options, experiment.path.parent.resolve())) as fresh:
                    singly = fresh.singly
                    uses += f": {fresh.way}" if fresh.way else ""
            except GroupgtError as error:
                singly = None
                for text in error.faults:
                    faults.add(experiment.document.place(system.paths["target"]), f"systems.{name}: {text}")
        will = "cached" if not waiting else "retrieve" if len(waiting) == len(tasks) else f"retrieve {len(waiting)}"
        left = sum(left_behind(cache, task) for task in waiting)
        if left:
            will += f", but for {left:,} answers of an interrupted run"
        count = sum(task.calls(singly=singly) for task in waiting)
        for task in tasks if singly is not None else ():
            try:
                task.check_timed(singly=singly)
            except ConfigError as error:
                faults.merge(error)
    return [dataset, name, uses, len(data.truth), documents, len(experiment.metrics), count, will]


def _verdicts(experiment: Experiment, data: Data, dataset: str, systems: int) -> list[list[Any]]:
    """Estimates the maximum number of batched calls to a user-defined labeller."""
    judge = data.request.labeller
    if not isinstance(judge, Code):
        return []
    pairs = systems * experiment.config.evaluate.depth * len(data.truth.ids)
    calls = math.ceil(pairs / judge.options.batch_size)
    section = experiment.config.evaluate.labeller
    kept = f", but for {len(judge.kept.earlier):,} that are kept" if judge.kept.earlier else ""
    will = f"judge at most {pairs:,} pairs{kept}"
    uses = f"{section.use}: {section.with_.get('target')}"
    return [[dataset, "(labeller)", uses, len(data.truth), None, None, calls, will]]
