"""A system that finds nothing at all is a fault, and no score of zero."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.display import summary
from groupgt.experiment.runner import run_experiment
from groupgt.experiment.starter import write_starter

NOTHING = """
version: 1
name: nothing
convention: coverage
datasets: {mine: {corpus: corpus.jsonl, ground_truth: questions.jsonl}}
systems:
  bm25: bm25
  mine: {use: results, with: {path: mine.jsonl}}
evaluate: {metrics: [recall@3]}
output: {folder: results, formats: [table]}
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    write_starter(tmp_path)
    (tmp_path / "mine.jsonl").write_text('{"qid": "nobody", "retrieved_ids": ["x"]}\n', encoding="utf-8")
    (tmp_path / "nothing.yaml").write_text(NOTHING, encoding="utf-8")
    return tmp_path / "nothing.yaml"


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_it_ends_the_run_and_says_what_to_check(experiment: Path) -> None:
    with pytest.raises(groupgt.GroupgtError, match="mine"):
        run_experiment(experiment)


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_it_may_be_skipped_and_has_no_zero(experiment: Path) -> None:
    outcome = run_experiment(experiment, changes=["systems.mine.on_error=skip"])
    assert list(outcome.evaluations["mine"]) == ["bm25"]
    assert "mine" in outcome.failed["mine"]
    assert "mine failed and has no results" in summary(outcome)
