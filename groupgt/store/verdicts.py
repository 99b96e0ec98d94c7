"""Verdicts that were paid for, kept line by line in a file: what is written survives what comes after."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from groupgt.errors import DataError
from groupgt.store.files import make_folder, reached, sync_folder


class Verdicts:
    """Scores by key, in a file or (without one) in memory.

    Each line is `[key, score, checksum]`; what is damaged, or was cut off, is as if it had not been written.

    >>> verdicts = Verdicts(None)
    >>> verdicts.keep({"a": 1.0})
    >>> verdicts.known(["a", "b"])
    {'a': 1.0}
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.scores: dict[str, float] = {}
        self.read = path is None

    def known(self, keys: Iterable[str]) -> dict[str, float]:
        """The scores there are of these keys."""
        if not self.read:
            self._read()
        return {key: self.scores[key] for key in keys if key in self.scores}

    def prepare(self) -> None:
        """Raises `DataError` where nothing could be kept: before anything is paid for."""
        self._append(b"")

    def keep(self, scores: Mapping[str, float]) -> None:
        """Adds scores; raises `DataError` where they cannot be written."""
        self.scores.update(scores)
        if scores:
            text = "".join(json.dumps([key, score, _check(key, score)]) + "\n" for key, score in scores.items())
            self._append(text.encode())
            reached("kept verdicts")

    def _append(self, lines: bytes) -> None:
        """Adds lines to the file, which is made where it is not there; a symbolic link leads to what is not ours."""
        if self.path is None:
            return
        try:
            make_folder(self.path.parent)
            with open(self.path, "ab", opener=_open) as file:
                is_new = not file.tell()
                if lines:
                    # A line that was cut off ends here; a process beside this one adds its own lines whole.
                    file.write(lines if is_new else b"\n" + lines)
                    file.flush()
                    os.fsync(file.fileno())
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            what = "it is a symbolic link" if self.path.is_symlink() else error.strerror or error
            raise DataError(f"{self.path}: cannot be written: {what}") from None

    def _read(self) -> None:
        self.read = True
        if self.path is None or not self.path.is_file():
            return
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        for line in lines:
            try:
                key, score, check = json.loads(line)
                if check == _check(key, score):
                    self.scores.setdefault(key, float(score))
            except (ValueError, TypeError, OverflowError, RecursionError):
                continue


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _check(key: str, score: float) -> int:
    return zlib.crc32(f"{key} {float(score)!r}".encode())
