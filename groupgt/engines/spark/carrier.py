"""The carrier for results on a Spark cluster: rows stay there; only hits and one row per query are collected.

If the ground truth can be broadcast, rows are never shuffled: one pass finds the hits, one counts the results of each
query, and one counts the better results for every hit. Otherwise, or if a query has many hits, rows are shuffled by
query and sorted. Ranks depend only on scores and ids, so partition order and repeated tasks do not change a single bit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.base import Carrier, Flat, Labelled, RankedHits, matched
from groupgt.engines.choice import Engine
from groupgt.engines.columns.keys import key_table
from groupgt.engines.columns.reader import results_by_query
from groupgt.engines.spark.steps import (
    Rows,
    by_arrow,
    is_id,
    is_result,
    rows_of,
    sent,
    with_ranks,
)
from groupgt.errors import SHOWN, ConfigError, DataError, Faults
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import (
    Ranking,
    best_of_each_on_spark,
    distinct_ranking,
    repeat_fault,
    spark_key,
    spark_order,
)
from groupgt.model.run import Remote, Run
from groupgt.model.validity import shown
from groupgt.runtime import pl, sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)
# Queries with more hits than this are ranked by sorting their rows: comparing all rows with all hits is too slow.
MANY_HITS = 32
# Maximum number of rows collected for a sample.
GLANCE_ROWS = 1000
WAYS = "expected the id or parents labeller, or spans with a chunk table"
ELSEWHERE = f"{WAYS}; or write the results to parquet and evaluate the files"


class SparkCarrier(Carrier):
    """Accesses results in a Spark frame."""

    def __init__(self, run: Run, remote: Remote) -> None:
        self.run = run
        self.title = run.name or run.source or "results"
        self.rows: Rows = remote.frame if isinstance(remote.frame, Rows) else rows_of(remote.frame, run.title)

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        return _Plan(truth, self.rows, self.title, policy, labeller, engine.broadcast).walk()

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        """Return the run with results renamed by a labeller; ties are ordered by the original names."""
        frame = self.rows.frame
        if labeller.column == "span":
            what = "the spans labeller has no chunk table, and places of results are not read on Spark"
            raise ConfigError(f"{self.title}: {what}; {ELSEWHERE}")
        if labeller.column and labeller.column not in frame.columns:
            there = ", ".join(frame.columns)
            raise DataError(f"{self.title}: expected results with a {labeller.column} column, found {there}")
        name = sql.col(labeller.column) if labeller.column else by_arrow(_renamer(labeller.names), "string")("doc")
        others = [column for column in frame.columns if column != "doc"]
        named = frame.select(*others, sql.col("doc").alias("own"), name.alias("doc"))
        return replace(self.run, contents=Remote(replace(self.rows, frame=named, tie="own")), original=self.run)

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        """Collect and return the results of one query."""
        of_query = self.rows.frame.filter(sql.col("qid") == qid).orderBy(*spark_order(self.rows.tie))
        rows = pl.DataFrame(of_query.select("doc", "score").toArrow())
        return distinct_ranking(rows["doc"].to_list(), rows["score"].to_list(), policy)

    def sample(self, limit: int, queries: Collection[str] = ()) -> dict[str, list[str]]:
        """Return the result ids of each query in the first rows that Spark returns."""
        rows = self.rows.frame.select("qid", "doc").limit(min(limit, GLANCE_ROWS))
        return results_by_query(pl.DataFrame(rows.toArrow()))


def _renamer(names: Callable[[list[str]], Any]) -> Callable[..., Any]:

    def renamed(doc: Any) -> Any:
        import pyarrow as pa

        distinct = doc.dictionary_encode()
        labels = pa.array(list(names(distinct.dictionary.to_pylist())), pa.string())
        return labels.take(distinct.indices)

    return renamed


@dataclass(eq=False)
class _Plan:
    """A labelling pass that queries Spark and collects rows."""

    truth: GroundTruth
    source: Rows
    title: str
    policy: Policy
    labeller: Labeller
    broadcast: int
    collected: int = field(default=0, init=False)
    duplicated: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.rows, self.tie = self.source.frame, self.source.tie
        self.session = self.rows.sparkSession
        self.matches = matched(self.truth, self.labeller, self.policy, self.refuse_to_read)

    def refuse_to_read(self, policy: Policy) -> Flat:
        """Raise `ConfigError`, because results are not collected."""
        raise ConfigError(
            f"the {self.labeller.name} labeller needs all results locally, which is not supported on Spark; {ELSEWHERE}"
        )

    def walk(self) -> Labelled:
        keys = key_table(self.truth, self.matches)
        self.fits = sum(map(len, self.truth.qids)) + sum(map(len, self.matches.keys)) + 32 * len(keys) <= self.broadcast
        if self.policy.looks_at_all:
            self.refuse_invalid_rows()
            self.remove_repeats()
        length, extra, others = self.queries()
        hits = self.counted(keys) if self.fits else self.ranked(self.sent(keys))
        if self.policy.ties == "input":
            self.refuse_ties(hits)
        log.info("%s: %s rows of hits and queries were collected", self.title, f"{self.collected:,}")
        low = hits["higher"].to_numpy() + 1
        ranked = RankedHits(
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
        return ranked.labelled(self.truth, self.labeller, self.matches, self.policy)

    def collect(self, frame: DataFrame) -> pl.DataFrame:
        """Collect rows via Arrow, with 64-bit integers."""
        import polars.selectors as cs

        rows = pl.DataFrame(frame.toArrow()).with_columns(cs.integer().cast(pl.Int64))
        self.collected += len(rows)
        return rows

    def sent(self, table: pl.DataFrame) -> DataFrame:
        return sent(self.session, table)

    def near(self, frame: DataFrame) -> DataFrame:
        return sql.broadcast(frame) if self.fits else frame

    def queries(self) -> tuple[Ints, int, tuple[str, ...]]:
        """Return the number of results per query, shape (Q,), the number of other queries, and a few of their ids."""
        judged = pl.DataFrame({"qid": pl.Series(self.truth.qids, dtype=pl.String), "query": np.arange(len(self.truth))})
        per_id = self.rows.groupBy("qid").agg(
            sql.count(sql.lit(1)).alias("n"),
            sql.bool_and(is_result("doc")).alias("sound"),
            sql.count_if(sql.col("score") == 0).alias("heads"),
        )
        per_id = per_id.withColumn("sound", sql.col("sound") & is_id("qid"))
        per_id = per_id.join(self.near(self.sent(judged)), "qid", "left")
        # One row per query with ground truth, and one for all others.
        totals = (
            sql.sum("n").alias("n"),
            sql.count(sql.lit(1)).alias("queries"),
            sql.bool_and("sound").alias("sound"),
            sql.max("heads").alias("heads"),
        )
        per_query = self.collect(per_id.groupBy("query").agg(*totals))
        if not per_query["sound"].all():
            self.fail()
        if self.source.nested and per_query["heads"].max() not in (None, 0, 1):
            qid = self.collect(per_id.filter("heads > 1").select(sql.min("qid")))[:, 0].item()
            raise DataError(f"{self.title}: query {qid!r} has two rows")
        others = per_query.filter(pl.col("query").is_null())
        extra = int(others["queries"].sum())
        per_query = per_query.filter(pl.col("query").is_not_null())
        length = np.zeros(len(self.truth), dtype=np.int64)
        length[per_query["query"].to_numpy()] = per_query["n"].to_numpy()
        names: tuple[str, ...] = ()
        if extra and self.policy.extra == "error":
            first = per_id.filter(sql.col("query").isNull()).orderBy("qid").limit(SHOWN)
            names = tuple(self.collect(first.select("qid"))["qid"].to_list())
        return length, extra, names

    def fail(self) -> None:
        """Raise an error that lists the invalid rows."""
        wrong = self.rows.filter(~is_result())
        faults = Faults(grouped=False)
        for qid, document, score in self.collect(wrong.select("qid", "doc", "score").limit(100)).iter_rows():
            what = f"expected a qid, a doc_id and a finite score, found {shown(qid)}, {shown(document)} and {score}"
            faults.add(self.title, what)
        faults.total = int(self.collect(wrong.agg(sql.count(sql.lit(1)).alias("n"))).item())
        faults.fail(DataError)

    def refuse_invalid_rows(self) -> None:
        """Raise `DataError` for invalid rows now, because only the best of repeated rows is checked later."""
        if self.collect(self.rows.agg(sql.bool_and(is_result()).alias("sound")))["sound"].item() is False:
            self.fail()

    def counted(self, keys: pl.DataFrame) -> pl.DataFrame:
        """Return hits with their ranks, where rank = 1 + number of better results for the query."""
        columns = ("qid", "query", "target", "score", self.tie)
        hit_rows = self.rows.join(sql.broadcast(self.sent(keys)), ["qid", "doc"]).select(*dict.fromkeys(columns))
        hits = self.collect(hit_rows).rename({self.tie: "its_tie", "score": "its_score"}).with_row_index("hit")
        # Repeats of a result with the same score are consecutive; their order does not matter.
        hits = hits.with_columns(
            pl.col("hit").cast(pl.Int64), again=pl.int_range(pl.len()).over("query", "its_score", "its_tie")
        )
        heavy = hits.filter((pl.len() > MANY_HITS).over("query"))
        few = hits.filter(~(pl.len() > MANY_HITS).over("query"))
        their_keys = self.sent(few.select("hit", "qid", "its_score", "its_tie"))
        score, its_score = sql.col("score"), sql.col("its_score")
        counted = {
            "higher": score > its_score,
            "equal": score == its_score,
            "better": spark_key("score", self.tie) > spark_key("its_score", "its_tie"),
        }
        counts = (
            self.rows.join(sql.broadcast(their_keys), "qid")
            .filter(score >= its_score)
            .groupBy("hit")
            .agg(*(sql.sum(holds.cast("long")).alias(name) for name, holds in counted.items()))
        )
        ranked = few.join(self.collect(counts), on="hit", how="left")
        ranked = ranked.with_columns(rank=pl.col("better") + pl.col("again") + 1)
        row_columns = ["query", "target", "rank", "higher", "equal"]
        if not len(heavy):
            return ranked.select(row_columns)
        names = heavy.select(pl.col("qid").unique())
        there = self.rows.join(sql.broadcast(self.sent(names)), "qid", "semi")
        return pl.concat([ranked.select(row_columns), self.ranked(self.sent(keys.join(names, on="qid")), there)])

    def ranked(self, keys: DataFrame, rows: DataFrame | None = None) -> pl.DataFrame:
        """Find the hits and their ranks by sorting the rows of each query."""
        placed = with_ranks(self.rows if rows is None else rows, self.near(keys), self.tie).filter("hit")
        return self.collect(placed.select("query", "target", "rank", "higher", "equal"))

    def refuse_ties(self, hits: pl.DataFrame) -> None:
        tied = hits.filter(pl.col("equal") > 1)
        if len(tied):
            qid = self.truth.qids[int(tied["query"][0])]
            what = f"rows on Spark have no order that could decide between the equal scores around a hit of {qid!r}"
            raise ConfigError(f"{self.title}: {what} (ties=input); choose ties=id, or give a rank column")

    def remove_repeats(self) -> None:
        """Keep the best row for each (query, document), or raise `DataError` for repeats."""
        judged = self.sent(pl.DataFrame({"qid": pl.Series(self.truth.qids, dtype=pl.String)}))
        first = best_of_each_on_spark(self.rows, self.tie)
        repeated = first.filter("n > 1").join(self.near(judged), "qid", "semi")
        if self.policy.duplicates == "error":
            each = repeated.groupBy("qid").agg(sql.min("doc").alias("doc"))
            self.duplicated = int(self.collect(each.agg(sql.count(sql.lit(1)).alias("n"))).item())
            faults = Faults(grouped=False)
            for qid, doc in self.collect(each.orderBy("qid").limit(SHOWN)).iter_rows():
                faults.add(f"{self.title}: query {qid!r}", repeat_fault(doc))
            faults.total = self.duplicated
            faults.stop(DataError)
        else:
            self.duplicated = int(self.collect(repeated.agg(sql.countDistinct("qid").alias("n"))).item())
        self.rows = first.drop("n")
