"""Reads the rows of a run in batches of selected columns, and checks whether they are valid."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from groupgt.engines.base import InvalidRowError
from groupgt.errors import DataError
from groupgt.formats.source import bytes_text
from groupgt.formats.validity import is_id, is_plainly_id, is_score
from groupgt.model.run import Columns
from groupgt.runtime import pl, resident

LOOKED_AT = 1000
# Rows per batch: enough for NumPy and polars to be efficient, few enough that a batch is some tens of megabytes.
MOST_ROWS, FEWEST_ROWS = 1 << 20, 1 << 14
# Bytes per row of a batch, including everything computed from it.
ROW = 256


class Batches:
    """The rows of a run in order, as frames with selected columns."""

    def __init__(self, columns: Columns, title: str, ceiling: int = 0) -> None:
        self.columns, self.title, self.ceiling = columns, title, ceiling
        share = ceiling // 8 // ROW if ceiling else MOST_ROWS
        self.size = min(max(share, FEWEST_ROWS), MOST_ROWS)

    def of(self, rows: pl.LazyFrame) -> Batches:
        """Return the rows of another frame in order."""
        return Batches(replace(self.columns, frame=rows), self.title, self.ceiling)

    def __call__(self, *exprs: pl.Expr | str) -> Iterator[pl.DataFrame]:
        try:
            for batch in _flowing(self.columns.frame.select(*exprs), self.size, self.columns.guard):
                self.check_memory()
                yield batch
        except (pl.exceptions.PolarsError, OSError):
            # The row-by-row reader reports the error.
            raise InvalidRowError from None

    def check_memory(self) -> None:
        """Raise `DataError` if the process exceeds the memory limit."""
        bytes_used = resident() if self.ceiling else 0
        if bytes_used > self.ceiling:
            raise DataError(
                f"{self.title}: memory limit of {bytes_text(self.ceiling)} exceeded: {bytes_text(bytes_used)} in use; "
                "raise the limit, write parquet with smaller row groups, or leave columns out of the ground truth"
            )

    def plain(self) -> pl.Expr:
        """Return an expression that quickly checks whether the id and score of a row are certainly valid."""
        score = is_score(pl.col("score"))
        return score if self.columns.ids_checked else score & is_plainly_id(pl.col("doc"))

    def check(self, batch: pl.DataFrame) -> None:
        """Recheck rows that are not `plain`. Raise `InvalidRowError` for an invalid id or score."""
        if not batch["plain"].all() and not batch.filter(~batch["plain"]).select(self.sound("doc").all()).item():
            raise InvalidRowError

    def sound(self, *names: str) -> pl.Expr:
        """Return an expression that checks whether a row has a finite score and valid ids in these columns."""
        holds = is_score(pl.col("score"))
        for name in names:
            holds &= pl.col(name).is_not_null() if self.columns.ids_checked else is_id(pl.col(name))
        return holds

    def refuse_invalid_rows(self) -> None:
        """Raise `InvalidRowError` if a row is invalid."""
        for batch in self(self.sound("qid", "doc").alias("sound")):
            if not batch["sound"].all():
                raise InvalidRowError

    def begin_in_order(self) -> bool:
        """Return whether the first rows could be from a sorted run, to detect a shuffled run without a full read."""
        for batch in self.of(self.columns.frame.head(LOOKED_AT))("qid", "score"):
            starts = (batch["qid"] != batch["qid"].shift(1)).fill_null(True)
            rises = (batch["score"] > batch["score"].shift(1)).fill_null(False) & ~starts
            if rises.any() or batch["qid"].filter(starts).n_unique() < int(starts.sum()):
                return False
        return True


def _flowing(rows: pl.LazyFrame, size: int, guard: Callable[[Callable[[], Any]], Any]) -> Iterator[pl.DataFrame]:
    """Yield batches from a query in its own thread, because polars' iterator ends silently if a thread panics."""
    waiting: queue.Queue[pl.DataFrame | BaseException | None] = queue.Queue(maxsize=1)
    enough = threading.Event()

    def put(batch: pl.DataFrame) -> bool:
        if not enough.is_set():
            waiting.put(batch)
        return enough.is_set()

    def run() -> None:
        try:
            guard(lambda: rows.sink_batches(put, chunk_size=size, maintain_order=True, engine="streaming"))
        except BaseException as error:  # raised where the batches are read
            waiting.put(error)
        else:
            waiting.put(None)

    threading.Thread(target=run, name="groupgt-batches", daemon=True).start()
    received = waiting.get()
    try:
        while not (received is None or isinstance(received, BaseException)):
            yield received
            received = waiting.get()
    finally:
        # If the caller stops early, let the query end.
        enough.set()
        while not (received is None or isinstance(received, BaseException)):
            received = waiting.get()
    if received is not None:
        raise received
