"""Checks an experiment's files for `groupgt check`, reading them as a run would, but without retrieving anything."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from groupgt.curation.check import Check, checked
from groupgt.engines.choice import Engine
from groupgt.errors import Faults
from groupgt.experiment.answers import Silence, SystemAnswers
from groupgt.experiment.cache import AnswerCache
from groupgt.experiment.datasets import read_each
from groupgt.experiment.experiment import load
from groupgt.experiment.fresh import shared_process
from groupgt.experiment.yaml import exists
from groupgt.formats.answers import read_answers
from groupgt.formats.parts import is_url
from groupgt.labellers.code import Code
from groupgt.render.results import Result


@dataclass(frozen=True)
class DataChecks(Result):
    """The checks of each data set in the experiment `name`. `unchecked` lists what was not read."""

    name: str
    checks: dict[str, Check]
    unchecked: list[str] = field(default_factory=list)

    @property
    def fails(self) -> dict[str, dict[str, int]]:
        """For each data set whose check fails, the number of problems of each kind that make scores wrong."""
        return {name: check.fails for name, check in self.checks.items() if check.fails}


def check_experiment(path: Path, *, allow_code: bool = False) -> DataChecks:
    """Check all files of ground truth, corpora, results and answers, and raise all errors together."""
    with shared_process() as secrets:
        experiment = load(path, allow_code=allow_code, dry=True, files_only=True, secrets=secrets)
        experiment = replace(experiment, policy=experiment.policy.of_checks)
        cache = AnswerCache.of(experiment, refresh=False, reuse=False)
        datasets = read_each(experiment, cache.verdicts())
        answers = SystemAnswers(experiment, datasets, cache, Silence())
        faults, checks, unchecked = Faults(), dict[str, Check](), list[str]()
        for name, data in datasets.items():
            runs = _runs(answers, name, faults, unchecked)
            # Only stored results have directions here.
            scores = {run: experiment.systems[run].config.scores for run in runs if run in experiment.systems}
            reading = data.request.reading.but(engine=Engine(), scores=scores)
            truth = experiment.config.datasets[name].ground_truth
            with faults.merging():
                checks[name] = checked(
                    experiment.hide.sure(truth),
                    data.truth,
                    list(runs.items()),
                    replace(data.request, reading=reading),
                    file=experiment.at(truth),
                    title=f"dataset {name!r}: ",
                )
        faults.stop()
        return DataChecks(experiment.title, checks, experiment.hide.sure(unchecked))


def _runs(answers: SystemAnswers, dataset: str, faults: Faults, unchecked: list[str]) -> dict[str, Any]:
    """Return a data set's results that are stored in files, by system, or by system and stage."""
    experiment, data = answers.experiment, answers.data[dataset]
    runs: dict[str, Any] = {}
    for name, system in experiment.systems.items():
        if not system.config.serves(dataset):
            continue
        if system.is_stored and is_url(experiment.options(name, dataset).path):
            unchecked.append(f"dataset {dataset!r}: the results of {name!r}, which are at a URL")
        elif system.is_stored:
            with faults.merging():
                runs[name] = answers.run_of(dataset, name)
        # A stage may also be a system that is invalid here.
        stages = {stage.name: experiment.at(stage.source) for stage in experiment.stages(name, dataset)}
        reading = data.request.reading.but(engine=Engine(), scores=system.config.scores)
        for stage, path in stages.items():
            with faults.merging():
                runs |= {f"{name}: {stage}": reading.run(path, data.truth)} if exists(path) else {}
        if (config := system.config.answers) is not None:
            for file in config.paths(dataset).values():
                with faults.merging():
                    read_answers(experiment.at(file), config.columns)
    if runs and isinstance(data.request.labeller, Code):
        unchecked.append(f"dataset {dataset!r}: results, because their labeller runs code")
        return {}
    return runs
