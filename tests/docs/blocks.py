"""The blocks of a page, run from top to bottom in a folder of their own: what they print is what the page should show.

`python -m tests.docs.blocks` says of all pages how many blocks are run, and why the others are not.

- A block below `<!-- file: NAME -->` is written to that file.
- `console` shows commands and what they print; those of groupgt are run, and may end with a status told by
  `<!-- exits: 1 -->`.
- `sh` shows commands alone; those of groupgt are run, and must end well.
- `python` is run in one namespace a page; a `text` block that follows is what it prints.
- `<!-- not run: REASON -->` leaves a block as it is. Other languages are shown, not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupgt import plugins
from groupgt.cli.main import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("start", "how-to")
NAMES = ("index", "metrics", "commands", "compare", "labellers", "experiments", "coming-from", "glossary", "references")
PAGES = [
    ROOT / "README.md",
    *(DOCS / f"{name}.md" for name in NAMES),
    *sorted(path for folder in FOLDERS for path in (DOCS / folder).glob("*.md")),
]
# Pages whose blocks run whole experiments.
SLOW = ("own-data", "gate", "paper", "chunk-size")
# The other pages with blocks, and what runs theirs.
ELSEWHERE = {
    "CONTRIBUTING.md": {"sh": ".ci/run"},
    "AGENTS.md": {"sh": ".ci/run"},
    "skills/groupgt/SKILL.md": dict.fromkeys(("sh", "python", "yaml"), "tests/docs/test_agents.py"),
    "docs/how-to/large.md": {"python": "tests/docs/test_clusters.py"},
    "docs/benchmarks.md": {},
    "docs/formats.md": {},
    "SECURITY.md": {},
    "examples/python_stdlib/README.md": {},
}
# Languages of blocks that do something.
RUNS = ("console", "sh", "bat", "python")
# What a reader has in a checkout.
COPIED = ("examples/handbook", "examples/rechunked", "examples/first", "examples/answers", "configs")
BLOCK = re.compile(r"^(?:<!-- ([\w ]+): (.*?) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Commands that are shown and not run: of shells and installers.
SHELL = ("pip", "python", "python3", "cd", "git", "mkdir", ".venv/bin/pip", "eval")


@dataclass(frozen=True)
class Block:
    """One block of a page: the place of its text, its language, what the comment above it says."""

    start: int
    end: int
    language: str
    text: str
    note: str
    told: str

    @property
    def is_run(self) -> bool:
        """Whether anything is done with it."""
        if self.note == "not run":
            return False
        return self.note == "file" or self.language in ("console", "sh", "python")


def blocks(page: str) -> list[Block]:
    """The blocks of a page."""
    return [
        Block(found.start(4), found.end(4), found[3], found[4], found[1] or "", found[2] or "")
        for found in BLOCK.finditer(page)
    ]


def accounts() -> list[tuple[str, Block, str]]:
    """Every block of the project's pages, and what becomes of it; nothing where nobody has said."""
    made = []
    for path in [*PAGES, *(ROOT / name for name in ELSEWHERE)]:
        name = path.relative_to(ROOT).as_posix()
        others = ELSEWHERE.get(name)
        before = ""
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.note == "not run":
                told = f"not run: {block.told}"
            elif block.language not in RUNS and block.note != "file":
                follows = block.language == "text" and before in ("python", "console")
                told = "compared" if follows and others is None else "shown"
            elif others is None:
                told = "run"
            else:
                told = f"run by {others[block.language]}" if block.language in others else ""
            made.append((name, block, told))
            before = block.language
    return made


def command(words: list[str]) -> tuple[str, int]:
    """What a command of groupgt prints, and its exit status; of `run` without the table of times at the end."""
    out, status = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    shown = re.sub(r"\ntime  .*", "", out.getvalue(), flags=re.DOTALL) if words[0] == "run" else out.getvalue()
    return (shown + said.getvalue() if status == 2 else shown), status


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a block, of groupgt alone; any other must be one that a reader's shell knows."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if not words:
            continue
        if words[0].rpartition("/")[2] == "groupgt":
            yield words[1:]
        else:
            assert words[0] in SHELL, f"unknown command: {line}"


def session(block: Block) -> str:
    """A block of commands with what they print now."""
    parts = re.split(r"^(\$ .*\n(?:(?<=\\\n).*\n)*)", block.text, flags=re.MULTILINE)[1:]
    shown = []
    for typed, told in zip(parts[::2], parts[1::2]):
        printed = told
        for words in commands(typed):
            printed, status = command(words)
            assert str(status) == (block.told if block.note == "exits" else "0"), f"{typed} exits {status}: {printed}"
        shown.append(typed + trimmed(printed))
    return "\n".join(shown)


def trimmed(text: str) -> str:
    """Output as a page has it: without blanks at the ends of lines, and empty lines around it."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def page(path: Path) -> dict[Path, str]:
    """Return the text of a page with what its blocks print now."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, checkout(Path(folder)):
        for block, printed in reversed(run(text)):
            text = text[: block.start] + printed + text[block.end :]
    return {path: text}


def run(page: str) -> list[tuple[Block, str]]:
    """Run the blocks of a page in the current folder: each block that shows output, and what it should be."""
    names: dict[str, Any] = {"__name__": "shown"}
    found: list[tuple[Block, str]] = []
    printed: str | None = None
    for block in blocks(page):
        before, printed = printed, None
        if block.note == "not run":
            continue
        if block.note == "file":
            path = Path(block.told)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            sys.modules.pop(path.stem, None)  # a test before may have loaded another module of this name
        elif block.language == "console":
            found.append((block, session(block)))
        elif block.language == "sh":
            for words in commands(block.text):
                text, status = command(words)
                assert status == 0, f"{words} exits {status}: {text}"
        elif block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(block.text, "page", "exec"), names)
            printed = trimmed(out.getvalue())
        elif block.language == "text" and before is not None:
            found.append((block, before))
    return found


@contextlib.contextmanager
def checkout(folder: Path) -> Iterator[None]:
    """A folder with what a page may name, in which it is run; what it registers or loads is forgotten."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    before, path, modules, registered = Path.cwd(), list(sys.path), set(sys.modules), dict(plugins.REGISTERED)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        plugins.REGISTERED.clear()
        plugins.REGISTERED.update(registered)
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


if __name__ == "__main__":
    for told, count in sorted(Counter(told for _, _, told in accounts()).items()):
        print(f"{count:4} {told}")
