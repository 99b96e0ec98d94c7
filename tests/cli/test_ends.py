"""How the command line ends: streams that take nothing, Ctrl-C while modules are loaded, reports of a failed run."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main

pytestmark = pytest.mark.slow

posix = pytest.mark.skipif(os.name != "posix", reason="only POSIX shells close streams so")
FULL = Path("/dev/full")
EXPERIMENT = """\
version: 1
name: small
convention: coverage
datasets:
  mine: {ground_truth: truth.jsonl}
systems:
  a: {use: results, with: {path: a.trec}}
  b: {use: results, with: {path: b.trec}}
evaluate: {metrics: ["recall@1", "recall@2"], by: [kind]}
compare: {baseline: a}
"""
GATES = [
    '{system: "*", metric: recall@1, min: 0.2}',
    "{system: a, metric: recall@1, min: 0.2}",
    "{system: b, metric: recall@1, max: 0.9, slice: {kind: x}}",
    "{system: b, metric: recall@2, max_drop: 0.1, unless: not_significant}",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An experiment on results in files."""
    rows = [f'{{"qid": "q{n}", "retrieval_gt": [["d{n}"], ["e{n}"]], "kind": "{"xy"[n % 2]}"}}\n' for n in range(4)]
    (tmp_path / "truth.jsonl").write_text("".join(rows), encoding="utf-8")
    for name, other in (("a", "e"), ("b", "z")):
        lines = [
            f"q{n} Q0 {which}{n} {rank} {3 - rank} {name}\n" for n in range(4) for rank, which in ((1, "d"), (2, other))
        ]
        (tmp_path / f"{name}.trec").write_text("".join(lines), encoding="utf-8")
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT + gates(GATES), encoding="utf-8")
    return file


def gates(lines: list[str]) -> str:
    return "gate:\n" + "".join(f"  - {line}\n" for line in lines)


def status(*arguments: str | Path) -> int:
    """The exit status of a command in this process."""
    try:
        main(["run", *map(str, arguments)])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


# --- Streams.


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line of a shell, in which `groupgt` is this one."""
    text = command.replace("groupgt", f'"{sys.executable}" -m groupgt', 1)
    environment = {**os.environ, "PYTHONPATH": str(Path(groupgt.__file__).parents[1])}
    return subprocess.run(
        ["sh", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


@posix
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "command", ["metrics >/dev/full", "evaluate no no 2>/dev/full", "nothing 2>/dev/full", "run small.yaml 2>/dev/full"]
)
def test_a_stream_that_is_full_is_an_error(file: Path, command: str) -> None:
    done = shell(f"groupgt {command}", file.parent)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr + done.stdout
    assert "Exception ignored" not in done.stderr


@posix
@pytest.mark.parametrize(("least", "expected"), [("0.2", 0), ("0.9", 1), ("nothing", 2)])
def test_output_that_nobody_reads_changes_no_status(file: Path, least: str, expected: int) -> None:
    gate = gates([f'{{system: "*", metric: recall@1, min: {least}}}'])
    file.write_text(EXPERIMENT + gate, encoding="utf-8")
    shell("{ groupgt run small.yaml 2>&1; echo $? >status; } | true", file.parent)
    assert (file.parent / "status").read_text(encoding="utf-8").strip() == str(expected)


# --- Ctrl-C.

# Has Ctrl-C pressed when a module is looked for.
PRESSED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == WHICH:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
sys.argv = ["groupgt", "run", "small.yaml"]
from groupgt.__main__ import main
main()
"""


