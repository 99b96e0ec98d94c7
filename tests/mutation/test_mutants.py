"""Mutants are the changes one expects, named so that the names stay; and what is explained is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.mutation.__main__ import ROOT, SURVIVORS, explained
from tests.mutation.mutants import mutants

SOURCE = '''
"""A module."""
LIMIT: int = 5


def worth(values, kind="linear"):
    """What it is worth."""
    total = 0
    for value in values:
        if value > LIMIT and kind != "none":
            continue
        total += -value * 2
    print("a message")
    return total
'''


def test_every_change_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    names = [mutant.name for mutant in mutants(tmp_path / "module.py")]
    assert names == [
        "module: 5 → 6",
        "worth: 0 → 1",
        "worth: if value > LIMIT and kind != 'none' → if not (value > LIMIT and kind != 'none')",
        "worth: value > LIMIT and kind != 'none' → value > LIMIT or kind != 'none'",
        "worth: value > LIMIT and kind != 'none' → kind != 'none'",
        "worth: value > LIMIT and kind != 'none' → value > LIMIT",
        "worth: value > LIMIT → value >= LIMIT",
        "worth: kind != 'none' → kind == 'none'",
        "worth: kind != 'none' → kind != 'none?'",
        "worth: continue → break",
        "worth: total += -value * 2 → total -= -value * 2",
        "worth: -value * 2 → -value / 2",
        "worth: -value → value",
        "worth: 2 → 3",
        "worth: print('a message') → pass",
    ]


def test_a_mutant_differs_and_runs(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    worths = set()
    for mutant in mutants(tmp_path / "module.py"):
        scope: dict[str, object] = {"print": lambda text: None}
        exec(compile(mutant.tree, "module.py", "exec"), scope)
        worths.add(scope["worth"]([1, 6, 5]))  # type: ignore[operator]
    assert len(worths) > 5


@pytest.mark.property
def test_what_is_explained_exists() -> None:
    """A survivor that is explained is a mutant of today's text, and says why it survives."""
    kept = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])
    for module in {survivor["module"] for survivor in kept}:
        names = {mutant.name for mutant in mutants(ROOT / module)}
        assert set(explained(module)) <= names
    assert all(survivor["why"].strip() for survivor in kept)
