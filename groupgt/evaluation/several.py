"""Many runs against one ground truth: files are read and labelled side by side, what the truth alone decides once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from groupgt.evaluation.core import evaluate
from groupgt.evaluation.result import Evaluation
from groupgt.formats.source import SMALL
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth

__all__ = ["evaluate_each"]

# Reading a file keeps more than one processor busy by itself.
MOST_AT_ONCE = 8


def evaluate_each(
    truth: GroundTruth, runs: Iterable[tuple[str, Any]], labeller: Labeller, options: Mapping[str, Any]
) -> list[Evaluation]:
    """An `Evaluation` of each (name, run), in their order; `options` are those of `evaluate`.

    Files are evaluated on as many threads as there are processors: polars and NumPy let others run meanwhile. What is
    in memory already is not, for Python lets one thread at a time look at lists.
    """
    given = list(runs)

    def one(each: tuple[str, Any]) -> Evaluation:
        name, run = each
        return evaluate(truth, run, labeller=labeller, name=name, **options)

    paths = [run for _, run in given if isinstance(run, (str, os.PathLike))]
    if len(paths) < len(given) or len(given) < 2 or labeller.name == "code":
        return [one(each) for each in given]
    if sum(map(_size, paths)) <= SMALL:
        return [one(each) for each in given]
    import polars as pl  # once it is there, files are read by it that are too small to pay for its import

    first = one(given[0])
    workers = min(os.cpu_count() or 1, MOST_AT_ONCE, pl.thread_pool_size())
    with ThreadPoolExecutor(workers) as threads:
        return [first, *_in_order(threads.map(one, given[1:]), threads.shutdown)]


def _in_order(found: Iterable[Evaluation], shutdown: Callable[..., None]) -> Iterable[Evaluation]:
    """What threads found; where one fails, those that wait are not begun."""
    try:
        yield from found
    except BaseException:
        shutdown(wait=False, cancel_futures=True)
        raise


def _size(path: Any) -> int:
    """The size of a file; of a URL or of many files, enough to be worth it."""
    try:
        size = Path(path).stat().st_size
    except (OSError, ValueError):
        return SMALL + 1
    return size if Path(path).is_file() else SMALL + 1
