"""Public benchmarks as they lie: small made-up files in the shapes that each of them has."""

from __future__ import annotations

import contextlib
import copy
import gzip
import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.formats import detect, write
from groupgt.formats.detect import kind_of
from groupgt.formats.known import TRUTHS
from groupgt.formats.records import keys_of
from groupgt.formats.source import Source

FRESHSTACK = [
    {
        "query_id": "101",
        "query_title": "How do I stop it?",
        "query_text": "It runs and runs.",
        "nuggets": [
            {
                "_id": "101_0",
                "non_relevant_corpus_ids": ["lib/c.py_0_9"],
                "relevant_corpus_ids": ["lib/a.py_0_9", "lib/b.py_0_9"],
                "text": "Call stop().",
            },
            {"_id": "101_1", "non_relevant_corpus_ids": ["lib/a.py_0_9"], "relevant_corpus_ids": [], "text": "Wait."},
        ],
        "answer_id": "7",
        "answer_text": "Call stop() and wait.",
        "metadata": {"date": "2024-10-01", "tags": ["lib"]},
    },
    {
        "query_id": "10",
        "query_title": "",
        "query_text": "Why?",
        "nuggets": [
            {"_id": "10_0", "non_relevant_corpus_ids": ["x"], "relevant_corpus_ids": ["x", "y"], "text": "So."},
        ],
        "answer_id": "8",
        "answer_text": "So.",
        "metadata": {"date": "2024-10-02", "tags": []},
    },
]
FRESHSTACK_GROUPS = {
    "101": [
        {
            "alternatives": ["lib/a.py_0_9", "lib/b.py_0_9", {"id": "lib/c.py_0_9", "grade": 0}],
            "name": "Call stop().",
        },
        {"alternatives": [{"id": "lib/a.py_0_9", "grade": 0}], "name": "Wait."},
    ],
    # x is in both lists: FreshStack's own reader takes it as not relevant.
    "10": [{"alternatives": [{"id": "x", "grade": 0}, "y"], "name": "So."}],
}

ARTICLE = {"title": "t", "author": "a", "source": "s", "category": "c", "published_at": "2023-11-01T00:00:00+00:00"}
MULTIHOP = [
    {
        "query": "Did both firms grow?",
        "answer": "Yes",
        "question_type": "comparison_query",
        "evidence_list": [
            {**ARTICLE, "url": "https://news.example/1", "fact": "Acme grew by 4%."},
            {**ARTICLE, "url": "https://news.example/1", "fact": "Acme hired."},
            {**ARTICLE, "url": "https://news.example/2", "fact": "Bolt grew."},
        ],
    },
    {
        "query": "And the third?",
        "answer": "Insufficient information.",
        "question_type": "null_query",
        "evidence_list": [],
    },
]
MULTIHOP_SAVED = [
    {
        "query": row["query"],
        "answer": row["answer"],
        "question_type": row["question_type"],
        "retrieval_list": [
            {"text": "[Excerpt]\nBolt grew. It did.", "score": 0.9},
            {"text": "Acme hired.", "score": 0.8},
        ],
        "gold_list": row["evidence_list"],
    }
    for row in MULTIHOP
]

QAMPARI = [
    {
        "qid": "7__wikidata_simple__dev",
        "question_text": "What did Autos make?",
        "answer_list": [
            {
                "answer_text": "Red Car",
                "aid": "7__0",
                "aliases": ["Red Car", "The Red"],
                "answer_url": "https://wiki.example/Red_Car",
                "proof": [
                    {"proof_text": "The Red Car …", "pid": "7__0__0", "found_in_url": "https://wiki.example/Red_Car"},
                    {"proof_text": "Autos made …", "pid": "7__0__1", "found_in_url": "https://wiki.example/Autos"},
                ],
            },
            {
                "answer_text": "Blue Car",
                "aid": "7__1",
                "aliases": [],
                "answer_url": None,
                "proof": [{"proof_text": "…", "pid": "7__1__0", "found_in_url": "https://wiki.example/Autos"}],
            },
        ],
    }
]
AMBIGQA = [
    {
        "id": "-123",
        "question": "When was it founded?",
        "annotations": [
            {
                "type": "multipleQAs",
                "qaPairs": [
                    {"question": "When was the town founded?", "answer": ["1624", "in 1624"]},
                    {"question": "When was the city founded?", "answer": ["1664"]},
                ],
            },
            {"type": "singleAnswer", "answer": ["1700"]},
        ],
    },
    {"id": "45", "question": "Who?", "annotations": [{"type": "singleAnswer", "answer": ["Ann", "Ann Lee", "Ann"]}]},
]

NUGGETIZER = [
    {
        "text": "What is it?",
        "qid": "2024-1",
        "candidate_text": "It is a car, made in 1990.",
        "docid": "d1",
        "nuggets": [
            {"text": "It is a car", "importance": "vital", "assignment": "support"},
            {"text": "It is red", "importance": "okay", "assignment": "not_support"},
            {"text": "It is fast", "importance": "okay", "assignment": "failed"},
        ],
    },
    {
        "text": "What is it?",
        "qid": "2024-1",
        "candidate_text": "A reddish thing.",
        "docid": "d2",
        "nuggets": [
            {"text": "It is a car", "importance": "vital", "assignment": "partial_support"},
            {"text": "It is red", "importance": "okay", "assignment": "support"},
            {"text": "It is fast", "importance": "okay", "assignment": "not_support"},
        ],
    },
]
CREATED = [{"query": "What is it?", "qid": "2024-1", "nuggets": [{"text": "It is a car", "importance": "vital"}]}]
ANSWERS = [
    {
        "query": "What is it?",
        "qid": "2024-1",
        "answer_text": "A car.",
        "response_length": 2,
        "run_id": "r",
        "nuggets": [{"text": "It is a car", "importance": "vital", "assignment": "support"}],
    }
]

