"""A full disk, and places that cannot be written: said in one line, and nothing is lost that was kept."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

import groupgt
from groupgt.report.run import run_experiment
from groupgt.results import write
from groupgt.store import cache, files
from groupgt.store.stamped import Writer, write_stamped
from tests.faults.trial import (
    POSIX,
    RETRIEVALS,
    call,
    called,
    check_finished,
    check_whole,
    entries,
    experiment,
    newest,
    parts,
    result_folders,
)

# Runs the command line where no file may grow beyond some bytes.
LIMITED = """
import resource, sys
from groupgt.cli.main import main

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
main(sys.argv[2:])
"""


def half(path: Path, data: bytes) -> None:
    """Writes half of it; then the disk is full."""
    path.write_bytes(data[: len(data) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_written(path: Path, data: bytes) -> None:
    files.write_atomically(path, lambda temporary: half(temporary, data))


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def run(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> tuple[str, str]:
    return called(capsys, "run", *arguments, status=status)


@pytest.fixture
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    file = experiment(tmp_path_factory.mktemp("undisturbed"))
    run_experiment(file)
    return newest(file)


def test_no_room_in_the_cache(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "write_bytes", half_written)
        _, err = run(capsys, file)
    assert err.count("groupgt: warning: retrieved results cannot be cached: ") == RETRIEVALS
    assert "No space left on device" in err
    assert newest(file) == expected
    assert entries(file) == {}
    assert parts(file) == []
    assert run_experiment(file).retrieved == RETRIEVALS
    check_finished(file, expected, folders=[2])


@pytest.mark.parametrize("arguments", [(), pytest.param(("--jobs", "2"))], ids=["", "jobs"])
def test_a_file_where_the_cache_should_be(
    tmp_path: Path, expected: dict[str, bytes], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    file = experiment(tmp_path)
    (tmp_path / "cache").write_text("mine", encoding="utf-8")
    _, err = run(capsys, file, *arguments)
    assert "groupgt: warning: retrieved results cannot be cached: " in err
    assert newest(file) == expected
    assert (tmp_path / "cache").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_keeps_older_entries_and_says_that_newer_ones_are_not_kept(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(tmp_path)
    run_experiment(file)
    before = entries(file)
    monkeypatch.setattr(cache, "write_bytes", half_written)
    _, err = run(capsys, file, "--refresh")
    assert err.count("groupgt: warning: retrieved results cannot be cached: ") == RETRIEVALS
    assert entries(file) == before
    check_finished(file, expected, folders=[2])


def test_a_cache_that_can_have_no_such_name(
    tmp_path: Path, expected: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(tmp_path)
    _, err = run(capsys, file, "--set", f"cache={'x' * 300}")
    assert err.count("groupgt: warning: retrieved results cannot be cached: ") == RETRIEVALS
    assert {name: data for name, data in newest(file).items() if name != "manifest.json"} == {
        name: data for name, data in expected.items() if name != "manifest.json"
    }


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs permissions that hold, so not the root user")
@pytest.mark.parametrize("mode", [pytest.param(0o000), 0o500])
def test_a_cache_without_permission(
    tmp_path: Path, expected: dict[str, bytes], capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    file = experiment(tmp_path)
    (tmp_path / "cache").mkdir(mode=mode)
    try:
        _, err = run(capsys, file)
        assert "groupgt: warning: retrieved results cannot be cached: " in err
        assert newest(file) == expected
    finally:
        (tmp_path / "cache").chmod(0o700)


@pytest.mark.parametrize("place", ["out", "out/trial"])
def test_a_file_where_the_results_should_be(
    tmp_path: Path, expected: dict[str, bytes], capsys: pytest.CaptureFixture[str], place: str
) -> None:
    file = experiment(tmp_path)
    stray = tmp_path / place
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("mine", encoding="utf-8")
    _, err = run(capsys, file, status=2)
    assert "cannot write" in err
    assert err.count("\n") == 1
    assert stray.read_text(encoding="utf-8") == "mine"
    stray.unlink()
    assert run_experiment(file).cached == RETRIEVALS
    check_finished(file, expected)


def _writing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The disk is full at the nth file of a result folder."""
    count = iter(range(number))

    def limited(parent: Path, digest: str, writers: Mapping[str, Writer]) -> Path:
        return write_stamped(parent, digest, {name: partial(put, writer) for name, writer in writers.items()})

    def put(writer: Writer, path: Path) -> None:
        if next(count, None) is None:
            full()
        writer(path)

    monkeypatch.setattr(write, "write_stamped", limited)


def _renaming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rename", full)


@pytest.mark.parametrize(
    "fault",
    [
        lambda patch: _writing(patch, 0),
        lambda patch: _writing(patch, 3),
        _renaming,
        lambda patch: patch.setattr("tempfile.mkdtemp", full),
    ],
    ids=["first file", "fourth file", "rename", "folder"],
)
def test_no_room_for_results(
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fault: Callable[[pytest.MonkeyPatch], None],
) -> None:
    file = experiment(tmp_path)
    with monkeypatch.context() as patch:
        fault(patch)
        _, err = run(capsys, file, status=2)
    assert "No space left on device" in err
    assert err.count("\n") == 1
    assert result_folders(file) == []
    assert parts(file) == []
    assert run_experiment(file).cached == RETRIEVALS
    check_finished(file, expected)


def test_no_room_for_the_name_of_the_newest(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = experiment(tmp_path)
    first = run_experiment(file).folder
    assert first is not None
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_bytes", half_written)
        with pytest.raises(groupgt.DataError, match=r"cannot write .*latest: No space left"):
            run_experiment(file)
    assert (first.parent / "latest").read_text(encoding="utf-8").strip() == first.name
    check_whole(file, expected)
    assert parts(file) == []
    run_experiment(file)
    check_finished(file, expected, folders=[3])


@pytest.mark.skipif(not POSIX, reason="only POSIX limits the size of files")
def test_files_that_may_not_grow(tmp_path: Path, expected: dict[str, bytes]) -> None:
    file = experiment(tmp_path)
    _, err = call(1000, "run", file, status=2, code=LIMITED)
    lines = err.splitlines()
    assert len(lines) == RETRIEVALS + 1
    assert all(line.startswith("groupgt: warning: retrieved results cannot be cached: ") for line in lines[:-1])
    assert "cannot write " in lines[-1]
    assert ": File too large" in lines[-1]
    assert entries(file) == {}
    assert result_folders(file) == []
    assert parts(file) == []
    largest = max(map(len, expected.values()))
    _, err = call(largest - 1, "run", file, status=2, code=LIMITED)
    assert err.count("\n") == 1
    assert run_experiment(file).cached == RETRIEVALS
    check_finished(file, expected)
