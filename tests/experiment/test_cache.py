"""What was retrieved is kept under all that determines it, and nothing else is retrieved again."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupgt.report.run import run_experiment
from tests.experiment.folders import contents

pytestmark = pytest.mark.slow


def test_nothing_is_retrieved_twice(sweep: Path) -> None:
    first = run_experiment(sweep)
    second = run_experiment(sweep)
    assert (first.retrieved, first.cached) == (4, 0)
    assert (second.retrieved, second.cached) == (0, 4)
    assert contents(first.folder) == contents(second.folder)


@pytest.mark.parametrize(
    ("change", "retrieved"),
    [
        ("evaluate.metrics=[complete, ndcg]", 0),
        pytest.param("evaluate.k=[10, 1]", 0, marks=pytest.mark.property),
        pytest.param("convention=autorag", 0, marks=pytest.mark.property),
        pytest.param("systems.fused.matrix.k=[1, 2, 3]", 0, marks=pytest.mark.property),
        pytest.param("name=other", 0, marks=pytest.mark.property),
        ("systems.bm25.matrix.b.1=0.8", 2),
        pytest.param("systems.bm25.matrix.k1=[0.9, 1.2, 2]", 2, marks=pytest.mark.property),
        pytest.param("systems.bm25.with={stopwords: english}", 4, marks=pytest.mark.property),
        ("evaluate.depth=21", 4),
        pytest.param("datasets.handbook.where.split=test", 4, marks=pytest.mark.property),
        pytest.param("systems.fused.with={depth: 10}", 2, marks=pytest.mark.property),
        ("seed=1", 4),
    ],
)
def test_a_change_retrieves_what_it_determines(swept: Path, change: str, retrieved: int) -> None:
    changes = [change, 'systems.fused.inputs.1="bm25[k1=1.2,b=0.4]"'] if ".b.1" in change else [change]
    if change == "evaluate.k=[10, 1]":
        changes.append("evaluate.primary=ndcg@1")
    assert run_experiment(swept, changes=changes).retrieved == retrieved


def test_a_changed_corpus_is_retrieved_from_anew(swept: Path, tmp_path: Path) -> None:
    text = swept.read_text(encoding="utf-8")
    corpus = Path(next(line for line in text.splitlines() if "corpus:" in line).split(": ")[1])
    (tmp_path / "own.jsonl").write_bytes(corpus.read_bytes())
    swept.write_text(text.replace(corpus.as_posix(), "own.jsonl"), encoding="utf-8")
    assert run_experiment(swept).retrieved == 0
    (tmp_path / "own.jsonl").write_bytes(corpus.read_bytes() + b'{"doc_id": "new", "contents": "new"}\n')
    assert run_experiment(swept).retrieved == 4


def test_refresh_retrieves_everything(swept: Path) -> None:
    assert run_experiment(swept, refresh=True).retrieved == 4


def test_without_a_cache_nothing_is_kept(sweep: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert run_experiment(sweep, changes=["cache=null"]).retrieved == 4
    assert not (tmp_path / "cache").exists()
