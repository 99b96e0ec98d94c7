"""`run_experiment`: an experiment from its file to a folder of results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from groupgt.experiment.answers import Progress, Silence
from groupgt.experiment.experiment import load
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.process import shared_process
from groupgt.experiment.runner import Running
from groupgt.report.previous import read_previous
from groupgt.report.results import write_results


def run_experiment(
    path: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    only: Sequence[str] = (),
    jobs: int = 1,
    refresh: bool = False,
    reuse: bool = False,
    allow_code: bool = False,
    against: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Runs an experiment file and writes its results; raises `GroupgtError` with everything that is wrong.

    A failed gate does not raise: see `Outcome.gates`.

    Args:
        path: The experiment file.
        output: The folder of results, in place of the one that the file names.
        changes: Single values of the file that are changed, such as `evaluate.k=[5]`.
        only: Patterns of the systems to report.
        jobs: How many processes retrieve at once.
        refresh: Retrieve what is kept as well, ask judges again, and make again what scripts have made.
        reuse: Use what services, judges and code of yours said in earlier runs instead of asking again.
        allow_code: Let the file run code of yours.
        against: A result folder of an earlier run, or a folder that holds some (the newest is taken): every system is
            compared with its former self. Where nothing is there yet, nothing is compared.
        progress: Progress callback.
    """
    with shared_process() as secrets:
        experiment = load(Path(path), changes=changes, only=only, allow_code=allow_code, secrets=secrets)
        running = Running.of(experiment, progress or Silence(), refresh=refresh, reuse=reuse)
        previous = None if against is None else read_previous(Path(against), experiment)
        outcome = running.outcome(changes, jobs, previous)
        folder = Path(output) if output is not None else experiment.at(experiment.config.output.folder)
        outcome = replace(outcome, folder=write_results(outcome, folder))
        running.finish()
        return outcome
