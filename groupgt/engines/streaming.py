"""Labels results held as columns, on polars' streaming engine: rows flow past, only hits and query borders are kept.

Two plans. Where each query's rows stand together and its scores never rise, a hit's rank is its distance from the
query's first row, once blocks of equal scores are put in order. Everything else (shuffled, scattered) takes a second
pass in which rows are compared with the hits of their query: rank = 1 + better results under the tie rule. Which it is,
a look at the head guesses and the first pass finds out; it is not taken on trust.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from groupgt.engines import memory
from groupgt.engines.base import Labelled
from groupgt.engines.columns import MANY, Found, key_table, labelled, places_of
from groupgt.engines.results import Streamed
from groupgt.errors import DataError, Faults, GroupgtWarning
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run

if TYPE_CHECKING:
    import polars as pl

__all__ = ["label"]

LONGEST_ID = 1 << 16
LOOKED_AT = 1000


class _DoubtError(Exception):
    """A row is not what it should be; the slow reader will say which."""


def label(truth: GroundTruth, run: Run, policy: Policy, labeller: Labeller) -> Labelled:
    """Labels a run of columns; raises `DataError` that names what is wrong with them."""
    if run.columns is None:
        raise DataError("these results are lists, not columns")
    try:
        return _Plan(truth, run, run.columns, policy, labeller).walk()
    except _DoubtError:
        return memory.label(truth, run.columns.checked, policy, labeller)


class _Plan:
    def __init__(self, truth: GroundTruth, run: Run, columns: Columns, policy: Policy, labeller: Labeller) -> None:
        self.truth, self.columns, self.policy, self.labeller = truth, columns, policy, labeller
        self.title = run.source or run.name or "results"
        self.rows = columns.frame.with_row_index("row")
        self.matches = labeller.match(truth, Streamed(truth, columns))
        self.duplicated = 0
        self.extra_names: tuple[str, ...] = ()

    def collect(self, *frames: pl.LazyFrame) -> list[pl.DataFrame]:
        """Runs several queries over one pass of the rows."""
        import polars as pl

        try:
            return list(self.columns.guard(lambda: pl.collect_all(frames, engine="streaming")))
        except (pl.exceptions.PolarsError, OSError):
            # The slow reader of the same file says what is wrong with it.
            raise _DoubtError from None

    def walk(self) -> Labelled:
        if self.policy.duplicates in ("drop", "error"):
            self.refuse_doubts()
            self.remove_repeats()
            return self.scattered()
        return self.in_order() if self.begins_in_order() else self.scattered()

    def refuse_doubts(self) -> None:
        (doubtful,) = self.collect(self.doubtful())
        if len(doubtful):
            raise _DoubtError

    def doubtful(self) -> pl.LazyFrame:
        """The first row that is not what it should be, if any."""
        return self.rows.filter(~self.sound()).select("row").head(1)

    def scattered(self) -> Labelled:
        """The second plan at once."""
        hits, doubtful = self.collect(self.hits(), self.doubtful())
        if len(doubtful):
            raise _DoubtError
        return self.count(hits)

    def hits(self) -> pl.LazyFrame:
        return self.rows.join(key_table(self.truth, self.matches).lazy(), on=["qid", "doc"], how="inner")

    def in_order(self) -> Labelled:
        """The first plan, or the second where a row shows that it does not hold."""
        import polars as pl

        column = pl.col
        starts = (column("qid") != column("qid").shift(1)).fill_null(True)
        tied = ~starts & (column("score") == column("score").shift(1)).fill_null(False)
        falls = (column("score") < column("score").shift(1)).fill_null(False)
        in_block = tied | tied.shift(-1).fill_null(False)
        borders, hits, size = self.collect(
            self.rows.select(
                "row",
                "qid",
                starts=starts,
                broken=~starts & ~tied & ~falls,
                sound=self.sound(),
                tied=tied,
                tie=pl.when(in_block).then(column(self.columns.tie)),
            ).filter(column("starts") | column("broken") | ~column("sound") | column("tie").is_not_null()),
            self.hits(),
            self.rows.select(pl.len()),
        )
        if not borders["sound"].all():
            raise _DoubtError
        first = borders.filter("starts")
        if borders["broken"].any() or first["qid"].n_unique() < len(first):
            return self.count(hits)
        begin = first["row"].to_numpy().astype(np.int64)
        length = np.diff(np.append(begin, int(size.item())))
        row = hits["row"].to_numpy().astype(np.int64)
        start = begin[np.searchsorted(begin, row, side="right") - 1]
        row, low, high = self.among_equals(borders, row)
        return self.made(hits, (row - start + 1, low - start + 1, high - start + 1), first["qid"], length)

    def begins_in_order(self) -> bool:
        """Whether the first rows could be those of a sorted run: a shuffled one need not be read to find out."""
        (head,) = self.collect(self.rows.head(LOOKED_AT))
        starts = (head["qid"] != head["qid"].shift(1)).fill_null(True)
        rises = (head["score"] > head["score"].shift(1)).fill_null(False) & ~starts
        return not rises.any() and head["qid"].filter(starts).n_unique() == int(starts.sum())

    def among_equals(self, borders: pl.DataFrame, row: Ints) -> tuple[Ints, Ints, Ints]:
        """Where rows stand once equal scores are put in order, and the first and last row of their block of equals."""
        blocks = borders.filter(borders["tie"].is_not_null()).sort("row")
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
            order = blocks.select("tie", "row").with_columns(block=block, at=np.arange(len(block)))
            order = order.sort("block", "tie", "row", descending=[False, True, False])
            placed = np.empty_like(given)
            placed[order["at"].to_numpy()] = given
        at = np.minimum(np.searchsorted(given, row), len(given) - 1)
        found = given[at] == row
        return (
            np.where(found, placed[at], row),
            np.where(found, first[block[at]], row),
            np.where(found, last[block[at]], row),
        )

    def sound(self) -> pl.Expr:
        """Whether a row is what it should be."""
        import polars as pl

        holds = pl.col("score").is_finite()
        for name in () if self.columns.ids_checked else ("qid", "doc"):
            text = pl.col(name)
            holds &= (text.str.len_bytes() <= LONGEST_ID) & text.str.contains(r"[^\s\x00]")
            holds &= ~text.str.contains("\0", literal=True)
        return holds.fill_null(False)

    def count(self, hits: pl.DataFrame) -> Labelled:
        """The second plan: rank = 1 + better results of the query."""
        import polars as pl

        hits = hits.sort("query", "row").with_row_index("hit")
        column = pl.col
        many = (pl.len() > MANY).over("query")
        heavy = hits.filter(many)
        own = hits.filter(~many).lazy().select("hit", "qid", its_score="score", its_tie=self.columns.tie, its_row="row")
        higher, equal = column("score") > column("its_score"), column("score") == column("its_score")
        before = column("row") < column("its_row")
        tie = column(self.columns.tie)
        same = tie == column("its_tie")
        # The same id with the same score twice keeps the order in which it came.
        wins_tie = before if self.policy.ties == "input" else (tie > column("its_tie")) | (same & before)
        few, lengths, whole = self.collect(
            self.rows.join(own, on="qid", how="inner")
            .filter(column("score") >= column("its_score"))
            .group_by("hit")
            .agg(higher=higher.sum(), equal=equal.sum(), better=(higher | (equal & wins_tie)).sum()),
            self.rows.group_by("qid").len(),
            self.rows.join(heavy.lazy().select("qid").unique(), on="qid", how="semi"),
        )
        counted = pl.concat([few, self.sorted_ranks(whole, heavy).select(few.columns).cast(few.schema)])
        ranked = hits.join(counted, on="hit", how="left", maintain_order="left").with_columns(
            rank=column("better").cast(pl.Int64) + 1
        )
        low = ranked["higher"].to_numpy().astype(np.int64) + 1
        high = low + ranked["equal"].to_numpy().astype(np.int64) - 1
        lengths = lengths.cast({"len": pl.Int64})
        return self.made(ranked, (ranked["rank"].to_numpy(), low, high), lengths["qid"], lengths["len"].to_numpy())

    def sorted_ranks(self, rows: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
        """The same counts for queries with many hits, by sorting their rows: comparing each with each would not end."""
        import polars as pl

        by_id = self.policy.ties == "id"
        keys = ["qid", "score", *([self.columns.tie] if by_id else []), "row"]
        ordered = rows.sort(keys, descending=[False, True, *([True] if by_id else []), False]).with_columns(
            better=pl.int_range(pl.len()).over("qid")
        )
        block = ["qid", "score"]
        counts = ordered.with_columns(higher=pl.col("better").min().over(block), equal=pl.len().over(block))
        return hits.select("hit", "row").join(counts, on="row", how="inner")

    def made(self, hits: pl.DataFrame, ranks: tuple[Ints, Ints, Ints], qids: pl.Series, lengths: Ints) -> Labelled:
        """What was found, of hits, their ranks and those of their equals; `lengths` are those of `qids`."""
        names = qids.to_list()
        where, own, others, extra = places_of(self.truth, names)
        if not names:
            warnings.warn(f"{self.title}: the file is empty: 0 results", GroupgtWarning, stacklevel=2)
        length = np.zeros(len(self.truth), dtype=np.int64)
        length[where] = lengths[own]
        query, target = hits["query"].to_numpy(), hits["target"].to_numpy()
        found = Found(query, target, *ranks, length, extra, others, self.duplicated)
        return labelled(self.truth, self.labeller, self.matches, self.policy, found)

    def remove_repeats(self) -> None:
        """Keeps the best row of each (query, document); or says that there are several."""
        import polars as pl

        best = pl.col("score") == pl.col("score").max()
        tie = pl.col(self.columns.tie)
        # Of equal scores the one that comes first in the order of ties.
        chosen = best & (tie == tie.filter(best).max()) if self.policy.ties == "id" else best
        row = pl.col("row").filter(chosen).min()
        others = [] if self.columns.tie == "doc" else [tie.filter(pl.col("row") == row).first()]
        first = self.rows.group_by("qid", "doc").agg(pl.len(), pl.col("score").max(), row, *others)
        judged = pl.LazyFrame({"qid": pl.Series(self.truth.qids, dtype=pl.String)})
        repeated = first.filter(pl.col("len") > 1).select("qid", "doc").join(judged, on="qid", how="semi")
        repeated = repeated.sort("qid", "doc")
        (found,) = self.collect(repeated)
        self.duplicated = found["qid"].n_unique()
        if not len(found):
            return
        if self.policy.duplicates == "error":
            faults = Faults()
            for qid, doc in found.unique("qid", keep="first", maintain_order=True).iter_rows():
                what = f"the result {doc!r} stands twice; remove it, or choose the policy duplicates=drop"
                faults.add(f"{self.title}: query {qid!r}", what)
            faults.stop()
        self.rows = first.drop("len")
