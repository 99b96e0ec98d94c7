"""Labels results that lie on a Spark cluster: rows stay there, only hits and a row a query come here.

Where the ground truth can be sent to every executor, rows are never shuffled: one pass finds the hits, one counts the
results of each query, one counts for every hit the results that are better. Where it cannot, or where one query has
many hits, rows are brought together by query and sorted. Ranks follow from scores and ids alone, so that neither the
order of partitions nor a task that is run again changes a bit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.engines.columns.keys import MANY, Found, key_table, labelled
from groupgt.engines.spark.tables import by_arrow, sent, with_ranks, without_repeats
from groupgt.errors import SHOWN, ConfigError, DataError, Faults
from groupgt.formats import spark as frames
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Remote, Run
from groupgt.model.validity import shown
from groupgt.runtime import pl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


log = logging.getLogger(__name__)
# Up to so many bytes of ids the ground truth is sent to every executor.
BROADCAST = 256 << 20


WAYS = "expected the labeller id, parents, or spans with a chunk table"
ELSEWHERE = f"{WAYS}; or write the results to parquet and evaluate the files"


class _Unseen:
    """What labellers may not ask for: results are not brought here."""

    def __init__(self, labeller: Labeller) -> None:
        self.labeller = labeller

    def pairs(self) -> tuple[Ints, list[str]]:
        raise ConfigError(
            f"the labeller {self.labeller.name} looks at every result, and results on Spark stay there; {ELSEWHERE}"
        )

    def texts(self) -> list[str | None]:
        self.pairs()
        return []


def label(truth: GroundTruth, run: Run, policy: Policy, labeller: Labeller, broadcast: int = BROADCAST) -> Labelled:
    """Labels a run of a Spark frame; raises `DataError` that shows the first rows at fault."""
    if not isinstance(run.contents, Remote):
        raise DataError("these results are not on Spark")
    return _Plan(truth, run, run.contents, policy, labeller, broadcast).walk()


@dataclass(eq=False)
class _Plan:
    truth: GroundTruth
    run: Run
    remote: Remote
    policy: Policy
    labeller: Labeller
    broadcast: int
    collected: int = field(default=0, init=False)
    duplicated: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.title = self.run.name or self.run.source or "results"
        self.rows, self.tie = self.remote.frame, self.remote.tie
        self.session = self.rows.sparkSession
        self.matches = self.labeller.match(self.truth, _Unseen(self.labeller))

    def walk(self) -> Labelled:
        keys = key_table(self.truth, self.matches)
        self.fits = sum(map(len, self.truth.qids)) + sum(map(len, self.matches.keys)) + 32 * len(keys) <= self.broadcast
        if self.policy.duplicates in ("drop", "error"):
            self.refuse_doubts()
            self.remove_repeats()
        length, extra, others = self.queries()
        hits = self.counted(keys) if self.fits else self.ranked(self.sent(keys))
        if self.policy.ties == "input":
            self.refuse_ties(hits)
        log.info("%s: %s rows of hits and queries were collected", self.title, f"{self.collected:,}")
        low = hits["higher"].to_numpy() + 1
        found = Found(
            query=hits["query"].to_numpy(),
            target=hits["target"].to_numpy(),
            rank=hits["rank"].to_numpy(),
            low=low,
            high=low + hits["equal"].to_numpy() - 1,
            length=length,
            extra=extra,
            extra_names=others,
            duplicated=self.duplicated,
        )
        return labelled(self.truth, self.labeller, self.matches, self.policy, found)

    def collect(self, frame: DataFrame) -> pl.DataFrame:
        """Brings rows here, by Arrow; whole numbers are of 64 bits."""
        import polars.selectors as cs

        found = pl.DataFrame(frame.toArrow()).with_columns(cs.integer().cast(pl.Int64))
        self.collected += len(found)
        return found

    def sent(self, table: pl.DataFrame) -> DataFrame:
        """A table as a frame there."""
        return sent(self.session, table)

    def near(self, frame: DataFrame) -> DataFrame:
        """A frame that is sent to every executor where the ground truth is."""
        from pyspark.sql import functions as sql

        return sql.broadcast(frame) if self.fits else frame

    def queries(self) -> tuple[Ints, int, tuple[str, ...]]:
        """The number of results of each query, shape (Q,), how many others there are, and the first of them."""
        from pyspark.sql import functions as sql

        judged = pl.DataFrame({"qid": pl.Series(self.truth.qids, dtype=pl.String), "query": np.arange(len(self.truth))})
        own = self.rows.groupBy("qid").agg(
            sql.count(sql.lit(1)).alias("n"),
            sql.bool_and(frames.sound("doc")).alias("sound"),
            sql.count_if(sql.col("score") == 0).alias("heads"),
        )
        own = own.withColumn("sound", sql.col("sound") & frames.sound_id("qid"))
        own = own.join(self.near(self.sent(judged)), "qid", "left")
        # A row for each query that has ground truth, and one for all others.
        totals = (
            sql.sum("n").alias("n"),
            sql.count(sql.lit(1)).alias("queries"),
            sql.bool_and("sound").alias("sound"),
            sql.max("heads").alias("heads"),
        )
        found = self.collect(own.groupBy("query").agg(*totals))
        if not found["sound"].all():
            self.fail()
        if self.remote.nested and found["heads"].max() not in (None, 0, 1):
            qid = self.collect(own.filter("heads > 1").select(sql.min("qid")))[:, 0].item()
            raise DataError(f"{self.title}: query {qid!r} stands in two rows")
        others = found.filter(pl.col("query").is_null())
        extra = int(others["queries"].sum())
        found = found.filter(pl.col("query").is_not_null())
        length = np.zeros(len(self.truth), dtype=np.int64)
        length[found["query"].to_numpy()] = found["n"].to_numpy()
        names: tuple[str, ...] = ()
        if extra and self.policy.extra == "error":
            first = own.filter(sql.col("query").isNull()).orderBy("qid").limit(SHOWN)
            names = tuple(self.collect(first.select("qid"))["qid"].to_list())
        return length, extra, names

    def fail(self) -> None:
        """Says which rows are not what they should be."""
        from pyspark.sql import functions as sql

        wrong = self.rows.filter(~frames.sound())
        faults = Faults()
        for qid, document, score in self.collect(wrong.select("qid", "doc", "score").limit(100)).iter_rows():
            what = f"expected a qid, a doc_id and a finite score, found {shown(qid)}, {shown(document)} and {score}"
            faults.add(self.title, what)
        faults.total = int(self.collect(wrong.agg(sql.count(sql.lit(1)).alias("n"))).item())
        faults.fail(DataError)

    def refuse_doubts(self) -> None:
        """Raises `DataError` where a row is not what it should be: of repeats only the best would be looked at."""
        from pyspark.sql import functions as sql

        if self.collect(self.rows.agg(sql.bool_and(frames.sound()).alias("sound")))["sound"].item() is False:
            self.fail()

    def counted(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Hits with their ranks: rank = 1 + better results of the query."""
        from pyspark.sql import functions as sql

        columns = ("qid", "query", "target", "score", self.tie)
        found = self.rows.join(sql.broadcast(self.sent(keys)), ["qid", "doc"]).select(*dict.fromkeys(columns))
        hits = self.collect(found).rename({self.tie: "its_tie", "score": "its_score"}).with_row_index("hit")
        # The same result with the same score twice: one after the other, and which is which does not matter.
        hits = hits.with_columns(
            pl.col("hit").cast(pl.Int64), again=pl.int_range(pl.len()).over("query", "its_score", "its_tie")
        )
        heavy = hits.filter((pl.len() > MANY).over("query"))
        few = hits.filter(~(pl.len() > MANY).over("query"))
        own = self.sent(few.select("hit", "qid", "its_score", "its_tie"))
        score, tie, equal = sql.col("score"), sql.col(self.tie), sql.col("score") == sql.col("its_score")
        higher = score > sql.col("its_score")
        better = higher | (equal & (tie > sql.col("its_tie")))
        counts = (
            self.rows.join(sql.broadcast(own), "qid")
            .filter(score >= sql.col("its_score"))
            .groupBy("hit")
            .agg(*(sql.sum(each.cast("long")).alias(name) for name, each in (
                ("higher", higher), ("equal", equal), ("better", better),
            )))
        )  # fmt: skip
        ranked = few.join(self.collect(counts), on="hit", how="left")
        ranked = ranked.with_columns(rank=pl.col("better") + pl.col("again") + 1)
        wanted = ["query", "target", "rank", "higher", "equal"]
        if not len(heavy):
            return ranked.select(wanted)
        names = heavy.select(pl.col("qid").unique())
        there = self.rows.join(sql.broadcast(self.sent(names)), "qid", "semi")
        return pl.concat([ranked.select(wanted), self.ranked(self.sent(keys.join(names, on="qid")), there)])

    def ranked(self, keys: DataFrame, rows: DataFrame | None = None) -> pl.DataFrame:
        """The same by sorting the rows of each query."""
        placed = with_ranks(self.rows if rows is None else rows, self.near(keys), self.tie).filter("hit")
        return self.collect(placed.select("query", "target", "rank", "higher", "equal"))

    def refuse_ties(self, hits: pl.DataFrame) -> None:
        tied = hits.filter(pl.col("equal") > 1)
        if len(tied):
            qid = self.truth.qids[int(tied["query"][0])]
            what = f"rows on Spark have no order that could decide between the equal scores around a hit of {qid!r}"
            raise ConfigError(f"{self.title}: {what} (ties=input); choose ties=id, or give a column rank")

    def remove_repeats(self) -> None:
        """Keeps the best row of each (query, document); or says that there are several."""
        from pyspark.sql import functions as sql

        judged = self.sent(pl.DataFrame({"qid": pl.Series(self.truth.qids, dtype=pl.String)}))
        first = without_repeats(self.rows, self.tie)
        repeated = first.filter("n > 1").join(self.near(judged), "qid", "semi")
        if self.policy.duplicates == "error":
            each = repeated.groupBy("qid").agg(sql.min("doc").alias("doc"))
            self.duplicated = int(self.collect(each.agg(sql.count(sql.lit(1)).alias("n"))).item())
            faults = Faults()
            for qid, doc in self.collect(each.orderBy("qid").limit(SHOWN)).iter_rows():
                what = f"the result {doc!r} stands twice; remove it, or choose the policy duplicates=drop"
                faults.add(f"{self.title}: query {qid!r}", what)
            faults.total = self.duplicated
            faults.stop(DataError)
        else:
            self.duplicated = int(self.collect(repeated.agg(sql.countDistinct("qid").alias("n"))).item())
        self.rows = first.drop("n")