BANK: dict[str, Any] = {
    "query_id": "1053",
    "title_query": "Demand for avocado",
    "format_version": "v3",
    "nugget_bank": {
        "How much water?": {
            "question": "How much water?",
            "question_id": "x",
            "aggregator_type": "OR",
            "importance": "vital",
            "answers": {
                "2000 l": {"answer": "2000 l", "references": [{"doc_id": "d1"}, {"doc_id": "d2"}]},
                "a lot": {"answer": "a lot", "references": ["d2", "d3"]},
            },
            "references": [{"doc_id": "d4"}],
        },
        "Who exports?": {
            "question": "Who exports?",
            "aggregator_type": "AND",
            "answers": [
                {"answer": "Mexico", "references": [{"doc_id": "d5"}], "importance": "vital"},
                {"answer": "Peru", "references": [{"doc_id": "d6"}]},
            ],
        },
        "Why?": {
            "question": "Why?",
            "aggregator_type": "AND",
            "importance": 2,
            "sub_nuggets": [
                {"question": "Taste?", "references": [{"doc_id": "d7"}]},
                {"claim": "It is healthy.", "query_id": "1053", "references": [{"doc_id": "d8"}]},
            ],
            "references": [{"doc_id": "d9"}],
        },
    },
    "claim_bank": {"It grows.": {"claim": "It grows.", "query_id": "1053", "references": [{"doc_id": "d10"}]}},
}
BANKED = {
    "1053": [
        {"alternatives": ["d1", "d2", "d3", "d4"], "name": "How much water?", "importance": "vital"},
        {"alternatives": ["d5"], "name": "Who exports?: Mexico", "importance": "vital"},
        {"alternatives": ["d6"], "name": "Who exports?: Peru"},
        {"alternatives": ["d7", "d9"], "name": "Taste?", "importance": "2"},
        {"alternatives": ["d8", "d9"], "name": "It is healthy.", "importance": "2"},
        {"alternatives": ["d10"], "name": "It grows."},
    ]
}
OFFSETS = {"start_offset": 3, "end_offset": 9, "encoding": "utf-8"}
PLACED = {
    "query_id": "7",
    "nugget_bank": {"?": {"question": "?", "references": [{"doc_id": "d1", "offsets": OFFSETS}]}},
}
SUBMITTED = {
    "metadata": {"team_id": "t", "topic_id": "9", "run_id": "r"},
    "nugget_bank": [
        {"question": "Is it?", "aggregator_type": "AND", "answers": [{"answer": "yes", "references": ["d1"]}]}
    ],
}

CRUX = [
    {"id": "t1", "docid": "d1", "rating": [5, 0, 0]},
    {"id": "t1", "docid": "d2", "rating": [2, 3, 0]},
    {"id": "t2", "docid": "d1", "rating": [4]},
]

BRIGHT = [
    {
        "query": "Why do insects like light?",
        "reasoning": "…",
        "id": "0",
        "excluded_ids": ["N/A"],
        "gold_ids_long": ["a/long.txt"],
        "gold_ids": ["a/1.txt", "a/2.txt"],
        "gold_answer": "…",
    }
]
ASPECTS = [
    {"id": "bio-0-a1", "content": "phototaxis", "weight": 3, "supporting_docs": ["a/1.txt", "a/2.txt"]},
    {"id": "bio-0-aspect-2", "content": "moonlight", "weight": 1, "supporting_docs": ["a/3.txt"]},
    {"id": "bio-1-a1", "content": "heat", "weight": 2, "supporting_docs": ["a/3.txt"]},
]
ASPECT_GROUPS = {
    "bio-0": [
        {"alternatives": ["a/1.txt", "a/2.txt"], "weight": 3, "name": "phototaxis"},
        {"alternatives": ["a/3.txt"], "name": "moonlight"},
    ],
    "bio-1": [{"alternatives": ["a/3.txt"], "weight": 2, "name": "heat"}],
}


ASKED = ("Did both firms grow?", "And the third?")


def words(*texts: str) -> list[dict[str, str]]:
    return [{"text": text} for text in texts]


