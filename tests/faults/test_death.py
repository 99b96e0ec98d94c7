"""A run that dies leaves nothing half behind, and the same command run again ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from groupgt.report.run import run_experiment
from tests.faults.trial import (
    DEADLINE,
    POSIX,
    RETRIEVALS,
    call,
    check_finished,
    check_whole,
    ended,
    entries,
    experiment,
    newest,
    parts,
    started,
)

# Runs the command line and dies before the change of the disk whose number is given, without a chance to clean up.
DYING = """
import os, pathlib, signal, sys
from groupgt.cli.main import main
from groupgt.experiment import retrieval

log, last, *arguments = sys.argv[1:]
found = []

def changing(event, about):
    if event not in ("tempfile.mkstemp", "tempfile.mkdtemp", "os.chmod", "os.rename", "os.mkdir"):
        return
    path = pathlib.Path(os.fsdecode(about[event == "os.rename"]))
    name = path.suffix or ("folder" if event == "os.rename" and os.path.isdir(about[0]) else path.name)
    found.append(f"{event} {name}" if event == "os.rename" else event)
    with open(log, "w", encoding="utf-8") as file:
        file.write("\\n".join(found))
    if len(found) == int(last):
        os.kill(os.getpid(), signal.SIGKILL) if hasattr(signal, "SIGKILL") else os._exit(9)

# A slow machine writes its journals no sooner.
retrieval.FLUSHED_EVERY_S = float("inf")
sys.addaudithook(changing)
main(arguments)
"""
only_posix = pytest.mark.skipif(not POSIX, reason="only POSIX has SIGKILL")


def dying(file: Path, last: int, *arguments: object) -> tuple[int, list[str]]:
    """The status of a run that dies at a point, and the points it reached."""
    log = file.parent / "points.txt"
    status, _, _ = ended(started(log, last, "run", file, *arguments, code=DYING))
    return status, log.read_text(encoding="utf-8").split("\n")


def test_death_at_every_point(tmp_path: Path) -> None:
    file = experiment(tmp_path / "undisturbed")
    status, points = dying(file, 0)
    assert status == 0
    expected = newest(file)
    check_finished(file, expected)
    for what in ("tempfile.mkstemp", "os.chmod", "os.rename .zst", "os.rename folder", ".gitignore", "latest"):
        assert any(what in name for name in points), what
    for number, name in enumerate(points, 1):
        file = experiment(tmp_path / str(number))
        status, found = dying(file, number)
        assert status == (-signal.SIGKILL if POSIX else 9), name
        assert found == points[:number]
        check_whole(file, expected)
        kept = entries(file)
        assert len(kept) == found[:-1].count("os.rename .zst"), name
        outcome = run_experiment(file)
        assert (outcome.cached, outcome.retrieved) == (len(kept), RETRIEVALS - len(kept)), name
        assert entries(file).items() >= kept.items(), name
        seen = "os.rename folder" in found[:-1]
        check_finished(file, expected, folders=[1 + seen])


def test_death_at_every_point_of_a_run_that_retrieves_again(tmp_path: Path) -> None:
    file = experiment(tmp_path / "undisturbed")
    run_experiment(file)
    expected = newest(file)
    status, points = dying(file, 0, "--refresh")
    assert status == 0
    for name in ("os.chmod", "os.rename .zst"):
        assert dying(file, 1 + points.index(name), "--refresh")[0] != 0
        check_whole(file, expected)
        assert run_experiment(file).cached == RETRIEVALS, name
        assert newest(file) == expected, name
        run_experiment(file, refresh=True)
        assert newest(file) == expected, name
        assert parts(file) == [] or not POSIX, name


@only_posix
def test_killed_at_random_moments(tmp_path: Path) -> None:
    file = experiment(tmp_path / "undisturbed")
    start = time.monotonic()
    call("run", file)
    lasts = time.monotonic() - start
    expected = newest(file)
    moments = random.Random(13)
    for number in range(10):
        file = experiment(tmp_path / str(number))
        killed(started("run", file), moments.uniform(0.3, 1.0) * lasts)
        check_whole(file, expected)
        kept = entries(file)
        assert run_experiment(file).cached == len(kept)
        check_finished(file, expected, folders=[1, 2])


@only_posix
def test_killed_at_random_moments_with_workers(tmp_path: Path) -> None:
    file = experiment(tmp_path / "undisturbed")
    start = time.monotonic()
    call("run", file, "--jobs", 2)
    lasts = time.monotonic() - start
    expected = newest(file)
    moments = random.Random(17)
    for number in range(3):
        file = experiment(tmp_path / str(number))
        killed(started("run", file, "--jobs", 2), moments.uniform(0.3, 1.0) * lasts)
        check_whole(file, expected)
        call("run", file, "--jobs", 2)
        check_finished(file, expected, folders=[1, 2])


@only_posix
def test_killed_again_and_again(tmp_path: Path) -> None:
    file = experiment(tmp_path / "undisturbed")
    start = time.monotonic()
    run_experiment(file)
    expected = newest(file)
    call("run", file)
    lasts = time.monotonic() - start
    file = experiment(tmp_path / "disturbed")
    moments = random.Random(19)
    for _ in range(5):
        killed(started("run", file), moments.uniform(0.3, 0.9) * lasts)
        check_whole(file, expected)
    run_experiment(file)
    check_finished(file, expected, folders=range(1, 7))


def killed(process: subprocess.Popen[str], after: float) -> None:
    """Kills a process after some seconds, if it still runs, and waits for all that it started."""
    try:
        process.wait(min(after, DEADLINE))
    except subprocess.TimeoutExpired:
        process.kill()
    ended(process)


def test_death_while_the_report_of_gates_is_written(tmp_path: Path) -> None:
    file = experiment(tmp_path / "undisturbed")
    report = tmp_path / "disturbed" / "gates.xml"
    points = dying(file, 0, "--junit", file.parent / "gates.xml")[1]
    file = experiment(report.parent)
    last = max(number for number, name in enumerate(points, 1) if name == "os.rename .xml")
    assert dying(file, last, "--junit", report)[0] != 0
    assert not report.exists()
    call("run", file, "--junit", report)
    assert report.read_text(encoding="utf-8").startswith("<?xml")
    assert parts(file) == [] or not POSIX
