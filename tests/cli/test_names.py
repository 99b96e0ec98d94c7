"""What runs are called: NAME=PATH, or the names of their files, whatever other files there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.names import named
from tests.snapshots import Snapshot


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "runs").mkdir()
    for name, first in (("input.uwmt", "a"), ("input.pircs", "x")):
        (tmp_path / "runs" / f"{name}.txt").write_text(f"q1 Q0 {first} 1 2 t\nq2 Q0 b 1 1 t\n")
    return tmp_path


def names(capsys: pytest.CaptureFixture[str], *runs: str) -> list[str]:
    main(["evaluate", "qrels", *runs, "-m", "map", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    return [run["run"] for run in told["runs"]]


@pytest.mark.usefixtures("folder")
def test_a_name_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "Waterloo=runs/input.uwmt.txt", "runs/input.pircs.txt") == ["Waterloo", "input.pircs"]
    assert names(capsys, "one=runs/input.uwmt.txt", "two=runs/input.uwmt.txt") == ["one", "two"]


def test_a_path_may_hold_the_sign(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "k1=0.9.txt").write_text("q1 Q0 a 1 2 t\n")
    (folder / "b=1").mkdir()
    (folder / "b=1" / "run.txt").write_text("q1 Q0 a 1 2 t\n")
    assert names(capsys, "k1=0.9.txt", "b=1/run.txt") == ["k1=0.9", "run"]


@pytest.mark.usefixtures("folder")
def test_another_file_renames_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "runs/input.uwmt.txt") == ["input.uwmt"]
    assert names(capsys, "runs/input.uwmt.txt", "runs/input.pircs.txt") == ["input.uwmt", "input.pircs"]
    assert names(capsys, "runs") == ["input.pircs", "input.uwmt"]


def put(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("q1 Q0 a 1 2 t\n")


def test_files_in_folders_and_globs_are_named_by_their_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "all/one/bm25.trec.gz", "all/two/bm25.trec", "all/two/deep/dense.run", "all/x[1].trec")
    assert names(capsys, "all/two/*") == ["bm25"]
    assert names(capsys, "./all/*/*.trec") == ["two/bm25"]
    expected = ["one/bm25", "two/bm25", "two/deep/dense", "x[1]"]
    assert names(capsys, "all/**/*") == expected
    assert names(capsys, str(folder / "all" / "**" / "*")) == expected
    found = groupgt.evaluate_runs("qrels", ["all/*/bm25*", "runs"], ["map"])
    assert list(found) == ["one/bm25", "two/bm25", "input.pircs", "input.uwmt"]
    assert list(groupgt.evaluate_runs("qrels", "all/x[1].trec", ["map"])) == ["x[1]"]


@pytest.mark.parametrize(
    ("runs", "files"),
    [
        (["new/run.trec", "old/run.trec"], "new/run.trec and old/run.trec"),
        (["new", "old/run.trec"], "new/run.trec and old/run.trec"),
        (["new/run.trec", "./new/run.trec"], "new/run.trec and new/run.trec"),
        (["run=elsewhere/other.csv", "new/run.trec"], "elsewhere/other.csv and new/run.trec"),
        (["both/*"], "both/a.csv and both/a.trec"),
    ],
)
def test_two_files_of_one_name(runs: list[str], files: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder, "new/run.trec", "old/run.trec", "both/a.trec", "elsewhere/other.csv")
    for path in ("both/a.csv", "elsewhere/other.csv"):
        (folder / path).write_text("qid,doc_id,score\nq1,a,1\n")
    for command in ("evaluate", "compare"):
        with pytest.raises(SystemExit) as end:
            main([command, "qrels", *runs, "-m", "map"])
        told = capsys.readouterr()
        assert (end.value.code, told.out) == (2, "")
        assert f"{files}: duplicate run name" in told.err
        assert "name the runs (NAME=PATH" in told.err


def test_a_wrong_baseline_is_told_before_anything_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    put(folder, "one.trec", "two.trec")
    (folder / "qrels").write_text("no qrels\n")
    for command in (["compare"], ["power"], ["plot", "means", "-o", "x.json"]):
        with pytest.raises(SystemExit) as end:
            main([*command, "qrels", "one.trec", "two.trec", "-m", "map", "--baseline", "tow"])
        assert end.value.code == 2
        snapshot(capsys.readouterr().err)
    with snapshot.raises(groupgt.ConfigError):
        groupgt.compare("qrels", ["one.trec", "two.trec"], ["map"], baseline=3)  # type: ignore[arg-type]  # a mistake


@pytest.mark.usefixtures("folder")
def test_the_name_of_one_run_stands_above_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    for style in ("simple", "github"):
        main(["evaluate", "qrels", "runs/input.uwmt.txt", "-m", "map", "--format", style])
        assert capsys.readouterr().out.startswith("run input.uwmt\n\n")
    assert str(groupgt.evaluate("qrels", "runs/input.uwmt.txt", ["map"])).startswith("run input.uwmt\n\nmetric ")
    # Lists in memory have no name.
    assert str(groupgt.evaluate("qrels", {"q1": ["a"]}, ["map"])).startswith("metric ")


@pytest.mark.usefixtures("folder")
def test_tags_name_runs(folder: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    (folder / "runs" / "input.uwmt.txt").write_text("q1 Q0 a 1 2 uwmtCR\nq2 Q0 b 1 1 uwmtCR\n")
    (folder / "runs" / "input.pircs.txt").write_text("q1 Q0 x 1 2 pircsT\nq2 Q0 b 1 1 pircsTd\n")
    assert names(capsys, "runs/input.uwmt.txt", "mine=runs/input.pircs.txt", "--names", "tag") == ["uwmtCR", "mine"]
    main(["evaluate", "qrels", "runs/input.pircs.txt", "-m", "map", "--names", "tag", "--format", "json"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["runs"][0]["run"] == "pircsT"
    snapshot(printed.err)
    (folder / "run.json").write_text('{"q1": {"a": 1.0}}')
    with pytest.raises(SystemExit):
        main(["evaluate", "qrels", "run.json", "-m", "map", "--names", "tag"])
    snapshot(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("paths", "names_of_paths"),
    [
        (["a.x.res", "a.y.res"], ["a.x", "a.y"]),
        (["bm25.results", "dense.results"], ["bm25.results", "dense.results"]),
        (["bm25.a", "bm25"], ["bm25.a", "bm25"]),
        (["bm25-k1=0.9", "s3://bucket/bm25-k1=0.4.trec"], ["bm25-k1=0.9", "bm25-k1=0.4"]),
        (["one/run.trec", "two/*.parquet"], ["run", "two"]),
    ],
)
def test_names_of_files(paths: list[str], names_of_paths: list[str]) -> None:
    assert [name for name, _ in named(("", path) for path in paths)] == names_of_paths


@pytest.mark.usefixtures("folder")
def test_one_name_for_many_files(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    with pytest.raises(SystemExit):
        names(capsys, "mine=runs")
    snapshot(capsys.readouterr().err)
    with pytest.raises(SystemExit):
        names(capsys, "mine=absent.txt")
    assert "absent.txt" in capsys.readouterr().err