# The format, the records of a file, whether the format is detected, and the groups read.
MEMORY = {"question_type": "multi-session", "question": "Where?", "haystack_session_ids": ["s1", "s2"]}
SHAPES: list[tuple[str, list[dict[str, Any]], bool, dict[str, Any]]] = [
    ("freshstack", FRESHSTACK, True, FRESHSTACK_GROUPS),
    (
        "multihop-rag",
        MULTIHOP,
        True,
        dict(zip(ASKED, ([words("Acme grew by 4%."), words("Acme hired."), words("Bolt grew.")], []))),
    ),
    (
        "multihop-rag",
        MULTIHOP_SAVED,
        True,
        dict(zip(ASKED, ([words(f) for f in ("Acme grew by 4%.", "Acme hired.", "Bolt grew.")], []))),
    ),
    (
        "multihop-rag-documents",
        MULTIHOP,
        False,
        dict(zip(ASKED, ([["https://news.example/1"], ["https://news.example/2"]], []))),
    ),
    (
        "qampari",
        QAMPARI,
        True,
        {
            "7__wikidata_simple__dev": [
                {"alternatives": words("Red Car", "The Red"), "name": "Red Car"},
                {"alternatives": words("Blue Car"), "name": "Blue Car"},
            ]
        },
    ),
    (
        "qampari-documents",
        QAMPARI,
        False,
        {
            "7__wikidata_simple__dev": [
                {"alternatives": ["https://wiki.example/Red_Car", "https://wiki.example/Autos"], "name": "Red Car"},
                {"alternatives": ["https://wiki.example/Autos"], "name": "Blue Car"},
            ]
        },
    ),
    ("nuggetbank", [BANK], True, BANKED),
    ("nuggetbank", [SUBMITTED], True, {"9": [{"alternatives": ["d1"], "name": "Is it?: yes"}]}),
    (
        "nuggetbank-spans",
        [PLACED],
        False,
        {"7": [{"alternatives": [{"doc": "d1", "start": 3, "end": 9}], "name": "?"}]},
    ),
    ("bright", BRIGHT, True, {"0": [["a/1.txt"], ["a/2.txt"]]}),
    ("bright-long", BRIGHT, False, {"0": [["a/long.txt"]]}),
    ("bright-pro", ASPECTS, True, ASPECT_GROUPS),
    (
        "longmemeval",
        [
            MEMORY | {"question_id": "e1", "answer_session_ids": ["s2", "s1"]},
            MEMORY | {"question_id": "e2_abs", "answer_session_ids": ["s1"]},
        ],
        True,
        {"e1": [["s2"], ["s1"]], "e2_abs": []},
    ),
    (
        "locomo",
        [
            {
                "qa": [
                    {"question": "When?", "answer": 2022, "evidence": ["D1:3; D2:4", "D1:3"], "category": 2},
                    {"question": "Why?", "adversarial_answer": "so", "evidence": ["D1:5"], "category": 5},
                ],
                "conversation": {"session_1": [{"dia_id": "D1:3", "text": "In 2022."}]},
                "sample_id": "c1",
            }
        ],
        True,
        {"c1:0": [["c1:D1:3"], ["c1:D2:4"]], "c1:1": []},
    ),
    (
        "fanoutqa",
        [
            {
                "id": "f1",
                "question": "Which?",
                "decomposition": [
                    {"question": "a", "decomposition": [], "evidence": {"pageid": 7, "title": "A"}},
                    {
                        "question": "b",
                        "decomposition": [{"question": "c", "decomposition": [], "evidence": {"pageid": 9}}],
                        "evidence": None,
                    },
                ],
            }
        ],
        True,
        {"f1": [["7"], ["9"]]},
    ),
    (
        "double-bench",
        [{"uid": "0", "question": "?", "reference_page": [13, 2], "doc_path": "docs/ar/0", "language": "ar"}],
        True,
        {"0": [["docs/ar/0/13"], ["docs/ar/0/2"]]},
    ),
    (
        "crux",
        CRUX,
        True,
        {
            "t1": [
                [{"id": "d1", "grade": 5}, {"id": "d2", "grade": 2}],
                [{"id": "d1", "grade": 0}, {"id": "d2", "grade": 3}],
                [{"id": "d1", "grade": 0}, {"id": "d2", "grade": 0}],
            ],
            "t2": [[{"id": "d1", "grade": 4}]],
        },
    ),
    (
        "crux",
        [{"example_id": row["id"], "pid": row["docid"], "rating": row["rating"]} for row in CRUX[2:]],
        True,
        {"t2": [[{"id": "d1", "grade": 4}]]},
    ),
    (
        "nuggetizer",
        NUGGETIZER,
        True,
        {
            "2024-1": [
                {"alternatives": [{"id": "d1", "grade": 2}, "d2"], "name": "It is a car", "importance": "vital"},
                {
                    "alternatives": [{"id": "d1", "grade": 0}, {"id": "d2", "grade": 2}],
                    "name": "It is red",
                    "importance": "okay",
                },
                {"alternatives": [{"id": "d2", "grade": 0}], "name": "It is fast", "importance": "okay"},
            ]
        },
    ),
    (
        "nuggetizer",
        CREATED,
        True,
        {"2024-1": [{"alternatives": words("It is a car"), "name": "It is a car", "importance": "vital"}]},
    ),
]
NAMES = [f"{name}-{number}" for number, (name, *_) in enumerate(SHAPES)]


def put(path: Path, records: list[dict[str, Any]], how: str = "array") -> Path:
    """Writes records as they are published: an array, indented or not, a line each, compressed, a parquet file."""
    if how == "parquet":
        if "nugget_bank" in records[0]:
            pytest.skip("nugget banks are not published as parquet files: their keys are texts of nuggets")
        pl.DataFrame(records, infer_schema_length=None).write_parquet(path)
        return path
    if how == "lines":
        data = "".join(json.dumps(record) + "\n" for record in records)
    else:
        data = json.dumps(records, indent=4 if how == "indented" else None)
    path.write_bytes(gzip.compress(data.encode()) if how == "packed" else data.encode())
    return path


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    return told.err


@pytest.mark.parametrize("how", ["array", "indented", "lines", "packed", "parquet"])
@pytest.mark.parametrize(("name", "records", "detected", "groups"), SHAPES, ids=NAMES)
def test_every_shape_is_read(
    tmp_path: Path, name: str, records: list[dict[str, Any]], detected: bool, groups: dict[str, Any], how: str
) -> None:
    path = put(tmp_path / "file", records, how)
    assert dict(groupgt.read_ground_truth(path, name).items()) == groups
    if detected:
        assert dict(groupgt.read_ground_truth(path).items()) == groups
        assert detect._recognized(Source.at(path))[0].name == name  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "records", "detected", "groups"), SHAPES, ids=NAMES)
def test_what_is_read_converts_to_jsonl_and_back(
    tmp_path: Path, name: str, records: list[dict[str, Any]], detected: bool, groups: dict[str, Any]
) -> None:
    path, out = put(tmp_path / "file.json", records), tmp_path / "out.jsonl"
    main(
        [
            "convert",
            str(path),
            str(out),
            "--to",
            "jsonl",
            "--from",
            name,
            *(["--kind", "truth"] * (name == "multihop-rag")),
        ]
    )
    assert dict(groupgt.read_ground_truth(out).items()) == groups


def test_texts_of_questions(tmp_path: Path) -> None:
    first = groupgt.read_ground_truth(put(tmp_path / "f", FRESHSTACK))
    assert first.texts == ["How do I stop it? It runs and runs.", "Why?"]
    second = groupgt.read_ground_truth(put(tmp_path / "m", MULTIHOP))
    assert second.texts == [row["query"] for row in MULTIHOP]
    assert second.columns["question_type"] == ["comparison_query", "null_query"]
    assert groupgt.read_ground_truth(put(tmp_path / "n", NUGGETIZER)).texts == ["What is it?"]
    assert groupgt.read_ground_truth(put(tmp_path / "q", QAMPARI)).texts == ["What did Autos make?"]


