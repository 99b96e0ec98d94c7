"""Pages, docstrings and messages are spelled as codespell and the project's own list (`docs/spelling.txt`) have it."""

from __future__ import annotations

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
