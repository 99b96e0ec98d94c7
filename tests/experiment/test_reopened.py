"""What a run left is measured again: the same ground truth and runs, the same figures."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.outcome import Outcome
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder
from groupgt.store.files import file_name
from tests.experiment.conftest import MEMBERS

pytestmark = pytest.mark.slow

TRUTH = [
    {"qid": "q1", "query": "ferry?", "retrieval_gt": [["a", "b"], ["c"]], "type": "x"},
    {"qid": "q2", "query": "dogs?", "retrieval_gt": [["d"]], "type": "y"},
    {"qid": "q3", "query": "harbour?", "retrieval_gt": [["a"]], "type": "y"},
]
CORPUS = {"a": "The ferry leaves at nine.", "b": "Ferry: nine.", "c": "Tickets.", "d": "Dogs are welcome.", "e": "No."}
FILE = """
version: 1
name: small
convention: coverage
datasets:
  one: {{ground_truth: qa.jsonl, corpus: corpus.jsonl}}
  two: {{ground_truth: qa.jsonl, corpus: corpus.jsonl, where: {{type: y}}}}
systems:
  first.v2: {{use: results, with: {{path: first.jsonl}}}}
  other: {{use: results, with: {{path: other.jsonl}}}}
evaluate: {{metrics: [recall, mrr], k: [2], policy: {{missing: skip}}{labeller}}}
compare: {{baseline: other, alpha: 0.2, resamples: 50}}
output: {{formats: [csv]}}
"""
NAME = "first.v2"


def small(folder: Path, labeller: str = "") -> Path:
    """Runs the small experiment and returns the file `latest`."""

    def write(name: str, rows: list[dict[str, object]]) -> None:
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    write("qa.jsonl", TRUTH)
    write("corpus.jsonl", [{"doc_id": name, "contents": text} for name, text in CORPUS.items()])
    for name, runs in {
        "first": {"q1": ["b", "e", "c"], "q2": [], "q3": ["e", "a"]},
        "other": {"q1": ["c", "a"], "q2": ["d"]},
    }.items():
        write(f"{name}.jsonl", [{"qid": qid, "retrieved_ids": ids} for qid, ids in runs.items()])
    (folder / "small.yaml").write_text(FILE.format(labeller=labeller), encoding="utf-8")
    outcome = run_experiment(folder / "small.yaml")
    assert outcome.folder is not None
    return outcome.folder.parent / "latest"


def printed(capsys: pytest.CaptureFixture[str], *call: object, status: int = 0) -> tuple[str, str]:
    """What a command prints to standard output and standard error."""
    ended = 0
    try:
        main([str(word) for word in call])
    except SystemExit as end:
        ended = int(end.code or 0)
    out, err = capsys.readouterr()
    assert ended == status, err
    return out, err


def test_means_are_those_of_the_run(first: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = printed(capsys, "evaluate", first.folder, "--format", "json")
    assert err == ""
    runs = {run["run"]: run for run in json.loads(out)["runs"]}
    assert list(runs) == list(first.evaluations["handbook"])
    for name, evaluation in first.evaluations["handbook"].items():
        assert {text: row["mean"] for text, row in runs[name]["metrics"].items()} == {
            str(evaluation.metrics[text]): mean for text, mean in evaluation.means.items()
        }


def test_comparisons_are_those_of_the_run(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_experiment(swept, only=["bm25*"])
    out, _ = printed(capsys, "compare", outcome.folder, "--format", "json")
    again, table = json.loads(out), outcome.comparison["handbook"].to_dict()
    assert again["settings"] == table["settings"]
    assert again["baseline"] == table["baseline"] == MEMBERS[0]
    assert again["rows"] == [{**row, "metric": table["metrics"][row["metric"]]} for row in table["rows"]]
    chosen = ("--system", MEMBERS[1], "--system", MEMBERS[2], "-m", "recall@5", "--alpha", "0.5")
    out, _ = printed(capsys, "compare", outcome.folder, *chosen, "--format", "json")
    told = json.loads(out)
    assert (told["baseline"], told["settings"]["alpha"], told["settings"]["resamples"]) == (MEMBERS[1], 0.5, 100)


def test_the_verdict_on_a_folder_is_by_the_primary_metric_of_the_run(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["compare.metrics=[recall@5, ndcg@10]"]
    folder = run_experiment(swept, only=["bm25*"], changes=changes).folder
    assert folder is not None
    said = (folder / "table.txt").read_text(encoding="utf-8").split("\n\n")[1]
    assert " in ndcg@10." in said
    for command in ("compare", "report"):
        out, _ = printed(capsys, command, folder)
        assert out.split("\n\n")[0] == said
    out, _ = printed(capsys, "compare", folder, "--format", "json")
    assert list(json.loads(out)["metrics"]) == ["recall.coverage@5", "ndcg.coverage@10"]
    out, _ = printed(capsys, "compare", folder, "-m", "recall@5")
    assert " in recall@5." in out.splitlines()[0]
    pytest.importorskip("scipy")
    out, _ = printed(capsys, "power", folder)
    assert "in ndcg@10. 80% power needs" in out.splitlines()[0]


def test_runs_are_kept_under_their_names_whatever_is_written(tmp_path: Path) -> None:
    latest = small(tmp_path)
    folder = latest.parent / latest.read_text().strip()
    assert sorted(path.name for path in (folder / "runs" / "two").iterdir()) == [f"{NAME}.trec", "other.trec"]
    again = groupgt.evaluate(tmp_path / "qa.jsonl", folder / "runs" / "one" / "other.trec", ["recall@2"])
    assert again.name == "other"
    assert again["recall@2"] > 0.5
    assert (folder / "means.csv").read_text().splitlines()[0] == "dataset,run,by,slice,metric,mean,queries"


def test_a_folder_is_found_from_above(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    latest = small(tmp_path)
    call = ("evaluate", "--dataset", "one", "-m", "recall@2")
    told = [printed(capsys, call[0], way, *call[1:])[0] for way in (latest, latest.parent, latest.parent.parent)]
    assert told[0] == told[1] == told[2]


def test_a_role_has_one_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small(tmp_path)
    columns = ("--columns", "doc_id=a", "--columns", "doc_id=b")
    _, err = printed(capsys, "check", tmp_path / "qa.jsonl", *columns, status=2)
    assert "--columns doc_id: expected one value, found 'a' and 'b'; keep one; if two files use different names" in err


def test_a_folder_that_was_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder alone is enough, where hits are decided by ids; texts are shown where the corpus is found."""
    latest = small(tmp_path)
    call = ("misses", latest, "--dataset", "one", "--system", NAME, "--policy", "missing=zero")
    out, _ = printed(capsys, *call)
    assert out.startswith(f"{NAME} completes 2 of 3 queries at 10. It misses 1 of ")
    assert "d: Dogs are welcome." in out
    moved = tmp_path / "elsewhere" / "deep" / "small"
    shutil.copytree(latest.parent, moved)
    out, _ = printed(capsys, "misses", moved / "latest", *call[2:])
    assert "Dogs" not in out
    assert "\n  q2  0 of 1 group  dogs?\n    ✗ group 1  no results  d\n" in out
    # What explains a query reads the same folder.
    assert out.endswith(f"see one: groupgt explain {moved / 'latest'} --dataset one --system {NAME} --query q2\n")
    shutil.rmtree(latest.parent)
    for way in (moved, moved / (moved / "latest").read_text().strip()):
        assert printed(capsys, "misses", way, *call[2:])[0] == out.replace(str(moved / "latest"), str(way))