def test_of_several_annotations_the_first_is_read_and_said(tmp_path: Path) -> None:
    path = put(tmp_path / "dev.json", AMBIGQA)
    with pytest.warns(groupgt.GroupgtWarning, match="1 question with several annotations"):
        truth = groupgt.read_ground_truth(path)
    assert dict(truth.items()) == {
        "-123": [
            {"alternatives": words("1624", "in 1624"), "name": "When was the town founded?"},
            {"alternatives": words("1664"), "name": "When was the city founded?"},
        ],
        "45": [words("Ann", "Ann Lee")],
    }
    assert truth.columns == {"annotations": [2, 1]}
    assert truth.texts == ["When was it founded?", "Who?"]


def test_saved_results_of_multihop_rag_are_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = put(tmp_path / "bge_retrieval_test.json", MULTIHOP_SAVED)
    truth = put(tmp_path / "MultiHopRAG.json", MULTIHOP)
    for first in (truth, saved):
        result = groupgt.evaluate(first, saved, ["mrr.autorag@10", "hit_rate@4", "recall@10"], labeller="text")
        # Of three facts the third stands in the first text, the second in the second.
        assert result.means == pytest.approx(
            {"mrr.autorag@10": (0 + 1 / 2 + 1) / 3, "hit_rate@4": 1, "recall@10": 2 / 3}
        )
        assert result.counts["undefined"] == 1
    main(["evaluate", str(truth), str(saved), "--labeller", "text", "-m", "mrr@10", "--convention", "autorag"])
    assert "0.5000" in capsys.readouterr().out


@pytest.mark.parametrize(
    "record",
    [
        {
            "question_id": "q",
            "retrieval_results": {"query": "?", "ranked_items": [{"corpus_id": "b"}, {"corpus_id": "a"}]},
        },
        {
            "task_id": "q",
            "contexts": [{"document_id": "b", "text": "t"}, {"document_id": "a", "text": "u"}],
            "input": [],
        },
        {"task_id": "q", "contexts": [{"document_id": "b", "score": 2.5}, {"document_id": "a", "score": 1}]},
        {"metadata": {"model": "m"}, "query_id": "q", "retrieved_docids": ["b", "a"], "result": []},
    ],
    ids=["longmemeval", "mtrag", "mtrag with scores", "browsecomp-plus"],
)
def test_published_logs_are_runs(tmp_path: Path, record: dict[str, Any]) -> None:
    path = put(tmp_path / "log.jsonl", [record], "lines")
    assert kind_of(path) == "run"
    assert groupgt.read_run(path).rankings == {"q": ["b", "a"]}


def test_a_log_of_longmemeval_has_its_sessions(tmp_path: Path) -> None:
    results = {"retrieval_results": {"ranked_items": [{"corpus_id": "s2", "text": "Here."}]}}
    path = put(tmp_path / "log.jsonl", [MEMORY | {"question_id": "e", "answer_session_ids": ["s2"]} | results], "lines")
    assert groupgt.evaluate(path, path, ["recall"]).means == {"recall": 1}


def test_texts_of_deepeval_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("input,actual_output,context,retrieval_context\nWho?,x,it was Ada|and Grace,it was Ada|nobody\n")
    assert groupgt.evaluate(path, path, ["recall"], labeller="text").means == {"recall": 0.5}


def test_ratings_of_crux_are_the_best_of_passages(tmp_path: Path) -> None:
    """The first and the second sub-question of t1 have an answer (a rating of 3 at least), the third has none."""
    path = put(tmp_path / "ratings.jsonl", CRUX, "lines")
    run = {"t1": ["d2", "d1"], "t2": ["d1"]}
    policy = {"level": 3, "empty_groups": "unmeetable"}
    result = groupgt.evaluate(path, run, ["recall.coverage@1", "recall.coverage@10"], policy=policy)
    assert [column.tolist() for column in result.values.values()] == [[1 / 3, 1.0], [2 / 3, 1.0]]
    answered = groupgt.evaluate(path, run, ["recall.coverage@10"], policy={"level": 3})
    assert answered["recall.coverage@10"] == 1


def test_ratings_of_crux_may_lie_in_a_folder(tmp_path: Path) -> None:
    """As LANCER's evaluation gets those of DUC: what is no ratings is passed over, a query may lie in two files."""
    folder = tmp_path / "judge"
    folder.mkdir()
    put(folder / "ratings.1.jsonl", CRUX[:1], "lines")
    put(folder / "ratings.2.jsonl", CRUX[1:], "lines")
    (folder / "README.md").write_text("ratings")
    whole = groupgt.read_ground_truth(put(tmp_path / "ratings.jsonl", CRUX, "lines"))
    for read in (groupgt.read_ground_truth(folder), groupgt.read_ground_truth(folder, format="crux")):
        assert dict(read.items()) == dict(whole.items())
    put(folder / "ratings.3.jsonl", CRUX[:1], "lines")
    with pytest.raises(groupgt.DataError, match=r"ratings\.3\.jsonl:1: query 't1': 'd1' is rated twice"):
        groupgt.read_ground_truth(folder)


