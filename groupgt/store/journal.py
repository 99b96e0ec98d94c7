"""Keeps answers and verdicts as they arrive, in a journal that belongs to one process until that process ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.records import record
from groupgt.store.files import is_gone, owner

ENDING = ".journal"
TIME = "%Y-%m-%dT%H:%M:%SZ"
# Seconds after which a journal of another host is taken over, as its process cannot be checked from here.
QUIET_S = 60.0


class Journal:
    """A file of JSON lines. Lines that were cut off are ignored. Without a path, nothing is stored."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @property
    def owner(self) -> str:
        """The process that the file belongs to."""
        return "" if self.path is None else self.path.name.partition(".")[2].removesuffix(ENDING)

    @property
    def written(self) -> float:
        """The time of the file's last change in seconds, or 0 if there is no file."""
        try:
            return 0.0 if self.path is None else self.path.stat().st_mtime
        except OSError:
            return 0.0

    def lines(self) -> Iterator[Any]:
        """Yield the objects and lists appended so far by any process."""
        try:
            data = b"" if self.path is None else self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        for line in data.splitlines():
            with suppress(ValueError):
                yield json.loads(line)

    def append(self, *values: Any) -> None:
        """Append values, or raise `DataError` if they cannot be written."""
        if self.path is None:
            return
        lines = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                # Ends a truncated line; a concurrent process appends complete lines of its own.
                file.write(b"\n" + lines if lines and file.tell() else lines)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from None

    def remove(self) -> None:
        """Remove the file if it exists."""
        if self.path is not None:
            with suppress(OSError):  # it is not writable either
                self.path.unlink(missing_ok=True)


@record
class Journals:
    """The journals with one `name`, one per process. `writer` is this process, or the process it works for."""

    folder: Path | None
    name: str
    writer: str = field(default_factory=owner)

    def of(self, process: str) -> Journal:
        """Return the journal of a process."""
        return Journal(None if self.folder is None else self.folder / f"{self.name}.{process}{ENDING}")

    @property
    def own(self) -> Journal:
        """The writer's journal."""
        return self.of(self.writer)

    def adopted(self, process: str) -> Journal:
        """Return the writer's own journal, continuing the one that the ended `process` left, if any."""
        own, left = self.own, self.of(process)
        if own.path is not None and left.path is not None:
            with suppress(OSError):  # it left none under this name
                left.path.replace(own.path)
        return own

    def taken_over(self) -> Journal:
        """Return the writer's own journal, continuing the latest one that an ended process left, if any."""
        *older, latest = self.left_behind() or [self.own]
        for journal in older:
            journal.remove()
        return self.adopted(latest.owner)

    def left_behind(self) -> list[Journal]:
        """Return the journals that no process but the writer may write to, newest last."""
        left: list[Journal] = []
        for path in sorted(self.folder.glob(f"{self.name}.*{ENDING}")) if self.folder is not None else ():
            journal = Journal(path)
            with suppress(FileNotFoundError):  # another process has taken it over
                if journal.owner == self.writer or is_gone(journal.owner, path, after=QUIET_S):
                    left.append(journal)
        return sorted(left, key=lambda journal: journal.written)

    def remove(self) -> None:
        """Remove the journals that no process but the writer may write to."""
        for journal in self.left_behind():
            journal.remove()


def now() -> str:
    """Return the current time in the format used by journals and the cache."""
    return datetime.now(UTC).strftime(TIME)
