"""Retrieves in several processes. Each worker reads the data itself and caches its own results."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from groupgt.errors import GroupgtError, GroupgtWarning, RetrieverError, warn
from groupgt.experiment.cache import AnswerCache, Done, Task
from groupgt.experiment.datasets import Data, read_all
from groupgt.experiment.experiment import Experiment, load
from groupgt.experiment.fresh import SAFE_PATH, begin_process, starting
from groupgt.experiment.retrieval import retrieve
from groupgt.store.cache import Cache


def in_parallel(
    experiment: Experiment, changes: Sequence[str], keeper: AnswerCache, groups: Sequence[list[Task]], jobs: int
) -> Iterator[tuple[Task, Done | GroupgtError]]:
    """Yield each task with its results or error as its group completes.

    Results are returned as files, because the parent process would hang if a worker died while sending a large message.
    """
    with tempfile.TemporaryDirectory(prefix="groupgt-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        sent = AnswerCache(Cache(folder))
        job = (experiment.path, tuple(changes), experiment.allow_code, os.environ.get(SAFE_PATH), keeper, sent)
        notes = [(group, folder / f"task-{number}") for number, group in enumerate(groups)]
        with starting():  # its queues start a process as well
            context = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(min(jobs, len(groups)), mp_context=context, initializer=_begin, initargs=job)
        try:
            with starting():
                # Workers are started here, one for each task without an idle worker.
                waiting = {
                    pool.submit(_work, group[0].dataset, group[0].name, group[0].depth, trials, note): group
                    for group, note in notes
                    for trials in [[task.trial for task in group]]
                }
            for future in as_completed(waiting):
                error, texts = future.result()
                for text in texts:
                    warn(text)
                for task in waiting[future]:
                    outcome = error or sent.read(task)
                    yield task, outcome or RetrieverError(f"system {task.name!r}: a worker process lost its answers")
            pool.shutdown()
        except BrokenProcessPool:
            _end(pool)
            text = "a worker process was killed or ran out of memory"
            at_work = [group[0] for group, note in notes if note.exists()]
            if at_work:
                systems = " or ".join(f"system {task.name!r} on dataset {task.dataset!r}" for task in at_work)
                text += f" while it ran {systems}. Finished retrievals are cached, so try again with fewer --jobs"
            raise RetrieverError(text) from None
        except BaseException:
            _end(pool)
            raise


def _end(pool: ProcessPoolExecutor) -> None:
    for child in multiprocessing.active_children():
        child.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


# --- In a worker.


# What the tasks of a worker share: the experiment, its data, the cache, and the cache that results are sent in.
_shared: list[tuple[Experiment, dict[str, Data], AnswerCache, AnswerCache]] = []


def _begin(
    path: Path, changes: Sequence[str], allow_code: bool, safe: str | None, keeper: AnswerCache, sent: AnswerCache
) -> None:
    """Initialize a worker by reading the experiment and its data, without the warnings that were already shown."""
    from tqdm import tqdm

    begin_process(safe)
    # By default, tqdm creates a lock between processes that outlives a terminated worker.
    tqdm.set_lock(threading.RLock())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GroupgtWarning)
        experiment = load(path, changes=changes, allow_code=allow_code)
        _shared.append((experiment, read_all(experiment), keeper, sent))


def _work(
    dataset: str, name: str, depth: int, trials: Sequence[int], note: Path
) -> tuple[GroupgtError | None, list[str]]:
    """Write the results of a task's trials, and return any error and the warnings. The `note` file exists meanwhile."""
    experiment, data, keeper, sent = _shared[-1]
    tasks = [Task(dataset, name, depth, experiment, data[dataset], trial) for trial in trials]
    note.touch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GroupgtWarning)
        try:
            for task, done in zip(tasks, retrieve(tasks, keeper)):
                sent.write(task, done)
        except GroupgtError as error:
            return error, []
        finally:
            note.unlink(missing_ok=True)
    return None, [str(warning.message) for warning in caught if issubclass(warning.category, GroupgtWarning)]
