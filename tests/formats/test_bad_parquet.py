"""Parquet files that are bad: cells, rows, and damaged pages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input import LONG, METRICS, NAN, ROWS, TREC, Cli, fails, names, put, pyarrow, write


def with_cell(name: str, value: Any) -> dict[str, list[Any]]:
    return {**ROWS, name: [*ROWS[name][:2], value, *ROWS[name][3:]]}


BAD_ROWS: list[tuple[str, Any, tuple[str, ...]]] = [
    ("NaN", with_cell("score", NAN), ("row 3", "query 'q1'", "number", "nan")),
    ("infinite", with_cell("score", math.inf), ("row 3", "query 'q1'", "number", "inf")),
    ("no score", with_cell("score", None), ("row 3", "query 'q1'", "number")),
    ("no id", with_cell("doc_id", None), ("row 3", "query 'q1'", "null")),
    ("no query", with_cell("qid", None), ("row 3", "null")),
    ("blank id", with_cell("doc_id", " "), ("row 3", "query 'q1'", "blank")),
    ("empty id", with_cell("doc_id", ""), ("row 3", "query 'q1'", "blank")),
    ("blank query", with_cell("qid", " "), ("row 3", "blank")),
    ("NUL", with_cell("doc_id", "d\0"), ("row 3", "query 'q1'", "NUL")),
    ("NUL in the query", with_cell("qid", "q\0"), ("row 3", "NUL")),
    ("long id", with_cell("doc_id", LONG.decode()), ("row 3", "query 'q1'", "65,536")),
    ("long query", with_cell("qid", LONG.decode()), ("row 3", "65,536")),
    ("scores in words", {**ROWS, "score": ["1", "2", "3", "4", "5"]}, ("'score'", "numbers", "String")),
    ("float ids", {**ROWS, "doc_id": [1.0, 2.0, 3.0, 4.0, 5.0]}, ("'doc_id'", "strings or integers", "Float64")),
    ("bool ids", {**ROWS, "doc_id": [True] * 5}, ("'doc_id'", "strings or integers", "Boolean")),
    ("float queries", {**ROWS, "qid": [1.0] * 5}, ("'qid'", "strings or integers", "Float64")),
    ("no score at all", {"qid": ["q1"], "doc_id": ["d1"]}, ("score or rank", "found qid, doc_id")),
    ("nested: float id", {"qid": ["q2", "q1"], "retrieved_ids": [[1.0], [2.0]]}, ("query 'q2'", "query 'q1'")),
    ("nested: no id", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], [None]]}, ("query 'q1'", "rank 1")),
    ("nested: blank id", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b", " "]]}, ("query 'q1'", "blank")),
    ("nested: NUL", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b\0"]]}, ("query 'q1'", "NUL")),
    ("nested: long id", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], [LONG.decode()]]}, ("query 'q1'", "65,536")),
    ("nested: no list", {"qid": ["q2", "q1"], "retrieved_ids": [1, 2]}, ("query 'q2'", "list", "1")),
    ("nested: blank id, no truth", {"qid": ["q1", "q9"], "retrieved_ids": [["a"], [" "]]}, ("query 'q9'",)),
    ("nested: query twice", {"qid": ["q1", "q1"], "retrieved_ids": [["a"], ["b"]]}, ("query 'q1'", "several rows")),
    ("nested: blank query", {"qid": ["q0", " "], "retrieved_ids": [["a"], ["b"]]}, ("blank",)),
    (
        "nested: NaN score",
        {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b"]], "retrieve_scores": [[1.0], [NAN]]},
        ("query 'q1'", "finite"),
    ),
    (
        "nested: too many scores",
        {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b"]], "retrieve_scores": [[1.0], [1.0, 2.0]]},
        ("query 'q1'", "found 2"),
    ),
    ("node output, too long", {"retrieved_ids": [["a"], ["b"], ["c"]]}, ("expected 2 rows", "found 3")),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS, ids=names(BAD_ROWS))
def test_bad_parquet_run(case: Any, cli: Cli, truth: Path) -> None:
    _, columns, words = case
    path = write(truth.parent / "run.parquet", columns)
    fails(cli("evaluate", truth, path, *METRICS), path, *words)


GT = {"qid": ["q0", "q1"], "retrieval_gt": [[["d1"]], [["d2"]]]}
BAD_QA: list[tuple[str, Any, tuple[str, ...]]] = [
    ("flat", {**GT, "retrieval_gt": [["d1", "x"], ["d2", "x"]]}, ("row 1", "query 'q0'", "flat_gt", "2 errors")),
    ("number", {**GT, "retrieval_gt": [1.5, 2.5]}, ("row 1", "query 'q0'", "1.5", "2 errors")),
    ("float ids", {**GT, "retrieval_gt": [[[1.0]], [[2.0]]]}, ("row 1", "query 'q0'", "1.0", "2 errors")),
    ("empty group", {**GT, "retrieval_gt": [[["d1"]], [["d2"], []]]}, ("row 2", "query 'q1'", "empty_groups")),
    ("no id", {**GT, "retrieval_gt": [[["d1"]], [["d2", None]]]}, ("row 2", "query 'q1'", "empty_groups")),
    ("NUL", {**GT, "retrieval_gt": [[["d1"]], [["d\0"]]]}, ("row 2", "query 'q1'", "NUL")),
    ("long id", {**GT, "retrieval_gt": [[["d1"]], [[LONG.decode()]]]}, ("row 2", "query 'q1'", "65,536")),
    ("NUL in the query", {**GT, "qid": ["q0", "q\0"]}, ("row 2", "NUL")),
    ("long query", {**GT, "qid": ["q0", LONG.decode()]}, ("row 2", "65,536")),
    ("query twice", {**GT, "qid": ["q1", "q1"]}, ("row 2", "query 'q1'", "duplicate")),
    ("no query", {**GT, "qid": ["q0", None]}, ("row 2", "query id", "None")),
    ("float queries", {**GT, "qid": [0.0, 1.0]}, ("row 1", "a query id (a string or integer), found 0.0")),
    ("grade beyond 2^31", {"qid": ["q1"], "group": ["1"], "doc_id": ["a"], "grade": [1e10]}, ("row 1", "'q1'", "2^31")),
    ("NaN grade", {"qid": ["q1"], "group": ["1"], "doc_id": ["a"], "grade": [NAN]}, ("row 1", "query 'q1'", "nan")),
    ("grade in words", {"qid": ["q1"], "group": ["1"], "doc_id": ["a"], "grade": ["x"]}, ("grade", "number")),
    ("row without an id", {"qid": ["q1", "q1"], "group": ["1", "1"], "doc_id": ["a", None]}, ("row 2", "'q1'")),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_QA, ids=names(BAD_QA))
def test_bad_parquet_truth(case: Any, cli: Cli, tmp_path: Path) -> None:
    _, columns, words = case
    path = write(tmp_path / "qa.parquet", columns)
    fails(cli("evaluate", path, put(tmp_path / "run.trec", TREC), *METRICS), path, *words)


def test_parquet_without_rows_is_empty(cli: Cli, truth: Path) -> None:
    pa = pyarrow()
    schema = pa.schema([("qid", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
    path = write(truth.parent / "run.parquet", schema.empty_table())
    found = cli("evaluate", truth, path, "-m", "recall", "--format", "csv")
    assert found.status == 0
    assert found.out == "metric,mean,queries\nrecall,0.0,2\n"
    assert "empty" in found.err


@pytest.mark.parametrize("side", ["truth", "run"])
def test_truncated_parquet(side: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    whole = write(truth.parent / "whole.parquet", GT if side == "truth" else ROWS).read_bytes()
    for cut in (5, 8, 12, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 8, len(whole) - 1):
        path = put(truth.parent / "cut.parquet", whole[:cut])
        found = cli("evaluate", *((path, run) if side == "truth" else (truth, path)), *METRICS)
        fails(found, path, "damaged or cut off")
