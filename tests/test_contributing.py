"""CONTRIBUTING says what is there: every function and file it names, the order of imports, and the two walks."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from groupgt.cli.main import main
from groupgt.experiment.starter import write_starter
from tests.test_house import LAYERS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOP = re.compile(r"`([a-z_.]+):([A-Za-z_.]+)`")
WALKS = dict(re.findall(r"<!-- walk: (\w+) -->\n(.*?)\n\n", TEXT, re.DOTALL))


def resolved(module: str, name: str) -> Any:
    """What a hop names, as it stands in its class."""
    found: Any = importlib.import_module(f"groupgt.{module}")
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return found


def code_of(hop: tuple[str, str]) -> CodeType:
    found = resolved(*hop)
    for attribute in ("func", "fget", "__func__", "callback", "__wrapped__"):
        found = getattr(found, attribute, None) or found
    code: CodeType = found.__code__
    return code


def test_both_walks_are_there() -> None:
    assert set(WALKS) == {"evaluate", "run"}
    assert all(len(HOP.findall(walk)) > 10 for walk in WALKS.values())


@pytest.mark.parametrize("hop", sorted(set(HOP.findall(TEXT))), ids=":".join)
def test_every_hop_is_a_function(hop: tuple[str, str]) -> None:
    found = resolved(*hop)
    assert callable(found) or isinstance(found, (property, cached_property, classmethod, staticmethod))


def walked(arguments: list[str]) -> list[CodeType]:
    """Every function of ours, in the order of their first calls."""
    calls: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls.setdefault(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        main(arguments)
    finally:
        sys.setprofile(before)
    return list(calls)


@pytest.mark.parametrize("command", ["evaluate", pytest.param("run", marks=pytest.mark.slow)])
def test_a_walk_goes_along_its_hops(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if command == "run":
        write_starter(tmp_path)
        arguments = ["run", "experiment.yaml"]
    else:
        row = {"qid": "q", "retrieval_gt": [["a"], ["b"]]}
        (tmp_path / "questions.jsonl").write_text(json.dumps(row), encoding="utf-8")
        (tmp_path / "run.trec").write_text("q Q0 a 1 1 t\n", encoding="utf-8")
        arguments = ["evaluate", "questions.jsonl", "run.trec", "-m", "recall@5"]
    calls = walked(arguments)
    assert capsys.readouterr().out
    hops = HOP.findall(WALKS[command])
    missing = [hop for hop in hops if code_of(hop) not in calls]
    assert missing == []
    order = [calls.index(code_of(hop)) for hop in hops]
    assert order == sorted(order), [hop for _, hop in sorted(zip(order, hops, strict=True))]


def test_files_and_folders_are_there() -> None:
    named = {name for name in re.findall(r"`([\w./-]+)`", TEXT) if "/" in name or name.endswith((".py", ".md"))}
    assert len(named) > 20
    for name in named:
        assert any((base / name).exists() for base in (ROOT, ROOT / "groupgt")), name


def test_the_order_of_imports_is_that_of_the_house() -> None:
    (line,) = re.findall(r"^`(.* < .*)`$", TEXT, re.MULTILINE)
    told = [set(part.strip("{} ").split(", ")) for part in line.split(" < ")]
    assert told == LAYERS


def test_every_part_has_its_line() -> None:
    told = {name.strip("/").removesuffix(".py") for name in re.findall(r"`([\w.]+[/y])`(?=[^|]*\|)", TEXT)}
    assert {name for layer in LAYERS for name in layer} <= told


def test_every_part_of_the_tests_is_told() -> None:
    """A folder of tests mirrors one of the package, or CONTRIBUTING says what it is for; so it does of tools."""
    package = {path.name for path in (ROOT / "groupgt").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    tools = {path.name for path in (ROOT / "tests").glob("*.py")} - {"__init__.py", "conftest.py"}
    told = re.findall(r"tests/(\w+(?:\.py|\.lock)?)", TEXT.partition("## How it is tested")[2])
    modules = {f"tests.{name.removesuffix('.py')}" for name in tools if not name.startswith("test_")}
    assert folders - package - set(told) == set()
    assert {name for name in modules if name not in TEXT and f"{name.replace('.', '/')}.py" not in TEXT} == set()
    assert [name for name in told if not list((ROOT / "tests").glob(f"{name}*"))] == []
