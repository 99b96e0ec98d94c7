"""Plans a run without retrieving anything. The plan makes every possible check, and lists each system and labeller."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from groupgt.engines.budgets import scores_of
from groupgt.engines.choice import Engine
from groupgt.errors import ConfigError, Faults, GroupgtError, RetrieverError, without_warnings
from groupgt.experiment.answers import NONE_LEFT, Silence, SystemAnswers
from groupgt.experiment.cache import AnswerCache, Task, needed, run_key
from groupgt.experiment.datasets import Data, read_all
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import Fresh, Here, shared_process
from groupgt.experiment.retrieval import Left, left_behind, left_by
from groupgt.experiment.runner import evaluated
from groupgt.experiment.systems import placed
from groupgt.formats.parts import is_url
from groupgt.labellers.code import Code
from groupgt.model.values import SCORE
from groupgt.retrievers.base import Corpus, Setting

HEADERS = ["dataset", "system", "uses", "queries", "documents", "metrics", "calls", "will"]


class Plan(NamedTuple):
    """A table of planned work, the checks that would run user code, and the work that an interrupted run has `left`."""

    headers: list[str]
    rows: list[list[Any]]
    unchecked: list[str]
    experiment: Experiment
    left: Left | None
    datasets: Mapping[str, Data]


def plan(
    path: str | os.PathLike[str],
    *,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    refresh: bool = False,
    reuse: bool = False,
    resume: bool = False,
    allow_code: bool = False,
) -> Plan:
    """Check everything that can be checked without retrieval, and raise the same errors as a run."""
    with shared_process() as secrets:
        experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code, dry=True, secrets=secrets)
        cache = AnswerCache.of(experiment, refresh=refresh, reuse=reuse)
        verdicts = cache.verdicts()
        datasets = read_all(experiment, verdicts)
        pairs = list(experiment.pairs())
        tasks: dict[tuple[str, str], list[Task]] = {pair: [] for pair in pairs}
        planned = needed(experiment, datasets)
        for task in planned:
            tasks.setdefault((task.dataset, task.name), []).append(task)
        left = left_by(replace(cache, run=run_key(planned, changes, only)), planned, verdicts)
        if resume and left is None:
            raise ConfigError(NONE_LEFT)
        used = left.answers if resume and left is not None else {}
        faults = Faults()
        rows: list[list[Any]] = []
        for dataset, data in datasets.items():
            names = [name for name in experiment.systems if (dataset, name) in tasks]
            for name in names:
                answers = SystemAnswers(experiment, datasets, cache, Silence())
                rows.append(_row(answers, dataset, name, tasks[dataset, name], used, faults))
            rows += _verdicts(experiment, data, dataset, sum(served == dataset for served, _ in pairs))
        faults.stop(ConfigError)
        hide = experiment.hide
        unused = None if resume or reuse else left
        return Plan(HEADERS, hide.sure(rows), hide(experiment.unchecked or []), experiment, unused, datasets)


def _row(
    answers: SystemAnswers, dataset: str, name: str, tasks: Sequence[Task], resumed: Mapping[Any, int], faults: Faults
) -> list[Any]:
    """Describe one system on one data set, either a reported system or an input to a fusion."""
    experiment, data, cache = answers.experiment, answers.data[dataset], answers.keeper
    system = experiment.systems[name]
    by_score = any(budget.unit == SCORE for budget in data.request.budgets)
    uses = f"{system.config.use} ({system.kind.note})" if system.kind.note else system.config.use
    documents, count = None, 0
    if system.is_stored:
        will = "read"
        is_elsewhere = is_url(experiment.options(name, dataset).path)
        if not experiment.unchecked and not isinstance(data.request.labeller, Code) and not is_elsewhere:
            _check_stored(answers, dataset, name, faults)
    elif system.inputs:
        will = "combine"
    else:
        documents = None if data.corpus is None else len(data.corpus)
        kept = {task: cache.kept(task) for task in tasks}
        waiting = [task for task, done in kept.items() if done is None]
        if by_score and any(done is not None and done.answers.scores is None for done in kept.values()):
            what = "a score threshold needs a score for every result, but this system's cached results have no scores"
            faults.add(f"dataset {dataset!r}", f"system {name!r}: {what}")
        singly = system.options.asks_singly()
        setting = Setting(Corpus([], []), folder=experiment.path.parent.resolve())
        try:
            if system.kind.imports_target and experiment.allow_code:
                # It is imported in a new process to see how it is called.
                with closing(Fresh(name, system.kind, system.options, setting, builds=False)) as fresh:
                    singly = fresh.singly
                    data.queries.sending(fresh.sends, fresh.way)
                    uses += f": {fresh.way}" if fresh.way else ""
            elif system.kind.probed and (experiment.allow_code or not system.options.program()):
                Here(name, system.kind, system.options, setting).close()
        except GroupgtError as error:
            singly = None
            for text in error.faults:
                path = system.paths.get(text.partition(": ")[0], ("systems", system.family, "use"))
                faults.add(experiment.document.place(path), f"systems.{name}: {text}")
        will = "cached" if not waiting else "retrieve" if len(waiting) == len(tasks) else f"retrieve {len(waiting)}"
        left = sum(left_behind(cache, task) for task in waiting) or resumed.get((dataset, name), 0)
        if left:
            will += f", except {left:,} answers that an interrupted run left"
        count = sum(task.calls(singly=singly) for task in waiting)
        for task in tasks if singly is not None else ():
            with faults.merging():
                task.check_timed(singly=singly)
    return [dataset, name, uses, len(data.truth), documents, len(experiment.metrics), count, will]


def _check_stored(answers: SystemAnswers, dataset: str, name: str, faults: Faults) -> None:
    """Evaluate stored results, so that a dry run reports all errors that the run would."""
    experiment, data = answers.experiment, answers.data[dataset]
    try:
        run = answers.run_of(dataset, name)
        if any(budget.unit == SCORE for budget in data.request.budgets):
            scores_of(data.truth, run, experiment.policy)
        if experiment.systems[name].config.on_error == "fail" and name in experiment.chosen:
            with without_warnings():
                reading = replace(data.request.reading, engine=Engine())
                evaluated(replace(data, request=replace(data.request, reading=reading)), run, dataset, name)
    except RetrieverError as error:
        faults.merge(error)
    except GroupgtError as error:
        faults.merge(placed(error, dataset, name, ConfigError))


def _verdicts(experiment: Experiment, data: Data, dataset: str, systems: int) -> list[list[Any]]:
    """Estimate the maximum number of batched calls to a user-defined labeller."""
    judge = data.request.labeller
    if not isinstance(judge, Code):
        return []
    pairs = systems * experiment.config.evaluate.depth * len(data.truth.ids)
    calls = math.ceil(pairs / judge.options.batch_size)
    section = experiment.config.evaluate.labeller
    kept = f", except {len(judge.kept.earlier):,} that earlier runs judged" if judge.kept.earlier else ""
    will = f"judge at most {pairs:,} pairs{kept}"
    uses = f"{section.use}: {section.with_.get('target')}"
    return [[dataset, "(labeller)", uses, len(data.truth), None, None, calls, will]]
