"""Ground truth and results as other libraries keep them in memory: the same figures as of files, and faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from tests.snapshots import Snapshot

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"d": 1}}
RUN = {"q1": {"b": 0.9, "x": 0.5, "a": 0.3}, "q2": {"e": 0.8, "d": 0.7}}
METRICS = ["ndcg@10", "map", "mrr", "bpref"]
ROWS = [(qid, doc, grade) for qid, grades in QRELS.items() for doc, grade in grades.items()]
RESULTS = [(qid, doc, score) for qid, scores in RUN.items() for doc, score in scores.items()]


@pytest.fixture(scope="module")
def means() -> dict[str, float]:
    lists = {qid: [[{"id": doc, "grade": grade}] for doc, grade in grades.items()] for qid, grades in QRELS.items()}
    truth = groupgt.GroundTruth.of(lists, shape="flat")
    return groupgt.evaluate(truth, RUN, METRICS).means


def test_qrels_as_a_dict(means: dict[str, float]) -> None:
    result = groupgt.evaluate(QRELS, RUN, METRICS)
    assert result.means == means
    assert (result.convention, result.truth.shape) == ("trec", "flat")
    # As trec_eval: the grades 1, 0, 2 at ranks 1 to 3; ideal 2, 1. Of q2 the one document is at rank 2.
    first = (1 + 2 / np.log2(4)) / (2 + 1 / np.log2(3))
    assert result["ndcg@10"] == pytest.approx((first + 1 / np.log2(3)) / 2, abs=1e-15)
    assert groupgt.evaluate({"q": {1: 1}}, {"q": [1]}, ["mrr"])["mrr"] == 1


NAMES = [
    ("qid", "doc_id", "grade"),
    ("query_id", "doc_id", "relevance"),
    ("q_id", "doc_id", "rel"),
    ("qid", "docno", "label"),
    ("qid", "docid", "grade"),
]


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow"])
def test_frames_by_the_names_of_the_field(means: dict[str, float], kind: str, names: tuple[str, ...]) -> None:
    pd = (
        pytest.importorskip("pandas", reason="the extra groupgt[frames] is not installed") if kind == "pandas" else None
    )

    def frame(rows: list[Any], columns: tuple[str, ...]) -> Any:
        if pd is not None:
            return pd.DataFrame(rows, columns=list(columns))
        made = pl.DataFrame(rows, schema=list(columns), orient="row")
        return made.lazy() if kind == "lazy" else made.to_arrow() if kind == "arrow" else made

    if kind == "arrow":
        pytest.importorskip("pyarrow", reason="the extra groupgt[frames] is not installed")
    truth, run = frame(ROWS, names), frame(RESULTS, (*names[:2], "score"))
    assert groupgt.evaluate(truth, run, METRICS).means == means


def test_frames_of_pyterrier(means: dict[str, float]) -> None:
    """Topics beside results, ranks from 0, and other columns, as pipelines give them."""
    pd = pytest.importorskip("pandas", reason="the extra groupgt[frames] is not installed")
    qrels = pd.DataFrame(ROWS, columns=["qid", "docno", "label"]).assign(iteration="0")
    results = pd.DataFrame(RESULTS, columns=["qid", "docno", "score"])
    results = results.assign(docid=range(len(results)), rank=[0, 1, 2, 0, 1], query="who?")
    assert groupgt.evaluate(qrels, results, METRICS).means == means


def test_lists_of_ir_measures(means: dict[str, float], snapshot: Snapshot) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="the extra groupgt[peers] is not installed")
    qrels = [ir_measures.Qrel(*row) for row in ROWS]
    run = [ir_measures.ScoredDoc(*row) for row in RESULTS]
    assert groupgt.evaluate(qrels, run, METRICS).means == means
    assert groupgt.evaluate(iter(qrels), iter(run), METRICS).means == means
    with snapshot.raises(groupgt.DataError):
        groupgt.evaluate([*qrels, ir_measures.Qrel("q1", "a", 1)], run, METRICS)
    with snapshot.raises(groupgt.DataError):
        groupgt.evaluate([*qrels, 3], run, METRICS)


def test_qrels_and_runs_of_ranx(means: dict[str, float]) -> None:
    ranx = pytest.importorskip("ranx", reason="the extra groupgt[peers] is not installed")
    assert groupgt.evaluate(ranx.Qrels(QRELS), ranx.Run(RUN), METRICS).means == means


def test_a_data_set_of_ir_datasets(means: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    ir_datasets = pytest.importorskip("ir_datasets", reason="the extra groupgt[peers] is not installed")

    class Qrel:
        def __init__(self, query_id: str, doc_id: str, relevance: int) -> None:
            self.query_id, self.doc_id, self.relevance = query_id, doc_id, relevance

    class Small:
        def has_qrels(self) -> bool:
            return True

        def qrels_iter(self) -> Any:
            return (Qrel(*row) for row in ROWS)

    def load(name: str) -> Small:
        if name != "made/up":
            raise KeyError(name)
        return Small()

    monkeypatch.setattr(ir_datasets, "load", load)
    assert groupgt.evaluate("made/up", RUN, METRICS).means == means
    with pytest.raises(groupgt.DataError, match="made/down"):
        groupgt.evaluate("made/down", RUN, METRICS)


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ({"q": {"a": 1}, "r": [["a"]]}, "query 'r': expected {id: grade}, as for query 'q'"),
        ({"q": {"a": "high"}}, "query 'q': expected a number as the grade of 'a', found 'high'"),
        ({"q": {"a": float("nan")}}, "expected a number as the grade of 'a'"),
        ({"q": {"a": 2**40}}, "expected a number as the grade of 'a'"),
        ({"q": {1: 1, "1": 2}}, "document '1' is judged twice"),
        ({"q": {None: 1}}, "expected text or an integer as a document id, found None"),
        ({"": {"a": 1}}, "expected text or an integer as the query id"),
    ],
)
def test_one_wrongly_shaped_qrels_is_one_fault(truth: Any, words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        groupgt.evaluate(truth, RUN, METRICS)
    assert words in str(error.value)
    assert len(str(error.value).splitlines()) == 1


TRUTH = {"q1": [["a"], ["b"]]}


@pytest.mark.parametrize("run", [{"q1": ["a", "x"]}, {"q1": [("a", 0.9)]}, {"q1": {"a": 0.9}}, {"q1": [{"id": "a"}]}])
def test_swapped_arguments_are_named(run: Any, snapshot: Snapshot) -> None:
    with snapshot.raises(groupgt.DataError):
        groupgt.evaluate(run, TRUTH, ["mrr"])
    assert groupgt.evaluate(TRUTH, run, ["recall"])["recall"] == 0.5
