"""A run that is killed again and again: what was answered is kept, not asked again, and that is told."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from groupgt.store.journal import ENDING, Journal
from tests.faults.trial import call, ended, experiment, newest, parts, result_folders, started, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere nothing tells whether a process is gone")

# Answers one query at a time, slowly enough to be killed at it, and says in a file which it has answered.
LOGGING = """
import time
from pathlib import Path

HERE = Path(__file__).parent


class Logging:
    def __init__(self, corpus):
        self.ids = corpus.ids

    def retrieve(self, query, k):
        time.sleep((HERE / "slow").exists() and 0.03)
        found = [self.ids[(len(query) * step) % len(self.ids)] for step in range(1, k)]
        with open(HERE / "log", "a") as log:
            log.write(query + "\\n")
        return [(name, 1 / rank) for rank, name in enumerate(dict.fromkeys(found), 1)]
"""
SYSTEMS = """\
  plain: bm25
  mine: {use: python, with: {target: "logging_each:Logging", each: true}}
  rrf: {use: rrf, inputs: [plain, mine]}
"""
KILLS = 20


def prepared(folder: Path) -> Path:
    file = experiment(folder, SYSTEMS)
    (folder / "logging_each.py").write_text(LOGGING, encoding="utf-8")
    return file


def asked(file: Path) -> list[str]:
    """What was answered since this was last asked."""
    log = file.parent / "log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def kept(file: Path) -> int:
    """How many answers the journals of runs that are gone hold."""
    journals = (file.parent / "cache").glob(f"??/*{ENDING}")
    return sum(len(line.get("rows", ())) for path in journals for line in Journal(path).lines())


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_is_killed_at_any_moment_loses_one_answer_at_most(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, jobs: int
) -> None:
    undisturbed = prepared(tmp_path_factory.mktemp("undisturbed"))
    call("run", undisturbed, "--allow-code")
    expected, queries = newest(undisturbed), asked(undisturbed)
    assert len(queries) == len(set(queries)) > 20
    file = prepared(tmp_path)
    (tmp_path / "slow").touch()
    chosen = random.Random(24)
    log = tmp_path / "log"
    before = interrupted = 0
    for _ in range(KILLS):
        resume = ["--resume"] if before else []
        process = started("run", file, "--allow-code", "--jobs", jobs, *resume, start_new_session=True)
        folders = len(result_folders(file))
        # Now and then while it starts, mostly once it is asking.
        if chosen.random() < 0.8:
            until(lambda process=process: log.exists() or process.poll() is not None, process)
        time.sleep(chosen.random() * 0.15)
        process.kill()
        status, out, _ = ended(process)
        answered, now = asked(file), kept(file)
        # It goes on where it was.
        assert answered == queries[before : before + len(answered)]
        if status == 0:
            assert ("resumed: " in out) == (before > 0)
        elif now or len(result_folders(file)) == folders:  # else its results were written when it was killed
            # What is answered is kept: but for the one that is under way.
            interrupted += 1
            assert now in (before + len(answered), before + len(answered) - 1)
        before = now
    assert interrupted > KILLS / 2
    (tmp_path / "slow").unlink()
    left = before
    out, _ = call("run", file, "--allow-code", "--jobs", jobs, *(["--resume"] if left else []))
    assert asked(file) == queries[left:]
    told = f"resumed: {left} of {len(queries)} answers of mine are from the run interrupted at "
    assert (told in out) == (left > 0)
    assert newest(file) == expected
    assert all(path.is_dir() for path in result_folders(file))
    assert kept(file) == 0
    assert parts(file) == []
