"""Rewrite everything that is derived from the code: `python -m tests.update [WORD]`; the diff is the review.

The table below says how each derived file is made, and `tests/test_derived.py` which are stale. Snapshots of tests,
pictures and figures follow. With a word, only what has it in its name is made.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from docs.generate import figures, notebooks, same_word, screenshot
from groupgt.experiment.json_schema import schema_text
from tests import browser, release, snapshots
from tests.docs import blocks, pull_request, tables

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Derived:
    """Files that are made by code: their texts, whether making them is slow, and the modules that it needs."""

    make: Callable[[], dict[Path, str]]
    slow: bool = False
    needs: tuple[str, ...] = ()
    # How far numbers may differ: those of another processor have other last digits.
    slack: float = 0

    @property
    def missing(self) -> list[str]:
        """Return the modules that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]

    def stale(self) -> list[Path]:
        """Return the files that hold something else."""
        return [path for path, text in self.make().items() if not self._alike(text, path.read_text(encoding="utf-8"))]

    def _alike(self, text: str, kept: str) -> bool:
        if text == kept or not self.slack:
            return text == kept
        number = r"([-+]?\d+\.\d+(?:e-?\d+)?)"
        made, before = re.split(number, text), re.split(number, kept)
        close = all(abs(float(one) - float(other)) <= self.slack for one, other in zip(made[1::2], before[1::2]))
        return made[::2] == before[::2] and close


DERIVED: dict[str, Derived] = {
    "schema of experiment files": Derived(lambda: {ROOT / "configs" / "groupgt.schema.json": schema_text()}),
    "version, author and repository": Derived(release.Release().derived),
    "page of other tools": Derived(lambda: {same_word.PATH: same_word.text()}, slow=True),
    "tables of commands": Derived(tables.commands),
    "table of chunkings": Derived(tables.chunkings, slow=True),
    "comparison of the sweep": Derived(tables.sweep, slow=True, needs=("Stemmer", "sklearn"), slack=5e-3),
    "summaries of pull requests": Derived(pull_request.page, slow=True),
    "what figures show": Derived(figures.files, slack=1e-6),
    **{f"notebook {name}": Derived(partial(notebooks.files, name), slow=True) for name in notebooks.NAMES},
    **{
        path.relative_to(ROOT).as_posix(): Derived(partial(blocks.page, path), slow=path.stem in blocks.SLOW)
        for path in blocks.PAGES
    },
}


def write(name: str, derived: Derived) -> str:
    """Write the files that are stale and say which."""
    if derived.missing:
        return f"skipped: {', '.join(derived.missing)} not installed"
    written = []
    for path, text in derived.make().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
            written.append(path.relative_to(ROOT).as_posix())
    return f"wrote {', '.join(written)}" if written else ""


def write_snapshots() -> str:
    """Run the tests that have snapshots, those left out by default too, and let them write."""
    modules = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "snapshot" in path.read_text("utf-8")]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-m", "", snapshots.OPTION]
    done = subprocess.run([*command, *map(str, modules)], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"not all of them ran:\n{done.stdout[-3000:]}"


def draw() -> str:
    """Draw the figures of pages."""
    if find_spec("vl_convert") is None:
        return "skipped: vl_convert not installed"
    figures.draw()
    return ""


def picture() -> str:
    """Take the picture of a report."""
    if browser.found() is None:
        return "skipped: no browser"
    screenshot.take()
    return ""


def main() -> None:
    """Write everything and print what was written and what was skipped."""
    os.chdir(ROOT)
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    rest = {"snapshots of tests": write_snapshots, "figures of pages": draw, "picture of a report": picture}
    for name, step in [*((name, partial(write, name, each)) for name, each in DERIVED.items()), *rest.items()]:
        if word in name and (told := step()):
            print(f"{name}: {told}", flush=True)
    changed = subprocess.run(["git", "status", "--short"], capture_output=True, text=True, check=False).stdout
    print(changed or "nothing changed", end="" if changed else "\n")


if __name__ == "__main__":
    main()