def fetch(remote: Remote, qid: str | None, limit: int | None) -> pl.DataFrame:
    """Some rows, brought here: those of one query, or the first so many."""
    from pyspark.sql import functions as sql

    frame = remote.frame if qid is None else remote.frame.filter(sql.col("qid") == qid)
    return pl.DataFrame((frame if limit is None else frame.limit(limit)).toArrow())


def renamed(remote: Remote, labeller: Labeller, title: str) -> Remote:
    """The results called what a labeller calls them; ties go by the names they had."""
    from pyspark.sql import functions as sql

    names = [name for name in remote.frame.columns if name != "doc"]
    if labeller.column:
        if labeller.column == "span":
            what = "the labeller spans has no chunk table, and places of results are not read on Spark"
            raise ConfigError(f"{title}: {what}; {ELSEWHERE}")
        if labeller.column not in remote.frame.columns:
            there = ", ".join(remote.frame.columns)
            raise DataError(f"{title}: expected results with a column {labeller.column}, found {there}")
        called = sql.col(labeller.column)
    else:
        from groupgt.engines.spark.batches import renamer

        called = by_arrow(renamer(labeller.names), "string")("doc")
    frame = remote.frame.select(*names, sql.col("doc").alias("own"), called.alias("doc"))
    return replace(remote, frame=frame, tie="own")
