"""Trials from every way in to every way out: files, frames, the shell, experiments, folders and what reads them."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.comparison.trials import in_trials, noise_of_difference
from groupgt.errors import ConfigError, DataError, MetricError
from groupgt.evaluation.estimates import student_quantile
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.misses import Place
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.trials import noise_in, noise_of
from groupgt.metrics.language import parse_metric
from groupgt.model.run import Run
from groupgt.report.experiment import page_of, summary
from groupgt.report.gates import remark
from groupgt.report.misses import details
from groupgt.report.priorities import _where
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder
from tests.comparison.slowly import NEEDS_SCIPY
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
    pairs = [(first, second), *zip(first.repeats, second.repeats, strict=True)]
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
    assert len(evaluation.repeats) == 3


def test_a_single_run_has_no_trials_to_count() -> None:
    hits = groupgt.evaluate(TRUTH, RUNS[0], METRICS).labelled.hits
    with pytest.raises(MetricError, match="expected at least 2 trials, found a single run"):
        parse_metric("complete(pass_at=2)@2").values(hits)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_and_every_conversion(way: str, tmp_path: Path, cli: Cli) -> None:
    if way == "pandas":
        pytest.importorskip("pyarrow", reason="the extra groupgt[frames] is not installed")
    run = WAYS[way](tmp_path)
    assert same(groupgt.evaluate(TRUTH, run, METRICS, name="a"), reference())
    if not isinstance(run, Path):
        return
    for to in ("jsonl", "csv", "parquet"):
        assert cli("convert", run, tmp_path / f"copy.{to}", "--to", to).status == 0
        assert same(groupgt.evaluate(TRUTH, tmp_path / f"copy.{to}", METRICS), reference())
    outcome = cli("convert", run, tmp_path / "copy.trec", "--to", "trec")
    assert outcome.status == 2
    assert "cannot store trials" in outcome.err


@pytest.mark.parametrize("way", WAYS)
def test_a_column_build_declares_builds(way: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "pandas":
        pytest.importorskip("pyarrow", reason="the extra groupgt[frames] is not installed")
    for name, rows in (("NESTED", NESTED), ("LONG", LONG)):
        monkeypatch.setitem(
            globals(), name, [{"build" if key == "trial" else key: row[key] for key in row} for row in rows]
        )
    run = WAYS[way](tmp_path)
    evaluation = groupgt.evaluate(TRUTH, run, METRICS, name="a")
    assert evaluation.is_build
    assert same(evaluation, reference())
    if isinstance(run, Path):
        for to in ("jsonl", "csv", "parquet"):
            assert cli("convert", run, tmp_path / f"copy.{to}", "--to", to).status == 0
            assert groupgt.evaluate(TRUTH, tmp_path / f"copy.{to}", METRICS).is_build


def test_calls_keep_their_trial(tmp_path: Path, cli: Cli) -> None:
    rows = [{**row, "retrieved_calls": [row["trial"]] * len(row["retrieved_ids"])} for row in NESTED]
    run = lines(tmp_path / "calls.jsonl", [{**row, "retrieve_scores": None} for row in rows])
    expected = groupgt.evaluate(TRUTH, run, ["recall@1calls"])
    assert expected.repeats[1].means["recall@1calls"] == 0
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
        ([{"qid": "q0", "retrieved_ids": []}, *NESTED], "some rows have a trial and some do not"),
        ([{**NESTED[0], "trial": "first"}, *NESTED[1:]], "expected a whole number as the trial in every row"),
        ([*NESTED, NESTED[0]], "duplicate query"),
        ([{**NESTED[0], "build": 1}, *NESTED[1:]], "expected a trial column or a build column, found both"),
        ([{"qid": "q0", "retrieved_ids": [], "build": "b1"}], "expected a whole number as the build in every row"),
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


def test_the_noise_in_results_has_the_level_of_the_comparison(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "trials.jsonl", "many", changes=["compare.confidence=0.8"])
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    (told,) = (each["trials"] for each in results["datasets"]["one"]["systems"] if each["run"] == "a")
    for text, noise in told.items():
        expected = noise_of(outcome.evaluations["one"]["a"], text, 0.8)
        assert expected is not None
        assert (noise["interval"], noise["floor"]) == (list(expected.interval), expected.floor)
    assert "in 20% of cases" in outcome.comparison["one"].plot("trials").text


def test_folders_are_written_read_merged_and_compared_with(tmp_path: Path, cli: Cli) -> None:
    outcome = ran(tmp_path, "trials.jsonl", "many")
    evaluation = outcome.evaluations["one"]["a"]
    assert len(evaluation.repeats) == 3
    # Measured again from the folder, with all trials.
    folder = ResultFolder.opened(outcome.folder)
    request = Request.of(METRICS, convention="coverage")
    again = [evaluate_run(request, folder.truth(folder.policy), run, name) for name, run in folder.runs]
    assert same(next(each for each in again if each.name == "a"), evaluation)
    assert [each.repeats for each in again if each.name == "b"] == [()]
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
        ("recall(pass_at=2)", "recall cannot be counted over trials"),
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


# ---- Noise, gates and what is told ------------------------------------------------------------------------------


def by_hand() -> tuple[dict[str, Any], list[dict[str, list[str]]]]:
    """Four queries that are complete in 4, 3, 1 and 0 of 4 trials."""
    truth = {qid: [["a"]] for qid in "wxyz"}
    return truth, [{qid: ["a" if trial < n else "b"] for qid, n in zip("wxyz", (4, 3, 1, 0))} for trial in range(4)]


def test_noise_by_hand() -> None:
    truth, runs = by_hand()
    evaluation = groupgt.evaluate_runs(truth, {"a": runs}, ["complete@1"])["a"]
    noise = noise_of(evaluation, "complete@1")
    assert noise is not None
    # The variances of the queries are 0, 1/4, 1/4 and 0; c is 1/4; t has 4 · 3 degrees of freedom.
    t = 2.178813
    assert (noise.trials, noise.queries, noise.mean) == (4, 4, 0.5)
    # Wilson: 1/2 of 1/4 · 4 · 16 ÷ 3/4 = 64/3 cases; z = 1.959964.
    c = 1.959964**2 / (64 / 3)
    reach = math.sqrt(c / 4 + c * c / 4) / (1 + c)
    assert noise.interval == pytest.approx((0.5 - reach, 0.5 + reach))
    assert noise.floor == pytest.approx(t * math.sqrt(2 * 0.75) / 4)
    # Of 6 pairs of trials, 3 differ on x (one trial against three) and 3 on y: a query on average.
    assert noise.changing == 1


def test_identical_trials_equal_the_single_run_to_the_bit() -> None:
    rng = random.Random(3)
    truth = {f"q{n}": [[f"a{n}"], [f"b{n}", f"c{n}"], [f"d{n}"]] for n in range(40)}
    run = {f"q{n}": rng.sample([f"a{n}", f"b{n}", f"c{n}", f"d{n}", *"uvwxyz"], 8) for n in range(40)}
    metrics = ["recall.coverage@3", "ndcg.coverage@5", "map", "mrr", "redundancy@5"]
    single = groupgt.evaluate(truth, run, metrics, name="a")
    for times in (2, 3, 5, 7):
        several = groupgt.evaluate_runs(truth, {"a": [run] * times}, metrics)["a"]
        for text, values in single.values.items():
            assert np.array_equal(values, several.values[text], equal_nan=True)
        assert several.means == single.means
        noise = noise_of(several, "ndcg.coverage@5")
        assert noise is not None
        # Σ s² = 0 and c = 1/4r, over 40 queries.
        assert noise.floor == pytest.approx(student_quantile(0.95, 40 * (times - 1)) * math.sqrt(0.5 / times) / 40)
        assert noise.changing == 0


@pytest.mark.parametrize(
    ("policy", "metric", "expected"),
    [
        ("missing=zero", "recall@2", 0.5),  # q5 has 1, nothing, and 0.5
        ("missing=skip", "recall@2", 0.75),
        ("missing=zero", "redundancy@3", 0.0),  # lower is better: undefined without results
    ],
)
def test_a_query_without_results_in_one_trial(policy: str, metric: str, expected: float) -> None:
    evaluation = groupgt.evaluate_runs(TRUTH, {"a": RUNS}, [metric], policy=policy)["a"]
    assert evaluation.values[metric][5] == pytest.approx(expected)
    assert evaluation.counts["missing"] == 0
    assert "no results in some of its trials for 1 query" in groupgt.evaluate_runs(TRUTH, {"a": RUNS}, [metric]).text()


def test_queries_without_answer_and_without_truth() -> None:
    truth = [{"qid": "n", "retrieval_gt": [], "answerable": False}, {"qid": "u", "retrieval_gt": []}]
    truth += [{"qid": qid, "retrieval_gt": groups} for qid, groups in TRUTH.items()]
    runs = [{**RUNS[0], "n": ["x"]}, RUNS[0], RUNS[0], RUNS[0]]
    evaluation = groupgt.evaluate_runs(pl.DataFrame(truth), {"a": runs}, ["abstains", "recall@2"])["a"]
    assert evaluation.values["abstains"][0] == 0.75
    assert np.isnan(evaluation.values["recall@2"][:2]).all()


def test_said_of_each_query() -> None:
    truth, runs = by_hand()
    evaluation = groupgt.evaluate_runs(truth, {"a": runs}, ["complete@1", "complete(pass_at=2)@1"])["a"]
    explained = {row["metric"]: row for row in evaluation.explain_dict("y")["metrics"]}
    assert explained["complete.autorag@1"]["value"] == 0.25
    assert explained["complete.autorag@1"]["trials"] == [1, 0, 0, 0]
    assert explained["complete.autorag(pass_at=2)@1"]["value"] == 0.5
    assert "complete in 1 of 4 trials" in evaluation.explain("y")
    misses = evaluation.misses(1)
    assert [query["qid"] for query in misses.queries] == ["z", "y", "x"]
    assert [query["groups"][0]["covered_trials"] for query in misses.queries] == [0, 1, 3]
    assert "covered in 3 of 4 trials" in misses.text()
    assert [row[:2] for row in evaluation.plot("trials").rows[:3]] == [["a", "x"], ["a", "x"], ["a", "y"]]
    assert evaluation.to_dict()["trials"]["complete@1"]["trials"] == 4


def test_one_system_tells_its_trials_on_every_medium(tmp_path: Path) -> None:
    truth, runs = by_hand()
    lines(tmp_path / "truth.jsonl", [{"qid": qid, "retrieval_gt": groups} for qid, groups in truth.items()])
    rows = [{"qid": qid, "retrieved_ids": ids, "trial": n} for n, run in enumerate(runs) for qid, ids in run.items()]
    lines(tmp_path / "new.jsonl", rows)
    text = re.sub(r"(  base: .*|compare: .*|gate: .*)\n", "", GATE).replace("[json]", "[csv, report]")
    (tmp_path / "gate.yaml").write_text(text)
    outcome = run_experiment(tmp_path / "gate.yaml")
    told = f"Two runs of new on these {len(truth)} queries differ by up to "
    (dataset,) = page_of(outcome)["datasets"]
    assert told in outcome.text()
    assert told in summary(outcome)
    assert any(told in line for line in dataset["tests"])


def test_the_noise_of_trials_has_the_mean_that_decides() -> None:
    truth, runs = by_hand()
    other = {qid: groups[:1] for qid, groups in truth.items()}
    table = groupgt.compare(truth, {"a": runs, "b": runs[0]}, ["complete@1"], annotators=[other])
    evaluation = table.evaluations["a"]
    plain = evaluation.to_dict()
    noise = plain["trials"]["complete@1"]
    assert noise["mean"] == plain["metrics"]["complete@1"]["mean"] == evaluation.means["complete@1"]
    assert noise["mean_by_labels"] == evaluation.means["complete@1"]
    assert len(noise["interval"]) == 2


def test_the_power_of_builds_is_that_of_these_builds() -> None:
    pytest.importorskip("scipy")
    truth, runs = by_hand()
    builds = Run.of_trials([replace(Run.of(run), is_build=True) for run in runs])
    analysis = groupgt.power(truth, {"a": builds, "b": runs[0]}, ["complete@1"], baseline="b")
    assert "the power of a applies to the measured builds" in " ".join(analysis.text().split())


def test_intervals_for_these_queries() -> None:
    truth, runs = by_hand()
    pair = {"a": runs, "b": runs[0]}
    noise = noise_of(groupgt.evaluate_runs(truth, pair, ["complete@1"])["a"], "complete@1")
    assert noise is not None
    table = groupgt.compare(truth, pair, ["complete@1"], baseline="b", these_queries=True)
    assert table["a"]["complete@1"].interval == pytest.approx(noise.interval)
    assert math.isnan(table["b"]["complete@1"].interval[0])
    assert (
        table["a"]["complete@1"].delta
        == groupgt.compare(truth, pair, ["complete@1"], baseline="b")["a"]["complete@1"].delta
    )


@pytest.mark.parametrize(
    ("lost", "passed", "words"),
    [(1, True, "within noise"), (4, False, "beyond noise")],
)
def test_a_gate_within_noise(lost: int, passed: bool, words: str, tmp_path: Path) -> None:
    """A run that loses some of its ten queries, against one whose trials differ in two of them."""
    truth = {f"q{n}": [[f"a{n}"]] for n in range(10)}
    trials = [{f"q{n}": [f"a{n}" if n != 2 * trial else "x"] for n in range(10)} for trial in range(2)]
    single = {f"q{n}": [f"a{n}" if n > lost else "x"] for n in range(10)}
    evaluations = groupgt.evaluate_runs(truth, {"base": trials, "new": single}, ["recall@1"])
    sides = [(in_trials(evaluations[name], "recall@1", list(truth)), False) for name in ("base", "new")]
    # Two queries with a variance of 1/2; c is 1/2. The single run borrows 1.5; t(10).
    noise = noise_of_difference(sides)
    assert noise == pytest.approx(2.228139 * math.sqrt((1 + 0.5) / 2 + 1.5) / 10)
    lines(tmp_path / "truth.jsonl", [{"qid": qid, "retrieval_gt": groups} for qid, groups in truth.items()])
    rows = [{"qid": qid, "retrieved_ids": ids, "trial": n} for n, run in enumerate(trials) for qid, ids in run.items()]
    lines(tmp_path / "base.jsonl", rows)
    lines(tmp_path / "new.jsonl", [{"qid": qid, "retrieved_ids": ids} for qid, ids in single.items()])
    (tmp_path / "gate.yaml").write_text(GATE)
    (result,) = run_experiment(tmp_path / "gate.yaml").gates
    assert result.passed == passed
    assert result.drop is not None
    assert result.drop.noise == pytest.approx(noise)
    assert words in result.reason
    assert "not significant" not in remark(result)


GATE = """
version: 1
name: gates
datasets: {one: {ground_truth: truth.jsonl}}
systems:
  base: {use: results, with: {path: base.jsonl}}
  new: {use: results, with: {path: new.jsonl}}