@posix
@pytest.mark.parametrize(
    "module",
    [
        "groupgt.cli",
        "groupgt.cli.experiments",
        *(
            pytest.param(module, marks=pytest.mark.slow)
            for module in ("click", "groupgt.errors", "groupgt.cli.main", "numpy", "yaml")
        ),
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_quiet(file: Path, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED.replace("WHICH", repr(module))],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": str(Path(groupgt.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stderr.strip() in ("", "groupgt: stopped")
    assert done.stdout == ""


def test_the_installed_command_is_the_quiet_one() -> None:
    import tomllib

    project = Path(groupgt.__file__).parents[1] / "pyproject.toml"
    if project.is_file():
        scripts = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["scripts"]
        assert scripts == {"groupgt": "groupgt.__main__:main"}


# --- Reports of a failed run.


def reports(folder: Path) -> tuple[Path, Path]:
    return folder / "gates.xml", folder / "summary.md"


FAILING = {
    "no such file": ["absent.yaml"],
    "an invalid file": ["small.yaml", "--set", "evaluate.metrics=[nonsense]"],
    "data at fault": ["small.yaml", "--set", "systems.a.with.path=truth.jsonl"],
    "no data": ["small.yaml", "--set", "systems.a.with.path=absent.trec"],
    "an unknown option": ["small.yaml", "--nonsense"],
    "a value of an option": ["small.yaml", "--jobs", "0"],
    "a check": ["small.yaml", "--dry-run", "--set", "evaluate.metrics=[nonsense]"],
}


@pytest.mark.parametrize("arguments", FAILING.values(), ids=FAILING)
def test_a_run_that_fails_replaces_its_reports(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(file.parent)
    junit, summary = reports(file.parent)
    named = ["--junit", str(junit), f"--summary={summary}"]
    assert status("small.yaml", *named) == 0
    assert "failed" not in summary.read_text(encoding="utf-8")
    capsys.readouterr()
    assert status(*arguments, *named) == 2
    suite = ET.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "1")
    why = suite[0][0].get("message") or ""
    assert suite[0][0].tag == "error"
    assert why
    assert why.splitlines()[-1] in capsys.readouterr().err.replace(f"{file.parent}{os.sep}", "")
    assert f"    {why.splitlines()[0]}" in summary.read_text(encoding="utf-8")


@posix
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_whatever_ends_in_2_is_told_in_the_reports(file: Path) -> None:
    junit, _ = reports(file.parent)
    assert shell(f"groupgt run small.yaml --junit '{junit}' >/dev/full", file.parent).returncode == 2
    assert ET.parse(junit).getroot()[0].get("errors") == "1"


def test_ctrl_c_is_told_in_the_reports(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    import signal

    monkeypatch.setattr("groupgt.experiment.runner.read_all", interrupted)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    junit, _ = reports(file.parent)
    assert status(file, "--junit", junit) == 130
    assert ET.parse(junit).getroot()[0][0][0].get("message") == "stopped"


def test_gates_that_fail_are_no_error(file: Path) -> None:
    junit, _ = reports(file.parent)
    assert status(file, "--junit", junit, "--set", "gate.0.min=0.9") == 1
    suite = ET.parse(junit).getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("2", "0")


def test_nothing_else_is_overwritten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option without its value takes the next argument for it."""
    monkeypatch.chdir(file.parent)
    before = file.read_bytes()
    for option in ("--junit", "--summary"):
        assert status(option, "small.yaml") == 2
        assert status("small.yaml", option, "small.yaml") == 2
        assert file.read_bytes() == before


def test_a_report_that_cannot_be_written_is_removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junit, summary = reports(file.parent)
    junit.write_text("<?xml an earlier one", encoding="utf-8")

    def full(*_: object, **__: object) -> None:
        raise groupgt.DataError("No space left on device")

    monkeypatch.setattr("groupgt.store.files.write_text", full)
    assert status(file, "--junit", junit, "--summary", summary) == 2
    assert not junit.exists()


# --- Names of cases.


def cases(junit: Path) -> dict[tuple[str | None, str | None], bool]:
    return {(case.get("classname"), case.get("name")): len(case) == 0 for case in ET.parse(junit).getroot()[0]}


def test_cases_keep_their_names_when_gates_move(file: Path) -> None:
    junit, _ = reports(file.parent)
    assert status(file, "--junit", junit) == 0
    named = cases(junit)
    assert set(named) == {
        ("mine.a", "recall@1, min 0.2"),
        ("mine.a", "recall@1, min 0.2 (2)"),
        ("mine.b", "recall@1, min 0.2"),
        ("mine.b", "recall@1, kind x, max 0.9"),
        ("mine.b", "recall@2, max_drop 0.1, unless not_significant"),
    }
    file.write_text(EXPERIMENT + gates(GATES[::-1]), encoding="utf-8")
    assert status(file, "--junit", junit) == 0
    assert cases(junit) == named
