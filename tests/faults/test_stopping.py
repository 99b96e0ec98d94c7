"""Ctrl-C, and workers that lose their parent or their lives: one clean message, nothing lost, nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupgt.report.run import run_experiment
from groupgt.store.cache import Cache, Entry
from tests.faults.trial import (
    call,
    check_whole,
    ended,
    experiment,
    newest,
    parts,
    result_folders,
    started,
    until,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX sends signals to one process or to a group")

# A system that waits in its second batch until it may go on, or is told to end its process.
WAITING = """
import os
import signal
import time
from pathlib import Path

HERE = Path(__file__).parent


class Waiting:
    def __init__(self, corpus):
        self.ids, self.batches = corpus.ids, 0

    def retrieve(self, queries, k):
        self.batches += 1
        if self.batches == 2:
            (HERE / f"waiting-{os.getpid()}").touch()
            end = time.monotonic() + 300
            while not (HERE / "go").exists() and time.monotonic() < end:
                time.sleep(0.01)
                if (HERE / "die").exists():
                    os.kill(os.getppid(), signal.SIGKILL)
        return [[(name, 1 / rank) for rank, name in enumerate(self.ids[:k], 1)] for _ in queries]
"""
SYSTEMS = """\
  plain: bm25
  mine: {use: python, with: {target: "waiting:Waiting"}}
  bm25: {use: bm25, with: {k1: 0.9}}
  rrf: {use: rrf, inputs: [plain, mine]}
"""
# The command line, where Ctrl-C works even if whoever started the tests has switched it off.
HEARING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from groupgt.cli.main import main
main()
"""
# The same in a file, with workers that wait while they start.
STARTING = """
import signal

import slow_start
from groupgt.cli.main import main
from groupgt.experiment import workers

signal.signal(signal.SIGINT, signal.default_int_handler)
workers._begin = slow_start.begin
main()
"""
SLOW_START = """
import os
import time
from pathlib import Path

from groupgt.experiment import workers

HERE = Path(__file__).parent

def begin(*arguments):
    (HERE / f"starting-{os.getpid()}").touch()
    end = time.monotonic() + 300
    while not (HERE / "go").exists() and time.monotonic() < end:
        time.sleep(0.01)
    workers._begin(*arguments)
"""
# Answers too large for a pipe: the run is halted, so that they are half sent, and then the worker dies.
LARGE = """
import os
import signal
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
PARENT = os.getppid()


def die():
    end = time.monotonic() + 300
    while not (HERE / "die").exists() and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(PARENT, signal.SIGKILL)


class Large:
    def __init__(self, corpus):
        self.ids = corpus.ids

    def retrieve(self, queries, k):
        if not (HERE / "go").exists() and not (HERE / "halted").exists():
            # The worker's parent: the run.
            os.kill(int(Path(f"/proc/{PARENT}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGSTOP)
            (HERE / "halted").touch()
            threading.Thread(target=die, daemon=True).start()
        return [self.ids[:k] for _ in queries]
"""
STOPPED = "groupgt: interrupted; finished retrievals are cached. Add --resume to continue with stored answers\n"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    found = experiment(tmp_path, SYSTEMS)
    (tmp_path / "waiting.py").write_text(WAITING, encoding="utf-8")
    yield found
    (tmp_path / "go").touch()  # whoever still waits goes on, and ends


def begun(file: Path, *arguments: object) -> subprocess.Popen[str]:
    """A run in a group of its own, like one at a terminal."""
    return started("run", file, "--allow-code", *arguments, code=HEARING, start_new_session=True)


def finished(file: Path) -> list[Entry]:
    """The entries that hold all answers of a system, not a part of them."""
    found = Cache(file.parent / "cache").entries()
    # The description is empty while a journal's first line is being written.
    return [entry for entry in found if entry.about and entry.about["rows"] == entry.about["questions"]]


def waiting(file: Path) -> list[int]:
    """The processes in which the system waits."""
    return [int(path.name.partition("-")[2]) for path in file.parent.glob("waiting-*")]


def until_waiting(process: subprocess.Popen[str], file: Path, kept: int) -> None:
    """Waits until the system waits and so many others are kept."""
    until(lambda: waiting(file) and len(finished(file)) == kept, process)


