"""One word for one thing: phrases that must not come back, by surface."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import groupgt
from docs.generate.site import FOLDERS as MADE
from groupgt.cli.main import COMMANDS, cli
from tests.docs.blocks import ROOT
from tests.sources import tree_of

# The phrase, the surfaces on which it must not stand, and what is said there.
EVERYWHERE = ("help", "messages", "pages", "report", "docstrings")
PHRASES = (
    (r"\bat fault\b", EVERYWHERE, "invalid"),
    (r"\bdoubtful\b", EVERYWHERE, "suspicious, invalid or ambiguous"),
    (r"\bmay be chance\b", EVERYWHERE, "not significant (p = …)"),
    (r"\b(meets?|met) (every|all|any|its|no) (of )?(its )?groups?\b", EVERYWHERE, "covers; is complete"),
    (r"\bgroups? (is|are|was|were) (never |not |first )?met\b", EVERYWHERE, "covered"),
    (r"\b(solved|solves) by\b|\bwho solves\b|\bnot solved\b", EVERYWHERE, "complete"),
    (r"\bfully cover(s|ed)?\b", EVERYWHERE, "complete"),
    (r"\bpass(ed|es) over\b", ("help", "messages", "pages", "report"), "skip"),
    (r"\bway out\b", ("help", "messages", "pages", "report"), "fix"),
    (r"\bneutralized\b", EVERYWHERE, "escaped"),
    (r"\basked anew\b", EVERYWHERE, "recomputed, queried again"),
    (r"\bhits? nothing\b", EVERYWHERE, "not relevant, without a hit"),
    (r"\bbest of \d+ (runs|systems) (by|with)\b", EVERYWHERE, "has the highest mean of"),
    (r"\bleft out to fit\b", EVERYWHERE, "Hidden columns"),
    (r"\bwhat is done (with|about)\b", EVERYWHERE, "how … are handled"),
    (r"\bwhat must hold\b", EVERYWHERE, "quality gate"),
    (r"\bthe figure is in\b|\bresults are in \{", EVERYWHERE, "wrote"),
    (r"\bloads nothing\b", ("pages", "report"), "works offline"),
    (r"\bquestions?\b", ("help",), "query"),
    (r"--intervals\b|--check\b|`groupgt (metrics|labellers)\b", EVERYWHERE, "--confidence, --dry-run, groupgt list"),
)
# Where a phrase is meant: a part of the text beside it.
EXCEPTIONS = ("questions.jsonl", "question.js", "fails to meet", "is it at fault")


def _help() -> Iterator[tuple[str, str]]:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)  # type: ignore[attr-defined]
        assert command is not None
        yield f"groupgt {name} --help", command.get_help(click.Context(command, info_name=name))


def _constants(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that are no docstrings; of f-strings the parts between the braces."""
    tree = tree_of(path)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def _messages() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "groupgt").rglob("*.py")):
        for line, text in _constants(path):
            if " " in text:
                yield f"{path.relative_to(ROOT)}:{line}", text


def _pages() -> Iterator[tuple[str, str]]:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if path.relative_to(ROOT / "docs").parts[0] not in MADE]
    for path in pages:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def _report() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "groupgt" / "render" / "page" / "scripts").glob("*.js")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text in re.findall(r'"([^"]* [^"]*)"|`([^`]* [^`]*)`', line):
                yield f"{path.relative_to(ROOT)}:{number}", re.sub(r"\$\{[^}]*\}", "…", "".join(text))


def _docstrings() -> Iterator[tuple[str, str]]:
    for name in groupgt.__all__:
        yield f"groupgt.{name}", getattr(getattr(groupgt, name), "__doc__", None) or ""


SURFACES = {"help": _help, "messages": _messages, "pages": _pages, "report": _report, "docstrings": _docstrings}


@pytest.mark.parametrize("surface", SURFACES)
def test_phrases_that_have_a_better_word(surface: str) -> None:
    found = []
    for place, text in SURFACES[surface]():
        for pattern, surfaces, better in PHRASES:
            match = re.search(pattern, text, re.IGNORECASE) if surface in surfaces else None
            if match and not any(exception in text for exception in EXCEPTIONS):
                context = text[max(match.start() - 40, 0) : match.end() + 40]
                found.append(f"{place}: {match[0]!r} is {better}: {context}")
    assert found == []


def test_a_phrase_is_found() -> None:
    assert any(re.search(pattern, "The input is at fault.") for pattern, _, _ in PHRASES)
    assert len(list(_messages())) > 1000
    assert len(list(_report())) > 50


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
