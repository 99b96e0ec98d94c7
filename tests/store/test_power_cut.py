"""When the power is cut, what was not synced is lost, in any order: nothing takes its place before it is synced."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.starter import write_starter
from groupgt.store import files
from groupgt.store.cache import Cache, key_of
from groupgt.store.files import PART
from groupgt.store.journal import Journal
from groupgt.store.stamped import write_stamped
from groupgt.store.verdicts import Verdicts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which file a descriptor stands for")
State = bytes | frozenset[str]


class Disk:
    """What is surely on the disk: of each file its bytes, of each folder its names, as they last were synced."""

    def __init__(self) -> None:
        self.synced: dict[str, State] = {}
        self.renames = 0

    def sync(self, path: Path) -> None:
        self.synced[str(path)] = state_of(path)

    def check(self, path: Path) -> None:
        """Nothing is there that the power could take away."""
        for each in [path, *path.rglob("*")] if path.is_dir() else [path]:
            assert self.synced.get(str(each)) == state_of(each), f"{each} is not synced"

    def move(self, source: Path, target: Path) -> None:
        """What has been synced under one name is synced under the other."""
        self.check(source)
        self.renames += 1
        for name in [name for name in self.synced if f"{name}/".startswith(f"{source}/")]:
            self.synced[f"{target}{name.removeprefix(str(source))}"] = self.synced.pop(name)


def state_of(path: Path) -> State:
    """The bytes of a file; the names in a folder, but for parts, which nobody believes."""
    if path.is_dir():
        return frozenset(name for name in os.listdir(path) if not name.startswith(PART))
    return path.read_bytes()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk, fsync, rename, replace = Disk(), os.fsync, Path.rename, Path.replace

    def synced(handle: int) -> None:
        fsync(handle)
        disk.sync(Path(os.readlink(f"/proc/self/fd/{handle}")))

    def moved(move: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def watched(source: Path, target: Path) -> Path:
            disk.move(source, target)
            return move(source, target)

        return watched

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", moved(rename))
    monkeypatch.setattr(Path, "replace", moved(replace))
    yield disk
    assert disk.renames or sys.exc_info()[0] is not None


def put(path: Path) -> None:
    path.write_text("x" * 10_000)


def test_files(tmp_path: Path, disk: Disk) -> None:
    files.write_atomically(tmp_path / "deep" / "deeper" / "a.txt", put)
    disk.check(tmp_path)


def test_folders(tmp_path: Path, disk: Disk) -> None:
    def write(folder: Path) -> None:
        (folder / "qrels").mkdir()
        put(folder / "qrels" / "a.txt")
        put(folder / "b.txt")

    files.write_folder(tmp_path / "beir", write)
    disk.check(tmp_path)


def test_result_folders(tmp_path: Path, disk: Disk) -> None:
    for _ in range(2):
        write_stamped(tmp_path / "runs", "aa", {"manifest.json": put, "runs/deep/a.txt": put, "runs/b.txt": put})
        disk.check(tmp_path)


def test_the_cache(tmp_path: Path, disk: Disk) -> None:
    for number in range(3):
        Cache(tmp_path / "cache").write(key_of({"a": number}), {}, [["q", ["a"], None]])
        disk.check(tmp_path)


def test_verdicts(tmp_path: Path, disk: Disk) -> None:
    disk.renames = 1  # lines are added, nothing is renamed
    verdicts = Verdicts(Journal(tmp_path / "cache" / "verdicts" / "a.jsonl"))
    verdicts.prepare()
    for number in range(3):
        verdicts.keep({str(number): 1.0})
        disk.check(tmp_path)


@pytest.mark.slow
def test_an_experiment(tmp_path: Path, disk: Disk) -> None:
    file = write_starter(tmp_path / "new")[0]
    outcome = groupgt.run_experiment(file)
    assert outcome.folder is not None
    disk.check(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\0" * 26, b"20260101T000000-lost\n"], ids=["empty", "zeros", "lost"])
def test_a_name_of_the_newest_that_was_lost_is_not_believed(tmp_path: Path, content: bytes) -> None:
    """What an older version wrote, or another file system gave back."""
    from groupgt.results.folder import folders_of

    folder = write_stamped(tmp_path / "runs", "aa", {"manifest.json": put})
    (tmp_path / "runs" / "latest").write_bytes(content)
    with pytest.raises(groupgt.DataError, match=r"latest: expected the name|expected a result folder"):
        folders_of([tmp_path / "runs" / "latest"])
    assert folders_of([tmp_path / "runs"]) == [folder]


@pytest.mark.parametrize("lost", [lambda data: b"", lambda data: bytes(len(data)), lambda data: data[: len(data) // 2]])
def test_bytes_of_an_entry_that_were_lost_are_not_believed(tmp_path: Path, lost: Callable[[bytes], bytes]) -> None:
    cache, verdicts = Cache(tmp_path / "cache"), tmp_path / "verdicts.jsonl"
    key = key_of({"a": 1})
    cache.write(key, {}, [["q", ["a"], None]])
    cache.path(key).write_bytes(lost(cache.path(key).read_bytes()))
    assert cache.read(key) is None
    journal = Journal(verdicts)
    journal.append(["a", 0.5], ["b", 0.25])
    verdicts.write_bytes(lost(verdicts.read_bytes()))
    assert [*journal.lines()] in ([], [["a", 0.5]])
