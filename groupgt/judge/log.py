"""One annotator's append-only journal, open in only one process. Actions are synced before they are confirmed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, DataError, warn
from groupgt.formats.journals import encoded, read_acts
from groupgt.formats.replay import Act
from groupgt.formats.source import Source
from groupgt.store.journal import now
from groupgt.store.lock import lock

ENDING = ".jsonl"
_NAME = re.compile(r"[\w.@-]{1,80}")
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class ActLog:
    """The actions of one annotator, in a file that stays locked while it is open."""

    def __init__(self, folder: Path, by: str) -> None:
        if not _NAME.fullmatch(by) or by.startswith("."):
            raise ConfigError(f"--by: expected a name made up of letters, digits, '-', '_', '.' or '@', found {by!r}")
        self.by = by
        self.path = folder / f"{by}{ENDING}"
        self.acts: list[Act] = []
        self._made_folder = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self._opened()
        except OSError as error:
            raise self._fault(error) from None
        try:
            self._end = self._mended()
            acts = read_acts(Source.at(self.path)) if self._end else {}
            if others := [name for name in acts if name != by]:
                raise DataError(f"{self.path}: expected judgments by {by!r}, found judgments by {others[0]!r}")
            self.acts = list(acts.get(by, []))
        except BaseException:
            self.close()
            raise

    def _opened(self) -> int:
        """Open and lock the file, creating it if it does not exist."""
        handle = os.open(self.path, _FLAGS, 0o666)
        if not lock(handle):
            os.close(handle)
            hint = "end the other session, or choose another name with --by"
            raise ConfigError(f"{self.path}: is open in another session; {hint}")
        return handle

    def _is_at_its_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self.path.stat())
        except FileNotFoundError:
            return False

    def _mended(self) -> int:
        """Remove a last line that a crash cut off, which was never confirmed. Return the size of the file."""
        data = self.path.read_bytes()
        complete = data.rfind(b"\n") + 1
        if complete < len(data):
            warn(f"{self.path}: a crash cut off the last line, so groupgt dropped it")
            self._cut(complete)
        return complete

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    def _fault(self, error: OSError) -> DataError:
        return DataError(f"cannot write {self.path}: {error.strerror or error}")

    def append(self, fields: Mapping[str, Any]) -> Act:
        """Write one act and sync it to disk. Raise `DataError` for an act that is invalid or cannot be written."""
        seq = self.acts[-1]["seq"] + 1 if self.acts else 1
        act = {"at": now(), "by": self.by, "seq": seq, **fields}
        line = rest = encoded(act)
        try:
            if not self._is_at_its_place():
                raise DataError(f"{self.path}: was moved or removed; put it back, or end this session")
            if os.fstat(self._file).st_size != self._end:  # a failed act could not be cut off
                self._cut(self._end)
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
                os.fsync(self._file)
            except OSError:
                with suppress(OSError):
                    self._cut(self._end)
                raise
        except OSError as error:
            raise self._fault(error) from None
        self._end += len(line)
        self.acts.append(act)
        return act

    def close(self) -> None:
        """Release the journal so that other processes can open it. Remove the file if it is empty."""
        is_empty = not os.fstat(self._file).st_size
        if os.name == "nt":  # where an open file cannot be removed
            os.close(self._file)
        with suppress(OSError):
            if is_empty:
                self.path.unlink()
            if is_empty and self._made_folder:
                self.path.parent.rmdir()
        if os.name != "nt":
            os.close(self._file)


def read_folder(folder: Path) -> dict[str, list[Act]]:
    """Read all annotators' acts from a folder of journals."""
    acts: dict[str, list[Act]] = {}
    files = sorted(folder.glob(f"*{ENDING}"))
    if not files:
        raise DataError(f"{folder}: expected journals (*{ENDING}), found none")
    for path in files:
        for by, annotator_acts in read_acts(Source.at(path)).items():
            if by in acts:
                raise DataError(f"{path}: another journal also contains judgments by {by!r}; join the files into one")
            acts[by] = annotator_acts
    return acts
