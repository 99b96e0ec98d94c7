"""Labels rows in any order (the second plan). A rank is 1 + the number of better results for the query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groupgt.engines.base import InvalidRowError, RankedHits
from groupgt.engines.columns.keys import Keys
from groupgt.engines.columns.reader import Batches
from groupgt.metrics.views import changes, nth
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import best_first
from groupgt.model.validity import id_fault
from groupgt.runtime import pl


def ranked_hits(truth: GroundTruth, keys: Keys, batches: Batches, policy: Policy, duplicated: int = 0) -> RankedHits:
    """Return the hits with their ranks, in two passes over the rows."""
    return _Count(truth, keys, batches, policy).walk(duplicated)


class _Count:
    """Makes two passes over the rows. The first pass finds hits, the second counts results that rank above each hit."""

    def __init__(self, truth: GroundTruth, keys: Keys, batches: Batches, policy: Policy) -> None:
        self.truth, self.keys, self.batches, self.policy = truth, keys, batches, policy
        self.tie = batches.columns.tie
        # Without repeats, rows come in another order, with their numbers.
        self.numbered = "row" in batches.columns.frame.collect_schema()
        # The number of a query by its id; null if it has no ground truth.
        self.query = pl.col("qid").cast(pl.Enum(truth.qids), strict=False).to_physical().cast(pl.Int64).alias("query")
        self.length = np.zeros(len(truth), dtype=np.int64)

    def walk(self, duplicated: int) -> RankedHits:
        hits, extra_qids = self.first_pass()
        levels = _Levels(hits, len(self.truth))
        higher, equal, better = self.second_pass(hits, levels)
        # The order of hits with the same score.
        rows = hits.select("tie", "row").with_columns(level=levels.of_hit, hit=np.arange(len(hits)))
        rows = best_first(rows, ["level"], self.policy)
        level = rows["level"].to_numpy()
        place = np.empty(len(hits), dtype=np.int64)
        place[rows["hit"].to_numpy()] = nth(level) - 1
        low = higher[levels.of_hit] + 1
        return RankedHits(
            query=hits["query"].to_numpy(),
            target=hits["target"].to_numpy(),
            rank=low + place + better,
            low=low,
            high=low + equal[levels.of_hit] - 1,
            length=self.length,
            others=extra_qids,
            duplicated=duplicated,
        )

    def passes(self, *exprs: pl.Expr | str) -> Iterator[tuple[pl.DataFrame, Ints, Ints]]:
        """Yield batches of columns, each with query positions (−1 without ground truth) and row numbers."""
        seen = 0
        for batch in self.batches(self.query, *exprs, *(["row"] if self.numbered else [])):
            query = batch["query"].fill_null(-1).to_numpy()
            row = np.arange(seen, seen + len(batch))
            yield batch, query, batch["row"].to_numpy().astype(np.int64) if self.numbered else row
            seen += len(batch)

    def first_pass(self) -> tuple[pl.DataFrame, dict[str, None]]:
        """Return the hits and the queries without ground truth. Count the results of all other queries."""
        names = dict.fromkeys(("doc", "score", self.tie))
        code = self.keys.code(pl.col("doc")).alias("code")
        plain = self.batches.plain().alias("plain")
        kinds = {"query": pl.Int64, "target": pl.Int64, "row": pl.Int64, "score": pl.Float64, "tie": pl.String}
        hits: list[pl.DataFrame] = [pl.DataFrame(schema=kinds)]
        extra_qids: dict[str, None] = {}
        for batch, query, row in self.passes("qid", *names, code, plain):
            self.batches.check(batch)
            judged = query >= 0
            self.length += np.bincount(query[judged], minlength=len(self.truth))
            if not judged.all():
                self.note(batch["qid"].filter(~judged), extra_qids)
            codes = batch["code"].to_numpy()
            at = self.keys.likely(codes, self.keys.slots(query))
            sure, target = self.keys.sure(batch["doc"][at], codes[at], query[at])
            at = at[sure]
            if len(at):
                columns = {"query": query[at], "target": target, "row": row[at], "score": batch["score"][at]}
                hits.append(pl.DataFrame({**columns, "tie": batch[self.tie][at]}))
        return pl.concat(hits), extra_qids

    def note(self, qids: pl.Series, extra_qids: dict[str, None]) -> None:
        """Record queries without ground truth, or raise `InvalidRowError` for an invalid id."""
        names = dict.fromkeys(qids.unique(maintain_order=True).to_list())
        for qid in names:
            if qid is None or (not self.batches.columns.ids_checked and id_fault(qid)):
                raise InvalidRowError
        extra_qids.update(names)

    def second_pass(self, hits: pl.DataFrame, levels: _Levels) -> tuple[Ints, Ints, Ints]:
        """Count higher and equal results per level, and the equal results that rank above each hit."""
        beaten, equal = np.zeros((2, len(levels) + 1), dtype=np.int64)
        better = np.zeros(len(hits), dtype=np.int64)
        if not len(hits):
            return beaten, equal, better
        rows_of_hits = np.sort(hits["row"].to_numpy())
        for batch, query, row in self.passes(*dict.fromkeys(("score", self.tie))):
            score = batch["score"].to_numpy()
            at = levels.reached(query, score)
            below, level = levels.place(query[at], score[at])
            first = levels.first[query[at]]
            # Better than all levels up to this one; a reverse cumulative sum gives the count for each level.
            beaten += np.bincount(np.where(below > first, below - 1, len(levels)), minlength=len(levels) + 1)
            tied = level >= 0
            equal += np.bincount(level[tied], minlength=len(levels) + 1)
            at, level = at[tied], level[tied]
            place = np.minimum(np.searchsorted(rows_of_hits, row[at]), len(rows_of_hits) - 1)
            no_hit = rows_of_hits[place] != row[at]
            if no_hit.any():
                at, level = at[no_hit], level[no_hit]
                self.compare(hits, levels, (batch[self.tie][at], row[at], level), better)
        return levels.summed(beaten[:-1]), equal, better

    def compare(self, hits: pl.DataFrame, levels: _Levels, equals: tuple[pl.Series, Ints, Ints], better: Ints) -> None:
        """Add to each hit the number of non-hits with the same score that rank above it."""
        tie, row, level = equals
        at_level = np.flatnonzero(np.isin(levels.of_hit, level))
        of_hits = hits.select("tie", "row").with_columns(level=levels.of_hit, hit=np.arange(len(hits)))[at_level]
        of_others = pl.DataFrame({"tie": tie, "row": row, "level": level, "hit": np.full(len(row), -1)})
        rows = best_first(pl.concat([of_hits, of_others]), ["level"], self.policy)
        hit, block = rows["hit"].to_numpy(), rows["level"].to_numpy()
        others_before = np.concatenate(([0], np.cumsum(hit < 0)))
        at = np.flatnonzero(hit >= 0)
        better[hit[at]] += others_before[at] - others_before[np.searchsorted(block, block[at])]


class _Levels:
    """The distinct scores of each query's hits in ascending order, at `first[q]` to `first[q + 1]` for query q."""

    def __init__(self, hits: pl.DataFrame, size: int) -> None:
        query, score = hits["query"].to_numpy(), hits["score"].to_numpy()
        order = np.lexsort((score, query))
        new = changes(query[order], score[order])
        self.of_hit = np.empty(len(order), dtype=np.int64)
        self.of_hit[order] = np.cumsum(new) - 1
        self.query, self.score = query[order][new], score[order][new]
        self.first = np.searchsorted(self.query, np.arange(size + 1))
        least = np.full(size + 1, np.inf)
        some = np.flatnonzero(self.first[1:] > self.first[:-1])
        least[some] = self.score[self.first[some]]
        # The last entry is for rows without a query: no score reaches it.
        self.least = least
        self.steps = int(np.diff(self.first).max(initial=0)).bit_length()

    def __len__(self) -> int:
        return len(self.score)

    def reached(self, query: Ints, score: Floats) -> Ints:
        """Return the rows that score at least as high as some hit for their query."""
        return np.flatnonzero(score >= self.least[query])

    def place(self, query: Ints, score: Floats) -> tuple[Ints, Ints]:
        """Return the lowest level at or above each score, and that level again if it equals the score, otherwise −1."""
        low, high = self.first[query], self.first[query + 1]
        end = high.copy()
        for _ in range(self.steps):
            middle = (low + high) >> 1
            below = (self.score[np.minimum(middle, len(self.score) - 1)] < score) & (middle < high)
            low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
        same = (low < end) & (self.score[np.minimum(low, len(self.score) - 1)] == score)
        return low, np.where(same, low, -1)

    def summed(self, beaten: Ints) -> Ints:
        """Sum counts of results that beat a level but no higher level, to count all results that beat each level."""
        from_behind = np.concatenate((np.cumsum(beaten[::-1])[::-1], [0]))
        summed: Ints = from_behind[:-1] - from_behind[self.first[self.query + 1]]
        return summed
