"""Files of the project outside `docs`, as pages of the site."""

from __future__ import annotations

import posixpath
import re

from docs.generate import ROOT

# Files, and the pages that hold them.
PROJECT = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    ".github/RELEASING.md": "project/releasing.md",
    "skills/groupgt/SKILL.md": "project/skill.md",
    "benchmarks/README.md": "project/speed.md",
    "examples/handbook/README.md": "project/handbook.md",
    "examples/rechunked/README.md": "project/rechunked.md",
    "examples/python_stdlib/README.md": "project/python-stdlib.md",
}
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)")


def pages() -> dict[str, str]:
    """Return each file as a page, with links adapted to the page's place."""
    return {page: moved((ROOT / path).read_text(encoding="utf-8"), path, page) for path, page in PROJECT.items()}


def moved(text: str, path: str, page: str) -> str:
    """Return the text of a file, with its links adapted to the page's place below `docs`."""

    def target(match: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
        whole = posixpath.join("docs", PROJECT[there]) if there in PROJECT else there
        return posixpath.relpath(whole, posixpath.dirname(posixpath.join("docs", page)))

    return LINK.sub(target, text)
