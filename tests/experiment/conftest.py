"""A small experiment that sweeps, fuses and compares, without anything beyond the core."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from groupgt.experiment.outcome import Outcome
from groupgt.report.run import run_experiment

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"

SWEEP = f"""\
version: 1
name: sweep
convention: coverage
datasets:
  handbook:
    corpus: {(HANDBOOK / "corpus.jsonl").as_posix()}
    ground_truth: {(HANDBOOK / "questions.jsonl").as_posix()}
    where: {{split: dev}}
systems:
  bm25:
    use: bm25
    matrix: {{k1: [0.9, 1.2], b: [0.4, 0.75]}}
  fused:
    use: rrf
    inputs: ["bm25[k1=0.9,b=0.4]", "bm25[k1=1.2,b=0.75]"]
    matrix: {{k: [10, 60]}}
evaluate:
  depth: 20
  k: [5, 10]
  metrics: [recall, ndcg]
  primary: ndcg@10
  by: [type]
  timed: 2
compare:
  baseline: "bm25[k1=0.9,b=0.4]"
  resamples: 100
output: {{folder: out, formats: [table, json, csv, runs]}}
cache: cache
"""


# The systems of the sweep.
MEMBERS = ["bm25[k1=0.9,b=0.4]", "bm25[k1=0.9,b=0.75]", "bm25[k1=1.2,b=0.4]", "bm25[k1=1.2,b=0.75]"]
TRIAL = """\
version: 1
name: trial
convention: coverage
datasets:
  handbook:
    corpus: {corpus}
    ground_truth: {questions}
    where: {{split: dev}}
systems:
  plain: bm25
  shallow: {{use: bm25, with: {{k1: 0.1, b: 0.0, variant: robertson, stopwords: english}}}}
evaluate:
  depth: 50
  k: [1, 10]
  metrics: [recall, ndcg, redundancy]
  primary: ndcg@10
  by: [type, n_groups]
output: {{folder: out, formats: [table, json, csv, runs]}}
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """The file, in a folder of its own."""
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What the sweep gives, for tests that change nothing of it."""
    file = tmp_path_factory.mktemp("first") / "sweep.yaml"
    file.write_text(SWEEP, encoding="utf-8")
    return run_experiment(file)


@pytest.fixture
def swept(sweep: Path, first: Outcome) -> Path:
    """The file beside the cache that a run of it has left, for tests that are not about retrieving."""
    assert first.folder is not None
    shutil.copytree(first.folder.parents[2] / "cache", sweep.parent / "cache")
    return sweep


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the files of `faulty_files` name."""
    monkeypatch.delenv("GROUPGT_UNSET", raising=False)
    texts = ["ferry times", "ticket prices", "dogs on board", "harbour hours", "ferry prices", "luggage and dogs"]
    rows = [{"doc_id": f"d{number}", "contents": text} for number, text in enumerate(texts)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions: list[dict[str, Any]] = [
        {"qid": "1", "query": "ferry times?", "retrieval_gt": [["d0"]], "type": "single", "year": 2020},
        {"qid": "2", "query": "ticket prices?", "retrieval_gt": [["d1"], ["d4"]], "type": "multi", "year": 2021},
        {"qid": "3", "query": "dogs on board?", "retrieval_gt": [["d2", "d5"]], "type": "single", "year": 2020},
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    (tmp_path / "run.trec").write_text("1 Q0 d0 1 1 t\n2 Q0 d1 1 1 t\n3 Q0 d3 1 1 t\n")
    return tmp_path


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Two systems without a comparison, in a folder of their own."""
    file = tmp_path / "trial.yaml"
    names = {"corpus": (HANDBOOK / "corpus.jsonl").as_posix(), "questions": (HANDBOOK / "questions.jsonl").as_posix()}
    file.write_text(TRIAL.format(**names))
    return file
