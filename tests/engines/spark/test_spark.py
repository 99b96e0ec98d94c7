"""On Spark the bits are those of lists and frames in memory, and next to nothing is brought here."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import groupgt
from groupgt.engines.base import Labelled
from groupgt.engines.carriers import carrier_of
from groupgt.engines.choice import Engine, Spark
from groupgt.engines.spark import carrier, means, per_query
from groupgt.engines.spark.carrier import MANY_HITS
from groupgt.evaluation.result import mean_of
from groupgt.model.run import Remote
from groupgt.model.values import exact_sum, rounded
from tests.engines.test_engines import METRICS, make, same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMERIC = [metric for metric in METRICS if not metric.definition.reads_texts]
# Metrics of hits under any labeller; those of harm need ids.
OF_HITS = [metric for metric in NUMERIC if metric.definition.queries != "harmful"]
AUTORAG = [metric for metric in NUMERIC if metric.convention == "autorag"]
TEXTS = [str(metric) for metric in NUMERIC]
FEW = ["recall@3", "mrr", "ndcg.coverage@5", "map.trec"]
LONG = "qid string, doc_id string, score double"
NESTED_TRUTH = "qid string, retrieval_gt array<array<string>>"
GROUPED_TRUTH = "qid string, group string, doc_id string, grade double"

Rows = list[tuple[Any, Any, Any]]


def in_memory(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")


def there(spark: SparkSession, rows: list[Any], schema: str = LONG, partitions: int = 3) -> DataFrame:
    """Rows as a frame on Spark, in some partitions."""
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), schema)


def truth_there(spark: SparkSession, truth: dict[str, Any]) -> DataFrame:
    return there(spark, list(truth.items()), NESTED_TRUTH)


def shuffled(rows: Rows) -> Rows:
    return random.Random(5).sample(rows, len(rows))


def as_lists(rows: Rows) -> dict[str, list[str]]:
    """Rankings in order; equal scores go by descending id."""
    found: dict[str, list[str]] = {}
    for qid, doc, _ in sorted(rows, key=lambda row: (row[2], row[1].encode()), reverse=True):
        found.setdefault(qid, []).append(doc)
    return found


def same_values(first: groupgt.Evaluation, second: groupgt.Evaluation) -> None:
    for text in first.values:
        assert np.array_equal(first.values[text], second.values[text], equal_nan=True), text


def same_hits(first: Labelled, second: Labelled) -> None:
    for name in ("query", "rank", "alternative", "repeat", "length"):
        assert np.array_equal(getattr(first.hits, name), getattr(second.hits, name)), name
    assert np.array_equal(first.present, second.present)
    assert (first.extra, first.duplicated) == (second.extra, second.duplicated)
    depths = [None, np.full(len(first.present), 2), np.full(len(first.present), 5)]
    for depth in depths:
        assert first.tied_at([depth]) == second.tied_at([depth])


def same_per_query(expected: groupgt.Evaluation, found: DataFrame) -> None:
    """The same queries, and the same values to the bit."""
    frame = pl.DataFrame(found.toArrow())
    assert len(frame) == len(expected.per_query)
    ordered = expected.per_query.select("qid").join(frame, on="qid", how="left", maintain_order="left")
    assert_frame_equal(ordered, expected.per_query, check_exact=True)


@contextmanager
def configured(spark: SparkSession, **settings: str) -> Iterator[None]:
    names = {name: f"spark.sql.{name}" for name in settings}
    before = {name: spark.conf.get(path, None) for name, path in names.items()}
    try:
        for name, value in settings.items():
            spark.conf.set(names[name], value)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(names[name])
            else:
                spark.conf.set(names[name], value)


class Spy:
    """Which plans labelled, and how many hits were ranked by sorting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans: list[Any] = []
        self.sorted: list[int] = []
        walk, ranked = carrier._Plan.walk, carrier._Plan.ranked

        def walked(own: Any) -> Labelled:
            self.plans.append(own)
            return walk(own)

        def counted(own: Any, *given: Any) -> pl.DataFrame:
            found = ranked(own, *given)
            self.sorted.append(len(found))
            return found

        monkeypatch.setattr(carrier._Plan, "walk", walked)
        monkeypatch.setattr(carrier._Plan, "ranked", counted)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


