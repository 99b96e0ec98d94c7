"""Runs a retriever: builds it, queries it in batches, measures times, and stores results as they arrive.

Both `answers` and the worker processes in `workers` retrieve with this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing

from groupgt.errors import GroupgtError, RetrieverError
from groupgt.experiment.cache import AnswerCache, Unfinished
from groupgt.experiment.fresh import Fresh, Here, Order
from groupgt.experiment.task import Done, Task
from groupgt.experiment.timing import Timing, machine
from groupgt.retrievers.base import Corpus, Setting, checked
from groupgt.runtime import raised


def retrieve(task: Task, keeper: AnswerCache, answered: Callable[[int], None] = lambda queries: None) -> Done:
    """Builds a system and runs all queries; raises `RetrieverError` if anything fails.

    Partial results are stored even if the run does not finish; if storing fails, a warning is issued. `answered` is
    called with the number of newly finished queries.
    """
    unfinished = Unfinished(keeper, task)
    system, data, experiment = task.system, task.data, task.experiment
    setting = Setting(data.corpus or Corpus([], []), data.qids, experiment.config.seed)
    order = Order(task.name, system.kind, task.options, experiment.path.parent.resolve(), setting)
    try:
        with closing((Fresh if system.kind.runs_code else Here)(order)) as source:
            task.check_timed(singly=source.singly)
            done = _answered(task, source, unfinished, answered)
    except BaseException as error:
        unfinished.flush()
        if isinstance(error, KeyboardInterrupt):
            raise
        start = f"system {task.name!r}"
        if isinstance(error, GroupgtError):
            faults = [text if text.startswith(start) else f"{start}: {text}" for text in error.faults]
            raise RetrieverError(*(f"dataset {task.dataset!r}: {text}" for text in faults), total=error.total) from None
        # A library's panic and sys.exit in user code are not an `Exception`.
        raise RetrieverError(f"dataset {task.dataset!r}: {start}: {raised(error)}") from error
    unfinished.end(done)
    return done


def _answered(task: Task, source: Here | Fresh, unfinished: Unfinished, answered: Callable[[int], None]) -> Done:
    """Runs the remaining queries in batches, then repeats some one by one if single queries must be timed."""
    begun, queries = unfinished.begun(source), task.data.queries
    spent_ms = 0.0
    answered(len(begun.answers.ids))
    size = 1 if source.singly and unfinished.every_batch else task.options.batch_size()
    for first in range(len(begun.answers.ids), len(queries), size):
        batch = queries.part(first, first + size)
        batch_qids = [*batch.ids]  # a copy, in case the retriever changes its own
        rankings, spent, modules = source.ask(batch, task.depth)
        answers = checked(task.name, batch_qids, rankings, task.depth)
        begun.add(answers, spent, modules)
        unfinished.add(answers, spent, modules)
        spent_ms += math.fsum(spent)
        answered(len(batch_qids))
    timing = begun.done
    if timing is None:
        single_ms = begun.single_ms
        if len(single_ms) < len(queries):
            single_ms = []
            count = task.repeats(singly=False)
            for number in range(count):  # evenly spaced
                position = number * len(queries) // count
                single_ms += source.ask(queries.part(position, position + 1), task.depth)[1]
                answered(1)
            spent_ms += math.fsum(single_ms)
        timing = Timing(task.dataset, task.name, source.build_s, single_ms, begun.batched_ms, machine())
    modules = {**source.modules, **begun.modules}
    return Done(begun.answers, timing, modules, source.build_s + spent_ms / 1000, begun.earlier)
