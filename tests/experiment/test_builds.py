"""Files that a script makes: whole or not at all, made again when they must be, and never in place of the user's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.builds import Build
from groupgt.report.run import run_experiment
from groupgt.store.files import is_gone
from tests.retrievers.small import small

POSIX = pytest.mark.skipif(os.name != "posix", reason="elsewhere nothing tells whether a process is gone, and no links")
# Writes half of each file, then does as `how` says, then the rest.
SCRIPT = """
import os, sys, time
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


def left(folder: Path) -> list[str]:
    """What should not be there in the end."""
    return [path.name for path in folder.rglob("*") if "before-build" in path.name or ".part-" in path.name]


def test_files_are_made_once_and_again_where_the_script_changed(tmp_path: Path) -> None:
    script(tmp_path, "a", "b")
    assert [brought(tmp_path, "a", "b") for _ in range(2)] == [1, 0]
    script(tmp_path, "a", "b", version=2)
    assert [brought(tmp_path, "a", "b") for _ in range(2)] == [1, 0]
    assert (tmp_path / "a").read_text() == "made by 2"
    assert [brought(tmp_path, "a", "b", refresh=True) for _ in range(2)] == [1, 1]
    (tmp_path / "b").unlink()
    assert [brought(tmp_path, "a", "b") for _ in range(2)] == [1, 0]
    assert left(tmp_path) == []


@pytest.mark.parametrize("before", [None, "earlier"])
def test_what_a_script_that_failed_has_left_is_no_file(tmp_path: Path, before: str | None) -> None:
    if before:
        script(tmp_path, "a")
        brought(tmp_path, "a")
    script(tmp_path, "a", how="sys.stderr.buffer.write(b'no \\xff room'); sys.exit(3)")
    for _ in range(2):
        with pytest.raises(groupgt.DataError, match=r"ended with status 3: no . room"):
            brought(tmp_path, "a")
        assert (tmp_path / "a").exists() == bool(before)
        assert not before or (tmp_path / "a").read_text() == "made by 1"
        assert left(tmp_path) == []


