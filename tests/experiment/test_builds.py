"""Files that a script makes: made where they are missing, and again where the script changed or did not finish."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.builds import Build
from groupgt.report.run import run_experiment
from tests.retrievers.small import small

# Writes half of each file, then does as `how` says, then the rest.
SCRIPT = """
import sys, time
from pathlib import Path

HERE = Path(__file__).parent
with open(HERE / "calls", "a") as calls:
    calls.write("x")
for name in {names}:
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("half")
{how}
for name in {names}:
    (HERE / name).write_text("made by {version}")
"""
WAITING = "(HERE / 'waiting').touch()\nwhile not (HERE / 'go').exists(): time.sleep(0.01)"


def script(folder: Path, *names: str, how: str = "", version: int = 1) -> Path:
    path = folder / "make.py"
    path.write_text(SCRIPT.format(names=list(names), how=how, version=version))
    return path


def brought(folder: Path, *names: str, refresh: bool = False) -> int:
    """Has files made where they must be; how often the script ran."""
    build = Build(folder / "make.py", [folder / name for name in names])
    if build.why(refresh=refresh):
        build.run(folder)
    calls = folder / "calls"
    count = len(calls.read_text()) if calls.exists() else 0
    calls.unlink(missing_ok=True)
    return count


def test_files_are_made_once_and_again_where_the_script_changed(tmp_path: Path) -> None:
    script(tmp_path, "a", "data/b")
    assert [brought(tmp_path, "a", "data/b") for _ in range(2)] == [1, 0]
    script(tmp_path, "a", "data/b", version=2)
    assert [brought(tmp_path, "a", "data/b") for _ in range(2)] == [1, 0]
    assert (tmp_path / "a").read_text() == "made by 2"
    assert [brought(tmp_path, "a", "data/b", refresh=True) for _ in range(2)] == [1, 1]
    (tmp_path / "data" / "b").unlink()
    assert [brought(tmp_path, "a", "data/b") for _ in range(2)] == [1, 0]


def test_a_script_that_failed_runs_again(tmp_path: Path) -> None:
    script(tmp_path, "a", how="sys.stderr.buffer.write(b'no \\xff room'); sys.exit(3)")
    for _ in range(2):
        with pytest.raises(groupgt.DataError, match=r"ended with status 3: no . room"):
            brought(tmp_path, "a")
    assert (tmp_path / "a").read_text() == "half"
    script(tmp_path, "a")
    assert brought(tmp_path, "a") == 3
    assert (tmp_path / "a").read_text() == "made by 1"


@pytest.mark.skipif(os.name != "posix", reason="elsewhere nothing tells whether a process is gone")
def test_a_build_that_was_killed_is_made_again(tmp_path: Path) -> None:
    script(tmp_path, "a", how=WAITING)
    code = (
        "import sys; from pathlib import Path; from groupgt.experiment.builds import Build; "
        "folder = Path(sys.argv[1]); Build(folder / 'make.py', [folder / 'a']).run(folder)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.01)
    with pytest.raises(groupgt.DataError, match=r"make.py: another process runs it"):
        brought(tmp_path, "a")
    process.kill()
    process.wait()
    (tmp_path / "go").touch()
    assert brought(tmp_path, "a") == 2
    assert (tmp_path / "a").read_text() == "made by 1"
    assert brought(tmp_path, "a") == 0


def test_a_file_of_the_users_own_is_used(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("own")
    script(tmp_path, "a")
    assert [brought(tmp_path, "a", refresh=refresh) for refresh in (False, True)] == [0, 0]
    assert (tmp_path / "a").read_text() == "own"
    script(tmp_path, "b")
    assert [brought(tmp_path, "a", "b") for _ in range(2)] == [1, 0]
    assert (tmp_path / "a").read_text() == "own"


def two_sets(folder: Path) -> Path:
    """Two data sets whose files one script makes."""
    file = small(folder, "bm25: bm25")
    data = {name: (folder / name).read_text() for name in ("corpus.jsonl", "truth.jsonl")}
    for name in data:
        (folder / name).unlink()
    (folder / "make.py").write_text(
        f"from pathlib import Path\nHERE = Path(__file__).parent\nDATA = {data!r}\n"
        "with open(HERE / 'calls', 'a') as calls:\n    calls.write('x')\n"
        "for number in (1, 2):\n    for name, text in DATA.items():\n"
        "        (HERE / f'{number}-{name}').write_text(text)\n"
    )
    old = "set: {corpus: corpus.jsonl, ground_truth: truth.jsonl}"
    new = "{0}: {{corpus: {0}-corpus.jsonl, ground_truth: {0}-truth.jsonl, build: make.py}}"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new.format(1).replace("1:", "one:", 1) + "\n  two: " + new.format(2)[3:]))
    return file


def test_one_script_makes_the_files_of_two_data_sets_where_code_may_run(tmp_path: Path) -> None:
    file = two_sets(tmp_path)
    with pytest.raises(groupgt.GroupgtError, match=r"make.py makes it, and so does a run; allow it with --allow-code"):
        run_experiment(file)
    assert not (tmp_path / "calls").exists()
    outcome = run_experiment(file, allow_code=True)
    assert (tmp_path / "calls").read_text() == "x"
    assert sorted(outcome.evaluations) == ["one", "two"]
    run_experiment(file)  # all is there
    (tmp_path / "make.py").write_text((tmp_path / "make.py").read_text() + "# changed\n")
    with pytest.raises(groupgt.DataError, match=r"make.py must run: it has changed; allow it with --allow-code"):
        run_experiment(file)
    run_experiment(file, allow_code=True)
    assert (tmp_path / "calls").read_text() == "xx"
