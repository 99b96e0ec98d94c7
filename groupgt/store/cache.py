"""A cache of entries keyed by a hash of their inputs, stored as compressed JSON lines with a checksum."""

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
from groupgt.runtime import zstd
from groupgt.store.files import PART, sweep, write_bytes, write_text
from groupgt.store.journal import ENDING as JOURNAL
from groupgt.store.journal import Journal, Journals

# Errors that a damaged file may cause.
UNREADABLE = (OSError, ValueError)
ENDING = ".jsonl.zst"
NOTE = "# Cached runs, written by groupgt. You can delete this folder at any time.\n*\n"


def key_of(determining: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an entry's inputs in canonical form."""
    text = json.dumps(determining, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Entry:
    """A cache entry as listed: its key, size in bytes, and description."""

    key: str
    size: int
    about: dict[str, Any]


class Cache:
    """A folder of cache entries, one file each. Several processes can safely write the same entry at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Return the path of an entry."""
        return self.folder / key[:2] / f"{key}{ENDING}"

    def read(self, key: str) -> tuple[dict[str, Any], list[Any]] | None:
        """Return the description and the rows of an entry, or None if it is missing or damaged."""
        try:
            about, *rows = [json.loads(line) for line in _text(self.path(key)).splitlines()]
        except UNREADABLE:
            return None
        is_complete = isinstance(about, dict) and about.get("key") == key and about.get("rows") == len(rows)
        return (about, rows) if is_complete else None

    def write(self, key: str, about: Mapping[str, Any], rows: list[Any]) -> None:
        """Write an entry atomically, or raise `DataError` if it cannot be written."""
        path = self.path(key)
        lines = [{**about, "key": key, "rows": len(rows)}, *rows]
        text = "".join(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n" for line in lines)
        data = zstd.compress(text.encode(), options={zstd.CompressionParameter.checksum_flag: 1})
        try:
            self.settle()
            write_bytes(path, data)
        except DataError:
            # Windows cannot replace a file that another process has open; in that case the same entry already exists.
            if os.name != "nt" or self.read(key) is None:
                raise
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror or error}") from None

    def settle(self) -> None:
        """Make version control ignore a new folder, unless the folder contains other files."""
        sweep(self.folder)
        if not self.folder.is_dir() or all(path.name.startswith(PART) for path in self.folder.iterdir()):
            write_text(self.folder / ".gitignore", NOTE)

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, sorted by key. A damaged entry has an empty description."""
        for path in sorted(self.folder.glob("??/*")):
            key, _, ending = path.name.partition(".")
            if not re.fullmatch("[0-9a-f]{64}", key) or path.parent.name != key[:2]:
                continue  # a file of the user
            try:
                size = path.stat().st_size
                if f".{ending}" == ENDING:
                    about = json.loads(_text(path).partition("\n")[0])
                elif ending.endswith(JOURNAL):
                    lines = list(Journal(path).lines())
                    rows = sum(len(line.get("rows", ())) for line in lines)
                    about = {**lines[0]["about"], "rows": rows, "made": lines[-1].get("at", "")} if lines else {}
                else:
                    continue
            except FileNotFoundError:
                continue  # another process removed it after it was listed
            except (*UNREADABLE, DataError, AttributeError, LookupError, TypeError):
                about = None
            yield Entry(key, size, about if isinstance(about, dict) else {})

    def remove(self, key: str) -> None:
        """Remove an entry, complete or incomplete, if it exists."""
        self.path(key).unlink(missing_ok=True)
        Journals(self.path(key).parent, key).remove()


def _text(path: Path) -> str:
    """Decompress an entry, or raise `ValueError` if its checksum does not match."""
    try:
        return zstd.decompress(path.read_bytes()).decode()
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None
