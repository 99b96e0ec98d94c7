"""Folders named by their time stand beside earlier ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.results.folder import folders_of
from groupgt.store.stamped import write_stamped


def put(path: Path) -> None:
    path.write_text("x")


WRITERS = {"manifest.json": put, "deep/a.txt": put}


def test_folders_stand_beside_earlier_ones(tmp_path: Path) -> None:
    made = {write_stamped(tmp_path / "runs", "abc", WRITERS) for _ in range(4)}
    assert len(made) == 4
    assert all((folder / "deep" / "a.txt").read_text() == "x" for folder in made)
    assert (tmp_path / "runs" / (tmp_path / "runs" / "latest").read_text().strip()).is_dir()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(groupgt.DataError, match="cannot write"):
        write_stamped(tmp_path / "file", "abc", {})


def test_a_name_of_the_newest_that_names_no_folder_is_refused(tmp_path: Path) -> None:
    folder = write_stamped(tmp_path / "runs", "aa", WRITERS)
    (tmp_path / "runs" / "latest").write_text("20260101T000000-lost\n")
    with pytest.raises(groupgt.DataError, match="expected a result folder"):
        folders_of([tmp_path / "runs" / "latest"])
    assert folders_of([tmp_path / "runs"]) == [folder]
