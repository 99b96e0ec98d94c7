"""Retrieving in several processes at once. Each worker reads the data for itself and keeps what it has done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from groupgt.errors import GroupgtError, GroupgtWarning, RetrieverError
from groupgt.experiment.config import Experiment, load
from groupgt.experiment.data import Data, read_all
from groupgt.experiment.keeping import Keeper
from groupgt.experiment.retrieving import Done, Task

__all__ = ["in_parallel"]

_own: dict[str, Any] = {}


def in_parallel(
    experiment: Experiment, changes: Sequence[str], keeper: Keeper, tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[Task, Done | GroupgtError]]:
    """Each task with what came of it, as they are done. Where the caller stops, the workers are stopped too."""
    arguments = (experiment.path, tuple(changes), experiment.allow_code, keeper)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_begin, initargs=arguments)
    try:
        waiting = {pool.submit(_work, task): task for task in tasks}
        for done in as_completed(waiting):
            try:
                yield waiting[done], done.result()
            except BrokenProcessPool:
                raise RetrieverError("a worker was ended from outside, or there was not enough memory") from None
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def _begin(path: Path, changes: tuple[str, ...], allow_code: bool, keeper: Keeper) -> None:
    """Prepares a worker: it leaves Ctrl-C to its parent, ends with it, and warns of nothing a second time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore", GroupgtWarning)
    experiment = load(path, changes=changes, allow_code=allow_code)
    _own.update(experiment=experiment, data=read_all(experiment), keeper=keeper)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Task) -> Done | GroupgtError:
    experiment: Experiment = _own["experiment"]
    data: dict[str, Data] = _own["data"]
    keeper: Keeper = _own["keeper"]
    try:
        return keeper.retrieved(experiment, data[task.dataset], task)
    except GroupgtError as error:
        return error
