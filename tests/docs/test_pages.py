"""Every block of a page is run, or says why not; what a page quotes or explains, the program says."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs.generate.site import FOLDERS as MADE
from tests.docs.blocks import ROOT, RUNS, accounts, blocks
from tests.sources import tree_of

pytestmark = pytest.mark.slow

# A sentence in double quotes, one in emphasis within a line, and a block of quotation.
QUOTED = re.compile(r"[\"“]([^\"”]+[.!?])[\"”]|(?<=[ (])\*([A-Z][^*\n]+[.!?])\*(?!\*)|((?:^> .*\n?)+)", re.MULTILINE)


def written() -> list[Path]:
    """The pages below `docs` that are written by hand."""
    docs = ROOT / "docs"
    return sorted(path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in (*MADE, "_build"))


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
    pages += written()
    pages += (ROOT / "examples").glob("*/README.md")
    named = {name for name, _, _ in accounts()}
    for path in pages:
        held = [block for block in blocks(path.read_text(encoding="utf-8")) if block.language in RUNS]
        assert not held or path.relative_to(ROOT).as_posix() in named, path


def test_messages_that_a_page_explains_exist() -> None:
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `(.*?)`(?: \(.*\))? \|", page, re.MULTILINE)
    assert len(explained) >= 20
    parts = [part for text in explained for part in re.split(r", |…", text) if len(part.strip()) > 5]
    assert [part for part in parts if part not in strings_of_the_package()] == []


@pytest.mark.parametrize("path", [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + written())
def test_what_a_page_quotes_is_printed(path: Path) -> None:
    """A sentence in quotes is what a block of the page prints, a string of the package, or a query of an example."""
    assert unprinted(path.read_text(encoding="utf-8")) == []


def test_a_quotation_that_nothing_prints_is_found() -> None:
    """In quotes, in emphasis within a line, and as a block."""
    page = 'It says "bm25 is complete now." or *Nothing is as it was.*\n\n> All went well.\n> Truly.\n'
    invented = ["bm25 is complete now.", "Nothing is as it was.", "All went well. Truly."]
    assert unprinted(page) == invented
    printed = "\n".join(invented)
    assert unprinted(f"{page}\n```text\n{printed}\n```\n") == []
    assert unprinted('Somebody asks "Who wrote The Trial?" in it.') == []


def unprinted(page: str) -> list[str]:
    """The quotations of a page that neither its blocks, nor the package, nor an example contains."""
    printed = " ".join(block.text for block in blocks(page))
    prose = re.sub(r"<!-- the summary -->.*?<!-- ends here -->", " ", page, flags=re.DOTALL)
    prose = re.sub(r"^```.*?^```$|<!--.*?-->|`[^`]*`", " x ", prose, flags=re.MULTILINE | re.DOTALL)
    known = " ".join(f"{printed} {strings_of_the_package()} {questions()}".split())
    found = (" ".join(re.sub(r"^> ?", "", "".join(each), flags=re.MULTILINE).split()) for each in QUOTED.findall(prose))
    return [text for text in found if text.count(" ") > 1 and text not in known]


@cache
def questions() -> str:
    """The files of the small examples."""
    return " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*/*.jsonl"))


@cache
def strings_of_the_package() -> str:
    """What the package may say: its strings, with … for what is filled in, and the scripts of its pages."""
    trees = [tree_of(path) for path in (ROOT / "groupgt").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.JoinedStr))]
    scripts = [path.read_text(encoding="utf-8") for path in (ROOT / "groupgt").rglob("*.js")]
    return "\n".join([*map(_with_gaps, nodes), *scripts])


def _with_gaps(node: ast.expr) -> str:
    """A text as it is written, with … for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_with_gaps, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "…"
