"""Writes time-stamped folders named `<time>-<digest>`, and next to them a `latest` file that names the newest one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from groupgt.store import files

LAST = "manifest.json"
LATEST = "latest"
TIME = "%Y%m%dT%H%M%S"
_STAMP = re.compile("[0-9]{8}T[0-9]{6}")
# Writes a file at a path, or beside it with the ending of another format.
Writer = Callable[[Path], object]


def write_stamped(parent: Path, digest: str, writers: Mapping[str, Writer]) -> Path:
    """Write a new `<time>-<digest>` folder by calling `writers` (keyed by file name), the manifest last."""
    with files.temporary_folder(parent) as temporary:
        files.sweep(parent)
        for name in sorted(writers, key=lambda name: (name == LAST, name)):
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            writers[name](target)
        folder = _renamed(temporary, parent, digest)
        files.write_text(parent / LATEST, folder.name + "\n")
        return folder


def text_file(text: str) -> Writer:
    """Return a function that writes the text to a file."""
    return partial(Path.write_text, data=text, encoding="utf-8", newline="")


def _renamed(temporary: Path, parent: Path, digest: str) -> Path:
    number = 0
    while True:
        folder = parent / f"{datetime.now(UTC):{TIME}}-{digest}{f'-{number}' if number else ''}"
        if not folder.exists():
            try:
                return temporary.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
        number += 1


def age_of(path: Path) -> tuple[str, int]:
    """Return the sort key of a stamped folder: the time in its name, then the time its last file was written."""
    return path.name.split("-")[0], (path / LAST).stat().st_mtime_ns


def has_stamp(path: Path) -> bool:
    """Return whether a folder name starts with a time stamp."""
    return _STAMP.match(path.name) is not None
