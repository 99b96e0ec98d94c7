"""Verdicts that were paid for, kept line by line in a file: what is written survives what comes after."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from groupgt.errors import DataError
from groupgt.store.files import reached


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
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def keep(self, scores: Mapping[str, float]) -> None:
        """Adds scores; raises `DataError` where they cannot be written."""
        self.scores.update(scores)
        if self.path is None or not scores:
            return
        text = "".join(json.dumps([key, score, _check(key, score)]) + "\n" for key, score in scores.items())
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                # A line that was cut off ends here; a process beside this one adds its own lines whole.
                file.write(b"\n" + text.encode() if file.tell() else text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        reached("kept verdicts")

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


def _check(key: str, score: float) -> int:
    return zlib.crc32(f"{key} {float(score)!r}".encode())
