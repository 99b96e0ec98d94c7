"""Names that were removed: whoever still types one is told what to do, in the shell, experiment files and Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import COMMANDS, cli
from groupgt.errors import ConfigError
from groupgt.experiment.config import Config
from groupgt.gone import GONE, way_out
from groupgt.options import options_from

pytestmark = pytest.mark.slow

ONE = {"q": [["a"]]}


def shell(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "groupgt", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.parametrize("name", GONE["command"])
def test_commands(name: str) -> None:
    code, error = shell(*name.split(), "truth.jsonl")
    assert (code, way_out("command", name) in error) == (2, True)


@pytest.mark.parametrize("name", GONE["option"])
def test_options(name: str) -> None:
    *command, option = name.split()
    code, error = shell(*(command or [owner_of(option)]), option, "x")
    assert (code, way_out("option", name) in error) == (2, True)


def owner_of(option: str) -> str:
    return {"--methods": "compare"}.get(option, "plot")


@pytest.mark.parametrize("name", GONE["key"])
def test_keys(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        options_from(Config, {"version": 1, name: "x"})
    assert way_out("key", name) in str(error.value)


@pytest.mark.parametrize("name", [name for name in GONE["python"] if "." not in name])
def test_public_names(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^{name} was removed: "):
        getattr(groupgt, name)


def test_attributes_of_results() -> None:
    table = groupgt.compare(ONE, {"a": {"q": ["a"]}, "b": {"q": ["b"]}}, ["recall@1"])
    with pytest.raises(AttributeError, match=r"^Comparison.methods was removed: .*to_latex"):
        table.methods  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"^'Comparison' object has no attribute 'nothing'$"):
        table.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_nothing_in_the_table_is_back() -> None:
    options = {
        f"{name} {text}" for name in COMMANDS for each in cli.get_command(None, name).params for text in each.opts
    }  # type: ignore[arg-type, union-attr]
    names = {text.partition(" ")[2] for text in options} | options
    assert not names & GONE["option"].keys()
    assert not COMMANDS.keys() & GONE["command"].keys()
    assert not set(groupgt.__all__) & GONE["python"].keys()


def test_pages_name_no_removed_command() -> None:
    root = Path(groupgt.__file__).parents[1]
    pages = [
        root / "README.md",
        *(page for name in ("docs", "skills", "examples") for page in root.glob(f"{name}/**/*.md")),
    ]
    used = [name for name in GONE["command"] for page in pages if f"groupgt {name} " in page.read_text("utf-8")]
    assert used == []
