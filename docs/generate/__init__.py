"""The pages generated from the code and the project's files: the reference, and the pages about the project.

`python -m docs.generate FOLDER` writes them as plain Markdown; `docs/conf.py` writes them when the site is built.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@cache
def pages() -> dict[str, str]:
    """Return every generated page: its path below `docs`, and its Markdown."""
    from docs.generate import choices, commands, formats, keys, metrics, outcomes, project, python

    made: dict[str, str] = {}
    for part in (metrics, commands, keys, choices, formats, python, outcomes, project):
        made |= part.pages()
    return made


def write(folder: Path) -> list[Path]:
    """Write the pages below a folder and return their paths."""
    paths = []
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip() + "\n", encoding="utf-8")
        paths.append(path)
    return paths
