"""The experiment on a public benchmark: with its files it runs whole, without them it says where to get them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.formats.corpus import read_corpus
from groupgt.report.run import run_experiment

CONFIG = Path(__file__).parents[2] / "configs" / "benchmarks" / "bright.yaml"
TASKS = "biology", "earth_science", "economics", "psychology", "robotics", "stackoverflow", "sustainable_living"


@pytest.fixture
def bright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of BRIGHT's shape: two questions for each task, one of which leaves its best document out."""
    for kind in ("examples", "documents"):
        (tmp_path / kind).mkdir()
    texts = {"a/1.txt": "insects fly to light", "a/2.txt": "why do insects fly to light", "b/1.txt": "moths and heat"}
    documents = pl.DataFrame({"id": list(texts), "content": list(texts.values())})
    examples = pl.DataFrame(
        [
            ("why do insects fly to light?", "0", ["a/2.txt"], ["a/1.txt"], ["a.txt"]),
            ("moths and heat", "1", ["N/A"], ["b/1.txt"], ["b.txt"]),
        ],
        schema=["query", "id", "excluded_ids", "gold_ids", "gold_ids_long"],
        orient="row",
    )
    for task in TASKS:
        documents.write_parquet(tmp_path / "documents" / f"{task}.parquet")
        examples.write_parquet(tmp_path / "examples" / f"{task}.parquet")
    monkeypatch.setenv("BRIGHT", str(tmp_path))
    return tmp_path


def test_bright_runs_whole(bright: Path, tmp_path: Path) -> None:
    pytest.importorskip("Stemmer", reason="the extra groupgt[retrieval] is not installed")
    outcome = run_experiment(CONFIG, output=tmp_path / "out", changes=[f"cache={tmp_path / 'cache'}"])
    assert list(outcome.evaluations) == list(TASKS)
    for task in TASKS:
        result = outcome.evaluations[task]["bm25"]
        # Without its exclusion, the excluded document would stand before the gold one.
        assert result["ndcg.trec@10"] == 1
        assert result.truth.excluded is not None


def test_without_its_files_it_says_where_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BRIGHT", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["run", str(CONFIG), "--dry-run"])
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert "examples/biology.parquet; download it from https://huggingface.co/datasets/xlangai/BRIGHT" in told.replace(
        "\\", "/"
    )


def test_the_folder_beside_the_file_is_named_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BRIGHT", raising=False)
    with pytest.raises(SystemExit) as end:
        main(["run", str(CONFIG), "--dry-run"])
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert str(CONFIG.parent / "bright" / "examples" / "biology.parquet") in told.replace("\n", "")
    assert "${env:" not in told


def test_documents_of_bright_and_of_multihop_rag_are_corpora(tmp_path: Path) -> None:
    (tmp_path / "bright.jsonl").write_text('{"id": "a/1.txt", "content": "one"}\n')
    (tmp_path / "multihop.json").write_text('[{"title": "T", "url": "https://e.example/1", "body": "two"}]')
    assert read_corpus(tmp_path / "bright.jsonl") == {"a/1.txt": "one"}
    assert read_corpus(tmp_path / "multihop.json") == {"https://e.example/1": "T\ntwo"}


def test_a_question_may_not_exclude_what_is_gold(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    path.write_text('[{"query": "?", "id": "0", "excluded_ids": ["a", "b"], "gold_ids": ["a"]}]')
    with pytest.raises(groupgt.DataError, match="'a'"):
        groupgt.read_ground_truth(path)
