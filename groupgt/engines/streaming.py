"""Labels results held as columns, on polars' streaming engine: rows flow past, only hits and query borders are kept.

Two plans. Where each query's rows stand together and its scores never rise, a hit's rank is its distance from the
query's first row, once blocks of equal scores are put in order. Everything else (shuffled, scattered) takes a second
pass in which rows are compared with the hits of their query: rank = 1 + better results under the tie rule. Which it is,
the first pass finds out; it is not taken on trust.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from groupgt.engines import memory
from groupgt.engines.base import Labelled, settled
from groupgt.errors import DataError
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run

if TYPE_CHECKING:
    import polars as pl

__all__ = ["label"]

LONGEST_ID = 1 << 16


class _DoubtError(Exception):
    """A row is not what it should be; the slow reader will say which."""


def label(truth: GroundTruth, run: Run, policy: Policy, labeller: Labeller) -> Labelled:
    """Labels a run of columns; raises `DataError` that names what is wrong with them."""
    if run.columns is None:
        raise DataError("these results are lists, not columns")
    if labeller.needs:
        raise DataError(f"labeller {labeller.name!r} needs the columns {', '.join(labeller.needs)} of the results")
    try:
        if run.columns.path is not None and _holds_nul(run.columns.path):
            raise _DoubtError
        return _Plan(truth, run.columns, policy, labeller).walk()
    except _DoubtError:
        return memory.label(truth, run.columns.recheck(), policy, labeller)


def _holds_nul(path: Path) -> bool:
    """polars takes NUL for a letter; a search through the mapped file costs a few per cent of reading it."""
    import mmap

    with path.open("rb") as file:
        if not path.stat().st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return mapped.find(b"\0") >= 0 and mapped[:2] != b"\x1f\x8b" and mapped[:4] != b"\x28\xb5\x2f\xfd"


class _Plan:
    def __init__(self, truth: GroundTruth, columns: Columns, policy: Policy, labeller: Labeller) -> None:
        self.truth, self.columns, self.policy, self.labeller = truth, columns, policy, labeller
        self.rows = columns.frame.with_row_index("row")
        self.duplicated = 0

    def collect(self, *frames: pl.LazyFrame) -> list[pl.DataFrame]:
        """Runs several queries over one pass of the rows."""
        import polars as pl

        try:
            return list(self.columns.guard(lambda: pl.collect_all(frames, engine="streaming")))
        except pl.exceptions.PolarsError:
            if self.columns.path is None:
                raise
            raise _DoubtError from None

    def walk(self) -> Labelled:
        import polars as pl

        if self.policy.duplicates in ("drop", "error"):
            self.remove_repeats()
        keys = self.keys()
        column = pl.col
        starts = (column("qid") != column("qid").shift(1)).fill_null(True)
        tied = ~starts & (column("score") == column("score").shift(1)).fill_null(False)
        falls = (column("score") < column("score").shift(1)).fill_null(False)
        sound = (
            column("qid").is_not_null()
            & (column("doc").str.len_bytes() <= LONGEST_ID).fill_null(False)
            & column("score").is_finite().fill_null(False)
        )
        in_block = tied | tied.shift(-1).fill_null(False)
        borders, hits, size = self.collect(
            self.rows.select(
                "row",
                "qid",
                starts=starts,
                broken=~starts & ~tied & ~falls,
                sound=sound,
                tied=tied,
                doc=pl.when(in_block).then(column("doc")),
            ).filter(column("starts") | column("broken") | ~column("sound") | column("doc").is_not_null()),
            self.rows.join(keys.lazy(), on=["qid", "doc"], how="inner"),
            self.rows.select(pl.len()),
        )
        if not borders["sound"].all():
            raise _DoubtError
        first = borders.filter("starts")
        if borders["broken"].any() or first["qid"].n_unique() < len(first):
            return self.count(hits)
        begin = first["row"].to_numpy().astype(np.int64)
        length = np.diff(np.append(begin, int(size.item())))
        where, own, extra = self.positions(first["qid"])
        row = hits["row"].to_numpy().astype(np.int64)
        start = begin[np.searchsorted(begin, row, side="right") - 1]
        row, low, high = self.among_equals(borders, row)
        tied_hits = low < high
        ties = (hits["query"].to_numpy()[tied_hits], (low - start + 1)[tied_hits], (high - start + 1)[tied_hits])
        return self.labelled(hits, row - start + 1, where, length[own], extra, ties)

    def among_equals(self, borders: pl.DataFrame, row: Ints) -> tuple[Ints, Ints, Ints]:
        """Where rows stand once equal scores are put in order, and the first and last row of their block of equals."""
        blocks = borders.filter(borders["doc"].is_not_null()).sort("row")
        if not len(blocks):
            return row, row, row
        given = blocks["row"].to_numpy().astype(np.int64)
        begins = ~blocks["tied"].to_numpy()
        block = np.cumsum(begins) - 1
        first = given[begins]
        last = first + np.bincount(block) - 1
        placed = given
        if self.policy.ties == "id":
            # Within a block by descending id, the same id in the order in which it came; blocks stay where they are.
            order = blocks.select(doc="doc", row="row").with_columns(block=block, at=np.arange(len(block)))
            order = order.sort("block", "doc", "row", descending=[False, True, False])
            placed = np.empty_like(given)
            placed[order["at"].to_numpy()] = given
        at = np.minimum(np.searchsorted(given, row), len(given) - 1)
        found = given[at] == row
        return (
            np.where(found, placed[at], row),
            np.where(found, first[block[at]], row),
            np.where(found, last[block[at]], row),
        )

    def keys(self) -> pl.DataFrame:
        """The labeller's table as columns."""
        import polars as pl

        matches = self.labeller.match(self.truth)
        bounds = np.array(matches.bounds, dtype=np.int64)
        sizes = bounds[1:] - bounds[:-1]
        query = np.repeat(np.arange(len(sizes)), sizes)
        frame = pl.DataFrame(
            {
                "qid": pl.Series(self.truth.qids, dtype=pl.String).gather(query),
                "doc": pl.Series(matches.keys, dtype=pl.String),
                "query": query,
                "document": matches.documents,
            }
        )
        return frame.filter(matches.documents == np.arange(len(matches.keys)))

    def positions(self, qids: pl.Series) -> tuple[Ints, Ints, int]:
        """Which queries of the ground truth these are, where they stand among these, and how many others there are."""
        index = self.truth.index
        found = np.array([index.get(qid, -1) for qid in qids.to_list()], dtype=np.int64)
        own = np.flatnonzero(found >= 0)
        return found[own], own, len(found) - len(own)

    def count(self, hits: pl.DataFrame) -> Labelled:
        """The second plan: every row is compared with the hits of its query."""
        import polars as pl

        hits = hits.sort("query", "row").with_row_index("hit")
        column = pl.col
        higher, equal = column("score") > column("its_score"), column("score") == column("its_score")
        before = column("row") < column("its_row")
        same = column("doc") == column("its_doc")
        # The same id with the same score twice keeps the order in which it came.
        wins_tie = before if self.policy.ties == "input" else (column("doc") > column("its_doc")) | (same & before)
        own = hits.lazy().select("hit", "qid", its_score="score", its_doc="doc", its_row="row")
        counted, lengths = self.collect(
            self.rows.join(own, on="qid", how="inner")
            .filter(column("score") >= column("its_score"))
            .group_by("hit")
            .agg(higher=higher.sum(), equal=equal.sum(), better=(higher | (equal & wins_tie)).sum()),
            self.rows.group_by("qid").len(),
        )
        ranked = hits.join(counted, on="hit", how="left", maintain_order="left").with_columns(
            rank=column("better").cast(pl.Int64) + 1
        )
        ranked = ranked.sort("query", "rank", "row")
        where, chosen, extra = self.positions(lengths["qid"])
        length = lengths["len"].to_numpy().astype(np.int64)[chosen]
        tied = ranked.filter(column("equal") > 1)
        first = tied["higher"].to_numpy().astype(np.int64) + 1
        ties = (tied["query"].to_numpy(), first, first + tied["equal"].to_numpy().astype(np.int64) - 1)
        return self.labelled(ranked, ranked["rank"].to_numpy(), where, length, extra, ties)

    def labelled(
        self, hits: pl.DataFrame, rank: Ints, where: Ints, length: Ints, extra: int, ties: tuple[Ints, Ints, Ints]
    ) -> Labelled:
        lengths = np.zeros(len(self.truth), dtype=np.int64)
        lengths[where] = length
        query, document = hits["query"].to_numpy(), hits["document"].to_numpy()
        order = np.lexsort((rank, query))
        found = settled(self.truth, self.labeller, self.policy, query[order], rank[order], document[order], lengths)
        repeated = len(np.unique(found.query[found.repeat]))
        looked_at_all = self.policy.duplicates in ("drop", "error")
        return Labelled(
            hits=found,
            present=lengths > 0,
            extra=extra,
            duplicated=self.duplicated if looked_at_all else repeated,
            tie_query=ties[0],
            tie_first=ties[1],
            tie_last=ties[2],
            no_match=not len(query) and (bool(len(where)) or bool(extra)),
        )

    def remove_repeats(self) -> None:
        """Keeps the best row of each (query, document); or says that there are several."""
        import polars as pl

        best = pl.col("score") == pl.col("score").max()
        first = self.rows.group_by("qid", "doc").agg(pl.len(), pl.col("score").max(), pl.col("row").filter(best).min())
        repeated = first.filter(pl.col("len") > 1).select("qid", "doc").sort("qid", "doc")
        (found,) = self.collect(repeated)
        self.duplicated = found["qid"].n_unique()
        if not len(found):
            return
        if self.policy.duplicates == "error":
            shown = [f"query {qid!r}: the result {doc!r} stands twice" for qid, doc in found.head(10).iter_rows()]
            raise DataError(*(f"{each}; remove it, or choose duplicates: drop" for each in shown), total=len(found))
        self.rows = first.select("row", "qid", "doc", "score")
