"""Retrieving in several processes at once. Each worker reads the data for itself and keeps what it has done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupgt.errors import GroupgtError, GroupgtWarning, RetrieverError
from groupgt.experiment.cache import Keeper
from groupgt.experiment.datasets import Data, read_all
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.retrieval import Done, Task
from groupgt.store.cache import Cache

_own: dict[str, Any] = {}


def in_parallel(
    experiment: Experiment,
    changes: Sequence[str],
    data: dict[str, Data],
    keeper: Keeper,
    tasks: Sequence[Task],
    jobs: int,
) -> Iterator[tuple[Task, Done | GroupgtError]]:
    """Each task with what came of it, as they are done. Where the caller stops, the workers are stopped too.

    Answers come back as files: a worker that dies while it sends a large message would leave its reader waiting.
    """
    with tempfile.TemporaryDirectory(prefix="groupgt-", ignore_cleanup_errors=True) as folder:
        sent = Keeper(Cache(Path(folder)))
        arguments = (experiment.path, tuple(changes), experiment.allow_code, keeper, sent)
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_begin, initargs=arguments)
        try:
            with _undisturbed():
                waiting = {pool.submit(_work, task): task for task in tasks}
            for future in as_completed(waiting):
                task = waiting[future]
                error, told = future.result()
                for text in told:
                    warnings.warn(text, GroupgtWarning, stacklevel=2)
                found = error or sent.kept(experiment, data[task.dataset], task)
                yield task, found or RetrieverError(f"system {task.system!r}: a worker's answers were lost")
            pool.shutdown()
        except BrokenProcessPool:
            _end(pool)
            raise RetrieverError("a worker was ended from outside, or there was not enough memory") from None
        except BaseException:
            _end(pool)
            raise


def _end(pool: ProcessPoolExecutor) -> None:
    for child in multiprocessing.active_children():
        child.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Holds Ctrl-C back while workers are started, which take the mask over: they leave it to their parent."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(path: Path, changes: tuple[str, ...], allow_code: bool, keeper: Keeper, sent: Keeper) -> None:
    """Prepares a worker: it leaves Ctrl-C to its parent, ends with it, and warns of nothing a second time."""
    from tqdm import tqdm

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # A lock between processes, which tqdm makes where it is given none, outlives a worker that is ended.
    tqdm.set_lock(threading.RLock())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GroupgtWarning)
        experiment = load(path, changes=changes, allow_code=allow_code)
        _own.update(experiment=experiment, data=read_all(experiment), keeper=keeper, sent=sent)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Task) -> tuple[GroupgtError | None, list[str]]:
    """Retrieves and sends; what went wrong, and what there is to warn of."""
    experiment: Experiment = _own["experiment"]
    data: Data = _own["data"][task.dataset]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", GroupgtWarning)
        try:
            done = _own["keeper"].retrieved(experiment, data, task)
            _own["sent"].keep(experiment, data, task, done)
        except GroupgtError as error:
            return error, []
    return None, [str(each.message) for each in told if issubclass(each.category, GroupgtWarning)]
