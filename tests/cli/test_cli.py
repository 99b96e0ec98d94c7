"""The command line as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from groupgt.cli.main import COMMANDS, main
from groupgt.formats.known import RUNS, TRUTHS
from tests.snapshots import Snapshot


def call(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    """What a call prints to stdout and stderr."""
    found = 0
    try:
        main(list(arguments))
    except SystemExit as end:
        found = int(end.code or 0)
    out, err = capsys.readouterr()
    assert found == status, err
    assert "Traceback" not in err
    return out, err


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_of_every_command(capsys: pytest.CaptureFixture[str], command: str) -> None:
    out, err = call(capsys, *([command] if command else []), "--help")
    assert out.startswith("Usage:")
    assert err == ""
    if not command:
        assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize(("built", "says"), [(None, "no"), (object(), "yes")])
def test_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, built: object, says: str) -> None:
    import groupgt
    from groupgt import native

    monkeypatch.setattr(native, "built", built)
    assert call(capsys, "--version") == (f"groupgt {groupgt.__version__}\nnative: {says}\n", "")


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "groupgt", "list", "metrics", "mrr"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert "mrr.coverage" in done.stdout
    assert done.stderr == ""


def test_evaluate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = call(
        capsys, "evaluate", "qa.jsonl", "bm25.trec", "-m", "recall,mrr", "-k", "1,3", "-m", "ndcg.coverage@5"
    )
    assert err == ""
    assert "recall" in out
    # q1 meets one of two groups in the first result, q2 none: (1/2 + 0)/2
    assert "0.2500" in out
    assert "2 queries: evaluated 2" in out


def test_evaluate_without_metrics_gives_autorags_six(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = json.loads(call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "--format", "json")[0])
    assert list(out["runs"][0]["metrics"]) == ["precision", "recall", "f1", "mrr", "map", "ndcg"]


def test_several_runs_in_one_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@1", "--format", "csv")[0]
    rows = list(csv.reader(io.StringIO(out)))
    assert rows == [["run", "recall@1"], ["bm25", "0.25"], ["other", "0.0"]]
    assert call(capsys, "evaluate", "qa.jsonl", "*.trec", "-m", "recall@1", "--format", "csv")[0] == out


def test_several_conventions_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "evaluate",
        "qa.jsonl",
        "bm25.trec",
        "-m",
        "mrr,rbp@3",
        "--convention",
        "autorag,trec,coverage",
        "--format",
        "csv",
    ]
    rows = list(csv.reader(io.StringIO(call(capsys, *arguments)[0])))
    assert rows[0] == ["metric", "autorag", "trec", "coverage"]
    # q1: (1 + 1/3)/2, 1, (1 + 1/3)/(1 + 1/2); q2: 1/2 in all three
    assert [float(cell) for cell in rows[1][1:]] == pytest.approx([(2 / 3 + 0.5) / 2, 0.75, (8 / 9 + 0.5) / 2])
    assert rows[2][0] == "rbp@3"
    assert rows[2][1] == rows[2][2] == rows[2][3]


def test_slices(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = json.loads(
        call(
            capsys, "evaluate", "qa.jsonl", "bm25.trec", "-m", "recall@1", "--by", "type,n_groups", "--format", "json"
        )[0]
    )
    assert [(each["by"], each["value"], each["means"]["recall@1"]) for each in out["runs"][0]["slices"]] == [
        ("type", "x", 0.5), ("type", "y", 0.0), ("n_groups", "1", 0.0), ("n_groups", "2", 0.5),
    ]  # fmt: skip
    assert "did you mean 'type'" in call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "--by", "typ", status=2)[1]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_per_query_files_hold_full_doubles(folder: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "other.trec", "-m", "mrr", "--per-query", f"out.{ending}")
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}[ending]
    frame = read(folder / f"out.{ending}")
    assert frame.columns == ["run", "qid", "mrr"]
    assert frame["mrr"].to_list() == [(1 + 1 / 3) / 2, 0.5, (1 / 3) / 2, 0.5]
    assert "ends in" in call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "--per-query", "out.xls", status=2)[1]


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "qa.jsonl", "bm25.trec", "--query", "q1", "-m", "mrr", "--convention", "autorag,coverage"]
    out = call(capsys, *arguments, "--corpus", "corpus.jsonl")[0]
    assert "a: text of a" in out
    assert "= (1/1 + 1/3) / 2" in out
    assert "= (1/1 + 1/3) / (1/1 + 1/2)" in out
    found = json.loads(call(capsys, *arguments, "--format", "json")[0])
    assert found["results"][2] == {"rank": 3, "id": "c", "hits": [2]}
    assert found["metrics"][0]["value"] == pytest.approx(2 / 3)
    assert "did you mean 'q1'" in call(capsys, "explain", "qa.jsonl", "bm25.trec", "--query", "q11", status=2)[1]


def test_misses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, "misses", "qa.jsonl", "bm25.trec", "-k", "1", "--corpus", "corpus.jsonl")[0]
    first = "bm25 completes 0 of 2 queries at 1. It misses 2 of 3 groups, both of which come after rank 1."
    assert out.splitlines()[0] == first
    assert "group number" not in out
    assert "group number" in call(capsys, "misses", "qa.jsonl", "bm25.trec", "-k", "1", "--details")[0]
    assert "✗ group 2  rank 3  " in out
    assert "d: text of d" in out
    found = json.loads(
        call(capsys, "misses", "qa.jsonl", "bm25.trec", "-k", "1", "--worst", "1", "--format", "json")[0]
    )
    assert [query["qid"] for query in found["queries"]] == ["q2"]


def test_check(folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    out = call(capsys, "check", "qa.jsonl", "bm25.trec")[0]
    snapshot(out)
    found = json.loads(call(capsys, "check", "qa.jsonl", "bm25.trec", "--format", "json")[0])
    queries = {"what": "queries", "count": 2, "example": "", "suspicious": False, "fails": False}
    assert found["fails"] == {}
    assert queries in found["findings"]["qa.jsonl"]
    assert out.startswith(f"{found['verdict']}\n")
    assert call(capsys, "check", "qa.jsonl", "--format", "csv")[0].startswith("file,finding,count,example")


def test_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, "list", "metrics")[0]
    assert "alpha_ndcg" in out
    assert "note:" in call(capsys, "list", "metrics", "map")[0]
    assert json.loads(call(capsys, "list", "metrics", "Rprec", "--format", "json")[0])["name"] == "r_precision"
    assert len(json.loads(call(capsys, "list", "metrics", "--format", "json")[0])) > 20
    assert "did you mean 'ndcg'" in call(capsys, "list", "metrics", "ndgc", status=2)[1]


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet", "trec-subtopics"])
def test_convert_ground_truth(folder: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    given = ["--truth-format", to] if to == "trec-subtopics" else []
    shape = ["--shape", "subtopics"] if to == "trec-subtopics" else []
    call(capsys, "convert", "qa.jsonl", "out", "--to", to, *shape)
    out = call(capsys, "evaluate", "out", "bm25.trec", "-m", "mrr.autorag", "--format", "json", *given)[0]
    out = out.replace("mrr.autorag", "mrr")
    assert json.loads(out)["runs"][0]["metrics"]["mrr"]["mean"] == ((1 + 1 / 3) / 2 + 0.5) / 2


@pytest.mark.parametrize("to", ["trec", "jsonl", "csv", "parquet"])
def test_convert_results(folder: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    call(capsys, "convert", "bm25.trec", f"again.{to}", "--to", to)
    first = json.loads(call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "--format", "json")[0])["runs"][0]
    second = json.loads(call(capsys, "evaluate", "qa.jsonl", f"again.{to}", "--format", "json")[0])["runs"][0]
    assert first["metrics"] == second["metrics"]


def test_convert_refuses_what_would_be_lost(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "trec-subtopics" in call(capsys, "convert", "qa.jsonl", "out", "--to", "trec", status=2)[1]
    assert not (folder / "out").exists()
    assert "expected trec" in call(capsys, "convert", "bm25.trec", "out", "--to", "beir", status=2)[1]


@pytest.mark.parametrize("name", [name for name in RUNS if name not in TRUTHS])
def test_a_format_of_results_alone_is_not_read_as_ground_truth(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    said = call(capsys, "convert", "qa.jsonl", "out", "--to", "jsonl", "--from", name, status=2)[1]
    assert "qa.jsonl:1: expected" in said


def test_init_and_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, "init", "new")[0]
    assert "groupgt run" in out
    assert "expected" not in call(capsys, "run", "new/experiment.yaml", "--dry-run")[1]
    out, err = call(capsys, "run", "new/experiment.yaml", "--output", "there")
    assert "ndcg" in out
    assert "wrote results to" in err
    assert (folder / "there" / "starter" / "latest").exists()
    found = json.loads(call(capsys, "run", "new/experiment.yaml", "--format", "json")[0])
    assert found["datasets"]["mine"]["best"] == "content-words"
    assert "already exists" in call(capsys, "init", "new", status=2)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", "nope.jsonl", "bm25.trec"], "file not found"),
        (["evaluate", "qa.json", "bm25.trec"], "did you mean 'qa.jsonl'"),
        (["evaluate", "nope.jsonl", "nope.trec", "bm25.trec", "no.trec"], "3 errors"),
        (["agree", "nope.jsonl", "nope.trec", "--annotator", "no.jsonl"], "3 errors"),
        (["rechunk", "nope.jsonl", "--from", "no.csv", "--to", "nor.csv"], "3 errors"),
        (["evaluate", "qa.jsonl", "bm25.trec", "-m", "ndgc,recal"], "2 errors"),
        (["evaluate", "qa.jsonl", "bm25.trec", "-k", "0"], "whole numbers above 0"),
        (["evaluate", "qa.jsonl", "bm25.trec", "--format", "gitub"], "did you mean 'github'"),
        (["evaluate", "qa.jsonl", "bm25.trec", "--policy", "missing=skp"], "did you mean 'skip'"),
        (["evaluate", "qa.jsonl", "bm25.trec", "--convention", "trek"], "did you mean 'trec'"),
        (["evaluate", "qa.jsonl", "bm25.trec", "--run-format", "tsv"], "csv or trec, found 'tsv'"),
        (["evaluate", "qa.jsonl", "bm25.trec", "--labeller", "ids"], "did you mean 'id'"),
        (["evaluate", "qa.jsonl", "bm25.trec", "./bm25.trec"], "duplicate run name"),
        (["evaluate", "bm25.trec", "qa.jsonl"], "expected ground truth"),
        (["evaluate", "qa.jsonl"], "RUNS: expected the runs to measure"),
        (["evaluate", "qa.jsonl", "bm25.trec", "-m", "recall@2000tokens"], "needs the length of every result"),
        (["evalute"], "No such command 'evalute' (did you mean 'evaluate'?)"),
        (["run", "nope.yaml"], "nope.yaml: file not found"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_printed(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    out, err = call(capsys, *arguments, status=2)
    assert out == ""
    assert words in err


CALLS = "qid,doc_id,score,call\nq1,c,9,2\nq1,x,1,1\nq1,a,2,1\nq2,d,5,3\n"


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
def test_convert_keeps_calls(folder: Path, capsys: pytest.CaptureFixture[str], to: str) -> None:
    (folder / "agent.csv").write_text(CALLS)
    _, err = call(capsys, "convert", "agent.csv", f"again.{to}", "--to", to)
    assert "no place" not in err
    asked = ("-m", "recall@1calls,recall@2calls,recall@3calls,mrr", "--format", "csv")
    before = call(capsys, "evaluate", "qa.jsonl", "agent.csv", *asked)[0]
    assert call(capsys, "evaluate", "qa.jsonl", f"again.{to}", *asked)[0].replace("again", "agent") == before
    call(capsys, "convert", f"again.{to}", "back.jsonl", "--to", "jsonl")
    assert [json.loads(line) for line in (folder / "back.jsonl").read_text().splitlines()] == [
        {
            "qid": "q1",
            "retrieved_ids": ["a", "x", "c"],
            "retrieve_scores": [2.0, 1.0, 9.0],
            "retrieved_calls": [1, 1, 2],
        },
        {
            "qid": "q2",
            "retrieved_ids": ["d"],
            "retrieve_scores": [5.0],
            "retrieved_calls": [3],
        },
    ]


def test_convert_says_that_trec_has_no_calls(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    (folder / "agent.csv").write_text(CALLS)
    said = call(capsys, "convert", "agent.csv", "again.trec", "--to", "trec")
    snapshot("".join(map(str, said)))
    lines = (folder / "again.trec").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["a", "x", "c", "d"]


def test_depth_in_calls(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "agent.csv").write_text(CALLS)
    out = call(capsys, "depth", "qa.jsonl", "agent.csv", "--share", "0.1", "--unit", "calls")[0]
    assert "calls" in out
