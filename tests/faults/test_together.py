"""Processes that run one file at once, with one cache and one folder for results, do not mix."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupgt.report.run import run_experiment
from tests.faults.trial import (
    POSIX,
    check_finished,
    check_whole,
    contents,
    ended,
    entries,
    experiment,
    newest,
    parts,
    result_folders,
    started,
)

# A system that answers when two processes are there to ask it.
MEETING = """
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def build(corpus):
    (HERE / f"arrived-{os.getpid()}").touch()
    end = time.monotonic() + 60
    while len(list(HERE.glob("arrived-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return lambda queries, k: [[(name, 1 / rank) for rank, name in enumerate(corpus.ids[:k], 1)] for _ in queries]
"""
SYSTEMS = """\
  mine: {use: python, with: {target: "meeting:build"}}
  plain: bm25
  bm25: {use: bm25, with: {k1: 0.9}}
  rrf: {use: rrf, inputs: [mine, plain, bm25]}
"""


@pytest.mark.parametrize("arguments", [(), ("--jobs", "2")], ids=["", "jobs"])
def test_both_retrieve_at_once(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = experiment(tmp_path, SYSTEMS)
    (tmp_path / "meeting.py").write_text(MEETING, encoding="utf-8")
    both = [started("run", file, "--allow-code", *arguments) for _ in range(2)]
    for status, out, err in map(ended, both):
        assert status == 0, err
        assert "rrf" in out
        assert err.count("\n") == 1, err
    assert len(list(tmp_path.glob("arrived-*"))) == 2
    check_finished(file, newest(file), folders=[2])


@pytest.mark.parametrize(
    "arguments", [("--refresh",), ("--refresh", "--jobs", "2"), ()], ids=["refresh", "refresh with jobs", "kept"]
)
def test_beside_one_that_retrieves_again(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = experiment(tmp_path)
    run_experiment(file)
    expected = newest(file)
    both = [started("run", file, *given) for given in (("--refresh",), arguments)]
    for status, _, err in map(ended, both):
        assert status == 0, err
        assert "warning" not in err
    check_finished(file, expected, folders=[3])


def test_many_at_once(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    for status, _, err in map(ended, [started("run", file) for _ in range(5)]):
        assert status == 0, err
    check_finished(file, newest(file), folders=[5])


def test_different_files_share_a_cache(tmp_path: Path) -> None:
    """Each writes its own result folder, and what both need is the same."""
    files = [experiment(tmp_path), tmp_path / "other.yaml"]
    files[1].write_text(
        files[0].read_text(encoding="utf-8").replace("depth: 50", "depth: 50\n  by: [type]"), encoding="utf-8"
    )
    for status, _, err in map(ended, [started("run", file) for file in files]):
        assert status == 0, err
    assert len(entries(files[0])) == 3
    made = [contents(folder) for folder in result_folders(files[0])]
    assert len(made) == 2
    for file in files:
        assert run_experiment(file).retrieved == 0
        assert newest(file) in made


def test_two_folders_in_one_second(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    outcomes = [run_experiment(file) for _ in range(4)]
    assert len({outcome.folder for outcome in outcomes}) == 4
    check_whole(file, newest(file))
    assert parts(file) == [] or not POSIX
