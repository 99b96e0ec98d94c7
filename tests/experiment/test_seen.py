"""What code loads and opens is noted, and what has changed since is not used again."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import groupgt
from groupgt.experiment import seen
from groupgt.experiment.fresh import Fresh, Order
from groupgt.experiment.runner import run_experiment
from groupgt.plugins import find
from groupgt.retrievers.base import Corpus, Queries, Setting
from groupgt.retrievers.python import Options
from tests.retrievers.small import small

CODE = """
import json, os, sqlite3, sys
import numpy
import yaml
from pathlib import Path
from beside import names
from package.inner import more

HERE = Path(__file__).parent
sys.modules.pop("beside")


def search(queries, k):
    with open("relative.txt") as file:
        file.read()
    database = sqlite3.connect(HERE / "passages.db")
    database.execute("SELECT * FROM passages").fetchall()
    numpy.load(HERE / "vectors.npy")
    try:
        open(HERE / "absent.json")
    except FileNotFoundError:
        pass
    for path in sorted((HERE / "texts").glob("*.txt")):
        path.read_text()
    with open(HERE / "log.txt", "a") as log:
        log.write("asked")
    (HERE / "made.txt").write_text("of this run")
    (HERE / "made.txt").read_text()
    return [names + more for _ in queries]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "beside.py").write_text("names = ['d1']\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("more = ['d2']\n")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a")
    (tmp_path / "relative.txt").write_text("relative")
    np.save(tmp_path / "vectors.npy", np.arange(3))
    database = sqlite3.connect(tmp_path / "passages.db")
    database.execute("CREATE TABLE passages (text)")
    database.close()
    return tmp_path


def write(path: Path, data: bytes) -> None:
    """Changes a file and nothing of its times, which decide nothing."""
    before = path.stat() if path.exists() else None
    path.write_bytes(data)
    if before is not None:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], None]] = {
    "its own file": lambda folder: write(folder / "mine.py", CODE.replace("asked", "ASKED").encode()),
    "a module that was taken away": lambda folder: write(folder / "beside.py", b"names = ['d9']\n"),
    "a module of a package": lambda folder: write(folder / "package" / "inner.py", b"more = ['d9']\n"),
    "a file by a relative path": lambda folder: write(folder / "relative.txt", b"RELATIVE"),
    "an array": lambda folder: write(folder / "vectors.npy", b""),
    "a database": lambda folder: write(folder / "passages.db", b""),
    "a file of a folder": lambda folder: write(folder / "texts" / "a.txt", b"b"),
    "a new file in a folder": lambda folder: write(folder / "texts" / "b.txt", b"b"),
    "a file that was not there": lambda folder: write(folder / "absent.json", b"{}"),
    "a file that is gone": lambda folder: (folder / "relative.txt").unlink(),
    "a module before an installed one": lambda folder: write(folder / "yaml.py", b""),
    "the current folder": lambda folder: os.chdir(folder / "texts"),
}
HARMLESS: dict[str, Callable[[Path], None]] = {
    "nothing": lambda folder: None,
    "a file that is only written": lambda folder: write(folder / "log.txt", b"other"),
    "a file that the code makes": lambda folder: write(folder / "made.txt", b"other"),
    "another file": lambda folder: write(folder / "other.txt", b"other"),
    "the times of files": lambda folder: (folder / "beside.py").touch(),
}


def test_every_change_that_can_be_seen(folder: Path) -> None:
    setting = Setting(Corpus([], []), ["q1"])
    order = Order("mine", find("retriever", "python"), Options("mine:search"), folder, setting)
    with Fresh(order) as fresh:
        assert fresh.retrieve(Queries(["one"], ["q1"]), 2) == [["d1", "d2"]]
    assert {"numpy", "PyYAML"} <= set(fresh.seen["distributions"])
    assert not any("site-packages" in name or "groupgt/retrievers" in name for name in fresh.seen["files"])
    write(folder / "log.txt", b"")
    for cases, expected in ((HARMLESS, True), (CHANGES, False)):
        for name, change in cases.items():
            kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            change(folder)
            assert seen.unchanged(fresh.seen, folder) is expected, name
            os.chdir(folder)
            for path in folder.rglob("*"):
                if path.is_file() and path not in kept:
                    path.unlink()
            for path, data in kept.items():
                path.write_bytes(data)
    assert seen.unchanged(fresh.seen, folder)
    assert not seen.unchanged(None, folder)


def test_another_version_of_a_library_or_of_python(folder: Path) -> None:
    nothing = seen.empty()
    assert seen.unchanged(nothing, folder)
    assert not seen.unchanged({**nothing, "python": "3.0"}, folder)
    assert not seen.unchanged({**nothing, "distributions": {"numpy": "0.1"}}, folder)
    assert not seen.unchanged({**nothing, "files": {str(folder / "mine.py"): seen.CHANGED}}, folder)


def test_what_two_processes_saw() -> None:
    first = {**seen.empty(), "files": {"a": "1", "b": "2"}}
    then = {**seen.empty(), "files": {"b": "3", "c": "4"}}
    assert seen.merged(first, then)["files"] == {"a": "1", "b": seen.CHANGED, "c": "4"}


