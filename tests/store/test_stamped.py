"""Folders named by their time stand in the order in which they were written, whatever the clock says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import groupgt
from groupgt.store import stamped
from groupgt.store.stamped import age_of, write_stamped


def put(path: Path) -> None:
    path.write_text("x")


WRITERS = {"manifest.json": put, "deep/a.txt": put}


class Clock(datetime):
    """A clock that is set by hand."""

    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        return cls.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr(stamped, "datetime", Clock)
    monkeypatch.setattr(Clock, "time", Clock.time)
    return Clock


def written(folder: Path) -> list[Path]:
    """The folders as their ages sort them."""
    return sorted((path for path in folder.iterdir() if path.is_dir()), key=age_of)


def test_folders_stand_beside_earlier_ones(tmp_path: Path) -> None:
    made = {write_stamped(tmp_path / "runs", "abc", WRITERS) for _ in range(4)}
    assert len(made) == 4
    assert all((folder / "deep" / "a.txt").read_text() == "x" for folder in made)
    assert (tmp_path / "runs" / (tmp_path / "runs" / "latest").read_text().strip()).is_dir()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(groupgt.DataError, match="cannot be written"):
        write_stamped(tmp_path / "file", "abc", {})


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, clock: type[Clock]) -> None:
    first = write_stamped(tmp_path, "zz", WRITERS)
    clock.time -= timedelta(days=3)
    with pytest.warns(
        groupgt.GroupgtWarning, match="the clock says 20251230T030405; the new one is named 20260102T0304"
    ):
        second = write_stamped(tmp_path, "aa", WRITERS)
    with pytest.warns(groupgt.GroupgtWarning):
        third = write_stamped(tmp_path, "bb", WRITERS)
    assert [path.name for path in written(tmp_path)] == [first.name, second.name, third.name]
    assert (tmp_path / "latest").read_text() == f"{third.name}\n"
    clock.time += timedelta(days=4)
    fourth = write_stamped(tmp_path, "aa", WRITERS)
    assert fourth.name == "20260103T030405-aa"
    assert written(tmp_path)[-1] == fourth


def test_clocks_that_differ_a_little_are_not_spoken_of(tmp_path: Path, clock: type[Clock]) -> None:
    first = write_stamped(tmp_path, "zz", WRITERS)
    clock.time -= timedelta(seconds=20)
    second = write_stamped(tmp_path, "aa", WRITERS)
    assert written(tmp_path) == [first, second]


@pytest.mark.parametrize("name", ["99999999T999999-x", "99991231T235959-x"])
def test_a_name_that_is_no_time_stops_nobody(tmp_path: Path, clock: type[Clock], name: str) -> None:
    (tmp_path / name).mkdir()
    assert write_stamped(tmp_path, "aa", WRITERS).name == "20260102T030405-aa"


def test_a_link_that_lies_where_the_newest_is_named_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "folder").mkdir()
    for target in ("precious", "folder", "nowhere"):
        (tmp_path / "runs").mkdir(exist_ok=True)
        (tmp_path / "runs" / "latest").unlink(missing_ok=True)
        (tmp_path / "runs" / "latest").symlink_to(tmp_path / target)
        folder = write_stamped(tmp_path / "runs", "aa", WRITERS)
        assert not (tmp_path / "runs" / "latest").is_symlink()
        assert (tmp_path / "runs" / "latest").read_text() == f"{folder.name}\n"
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert list((tmp_path / "folder").iterdir()) == []
