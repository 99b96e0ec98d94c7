"""A small experiment that sweeps, fuses and compares, without anything beyond the core."""

from __future__ import annotations

from pathlib import Path

import pytest

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
compare:
  baseline: "bm25[k1=0.9,b=0.4]"
output: {{folder: out, formats: [table, markdown, latex, html, json, csv, runs]}}
cache: cache
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """The file, in a folder of its own."""
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP, encoding="utf-8")
    return file