def test_ratings_that_name_no_documents_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LANCER saves a row for each result of the run that it reranked: 4 and 0 are ratings, not ids."""
    path, run = tmp_path / "ratings.oracle.bm25.json", tmp_path / "r.trec"
    path.write_text(json.dumps({"303": [[4, 4, 0], [2, 5, 2], [0, 0, -1]], "304": [[0, 0], [5, 4]]}, indent=4))
    run.write_text("303 Q0 d1 1 1 t\n")
    told = fails(capsys, "evaluate", path, run, "-m", "recall")
    assert "found rows of ratings, as LANCER saves them" in told
    assert "(format crux)" in told


@pytest.mark.parametrize(
    "groups",
    [
        {"q": [[1, 7], [3, 9]]},  # ids are numbers, and none stands twice
        {"q": [[1, 1], [2]]},  # rows of different lengths
        {"q": [[11, 11]]},  # one row
        {"q": [[11, 11], [12, 12]]},  # beyond the scale
        {"q": [["1", "1"], ["2", "2"]]},  # not numbers
        {"q": [[1, 1], [2, 3]], "r": [[4, 5], [1, 7]]},  # a slip, not the rule
    ],
)
def test_groups_of_numbered_documents_are_not_taken_for_ratings(tmp_path: Path, groups: dict[str, Any]) -> None:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(groups))
    assert list(groupgt.read_ground_truth(path)) == list(groups)


def test_assignments_of_answers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, run = put(tmp_path / "a.jsonl", ANSWERS, "lines"), tmp_path / "r.trec"
    run.write_text("2024-1 Q0 d1 1 1 t\n")
    assert "judge answers, not documents" in fails(capsys, "evaluate", path, run, "-m", "recall")


def test_a_bank_of_one_object_and_a_folder_of_banks(tmp_path: Path) -> None:
    path = tmp_path / "bank.json"
    path.write_text(json.dumps(BANK, indent=2))
    assert dict(groupgt.read_ground_truth(path).items()) == BANKED
    folder = tmp_path / "banks"
    folder.mkdir()
    (folder / "1053.json").write_text(json.dumps(BANK))
    (folder / "9.json.gz").write_bytes(gzip.compress(json.dumps(SUBMITTED).encode()))
    (folder / "README.md").write_text("banks")
    truth = groupgt.read_ground_truth(folder)
    assert dict(truth.items()) == {**BANKED, "9": [{"alternatives": ["d1"], "name": "Is it?: yes"}]}
    assert truth.texts == ["Demand for avocado", None]


def test_a_bank_without_query_id_is_called_by_its_title(tmp_path: Path) -> None:
    bank = {key: value for key, value in BANK.items() if key != "query_id"}
    assert list(groupgt.read_ground_truth(put(tmp_path / "b", [bank]))) == [
        hashlib.md5(b"Demand for avocado").hexdigest()
    ]


@pytest.mark.parametrize("named", [True, False])
def test_banks_are_written_as_they_are_read(tmp_path: Path, named: bool) -> None:
    groups: list[Any] = [["a", "b"], ["c"]]
    if named:
        groups = [
            {"alternatives": ["a", "b"], "name": "What?", "importance": "okay"},
            {"alternatives": ["c"], "name": "2x"},
        ]
    truth, out = tmp_path / "t.jsonl", tmp_path / "bank.jsonl"
    truth.write_text(json.dumps({"qid": "1", "query": "?", "retrieval_gt": groups}) + "\n")
    main(["convert", str(truth), str(out), "--to", "nuggetbank", "--shape", "subtopics"])
    back = groupgt.read_ground_truth(out)
    assert dict(back.items()) == {"1": groups}
    assert back.texts == ["?"]


def test_equal_names_become_numbers_in_a_bank(tmp_path: Path) -> None:
    truth = groupgt.GroundTruth.of(
        {"1": [{"alternatives": ["a"], "name": "x"}, {"alternatives": ["b"], "name": "x"}]}, shape="subtopics"
    )
    write.write_ground_truth(tmp_path / "bank.jsonl", truth, "nuggetbank")
    assert dict(groupgt.read_ground_truth(tmp_path / "bank.jsonl").items()) == {"1": [["a"], ["b"]]}


def question(**others: Any) -> dict[str, Any]:
    return {
        "query_id": "1",
        "nugget_bank": {"Q": {"question": "Q", **others}, "R": {"question": "R", "references": ["d"]}},
    }


def part(*references: list[str]) -> dict[str, Any]:
    """A sub-nugget of which every answer is needed."""
    answers = [{"answer": str(number), "references": names} for number, names in enumerate(references)]
    return {"question": "S", "aggregator_type": "AND", "answers": answers}


MANY = part([f"a{number}" for number in range(11)], [f"b{number}" for number in range(10)])
BAD_BANKS = [
    (
        question(aggregator_type="NOT", answers=[{"answer": "x"}]),
        "the nugget 'Q': it requires that something not be retrieved",
    ),
    (question(aggregator_type="XOR", answers=[{"answer": "x"}]), "expected AND, OR, SUM or NOT as its aggregator_type"),
    (
        question(sub_nuggets=[MANY]),
        "the nugget 'Q': any of its parts is enough, but one part can be covered in 110 ways",
    ),
    (question(sub_nuggets=[part([], [])]), "1 of its 2 groups is empty"),
    (question(references=[{"doc": "d"}]), "expected a reference with a doc_id, found {'doc': 'd'}"),
    (question(), "1 of its 2 groups is empty"),
    ({"query_id": "1", "format_version": "v9", "nugget_bank": {}}, "expected the format_version v3, found 'v9'"),
    ({"query_id": "1", "claim_bank": [{"text": "x"}]}, "expected a string as the question or claim"),
    ({"query_id": "1", "nugget_bank": {"Q": {"question": "Q"}}}, "no nugget references a document"),
]


@pytest.mark.parametrize(("bank", "words"), BAD_BANKS, ids=[words for _, words in BAD_BANKS])
def test_banks_that_are_refused(tmp_path: Path, bank: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_ground_truth(put(tmp_path / "b.jsonl", [bank], "lines"), "nuggetbank")
    assert words in str(error.value)


def test_a_part_of_an_or_may_need_several_documents(tmp_path: Path) -> None:
    """(a or b) and c, or d; and the same within a further OR beside an AND."""
    inner = {"question": "T", "sub_nuggets": [part(["e"], ["e", "f"])]}
    banks = [
        question(sub_nuggets=[part(["a", "b"], ["c"]), {"question": "U", "references": ["d"]}]),
        question(
            query_id="1", sub_nuggets=[{"question": "V", "aggregator_type": "AND", "sub_nuggets": [inner, inner]}]
        ),
    ]
    banks[1]["query_id"] = "2"
    truth = groupgt.read_ground_truth(put(tmp_path / "b.jsonl", banks, "lines"))
    assert truth["1"][0]["alternatives"] == [{"all": ["a", "c"]}, {"all": ["b", "c"]}, "d"]
    assert truth["2"][0]["alternatives"] == ["e", {"all": ["e", "f"]}]
    result = groupgt.evaluate(truth, {"1": ["c", "x", "a"], "2": ["e"]}, ["recall", "mrr.autorag"])
    assert [column.tolist() for column in result.values.values()] == [[0.5, 0.5], [1 / 6, 0.5]]


def test_nuggets_without_documents_are_written_too(tmp_path: Path) -> None:
    policy = groupgt.Policy(empty_groups="unmeetable")
    truth = groupgt.GroundTruth.of({"1": [["a"], {"alternatives": [], "name": "Why?"}]}, policy, shape="subtopics")
    write.write_ground_truth(tmp_path / "bank.jsonl", truth, "nuggetbank")
    assert dict(groupgt.read_ground_truth(tmp_path / "bank.jsonl", policy=policy).items()) == dict(truth.items())
    with pytest.raises(groupgt.DataError, match="empty_groups=unmeetable"):
        groupgt.read_ground_truth(tmp_path / "bank.jsonl")


def test_places_need_offsets(tmp_path: Path) -> None:
    with pytest.raises(groupgt.DataError, match="has no offsets; read documents instead"):
        groupgt.read_ground_truth(put(tmp_path / "b", [BANK]), "nuggetbank-spans")


def test_sums_count_each_answer(tmp_path: Path) -> None:
    answers = [{"answer": "1", "references": ["a"]}, {"answer": "2", "references": ["b"]}]
    bank = question(aggregator_type="SUM", answers=answers)
    truth = groupgt.read_ground_truth(put(tmp_path / "b", [bank]))
    assert [group["name"] for group in truth["1"]] == ["Q: 1", "Q: 2", "R"]


def test_questions_of_bright_pro_stand_beside_its_aspects(tmp_path: Path) -> None:
    for name in ("aspects", "examples"):
        (tmp_path / name).mkdir()
    aspects = put(tmp_path / "aspects" / "biology.json", ASPECTS)
    assert groupgt.read_ground_truth(aspects).texts is None
    rows = [{**BRIGHT[0], "id": "bio-1", "excluded_ids": ["a/9.txt"]}]
    put(tmp_path / "examples" / "biology.json", rows)
    truth = groupgt.read_ground_truth(aspects)
    assert dict(truth.items()) == ASPECT_GROUPS
    assert truth.texts == [None, "Why do insects like light?"]
    assert truth.excluded == [frozenset(), {"a/9.txt"}]


def test_an_aspect_without_its_question(tmp_path: Path) -> None:
    with pytest.raises(groupgt.DataError, match=r"an aspect id \(the id of its question, then -a1 or -aspect-1\)"):
        groupgt.read_ground_truth(put(tmp_path / "a", [{**ASPECTS[0], "id": "bio"}]))


RAGELO = "q1 who d1 1\nq1 who d2 1\nq1 when __ragelo_unaddressed__when 1\nq2 why d3 1\n"


def test_placeholders_of_ragelo_are_no_documents(tmp_path: Path) -> None:
    path = tmp_path / "subtopics.qrels"
    path.write_text(RAGELO)
    with pytest.raises(groupgt.DataError, match="query 'q1': 1 of its 2 groups is empty"):
        groupgt.read_ground_truth(path, "ragelo")
    truth = groupgt.read_ground_truth(path, "ragelo", {"empty_groups": "unmeetable"})
    assert dict(truth.items()) == {
        "q1": [{"alternatives": ["d1", "d2"], "name": "who"}, {"alternatives": [], "name": "when"}],
        "q2": [{"alternatives": ["d3"], "name": "why"}],
    }
    run, policy = {"q1": ["d1"], "q2": ["d3"]}, {"empty_groups": "unmeetable"}
    assert groupgt.evaluate(truth, run, ["recall.coverage"], policy=policy)["recall.coverage"] == 0.75


BAD: list[tuple[str, Any, str]] = [
    ("freshstack", {**FRESHSTACK[0], "nuggets": "none"}, "expected a list as nuggets, found 'none'"),
    ("freshstack", {**FRESHSTACK[0], "nuggets": ["none"]}, "expected objects in nuggets, found 'none'"),
    ("freshstack", {**FRESHSTACK[0], "nuggets": [{"relevant_corpus_ids": [1.5]}]}, "in relevant_corpus_ids, found 1.5"),
    ("freshstack", {**FRESHSTACK[0], "query_id": None}, "expected a query id"),
    (
        "freshstack",
        {
            **FRESHSTACK[0],
            "nuggets": [{"relevant_corpus_ids": [], "non_relevant_corpus_ids": []}, FRESHSTACK[0]["nuggets"][0]],
        },
        "empty_groups=drop",
    ),
    ("multihop-rag", {"query": "?", "evidence_list": [{"fact": 5}]}, "expected a string as the fact, found 5"),
    ("multihop-rag", {"query": "?", "evidence": []}, "expected the key evidence_list, found query, evidence"),
    ("qampari", {**QAMPARI[0], "answer_list": [{"answer_text": "a", "aliases": [1]}]}, "expected strings in aliases"),
    (
        "ambigqa",
        {"id": "1", "question": "?", "annotations": [{"type": "none"}]},
        "expected singleAnswer or multipleQAs",
    ),
    ("nuggetizer", {**NUGGETIZER[0], "docid": None}, "expected ids (strings or integers) as qid and docid"),
    ("nuggetizer", NUGGETIZER[0] | {"nuggets": [{"text": 1}]}, "as the text of a nugget"),
    (
        "nuggetizer",
        NUGGETIZER[0] | {"nuggets": [{"text": "t", "assignment": "maybe"}]},
        "as the assignment, found 'maybe'",
    ),
    ("nuggetizer", NUGGETIZER[1], "'d2' is assigned twice (first at"),
    ("crux", {"id": "t1", "docid": None, "rating": []}, "expected ids (strings or integers) as id and docid"),
    ("crux", CRUX[1] | {"rating": [1]}, "expected 3 ratings, one for each sub-question, as at"),
    ("crux", CRUX[1] | {"rating": [1, "2", 3]}, "expected numbers in rating, found '2'"),
    ("crux", CRUX[1] | {"rating": 3}, "expected a list as rating, found 3"),
    ("crux", CRUX[0], "query 't1': 'd1' is rated twice"),
]


@pytest.mark.parametrize(("name", "bad", "words"), BAD, ids=[words for *_, words in BAD])
def test_faults_name_the_file_and_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, bad: Any, words: str
) -> None:
    sound = {"freshstack": FRESHSTACK[1], "multihop-rag": MULTIHOP[0], "qampari": {**QAMPARI[0], "qid": "other"}}
    sound["crux"] = CRUX[0]
    before = sound.get(name, NUGGETIZER[1] if name == "nuggetizer" else AMBIGQA[1])
    path, run = put(tmp_path / "t.jsonl", [before, bad], "lines"), tmp_path / "r.trec"
    run.write_text("q Q0 d1 1 1 t\n")
    told = fails(capsys, "evaluate", path, run, "--truth-format", name, "-m", "recall")
    assert f"{path}:2" in told
    assert words in told


def test_results_of_multihop_rag_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = put(tmp_path / "t.json", MULTIHOP)
    rows = [MULTIHOP_SAVED[0], {"query": "?", "retrieval_list": [{"score": 1}]}, {"query": "?", "gold_list": []}]
    told = fails(capsys, "evaluate", truth, put(tmp_path / "r.json", rows), "--labeller", "text", "-m", "recall")
    assert "expected the key text, found score" in told
    assert "expected the key retrieval_list, found query, gold_list" in told


ODD: tuple[Any, ...] = (
    *(None, 5, 1.5, True, "", " ", "x", -1, 1e30, "a\nb", "\ud800", "N/A"),
    *([], {}, [None], [[]], [{}], {"a": 1}, [1], ["a", 2], [["a"]]),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to everything in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in inner for place in places(each, (*at, key)))]


def mutated(records: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Records of which one or two values are gone, or something else."""
    records = copy.deepcopy(records)
    for _ in range(rng.randint(1, 2)):
        *path, last = rng.choice([place for place in places(records) if len(place) > 1])
        holder: Any = records
        for key in path:
            holder = holder[key]
        if isinstance(holder, dict) and rng.random() < 0.2:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(rng.choice(ODD))
    return records