@pytest.mark.slow
def test_a_changed_helper_is_a_new_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from beside import names\n\ndef search(query, k):\n    return names[:k]\n")
    (tmp_path / "beside.py").write_text("names = ['d1']\n")
    (tmp_path / "model.bin").write_bytes(b"1")
    file = small(tmp_path, 'mine: {use: python, with: {target: "mine:search", files: [model.bin]}}')
    first = run_experiment(file, allow_code=True)
    assert (first.retrieved, first.reused) == (1, [])
    again = run_experiment(file, allow_code=True)
    assert (again.retrieved, [each.count for each in again.reused]) == (0, [3])
    (tmp_path / "beside.py").write_text("names = ['d2']\n")
    changed = run_experiment(file, allow_code=True)
    assert changed.retrieved == 1
    assert changed.answers["set", "mine"].ids["q1"] == ["d2"]
    (tmp_path / "model.bin").write_bytes(b"2")
    assert run_experiment(file, allow_code=True).retrieved == 1
    (tmp_path / "model.bin").unlink()
    with pytest.raises(groupgt.ConfigError, match=r"systems.mine.with.files: file not found: .*model.bin"):
        run_experiment(file, allow_code=True)


@pytest.mark.slow
def test_a_file_that_changes_while_the_code_runs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("sooner")
    (tmp_path / "mine.py").write_text(
        "import os, subprocess, sys\n\ndef search(query, k):\n    open('notes.txt').close()\n"
        "    subprocess.run([sys.executable, '-c', 'open(\"notes.txt\", \"w\").write(\"later\")'])\n    return ['d1']\n"
    )
    file = small(tmp_path, 'mine: {use: python, with: {target: "mine:search"}}')
    previous = os.getcwd()
    os.chdir(tmp_path)
    try:
        with pytest.warns(groupgt.GroupgtWarning, match=r"notes.txt changed while it ran; its answers are not used"):
            run_experiment(file, allow_code=True)
        with pytest.warns(groupgt.GroupgtWarning, match="changed while it ran"):
            assert run_experiment(file, allow_code=True).retrieved == 1
    finally:
        os.chdir(previous)


def asked(folder: Path) -> Fresh:
    """What was seen of `mine:search` in a folder."""
    order = Order("mine", find("retriever", "python"), Options("mine:search"), folder, Setting(Corpus([], []), ["q1"]))
    with Fresh(order) as fresh:
        fresh.retrieve(Queries(["one"], ["q1"]), 2)
    return fresh


@pytest.mark.slow
def test_an_extension_module_of_the_user_s(tmp_path: Path) -> None:
    names = ("xxlimited", "_testbuffer", "_testmultiphase")
    found = (importlib.util.find_spec(name) for name in names)
    spec = next((each for each in found if each is not None and (each.origin or "").endswith((".so", ".pyd"))), None)
    if spec is None or spec.origin is None:
        pytest.skip("this Python has no extension module that nothing else loads")
    module = tmp_path / Path(spec.origin).name
    shutil.copy(spec.origin, module)
    (tmp_path / "mine.py").write_text(
        f"import {spec.name}\n\ndef search(query, k):\n    return [{spec.name}.__file__]\n"
    )
    fresh = asked(tmp_path)
    assert str(module) in fresh.seen["files"]
    assert seen.unchanged(fresh.seen, tmp_path)
    write(module, module.read_bytes() + b"\0")
    assert not seen.unchanged(fresh.seen, tmp_path)


def installed(site: Path, name: str, origin: str | None) -> Path:
    """A package as pip leaves it: from an index, or with a note of the folder that it was installed from."""
    package, record = site / name / "__init__.py", site / f"{name}-1.0.dist-info"
    package.parent.mkdir(parents=True)
    record.mkdir()
    package.write_text("name = 'd1'\n")
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (record / "RECORD").write_text(f"{name}/__init__.py,,\n{name}-1.0.dist-info/METADATA,,\n")
    if origin is not None:
        (record / "direct_url.json").write_text(origin)
    return package


@pytest.mark.slow
def test_packages_installed_from_an_index_from_a_folder_and_as_editable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, source = tmp_path / "site-packages", tmp_path / "source"
    of_index = installed(site, "of_index", None)
    of_path = installed(site, "of_path", f'{{"url": "{(tmp_path / "elsewhere").as_uri()}", "dir_info": {{}}}}')
    editable = installed(source, "editable", None)
    (source / "editable-1.0.dist-info").rename(site / "editable-1.0.dist-info")
    note = f'{{"url": "{source.as_uri()}", "dir_info": {{"editable": true}}}}'
    (site / "editable-1.0.dist-info" / "direct_url.json").write_text(note)
    monkeypatch.syspath_prepend(str(source))
    monkeypatch.syspath_prepend(str(site))
    folder = tmp_path / "experiment"
    folder.mkdir()
    imports = "import editable, of_index, of_path\n"
    (folder / "mine.py").write_text(f"{imports}\ndef search(query, k):\n    return [of_path.name]\n")
    fresh = asked(folder)
    # A version stands for what came from an index, and for nothing that somebody works in.
    assert fresh.seen["distributions"]["of_index"] == "1.0"
    assert not {"of_path", "editable"} & set(fresh.seen["distributions"])
    assert {str(of_path), str(editable)} <= set(fresh.seen["files"])
    assert str(of_index) not in fresh.seen["files"]
    for package, same in ((of_index, True), (of_path, False), (editable, False)):
        text = package.read_bytes()
        write(package, b"name = 'd2'\n")
        assert seen.unchanged(fresh.seen, folder) is same, package
        write(package, text)
    assert seen.unchanged(fresh.seen, folder)
    metadata = site / "of_index-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.1"))
    assert not seen.unchanged(fresh.seen, folder)