def kept_means(latest: Path, dataset: str) -> dict[tuple[str, str], float]:
    """The means of one data set by run and metric, as means.csv has them."""
    text = (latest.parent / latest.read_text().strip() / "means.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(io.StringIO(text))
    return {(row["run"], row["metric"]): float(row["mean"]) for row in rows if row["dataset"] == dataset}


@pytest.mark.parametrize("labeller", ["", ", labeller: {use: text, with: {method: contained}}"], ids=["id", "text"])
def test_policy_and_labeller_are_those_of_the_run(
    labeller: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    latest = small(tmp_path, labeller)
    for dataset in ("one", "two"):
        out, _ = printed(capsys, "evaluate", latest, "--dataset", dataset, "--format", "json")
        runs = json.loads(out)["runs"]
        assert {run["policy"]["missing"] for run in runs} == {"skip"}
        assert {run["labeller"].split()[0].split("(")[0] for run in runs} == {"text" if labeller else "id"}
        means = {(run["run"], name): row["mean"] for run in runs for name, row in run["metrics"].items()}
        assert means == kept_means(latest, dataset)


def test_explain_depth_and_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    latest = small(tmp_path)
    out, _ = printed(capsys, "explain", latest, "--dataset", "one", "--system", NAME, "--query", "q1")
    assert "recall.coverage@2 = 0.5000" in out
    assert "b: Ferry: nine." in out
    out, _ = printed(capsys, "depth", latest, "--dataset", "one", "--share", "0.5", "--format", "csv")
    rows = {row["run"]: row["results"] for row in csv.DictReader(io.StringIO(out))}
    assert rows == {NAME: "2", "other": "1"}  # of the two queries that each has answered
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    out, _ = printed(capsys, "power", latest, "--dataset", "one", "-m", "recall@2", "--format", "json")
    (row,) = json.loads(out)["rows"]
    assert (row["system"], row["alpha"]) == (NAME, 0.2)


def test_what_a_labeller_read_and_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    latest = small(tmp_path, ", labeller: {use: text, with: {corpus: corpus.jsonl}}")
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "changed"}\n')
    _, err = printed(capsys, "evaluate", latest, "--dataset", "one", status=2)
    assert "the text labeller read corpus.jsonl, which is missing or has changed" in err
    out, _ = printed(capsys, "evaluate", latest, "--dataset", "one", "--labeller", "id", "--format", "json")
    assert {run["labeller"] for run in json.loads(out)["runs"]} == {"id"}


def test_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    latest, truth = small(tmp_path), tmp_path / "qa.jsonl"
    folder = latest.parent / latest.read_text().strip()
    saved, run = folder / "truth" / "one.jsonl", folder / "runs" / "one" / f"{file_name(NAME)}.trec"
    for call, told in (
        ((latest,), "has the data sets one, two; choose one with --dataset"),
        ((latest, "--dataset", "on"), "expected one or two, found 'on'"),
        ((latest, "--dataset", "one", "--system", "othr"), "(did you mean 'other'"),
        ((latest, truth, "--dataset", "one"), "a result folder already contains runs; select them with --system"),
        ((truth,), "RUNS: expected the runs to measure, or a result folder in place of TRUTH"),
        ((truth, truth, "--system", "other"), "--system: requires a result folder"),
        ((truth, truth, "--dataset", "one"), "--dataset: requires a result folder"),
        ((truth, latest), f"found a result folder; choose a run in it, such as {run}, or pass the folder alone"),
        ((latest, latest, "--dataset", "one"), f"{saved} before={run} after={run}"),
        ((latest, "--dataset", "one", "--with", "x=1"), "--with: the result folder already sets the labeller"),
    ):
        assert told in printed(capsys, "misses", *call, status=2)[1]
    _, err = printed(capsys, "check", truth, latest, status=2)
    assert err.rstrip().endswith(f"such as {run}")
    printed(capsys, "misses", saved, f"before={run}", f"after={run}")
    _, err = printed(capsys, "explain", latest, "--dataset", "one", "--query", "q1", status=2)
    assert "expected one system, found" in err


def test_folders_that_are_not_whole(tmp_path: Path) -> None:
    latest = small(tmp_path)
    folder = latest.parent / latest.read_text().strip()
    (folder / "runs" / "one" / "other.trec").unlink()
    reopened = ResultFolder.opened(folder, "one")
    # It was read from a file, which is where it was.
    assert dict(reopened.runs)["other"].name == "other.jsonl"
    (tmp_path / "other.jsonl").write_text("")
    with pytest.raises(groupgt.DataError, match="does not contain the run of 'other'"):
        _ = ResultFolder.opened(folder, "one").runs
    (folder / "truth" / "one.jsonl").unlink()
    with pytest.raises(groupgt.DataError, match="run the experiment again"):
        reopened.truth(reopened.policy)


AGENT = """
version: 1
name: agent
convention: coverage
datasets:
  one: {ground_truth: qa.jsonl}
systems:
  rows: {use: results, with: {path: rows.csv}}
  lists: {use: results, with: {path: lists.jsonl}}
evaluate: {metrics: [recall, complete@2calls, mrr]}
"""


@pytest.mark.parametrize("policy", ["penalize", "drop"])
def test_runs_of_an_agent_keep_their_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str) -> None:
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TRUTH), encoding="utf-8")
    # By score alone, q1 would begin with c.
    (tmp_path / "rows.csv").write_text("qid,doc_id,score,call\nq1,c,9,3\nq1,a,2,1\nq1,e,1,2\nq1,a,7,2\nq3,a,1,1\n")
    lists = {"qid": "q1", "retrieved_ids": ["a", "c"], "retrieved_calls": [1, 2]}
    (tmp_path / "lists.jsonl").write_text(json.dumps(lists) + "\n")
    (tmp_path / "agent.yaml").write_text(AGENT)
    outcome = run_experiment(tmp_path / "agent.yaml", changes=[f"evaluate.policy={{duplicates: {policy}}}"])
    assert outcome.folder is not None
    kept = outcome.folder / "runs" / "one"
    assert sorted(file.name for file in kept.iterdir()) == ["lists.jsonl", "rows.jsonl"]
    first = json.loads((kept / "rows.jsonl").read_text().splitlines()[0])
    assert first == {
        "qid": "q1",
        "retrieved_ids": ["a", "a", "e", "c"],
        "retrieve_scores": [2.0, 7.0, 1.0, 9.0],
        "retrieved_calls": [1, 2, 2, 3],
    }
    out, err = printed(capsys, "evaluate", outcome.folder, "--format", "json")
    assert err == ""
    for run in json.loads(out)["runs"]:
        means = outcome.evaluations["one"][run["run"]].means
        assert list(means.values()) == [row["mean"] for row in run["metrics"].values()]


def test_systems_without_calls_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TRUTH), encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "ferry"}\n')
    text = AGENT.replace("{ground_truth: qa.jsonl}", "{ground_truth: qa.jsonl, corpus: corpus.jsonl}")
    (tmp_path / "agent.yaml").write_text(
        f"{text.split('systems:')[0]}systems: {{bm25: {{use: bm25}}}}\nevaluate: {{metrics: [complete@2calls]}}\n"
    )
    _, err = printed(capsys, "run", tmp_path / "agent.yaml", status=2)
    assert "a budget in calls needs the call number of every result" in err
