"""Labels rows of contiguous queries sorted best first (the first plan). A rank counts from the query's first row."""

from __future__ import annotations

import numpy as np

from groupgt.engines.base import InvalidRowError, RankedHits
from groupgt.engines.columns.keys import Codes, Keys
from groupgt.engines.columns.reader import Batches
from groupgt.metrics.views import nth
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import best_first
from groupgt.model.validity import id_fault
from groupgt.runtime import pl

# A block of equal scores that continues in the next batch is pending; beyond this many batches, counting is better.
LONGEST_BLOCK = 8
TAIL = 1 << 10


class NotSortedError(Exception):
    """Raised if rows turn out not to be sorted."""


def ranked_hits(truth: GroundTruth, keys: Keys, batches: Batches, policy: Policy) -> RankedHits:
    """Return the hits with their ranks. Raise `NotSortedError` if a query's rows are scattered or its scores rise."""
    return _Walk(truth, keys, batches, policy).walk()


class _Walk:
    """A single pass over the rows, which are numbered from 0 and keep their order across batches."""

    def __init__(self, truth: GroundTruth, keys: Keys, batches: Batches, policy: Policy) -> None:
        self.truth, self.keys, self.batches, self.policy = truth, keys, batches, policy
        self.tie = batches.columns.tie
        self.seen_qids: set[str] = set()
        # Number of rows taken; score and query of the last one.
        self.rows, self.last_score, self.last_query_code = 0, np.nan, np.uint64(0)
        # The first row of each query taken, and the number of the query (−1: no ground truth).
        self.begins: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self.numbers: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self.extra_qids: list[str] = []
        # Query, target, final row, and the first and last row with an equal score.
        self.placed_hits: list[tuple[Ints, ...]] = [tuple(np.zeros((5, 0), dtype=np.int64))]

    def walk(self) -> RankedHits:
        names = dict.fromkeys(("qid", "doc", "score", self.tie))
        codes = [self.keys.code(pl.col(name)).alias(code) for name, code in (("doc", "code"), ("qid", "query"))]
        # The last block of equal scores, which may continue in the next batch.
        pending: list[pl.DataFrame] = []
        last_row: tuple[float, int] | None = None
        for batch in self.batches(*names, *codes, self.batches.plain().alias("plain")):
            self.batches.check(batch)
            score, query_code = batch["score"].to_numpy(), batch["query"].to_numpy()
            lead = _first_block(score, query_code) if (score[0], query_code[0]) == last_row else 0
            last_row = score[-1], query_code[-1]
            pending.append(batch[:lead])
            if lead < len(batch):
                last = len(batch) - _first_block(score[::-1], query_code[::-1])
                self.take(pl.concat(pending))
                self.take(batch[lead:last])
                pending = [batch[last:]]
            elif len(pending) > LONGEST_BLOCK:
                raise NotSortedError
        if pending:
            self.take(pl.concat(pending))
        return self.ranked()

    def take(self, batch: pl.DataFrame) -> None:
        """Find the hits in complete blocks of equal scores, and their final rows."""
        if not len(batch):
            return
        score, query_code = batch["score"].to_numpy(), batch["query"].to_numpy()
        # Adjacent queries with the same 64-bit code are not expected, and comparing texts is ten times as slow.
        start = np.empty(len(batch), dtype=np.bool_)
        np.not_equal(query_code[1:], query_code[:-1], out=start[1:])
        start[0] = not self.rows or query_code[0] != self.last_query_code
        if not np.all((score[1:] <= score[:-1]) | start[1:]) or not (start[0] or score[0] <= self.last_score):
            raise NotSortedError
        first = np.flatnonzero(start)
        numbers = self.numbered(batch["qid"][first].to_list())
        # Rows before the first start belong to the last query taken before.
        before = next((earlier[-1] for earlier in reversed(self.numbers) if len(earlier)), -1)
        self.begins.append(first + self.rows)
        self.numbers.append(numbers)
        queries = np.concatenate(([before], numbers))
        slots = np.repeat(self.keys.slots(queries), np.diff(np.concatenate(([0], first, [len(start)]))))
        code = batch["code"].to_numpy()
        rows = self.keys.likely(code, slots)
        query = queries[np.searchsorted(first, rows, side="right")]
        sure, target = self.keys.sure(batch["doc"][rows], code[rows], query)
        placed = self.among_equals(batch, score, start, rows[sure])
        self.placed_hits.append((query[sure], target, *(places + self.rows for places in placed)))
        self.rows += len(start)
        self.last_score, self.last_query_code = float(score[-1]), query_code[-1]

    def numbered(self, qids: list[str | None]) -> Ints:
        """Convert query ids to positions, or −1 without ground truth. Each query may occur only once."""
        numbers = []
        for qid in qids:
            if qid is None:
                raise InvalidRowError
            if qid in self.seen_qids:
                raise NotSortedError
            self.seen_qids.add(qid)
            number = self.truth.index.get(qid, -1)
            if number < 0:
                if not self.batches.columns.ids_checked and id_fault(qid):
                    raise InvalidRowError
                self.extra_qids.append(qid)
            numbers.append(number)
        return np.array(numbers, dtype=np.int64)

    def among_equals(self, batch: pl.DataFrame, score: Floats, start: Bools, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the rows of hits after sorting equal scores, and the first and last row with the same score."""
        follows = np.zeros(len(start) + 1, dtype=np.bool_)
        follows[1:-1] = (score[1:] == score[:-1]) & ~start[1:]
        tied = np.flatnonzero(follows[rows] | follows[rows + 1])
        placed, low, high = rows.copy(), rows.copy(), rows.copy()
        if not len(tied):
            return placed, low, high
        borders = np.flatnonzero(~follows)
        block = np.searchsorted(borders, rows[tied], side="right") - 1
        low[tied], high[tied] = borders[block], borders[block + 1] - 1
        # The rows of all these blocks.
        blocks = np.unique(block)
        block_of = np.repeat(blocks, borders[blocks + 1] - borders[blocks])
        members = borders[block_of] + nth(block_of) - 1
        equals = pl.DataFrame({"block": block_of, "row": np.arange(len(members))})
        equals = best_first(equals.with_columns(tie=batch[self.tie][members]), ["block"], self.policy)
        places = np.empty(len(members), dtype=np.int64)
        places[equals["row"].to_numpy()] = members
        placed[tied] = places[np.searchsorted(members, rows[tied])]
        return placed, low, high

    def ranked(self) -> RankedHits:
        begins, numbers = np.concatenate(self.begins), np.concatenate(self.numbers)
        query, target, *places = (np.concatenate(parts) for parts in zip(*self.placed_hits))
        start = begins[np.searchsorted(begins, places[0], side="right") - 1] if len(begins) else places[0]
        rank, low, high = (rows - start + 1 for rows in places)
        length = np.zeros(len(self.truth), dtype=np.int64)
        judged = numbers >= 0
        length[numbers[judged]] = np.diff(np.append(begins, self.rows))[judged]
        return RankedHits(query, target, rank, low, high, length, self.extra_qids)


def _first_block(score: Floats, query_code: Codes) -> int:
    """Return how many of the first rows share the same score and query."""
    for width in (TAIL, len(score)):
        differs = (score[:width] != score[0]) | (query_code[:width] != query_code[0])
        if differs.any():
            return int(differs.argmax())
    return len(score)