def started(folder: Path, *names: str) -> subprocess.Popen[bytes]:
    """A process that has files made, in the middle of the script."""
    script(folder, names[0], how=WAITING)
    code = (
        "import sys; from pathlib import Path; from groupgt.experiment.builds import Build; "
        "folder = Path(sys.argv[1]); Build(folder / 'make.py', [folder / name for name in sys.argv[2:]]).run(folder)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(folder), *names])
    while not (folder / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


@POSIX
@pytest.mark.parametrize("before", [None, "made", "own"])
def test_a_build_that_was_killed_is_made_again(tmp_path: Path, before: str | None) -> None:
    # Of the second file, which the script leaves alone, nothing is to be seen.
    (tmp_path / "mine").write_text("mine")
    if before == "made":
        script(tmp_path, "a")
        brought(tmp_path, "a", "mine")
    elif before == "own":
        (tmp_path / "a").write_text("own")
    process = started(tmp_path, "a", "mine")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "a").read_text() == "half"
    # The script lives on, and would write into what is made anew.
    with pytest.raises(groupgt.DataError, match=r"make.py is at work on it in another process"):
        brought(tmp_path, "a", "mine")
    (tmp_path / "go").touch()
    note = tmp_path / ".make.py.groupgt-build"
    writers = {writer for noted in json.loads(note.read_text()).values() for writer in noted["by"]}
    while not all(is_gone(writer, note) for writer in writers):
        time.sleep(0.01)
    if before == "own":
        with pytest.raises(groupgt.DataError, match="wrote over it"):
            brought(tmp_path, "a", "mine")
        assert (tmp_path / "a").read_text() == "own"
        return
    count = brought(tmp_path, "a", "mine")
    assert count == 2
    assert (tmp_path / "a").read_text() == "made by 1"
    assert (tmp_path / "mine").read_text() == "mine"
    assert brought(tmp_path, "a", "mine") == 0
    assert left(tmp_path) == []


def test_a_mark_without_a_stamp_is_a_build_that_failed(tmp_path: Path) -> None:
    script(tmp_path, "a")
    (tmp_path / "a").write_text("half")
    note = tmp_path / ".make.py.groupgt-build"
    note.write_text(json.dumps({"a": {"before": None, "own": True, "by": []}}))
    assert brought(tmp_path, "a") == 1
    assert (tmp_path / "a").read_text() == "made by 1"
    assert "made" in json.loads(note.read_text())["a"]


@pytest.mark.parametrize("also", ["", "b"])
def test_outputs_that_somebody_edited_are_not_made_again_unasked(tmp_path: Path, also: str) -> None:
    script(tmp_path, "a", "b")
    brought(tmp_path, "a", "b")
    (tmp_path / "a").write_text("edited")
    if also:
        (tmp_path / also).unlink()
    with pytest.raises(groupgt.DataError, match=r"a: was changed after make.py had made it; --refresh makes it again"):
        brought(tmp_path, "a", "b")
    assert (tmp_path / "a").read_text() == "edited"
    assert brought(tmp_path, "a", "b", refresh=True) == 1
    assert (tmp_path / "a").read_text() == "made by 1"


def test_a_file_of_the_users_own_is_used_and_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("own")
    script(tmp_path, "a")
    assert [brought(tmp_path, "a", refresh=refresh) for refresh in (False, True)] == [0, 0]
    script(tmp_path, "a", "b")
    with pytest.raises(
        groupgt.DataError, match=r"a: make.py wrote over it, which it had not generated; it was restored"
    ):
        brought(tmp_path, "a", "b")
    assert (tmp_path / "a").read_text() == "own"
    assert not (tmp_path / "b").exists()
    script(tmp_path, "b")
    (tmp_path / "calls").unlink()
    assert brought(tmp_path, "a", "b") == 1
    (tmp_path / "a").write_text("edited")
    assert brought(tmp_path, "a", "b") == 0
    assert left(tmp_path) == []


def test_folders_are_put_back_whole_and_their_neighbors_stay(tmp_path: Path) -> None:
    (tmp_path / "data-part").mkdir()
    (tmp_path / "data-part" / "own").touch()
    script(tmp_path, "data/corpus", "data/qrels/test")
    named = ("data", "data/corpus")
    assert [brought(tmp_path, *named) for _ in range(2)] == [1, 0]
    script(tmp_path, "data/corpus", "data/more", how="sys.exit(1)")
    with pytest.raises(groupgt.DataError, match="ended with status 1: it printed no message"):
        brought(tmp_path, *named)
    files = sorted(path.relative_to(tmp_path).as_posix() for path in (tmp_path / "data").rglob("*"))
    assert files == ["data/corpus", "data/qrels", "data/qrels/test"]
    assert (tmp_path / "data" / "corpus").read_text() == "made by 1"
    script(tmp_path, "data/corpus", "data/more", version=2)
    assert [brought(tmp_path, *named) for _ in range(3)] == [2, 0, 0]
    (tmp_path / "data" / "corpus").unlink()
    assert [brought(tmp_path, *named) for _ in range(2)] == [1, 0]
    assert (tmp_path / "data-part" / "own").exists()
    assert left(tmp_path) == []


def test_a_file_may_be_made_into_a_folder_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "qrels").write_text("own")
    script(tmp_path, "data/corpus")
    assert [brought(tmp_path, "data", "data/corpus") for _ in range(2)] == [1, 0]
    script(tmp_path, "data/corpus", "data/qrels", version=2)
    with pytest.raises(groupgt.DataError, match=r"data: make.py wrote over it"):
        brought(tmp_path, "data", "data/corpus")
    assert (tmp_path / "data" / "qrels").read_text() == "own"
    assert (tmp_path / "data" / "corpus").read_text() == "made by 1"


def test_a_script_in_the_folder_that_it_makes_is_refused(tmp_path: Path) -> None:
    script(tmp_path, "a")
    with pytest.raises(groupgt.DataError, match=r"make.py: is in .*, which it generates; move it out of that folder"):
        brought(tmp_path, ".", "a")
    assert (tmp_path / "make.py").exists()


@POSIX
def test_what_a_link_leads_to_is_put_back(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("own")
    (tmp_path / "a").symlink_to("elsewhere")
    script(tmp_path, "a", "b", how="sys.exit(1)")
    with pytest.raises(groupgt.DataError, match="ended with status 1"):
        brought(tmp_path, "a", "b")
    assert (tmp_path / "elsewhere").read_text() == "own"
    assert (tmp_path / "a").is_symlink()


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    script(tmp_path, "a")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(groupgt.DataError, match="cannot be written"):
            brought(tmp_path, "a")
    finally:
        tmp_path.chmod(0o700)


def test_what_one_script_makes_for_others_stays_noted(tmp_path: Path) -> None:
    builds = {name: Build(tmp_path / "make.py", [tmp_path / name]) for name in "ab"}
    for name, build in builds.items():
        script(tmp_path, name)
        build.run(tmp_path)
    assert sorted(json.loads((tmp_path / ".make.py.groupgt-build").read_text())) == ["a", "b"]


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
