"""Files are there whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import groupgt
from groupgt.store import files


def test_a_failed_write_keeps_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    files.write_text(target, "old")

    def half(path: Path) -> None:
        path.write_text("ha")
        raise OSError(28, "No space left on device")

    with pytest.raises(groupgt.DataError, match=r"cannot write .*a\.txt: No space"):
        files.write_atomically(target, half)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_killed_write_keeps_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    files.write_text(target, "old")

    def killed(path: Path) -> None:
        path.write_text("ha")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(target, killed)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="nothing tells there whether a process is gone")
def test_a_process_is_gone_once_it_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "part"
    path.touch()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not files.is_gone(files.owner(process.pid), path)
    process.communicate()
    assert files.is_gone(files.owner(process.pid), path)


def test_a_name_that_is_no_file_name_becomes_one() -> None:
    assert [files.file_name(name) for name in ("bm25[k1=0.9,b=0.4]", "a/b")] == ["bm25[k1=0.9,b=0.4]", "a-b-c14cdd"]
    assert [files.slug(name) for name in ("bm25", "bm25[k1=0.9]")] == ["bm25", "bm25-k1-0-9-a3d217"]
