"""A system that finds nothing at all is a fault, and no score of zero."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.starter import write_starter
from groupgt.report.experiment import summary
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

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
def test_it_may_be_skipped_and_has_no_zero(experiment: Path, snapshot: Snapshot) -> None:
    outcome = run_experiment(experiment, changes=["systems.mine.on_error=skip"])
    assert list(outcome.evaluations["mine"]) == ["bm25"]
    assert "mine" in outcome.failed["mine"]
    snapshot(summary(outcome))


CHUNKS = """
version: 1
name: chunks
convention: coverage
datasets: {mine: {corpus: other.jsonl, ground_truth: questions.jsonl}}
systems: {bm25: bm25}
evaluate: {metrics: [recall@3]}
output: {folder: results, formats: [table]}
"""


def chunks(folder: Path, *ids: str) -> Path:
    """An experiment whose corpus has these ids, of which its ground truth names `fees` and `cards`, and others."""
    lines = [f'{{"doc_id": "{name}", "contents": "A card and a loan cost money on Saturdays."}}\n' for name in ids]
    (folder / "other.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "chunks.yaml").write_text(CHUNKS, encoding="utf-8")
    return folder / "chunks.yaml"


def test_a_corpus_without_any_id_of_the_ground_truth_is_refused(experiment: Path, snapshot: Snapshot) -> None:
    """It is another chunking: every mean would be 0."""
    with pytest.raises(groupgt.DataError) as refused:
        run_experiment(chunks(experiment.parent, "fees-1", "cards-1"))
    said = str(refused.value)
    snapshot(said)


def test_ids_that_are_not_in_the_corpus_stand_above_the_table(experiment: Path, snapshot: Snapshot) -> None:
    with snapshot.warns(groupgt.GroupgtWarning):
        outcome = run_experiment(chunks(experiment.parent, "fees", "cards"))
    assert outcome.absent == {"mine": ["opening-hours", "lending", "renewing-online"]}
    above, _, _ = str(outcome).partition("convention coverage")
    doubt = (
        "3 ground truth ids are not in the corpus, so they can never be retrieved: 'opening-hours', 'lending', "
        "'renewing-online'."
    )
    assert doubt in above
    assert doubt in summary(outcome)


def test_judged_passages_without_text_are_warned_of(experiment: Path) -> None:
    path = chunks(experiment.parent, "fees", "cards")
    corpus = experiment.parent / "other.jsonl"
    empty = '{"doc_id": "lending", "contents": ""}\n{"doc_id": "unjudged", "contents": ""}\n'
    corpus.write_text(corpus.read_text(encoding="utf-8") + empty, encoding="utf-8")
    with (
        pytest.warns(groupgt.GroupgtWarning, match="2 ground truth ids are not in the corpus"),
        pytest.warns(groupgt.GroupgtWarning, match="dataset 'mine': 1 judged passage has no contents: 'lending'"),
    ):
        run_experiment(path)
