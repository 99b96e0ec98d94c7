"""A small experiment to be disturbed, and what must hold of its folders whatever befell it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.store.cache import Cache

ROOT = Path(groupgt.__file__).parents[1]
HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
POSIX = os.name == "posix"
# So long may a step take on the slowest machine; nothing waits for it where all is well.
DEADLINE = 120.0

FILE = """\
version: 1
name: trial
convention: coverage
datasets:
  handbook:
    corpus: {corpus}
    ground_truth: {questions}
    where: {{split: dev}}
systems:
{systems}
evaluate:
  depth: 50
  k: [10]
  metrics: [recall, ndcg]
  primary: ndcg@10
  timed: 3
output: {{folder: out, formats: [table, json, csv, runs]}}
cache: cache
"""
SYSTEMS = """\
  plain: bm25
  bm25: {use: bm25, matrix: {k1: [0.9, 1.6]}}
  rrf: {use: rrf, inputs: [plain, "bm25*"]}
"""
RETRIEVALS = 3


def experiment(folder: Path, systems: str = SYSTEMS) -> Path:
    """The experiment in a folder of its own, where its cache and its results go too."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "trial.yaml"
    names = {"corpus": (HANDBOOK / "corpus.jsonl").as_posix(), "questions": (HANDBOOK / "questions.jsonl").as_posix()}
    file.write_text(FILE.format(systems=systems.rstrip("\n"), **names), encoding="utf-8")
    return file


def started(*arguments: object, code: str = "", script: Path | None = None, **options: Any) -> subprocess.Popen[str]:
    """A process that runs the command line with these arguments, or `code` or a script with them."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
    program = [str(script)] if script else ["-c", code] if code else ["-m", "groupgt"]
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Status, output and errors, once the process and all that it started have closed their output."""
    try:
        out, err = process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        with process:
            process.kill()
        raise AssertionError("something still runs that should have ended") from None
    return process.returncode, out, err


def call(*arguments: object, status: int = 0, code: str = "") -> tuple[str, str]:
    """What the command line prints to its output and its errors."""
    found, out, err = ended(started(*arguments, code=code))
    assert found == status, err
    assert "Traceback" not in err
    return out, err


def until(holds: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    """Waits for something that a process is about to do."""
    end = time.monotonic() + DEADLINE
    while not holds():
        assert process.poll() is None, process.communicate()
        if time.monotonic() > end:
            process.kill()
            raise AssertionError("it never came", process.communicate())
        time.sleep(0.01)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a result folder, but for the times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "timings.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def result_folders(file: Path) -> list[Path]:
    """The result folders a reader sees."""
    return sorted(path for path in (file.parent / "out" / "trial").glob("[!.]*") if path.is_dir())


def newest(file: Path) -> dict[str, bytes]:
    """The files of the result folder that `latest` names."""
    parent = file.parent / "out" / "trial"
    return contents(parent / (parent / "latest").read_text(encoding="utf-8").strip())


def entries(file: Path) -> dict[str, bytes]:
    """The entries of the cache, by name."""
    return {path.name: path.read_bytes() for path in sorted((file.parent / "cache").glob("??/*.jsonl.zst"))}


def parts(file: Path) -> list[str]:
    """What is left of writes that were not ended."""
    return [path.relative_to(file.parent).as_posix() for path in file.parent.rglob(".part-*")]


def check_whole(file: Path, expected: dict[str, bytes]) -> None:
    """Every result folder that is there is whole and right, `latest` names one, every entry can be read."""
    for folder in result_folders(file):
        assert contents(folder) == expected
    latest = file.parent / "out" / "trial" / "latest"
    assert not latest.exists() or newest(file) == expected
    cache = Cache(file.parent / "cache")
    for entry in cache.entries():
        assert entry.about, entry.key
        if cache.path(entry.key).exists():  # else it is not whole yet
            assert cache.read(entry.key) is not None


def check_finished(file: Path, expected: dict[str, bytes], folders: Sequence[int] = (1,)) -> None:
    """All is as if nothing had happened; there are as many result folders as `folders` allows."""
    check_whole(file, expected)
    assert newest(file) == expected
    assert len(result_folders(file)) in folders
    assert len(entries(file)) == RETRIEVALS
    assert (file.parent / "cache" / ".gitignore").is_file()
    if POSIX:  # elsewhere nothing tells whether a writer is gone, and what it left is removed after a day
        assert parts(file) == []


def called(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> tuple[str, str]:
    """What a command prints in this process, where it ends with the status expected."""
    found = 0
    try:
        main(list(map(str, arguments)))
    except SystemExit as end:
        found = int(end.code or 0)
    out, err = capsys.readouterr()
    assert found == status, err
    return out, err
