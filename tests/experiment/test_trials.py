"""Trials from every way in to every way out: files, frames, the shell, experiments, folders and what reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.errors import DataError, MetricError
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder
from tests.conftest import Cli

TRUTH = {f"q{number}": [[f"a{number}"], [f"b{number}", f"c{number}"]] for number in range(6)}
METRICS = ["recall@2", "complete@2", "mrr"]
# The second trial has no results for q5, and finds less than the others.
RUNS: list[dict[str, list[str]]] = [
    {f"q{number}": [f"a{number}", f"b{number}", "x"] for number in range(6)},
    {f"q{number}": ["x", f"a{number}"] if number % 2 else [f"c{number}", f"a{number}"] for number in range(5)},
    {f"q{number}": ["x", "y"] if number == 3 else [f"b{number}", "x", f"a{number}"] for number in range(6)},
]
NESTED = [
    {"qid": qid, "retrieved_ids": ids, "retrieve_scores": [1.0 / rank for rank, _ in enumerate(ids, 1)], "trial": trial}
    for trial, run in enumerate(RUNS, 1)
    for qid, ids in run.items()
]
LONG = [
    {"qid": row["qid"], "doc_id": name, "score": score, "trial": row["trial"]}
    for row in NESTED
    for name, score in zip(row["retrieved_ids"], row["retrieve_scores"])
]


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def as_csv(path: Path) -> Path:
    pl.DataFrame(LONG).write_csv(path)
    return path


def as_parquet(path: Path) -> Path:
    pl.DataFrame(NESTED).write_parquet(path)
    return path


WAYS: dict[str, Callable[[Path], Any]] = {
    "lines of rankings": lambda folder: lines(folder / "a.jsonl", NESTED),
    "lines of results": lambda folder: lines(folder / "a.jsonl", LONG),
    "CSV": lambda folder: as_csv(folder / "a.csv"),
    "parquet": lambda folder: as_parquet(folder / "a.parquet"),
    "polars": lambda folder: pl.DataFrame(LONG),
    "pandas": lambda folder: pl.DataFrame(NESTED).to_pandas(),
    "lazy": lambda folder: pl.DataFrame(LONG).lazy(),
}


def reference() -> Evaluation:
    return groupgt.evaluate_runs(TRUTH, {"a": RUNS}, METRICS)["a"]


def same(first: Evaluation, second: Evaluation) -> bool:
    """Whether two evaluations have the same values, in the mean and in each trial."""
    pairs = [(first, second), *zip(first.trials, second.trials, strict=True)]
    return all(
        np.array_equal(a.values[a.text_of(text)], b.values[b.text_of(text)], equal_nan=True)
        for a, b in pairs
        for text in first.values
    )


def test_means_of_trials_are_the_values() -> None:
    evaluation = reference()
    single = [groupgt.evaluate(TRUTH, run, METRICS) for run in RUNS]
    for text, values in evaluation.values.items():
        of_each = np.stack([each.values[text] for each in single])
        assert values == pytest.approx(of_each.mean(axis=0), abs=1e-15)
    assert evaluation.means["complete@2"] == pytest.approx((6 + 3 + 0) / 18)
    assert len(evaluation.trials) == 3


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_and_every_conversion(way: str, tmp_path: Path, cli: Cli) -> None:
    run = WAYS[way](tmp_path)
    assert same(groupgt.evaluate(TRUTH, run, METRICS, name="a"), reference())
    if not isinstance(run, Path):
        return
    for to in ("jsonl", "csv", "parquet"):
        assert cli("convert", run, tmp_path / f"copy.{to}", "--to", to).status == 0
        assert same(groupgt.evaluate(TRUTH, tmp_path / f"copy.{to}", METRICS), reference())
    outcome = cli("convert", run, tmp_path / "copy.trec", "--to", "trec")
    assert outcome.status == 2
    assert "no place for trials" in outcome.err


def test_calls_keep_their_trial(tmp_path: Path, cli: Cli) -> None:
    rows = [{**row, "retrieved_calls": [row["trial"]] * len(row["retrieved_ids"])} for row in NESTED]
    run = lines(tmp_path / "calls.jsonl", [{**row, "retrieve_scores": None} for row in rows])
    expected = groupgt.evaluate(TRUTH, run, ["recall@1calls"])
    assert expected.trials[1].means["recall@1calls"] == 0
    for to in ("jsonl", "csv", "parquet"):
        assert cli("convert", run, tmp_path / f"copy.{to}", "--to", to).status == 0
        assert same(groupgt.evaluate(TRUTH, tmp_path / f"copy.{to}", ["recall@1calls"]), expected)


def test_one_name_several_times_in_the_shell(tmp_path: Path, cli: Cli) -> None:
    truth = lines(tmp_path / "truth.jsonl", [{"qid": qid, "retrieval_gt": groups} for qid, groups in TRUTH.items()])
    for number, run in enumerate(RUNS):
        lines(tmp_path / f"run{number}.jsonl", [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()])
    files = [f"a={tmp_path / f'run{number}.jsonl'}" for number in range(3)]
    measured = ("-m", ",".join(METRICS), "--format", "json")
    refused = cli("evaluate", truth, *files, *measured)
    assert refused.status == 2
    assert "duplicate run name 'a'" in refused.err
    assert "--trials" in refused.err
    for typed in (files, [f"a={tmp_path / 'run*.jsonl'}"]):
        outcome = cli("evaluate", truth, *typed, *measured, "--trials")
        assert outcome.status == 0
        (run,) = json.loads(outcome.out)["runs"]
        assert {text: each["mean"] for text, each in run["metrics"].items()} == pytest.approx(reference().means)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*NESTED, {"qid": "q0", "retrieved_ids": []}], "found None"),
        ([{"qid": "q0", "retrieved_ids": []}, *NESTED], "some rows have a trial and some have none"),
        ([{**NESTED[0], "trial": "first"}, *NESTED[1:]], "expected a trial (a whole number, in every row)"),
        ([*NESTED, NESTED[0]], "duplicate query"),
    ],
)
def test_faults_in_trials(rows: Sequence[Mapping[str, Any]], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        groupgt.read_run(lines(tmp_path / "a.jsonl", rows))
    assert words in str(error.value)


FILE = """
version: 1
name: small
convention: coverage
datasets:
  one: {{ground_truth: truth.jsonl}}
