"""Retrieving in several processes: the same answers, nobody's code but what may run, and a word where one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import groupgt
from groupgt.report.run import run_experiment
from groupgt.store.cache import Cache

ROOT = Path(groupgt.__file__).parents[1]
# How the installed command begins: the folder of the script is on the path, and not the current one.
SCRIPT = "from groupgt.cli.main import main\n\nif __name__ == '__main__':\n    main()\n"
STRANGE = "open('ran', 'w').close()\nraise ImportError('strange code')\n"


@pytest.mark.faults
def test_several_processes_give_the_same_answers(sweep: Path) -> None:
    one = run_experiment(sweep, changes=["cache=null"])
    two = run_experiment(sweep, changes=["cache=null"], jobs=2)
    assert {name: answers.ids for name, answers in one.answers.items()} == {
        name: answers.ids for name, answers in two.answers.items()
    }


@pytest.mark.faults
def test_modules_of_the_current_folder_are_not_run(sweep: Path, tmp_path: Path) -> None:
    """Python, started with `-c` as workers are, would look there first."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "groupgt_command.py").write_text(SCRIPT)
    (tmp_path / "here").mkdir()
    for module in ("multiprocessing", "signal", "tqdm"):
        (tmp_path / "here" / f"{module}.py").write_text(STRANGE)
    done = subprocess.run(
        [sys.executable, tmp_path / "bin" / "groupgt_command.py", "run", sweep, "--jobs", "2", "--set", "cache=null"],
        cwd=tmp_path / "here",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "here" / "ran").exists()


DYING = """
import os, signal
from pathlib import Path

def search(queries, k):
    if not Path("reprieve").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return [["forms-list"] for _ in queries]
"""


@pytest.mark.filterwarnings("ignore:.*is the run from the same corpus")
@pytest.mark.faults
@pytest.mark.skipif(
    os.name != "posix", reason="only POSIX ends a process with SIGKILL, as it does where memory is short"
)
def test_a_system_whose_process_is_killed(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system that was retrieved is named, what others retrieved is kept, and the same command goes on."""
    interrupted = signal.getsignal(signal.SIGINT)
    monkeypatch.chdir(sweep.parent)
    (sweep.parent / "dying.py").write_text(DYING)
    change = 'systems={plain: bm25, dies: {use: python, with: {target: "dying:search"}}}'
    changes = [change, "compare=null", "evaluate.depth=1", "evaluate.k=[1]", "evaluate.primary=null"]
    run_experiment(sweep, changes=changes, only=["plain"], allow_code=True)
    with pytest.raises(groupgt.RetrieverError, match=r"'handbook': system 'dies': its process .*SIGKILL"):
        run_experiment(sweep, changes=[*changes, "systems.plain.with={k1: 2}"], jobs=2, allow_code=True)
    assert len(list(Cache(sweep.parent / "cache").entries())) >= 1
    (sweep.parent / "reprieve").touch()
    outcome = run_experiment(sweep, changes=changes, jobs=2, allow_code=True)
    assert (outcome.cached, outcome.retrieved) == (1, 1)
    assert signal.getsignal(signal.SIGINT) == interrupted
