"""The mistakes that newcomers make, and what is said of each: what is wrong and the way out, once."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.retrievers import base, http

TRUTH = '{"qid": "q1", "retrieval_gt": [["a", "b"], ["c"]]}\n{"qid": "q2", "retrieval_gt": [["d"]]}\n'
RUN = "q1 Q0 a 1 2 t\nq1 Q0 c 2 1 t\nq2 Q0 d 1 1 t\n"
EXPERIMENT = """version: 1
name: mine
datasets:
  mine:
    ground_truth: truth.jsonl
systems:
  stored:
    use: results
    with: {path: run.trec}
evaluate:
  metrics: [recall]
  k: [1]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("truth.jsonl").write_text(TRUTH)
    Path("run.trec").write_text(RUN)
    Path("experiment.yaml").write_text(EXPERIMENT)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    """What a command says on standard error, in one line; it ends with this status."""
    ended = 0
    try:
        main(list(arguments))
    except SystemExit as end:
        ended = int(end.code or 0)
    out, err = capsys.readouterr()
    assert ended == status, out + err
    return " ".join(err.split())


def mean(capsys: pytest.CaptureFixture[str], *arguments: str) -> float:
    """The recall that `evaluate` gives."""
    main(["evaluate", *arguments, "-m", "recall", "--format", "json"])
    value: float = json.loads(capsys.readouterr().out)["runs"][0]["metrics"]["recall"]["mean"]
    return value


def rows() -> list[dict[str, object]]:
    return [json.loads(line) for line in TRUTH.splitlines()]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_is_read_in_place_of_lines(
    folder: Path, capsys: pytest.CaptureFixture[str], indent: int | None
) -> None:
    Path("array.json").write_text(json.dumps(rows(), indent=indent))
    results = [{"qid": "q1", "retrieved_ids": ["a", "c"]}, {"qid": "q2", "retrieved_ids": ["d"]}]
    Path("results.json").write_text(json.dumps(results, indent=indent))
    assert mean(capsys, "array.json", "results.json") == mean(capsys, "truth.jsonl", "run.trec") == 1
    Path("array.json").write_text(json.dumps([rows()[0], 5, {"qid": "q2"}], indent=indent))
    text = said(capsys, "evaluate", "array.json", "run.trec")
    assert "expected a JSON object, found 5" in text
    assert "expected the key retrieval_gt, found qid" in text
    assert "array.json:1:" in text if indent is None else "array.json:14:" in text


@pytest.mark.parametrize("text", ['[{"qid": "q1"', '[{"qid": "q1"} {}]', '[{"qid": "q1"}] x', '[{"qid": "q1",}]'])
def test_a_damaged_array_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    Path("array.json").write_text(text)
    assert "array.json:1: expected" in said(capsys, "evaluate", "array.json", "run.trec")