systems:
  a: {{use: results, with: {{path: {a}}}}}
  b: {{use: results, with: {{path: b.jsonl}}}}
evaluate: {{metrics: [recall@2, complete@2, mrr]}}
compare: {{baseline: b, resamples: 500}}
output: {{formats: [json, csv, report], folder: {folder}}}
cache: null
"""


def ran(folder: Path, a: str, output: str, **more: Any) -> Any:
    """Run an experiment whose system `a` has trials or a single run; `b` has a single run."""
    lines(folder / "truth.jsonl", [{"qid": qid, "retrieval_gt": groups} for qid, groups in TRUTH.items()])
    lines(folder / "trials.jsonl", NESTED)
    for name, run in (("single", RUNS[0]), ("b", RUNS[2])):
        lines(folder / f"{name}.jsonl", [{"qid": qid, "retrieved_ids": ids} for qid, ids in run.items()])
    (folder / "small.yaml").write_text(FILE.format(a=a, folder=output))
    return run_experiment(folder / "small.yaml", **more)


def test_folders_are_written_read_merged_and_compared_with(tmp_path: Path, cli: Cli) -> None:
    outcome = ran(tmp_path, "trials.jsonl", "many")
    evaluation = outcome.evaluations["one"]["a"]
    assert len(evaluation.trials) == 3
    # Measured again from the folder, with all trials.
    folder = ResultFolder.opened(outcome.folder)
    request = Request.of(METRICS, convention="coverage")
    again = [evaluate_run(request, folder.truth(folder.policy), run, name) for name, run in folder.runs]
    assert same(next(each for each in again if each.name == "a"), evaluation)
    assert [each.trials for each in again if each.name == "b"] == [()]
    # Merged with a folder without trials.
    other = ran(tmp_path, "single.jsonl", "one")
    merged = cli("report", outcome.folder, other.folder, "--format", "json")
    assert merged.status == 0, merged.err
    # Against a folder without trials, and one with trials against itself.
    now = ran(tmp_path, "trials.jsonl", "now", against=tmp_path / "one")
    contrast = now.against["one"].contrasts("recall.coverage@2")["a"]
    assert contrast.delta == pytest.approx(evaluation["recall@2"] - other.evaluations["one"]["a"]["recall@2"])
    equal = ran(tmp_path, "trials.jsonl", "now", against=tmp_path / "many").against["one"]
    assert not equal.stored
    assert equal.contrasts("recall.coverage@2")["a"].differ == 0


def test_passes_by_hand() -> None:
    """Queries succeed in 3, 2, 1 and 0 of 3 trials."""
    truth = {qid: [["a"]] for qid in "wxyz"}
    runs = [{qid: ["a" if trial < times else "b"] for qid, times in zip("wxyz", (3, 2, 1, 0))} for trial in range(3)]
    values = groupgt.evaluate_runs(
        truth, {"a": runs}, ["complete(pass_at=2)@1", "complete(pass_all=2)@1", "hit_rate(pass_all=1)@1"]
    )["a"].values
    assert values["complete(pass_at=2)@1"].tolist() == pytest.approx([1, 1, 2 / 3, 0])
    assert values["complete(pass_all=2)@1"].tolist() == pytest.approx([1, 1 / 3, 0, 0])
    assert values["hit_rate(pass_all=1)@1"].tolist() == pytest.approx([1, 2 / 3, 1 / 3, 0])


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("complete(pass_at=4)@2", "expected at least 4 trials, found 3"),
        ("complete(pass_at=0)@2", "expected a whole number from 1"),
        ("complete(pass_at=1, pass_all=1)", "found both"),
        ("recall(pass_at=2)", "recall is not counted over trials"),
    ],
)
def test_passes_refused(metric: str, words: str) -> None:
    with pytest.raises(MetricError, match=re.escape(words)):
        groupgt.evaluate_runs(TRUTH, {"a": RUNS}, [metric])
    assert str(groupgt.parse_metric("complete.trec( pass_all = 2 )@3")) == "complete.trec(pass_all=2)@3"


def test_passes_need_trials() -> None:
    with pytest.raises(MetricError, match="at least 2 trials, found a single run"):
        groupgt.evaluate(TRUTH, RUNS[0], ["complete(pass_at=2)"])
    with pytest.raises(MetricError, match="at least 2 trials, found a single run"):
        groupgt.score([["a"]], ["a"], "complete(pass_at=2)")
