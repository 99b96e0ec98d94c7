"""Every block of a page is run, or says why not; the messages that a page explains exist."""

from __future__ import annotations

import ast
import re

from docs.generate.site import FOLDERS as MADE
from tests.docs.blocks import ROOT, RUNS, accounts, blocks
from tests.sources import tree_of


def test_every_block_is_run_or_says_why_not() -> None:
    """Of all pages: what could be run is run here or by another test, or has a reason."""
    made = accounts()
    assert [(page, block.text) for page, block, told in made if not told or told == "not run: "] == []
    assert sum(told.startswith("run") for _, _, told in made) > 80
    for page, block, told in made:
        if told.startswith("run by "):
            assert (ROOT / told.removeprefix("run by ")).is_file(), (page, block.text)


def test_every_page_with_blocks_is_accounted_for() -> None:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if path.relative_to(ROOT / "docs").parts[0] not in MADE]
    pages += (ROOT / "examples").glob("*/README.md")
    named = {name for name, _, _ in accounts()}
    for path in pages:
        held = [block for block in blocks(path.read_text(encoding="utf-8")) if block.language in RUNS]
        assert not held or path.relative_to(ROOT).as_posix() in named, path


def test_messages_that_a_page_explains_exist() -> None:
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `(.*?)`(?: \(.*\))? \|", page, re.MULTILINE)
    assert len(explained) >= 20
    trees = [tree_of(path) for path in (ROOT / "groupgt").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    written = "\n".join(map(_with_gaps, nodes))
    parts = [part for text in explained for part in re.split(r", |…", text) if len(part.strip()) > 5]
    assert [part for part in parts if part not in written] == []


def _with_gaps(node: ast.expr) -> str:
    """A text as it is written, with … for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_with_gaps, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "…"
