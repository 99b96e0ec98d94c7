"""Locks of open files: one handle at a time, until it is closed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from groupgt.store.lock import lock


def test_one_handle_at_a_time(tmp_path: Path) -> None:
    one, two = (os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert [lock(one), lock(two), lock(one)] == [True, False, True]
    assert os.write(one, b"x") == 1
    os.close(one)
    assert lock(two)
    os.close(two)


@pytest.mark.skipif(os.name != "posix", reason="flock")
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with (tmp_path / "file").open("w") as file, pytest.raises(OSError, match="No locks available"):
        lock(file.fileno())