def test_runs_and_qrels_of_ranx(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("qrels.json").write_text(json.dumps({"q1": {"a": 1, "c": 2, "x": 0}, "q2": {"d": 1}}))
    Path("run.json").write_text(json.dumps({"q1": {"x": 0.1, "a": 0.9, "c": 0.8}, "q2": {"d": 1.5}}, indent=1))
    truth, run = groupgt.read_ground_truth("qrels.json"), groupgt.read_run("run.json")
    assert truth["q1"] == [["a"], [{"id": "c", "grade": 2}], [{"id": "x", "grade": 0}]]
    assert (run.name, list(run)) == ("run", ["q1", "q2"])
    assert groupgt.evaluate(truth, run, ["recall@2", "precision@3"]).means == {
        "recall@2": 1,
        "precision@3": pytest.approx((2 / 3 + 1 / 3) / 2),
    }
    Path("whole.json").write_text(json.dumps({"q1": {"a": 2, "x": 1}, "q2": {}}))
    assert groupgt.evaluate("qrels.json", "whole.json", ["recall@1"])["recall@1"] == 0.25
    Path("lists.json").write_text(json.dumps({"q1": ["a", "c"], "q2": ["d"]}))
    Path("groups.json").write_text(json.dumps({"q1": [["a", "b"], ["c"]], "q2": [["d"]]}))
    assert mean(capsys, "groups.json", "lists.json") == 1
    Path("run.json").write_text(json.dumps({"q1": {"a": "high"}, "q2": {"d": 0.5}, "q3": {"": 0.5}}))
    text = said(capsys, "evaluate", "truth.jsonl", "run.json", "--run-format", "json")
    assert "query 'q1': expected a finite number as the score of 'a', found 'high'" in text
    assert "query 'q3': the document id '' is blank" in text


def test_columns_by_other_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.csv").write_text("who,document,score\nq1,a,1\nq1,b,0.5\n")
    text = said(capsys, "evaluate", "truth.jsonl", "run.csv")
    assert "run.csv:1: the columns qid, doc_id are missing: expected qid, doc_id, score (or rank)" in text
    assert (
        "found who, document, score; rename document to doc_id, or add --columns doc_id=document (columns: in" in text
    )
    Path("truth.csv").write_text("question_id,chunk\nq1,a\n")
    text = said(capsys, "evaluate", "truth.csv", "run.trec")
    assert "truth.csv:1: the 'retrieval_gt' column is missing: expected qid and retrieval_gt (a row per query)" in text
    assert "found question_id, chunk" in text


def test_keys_by_other_names(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"question_id": f"q{number}", "hits": ["a"]}) for number in range(500)]
    Path("run.jsonl").write_text("\n".join(lines))
    text = said(capsys, "evaluate", "truth.jsonl", "run.jsonl")
    assert "run.jsonl:1: expected the keys qid and retrieved_ids (a line per query), or qid, doc_id and score" in text
    assert "found question_id, hits; rename hits to retrieved_ids, or add --columns retrieved_ids=hits (" in text
    assert text.count("expected") == 1


def test_a_data_file_is_no_experiment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "truth.jsonl: this is a data file, not an experiment" in said(capsys, "run", "truth.jsonl")
    Path("data.yaml").write_bytes(b"PAR1\x00\x01")
    assert "this is a data file, not an experiment" in said(capsys, "run", "data.yaml")
    Path("utf16.yaml").write_bytes(EXPERIMENT.encode("utf-16"))
    assert "utf16.yaml:1:1: expected UTF-8, found UTF-16; save the file as UTF-8" in said(capsys, "run", "utf16.yaml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  metrics: [recall]", "   metrics: [recall]", "12:3: line 12 is indented by 2, the lines around it by 3"),
        ("    with: {p", "     with: {p", "9:10: line 9 is indented by 5, the line before it by 4"),
        ("    use: results", "\tuse: results", "8:1: found a tab; indent with spaces"),
        ("name: mine", "name: mine: yours", "2:11: found ': ' within a value; put the text in quotes"),
        ("name: mine", 'name: "mine', "the quote opened here is not closed (line 2)"),
        ("[recall]", "[recall", "expected a comma or ] : the list opened here is not closed (line 11)"),
        ("name: mine", "name: @mine", "a value cannot begin with this character; put the text in quotes"),
        ("name: mine", "name", "line 2 has no colon after its key"),
    ],
)
def test_yaml_in_words_of_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, words: str
) -> None:
    Path("experiment.yaml").write_text(EXPERIMENT.replace(old, new, 1))
    text = said(capsys, "run", "experiment.yaml", "--dry-run")
    assert words in text
    assert "block" not in text