evaluate: {metrics: [recall@1]}
compare: {baseline: base, resamples: 200}
gate: [{system: new, metric: recall@1, max_drop: 0, unless: within_noise}]
output: {folder: out, formats: [json]}
cache: null
"""


def test_a_gate_without_trials_on_either_side_fails(tmp_path: Path) -> None:
    """But only where there is a drop that might be noise."""
    lines(tmp_path / "truth.jsonl", [{"qid": qid, "retrieval_gt": [["a"]]} for qid in "pq"])
    (tmp_path / "gate.yaml").write_text(GATE)
    for found, judged in (("b", (False, "no trials")), ("a", (True, None))):
        for name, ids in (("base", "a"), ("new", found)):
            lines(tmp_path / f"{name}.jsonl", [{"qid": qid, "retrieved_ids": [ids]} for qid in "pq"])
        (result,) = run_experiment(tmp_path / "gate.yaml").gates
        assert (result.passed, result.problem) == judged


def test_the_noise_of_builds_is_that_of_their_means() -> None:
    """Three builds whose queries all move together."""
    values = np.array([[0.75] * 4, [1.0] * 4, [0.5] * 4])
    noise = noise_in(values, is_build=True)
    assert noise is not None
    # The means are .75, 1 and .5: a variance of 1/16. t of 2 degrees of freedom: 4.302653.
    assert noise.floor == 1.0  # 4.302653 · √2 ÷ 4 = 1.52
    assert noise.interval == pytest.approx((0.75 - 4.302653 / 4 / math.sqrt(3), 1.0))
    unbounded = noise_in(values, bounded=False, is_build=True)
    assert unbounded is not None
    assert unbounded.floor == pytest.approx(4.302653 * math.sqrt(2) / 4)
    # Of a difference from one other run, which borrows the variance: t · √((1/3 + 1) / 16).
    of_two = noise_of_difference([(values, True), (values[:1], False)], bounded=False)
    assert of_two == pytest.approx(4.302653 * math.sqrt((1 / 3 + 1) / 16))


def test_intervals_for_these_queries_have_one_ground_truth() -> None:
    truth, runs = by_hand()
    with pytest.raises(ConfigError, match="these_queries: cannot be combined with several annotators, because"):
        groupgt.compare(truth, {"a": runs, "b": runs[0]}, ["complete@1"], these_queries=True, annotators=[truth])


@pytest.mark.slow
@pytest.mark.parametrize(("overlooked", "status"), [("0.1", 0), ("0.5", 1)])
def test_the_example(overlooked: str, status: int, tmp_path: Path, cli: Cli) -> None:
    for name in ("handbook", "trials.yaml", "approximate_search.py"):
        source = Path(__file__).parents[2] / "examples" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    changed = f"systems.candidate.with.options.overlooked={overlooked}"
    typed = ("--allow-code", "--set", changed, "--set", "output.folder=out")
    outcome = cli("run", tmp_path / "trials.yaml", *typed)
    assert outcome.status == status, outcome.err
    (folder,) = (tmp_path / "out" / "trials").glob("*/results.json")
    results = json.loads(folder.read_text())
    noise = results["datasets"]["handbook"]["systems"][0]["trials"]["complete.coverage@10"]
    assert (noise["trials"], noise["queries"]) == (5, 82)
    assert noise["floor"] > 0
    # Against itself: asked again, and compared within noise with the trials in the folder.
    against = "gate=[{system: release, metric: complete@10, max_drop: 0, unless: within_noise, against: previous}]"
    again = cli("run", tmp_path / "trials.yaml", *typed, "--set", against, "--against", tmp_path / "out" / "trials")
    assert again.status == 0, again.err


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("{use: results, with: {path: new.jsonl}, trials: 3}", "number them in the `trial` column of the file"),
        ("{use: bm25, trials: 0}", "expected"),
        ("{use: bm25, trials: {n: 2, of: weeks}}", "expected runs or builds"),
        ("{use: bm25, trials: {of: builds}}", "expected at least two builds"),
    ],
)
def test_trials_in_the_file_that_make_no_sense(system: str, words: str, tmp_path: Path, cli: Cli) -> None:
    lines(tmp_path / "truth.jsonl", [{"qid": "q", "retrieval_gt": [["a"]]}])
    lines(tmp_path / "corpus.jsonl", [{"doc_id": "a", "contents": "text"}])
    lines(tmp_path / "new.jsonl", [{"qid": "q", "retrieved_ids": ["a"]}])
    text = GATE.replace("{use: results, with: {path: base.jsonl}}", system)
    (tmp_path / "gate.yaml").write_text(text.replace("truth.jsonl}", "truth.jsonl, corpus: corpus.jsonl}"))
    outcome = cli("run", tmp_path / "gate.yaml", "--dry-run")
    assert outcome.status == 2
    assert words in outcome.err


def test_a_fusion_has_the_trials_of_its_inputs(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra groupgt[retrieval] is not installed")
    corpus = [{"doc_id": name, "contents": f"text about {name}"} for name in "abcdef"]
    lines(tmp_path / "corpus.jsonl", corpus)
    lines(
        tmp_path / "truth.jsonl", [{"qid": name, "query": f"about {name}", "retrieval_gt": [[name]]} for name in "abc"]
    )
    (tmp_path / "fusion.yaml").write_text(FUSION)
    evaluations = run_experiment(tmp_path / "fusion.yaml", jobs=2).evaluations["one"]
    assert {name: len(each.repeats) for name, each in evaluations.items()} == {"words": 3, "lsa": 0, "both": 3}
    # Deterministic systems answer alike in every trial.
    assert all(same(each, evaluations["both"].repeats[0]) for each in evaluations["both"].repeats)


FUSION = """
version: 1
name: fusion
datasets: {one: {ground_truth: truth.jsonl, corpus: corpus.jsonl}}
systems:
  words: {use: bm25, trials: {n: 3, of: builds}}
  lsa: {use: lsa, with: {dimensions: 2}}
  both: {use: rrf, inputs: [words, lsa]}
