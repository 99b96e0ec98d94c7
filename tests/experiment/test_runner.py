"""`run_experiment`: the same figures as by hand, the same bytes each time, whole folders or none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.cache import needed
from groupgt.experiment.datasets import read_all
from groupgt.experiment.experiment import load
from groupgt.report.run import run_experiment
from groupgt.store import stamped
from tests.experiment.conftest import HANDBOOK, MEMBERS
from tests.experiment.folders import contents

pytestmark = pytest.mark.slow


def test_results_are_the_same_bytes_each_time(experiment: Path) -> None:
    first, second = run_experiment(experiment), run_experiment(experiment)
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
    outcome = run_experiment(experiment)
    assert outcome.folder is not None
    for system, evaluation in outcome.evaluations["handbook"].items():
        # A run whose equal scores TREC's rule would order otherwise is JSON Lines.
        (run,) = (outcome.folder / "runs" / "handbook").glob(f"{system}.*")
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
    outcome = run_experiment(experiment)
    assert outcome.folder is not None
    (run,) = (outcome.folder / "runs" / "handbook").glob("plain.*")
    text = experiment.read_text().replace(
        "  plain: bm25\n", f"  plain: {{use: results, with: {{path: '{run.as_posix()}'}}}}\n"
    )
    experiment.write_text(text)
    again = run_experiment(experiment)
    assert again.evaluations["handbook"]["plain"].means == outcome.evaluations["handbook"]["plain"].means


def test_node_output_follows_the_whole_ground_truth(experiment: Path, tmp_path: Path) -> None:
    truth = groupgt.read_ground_truth(HANDBOOK / "questions.jsonl")
    answers = [[group[0] for group in groups] for _, groups in truth.items()]
    pl.DataFrame({"retrieved_ids": pl.Series(answers, dtype=pl.List(pl.String))}).write_parquet(tmp_path / "0.parquet")
    text = experiment.read_text().replace("  plain: bm25\n", "  plain: {use: results, with: {path: 0.parquet}}\n")
    experiment.write_text(text)
    evaluation = run_experiment(experiment).evaluations["handbook"]["plain"]
    assert evaluation["recall@10"] == 1
    assert evaluation.counts["queries"] == 60


def test_a_failure_while_writing_leaves_nothing_behind(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_experiment(experiment)
    assert first.folder is not None
    before = sorted(path.name for path in first.folder.parent.iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stamped, "_renamed", full)
    with pytest.raises(groupgt.DataError, match="No space left"):
        run_experiment(experiment)
    assert sorted(path.name for path in first.folder.parent.iterdir()) == before


def test_where_that_leaves_nothing_is_an_error(experiment: Path) -> None:
    experiment.write_text(experiment.read_text().replace("split: dev", "split: train"))
    with pytest.raises(groupgt.DataError, match="no query has the value 'train'"):
        run_experiment(experiment)
    experiment.write_text(experiment.read_text().replace("split: train", "part: dev"))
    with pytest.raises(groupgt.DataError, match="found 'part'"):
        run_experiment(experiment)


def test_questions_without_text_cannot_be_searched(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"qid": "1", "retrieval_gt": [["forms-list"]], "split": "dev", "type": "x"}\n')
    experiment.write_text(experiment.read_text().replace((HANDBOOK / "questions.jsonl").as_posix(), "q.jsonl"))
    with pytest.raises(groupgt.ConfigError, match="no text"):
        run_experiment(experiment)


def test_only_reports_what_is_asked_and_the_baseline(sweep: Path) -> None:
    outcome = run_experiment(sweep, only=["fused[k=60]"])
    assert set(outcome.evaluations["handbook"]) == {"fused[k=60]", "bm25[k1=0.9,b=0.4]"}
    assert outcome.retrieved == 2  # the inputs
    with pytest.raises(groupgt.ConfigError, match="no system has this name"):
        run_experiment(sweep, only=["lsa"])


def test_a_fusion_deeper_than_the_file_asks_its_inputs_again(sweep: Path) -> None:
    experiment = load(sweep, changes=["systems.fused.with={depth: 50}"])
    tasks = needed(experiment, read_all(experiment))
    expected = [*((name, 20) for name in MEMBERS), (MEMBERS[0], 50), (MEMBERS[3], 50)]
    assert [(task.dataset, task.name, task.depth) for task in tasks] == [("handbook", *pair) for pair in expected]


@pytest.mark.property
def test_jobs_change_no_byte(sweep: Path, tmp_path: Path) -> None:
    one = run_experiment(sweep, output=tmp_path / "one", changes=["cache=one"])
    two = run_experiment(sweep, output=tmp_path / "two", changes=["cache=one"], jobs=2, refresh=True)
    assert two.retrieved == 4
    assert contents(one.folder) == contents(two.folder)


def test_several_data_sets_and_the_best_of_all(sweep: Path) -> None:
    text = sweep.read_text(encoding="utf-8")
    own = text[text.index("  handbook:") : text.index("systems:")]
    text = text.replace("systems:", own.replace("handbook:", "other:", 1).replace("dev", "test") + "systems:", 1)
    sweep.write_text(text, encoding="utf-8")
    outcome = run_experiment(sweep)
    assert set(outcome.best) == {"handbook", "other"}
    means = {
        name: sum(outcome.evaluations[dataset][name]["ndcg@10"] for dataset in outcome.evaluations) / 2
        for name in outcome.evaluations["handbook"]
    }
    assert outcome.overall == max(means, key=lambda name: means[name])


def test_the_command_line(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(sweep), "--dry-run"])
    assert "retrieve" in capsys.readouterr().out
    main(["run", str(sweep), "--format", "json", "--jobs", "2"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["datasets"]["handbook"]["best"] in [*MEMBERS, "fused[k=10]", "fused[k=60]"]
    assert printed["times"]["systems"]
    main(
        ["run", str(sweep), "--only", "bm25*", "--set", "evaluate.k=3", "--set", "evaluate.primary=ndcg@3", "--details"]
    )
    shown = capsys.readouterr()
    assert "ndcg@3" in shown.out
    assert "\nfrom the cache: 4 retrievals (--refresh starts from scratch)\n" in shown.out
    main(["cache", str(sweep), "--format", "json"])
    listed = json.loads(capsys.readouterr().out)
    assert sorted(each["system"] for each in listed) == MEMBERS
    main(["cache", str(sweep), "--clear", "--only", "bm25[k1=0.9,*"])
    assert "removed 2 runs" in capsys.readouterr().err
    assert run_experiment(sweep, only=["bm25*"]).retrieved == 2
