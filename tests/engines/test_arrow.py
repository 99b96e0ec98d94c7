"""Batches of whole queries, however they are cut, have the bits of one evaluation."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.engines.arrow import per_query
from groupgt.metrics.language import Metric
from tests.engines.test_engines import METRICS, make

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the extra groupgt[frames]")

# Those over contents need texts, which batches do not carry.
OURS = [metric for metric in METRICS if not metric.definition.reads_texts]
TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}


def long(rows: list[tuple[str, str, float]]) -> Any:
    qids, docs, scores = map(list, zip(*rows))
    return pa.table({"qid": qids, "doc_id": docs, "score": scores})


def nested(rows: list[tuple[str, str, float]]) -> Any:
    lists: dict[str, list[str]] = {}
    for qid, doc, _ in rows:
        lists.setdefault(qid, []).append(doc)
    return pa.table({"qid": list(lists), "retrieved_ids": list(lists.values())})


def cut(table: Any, seed: int) -> list[Any]:
    """Batches of whole queries, which ones by chance; the rows of a batch keep their order."""
    rng = random.Random(seed)
    names = table["qid"].to_pylist()
    batch_of = {qid: rng.randrange(7) for qid in dict.fromkeys(names)}
    own = np.array([batch_of[qid] for qid in names])
    batches = [table.take(np.flatnonzero(own == number)) for number in range(7)]
    rng.shuffle(batches)
    return batches


def with_truth(table: Any, truth: dict[str, Any]) -> Any:
    groups = [truth.get(qid, []) for qid in table["qid"].to_pylist()]
    return table.append_column("retrieval_gt", pa.array(groups, pa.list_(pa.list_(pa.string()))))


def same(
    truth: Any, whole: Any, batches: list[Any], metrics: list[Metric], given: Any = None, **options: Any
) -> dict[str, Any]:
    """Compares each batch with one evaluation, and returns the rows of all, by query."""
    expected = groupgt.evaluate(truth, whole, metrics, **options)
    place = expected.truth.index
    found: dict[str, Any] = {}
    for batch in batches:
        values = per_query(batch, metrics, given, **options)
        assert values.column_names == ["qid", *expected.values]
        assert values.schema.types == [pa.string()] + [pa.float64()] * len(expected.values)
        qids = values["qid"].to_pylist()
        first = [str(qid) for qid in dict.fromkeys(batch["qid"].to_pylist())]
        assert qids == [qid for qid in first if qid in place]
        places = [place[qid] for qid in qids]
        for text, column in expected.values.items():
            own = values[text].combine_chunks()
            assert own.null_count == np.isnan(column[places]).sum(), text
            assert np.array_equal(own.to_numpy(zero_copy_only=False), column[places], equal_nan=True), text
        found |= {row["qid"]: row for row in values.to_pylist()}
    return found


@pytest.mark.parametrize(("ties", "repeats"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shape", [long, nested])
@pytest.mark.parametrize("tie_rule", ["id", "input"])
@pytest.mark.parametrize("duplicates", ["penalize", "drop"])
def test_batches_have_the_bits_of_one_evaluation(
    ties: bool, repeats: bool, shape: Any, tie_rule: str, duplicates: str
) -> None:
    truth, rows = make(11, ties=ties, repeats=repeats)
    table = shape(rows)
    policy = {"ties": tie_rule, "duplicates": duplicates}
    same(truth, table, cut(table, 1), OURS, truth, policy=policy)


@pytest.mark.parametrize("shape", [long, nested])
def test_ground_truth_may_be_given_in_three_forms(shape: Any) -> None:
    truth, rows = make(12, ties=True)
    table = shape(rows)
    for seed, given in enumerate((truth, groupgt.GroundTruth.of(truth))):
        found = same(truth, table, cut(table, seed), OURS, given)
        assert set(found) == {qid for qid, _, _ in rows} - {"unjudged"}
    beside = with_truth(table, truth)
    found = same({**truth, "unjudged": []}, table, cut(beside, 3), OURS)
    assert found["unjudged"]["recall.autorag"] is None


def test_shuffled_rows_of_scores_have_the_same_bits() -> None:
    truth, rows = make(13, ties=True)
    table = long(rows)
    order = random.Random(5).sample(range(len(rows)), len(rows))
    same(truth, table, cut(table.take(order), 2), OURS, truth)


@pytest.mark.parametrize("policy", ["autorag", "trec", {"missing": "skip"}])
def test_presets_are_those_of_evaluate(policy: Any) -> None:
    truth, rows = make(14)
    rows = [row for row in rows if row[0] != "q1"]
    metrics = [metric for metric in OURS if metric.convention == "autorag"]
    without = pa.table({"qid": ["q1"], "retrieved_ids": pa.array([[]], pa.list_(pa.string()))})
    table = pa.concat_tables([nested(rows), without])
    found = same(truth, table, cut(table, 4), metrics, truth, policy=policy)
    assert found["q1"]["recall.autorag"] is None
    same(truth, long(rows), cut(long(rows), 4), metrics, truth, policy=policy)


def test_weights_and_grades_count() -> None:
    groups = {
        "q1": [{"alternatives": [{"id": "a", "grade": 3}, {"id": "b", "grade": 1}], "weight": 2.5}],
        "q2": [
            {"alternatives": [{"id": "d", "grade": 0}], "weight": 1},
            {"alternatives": [{"id": "e"}], "weight": 0.5},
        ],
    }
    table = pa.table({"qid": ["q2", "q1"], "retrieved_ids": [["d", "e"], ["x", "b", "a"]]})
    for given in (groups, groupgt.GroundTruth.of(groups)):
        same(groups, table, cut(table, 0), OURS, given)


def test_order_of_batches_changes_no_mean_and_absent_queries_are_one_more_batch() -> None:
    truth, rows = make(15)
    table = long(rows)
    expected = groupgt.evaluate(truth, table, OURS).means
    judged = groupgt.GroundTruth.of(truth)
    for seed in range(3):
        batches = cut(table, seed)
        seen = {qid for batch in batches for qid in batch["qid"].to_pylist()}
        rest = [qid for qid in truth if qid not in seen]
        assert rest
        batches.append(pa.table({"qid": rest, "retrieved_ids": [[] for _ in rest]}))
        found = pa.concat_tables([per_query(batch, OURS, judged) for batch in batches])
        for text, mean in expected.items():
            column = found[text].drop_null().to_pylist()
            assert (math.fsum(column) / len(column) if column else math.nan) == pytest.approx(mean, abs=0, nan_ok=True)


def test_integers_are_their_decimal_text() -> None:
    rows = pa.table({"qid": [3, 1, 3], "doc_id": [8, 7, 9], "rank": [2, 1, 1]})
    lists = pa.table({"qid": [3, 1], "retrieved_ids": [[9, 8], [7]]})
    texts = {"1": [["7"]], "3": [["8"]], "x": [["y"]]}
    for batch in (rows, lists):
        for given in (texts, {1: [[7]], "3": [[8]]}, groupgt.GroundTruth.of(texts)):
            found = per_query(batch, "mrr", given).to_pydict()
            assert found == {"qid": ["3", "1"], "mrr": [0.5, 1.0]}
    beside = lists.append_column("retrieval_gt", pa.array([[[8]], [[7]]]))
    assert per_query(beside, "mrr").to_pydict() == {"qid": ["3", "1"], "mrr": [0.5, 1.0]}
    # What only looks like an integer is another id.
    odd = pa.table({"qid": ["03", " 3", "3_0", "9" * 5000], "retrieved_ids": [["8"]] * 4})
    assert per_query(odd, "mrr", {3: [[8]], 30: [[8]]}).num_rows == 0


def test_metrics_are_named_as_they_are_asked() -> None:
    batch = pa.table({"qid": ["q1"], "retrieved_ids": [["a", "x", "b", "y"]]})
    found = per_query(batch, ["recall", "mrr@2"], TRUTH, convention="coverage", k=[1, 3])
    assert found.to_pydict() == {"qid": ["q1"], "recall@1": [0.5], "recall@3": [0.5], "mrr@2": [1 / 1.5]}
    assert per_query(batch, "recall", TRUTH, k=1).column_names == ["qid", "recall@1"]


@pytest.mark.parametrize(
    "batch",
    [
        {},
        {"qid": [], "retrieved_ids": []},
        {"qid": [], "doc_id": [], "score": [], "retrieval_gt": []},
    ],
)
@pytest.mark.parametrize("truth", [None, TRUTH, groupgt.GroundTruth.of(TRUTH)])
def test_an_empty_batch_tells_the_schema(batch: dict[str, list[Any]], truth: Any) -> None:
    full = per_query(pa.table({"qid": ["q1"], "retrieved_ids": [["a"]]}), ["recall", "mrr"], TRUTH)
    found = per_query(pa.table(batch), ["recall", "mrr"], truth)
    assert found.num_rows == 0
    assert found.schema == full.schema


def test_a_batch_without_judged_queries_has_no_rows() -> None:
    for batch in (
        pa.table({"qid": ["other"], "retrieved_ids": [["a"]]}),
        pa.table({"qid": ["other"], "doc_id": ["a"], "score": [1.0]}),
    ):
        assert per_query(batch, "recall", TRUTH).to_pydict() == {"qid": [], "recall": []}


def test_other_columns_are_left_alone() -> None:
    strange = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    batch = pa.table({"qid": ["q2"], "doc_id": ["d"], "score": [1.0], "beside": strange})
    assert per_query(batch, "recall", TRUTH)["recall"].to_pylist() == [1.0]


def test_a_large_ground_truth_is_not_walked_for_a_small_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = groupgt.GroundTruth.of({f"q{number}": [[f"d{number}"]] for number in range(1000)})
    read: list[str] = []
    original = groupgt.GroundTruth.__getitem__
    monkeypatch.setattr(groupgt.GroundTruth, "__getitem__", lambda self, qid: read.append(qid) or original(self, qid))
    batch = pa.table({"qid": ["q7", "q900"], "retrieved_ids": [["d7"], ["x"]]})
    assert per_query(batch, "recall", whole)["recall"].to_pylist() == [1.0, 0.0]
    assert read == ["q7", "q900"]


def test_a_ground_truth_travels_to_workers() -> None:
    truth = pickle.loads(pickle.dumps(groupgt.GroundTruth.of(TRUTH)))
    batch = pa.table({"qid": ["q2"], "retrieved_ids": [["d"]]})
    assert per_query(batch, "recall", truth)["recall"].to_pylist() == [1.0]


GOOD = {"qid": ["q1"], "retrieved_ids": [["a"]]}
FAULTS = [
    ({"retrieved_ids": [["a"]]}, TRUTH, "expected a qid column; found retrieved_ids"),
    (
        {"qid": ["q1"], "document": ["a"], "score": [1.0]},
        TRUTH,
        "found qid, document, score; rename document to doc_id",
    ),
    ({"qid": ["q1"], "doc_id": ["a"], "score": [math.nan]}, TRUTH, "row 1: query 'q1': expected a finite number"),
    ({"qid": ["q1"], "doc_id": ["a"], "score": ["high"]}, TRUTH, "expected numbers in the 'score' column"),
    ({"qid": pa.array([None], pa.string()), "doc_id": ["a"], "score": [1.0]}, TRUTH, "expected a qid and a doc_id"),
    ({"qid": [1.5], "retrieved_ids": [["a"]]}, TRUTH, "expected strings or integers in the 'qid' column"),
    ({"qid": ["q1", "q1"], "retrieved_ids": [["a"], ["b"]]}, TRUTH, "query 'q1' has two rows"),
    ({"qid": ["q1"], "retrieved_ids": ["['a']"]}, TRUTH, "query 'q1': expected a list in retrieved_ids"),
    (GOOD, None, "expected ground truth, as the argument truth or the retrieval_gt column; found qid, retrieved_ids"),
    (GOOD, "qa.parquet", "expected a GroundTruth or {query id: groups}, found 'qa.parquet'"),
    (GOOD, {"q1": ["a", "b"]}, "query 'q1': expected groups"),
    (GOOD, {"q1": [["a"]], "q2": [[{"text": "b"}]]}, ""),
    (GOOD, {"q1": [[{"text": "a"}]]}, "query 'q1': the labeller id reads alternatives that are ids"),
    ({**GOOD, "retrieval_gt": [["a", "b"]]}, None, "query 'q1': expected groups"),
]


@pytest.mark.parametrize(("batch", "truth", "told"), FAULTS)
def test_what_is_wrong_is_named(batch: dict[str, Any], truth: Any, told: str) -> None:
    if not told:
        # Ground truth of queries that the batch does not have is not looked at.
        assert per_query(pa.table(batch), "recall", truth).num_rows == 1
        return
    with pytest.raises(groupgt.DataError, match=told):
        per_query(pa.table(batch), "recall", truth)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(groupgt.DataError, match="expected a table of Arrow, found dict"):
        per_query(GOOD, "recall", TRUTH)


@pytest.mark.parametrize(
    ("metrics", "policy", "told"),
    [
        (["recall@2000chars", "token_f1"], None, "omit recall@2000chars, token_f1"),
        (["recall"], {"missing": "error"}, "missing=zero or skip"),
        (["recall"], {"extra": "error"}, "extra=ignore"),
        (["recall.trec"], {"duplicates": "keep"}, "choose duplicates=penalize"),
        (["recall"], {"mising": "zero"}, "mising"),
    ],
)
@pytest.mark.parametrize("batch", [{}, GOOD])
def test_what_a_batch_cannot_know_is_refused(batch: Any, metrics: list[str], policy: Any, told: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=told):
        per_query(pa.table(batch), metrics, TRUTH, policy=policy)


def test_an_unknown_metric_is_refused_by_an_empty_batch_too() -> None:
    with pytest.raises(groupgt.MetricError, match="recal"):
        per_query(pa.table({}), "recal", TRUTH)


@pytest.mark.parametrize("is_nested", [False, True])
def test_results_with_calls_are_ordered_by_them(is_nested: bool) -> None:
    rows = {"qid": ["q1", "q1", "q1"], "doc_id": ["c", "a", "x"], "score": [9.0, 1.0, 2.0], "call": [2, 1, 1]}
    lists = {"qid": ["q1"], "retrieved_ids": [["x", "a", "c"]], "retrieved_calls": [[1, 1, 2]]}
    # x, a, c: mrr (1/2 + 1/3) / 2
    assert per_query(pa.table(lists if is_nested else rows), ["mrr"], TRUTH).to_pydict() == {
        "qid": ["q1"],
        "mrr": [(1 / 2 + 1 / 3) / 2],
    }
    with pytest.raises(groupgt.DataError, match="the result at rank 2 is of call 1"):
        per_query(pa.table({**lists, "retrieved_calls": [[2, 1, 3]]}), ["mrr"], TRUTH)
    with pytest.raises(groupgt.ConfigError, match="omit recall@2calls"):
        per_query(pa.table(lists), ["recall@2calls"], TRUTH)
