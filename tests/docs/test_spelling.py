"""Pages, docstrings and messages are spelled as codespell and the project's own list (`docs/spelling.txt`) have it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

PLACES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "groupgt", "examples", "configs")


def sound(*places: str | Path) -> bool:
    spelling = pytest.importorskip("codespell_lib", reason="the extra groupgt[lint] is not installed")
    return not spelling.main("--toml", str(ROOT / "pyproject.toml"), *map(str, places))


def test_nothing_is_misspelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert sound(*PLACES)


def test_what_is_misspelled_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "page.md").write_text("The labeler recieves a colour. A labeller is fine.\n", encoding="utf-8")
    assert not sound(tmp_path / "page.md")
    words = [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()]
    assert words == ["labeler ==> labeller", "recieves ==> receives", "colour ==> color"]


def test_the_list_is_in_force() -> None:
    held = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["codespell"]
    assert "docs/spelling.txt" in held["dictionary"]
