"""Lines that survive: each is there or not, and what a process that is gone has left is taken over by the next."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from groupgt.store.files import owner
from groupgt.store.journal import ENDING, QUIET_S, Journal, Journals

VALUES = [{"rows": [["q", ["a"], None]]}, ["key", 0.5], "text\n"]


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep" / "a")
    assert list(journal.lines()) == []
    journal.append(*VALUES[:2])
    journal.append(VALUES[2])
    assert list(journal.lines()) == VALUES
    journal.remove()
    journal.remove()
    assert list(journal.lines()) == []


def test_a_line_that_is_cut_off_is_as_if_it_had_not_been_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a")
    journal.append(*VALUES)
    whole = (tmp_path / "a").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "a").write_bytes(whole[:length])
        lines = list(journal.lines())
        assert lines == VALUES[: len(lines)]
        journal.append("next")
        assert list(journal.lines()) == [*lines, "next"]


@pytest.mark.skipif(os.name == "nt", reason="nothing tells there whether a process is gone")
def test_what_a_process_that_is_gone_has_left_is_taken_over_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from groupgt.store.journal import Journals\n"
        "Journals(Path(sys.argv[1]), 'name').taken_over().append('of another')"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)  # our own interpreter
    (file,) = tmp_path.iterdir()
    assert owner() not in file.name
    mine = Journals(tmp_path, "name").taken_over()
    assert list(mine.lines()) == ["of another"]
    assert [path.name for path in tmp_path.iterdir()] == [f"name.{owner()}{ENDING}"]
    assert list(Journals(tmp_path, "name").taken_over().lines()) == ["of another"]
    assert list(Journals(tmp_path, "other").taken_over().lines()) == []


@pytest.mark.skipif(os.name == "nt", reason="nothing tells there whether a process is gone")
def test_what_another_process_writes_is_left_to_it(tmp_path: Path) -> None:
    host = owner().rpartition("-")[0]
    running = tmp_path / f"name.{host}-{os.getppid()}{ENDING}"
    elsewhere = tmp_path / f"name.another-1{ENDING}"
    for path in (running, elsewhere):
        Journal(path).append("theirs")
    assert Journals(tmp_path, "name").left_behind() == []
    old = time.time() - QUIET_S - 1
    os.utime(elsewhere, (old, old))
    os.utime(running, (old, old))
    assert [journal.path for journal in Journals(tmp_path, "name").left_behind()] == [elsewhere]
    assert list(Journals(tmp_path, "name").taken_over().lines()) == ["theirs"]
    assert running.exists()


def test_the_newest_of_several_is_taken_over(tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f"name.another-{number}{ENDING}"
        Journal(path).append(number)
        os.utime(path, (number, number))
    assert list(Journals(tmp_path, "name").taken_over().lines()) == [2]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_one_process_left_is_continued_and_no_other(tmp_path: Path) -> None:
    for number in range(2):
        Journal(tmp_path / f"name.another-{number}{ENDING}").append(number)
    mine = Journals(tmp_path, "name").adopted("another-0")
    assert list(mine.lines()) == [0]
    assert mine.owner == owner()
    assert sorted(path.name.partition(".")[2] for path in tmp_path.iterdir()) == sorted(
        [f"another-1{ENDING}", f"{owner()}{ENDING}"]
    )
    assert list(Journals(tmp_path, "other").adopted("another-0").lines()) == []
    assert Journals(tmp_path, "other").own.written == 0


def test_without_a_path_nothing_is_stored() -> None:
    journal = Journal(None)
    journal.append({"a": 1})
    assert list(journal.lines()) == []