def check_goes_on(file: Path, kept: int) -> None:
    """What was finished is there, and the run ends as one that was not disturbed."""
    assert len(finished(file)) == kept
    assert result_folders(file) == []
    check_whole(file, {})
    (file.parent / "go").touch()
    outcome = run_experiment(file, allow_code=True)
    assert (outcome.cached, outcome.retrieved) == (kept, 3 - kept)
    resumed = newest(file)
    for path in (file.parent / "cache").glob("??/*.zst"):
        path.unlink()
    assert run_experiment(file, allow_code=True).retrieved == 3
    assert newest(file) == resumed
    assert parts(file) == []


def test_stopped(file: Path) -> None:
    process = begun(file)
    until_waiting(process, file, kept=1)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "", STOPPED)
    assert process.pid not in waiting(file)
    check_goes_on(file, kept=1)


@pytest.mark.parametrize("whole_group", [False, True], ids=["the parent", "the group"])
def test_stopped_with_workers(file: Path, whole_group: bool) -> None:
    process = begun(file, "--jobs", 2)
    until_waiting(process, file, kept=2)
    assert process.pid not in waiting(file)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "", STOPPED)
    check_goes_on(file, kept=2)


def test_stopped_while_workers_start(file: Path) -> None:
    script = file.parent / "start.py"
    script.write_text(STARTING, encoding="utf-8")
    (file.parent / "slow_start.py").write_text(SLOW_START, encoding="utf-8")
    process = started("run", file, "--allow-code", "--jobs", 2, script=script, start_new_session=True)
    until(lambda: len(list(file.parent.glob("starting-*"))) == 2, process)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == (130, "", STOPPED)
    check_goes_on(file, kept=0)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_workers_end_with_their_parent(file: Path, name: str) -> None:
    after = signal.Signals[name]
    process = begun(file, "--jobs", 2)
    until_waiting(process, file, kept=2)
    process.send_signal(after)
    # Workers hold the output open, so this returns when the last of them is gone.
    assert ended(process)[0] == -after
    check_goes_on(file, kept=2)


def test_a_worker_that_dies(file: Path) -> None:
    process = begun(file, "--jobs", 2)
    until_waiting(process, file, kept=2)
    (file.parent / "die").touch()
    status, out, err = ended(process)
    assert (status, out) == (2, "")
    assert err.startswith("groupgt: a worker process was killed or ran out of memory while it ran system ")
    assert "'mine' on dataset 'handbook'" in err
    assert err.count("\n") == 1
    check_goes_on(file, kept=2)


def test_a_worker_that_dies_while_it_answers(file: Path) -> None:
    experiment(file.parent, '  plain: bm25\n  mine: {use: python, with: {target: "waiting:Large"}}\n')
    (file.parent / "waiting.py").write_text(LARGE, encoding="utf-8")
    process = begun(file, "--jobs", 2)
    until(lambda: (file.parent / "halted").exists() and len(finished(file)) == 2, process)
    time.sleep(0.5)  # for the answer to be half sent; the test holds without
    (file.parent / "die").touch()
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    status, out, err = ended(process)
    assert (status, out) in ((0, out), (2, ""))
    assert "Traceback" not in err
    assert "from the cache: 1 retrieval" in call("run", file, "--allow-code", "--details")[0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_stopped_twice(file: Path, jobs: int) -> None:
    """Who presses Ctrl-C again while the run ends is not shown a traceback."""
    process = begun(file, "--jobs", jobs)
    until_waiting(process, file, kept=jobs)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == STOPPED
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == (130, "", "")
    check_goes_on(file, kept=jobs)


def test_a_system_that_fails_stops_the_others(file: Path) -> None:
    """Nobody waits for what is retrieved in vain."""
    systems = f'{SYSTEMS}  wrong: {{use: python, with: {{target: "waiting:missing"}}}}\n'
    experiment(file.parent, systems)
    with (file.parent / "waiting.py").open("a", encoding="utf-8") as code:
        code.write("\n\ndef missing(queries, k):\n    raise LookupError('no index')\n")
    process = begun(file, "--jobs", 2)
    status, _, err = ended(process)
    assert status == 2
    assert "wrong" in err
    assert "LookupError: no index" in err
    assert "Traceback" not in err
    assert len(finished(file)) == 2