@pytest.fixture
def brought(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each step brought here; other ways to bring rows here are closed."""
    kind = type(spark.range(1))
    found: list[int] = []
    to_arrow = kind.toArrow

    def counted(frame: DataFrame) -> Any:
        table = to_arrow(frame)
        found.append(table.num_rows)
        return table

    def closed(*given: Any) -> None:
        raise AssertionError("rows were brought here by another way than Arrow")

    monkeypatch.setattr(kind, "toArrow", counted)
    for name in ("collect", "toPandas", "toLocalIterator", "take", "head", "first"):
        monkeypatch.setattr(kind, name, closed)
    return found


CASES = [
    pytest.param(False, False, False, "penalize", id="sorted"),
    pytest.param(True, False, False, "penalize", id="ties"),
    pytest.param(False, True, False, "penalize", id="repeats"),
    pytest.param(True, True, True, "penalize", id="all of it"),
    pytest.param(False, True, True, "drop", id="repeats dropped"),
    pytest.param(True, True, True, "drop", id="all of it dropped"),
    pytest.param(True, True, True, "keep", id="all of it kept"),
]


@pytest.mark.parametrize(("ties", "repeats", "scattered", "duplicates"), CASES)
def test_every_metric_has_the_same_bits(
    spark: SparkSession, ties: bool, repeats: bool, scattered: bool, duplicates: str
) -> None:
    truth, rows = make(3, ties=ties, repeats=repeats)
    given = shuffled(rows) if scattered else rows
    metrics = AUTORAG if duplicates == "keep" else NUMERIC
    policy = {"duplicates": duplicates}
    expected = groupgt.evaluate(truth, in_memory(given), metrics, policy=policy)
    found = groupgt.evaluate(truth, there(spark, given), metrics, policy=policy)
    same(expected, found)
    same_values(groupgt.evaluate(truth, as_lists(rows), metrics, policy=policy), found)
    same_hits(expected.labelled, found.labelled)


@pytest.mark.parametrize("preset", ["autorag", "trec"])
def test_presets_and_missing_queries(spark: SparkSession, preset: str) -> None:
    truth, rows = make(4)
    expected = groupgt.evaluate(truth, in_memory(rows), FEW[:2], policy=preset)
    same(expected, groupgt.evaluate(truth, there(spark, shuffled(rows)), FEW[:2], policy=preset))
    assert expected.counts["missing"] > 0


@pytest.mark.parametrize("duplicates", ["penalize", "drop"])
def test_a_ground_truth_too_large_to_be_sent_has_the_same_hits(spark: SparkSession, spy: Spy, duplicates: str) -> None:
    truth, rows = make(6, ties=True, repeats=True)
    expected = groupgt.evaluate(truth, in_memory(rows), FEW, policy={"duplicates": duplicates})
    run = groupgt.Run(Remote(there(spark, shuffled(rows), partitions=5)))
    # Nor does Spark send it by its own rule.
    with configured(spark, autoBroadcastJoinThreshold="-1"):
        found = carrier_of(run).label(
            expected.truth, expected.labeller, expected.policy, Engine("spark", Spark(broadcast=1))
        )
    same_hits(expected.labelled, found)
    (sorted_hits,) = spy.sorted
    assert sorted_hits == len(np.unique(np.stack([found.hits.query, found.hits.rank]), axis=1).T)


@pytest.mark.parametrize("ties", [False, True])
def test_a_query_with_many_hits_is_sorted(spark: SparkSession, spy: Spy, ties: bool) -> None:
    truth, rows = make(7, ties=ties, repeats=True)
    ids = [f"m{number:03d}" for number in range(200)]
    # One hit more than are counted, and among others the most that are.
    truth["many"] = [[name] for name in ids[: MANY_HITS + 1]]
    truth["most"] = [[name] for name in ids[:MANY_HITS]]
    rng = random.Random(8)
    for qid in ("many", "most"):
        rows += [(qid, name, float(rng.randrange(5)) if ties else rng.random()) for name in ids]
    expected = groupgt.evaluate(truth, in_memory(rows), NUMERIC)
    assert spy.sorted == []
    found = groupgt.evaluate(truth, there(spark, shuffled(rows)), NUMERIC)
    assert spy.sorted == [MANY_HITS + 1]
    same(expected, found)


def test_one_query_may_hold_nearly_all_results(spark: SparkSession, spy: Spy) -> None:
    """300,000 results of one query, with many hits among many equal scores, beside 200 small ones."""
    from pyspark.sql import functions as sql

    size, queries, own = 300_000, 200, 20
    number = sql.col("id")
    large = spark.range(0, size, 1, 4).select(
        sql.lit("large").alias("qid"),
        sql.concat(sql.lit("d"), (number * 7919) % size).alias("doc_id"),
        (number % 997).cast("double").alias("score"),
    )
    small = spark.range(0, queries * own, 1, 2).select(
        sql.concat(sql.lit("q"), number % queries).alias("qid"),
        sql.concat(sql.lit("d"), number % 31).alias("doc_id"),
        (number % 13).cast("double").alias("score"),
    )
    numbers = np.arange(size)
    rows = list(zip(["large"] * size, [f"d{each}" for each in numbers * 7919 % size], (numbers % 997.0).tolist()))
    rows += [(f"q{each % queries}", f"d{each % 31}", float(each % 13)) for each in range(queries * own)]
    truth: dict[str, Any] = {f"q{each}": [[f"d{each % 31}"], ["d1", "d2"]] for each in range(queries)}
    truth["large"] = [[f"d{each}"] for each in range(0, size, size // (3 * MANY_HITS))]
    metrics = ["recall@1000", "ndcg.trec", "mrr", "map.coverage"]
    expected = groupgt.evaluate(truth, in_memory(rows), metrics)
    frame = large.union(small)
    same(expected, groupgt.evaluate(truth, frame, metrics))
    assert spy.sorted == [len(truth["large"])]
    same_per_query(expected, per_query(frame, truth_there(spark, truth), metrics))


def carried(spark: SparkSession, kind: str, rows: Rows) -> DataFrame:
    """The same results in another shape; their ids are whole numbers."""
    from pyspark.sql import functions as sql

    frame = there(spark, rows)
    if kind == "nested":
        lists = [(qid, [int(each) for each in ids]) for qid, ids in as_lists(rows).items()]
        return there(spark, lists, "qid string, retrieved_ids array<int>")
    if kind == "rank":
        ranked = [(qid, doc, rank) for qid, ids in as_lists(rows).items() for rank, doc in enumerate(ids, 1)]
        return there(spark, ranked, "qid string, doc_id string, rank int")
    if kind == "integers":
        score = sql.col("score").cast("decimal(9,3)").alias("score")
        # Where there is a score, ranks are not looked at.
        return frame.select(
            sql.col("qid").cast("int"), sql.col("doc_id").cast("bigint"), score, sql.lit(1).alias("rank")
        )
    assert kind == "varchar"
    columns = [sql.col("qid").cast("varchar(8)").alias("qid"), sql.col("doc_id").cast("char(3)").alias("doc_id")]
    return frame.select(*columns, "score")


@pytest.mark.parametrize("kind", ["nested", "rank", "integers", "varchar"])
def test_every_carrier_gives_the_same_bits(spark: SparkSession, kind: str) -> None:
    truth, rows = make(2, ties=True)
    # Ids of three digits: those of chars have one length.
    truth = {
        str(number): [[str(100 + int(name[1:])) for name in group] for group in groups]
        for number, groups in enumerate(truth.values())
    }
    numbers = {f"q{number}": str(number) for number in range(40)}
    rows = [(numbers.get(qid, "999"), str(100 + int(doc[1:])), score) for qid, doc, score in rows]
    expected = groupgt.evaluate(truth, in_memory(rows), FEW)
    with configured(spark, preserveCharVarcharTypeInfo="true"):
        found = groupgt.evaluate(truth, carried(spark, kind, shuffled(rows)), FEW)
        if kind in ("nested", "rank"):
            # The order was given: there are no ties.
            assert found.counts["ties"] == 0
            same_values(expected, found)
        else:
            same(expected, found)


def test_values_per_query_of_nested_lists(spark: SparkSession) -> None:
    truth, rows = make(2, ties=True)
    frame = there(spark, list(as_lists(rows).items()), "qid string, retrieved_ids array<string>")
    same_per_query(groupgt.evaluate(truth, in_memory(rows), FEW), per_query(frame, truth_there(spark, truth), FEW))


def test_nested_lists_that_are_empty_or_null_are_no_results(spark: SparkSession) -> None:
    truth = {"a": [["x"]], "b": [["x"]], "c": [["x"]]}
    given = [("a", ["y", "x"]), ("b", []), ("c", None)]
    frame = there(spark, given, "qid string, retrieved_ids array<string>")
    found = groupgt.evaluate(truth, frame, ["mrr"], policy={"ties": "input"})
    assert found.values["mrr"].tolist() == [0.5, 0.0, 0.0]
    assert found.counts["missing"] == 2


def test_equal_scores_go_by_the_bytes_of_ids(spark: SparkSession) -> None:
    """UTF-16 would put what is beyond its first plane before the end of it."""
    names = ["a", "\uffff", "\U0001f600", "é", "z", "\ud7ff"]
    rows = [("q", name, 0.0 if number % 2 else -0.0) for number, name in enumerate(names)]
    truth = {"q": [[name] for name in names]}
    found = groupgt.evaluate(truth, there(spark, rows), ["mrr"])
    alternatives = [found.truth.ids[each] for each in found.labelled.hits.alternative]
    assert alternatives == sorted(names, key=str.encode, reverse=True)
    same(groupgt.evaluate(truth, in_memory(rows), ["mrr"]), found)


def test_the_order_of_partitions_changes_no_bit(spark: SparkSession) -> None:
    truth, rows = make(9, ties=True, repeats=True)
    expected = groupgt.evaluate(truth, in_memory(rows), FEW)
    same(expected, groupgt.evaluate(truth, there(spark, rows[::-1], partitions=1), FEW))
    same(expected, groupgt.evaluate(truth, there(spark, shuffled(rows), partitions=11), FEW))


def test_no_rows_and_no_hits_are_no_errors(spark: SparkSession) -> None:
    truth = {"q": [["a"]], "r": [["b"]]}
    assert groupgt.evaluate(truth, there(spark, []), ["recall"]).counts["missing"] == 2
    found = groupgt.evaluate(truth, there(spark, [("q", "x", 1.0)]), ["recall"])
    assert (found.means, found.counts["missing"]) == ({"recall": 0.0}, 1)


def parents_of(rows: Rows) -> list[tuple[str, str, float, str]]:
    return [(qid, doc, score, f"p{int(doc[1:]) // 7}") for qid, doc, score in rows]


def test_parents_that_results_carry(spark: SparkSession) -> None:
    truth, rows = make(10, ties=True, repeats=True)
    parents = {qid: [[f"p{int(name[1:]) // 7}" for name in group] for group in groups] for qid, groups in truth.items()}
    schema = ["qid", "doc_id", "score", "parent"]
    options: dict[str, Any] = {"labeller": "parents", "policy": {"duplicates": "drop"}}
    given_rows = pl.DataFrame(parents_of(rows), schema=schema, orient="row")
    expected = groupgt.evaluate(parents, given_rows, OF_HITS, **options)
    frame = there(spark, parents_of(shuffled(rows)), f"{LONG}, parent string")
    found = groupgt.evaluate(parents, frame, OF_HITS, **options)
    same(expected, found)
    assert found.explain("q1") == expected.explain("q1")


@pytest.mark.parametrize("kind", ["pattern", "mapping"])
def test_parents_of_a_pattern_or_a_mapping(spark: SparkSession, kind: str) -> None:
    truth, rows = make(11, ties=True, repeats=True)
    tens = {f"d{number}": f"d{number // 10}" for number in range(60)}
    options: dict[str, Any] = {"pattern": "(d.).?"} if kind == "pattern" else {"mapping": tens}
    labeller = {"use": "parents", "with": options}
    expected = groupgt.evaluate(truth, in_memory(rows), FEW, labeller=labeller)
    same(expected, groupgt.evaluate(truth, there(spark, shuffled(rows)), FEW, labeller=labeller))
    same_values(expected, groupgt.evaluate(truth, as_lists(rows), FEW, labeller=labeller))


def test_spans_of_a_chunk_table_need_no_result(spark: SparkSession) -> None:
    truth = {"q": [[{"doc": "a", "start": 0, "end": 9}], [{"doc": "b", "start": 5, "end": 9}]]}
    chunks = {f"{doc}{at}": {"doc": doc, "start": at * 5, "end": at * 5 + 5} for doc in "ab" for at in range(3)}
    labeller = {"use": "spans", "with": {"chunks": chunks}}
    ids = ["b0", "a1", "b1", "a0", "b2"]
    expected = groupgt.evaluate(truth, {"q": ids}, OF_HITS, labeller=labeller)
    rows = [("q", name, -float(place)) for place, name in enumerate(ids)]
    same(expected, groupgt.evaluate(truth, there(spark, rows), OF_HITS, labeller=labeller))


# Ground truth on Spark, and values that stay there.


def graded_rows(truth: dict[str, Any]) -> list[tuple[str, str, str, float]]:
    """Rows of (qid, group, doc_id, grade): names of groups are in no order."""
    rng = random.Random(12)
    return [
        (qid, f"g{9 - number}", name, rng.choice((0.5, 1.0, 2.0, 3.0)))
        for qid, groups in truth.items()
        for number, group in enumerate(groups)
        for name in group
    ]


@pytest.mark.parametrize("graded", [False, True])
def test_ground_truth_may_be_on_spark_too(spark: SparkSession, graded: bool) -> None:
    truth, rows = make(13, ties=True)
    if graded:
        judged = graded_rows(truth)
        given: Any = pl.DataFrame(judged, schema=["qid", "group", "doc_id", "grade"], orient="row")
        expected = groupgt.evaluate(given, in_memory(rows), NUMERIC)
        found = groupgt.evaluate(there(spark, judged, GROUPED_TRUTH), there(spark, rows), NUMERIC)
    else:
        kinds = ["x" if number % 3 else "y" for number in range(len(truth))]
        columns = {"qid": list(truth), "retrieval_gt": list(truth.values()), "type": kinds}
        expected = groupgt.evaluate(pl.DataFrame(columns), in_memory(rows), NUMERIC, by=["type", "n_groups"])
        frame = there(spark, list(zip(*columns.values())), f"{NESTED_TRUTH}, type string")
        found = groupgt.evaluate(frame, there(spark, rows), NUMERIC, by=["type", "n_groups"])
        assert found.slices == expected.slices
    assert found.truth.digest == expected.truth.digest
    same(expected, found)


SOME = [*FEW, "ndcg.trec@5", "map_ia", "recall@1", "precision@3", "nerr_ia@5", "alpha_ndcg"]


@pytest.mark.parametrize(
    ("metrics", "policy"),
    [
        (TEXTS, {}),
        (SOME, {"missing": "skip", "duplicates": "drop"}),
        ([str(metric) for metric in AUTORAG], {"duplicates": "keep"}),
    ],
    ids=["all metrics", "skip and drop", "keep"],
)
def test_values_per_query_have_the_same_bits(spark: SparkSession, metrics: list[str], policy: dict[str, str]) -> None:
    truth, rows = make(14, ties=True, repeats=True)
    expected = groupgt.evaluate(truth, in_memory(rows), metrics, policy=policy)
    assert expected.counts["missing"] > 0
    assert expected.counts["undefined"] > 0
    # Queries come in several batches, as on a cluster.
    with configured(spark, **{"execution.arrow.maxRecordsPerBatch": "7"}):
        found = per_query(there(spark, shuffled(rows)), truth_there(spark, truth), metrics, policy=policy)
        same_per_query(expected, found)


@pytest.mark.parametrize("policy", [{}, {"missing": "skip", "duplicates": "drop"}], ids=["default", "skip and drop"])
def test_values_per_query_of_graded_rows_have_the_same_bits(spark: SparkSession, policy: dict[str, str]) -> None:
    truth, rows = make(15, ties=True, repeats=True)
    # Groups of rows on a cluster are in the order of their names.
    judged = sorted(graded_rows(truth))
    given = pl.DataFrame(judged, schema=["qid", "group", "doc_id", "grade"], orient="row")
    expected = groupgt.evaluate(given, in_memory(rows), SOME, policy=policy)
    random.Random(16).shuffle(judged)
    found = per_query(there(spark, shuffled(rows)), there(spark, judged, GROUPED_TRUTH), SOME, policy=policy)
    same_per_query(expected, found)


RELEVANCE: list[dict[str, Any]] = [
    {"level": 2, "empty_groups": "unmeetable", "undefined": "zero"},
    {"level": 0.5, "empty_groups": "unmeetable"},
    {"level": 2, "undefined": "zero"},
]


@pytest.mark.parametrize("policy", RELEVANCE, ids=str)
def test_what_counts_as_relevant_counts_so_on_spark(spark: SparkSession, policy: dict[str, Any]) -> None:
    rng = random.Random(18)
    ids = [f"d{number}" for number in range(12)]
    judged = [
        (f"q{query}", f"g{group}", name, float(rng.choice((0, 0, 1, 2, 3))))
        for query in range(40)
        for group in range(3)
        for name in sorted(rng.sample(ids, 3))
    ]
    rows: Rows = [(f"q{n}", name, float(-rank)) for n in range(1, 40) for rank, name in enumerate(rng.sample(ids, 8))]
    given = pl.DataFrame(judged, schema=["qid", "group", "doc_id", "grade"], orient="row")
    expected = groupgt.evaluate(given, in_memory(rows), SOME, policy=policy)
    found = groupgt.evaluate(given, there(spark, shuffled(rows)), SOME, policy=policy)
    assert found.counts == expected.counts
    same(expected, found)
    frame = per_query(there(spark, rows), there(spark, judged, GROUPED_TRUTH), SOME, policy=policy)
    same_per_query(expected, frame)


def test_sets_that_are_needed_together_have_the_same_bits(spark: SparkSession) -> None:
    truth, rows = make(19)
    sets = {
        qid: [
            [{"all": group[:2]}, *group[2:]] if isinstance(group, list) and len(group) > 1 else group
            for group in groups or []
        ]
        for qid, groups in truth.items()
    }
    metrics = ["recall@3", "complete", "hit_rate.coverage@5", "mrr", "mrecall@2", "completion_rr"]
    expected = groupgt.evaluate(sets, in_memory(rows), metrics)
    assert expected.truth.set_of is not None
    found = groupgt.evaluate(sets, there(spark, shuffled(rows)), metrics)
    same(expected, found)
    same_hits(expected.labelled, found.labelled)
    with pytest.raises(groupgt.GroupgtError, match=r"map\.autorag: not defined for ground truth with sets"):
        groupgt.evaluate(sets, there(spark, rows), ["map"])


def test_values_per_query_take_cutoffs_and_conventions_as_evaluate_does(spark: SparkSession) -> None:
    truth, rows = make(17)
    options: dict[str, Any] = {"convention": "trec", "k": [1, 5]}
    expected = groupgt.evaluate(truth, in_memory(rows), ["recall", "ndcg"], **options)
    found = per_query(there(spark, rows), truth_there(spark, truth), ["recall", "ndcg"], **options)
    assert found.columns == expected.per_query.columns
    same_per_query(expected, found)


def test_values_per_query_are_not_computed_before_they_are_asked_for(spark: SparkSession) -> None:
    context = spark.sparkContext
    truth, rows = make(18)
    run, judged = there(spark, [*rows, ("q1", "d1", math.nan)]), truth_there(spark, truth)
    try:
        context.setJobGroup("lazy", "nothing is to run here")
        values = per_query(run, judged, FEW, policy={"duplicates": "drop"})
        assert dict(values.dtypes) == {"qid": "string", **dict.fromkeys(FEW, "double")}
        assert list(context.statusTracker().getJobIdsForGroup("lazy")) == []
        # What is wrong with a row is said when it is looked at.
        with pytest.raises(Exception, match="a finite score; they are not in a row of query q1, result d1"):
            values.toArrow()
        assert list(context.statusTracker().getJobIdsForGroup("lazy")) != []
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)


@pytest.mark.parametrize(
    ("metrics", "policy", "match"),
    [
        (["mrr", "recall@100chars"], {}, "has no lengths, calls or texts of results: omit recall@100chars"),
        (["recall", "token_f1"], {}, "omit token_f1"),
        (["recall"], {"missing": "error"}, "expected missing=zero or skip"),
        (["recall"], {"extra": "error"}, "expected missing=zero or skip"),
        (["recall.trec"], {"duplicates": "keep"}, "choose duplicates=penalize"),
    ],
    ids=["chars", "token_f1", "missing", "extra", "keep"],
)
def test_values_per_query_are_refused_where_they_cannot_be_had(
    spark: SparkSession, metrics: list[str], policy: dict[str, str], match: str
) -> None:
    with pytest.raises(groupgt.ConfigError, match=match):
        per_query(there(spark, []), there(spark, [], NESTED_TRUTH), metrics, policy=policy)


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        ("qid string, retrieval_gt array<string>", "expected lists of lists of ids in retrieval_gt, found array<str"),
        ("qid string, retrieval_gt array<array<double>>", "expected lists of lists of ids in retrieval_gt, found arr"),
        ("qid string, doc_id string", "expected the columns qid and retrieval_gt, or qid, group and doc_id; found qid"),
        (
            "qid double, retrieval_gt array<array<string>>",
            "expected strings or integers in the 'qid' column, found dou",
        ),
        ("qid string, group int, doc_id boolean", "expected strings or integers in the 'doc_id' column, found boolean"),
    ],
    ids=["flat", "numbers", "columns", "qid", "doc_id"],
)
def test_ground_truth_of_another_shape_is_refused_at_once(spark: SparkSession, schema: str, match: str) -> None:
    with pytest.raises(groupgt.DataError, match=match):
        per_query(there(spark, []), there(spark, [], schema), ["recall"])


@pytest.mark.parametrize(
    ("policy", "rows", "match"),
    [
        ({}, [("bad", "a", math.inf)], "expected a qid, a doc_id and a finite score; .* query bad, result a"),
        ({}, [("bad", "a", None)], "query bad, result a"),
        ({"duplicates": "drop"}, [("bad", "a", None), ("bad", "a", 1.0)], "query bad, result a"),
        ({}, [("bad", " ", 1.0)], "query bad, result"),
        ({"duplicates": "error"}, [("bad", "a", 1.0), ("bad", "a", 2.0)], "duplicate result; .* query bad, result a"),
        ({"ties": "input"}, [("bad", "a", 1.0), ("bad", "x", 1.0)], "choose ties=id: query bad, result a"),
    ],
    ids=["infinite", "null", "null among repeats", "blank", "repeat", "tie"],
)
def test_values_per_query_name_the_query_at_fault(
    spark: SparkSession, policy: dict[str, str], rows: Rows, match: str
) -> None:
    truth = truth_there(spark, {"bad": [["a"]], "good": [["a"]]})
    values = per_query(there(spark, [("good", "a", 1.0), *rows]), truth, ["recall"], policy=policy)
    with pytest.raises(Exception, match=match):
        values.toArrow()


# Means.


def alike(first: dict[str, float], second: dict[str, float]) -> bool:
    """Equal to the bit; NaN is NaN."""
    return {name: value.hex() for name, value in first.items()} == {name: v.hex() for name, v in second.items()}


def test_means_have_the_same_bits_however_values_lie(spark: SparkSession) -> None:
    truth, rows = make(19, ties=True)
    expected = groupgt.evaluate(truth, in_memory(rows), FEW).means
    values = per_query(there(spark, rows), truth_there(spark, truth), FEW).cache()
    try:
        turned = values.orderBy(values["qid"].desc())
        for each in (values, values.repartition(1), values.repartition(7), turned, turned.coalesce(2)):
            assert alike(means(each), expected)
    finally:
        values.unpersist()


@pytest.mark.parametrize("partitions", [1, 5])
def test_means_are_those_of_an_exact_sum(spark: SparkSession, partitions: int) -> None:
    rng = random.Random(20)
    numbers = [rng.uniform(-1, 1) * 2.0 ** rng.randint(-1074, 1000) for _ in range(300)]
    numbers += [1e308, -1e308, 5e-324, -5e-324, 0.1, -0.0, *([None] * 20)]
    rows = [(value, None, str(place)) for place, value in enumerate(numbers)]
    frame = there(spark, rows, "`a.b@5` double, none double, name string", partitions)
    found = means(frame)
    known = [value for value in numbers if value is not None]
    assert found["a.b@5"].hex() == (math.fsum(known) / len(known)).hex()
    assert math.isnan(found["none"])
    assert list(found) == ["a.b@5", "none"]


def test_the_mean_of_nothing_is_not_a_number(spark: SparkSession) -> None:
    assert math.isnan(means(there(spark, [], "value double"))["value"])


SIZES = st.floats(-(2.0**1000), 2.0**1000, allow_nan=False) | st.floats(-1e-300, 1e-300) | st.sampled_from([0.1, -0.0])


@given(st.lists(SIZES, max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_exact_sums_of_parts_round_as_one_sum_does(numbers: list[float], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(numbers)]
    parts = [exact_sum(np.array(numbers[low:high])) for low, high in pairwise(bounds)]
    assert rounded(parts).hex() == (math.fsum(numbers) + 0.0).hex()
    assert sum(parts) == exact_sum(np.array(numbers[::-1]))


@given(st.lists(st.floats(-5e-320, 5e-320), max_size=30))
def test_exact_sums_of_subnormal_numbers_lose_nothing(numbers: list[float]) -> None:
    assert rounded([exact_sum(np.array(numbers))]) == math.fsum(numbers)


def test_exact_sums_of_many_equal_numbers() -> None:
    for value in (0.1, -0.1, -1.0, 2.0**-1074, 1e300, 1 / 3):
        assert rounded([exact_sum(np.full(100_000, value))]) == math.fsum([value] * 100_000)


def test_the_mean_of_an_evaluation_is_that_of_its_parts() -> None:
    column = np.array([0.1, math.nan, 0.7, 1 / 3] * 25)
    known = column[~np.isnan(column)]
    assert mean_of(column).hex() == (rounded(map(exact_sum, np.split(known, 5))) / len(known)).hex()


# Faults.


def test_rows_at_fault_are_shown(spark: SparkSession) -> None:
    wrong: list[tuple[Any, Any, Any, str]] = [
        (None, "a", 1.0, "None, 'a' and 1.0"),
        ("", "a", 1.0, "'', 'a' and 1.0"),
        ("blank", " \t\u3000", 1.0, "'blank', ' \\t\\u3000' and 1.0"),
        ("NUL", "a\0b", 1.0, "'NUL', 'a\\x00b' and 1.0"),
        ("no id", None, 1.0, "'no id', None and 1.0"),
        ("long", "é" * 40_000, 1.0, f"'long', '{'é' * 78}… and 1.0"),
        ("nan", "a", math.nan, "'nan', 'a' and nan"),
        ("infinite", "a", -math.inf, "'infinite', 'a' and -inf"),
        ("no score", "a", None, "'no score', 'a' and None"),
    ]
    rows: Rows = [("q", "a", 1.0), *(row[:3] for row in wrong), ("q", "b", 0.5)]
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.evaluate({"q": [["a"]], "nan": [["a"]]}, there(spark, rows), ["mrr"])
    expected = "results: expected a qid, a doc_id and a finite score, found "
    assert sorted(caught.value.faults) == sorted(expected + row[3] for row in wrong)


def test_all_rows_at_fault_are_counted_and_the_first_shown(spark: SparkSession) -> None:
    rows = [(f"bad{number}", "a", math.nan) for number in range(250)]
    with pytest.raises(groupgt.DataError, match="and 240 more like these") as caught:
        groupgt.evaluate({"q": [["a"]]}, there(spark, [("q", "a", 1.0), *rows]), ["mrr"], name="mine")
    assert caught.value.total == 250
    assert all(fault.startswith("mine: expected a qid") for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        ("qid string, docid string, score double", "expected the columns qid, doc_id .*found qid, docid, score"),
        ("qid string, doc_id string", "score or rank"),
        ("qid string, doc_id string, score string", "expected numbers in the 'score' column, found string"),
        ("qid string, doc_id string, rank boolean", "expected numbers in the 'rank' column, found boolean"),
        ("qid string, doc_id double, score double", "strings or integers in the 'doc_id' column, found double"),
        ("qid binary, doc_id string, score double", "strings or integers in the 'qid' column, found binary"),
        ("qid string, retrieved_ids string", "lists of ids in the 'retrieved_ids' column, found string"),
        ("qid string, retrieved_ids array<array<string>>", "strings or integers in the 'doc_id' column, found array"),
        ("qid string, retrieved_ids array<int>, retrieved_ids_lexical array<int>", "expected one column of results"),
    ],
    ids=["doc_id", "order", "score", "rank", "float ids", "bytes", "no list", "lists of lists", "two lists"],
)
def test_columns_of_another_kind_are_refused_at_once(spark: SparkSession, schema: str, match: str) -> None:
    with pytest.raises(groupgt.DataError, match=match):
        groupgt.evaluate({"q": [["a"]]}, there(spark, [], schema), ["mrr"])


def test_the_order_of_rows_decides_nothing(spark: SparkSession) -> None:
    truth = {"q": [["a"]]}
    rows = [("q", "a", 1.0), ("q", "b", 0.5), ("q", "c", 0.5)]
    assert groupgt.evaluate(truth, there(spark, rows), ["mrr"], policy={"ties": "input"})["mrr"] == 1.0
    with pytest.raises(groupgt.ConfigError, match=r"around a hit of 'q' .*choose ties=id, or give a rank column"):
        groupgt.evaluate(truth, there(spark, [*rows, ("q", "d", 1.0)]), ["mrr"], policy={"ties": "input"})


def test_repeats_are_an_error_where_that_is_asked(spark: SparkSession) -> None:
    truth = {f"q{number:02d}": [["a"]] for number in range(12)}
    rows = [(qid, doc, score) for qid in truth for doc, score in (("a", 1.0), ("b", 0.5), ("b", 0.2))]
    unjudged = [("unjudged", "a", 1.0), ("unjudged", "a", 2.0)]
    policy = {"duplicates": "error"}
    with pytest.raises(groupgt.DataError, match="query 'q00': duplicate result 'b'") as caught:
        groupgt.evaluate(truth, there(spark, rows + unjudged), ["mrr"], policy=policy)
    assert caught.value.total == 12
    once = [row for row in rows if row[2] != 0.2]
    expected = groupgt.evaluate(truth, in_memory(once + unjudged), ["mrr"], policy=policy)
    same(expected, groupgt.evaluate(truth, there(spark, once + unjudged), ["mrr"], policy=policy))


def test_queries_that_are_missing_or_too_many_are_an_error_where_that_is_asked(spark: SparkSession) -> None:
    frame = there(spark, [("q", "a", 1.0), ("z1", "a", 1.0), ("z0", "a", 1.0)])
    with pytest.raises(groupgt.DataError, match="query 'z0': has results but no ground truth") as caught:
        groupgt.evaluate({"q": [["a"]]}, frame, ["mrr"], policy={"extra": "error"})
    assert caught.value.total == 2
    with pytest.raises(groupgt.DataError, match="query 'r': has ground truth but no results"):
        groupgt.evaluate({"q": [["a"]], "r": [["a"]]}, frame, ["mrr"], policy={"missing": "error"})


VECTORS = {"documents": {"a": [1.0, 0.0]}, "alternatives": {"a": [1.0, 0.0]}}
AWAY = "write (them|the results) to parquet and (name|evaluate) the files"


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        (["recall"], {"labeller": "text", "corpus": {"a": "one"}}),
        (["recall"], {"labeller": {"use": "embedding", "with": VECTORS}}),
        (["recall@100chars"], {}),
        (["recall@100tokens"], {"lengths": {"tokens": {"a": 3}}}),
        (["recall@100chars"], {"corpus": {"a": "one"}}),
        (["recall@2calls"], {}),
        (["token_f1"], {"corpus": {"a": "one"}}),
    ],
    ids=["text", "embedding", "chars", "tokens", "corpus", "calls", "token_f1"],
)
def test_what_needs_every_result_is_refused_with_the_way_out(
    spark: SparkSession, metrics: list[str], options: dict[str, Any]
) -> None:
    with pytest.raises(groupgt.ConfigError, match=AWAY):
        groupgt.evaluate({"q": [["a"]]}, there(spark, [("q", "a", 1.0)]), metrics, **options)


@pytest.mark.parametrize(
    "schema",
    [
        "qid string, doc_id string, score double, call int",
        "qid string, retrieved_ids array<string>, retrieved_calls array<int>",
    ],
)
def test_results_with_calls_are_refused_with_the_way_out(spark: SparkSession, schema: str) -> None:
    frame = spark.createDataFrame([], schema)
    for metric in ("recall", "recall@2calls"):
        with pytest.raises(groupgt.ConfigError, match=rf"calls?.*{AWAY}"):
            groupgt.evaluate({"q": [["a"]]}, frame, [metric])
    with pytest.raises(groupgt.ConfigError, match=AWAY):
        per_query(frame, truth_there(spark, {"q": [["a"]]}), ["recall"])


def test_parents_that_nobody_carries_are_asked_for(spark: SparkSession) -> None:
    frame = there(spark, [("q", "a", 1.0)])
    with pytest.raises(groupgt.DataError, match="expected results with a parent column, found qid, doc, score"):
        groupgt.evaluate({"q": [["a"]]}, frame, ["recall"], labeller="parents")


# What comes here.


@pytest.mark.parametrize("broadcast", ["256MB", "1B"], ids=["counted", "sorted"])
def test_nothing_but_hits_and_queries_comes_here(
    spark: SparkSession, spy: Spy, brought: list[int], caplog: pytest.LogCaptureFixture, broadcast: str
) -> None:
    from pyspark.sql import functions as sql

    queries, size = 50, 50_000
    number = sql.col("id")
    frame = spark.range(0, size, 1, 4).select(
        sql.concat(sql.lit("q"), number % (2 * queries)).alias("qid"),
        sql.concat(sql.lit("d"), number).alias("doc_id"),
        ((number * 31) % 1009).cast("double").alias("score"),
    )
    # Three results of each query are hits; half of the queries have no ground truth.
    truth = {f"q{each}": [[f"d{each + 100 * far}"] for far in (1, 50, 499)] for each in range(queries)}
    engine = {"use": "spark", "with": {"broadcast": broadcast}}
    with caplog.at_level(logging.INFO, logger="groupgt.engines.spark.carrier"):
        found = groupgt.evaluate(truth, frame, ["recall"], engine=engine)
    assert found["recall"] == 1.0
    assert found.counts["extra"] == queries
    hits = len(found.labelled.hits.rank)
    assert hits == 3 * queries
    assert spy.sorted == ([hits] if broadcast == "1B" else [])
    assert sum(brought) <= 2 * hits + queries + 5
    (own,) = spy.plans
    assert own.collected == sum(brought)
    assert f"results: {own.collected:,} rows of hits and queries were collected" in caplog.messages


def test_a_query_is_explained_as_that_of_lists(spark: SparkSession, brought: list[int]) -> None:
    truth, rows = make(21, ties=True, repeats=True)
    policy = {"duplicates": "drop"}
    expected = groupgt.evaluate(truth, as_lists(rows), FEW, policy=policy)
    found = groupgt.evaluate(truth, there(spark, shuffled(rows)), FEW, policy=policy)
    brought.clear()
    assert found.explain("q1") == expected.explain("q1")
    assert found.explain_dict("q2") == expected.explain_dict("q2")
    # The rows of these two queries alone.
    assert sum(brought) == sum(qid in ("q1", "q2") for qid, _, _ in rows)
    assert "no results" in found.explain("q0")
    assert repr(found.run) == "Run(results: on a cluster)"


# What is not so yet.


@pytest.mark.parametrize("score", [None, -math.inf], ids=["null", "infinite"])
def test_a_repeat_is_not_dropped_before_its_score_is_looked_at(spark: SparkSession, score: float | None) -> None:
    rows = [("q", "a", score), ("q", "a", 1.0)]
    with pytest.raises(groupgt.DataError, match="finite score"):
        groupgt.evaluate({"q": [["a"]]}, there(spark, rows), ["mrr"], policy={"duplicates": "drop"})


def test_a_query_of_nested_lists_stands_in_one_row(spark: SparkSession) -> None:
    frame = there(spark, [("q", ["x", "b"]), ("q", ["a"])], "qid string, retrieved_ids array<string>")
    with pytest.raises(groupgt.DataError, match="'q'"):
        groupgt.evaluate({"q": [["a"], ["b"]]}, frame, ["mrr"])


def test_a_query_of_ground_truth_on_spark_stands_in_one_row(spark: SparkSession) -> None:
    truth = there(spark, [("q", [["a"], ["b"]]), ("q", [["a"]])], NESTED_TRUTH, partitions=2)
    rows = [("q", "x", 1.0), ("q", "a", 0.9), ("q", "b", 0.5)]
    values = per_query(there(spark, rows), truth, ["mrr"])
    with (
        configured(spark, **{"execution.arrow.maxRecordsPerBatch": "1"}),
        pytest.raises(Exception, match="duplicate"),
    ):
        values.toArrow()


def test_a_row_of_ground_truth_on_spark_names_its_group(spark: SparkSession) -> None:
    truth = there(spark, [("q", None, "a", 1.0), ("q", "1", "b", 1.0)], GROUPED_TRUTH)
    with pytest.raises(Exception, match=r"(?i)\bgroup\b"):
        per_query(there(spark, [("q", "a", 1.0)]), truth, ["recall"]).toArrow()


def test_grades_on_spark_are_numbers(spark: SparkSession) -> None:
    truth = there(spark, [], "qid string, group string, doc_id string, grade string")
    with pytest.raises(groupgt.DataError, match="expected numbers in the 'grade' column"):
        per_query(there(spark, []), truth, ["recall"])


def test_repeats_of_queries_without_ground_truth_are_no_error(spark: SparkSession) -> None:
    rows = [("q", "a", 1.0), ("unjudged", "a", 1.0), ("unjudged", "a", 0.5)]
    policy = {"duplicates": "error"}
    expected = groupgt.evaluate({"q": [["a"]]}, in_memory(rows), ["mrr"], policy=policy)
    truth = truth_there(spark, {"q": [["a"]]})
    same_per_query(expected, per_query(there(spark, rows), truth, ["mrr"], policy=policy))


@pytest.mark.parametrize("given", [{"q": ["a"]}, in_memory([("q", "a", 1.0)])], ids=["lists", "polars"])
def test_values_per_query_are_those_of_frames_of_spark(spark: SparkSession, given: Any) -> None:
    with pytest.raises(groupgt.GroupgtError, match="Spark"):
        per_query(given, truth_there(spark, {"q": [["a"]]}), ["mrr"])


def test_means_leave_out_what_is_not_a_number(spark: SparkSession) -> None:
    assert means(there(spark, [(0.5,), (math.nan,), (None,)], "value double")) == {"value": 0.5}


def test_spans_that_results_carry_are_refused_with_the_way_out(spark: SparkSession) -> None:
    truth = {"q": [[{"doc": "a", "start": 0, "end": 9}]]}
    with pytest.raises(groupgt.ConfigError, match=AWAY):
        groupgt.evaluate(truth, there(spark, [("q", "a", 1.0)]), ["recall"], labeller="spans")


def test_parents_of_a_pattern_that_matches_are_no_strangers(spark: SparkSession) -> None:
    labeller = {"use": "parents", "with": {"pattern": "(.*)#[0-9]+"}}
    assert groupgt.evaluate({"q": [["a#1"]]}, there(spark, [("q", "a#2", 1.0)]), ["mrr"], labeller=labeller)["mrr"] == 1