def test_metrics_in_one_line_of_yaml(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.yaml").write_text(EXPERIMENT.replace("[recall]", "recall, rbp(p=0.5), mrr"))
    main(["run", "experiment.yaml", "--format", "csv"])
    cells = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert [cell[4] for cell in cells[1:]] == ["recall.autorag@1", "rbp(p=0.5)@1", "mrr.autorag@1"]
    assert groupgt.evaluate("truth.jsonl", "run.trec", "recall, mrr").means == {"recall": 1, "mrr": 0.875}


def test_k_as_text(folder: Path) -> None:
    with pytest.raises(groupgt.MetricError, match=re.escape("found '5,10'; write k=[5, 10]")):
        groupgt.evaluate("truth.jsonl", "run.trec", ["recall"], k="5,10")  # type: ignore[arg-type]


def test_k_beside_a_cutoff(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "evaluate", "truth.jsonl", "run.trec", "-m", "recall@5", "-k", "10", status=0)
    assert "warning: k = 10 has no effect, because every metric has its own cutoff or takes none" in text
    assert said(capsys, "evaluate", "truth.jsonl", "run.trec", "-m", "recall@5,ndcg", "-k", "10", status=0) == ""
    Path("experiment.yaml").write_text(EXPERIMENT.replace("[recall]", "[recall@1]"))
    assert "k = 1 has no effect" in said(capsys, "run", "experiment.yaml", status=0)


def test_results_as_mappings_with_other_keys(folder: Path) -> None:
    cell = {"url": "a", "score": 1}
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.evaluate("truth.jsonl", {f"q{number}": [cell] for number in (1, 2)}, ["recall"])
    assert "pairs, {id: score}, or mappings with the key id; found mappings with the keys url, score" in str(
        caught.value
    )


def test_runs_without_names() -> None:
    run = {"q": ["a"]}
    with pytest.raises(groupgt.ConfigError, match=r"2 of 2 runs have no name; pass \{name: run\}"):
        groupgt.compare({"q": [["a"]]}, [run, run], ["recall"])


@pytest.mark.parametrize(("retries", "words"), [(0, ""), (1, ", 2 times")])
def test_a_server_that_refuses(retries: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/search"
        server = http.Http(base.Setting(base.Corpus([], [])), http.Options(url, retries=retries))
        with pytest.raises(groupgt.RetrieverError) as caught:
            server.retrieve(["?"], 1)
    assert str(caught.value) == f"{url}: connection refused{words}; is the server running at this address?"


def test_a_command_of_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'evaluate'?" in said(capsys, "evalute")


@pytest.mark.parametrize(("bound", "hint"), [("min: 60", "; for 60%, write 0.6"), ("max_drop: -0.1", "")])
def test_a_gate_beyond_its_metric(folder: Path, capsys: pytest.CaptureFixture[str], bound: str, hint: str) -> None:
    gate = f"gate:\n  - {{system: stored, metric: recall@1, {bound}}}\n"
    Path("experiment.yaml").write_text(EXPERIMENT + gate)
    text = said(capsys, "run", "experiment.yaml", "--dry-run")
    assert (f"recall lies between 0 and 1, found 60{hint}" if hint else "at least 0") in text


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.csv"])
def test_an_empty_truth_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    Path(name).write_text("" if name.endswith("jsonl") else "qid,group,doc_id\n")
    assert f"{name}: the ground truth is empty; expected at least one query" in said(
        capsys, "evaluate", name, "run.trec"
    )
    with pytest.raises(groupgt.DataError, match="the ground truth is empty"):
        groupgt.evaluate(pl.DataFrame(schema={"qid": pl.String, "retrieval_gt": pl.List(pl.List(pl.String))}), {}, [])


def test_out_is_understood_as_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "experiment.yaml", "--out", "there"])
    assert (folder / "there").is_dir()
    capsys.readouterr()
    main(["rechunk", "--help"])
    text = capsys.readouterr().out
    assert "--output PATH" in text
    assert "--out " not in text


def test_a_missing_file_names_similar_ones_and_no_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "evaluate", "truht.jsonl", "run.trec").endswith("not found (did you mean 'truth.jsonl'?)")
    assert said(capsys, "check", "truth.jsonl", "--corpus", "corpus.jsonl").endswith("corpus.jsonl: file not found")
    text = EXPERIMENT.replace("    ground_truth: truth.jsonl", "    ground_truth: truht.jsonl")
    Path("experiment.yaml").write_text(text)
    assert said(capsys, "run", "experiment.yaml").endswith("truht.jsonl (did you mean 'truth.jsonl'?)")


def test_an_option_that_reads_one_file_is_not_repeated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--corpus", "a.jsonl", "--corpus", "b.jsonl")
    way = "--corpus: expected one file, found 2; keep one, or join the files"
    assert way in said(capsys, "evaluate", "truth.jsonl", "run.jsonl", *words)


def test_an_unknown_query_shows_some_that_exist(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = "groupgt: query 'nope' is not in the ground truth, which has 'q1', 'q2'"
    assert said(capsys, "explain", "truth.jsonl", "run.trec", "--query", "nope") == expected


def test_a_missing_version_says_what_to_write(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.yaml").write_text(EXPERIMENT.replace("version: 1\n", ""))
    assert said(capsys, "run", "experiment.yaml").endswith("version: required key is missing; add `version: 1`")
