"""A cluster in this process: rows are shuffled and brought together by bucket, and the same function gets them."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest

from groupgt.engines import remote
from groupgt.formats import frames

# What is not in a module, a real cluster pickles by value.
SENT: list[Any] = []


def at(number: int) -> Any:
    return SENT[number]


class Unpickled:
    """A value that is pickled as its number."""

    def __init__(self, value: Any) -> None:
        SENT.append(value)
        self.number = len(SENT) - 1

    def __reduce__(self) -> tuple[Callable[[int], Any], tuple[int]]:
        return at, (self.number,)


class Rows:
    """What a user passes."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame, self.columns = frame, frame.columns


class FakeFrame(remote.Frame):
    parts = 1

    def __init__(self, rows: Rows) -> None:
        self.table = rows.frame.to_arrow()

    def dumps(self, value: Any) -> bytes:
        try:
            return pickle.dumps(value)
        except (AttributeError, pickle.PicklingError):
            return pickle.dumps(Unpickled(value))

    def first(self, columns: Sequence[str], limit: int) -> Any:
        return self.table.select(columns).slice(0, limit)

    def of_query(self, columns: Sequence[str], key: str, qid: str) -> Any:
        frame: Any = pl.from_arrow(self.table)
        return frame.filter(pl.col(key).cast(pl.String) == qid).select(columns).to_arrow()

    def each(self, columns: Sequence[str], key: str, tasks: list[bytes], work: remote.Work) -> Iterator[Any]:
        rng = random.Random(len(tasks))
        rows = self.table.take(rng.sample(range(self.table.num_rows), self.table.num_rows)).select(columns)
        for bucket, of_bucket in remote.by_bucket(remote.with_buckets(rows, key, len(tasks))):
            yield bucket, work(tasks[bucket], of_bucket)


@contextmanager
def cluster() -> Iterator[None]:
    """Take `Rows` for frames of a cluster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "CLUSTERS", frames.CLUSTERS | {"tests"})
        patch.setitem(remote.FRAMES, "tests", FakeFrame)
        yield
        SENT.clear()