def try_mutated(path: Path, seed: int, count: int) -> None:
    """Whatever stands in a file, it is read, or refused by an error of ours."""
    rng = random.Random(seed)
    shapes = [*((name, records) for name, records, *_ in SHAPES), ("ambigqa", AMBIGQA), ("nuggetizer", ANSWERS)]
    for _ in range(count):
        name, records = rng.choice(shapes)
        put(path, mutated(records, rng), rng.choice(("array", "lines")))
        policy = rng.choice((None, {"empty_groups": "unmeetable"}, {"empty_groups": "drop"}))
        for named in (name, None):
            with contextlib.suppress(groupgt.GroupgtError):
                groupgt.read_ground_truth(path, named, policy)
        if name == "multihop-rag":
            with contextlib.suppress(groupgt.GroupgtError):
                groupgt.read_run(path, name)


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_odd_values_are_read_or_refused(tmp_path: Path) -> None:
    try_mutated(tmp_path / "file", 1, 100)


@pytest.mark.property
@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_many_odd_values_are_read_or_refused(tmp_path: Path) -> None:
    try_mutated(tmp_path / "file", 2, 5000)


def test_nuggets_nested_too_deep(tmp_path: Path) -> None:
    nugget: dict[str, Any] = {"question": "Q", "references": ["d"]}
    for _ in range(400):
        nugget = {"question": "Q", "sub_nuggets": [nugget]}
    path = tmp_path / "bank.jsonl"
    path.write_text(json.dumps({"query_id": "1", "nugget_bank": {"Q": nugget}}) + "\n")
    with contextlib.suppress(groupgt.DataError):
        assert len(groupgt.read_ground_truth(path)["1"]) == 1


