"""Computes per-query values as a Spark frame on the cluster, without collecting rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.arrow import rules_and_metrics
from groupgt.engines.base import RankedHits
from groupgt.engines.columns.keys import key_table
from groupgt.engines.spark.steps import by_arrow, is_result, rows_of, truth_rows, with_ranks
from groupgt.errors import ConfigError
from groupgt.formats.frames import is_remote
from groupgt.labellers.ids import Ids
from groupgt.metrics.base import ConventionChoice
from groupgt.metrics.language import Metric
from groupgt.metrics.values import values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.ranking import WITHOUT_REPEATS, best_of_each_on_spark
from groupgt.model.values import exact_sum, rounded
from groupgt.model.written import Shape
from groupgt.runtime import sql

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

WRONG = "expected a qid, a doc_id and a finite score; they are not in a row of query "
ROWS = "expected one row per query, found two of query "
TWICE = f"duplicate result; {WITHOUT_REPEATS}: query "
TIED = "rows on Spark have no order that could decide between equal scores (ties=input); choose ties=id: query "


def per_query(
    run: DataFrame,
    truth: DataFrame,
    metrics: Sequence[str | Metric],
    *,
    convention: ConventionChoice = "auto",
    k: int | Sequence[int] = (),
    policy: Policy | str | Sequence[str] | dict[str, Any] | None = None,
) -> DataFrame:
    """Return a frame with `qid` and a column of doubles per metric; null marks queries left out of the mean.

    `run` has `qid, doc_id, score | rank` or `qid, retrieved_ids`; `truth` has `qid, retrieval_gt`, or `qid, group,
    doc_id[, grade]`. They are joined by query (Spark broadcasts a small ground truth if
    `spark.sql.autoBroadcastJoinThreshold` allows it), results are ranked by sorting, and Arrow batches are evaluated.
    Values are bit-identical to `groupgt.evaluate` with the groups in the column `group` sorted by name. Nothing is
    collected. Raises `DataError`, `MetricError` or `ConfigError`; an invalid row raises an error that names its query
    when the frame is computed. Requires Spark 4.1.
    """
    shape: Shape = "groups" if "retrieval_gt" in getattr(truth, "columns", ()) else "subtopics"
    rules, parsed = rules_and_metrics(policy, metrics, convention, k, shape)
    for what, frame in (("results", run), ("ground truth", truth)):
        if not is_remote(frame):
            raise ConfigError(f"{what}: expected a frame of Spark, found {type(frame).__name__}")
    results, judged = rows_of(run), truth_rows(truth)
    rows = results.frame.withColumn("score", sql.when(is_result(), sql.col("score")).otherwise(_error(WRONG)))
    if rules.looks_at_all:
        if rules.duplicates == "error":
            # Repeats in queries without ground truth are not errors.
            rows = rows.join(judged.select("qid"), "qid", "semi")
        rows = best_of_each_on_spark(rows, results.tie)
        if rules.duplicates == "error":
            rows = rows.withColumn("score", sql.when(sql.col("n") == 1, sql.col("score")).otherwise(_error(TWICE)))
    named = sql.transform(sql.flatten("groups"), lambda each: each["id"])
    keys = judged.select("qid", sql.explode(sql.array_distinct(named)).alias("doc"))
    placed = with_ranks(rows, keys, results.tie, equals=rules.ties == "input")
    if rules.ties == "input":
        untied = sql.col("hit").isNull() | (sql.col("equal") == 1)
        placed = placed.withColumn("rank", sql.when(untied, sql.col("rank")).otherwise(_error(TIED)))
    hit = sql.when(sql.col("hit"), sql.struct("rank", "doc"))
    length = sql.max("rank")
    if results.nested:
        heads = sql.count_if(sql.col("score") == 0)
        length = sql.when(heads <= 1, length).otherwise(sql.raise_error(sql.concat(sql.lit(ROWS), sql.col("qid"))))
    seen = placed.groupBy("qid").agg(length.alias("n"), sql.collect_list(hit).alias("hits"))
    kinds = ", ".join(f"m{number} double" for number in range(len(parsed)))
    measured = by_arrow(_measure(parsed, rules), kinds)
    values = judged.join(seen, "qid", "left").select("qid", measured("qid", "groups", "n", "hits").alias("found"))
    return values.select("qid", *(sql.col(f"found.m{number}").alias(text) for number, text in enumerate(parsed)))


def means(values: DataFrame) -> dict[str, float]:
    """Return the mean of each column of doubles, ignoring nulls and NaN, bit-identical to `groupgt.evaluate`.

    Each partition computes its exact sum as a whole number, and only these sums are collected. The order and number of
    partitions do not change the result. The mean of an empty column is NaN.
    """
    names = [name for name, kind in values.dtypes if kind == "double"]
    if not names:
        return {}
    added = by_arrow(_total, "string", one=True)
    parts = values.withColumn("part", sql.spark_partition_id()).groupBy("part")
    totals = parts.agg(*(added(sql.col(f"`{name}`")).alias(f"m{number}") for number, name in enumerate(names)))
    rows = totals.toArrow().to_pydict()
    out: dict[str, float] = {}
    for number, name in enumerate(names):
        counts, sums = zip((0, 0), *(map(int, each.split()) for each in rows[f"m{number}"]))
        out[name] = rounded(sums) / sum(counts) if sum(counts) else math.nan
    return out


def _error(what: str) -> Column:
    """Return an expression that raises when a row is computed."""
    qid, document = (sql.coalesce(sql.col(name), sql.lit("null")) for name in ("qid", "doc"))
    return sql.raise_error(sql.concat(sql.lit(what), qid, sql.lit(", result "), document))


# Code that Spark workers run: Arrow in, Arrow out. Each batch contains whole queries, with only their hits.


def _measure(parsed: Mapping[str, Metric], policy: Policy) -> Callable[..., pa.Array]:
    """Return a function that computes query values from `qid`, `groups`, `n` and `hits`, grouped as in `per_query`."""

    def measured(qid: pa.Array, groups: pa.Array, n: pa.Array, hits: pa.Array) -> pa.Array:
        import pyarrow as pa

        truth = GroundTruth.from_rows(qid.to_pylist(), list(map(_groups, groups.to_pylist())), policy)
        labeller = Ids()
        matches = labeller.match(truth, None)
        table = key_table(truth, matches)
        targets = dict(zip(zip(table["query"].to_list(), table["doc"].to_list()), table["target"].to_list()))
        rows = [
            (query, targets[query, hit["doc"]], hit["rank"])
            for query, of_query in enumerate(hits.to_pylist())
            for hit in of_query or ()
            if (query, hit["doc"]) in targets
        ]
        query, target, rank = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        length = np.array(n.fill_null(0), dtype=np.int64)
        ranked = RankedHits(query, target, rank, rank, rank, length)
        labelled = ranked.labelled(truth, labeller, matches, policy)
        columns = values_of(parsed, labelled.hits, labelled.present, policy)
        # NaN becomes null: a query left out of the mean.
        arrays = [pa.array(column, pa.float64(), mask=np.isnan(column)) for column in columns.values()]
        return pa.StructArray.from_arrays(arrays, names=[f"m{number}" for number in range(len(arrays))])

    return measured


def _groups(groups: list[list[dict[str, Any]]] | None) -> list[list[Any]] | None:
    """Return groups of ids, with grades unless they are 1."""
    if groups is None:
        return None
    return [
        None if group is None else [each["id"] if each["grade"] == 1 else each for each in group] for group in groups
    ]


def _total(column: pa.Array) -> str:
    """Return the number of values and their exact sum as two whole numbers."""
    values = np.asarray(column.drop_null(), dtype=np.float64)
    values = values[~np.isnan(values)]
    return f"{len(values)} {exact_sum(values)}"
