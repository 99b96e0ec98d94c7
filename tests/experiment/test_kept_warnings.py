"""Warnings that change the meaning of numbers: they stand beside the numbers, not on standard error alone."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from groupgt.cli.main import main
from groupgt.errors import GroupgtWarning, KeptWarning, collecting, warn
from groupgt.report.experiment import page_of, summary
from groupgt.report.gates import junit_report
from groupgt.report.run import run_experiment

FILE = """
version: 1
name: ferry
datasets: {d: {ground_truth: truth.jsonl, corpus: corpus.jsonl}}
systems: {stored: {use: results, with: {path: stored.trec}}, live: {use: bm25}}
evaluate: {metrics: [recall@2], depth: 5}
gate: [{system: stored, metric: recall@2, min: 0}]
output: {folder: out, formats: [json, report]}
"""
# The old index had a passage "harbour"; `pier` has no text any more.
OUTSIDE = "system 'stored': 1 of the 3 ids it returns is not in the corpus: 'harbour'"
BLANK = "dataset 'd': 1 judged passage has no contents: 'pier'"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    def lines(name: str, *rows: object) -> None:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    lines("corpus.jsonl", {"doc_id": "fares", "contents": "ferry fares"}, {"doc_id": "pier", "contents": ""})
    lines(
        "truth.jsonl",
        {"qid": "q1", "query": "ferry fares", "retrieval_gt": [["fares"]], "kind": "full"},
        {"qid": "q2", "query": "ferry pier", "retrieval_gt": [["pier"]], "kind": "empty"},
    )
    (tmp_path / "stored.trec").write_text("q1 Q0 fares 1 2 x\nq1 Q0 harbour 2 1 x\nq2 Q0 pier 1 1 x\n")
    (tmp_path / "ferry.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path / "ferry.yaml"


def test_a_folder_remembers_a_system_that_failed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FILE.replace("[json, report]", "[csv, json]").replace(
        "live: {use: bm25}", "live: {use: python, with: {target: 'live:search'}, on_error: skip}"
    )
    file.write_text(text, encoding="utf-8")
    (file.parent / "live.py").write_text("def search(query, top_k):\n    raise RuntimeError('closed')\n")
    with pytest.warns(GroupgtWarning):
        outcome = run_experiment(file, allow_code=True)
    assert list(outcome.failed["d"]) == ["live"]
    capsys.readouterr()
    assert not main(["report", str(outcome.folder)])
    assert "warning: live failed and has no results" in " ".join("".join(capsys.readouterr()).split())


def test_a_data_set_without_results_blocks_the_run(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`e` has other queries than the results, so its only system fails."""
    other = {"qid": "x", "query": "other", "retrieval_gt": [["fares"]]}
    (file.parent / "other.jsonl").write_text(json.dumps(other) + "\n", encoding="utf-8")
    text = FILE.replace("path: stored.trec}}, live: {use: bm25}", "path: stored.trec}, on_error: skip}")
    text = text.replace("gate: [{system: stored, metric: recall@2, min: 0}]\n", "").replace("[json, report]", "[csv]")
    both, alone = ("datasets: {d: {ground_truth: truth.jsonl}, ", "datasets: {")
    for start, folders in ((alone, 0), (both, 1)):
        names = f"{start}e: {{ground_truth: other.jsonl}}}}"
        file.write_text(
            text.replace("datasets: {d: {ground_truth: truth.jsonl, corpus: corpus.jsonl}}", names), encoding="utf-8"
        )
        with pytest.raises(SystemExit, match="2"):
            main(["run", str(file), "--junit", str(file.with_name("j.xml"))])
        assert len(list((file.parent / "out").glob("ferry/*/manifest.json"))) == folders
        (case,) = ET.parse(file.with_name("j.xml")).getroot().iter("testcase")
        assert (case.get("classname"), [each.tag for each in case]) == ("e.stored", ["error"])
    capsys.readouterr()
    assert not main(["report", str(file.parent / "out")])
    assert "recall@2" in capsys.readouterr().out


def test_a_folder_whose_baseline_failed_makes_no_other_comparison(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run compared nothing, so neither does its folder, unless another baseline is named."""
    text = FILE.replace("live: {use: bm25}", "live: {use: bm25}, gone: {use: python, with: {target: 'gone:search'}}")
    text = text.replace("gone:search'}", "gone:search'}, on_error: skip") + "compare: {baseline: gone}\n"
    text = text.replace("gate: [{system: stored, metric: recall@2, min: 0}]\n", "")
    file.write_text(text.replace("[json, report]", "[csv, json]"), encoding="utf-8")
    (file.parent / "gone.py").write_text("def search(query, top_k):\n    raise RuntimeError('closed')\n")
    with pytest.warns(GroupgtWarning):
        outcome = run_experiment(file, allow_code=True)
    folder, unnamed = str(outcome.folder), "no baseline to test against"
    assert unnamed in outcome.text()
    capsys.readouterr()
    assert not main(["report", folder])
    assert unnamed in capsys.readouterr().out
    # Power needs SciPy.
    for command in ("compare", "power") if find_spec("scipy") else ("compare",):
        with pytest.raises(SystemExit, match="2"):
            main([command, folder])
        told = capsys.readouterr().err
        assert "the baseline gone has no results on data set 'd'; choose another with --baseline: " in told
        assert not main([command, folder, "--baseline", "live"])
        assert not main([command, folder, "--system", "stored", "--system", "live"])
    capsys.readouterr()


def test_they_stand_wherever_the_numbers_do(file: Path) -> None:
    with pytest.warns(GroupgtWarning):
        outcome = run_experiment(file)
    assert outcome.warnings == {"d": [KeptWarning("blank passages", BLANK), KeptWarning("unknown ids", OUTSIDE)]}
    assert outcome.folder is not None
    told = [f"warning: {text}." for text in (BLANK, OUTSIDE)]
    assert all(line in outcome.text() and f"- {line}" in summary(outcome) for line in told)
    (dataset,) = page_of(outcome)["datasets"]
    on_page = ["".join(each["parts"]) for each in dataset["notes"] if each["kind"] == "doubt"]
    assert on_page[:2] == [f"{BLANK}.", f"{OUTSIDE}."]
    assert "not in the corpus" in (outcome.folder / "report.html").read_text(encoding="utf-8")
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    assert results["datasets"]["d"]["warnings"] == [
        {"kind": "blank passages", "text": BLANK},
        {"kind": "unknown ids", "text": OUTSIDE},
    ]
    assert ET.fromstring(junit_report(outcome)).findtext("testsuite/system-out") == f"{BLANK}\n{OUTSIDE}"


def test_without_any_nothing_is_said(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["run", str(file), "--only", "live", "--set", "datasets.d.where={kind: [full]}", "--junit", str(tmp_path / "g")]
    )
    assert "warning" not in "".join(capsys.readouterr())
    assert ET.parse(tmp_path / "g").find("testsuite/system-out") is None


def test_only_warnings_with_a_kind_are_collected_and_each_once() -> None:
    warnings: list[KeptWarning] = []

    def several() -> None:
        warn("before", "no hits")
        with collecting(warnings):
            warn("inside", "no hits")
            warn("inside", "no hits")
            warn("of no account")
        warn("after", "no hits")

    with pytest.warns(GroupgtWarning) as issued:
        several()
    assert warnings == [KeptWarning("no hits", "inside")]
    assert len(issued) == 5
