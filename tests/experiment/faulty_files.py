"""A file in which all is well, changed in one place or several, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import groupgt
from groupgt.experiment.plan import plan

GOOD = """\
version: 1
groupgt: ">=0.1"
name: trial
seed: 7
convention: coverage
datasets:
  mine:
    corpus: corpus.jsonl
    ground_truth: questions.jsonl
    where: {type: [single, multi]}
  yours:
    corpus: corpus.jsonl
    ground_truth: questions.jsonl
systems:
  plain: bm25
  sweep:
    use: bm25
    with: {stopwords: english}
    matrix:
      k1: [0.9, 1.2]
      b: [0.4, 0.75]
  stored:
    use: results
    with: {path: run.trec}
    only: [mine]
  fused:
    use: rrf
    inputs: ["sweep[k1=0.9,b=0.4]", plain]
    with: {depth: 50}
    matrix:
      k: [10, 60]
  mixed:
    use: convex
    inputs: ["sweep*"]
    with: {normalization: theoretical}
    matrix:
      weights: [[1, 1, 1, 1], [1, 2, 3, 4]]
    on_error: skip
evaluate:
  depth: 20
  k: [1, 3]
  metrics: [recall, ndcg, redundancy]
  primary: ndcg@3
  best:
    strategy: rank
    metrics: [recall@1, ndcg@3]
    max_latency_ms: 10000
  by: [type]
  timed: 2
compare:
  baseline: plain
gate:
  - {system: "sweep*", metric: recall@3, min: 0.1}
  - {system: "fused*", metric: ndcg@3, max_drop: 0.9}
  - {system: "*", dataset: mine, slice: {type: multi}, metric: recall@3, min: 0.0}
  - {system: plain, metric: latency_p95_ms, max: 10000}
output:
  folder: out
  formats: [table, json]
cache: cache
"""
Change = tuple[str, str]
# Parts of the file that several changes replace.
STORED = "use: results\n    with: {path: run.trec}"
BEST = "strategy: rank\n    metrics: [recall@1, ndcg@3]\n    max_latency_ms: 10000"
WEIGHTS = "weights: [[1, 1, 1, 1], [1, 2, 3, 4]]"
GATES = GOOD[GOOD.index("gate:") : GOOD.index("output:")]
COMPARE = "compare:\n  baseline: plain\n"


def changed(*changes: Change, text: str = GOOD) -> str:
    """The good file with each of the old texts replaced by its new one."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def written(folder: Path, text: str) -> Path:
    file = folder / "e.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def told(folder: Path, text: str, **options: Any) -> list[str]:
    """The faults of a file, without the name of its folder."""
    file = written(folder, text)
    try:
        plan(file, **options)
    except groupgt.GroupgtError as error:
        return [fault.removeprefix(f"{file}:").replace(str(folder), "FOLDER") for fault in error.faults]
    return []


# A name, what is changed, where the fault is, the path it names, and words of it.
Fault = tuple[str, list[Change], str, str, str]


def check_one(folder: Path, fault: Fault) -> None:
    """One fault is one line, at its place, in its words."""
    _, changes, place, path, words = fault
    found = told(folder, changed(*changes))
    assert len(found) == 1, found
    assert found[0].startswith(place), found
    assert found[0].split(": ")[1].startswith(path), found
    assert words in found[0], found
