"""Result folders: written whole or not at all, each beside the earlier ones, the newest named in `latest`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from groupgt.errors import DataError
from groupgt.store.files import sweep, sync, temporary_folder, write_text
from groupgt.store.points import reached

__all__ = ["write_folder"]

LAST = "manifest.json"


def write_folder(parent: Path, digest: str, files: Mapping[str, Callable[[Path], None]]) -> Path:
    """Writes `files` (name → what writes it) into a new folder `<time>-<digest>`; the manifest goes in last.

    They are written into a temporary folder beside it, which is renamed when it is whole; two at once do not mix.
    """
    with temporary_folder(parent) as temporary:
        sweep(parent)
        reached("made the part of a result folder")
        for name in sorted(files, key=lambda name: (name == LAST, name)):
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            files[name](target)
            sync(target)
            reached(f"wrote {target.suffix or name} of a result folder")
        folder = _renamed(temporary, parent, digest)
        reached("renamed a result folder")
        write_text(parent / "latest", folder.name + "\n")
        return folder


def _renamed(temporary: Path, parent: Path, digest: str) -> Path:
    for number in range(1000):
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        folder = parent / f"{time}-{digest}{f'-{number}' if number else ''}"
        if not folder.exists():
            try:
                return temporary.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
    raise DataError(f"{parent}: there is no free name left for a result folder")
