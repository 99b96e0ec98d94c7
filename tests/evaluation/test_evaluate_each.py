"""Many files at once are what they are one by one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import groupgt
from groupgt.evaluation import evaluate
from groupgt.evaluation.names import named
from groupgt.evaluation.request import Request
from tests.engines.test_engines import METRICS, as_trec, make, same

ASKED = [metric for metric in METRICS if not metric.definition.reads_texts][:20]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[groupgt.GroundTruth, list[Path]]:
    """Files of one ground truth, of which half are shuffled; all count as many enough for threads."""
    monkeypatch.setattr(evaluate, "SMALL", 0)
    truth, rows = make(3, ties=True)
    paths = []
    for number in range(12):
        rng = random.Random(number)
        own = [(qid, doc, score + rng.random()) for qid, doc, score in rows]
        if number % 2:
            rng.shuffle(own)
        paths.append(tmp_path / f"run{number:02d}.trec")
        paths[-1].write_text(as_trec(own))
    return groupgt.GroundTruth.of(truth), paths


def test_files_are_evaluated_side_by_side(files: tuple[groupgt.GroundTruth, list[Path]]) -> None:
    truth, paths = files
    found = evaluate.evaluate_each(Request.of(ASKED), truth, named(("", path) for path in paths))
    assert [each.name for each in found] == [path.stem for path in paths]
    for path, each in zip(paths, found, strict=True):
        same(groupgt.evaluate(truth, path, ASKED), each)


def test_one_that_fails_ends_them_all(files: tuple[groupgt.GroundTruth, list[Path]]) -> None:
    truth, paths = files
    paths[5].write_text("q1 Q0 a 1 nan t\n")
    with pytest.raises(groupgt.DataError, match=r"run05\.trec:1"):
        groupgt.compare(truth, paths, ["mrr"], resamples=10)


def test_runs_that_tie_on_another_metric_are_named_together() -> None:
    """`b` leads on two metrics; `a` and `c` share the lead on the third, because they return one result less."""
    truth = {"q": [["x"], ["y"]]}
    runs = {"a": {"q": ["x"]}, "b": {"q": ["x", "z", "y"]}, "c": {"q": ["x"]}}
    text = str(groupgt.evaluate_runs(truth, runs, ["recall", "complete", "precision"]))
    assert "Highest mean of 3 runs on recall, complete: b (recall 1.0000); on precision: a and c (tied)." in text
