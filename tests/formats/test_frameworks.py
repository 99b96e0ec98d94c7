"""Data sets of RAG frameworks, in the shapes in which these write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats.detect import kind_of
from tests.bad_input import put

# As `EvaluationDataset.to_jsonl` of ragas 0.4.3 writes samples: fields without a value are left out.
SAMPLES: list[dict[str, Any]] = [
    {
        "user_input": "How long is leave?",
        "retrieved_contexts": ["Welcome.", "Leave is thirty days."],
        "reference_contexts": ["Leave is thirty days.", "It ends in May."],
        "retrieved_context_ids": ["x", "a"],
        "reference_context_ids": ["a", "b"],
    },
    {
        "user_input": "Who?",
        "retrieved_contexts": ["Ada."],
        "reference_contexts": ["Ada."],
        "retrieved_context_ids": [7],
        "reference_context_ids": [7],
    },
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def without(*names: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in names} for row in SAMPLES]


def test_ragas_by_id(tmp_path: Path) -> None:
    path = written(tmp_path / "samples.jsonl", SAMPLES)
    truth = groupgt.read_ground_truth(path)
    assert dict(truth.items()) == {"How long is leave?": [["a"], ["b"]], "Who?": [["7"]]}
    assert (truth.shape, truth.texts) == ("flat", ["How long is leave?", "Who?"])
    # 1: one of two groups; 2: its only one.
    assert groupgt.evaluate(path, path, ["recall"])["recall"] == 0.75
    frame = tmp_path / "samples.parquet"
    pl.DataFrame(SAMPLES[:1]).write_parquet(frame)
    assert groupgt.evaluate(frame, frame, ["recall"])["recall"] == 0.5


def test_ragas_by_text(tmp_path: Path) -> None:
    path = written(tmp_path / "samples.jsonl", without("retrieved_context_ids", "reference_context_ids"))
    truth = groupgt.read_ground_truth(path)
    assert truth["Who?"] == [[{"text": "Ada."}]]
    assert groupgt.read_run(path).lists.rankings == {
        "How long is leave?": ["(result 1)", "(result 2)"],
        "Who?": ["(result 1)"],
    }
    with pytest.raises(groupgt.DataError, match="not all of these results have ids, and the id labeller needs ids"):
        groupgt.evaluate({"Who?": [["1"]]}, path, ["recall"])
    assert groupgt.evaluate(path, path, ["recall", "mrr.trec"], labeller="text").means == {
        "recall": 0.75,
        "mrr.trec": (1 / 2 + 1) / 2,
    }
    with_ids = written(tmp_path / "with_ids.jsonl", SAMPLES)
    assert groupgt.read_ground_truth(with_ids, "ragas-texts")["Who?"] == truth["Who?"]
    assert (
        groupgt.evaluate(with_ids, with_ids, ["recall"], labeller="text", truth_format="ragas-texts")["recall"] == 0.75
    )


def test_ragas_is_recognized_by_its_keys(tmp_path: Path) -> None:
    references = ("reference_contexts", "reference_context_ids")
    results = ("retrieved_contexts", "retrieved_context_ids")
    assert kind_of(written(tmp_path / "testset.jsonl", without(*results))) == "truth"
    assert kind_of(written(tmp_path / "results.jsonl", without(*references))) == "run"


def test_ragas_with_another_number_of_texts(tmp_path: Path) -> None:
    path = written(tmp_path / "samples.jsonl", [*SAMPLES, {**SAMPLES[0], "retrieved_contexts": ["one"]}])
    with pytest.raises(groupgt.DataError, match=r":3: expected as many retrieved_contexts as .* \(2\), found 1"):
        groupgt.read_run(path)


def test_llama_index(tmp_path: Path) -> None:
    """As `EmbeddingQAFinetuneDataset.save_json` writes it."""
    data = {
        "queries": {"q1": "Who?", "q2": "What?"},
        "corpus": {"a": "A", "b": "B"},
        "relevant_docs": {"q1": ["a"], "q2": ["a", "b", "a"]},
        "mode": "text",
    }
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(data, indent=4))
    truth = groupgt.read_ground_truth(path)
    assert kind_of(path) == "truth"
    assert dict(truth.items()) == {"q1": [["a"]], "q2": [["a"], ["b"]]}
    assert (truth.shape, truth.texts) == ("flat", ["Who?", "What?"])
    # q1: 1 of 1; q2: 1 of 2.
    assert groupgt.evaluate(path, {"q1": ["a"], "q2": ["b"]}, ["recall"])["recall"] == 0.75
    # ranx writes qrels as an object, too, and a query may be called "queries".
    path.write_text(json.dumps({"queries": {"d1": 1}}))
    assert groupgt.read_ground_truth(path).qids == ["queries"]


@pytest.mark.parametrize("name", ["g.json", "g.csv"])
def test_null_texts_are_no_ground_truth_and_no_results(tmp_path: Path, name: str) -> None:
    texts = {"context": ["Paris is."], "retrieval_context": ["Paris is."]}
    none = dict.fromkeys(texts, None)
    samples = [
        {"input": "one", **texts},
        {"input": "two", **none},
        {"input": "three", **texts, "retrieval_context": None},
    ]
    put(tmp_path / "g.json", json.dumps(samples))
    put(tmp_path / "g.csv", "input,context,retrieval_context\none,Paris is.,Paris is.\ntwo,,\nthree,Paris is.,\n")
    found = groupgt.evaluate(tmp_path / name, tmp_path / name, ["recall@2"], labeller="text")
    assert found.per_query["recall@2"].to_list() == [1, None, 0]


def test_null_contexts_are_no_results(tmp_path: Path) -> None:
    run = put(
        tmp_path / "m.jsonl",
        '{"task_id": "c1", "contexts": [{"document_id": "a"}]}\n{"task_id": "c2", "contexts": null}\n',
    )
    found = groupgt.evaluate(put(tmp_path / "q.txt", "c1 0 a 1\nc2 0 b 1\n"), run, ["recall@2"])
    assert found.per_query["recall@2"].to_list() == [1, 0]