# Files of groupgt's own formats that hold what benchmarks hold as well: none of them is taken for one.
OWN = [
    (
        '{"qid": "1", "retrieval_gt": [["a"]], "nuggets": [], "question_text": "?", "answer_list": []}\n',
        "jsonl",
        "truth",
    ),
    ('{"qid": "1", "retrieved_ids": ["a"], "nuggets": []}\n', "jsonl", "run"),
    ('{"qid": "1", "doc_id": "a", "score": 1, "nuggets": []}\n', "jsonl", "run"),
    ('{"evidence_list": {"b": 2}, "query": {"a": 1}}\n', "json", "either"),
    ('{"nuggets": [["b"]], "qid": [["a"]]}\n', "json", "truth"),
    ('{"question": {"a": 1.5}, "id": {"b": 2}, "annotations": {}}\n', "json", "run"),
    ('{"qid": "nuggets"}\n', "jsonl", "either"),
    ("qid nuggets a 1\n", "trec", "truth"),
    ("qid,doc_id,score\n1,nuggets,1\n", "csv", "run"),
]


@pytest.mark.parametrize(("text", "name", "kind"), OWN, ids=[text[:30] for text, *_ in OWN])
def test_what_is_of_groupgt_stays_so(tmp_path: Path, text: str, name: str, kind: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    known, found = detect._recognized(Source.at(path))
    assert known is not None
    assert (known.name, found) == (name, kind)


def test_a_file_of_two_benchmarks_is_refused_with_both_names(tmp_path: Path) -> None:
    """A set that keeps the paragraphs of MuSiQue beside the supporting facts of HotpotQA may mean either."""
    paragraphs = [{"title": "A", "is_supporting": True}, {"title": "B", "is_supporting": False}]
    record = {"id": "1", "_id": "1", "question": "?", "supporting_facts": [["B", 0]], "paragraphs": paragraphs}
    path = put(tmp_path / "both.json", [record])
    told = "has the keys of hotpotqa and musique; name its format with --truth-format: hotpotqa or musique"
    with pytest.raises(groupgt.DataError, match=told):
        groupgt.read_ground_truth(path)
    for name, document in (("hotpotqa", "B"), ("musique", "A")):
        assert dict(groupgt.read_ground_truth(path, name).items()) == {"1": [[document]]}


def test_unanswerable_questions_of_musique(tmp_path: Path) -> None:
    """Paragraphs that support a part are no ground truth: y returns nothing, as it should, z something."""
    rows = [
        {"id": qid, "question": "?", "paragraphs": [{"title": "A", "is_supporting": True}], "answerable": qid == "x"}
        for qid in "xyz"
    ]
    truth = groupgt.read_ground_truth(put(tmp_path / "musique.jsonl", rows))
    assert dict(truth.items()) == {"x": [["A"]], "y": [], "z": []}
    assert truth.columns["answerable"] == [True, False, False]
    found = groupgt.evaluate(truth, {"x": ["A"], "y": [], "z": ["A"]}, ["recall.coverage", "abstains"])
    assert found.means == {"recall.coverage": 1, "abstains": 0.5}


def test_kinds_for_convert(tmp_path: Path) -> None:
    assert kind_of(put(tmp_path / "a", FRESHSTACK)) == "truth"
    assert kind_of(put(tmp_path / "b", MULTIHOP_SAVED)) == "run"


KEYS = [
    ('{"a": 1, "b" : {"c": [{"d": 2}]}, "e":"{\\"f\\": 3}", "h": []}\n{"g": 4}', {"a", "b", "e", "h"}),
    ('[\n  {\n    "a": [1, {"b": 2}],\n    "c": "x"\n  },\n  {"d": 1}\n]', {"a", "c"}),
    ('[{"a": "cut o', {"a"}),
    ('{"a": "b": ', {"a", "b"}),
    ("[]", set()),
    ("[1, 2]", set()),
    ("plain text", set()),
    ("", set()),
]


@pytest.mark.parametrize(("text", "keys"), KEYS, ids=[repr(text[:20]) for text, _ in KEYS])
def test_keys_of_the_first_record(tmp_path: Path, text: str, keys: set[str]) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert keys_of(Source.at(path)).keys() == keys


def test_a_record_longer_than_the_head_is_known(tmp_path: Path) -> None:
    rows = [{**FRESHSTACK[0], "query_text": '\\"x' * 100_000}]
    for how in ("array", "indented", "lines"):
        assert len(groupgt.read_ground_truth(put(tmp_path / how, rows, how), "freshstack")) == 1
    rows = [{**FRESHSTACK[0], "answer_text": '\\"x' * 100_000}]
    assert keys_of(Source.at(put(tmp_path / "late", rows))).keys() >= {"query_id", "nuggets"}


def test_which_keys_hold_a_string_or_a_number(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"a": "x", "b": [1], "c": {"d": 1}, "e": null, "f": 1}')
    assert keys_of(Source.at(path)) == {"a": True, "b": False, "c": False, "e": True, "f": True}


def test_every_format_of_a_benchmark_can_be_named() -> None:
    assert {name for name, *_ in SHAPES} | {"ambigqa"} <= set(TRUTHS)


def assigned(assignment: str, importance: str) -> dict[str, Any]:
    return NUGGETIZER[0] | {
        "docid": "d9",
        "nuggets": [{"text": "It is a car", "importance": importance, "assignment": assignment}],
    }


def test_a_nugget_has_one_importance(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", [NUGGETIZER[0], assigned("support", "okay")], "lines")
    words = f"{path}:2, nugget 1: query '2024-1': the nugget 'It is a car' is okay, but vital at {path}:1, nugget 1"
    with pytest.raises(groupgt.DataError, match=re.escape(words)):
        groupgt.read_ground_truth(path)
    created = [{**CREATED[0], "nuggets": [{"text": "T", "importance": which} for which in ("vital", "okay")]}]
    with pytest.raises(groupgt.DataError, match=r":1, nugget 2: query '2024-1': the nugget 'T' is okay, but vital at"):
        groupgt.read_ground_truth(put(tmp_path / "c.jsonl", created, "lines"))


def test_what_failed_contradicts_nothing(tmp_path: Path) -> None:
    """A nugget whose text is there twice is two nuggets."""
    twice = [{"text": "It is fast", "assignment": how} for how in ("support", "failed", "not_support", "support")]
    path = put(tmp_path / "t.jsonl", [NUGGETIZER[0] | {"nuggets": twice}], "lines")
    names = [group["name"] for group in groupgt.read_ground_truth(path, policy="empty_groups=drop")["2024-1"]]
    assert names == ["It is fast", "It is fast (3)", "It is fast (4)"]


def test_keys_of_banks_that_may_be_absent_are_not_misspelled(tmp_path: Path) -> None:
    with pytest.raises(groupgt.DataError, match="expected the key references, found question, reference"):
        groupgt.read_ground_truth(put(tmp_path / "b.jsonl", [question(reference=["d"])], "lines"))


def test_answers_of_qampari_need_their_texts_and_pages(tmp_path: Path) -> None:
    answer = QAMPARI[0]["answer_list"][0]
    path = put(tmp_path / "t.jsonl", [{**QAMPARI[0], "answer_list": [{**answer, "answer_text": None}]}], "lines")
    with pytest.raises(groupgt.DataError, match=":1: expected a string as the answer_text, found None"):
        groupgt.read_ground_truth(path)
    proof = [{"proof_text": "…", "found_in": "u"}]
    put(path, [{**QAMPARI[0], "answer_list": [{**answer, "proof": proof}]}], "lines")
    with pytest.raises(groupgt.DataError, match=":1: expected the key found_in_url, found proof_text, found_in"):
        groupgt.read_ground_truth(path, "qampari-documents")


def test_what_follows_from_a_fault_is_not_told(tmp_path: Path) -> None:
    """A nugget whose documents stand under another key is no empty group."""
    nugget = {"text": "N", "relevant_ids": ["a"], "non_relevant_corpus_ids": []}
    rows = [{**FRESHSTACK[0], "nuggets": [nugget, FRESHSTACK[0]["nuggets"][0]]}, {**FRESHSTACK[1], "query_id": None}]
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_ground_truth(put(tmp_path / "t.jsonl", rows, "lines"))
    first, second = error.value.faults
    assert ":1: expected the key relevant_corpus_ids, found text, relevant_ids, non_relevant_corpus_ids" in first
    assert ":2: expected a query id" in second
