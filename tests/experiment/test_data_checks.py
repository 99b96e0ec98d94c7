"""`groupgt check experiment.yaml`: every file that it names, as its data sets read them, and nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.data_checks import check_experiment

# Two data sets in other columns; results as distances, in trials, of a stage, at a URL; and systems that need code.
EXPERIMENT = """\
version: 1
name: files
convention: coverage
datasets:
  dev: {ground_truth: truth.jsonl, corpus: corpus.jsonl, columns: {qid: number}, where: {split: dev}}
  test: {ground_truth: truth.jsonl, corpus: corpus.jsonl, columns: {qid: number}, where: {split: test}, limit: 1}
systems:
  far: {use: results, scores: ascending, with: {path: "{dataset}.trec"}, only: [dev]}
  tried: {use: results, with: {path: tried.jsonl}, answers: answers.csv, stages: {first: first.trec}}
  away: {use: results, with: {path: "https://example.invalid/run.trec"}, only: [test]}
  search: bm25
  mine: {use: python, with: {target: "nothing_there:search"}}
  program: {use: command, with: {command: [no-such-program]}}
evaluate: {metrics: [recall], k: [2]}
output: {folder: out}
"""


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [("q1", "dev", [["a"], ["b"]]), ("q2", "test", [["c"]]), ("q3", "test", [["a"], ["a", "b"]])]
    files = {
        "truth.jsonl": jsonl(
            *({"number": qid, "query": qid, "split": split, "retrieval_gt": groups} for qid, split, groups in rows)
        ),
        "corpus.jsonl": jsonl(*({"doc_id": name, "contents": f"text of {name}"} for name in "abcd")),
        "dev.trec": "q1 Q0 a 1 0.1 t\nq1 Q0 d 2 0.2 t\n",
        "tried.jsonl": jsonl(*({"qid": f"q{n}", "trial": t, "results": ["a", "d"]} for n in (1, 2) for t in (1, 2))),
        "first.trec": "q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq2 Q0 c 1 1 t\n",
        "answers.csv": "qid,correct\nq1,1\nq2,0\n",
        "experiment.yaml": EXPERIMENT,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "experiment.yaml"


def test_distances_of_a_stage_and_names_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text(jsonl({"qid": "q1", "retrieval_gt": [["a"]]}))
    Path("r.csv").write_text("qid,doc_id,score\nq1,d,0.9\nq1,a,0.1\n")
    systems = "systems: {s: {use: results, scores: ascending, with: {path: r.csv}, stages: {cut: r.csv@1}}}"
    text = f"version: 1\nname: e\ndatasets: {{d: {{ground_truth: t.jsonl}}}}\n{systems}\nevaluate: {{metrics: [mrr]}}\n"
    Path("e.yaml").write_text(text)
    # The distances in a stage's file are those of its system: `a`, which is nearest, is first.
    assert [each.covered for each in groupgt.run_experiment("e.yaml").stages["d"]["s"].stages] == [1, 1]
    assert check_experiment(Path("e.yaml")).fails == {}
    Path("e.yaml").write_text(text.replace("r.csv}", "r.csv, columns: {doc_id: nope}}"))
    with pytest.raises(groupgt.GroupgtError, match="there is no 'nope' column"):
        groupgt.run_experiment("e.yaml")


def test_two_texts_of_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [("q1", "one"), ("q2", " two "), ("q3", None)]
    Path("t.jsonl").write_text(jsonl(*({"qid": q, "query": text, "retrieval_gt": [["a"]]} for q, text in texts)))
    Path("q.jsonl").write_text(
        jsonl(*({"qid": q, "query": text} for q, text in (("q1", "1"), ("q2", "two"), ("q3", "3"))))
    )
    Path("r.jsonl").write_text(jsonl(*({"qid": q, "retrieved_ids": ["a"]} for q, _ in texts)))
    systems = "systems: {s: {use: results, with: {path: r.jsonl}}}\nevaluate: {metrics: [mrr]}\n"
    Path("e.yaml").write_text(
        f"version: 1\nname: e\ndatasets: {{d: {{ground_truth: t.jsonl, queries: q.jsonl}}}}\n{systems}"
    )
    with pytest.warns(groupgt.GroupgtWarning, match="1 query has different text in the ground truth, such as 'q1'"):
        groupgt.run_experiment("e.yaml")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def status(*words: str) -> Any:
    with pytest.raises(SystemExit) as end:
        main(["check", *words])
    return end.value.code


def test_it_finds_what_check_finds_of_each_data_set_alone(experiment: Path) -> None:
    found = check_experiment(experiment)
    assert found.unchecked == ["dataset 'test': the results of 'away', which are at a URL"]
    how: dict[str, Any] = {"corpus": "corpus.jsonl", "truth_columns": {"qid": "number"}}
    stored = {"tried": "tried.jsonl", "tried: first": "first.trec"}
    dev = groupgt.check(
        "truth.jsonl", {"far": "dev.trec", **stored}, where={"split": "dev"}, scores={"dev": "ascending"}, **how
    )
    test = groupgt.check("truth.jsonl", stored, where={"split": "test"}, limit=1, **how)
    assert found.checks == {"dev": dev, "test": test}
    assert found.fails == {}
    # The groups of q3, one inside the other, are beyond the limit.
    assert [each.count for each in test.findings["truth.jsonl"] if "inside another" in each.what] == [0]
    assert not (experiment.parent / "out").exists()


def test_each_file_can_fail_the_check(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "experiment.yaml"])
    assert capsys.readouterr().out.count("✓ No problems") == 2
    for file, old, new, dataset, what, where in (
        ("corpus.jsonl", '"c"', '"C"', "test", "ids of the ground truth that are not in the corpus", "truth.jsonl"),
        ("dev.trec", "q1 Q0 d", "q1 Q0 a", "dev", "queries with a repeated result", "far"),
        ("experiment.yaml", "scores: ascending, ", "", "dev", "queries whose ranks contradict their scores", "far"),
        ("first.trec", "q1 Q0 b 2 1", "q1 Q0 a 2 1", "dev", "queries with a repeated result", "tried: first"),
    ):
        before = Path(file).read_text(encoding="utf-8")
        edit(Path(file), old, new)
        assert status("experiment.yaml", "--format", "json") == 1
        found = json.loads(capsys.readouterr().out)
        assert found["fails"] == {dataset: {what: 1}}
        assert status("experiment.yaml", "--format", "csv") == 1
        row = capsys.readouterr().out.partition(f"\n{dataset},{where},{what},")[2]
        assert row.startswith("1,")
        Path(file).write_text(before, encoding="utf-8")


def test_the_errors_of_all_data_sets_are_told_together(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(experiment, "test: {ground_truth: truth.jsonl", "test: {ground_truth: other.jsonl")
    Path("other.jsonl").write_text('{"number": "q2", "query": "q2", "split": "test", "retrieval_gt": 5}\n')
    edit(Path("truth.jsonl"), '[["a"], ["b"]]', "7")
    assert status("experiment.yaml") == 2
    told = capsys.readouterr().err
    assert "truth.jsonl:1: " in told
    assert "other.jsonl:1: " in told
    # So are those of all results and answers.
    edit(Path("truth.jsonl"), "7", '[["a"], ["b"]]')
    edit(Path("other.jsonl"), "5", '[["c"]]')
    edit(Path("dev.trec"), "1 0.1", "near")
    edit(Path("first.trec"), "Q0 a 1", "a 1")
    edit(Path("answers.csv"), "q2,0", "q2,2")
    assert status("experiment.yaml") == 2
    told = capsys.readouterr().err
    assert [place in told for place in ("dev.trec:1: ", "first.trec:1: ", "answers.csv:3: ")] == [True, True, True], (
        told
    )


def test_the_report_for_build_pages(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(Path("dev.trec"), "q1 Q0 d", "q1 Q0 a")
    assert status("experiment.yaml", "--junit", "checks.xml") == 1
    (suite,) = ET.parse("checks.xml").getroot()
    assert (suite.get("name"), suite.get("failures")) == ("files", "1")
    (case,) = (case for case in suite if case.find("failure") is not None)
    assert (case.get("classname"), case.get("name")) == ("dev.far", "queries with a repeated result")
    assert case.findtext("failure") == "queries with a repeated result: 1 in far"
    noted = {(case.get("classname"), case.get("name")): case.findtext("system-out") for case in suite}
    assert noted["dev.truth.jsonl", "queries with two identical groups"] is None
    # Ground truth alone, without failures.
    main(["check", "truth.jsonl", "--columns", "qid=number", "--junit", "checks.xml"])
    (suite,) = ET.parse("checks.xml").getroot()
    assert (suite.get("name"), suite.get("failures"), suite.get("errors")) == ("truth.jsonl", "0", "0")
    (case,) = (case for case in suite if case.find("system-out") is not None)
    assert case.findtext("system-out") == "queries with a group inside another: 1 in truth.jsonl (q3)"
    # An error replaces an earlier report, but no file that is read.
    edit(Path("truth.jsonl"), '[["c"]]', "5")
    assert status("experiment.yaml", "--junit", "checks.xml") == 2
    assert "truth.jsonl:2: " in (ET.parse("checks.xml").getroot().findtext("testsuite/testcase/error") or "")
    before = Path("corpus.jsonl").read_bytes()
    assert status("truth.jsonl", "--corpus", "corpus.jsonl", "--junit", "corpus.jsonl") == 2
    assert Path("corpus.jsonl").read_bytes() == before
    assert status("truth.jsonl", "--junit", "truth.jsonl") == 2
    assert Path("truth.jsonl").read_text(encoding="utf-8").startswith("{")
    capsys.readouterr()


def test_the_experiment_says_how_files_are_read(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("experiment.yaml", "dev.trec", "--where", "split=dev", "--near-duplicates") == 2
    told = capsys.readouterr().err
    names = ("[RUNS]...", "--where", "--near-duplicates")
    assert [name for name in names if name not in told.partition(": does not apply to an experiment file")[0]] == []
    edit(Path("dev.trec"), "q1 Q0 d", "q1 Q0 a")
    main(["check", "experiment.yaml", "--exit-zero", "--details"])


def test_code_that_labels_is_not_run(experiment: Path) -> None:
    edit(experiment, "evaluate: {", 'evaluate: {labeller: {use: code, with: {target: "nothing_there:same"}}, ')
    found = check_experiment(experiment)
    assert found.unchecked[-1] == "dataset 'test': results, because their labeller runs code"
    assert {name: list(check.findings) for name, check in found.checks.items()} == {
        "dev": ["truth.jsonl"],
        "test": ["truth.jsonl"],
    }
