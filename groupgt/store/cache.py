"""A cache of entries under the hash of what determines them: JSON lines, compressed, with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.store.files import PART, reached, sweep, written_whole
from groupgt.store.journal import ENDING as JOURNAL
from groupgt.store.journal import Journal, left_behind

# What a damaged file may end in: a bit of its head can ask for more memory than there is.
UNREADABLE = (OSError, ValueError, MemoryError, RecursionError)
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
        """What was said about an entry, and its rows; None if there is none, or one that is damaged."""
        try:
            about, *rows = [json.loads(line) for line in _text(self.path(key)).splitlines()]
        except UNREADABLE:
            return None
        is_complete = isinstance(about, dict) and about.get("key") == key and about.get("rows") == len(rows)
        return (about, rows) if is_complete else None

    def write(self, key: str, about: Mapping[str, Any], rows: list[Any]) -> None:
        """Writes an entry, whole or not at all; raises `DataError` if that cannot be done."""
        import zstandard

        path = self.path(key)
        lines = [{**about, "key": key, "rows": len(rows)}, *rows]
        text = "".join(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n" for line in lines)
        data = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(text.encode())
        try:
            self._settle()
            written_whole(path, lambda temporary: _put(temporary, data), follow=False)
        except DataError:
            # Windows renames over nothing that another process has open; then the same entry is there already.
            if os.name != "nt" or self.read(key) is None:
                raise
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None

    def journal(self, key: str, writer: str = "") -> Journal:
        """What a process writes of an entry that is not whole yet, after what one that is gone has left of it."""
        try:
            self._settle()
        except OSError as error:
            raise DataError(f"{self.folder}: cannot be written: {error.strerror or error}") from None
        return Journal.taken_over(self.path(key).parent, key, writer)

    def left_behind(self, key: str) -> list[Any]:
        """What a process that is gone has left of an entry that is not whole, line by line."""
        paths = left_behind(self.path(key).parent, key)
        return list(Journal(paths[-1]).lines()) if paths else []

    def remove_journals(self, key: str, writer: str = "") -> None:
        """Removes what processes that are gone, and this one (or the `writer`), have written of an entry."""
        for path in left_behind(self.path(key).parent, key, writer):
            path.unlink(missing_ok=True)

    def _settle(self) -> None:
        """Has version control pass over a new folder; one that holds something else is not ours to hide."""
        sweep(self.folder)
        ignored = self.folder / ".gitignore"
        names = (
            [each for each in self.folder.iterdir() if not each.name.startswith(PART)] if self.folder.is_dir() else []
        )
        if not names:
            written_whole(ignored, lambda temporary: _put(temporary, NOTE.encode()), follow=False)
            reached("settled the cache")

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of their keys; one that is damaged says nothing of itself."""
        for path in sorted(self.folder.glob("??/*")):
            key, _, ending = path.name.partition(".")
            if not re.fullmatch("[0-9a-f]{64}", key) or path.parent.name != key[:2]:
                continue  # something of the user's own
            try:
                size = path.stat().st_size
                if f".{ending}" == ENDING:
                    about = json.loads(_text(path).partition("\n")[0])
                elif ending.endswith(JOURNAL):
                    about = _of_journal(list(Journal(path).lines()))
                else:
                    continue
            except FileNotFoundError:
                continue  # another process removed it since it was listed
            except (*UNREADABLE, DataError, AttributeError, LookupError, TypeError):
                about = None
            yield Entry(key, size, about if isinstance(about, dict) else {})

    def remove(self, key: str) -> None:
        """Removes an entry, whole or not, if it is there."""
        self.path(key).unlink(missing_ok=True)
        self.remove_journals(key)


def _of_journal(lines: list[Any]) -> dict[str, Any]:
    """What a journal says of itself: what its first line is about, how many rows it has, and when the last came."""
    rows = sum(len(line.get("rows", ())) for line in lines)
    return {**lines[0]["about"], "rows": rows, "made": lines[-1].get("at", "")} if lines else {}


def _put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _text(path: Path) -> str:
    """The decompressed text; raises `ValueError` if its checksum says that it is damaged."""
    import zstandard

    try:
        return zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode()
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
