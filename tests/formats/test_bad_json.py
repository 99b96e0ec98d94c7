"""JSON Lines that are bad: runs, and ground truth with its groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input import LONG, METRICS, TREC, Cli, fails, names, put

BAD_JSON_RUNS: list[tuple[str, str, tuple[str, ...]]] = [
    ("no list", '{"qid": "q1", "retrieved_ids": {"d1": 1}}', ("query 'q1'", "list", "{'d1': 1}")),
    ("a list as numpy prints it", '{"qid": "q1", "retrieved_ids": "[\'a\' \'b\']"}', ("query 'q1'", "without commas")),
    ("float id", '{"qid": "q1", "retrieved_ids": [1.5]}', ("query 'q1'", "rank 1", "1.5")),
    ("bool id", '{"qid": "q1", "retrieved_ids": [true]}', ("query 'q1'", "rank 1", "True")),
    ("blank id", '{"qid": "q1", "retrieved_ids": ["d1", " "]}', ("query 'q1'", "rank 2", "blank")),
    ("NUL in an id", '{"qid": "q1", "retrieved_ids": ["d\\u0000"]}', ("query 'q1'", "NUL")),
    ("lone surrogate", '{"qid": "q1", "retrieved_ids": ["d\\ud800"]}', ("surrogate",)),
    ("lone surrogate, capitals", '{"qid": "q1", "retrieved_ids": ["d\\uDFFF"]}', ("surrogate",)),
    ("lone surrogate in the query", '{"qid": "q\\ud800", "retrieved_ids": ["d"]}', ("surrogate",)),
    ("long id", json.dumps({"qid": "q1", "retrieved_ids": [LONG.decode()]}), ("query 'q1'", "65,536")),
    ("too many scores", '{"qid": "q1", "retrieved_ids": ["a"], "retrieve_scores": [1, 2]}', ("query 'q1'", "found 2")),
    ("a NaN score", '{"qid": "q1", "retrieved_ids": ["a"], "retrieve_scores": [NaN]}', ("NaN",)),
    ("scores that are no list", '{"qid": "q1", "retrieved_ids": ["a"], "retrieve_scores": 5}', ("query 'q1'", "5")),
    ("text as score", '{"qid": "q1", "doc_id": "d1", "score": "1"}', ("query 'q1'", "number", "'1'")),
    ("NaN", '{"qid": "q1", "doc_id": "d1", "score": NaN}', ("NaN",)),
    ("score beyond doubles", '{"qid": "q1", "doc_id": "d1", "score": 1e400}', ("query 'q1'", "number", "inf")),
    ("integer beyond doubles", '{"qid": "q1", "doc_id": "d1", "score": 1%s}' % ("0" * 400), ("query 'q1'", "number")),
    ("integer of 5,000 digits", '{"qid": "q1", "doc_id": "d1", "score": %s}' % ("9" * 5_000), ("digits",)),
    ("no score", '{"qid": "q1", "doc_id": "d1"}', ("query 'q1'", "score", "rank", "neither")),
    ("float query", '{"qid": 1.5, "doc_id": "d1", "score": 1}', ("qid", "1.5")),
    ("NUL in the query", '{"qid": "q\\u0000", "doc_id": "d1", "score": 1}', ("NUL",)),
    ("one key twice", '{"qid": "q1", "qid": "q2", "retrieved_ids": ["a"]}', ("'qid'", "duplicate")),
    ("no JSON", '{"qid": "q1", "retrieved_ids": ["a"]', ("JSON",)),
    ("deep nesting", '{"qid": "q1", "retrieved_ids": %s}' % ("[" * 100_000 + "]" * 100_000), ("nesting",)),
    ("another query twice", '{"qid": "q0", "retrieved_ids": ["a"]}', ("query 'q0'", "duplicate")),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_JSON_RUNS, ids=names(BAD_JSON_RUNS))
def test_bad_json_run(case: Any, cli: Cli, truth: Path) -> None:
    _, line, words = case
    path = put(truth.parent / "run.jsonl", '{"qid": "q0", "retrieved_ids": ["d1"]}\n' + line + "\n")
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:2", *words)


@pytest.mark.parametrize(
    "lines",
    [
        '{"qid": "q1", "retrieved_ids": ["d1"]}\n{"qid": "q1", "doc_id": "d1", "score": 1}\n',
        '{"qid": "q1", "doc_id": "d1", "score": 5}\n{"qid": "q1", "doc_id": "x", "rank": 1}\n',
    ],
    ids=["nested and long", "score and rank"],
)
def test_two_kinds_of_lines(lines: str, cli: Cli, truth: Path) -> None:
    path = put(truth.parent / "run.jsonl", lines)
    fails(cli("evaluate", truth, path, *METRICS), path)


BAD_GROUPS: list[tuple[str, str, tuple[str, ...]]] = [
    ("no list", "5", ("query 'q1'", "list of groups", "5")),
    ("number", "1.5", ("query 'q1'", "list of groups", "1.5")),
    ("a list as numpy prints it", '"[\'a\' \'b\']"', ("without commas",)),
    ("flat", '["d1", "d2"]', ("query 'q1'", "flat", "flat_gt")),
    ("mixed", '["d1", ["d2"]]', ("query 'q1'", "mixed")),
    ("empty group", '[["d1"], []]', ("query 'q1'", "empty_groups")),
    ("blank id", '[["d1", " "]]', ("query 'q1'", "blank", "empty_groups")),
    ("null id", '[["d1", null]]', ("query 'q1'", "blank", "empty_groups")),
    ("float id", "[[1.0]]", ("query 'q1'", "1.0")),
    ("bool id", "[[true]]", ("query 'q1'", "True")),
    ("three levels", '[[["d1"]]]', ("query 'q1'", "['d1']")),
    ("NUL", '[["d\\u0000"]]', ("query 'q1'", "NUL")),
    ("lone surrogate", '[["d\\ud800"]]', ("surrogate",)),
    ("long id", f'[["{LONG.decode()}"]]', ("query 'q1'", "65,536")),
    ("grade beyond 2^31", '[[{"id": "d1", "grade": 2147483649}]]', ("query 'q1'", "2^31", "2147483649")),
    ("grade below -2^31", '[[{"id": "d1", "grade": -2147483649}]]', ("query 'q1'", "2^31", "-2147483649")),
    ("infinite grade", '[[{"id": "d1", "grade": 1e400}]]', ("query 'q1'", "2^31", "inf")),
    ("integer grade beyond doubles", '[[{"id": "d1", "grade": 1%s}]]' % ("0" * 400), ("query 'q1'", "2^31")),
    ("grade in words", '[[{"id": "d1", "grade": "2"}]]', ("query 'q1'", "'2'")),
    ("weight 0", '[{"alternatives": ["d1"], "weight": 0}]', ("query 'q1'", "weight", "0")),
    ("weight beyond doubles", '[{"alternatives": ["d1"], "weight": 1%s}]' % ("0" * 400), ("query 'q1'", "weight")),
    ("unknown key", '[{"alternatives": ["d1"], "wait": 2}]', ("query 'q1'", "wait")),
    ("alternatives and ids", '[{"alternatives": ["d1"], "ids": ["d2"]}]', ("query 'q1'", "ids")),
    ("NaN", "NaN", ("NaN",)),
    ("deep nesting", "[" * 100_000 + "]" * 100_000, ("nesting",)),
    ("deep, below Python's limit", "[" * 900 + "]" * 900, ("query 'q1'",)),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_GROUPS, ids=names(BAD_GROUPS))
def test_bad_groups(case: Any, cli: Cli, truth: Path) -> None:
    _, groups, words = case
    put(truth, '{"qid": "q0", "retrieval_gt": [["d1"]]}\n{"qid": "q1", "retrieval_gt": ' + groups + "}\n")
    run = put(truth.parent / "run.trec", TREC)
    fails(cli("evaluate", truth, run, *METRICS), f"{truth}:2", *words)


BAD_JSON_TRUTH: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("query twice", b'{"qid": "q0", "retrieval_gt": [["d1"]]}', ("query 'q0'", "duplicate")),
    ("key twice", b'{"qid": "q1", "qid": "q2", "retrieval_gt": [["d1"]]}', ("'qid'", "duplicate")),
    ("no ground truth", b'{"qid": "q1"}', ("retrieval_gt", "found qid")),
    ("no query", b'{"retrieval_gt": [["d1"]]}', ("qid", "found retrieval_gt")),
    ("float query", b'{"qid": 1.0, "retrieval_gt": [["d1"]]}', ("query id", "1.0")),
    ("blank query", b'{"qid": " ", "retrieval_gt": [["d1"]]}', ("query id", "' '")),
    ("an array", b'[{"qid": "q1"}]', ("JSON object",)),
    ("not UTF-8", b'{"qid": "q1", "retrieval_gt": [["d\xe9"]]}', ("UTF-8", "0xe9")),
    ("NUL", b'{"qid": "q1", "retrieval_gt": [["d\x00"]]}', ("NUL",)),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_JSON_TRUTH, ids=names(BAD_JSON_TRUTH))
def test_bad_json_truth(case: Any, cli: Cli, truth: Path) -> None:
    _, line, words = case
    put(truth, b'{"qid": "q0", "retrieval_gt": [["d1"]]}\n' + line + b"\n")
    fails(cli("evaluate", truth, put(truth.parent / "run.trec", TREC), *METRICS), f"{truth}:2", *words)
