"""Run experiment files and write result folders; see `run_experiment`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from groupgt.errors import ConfigError
from groupgt.experiment.answers import Progress, Silence
from groupgt.experiment.experiment import load
from groupgt.experiment.fresh import shared_process
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.runner import Running
from groupgt.report.results import files_of
from groupgt.results.previous import read_previous
from groupgt.results.write import write_results
from groupgt.store.files import slug


def run_experiment(
    path: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    jobs: int = 1,
    refresh: bool = False,
    reuse: bool = False,
    resume: bool = False,
    allow_code: bool = False,
    against: str | os.PathLike[str] | None = None,
    allow_no_previous: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run an experiment file and write its results. Raise `GroupgtError` with all errors.

    A failed gate does not raise an error. See `Outcome.gates`.

    Args:
        path: Experiment file.
        output: Folder for results, instead of the one in the file.
        changes: Changes to single values in the file, such as `evaluate.k=[5]`.
        only: Patterns for the systems to report.
        jobs: Number of processes that retrieve in parallel.
        refresh: Ignore the cache and retrieve, judge and build again.
        reuse: Reuse answers that services, models and custom code gave in earlier runs instead of querying again.
        resume: Continue the newest run that was killed or failed, using the answers it already has. groupgt does not
            check whether code or services have changed. Raises `ConfigError` if no run has the same options, changes,
            queries and corpora.
        allow_code: Allow the file to run custom code.
        against: Result folder of an earlier run, or a folder with several runs (the newest that passed is used). Every
            system is compared with its previous version.
        allow_no_previous: Accept an `against` folder without an earlier run, as in a first run. Nothing is compared,
            and gates that need an earlier run are skipped.
        progress: Progress callback.
    """
    with shared_process() as secrets:
        experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code, secrets=secrets)
        if resume and refresh:
            raise ConfigError("--resume: reuses earlier answers, but --refresh ignores them; remove one of the options")
        running = Running(experiment, progress or Silence(), refresh=refresh, reuse=reuse)
        previous = None if against is None else read_previous(Path(against), experiment, allow_none=allow_no_previous)
        running.begin(changes, only, resume=resume)
        outcome = running.outcome(changes, jobs, previous)
        folder = Path(output) if output is not None else experiment.at(experiment.config.output.folder)
        parent = folder / slug(experiment.title)
        if any(outcome.evaluations.values()):
            outcome = replace(outcome, folder=write_results(outcome, parent, files_of(outcome, parent)))
        running.finish()
        return outcome
