"""A cache of entries under the hash of what determines them: JSON lines, compressed, with a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.store.files import sweep, written_whole
from groupgt.store.points import reached

__all__ = ["Cache", "Entry", "key_of"]

ENDING = ".jsonl.zst"
NOTE = "# Made by groupgt: runs that need not be retrieved again. It may be removed at any time.\n*\n"


def key_of(determining: Mapping[str, Any]) -> str:
    """The SHA-256 of what determines an entry, in one spelling.

    >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(determining, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Entry:
    """One entry of the cache as a list shows it: its key, size in bytes, and what was said about it."""

    key: str
    size: int
    about: dict[str, Any]


class Cache:
    """Entries in a folder, each a file; processes that write the same one at once do each other no harm."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Where an entry lies."""
        return self.folder / key[:2] / f"{key}{ENDING}"

    def __contains__(self, key: str) -> bool:
        return self.path(key).is_file()

    def read(self, key: str) -> tuple[dict[str, Any], list[Any]] | None:
        """What was said about an entry, and its rows; None where there is none, or one that is damaged."""
        path = self.path(key)
        try:
            lines = _text(path).splitlines()
            about, *rows = [json.loads(line) for line in lines]
        except (OSError, ValueError):
            return None
        return (about, rows) if isinstance(about, dict) and about.get("rows") == len(rows) else None

    def write(self, key: str, about: Mapping[str, Any], rows: list[Any]) -> None:
        """Writes an entry, whole or not at all."""
        import zstandard

        path = self.path(key)
        lines = [{**about, "rows": len(rows)}, *rows]
        text = "".join(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n" for line in lines)
        data = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(text.encode())
        self._settle(path.parent)
        try:
            written_whole(path, lambda temporary: _put(temporary, data))
        except DataError:
            # Windows renames over nothing that another process has open; then the entry is there already.
            if not path.is_file():
                raise

    def _settle(self, folder: Path) -> None:
        """Makes the folder, and has version control pass over it."""
        ignored = self.folder / ".gitignore"
        # A folder that holds something else is not ours to hide.
        if not self.folder.is_dir() or not any(self.folder.iterdir()):
            written_whole(ignored, lambda temporary: _put(temporary, NOTE.encode()))
            reached("settled the cache")
        sweep(folder)
        sweep(self.folder)

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of their keys; one that is damaged says nothing of itself."""
        for path in sorted(self.folder.glob(f"??/*{ENDING}")):
            try:
                about = json.loads(_text(path).partition("\n")[0])
            except (OSError, ValueError):
                about = {}
            yield Entry(path.name.removesuffix(ENDING), path.stat().st_size, about)

    def remove(self, key: str) -> None:
        """Removes an entry, where it is there."""
        self.path(key).unlink(missing_ok=True)


def _put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _text(path: Path) -> str:
    """The decompressed text; raises `ValueError` where its checksum says that it is damaged."""
    import zstandard

    try:
        return zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode()
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