evaluate: {metrics: [recall@1], depth: 3}
output: {folder: out, formats: [json]}
"""


def test_builds_have_a_variance_of_their_own() -> None:
    """Against the textbook: a two-way table without interaction, and as many degrees of freedom as builds allow."""
    stats = pytest.importorskip("scipy.stats", reason=NEEDS_SCIPY)
    rng = np.random.default_rng(5)
    truth = {f"q{n}": [[f"a{n}"], [f"b{n}"], [f"c{n}"]] for n in range(30)}

    def builds(times: int) -> list[Run]:
        chances = rng.uniform(0.2, 0.9, times)
        drawn = rng.random((times, 30, 3)) < chances[:, None, None]
        runs = [{f"q{n}": [*compress(f"a{n} b{n} c{n}".split(), row[n]), "x"] for n in range(30)} for row in drawn]
        return [replace(Run.of(run), is_build=True) for run in runs]

    table = groupgt.compare(truth, {"a": builds(3), "b": builds(4)}, ["recall@3"])
    sides = [np.stack([each.values["recall@3"] for each in table.evaluations[name].repeats]) for name in "ba"]
    deltas = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    variance = deltas.var(ddof=1) / 30
    for side in sides:
        times = len(side)
        of_builds = 30 * side.mean(axis=1).var(ddof=1)
        rest = side - side.mean(axis=0) - side.mean(axis=1)[:, None] + side.mean()
        error = (rest**2).sum() / (29 * (times - 1))
        variance += (of_builds - error) / (30 * times)
    degrees = 3 + 4 - 2
    row = table["b"]["recall@3"]
    assert row.p_value == pytest.approx(2 * stats.t.sf(abs(deltas.mean()) / math.sqrt(variance), degrees), abs=1e-9)
    reach = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    assert row.delta_interval == pytest.approx((deltas.mean() - reach, deltas.mean() + reach))
    low, high = row.interval
    assert high - low > 2 * 1.96 * math.sqrt(sides[0].mean(axis=0).var(ddof=1) / 30)
    assert "cover other builds as well" in table.text()


@pytest.mark.filterwarnings("ignore:.*relevant ids are not in the results")
def test_trials_that_differ_as_a_whole_are_told() -> None:
    truth = {f"q{n}": [[f"a{n}"]] for n in range(40)}
    runs = [{f"q{n}": [f"a{n}" if n % 4 < kept else "x"] for n in range(40)} for kept in (1, 4)]
    text = groupgt.evaluate_runs(truth, {"a": runs}, ["recall@1"]).text()
    assert "the trials of a differ as a whole in recall@1" in text
    alike = groupgt.evaluate_runs(truth, {"a": [runs[0], runs[0]]}, ["recall@1"]).text()
    assert "differ as a whole" not in alike


def test_the_page_says_in_how_many_trials_a_group_is_covered(tmp_path: Path) -> None:
    truth, runs = by_hand()
    table = groupgt.compare(truth, {"a": runs, "b": runs[0]}, ["complete@1"])
    by_query = {detail.question: detail.rankings for detail in details(table.by(), np.arange(4))}
    assert [rankings[0][5] for rankings in by_query.values() if rankings[0] is not None] == [
        [f"covered in {times} of 4 trials"] for times in (4, 3, 1, 0)
    ]
    assert all(len(rankings[1] or []) == 5 for rankings in by_query.values())
    table.to_html(tmp_path / "page.html")


def test_a_group_of_a_lost_query_says_how_many_trials_cover_it() -> None:
    """A median rank would say that a group missed in one of three trials was found at rank 1."""
    assert _where(Place(1, 2, 3, 2), Place(1, 3, 3, 3)) == "covered in 2 of 3 trials, was 3 of 3"
    assert _where(Place(None, 0, 3, 0), None) == "covered in 0 of 3 trials"
    assert _where(Place(4, 0, 1, 1), Place(1, 1, 1, 1)) == "rank 4, was 1"
    assert _where(Place(None, 0, 1, 0), Place(None, 0, 1, 0)) == "not retrieved"


def test_a_list_of_runs_is_the_trials_of_one_system() -> None:
    """20 queries, 2 trials, q0 is complete in one of them and all others are complete in both.

    The mean is 19.5/20 = 0.975. W = 1/2 + 1/2 = 1, t with 20 (2 - 1) degrees of freedom is 2.086, so the floor is
    2.086 √2 / 20 = 0.1475. Wilson at 0.975 · 0.025 · 2 · 20² / 1 = 19.5 queries is 0.7962 to 0.9974.
    """
    truth = {f"q{n}": [["a"]] for n in range(20)}
    complete = {qid: ["a"] for qid in truth}
    runs = [complete, complete | {"q0": ["x"]}]
    evaluation = groupgt.evaluate(truth, runs, ["complete@10", "complete(pass_at=2)@10"])
    of_one = groupgt.evaluate_runs(truth, {"s": runs}, ["complete@10"])["s"].trials
    compared = groupgt.compare(truth, {"s": runs, "one": runs[1]}, ["complete@10"])
    for noise in (evaluation.trials["complete@10"], of_one["complete@10"], compared.trials["s"]["complete@10"]):
        assert (noise.trials, noise.mean, noise.changing) == (2, pytest.approx(0.975), 1)
        assert noise.floor == pytest.approx(0.1475, abs=5e-5)
        assert noise.interval == pytest.approx((0.7962, 0.9974), abs=5e-5)
    assert compared.to_dict()["trials"] == {"s": evaluation.to_dict()["trials"]}
    assert list(compared.trials) == ["s"]
    assert groupgt.evaluate(truth, runs[0], ["complete@10"]).trials == {}
    assert [len(found.queries) for found in (groupgt.misses(truth, runs), groupgt.misses(truth, runs[0]))] == [1, 0]
    counted = groupgt.evaluate(truth, runs, ["complete(pass_at=2)@10"])
    assert counted.trials == {"complete@10": evaluation.trials["complete@10"]}
    with pytest.raises(DataError, match="or a list of trials, found list"):
        groupgt.evaluate(truth, [{"qid": "q0", "doc_id": "a"}], ["complete@10"])
