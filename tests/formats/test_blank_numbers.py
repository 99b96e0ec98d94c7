"""A missing score or grade is refused with its place, and with what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows(name: str, value: Any, *, others: Any = 0.5) -> list[dict[str, Any]]:
    return [{"qid": "q", "doc_id": "b", name: others}, {"qid": "q", "doc_id": "a", name: value}]


# A name, and text or an object with a missing number; what the message begins with.
RUNS: dict[str, tuple[Any, str]] = {
    "run.trec": ("q Q0 b 1 0.5 t\nq Q0 a 2 null t\n", "run.trec:2: query 'q'"),
    "run.csv": ("qid,doc_id,score\nq,b,0.5\nq,a,\n", "run.csv:3: query 'q'"),
    "run.jsonl": (lines(*rows("score", None)), "run.jsonl:2: query 'q'"),
    "nested.jsonl": (
        lines({"qid": "q", "retrieved_ids": ["a"], "retrieve_scores": [None]}),
        "nested.jsonl:1: query 'q'",
    ),
    "run.json": (json.dumps({"q": {"b": 0.5, "a": None}}), "run.json: query 'q'"),
    "frame": (pl.DataFrame(rows("score", None)), "results: row 2: query 'q'"),
    "mapping": ({"q": {"b": 0.5, "a": None}}, "results of query 'q'"),
}
TRUTHS: dict[str, tuple[Any, str]] = {
    "qrels": ("q 0 b 1\nq 0 a nan\n", "qrels:2: query 'q'"),
    "truth.csv": ("qid,doc_id,grade\nq,b,1\nq,a,\n", "truth.csv:3: query 'q'"),
    "truth.jsonl": (lines(*rows("grade", None, others=1)), "truth.jsonl:2: query 'q'"),
    "groups.jsonl": (lines({"qid": "q", "retrieval_gt": [[{"id": "a", "grade": None}]]}), "groups.jsonl:1: query 'q'"),
    "frame": (pl.DataFrame(rows("grade", None, others=1)), "ground truth: row 2: query 'q'"),
    "mapping": ({"q": {"b": 1, "a": None}}, "query 'q'"),
}


def refused(folder: Path, name: str, given: Any, evaluate: Callable[[Any], Any]) -> str:
    if isinstance(given, str):
        (folder / name).write_text(given, encoding="utf-8")
        given = folder / name
    with pytest.raises(groupgt.DataError) as error:
        evaluate(given)
    return str(error.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("name", RUNS)
def test_a_missing_score(tmp_path: Path, name: str) -> None:
    given, place = RUNS[name]
    said = refused(tmp_path, name, given, lambda run: groupgt.evaluate({"q": [["a"]]}, run, ["mrr"]))
    assert said.startswith(place)
    assert said.endswith("; give every result a score, or leave out all scores (groupgt then uses ranks or order)")


@pytest.mark.parametrize("name", TRUTHS)
def test_a_missing_grade(tmp_path: Path, name: str) -> None:
    given, place = TRUTHS[name]
    said = refused(tmp_path, name, given, lambda truth: groupgt.evaluate(truth, {"q": ["a"]}, ["mrr"]))
    assert said.startswith(place)
    assert said.endswith("; leave out unjudged documents, or give them a grade")
