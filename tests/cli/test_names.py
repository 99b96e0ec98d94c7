"""What runs are called: NAME=PATH, else what tells their files apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupgt.cli.main import main
from groupgt.formats.names import distinct_names


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
def test_what_all_files_share_tells_none_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "runs/input.uwmt.txt", "runs/input.pircs.txt") == ["uwmt", "pircs"]
    assert sorted(names(capsys, "runs")) == ["pircs", "uwmt"]
    # One alone keeps its name.
    assert names(capsys, "runs/input.uwmt.txt") == ["input.uwmt"]


@pytest.mark.usefixtures("folder")
def test_tags_name_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "runs" / "input.uwmt.txt").write_text("q1 Q0 a 1 2 uwmtCR\nq2 Q0 b 1 1 uwmtCR\n")
    (folder / "runs" / "input.pircs.txt").write_text("q1 Q0 x 1 2 pircsT\nq2 Q0 b 1 1 pircsTd\n")
    assert names(capsys, "runs/input.uwmt.txt", "mine=runs/input.pircs.txt", "--names", "tag") == ["uwmtCR", "mine"]
    main(["evaluate", "qrels", "runs/input.pircs.txt", "-m", "map", "--names", "tag", "--format", "json"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)["runs"][0]["run"] == "pircsT"
    assert "has 2 tags, pircsT and pircsTd; the first names the run" in printed.err
    (folder / "run.json").write_text('{"q1": {"a": 1.0}}')
    with pytest.raises(SystemExit):
        main(["evaluate", "qrels", "run.json", "-m", "map", "--names", "tag"])
    assert "run.json: expected a TREC run, whose sixth column is its tag" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("paths", "named"),
    [
        (["a.x.res", "a.y.res"], ["x", "y"]),
        (["bm25.results", "dense.results"], ["bm25", "dense"]),
        (["bm25.a", "bm25"], ["bm25.a", "bm25"]),
        (["bm25-k1=0.9", "bm25-k1=0.4"], ["bm25-k1=0.9", "bm25-k1=0.4"]),
        (["k1=0.9", "k1=1.9"], ["k1=0.9", "k1=1.9"]),
        (["one/run.trec", "two/run.trec"], ["one/run", "two/run"]),
    ],
)
def test_names_of_files(paths: list[str], named: list[str]) -> None:
    assert distinct_names(paths) == named


@pytest.mark.usefixtures("folder")
def test_one_name_for_many_files(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        names(capsys, "mine=runs")
    assert "expected one file as the run 'mine', found a folder or a pattern" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        names(capsys, "mine=absent.txt")
    assert "absent.txt" in capsys.readouterr().err
