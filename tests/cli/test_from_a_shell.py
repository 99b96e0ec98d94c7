"""A process of its own: its exit status, pipes, and disks without room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input import GZIP, METRICS, TREC, TRUTH, put, swap


def shell(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "groupgt", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    rest: dict[str, Any] = {
        "stderr": subprocess.PIPE,
        "encoding": "utf-8",
        "env": environment,
        "timeout": 60,
        "check": False,
    }
    return subprocess.run(command, **rest, **options)  # noqa: PLW1510


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(swap(TREC, b"2.0 t", b"2.0"), (":2", "6 columns", "found 5"), id="columns"),
        # Read in this process, the same files are told of in `tests/formats`.
        *(
            pytest.param(data, words, id=name, marks=pytest.mark.property)
            for name, data, words in (
                ("score", swap(TREC, b"2.0", b"1_000"), (":2", "query 'q1'", "'1_000'")),
                ("UTF-16", TREC.decode().encode("utf-16"), (":1", "UTF-16")),
                ("gzip", GZIP[:-4], ("gzip", "cut off")),
            )
        ),
    ],
)
def test_from_a_shell(data: bytes, words: tuple[str, ...], truth: Path) -> None:
    path = put(truth.parent / "run.trec", data)
    found = shell("evaluate", truth, path, stdout=subprocess.PIPE)
    assert (found.returncode, found.stdout) == (2, "")
    assert all(word in found.stderr for word in (str(path), *words))
    assert "Traceback" not in found.stderr


@pytest.mark.faults
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs /dev/stdin")
@pytest.mark.parametrize("side", ["truth", "run"])
def test_a_pipe_is_read_whole_or_refused(side: str, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    plain = shell("evaluate", truth, run, *METRICS, stdout=subprocess.PIPE)
    pipe = "/dev/stdin"
    found = shell(
        "evaluate",
        *((pipe, run) if side == "truth" else (truth, pipe)),
        *METRICS,
        stdout=subprocess.PIPE,
        input=TRUTH if side == "truth" else TREC.decode(),
    )
    assert "Traceback" not in found.stderr
    if found.returncode == 0:
        assert found.stdout == plain.stdout
    else:
        assert (found.returncode, found.stdout) == (2, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_no_room_for_the_table(truth: Path) -> None:
    with Path("/dev/full").open("w") as full:
        found = shell("evaluate", truth, put(truth.parent / "run.trec", TREC), *METRICS, stdout=full)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "space" in found.stderr


@pytest.mark.faults
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("name", ["values.csv", "values.jsonl", "values.parquet"])
def test_no_room_for_a_file(name: str, truth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    # Where nothing can be written, what was reached cannot be either, and coverage.py would say so.
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    run, path = put(truth.parent / "run.trec", TREC), truth.parent / name
    found = shell(
        "evaluate", truth, run, *METRICS, "--per-query", path, stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)),
    )  # fmt: skip
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert str(path) in found.stderr
    assert sorted(each.name for each in truth.parent.iterdir()) == ["run.trec", "truth.jsonl"]
