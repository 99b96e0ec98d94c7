"""The shipped example keeps its promises."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import groupgt
from groupgt.formats.corpus import read_corpus

FOLDER = Path(__file__).parents[2] / "examples" / "handbook"
ROWS = [json.loads(line) for line in (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
TRUTH = groupgt.read_ground_truth(FOLDER / "questions.jsonl")


def test_passages() -> None:
    assert len(ROWS) >= 150
    assert len(read_corpus(FOLDER / "corpus.jsonl")) == len(ROWS)
    assert all(40 <= len(row["contents"].split()) <= 150 for row in ROWS)


def test_questions() -> None:
    groups = [own for _, own in TRUTH.items()]
    assert len(TRUTH) >= 120
    assert sum(len(own) >= 2 for own in groups) >= 40
    assert sum(any(len(group) > 1 for group in own) for own in groups) >= 40
    assert sum(len(own) == 0 for own in groups) >= 5
    assert sum(max(Counter(name for group in own for name in group).values(), default=0) > 1 for own in groups) >= 5
    assert set(TRUTH.columns) == {"type", "split", "answer"}
    assert set(TRUTH.columns["split"]) == {"dev", "test"}
    assert TRUTH.repeated_ids == 0


def test_every_id_is_in_the_corpus() -> None:
    assert set(TRUTH.ids) <= {row["doc_id"] for row in ROWS}


def test_the_readme_counts_are_right() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    kinds = Counter(zip(TRUTH.columns["type"], TRUTH.columns["split"]))
    for kind in sorted({kind for kind, _ in kinds}):
        dev, test = kinds[kind, "dev"], kinds[kind, "test"]
        assert f"| {kind} | {dev} | {test} | {dev + test} |" in text
    assert f"{len(ROWS)} passages" in text
    assert f"{len(TRUTH.group_query)} groups, with {len(TRUTH.ids)} ids" in text
