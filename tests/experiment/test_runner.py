"""`run_experiment`: the same figures as by hand, the same bytes each time, whole folders or none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.experiment import runner
from groupgt.experiment.plan import plan
from groupgt.experiment.starter import write_starter
from groupgt.retrievers.bm25 import BM25
from groupgt.store import files

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"

FILE = """\
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
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "trial.yaml"
    names = {"corpus": (HANDBOOK / "corpus.jsonl").as_posix(), "questions": (HANDBOOK / "questions.jsonl").as_posix()}
    file.write_text(FILE.format(**names))
    return file


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "timings.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_results_are_the_same_bytes_each_time(experiment: Path) -> None:
    first, second = runner.run_experiment(experiment), runner.run_experiment(experiment)
    assert first.folder is not None
    assert second.folder is not None
    assert first.folder != second.folder
    assert contents(first.folder) == contents(second.folder)
    assert (first.folder.parent / "latest").read_text().strip() == second.folder.name
    assert first.folder.name.split("-")[1] == second.folder.name.split("-")[1]
    manifest = json.loads((first.folder / "manifest.json").read_text())
    assert manifest["config"]["evaluate"]["depth"] == 50
    assert manifest["counts"]["handbook"]["plain"]["queries"] == 60
    assert len(manifest["files"]) == 3


def test_written_runs_give_the_same_figures(experiment: Path) -> None:
    outcome = runner.run_experiment(experiment)
    assert outcome.folder is not None
    for system, evaluation in outcome.evaluations["handbook"].items():
        run = outcome.folder / "runs" / "handbook" / f"{system}.trec"
        again = groupgt.evaluate(evaluation.truth, run, list(evaluation.metrics.values()))
        for text in evaluation.values:
            assert np.array_equal(evaluation.values[text], again.values[text], equal_nan=True)
    assert outcome.best["handbook"] == max(
        outcome.evaluations["handbook"], key=lambda name: outcome.evaluations["handbook"][name]["ndcg@10"]
    )
    results = json.loads((outcome.folder / "results.json").read_text())
    means = results["datasets"]["handbook"]["systems"][0]["metrics"]
    assert means["ndcg.coverage@10"]["mean"] == next(iter(outcome.evaluations["handbook"].values()))["ndcg@10"]


def test_results_of_another_system(experiment: Path) -> None:
    outcome = runner.run_experiment(experiment)
    assert outcome.folder is not None
    run = outcome.folder / "runs" / "handbook" / "plain.trec"
    text = experiment.read_text().replace(
        "  plain: bm25\n", f"  plain: {{use: results, with: {{path: '{run.as_posix()}'}}}}\n"
    )
    experiment.write_text(text)
    again = runner.run_experiment(experiment)
    assert again.evaluations["handbook"]["plain"].means == outcome.evaluations["handbook"]["plain"].means


def test_node_output_follows_the_whole_ground_truth(experiment: Path, tmp_path: Path) -> None:
    truth = groupgt.read_ground_truth(HANDBOOK / "questions.jsonl")
    answers = [[group[0] for group in groups] for _, groups in truth.items()]
    pl.DataFrame({"retrieved_ids": pl.Series(answers, dtype=pl.List(pl.String))}).write_parquet(tmp_path / "0.parquet")
    text = experiment.read_text().replace("  plain: bm25\n", "  plain: {use: results, with: {path: 0.parquet}}\n")
    experiment.write_text(text)
    evaluation = runner.run_experiment(experiment).evaluations["handbook"]["plain"]
    assert evaluation["recall@10"] == 1
    assert evaluation.counts["queries"] == 60


def test_a_failure_while_writing_leaves_nothing_behind(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = runner.run_experiment(experiment)
    assert first.folder is not None
    before = sorted(path.name for path in first.folder.parent.iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(groupgt.DataError, match="No space left"):
        runner.run_experiment(experiment)
    assert sorted(path.name for path in first.folder.parent.iterdir()) == before


def test_where_that_leaves_nothing_is_an_error(experiment: Path) -> None:
    experiment.write_text(experiment.read_text().replace("split: dev", "split: train"))
    with pytest.raises(groupgt.DataError, match="no question is left"):
        runner.run_experiment(experiment)
    experiment.write_text(experiment.read_text().replace("split: train", "part: dev"))
    with pytest.raises(groupgt.DataError, match="no column 'part'"):
        runner.run_experiment(experiment)


def test_questions_without_text_cannot_be_searched(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"qid": "1", "retrieval_gt": [["forms-list"]], "split": "dev", "type": "x"}\n')
    experiment.write_text(experiment.read_text().replace((HANDBOOK / "questions.jsonl").as_posix(), "q.jsonl"))
    with pytest.raises(groupgt.ConfigError, match="no text"):
        runner.run_experiment(experiment)


def test_the_plan_retrieves_nothing(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BM25, "retrieve", None)
    headers, rows = plan(experiment)
    assert headers[0] == "dataset"
    assert [row[1] for row in rows] == ["plain", "shallow"]
    assert rows[0][3:] == [60, 188, 6, "retrieve"]


def test_the_starter_runs_and_replaces_nothing(tmp_path: Path) -> None:
    write_starter(tmp_path / "new")
    outcome = runner.run_experiment(tmp_path / "new" / "experiment.yaml")
    assert 0 < outcome.evaluations["mine"]["bm25[k1=1.2,b=0.75]"]["ndcg@3"] <= 1
    with pytest.raises(groupgt.ConfigError, match="there already"):
        write_starter(tmp_path / "new")
