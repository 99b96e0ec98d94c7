"""Files are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.store import files
from groupgt.store.files import write_folder


def test_a_failed_write_keeps_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    files.write_text(target, "old")

    def half(path: Path) -> None:
        path.write_text("ha")
        raise OSError(28, "No space left on device")

    with pytest.raises(groupgt.DataError, match=r"a\.txt: cannot be written: No space"):
        files.written_whole(target, half)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_killed_write_keeps_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    files.write_text(target, "old")

    def killed(path: Path) -> None:
        path.write_text("ha")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.written_whole(target, killed)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "old"


def test_folders_stand_beside_earlier_ones(tmp_path: Path) -> None:
    def put(path: Path) -> None:
        path.write_text("x")

    made = {write_folder(tmp_path / "runs", "abc", {"manifest.json": put, "deep/a.txt": put}) for _ in range(4)}
    assert len(made) == 4
    assert all((folder / "deep" / "a.txt").read_text() == "x" for folder in made)
    assert (tmp_path / "runs" / (tmp_path / "runs" / "latest").read_text().strip()).is_dir()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(groupgt.DataError, match="cannot be written"):
        write_folder(tmp_path / "file", "abc", {})
