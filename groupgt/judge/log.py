"""One annotator's journal: append-only, synced before an action is confirmed, and open in one process at a time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, DataError, warn
from groupgt.formats.journals import Act, act_fault, read_acts
from groupgt.formats.jsonl import has_surrogate
from groupgt.formats.source import Source
from groupgt.store.files import is_gone, make_folder, owner, reached, sync_folder
from groupgt.store.journal import now

ENDING = ".jsonl"
_NAME = re.compile(r"[\w.@-]{1,80}")


class ActLog:
    """The actions of one annotator; no other process can open the same journal at the same time."""

    def __init__(self, folder: Path, by: str) -> None:
        if not _NAME.fullmatch(by) or by.startswith("."):
            raise ConfigError(f"--by: expected a name of letters, digits, '-', '_', '.' or '@', found {by!r}")
        self.by = by
        self.path = folder / f"{by}{ENDING}"
        self._lock = folder / f".{by}.lock"
        try:
            make_folder(folder)
            self._take()
            self._mend()
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        self.acts: list[Act] = []
        if self.path.exists() and self.path.stat().st_size:
            acts = read_acts(Source.at(self.path))
            if others := [name for name in acts if name != by]:
                self.close()
                raise DataError(f"{self.path}: expected acts by {by!r}, found acts by {others[0]!r}")
            self.acts = list(acts.get(by, []))

    def _take(self) -> None:
        """Create the lock, or take over a lock from a process that has ended."""
        for _ in range(2):
            try:
                handle = os.open(self._lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            except FileExistsError:
                writer = self._lock.read_text(encoding="utf-8")
                if writer and not is_gone(writer, self._lock):
                    what = f"is open in another process ({writer})"
                    raise ConfigError(f"{self.path}: {what}; end it, or choose another name with --by") from None
                self._lock.unlink(missing_ok=True)
            else:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(owner())
                return
        raise ConfigError(f"{self._lock}: cannot be created")

    def _mend(self) -> None:
        """Remove an incomplete last line after a crash; it was never confirmed."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        complete = data.rfind(b"\n") + 1
        if complete < len(data):
            warn(f"{self.path}: the last line was cut off by a crash; dropped")
            with self.path.open("r+b") as file:
                file.truncate(complete)
                os.fsync(file.fileno())

    def append(self, fields: Mapping[str, Any]) -> Act:
        """Write one act and sync it to disk; raises `DataError` if it is invalid or cannot be written."""
        seq = self.acts[-1]["seq"] + 1 if self.acts else 1
        act = {"at": now(), "by": self.by, "seq": seq, **fields}
        if fault := act_fault(act):
            raise DataError(fault)
        if has_surrogate(act):
            raise DataError(f"act {act['act']}: contains a lone surrogate")
        line = (json.dumps(act, ensure_ascii=False) + "\n").encode()
        try:
            is_new = not self.path.exists()
            with self.path.open("ab") as file:
                end = file.tell()
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):  # a full disk: leave no part of a line
                        file.truncate(end)
                    raise
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        reached("confirmed an act")
        self.acts.append(act)
        return act

    def close(self) -> None:
        """Release the journal so that other processes can open it."""
        self._lock.unlink(missing_ok=True)


def read_folder(folder: Path) -> dict[str, list[Act]]:
    """Read the acts of all annotators from a folder of journals."""
    acts: dict[str, list[Act]] = {}
    files = sorted(folder.glob(f"*{ENDING}"))
    if not files:
        raise DataError(f"{folder}: expected journals (*{ENDING}), found none")
    for path in files:
        for by, annotator_acts in read_acts(Source.at(path)).items():
            if by in acts:
                raise DataError(f"{path}: acts by {by!r} are in another journal, too; join the files into one")
            acts[by] = annotator_acts
    return acts
