"""Files of a data set that a script of the user's makes: made when they are missing, whole or not at all.

Beside the script lies a note of what it made: the digests of the script and of each file, or, while it runs, of what
was there before. A file that no note names is the user's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.store.files import digest_of, is_gone, make_folder, owner, sha256, write_text, written_whole

# How names end of the note, and of what is set aside while a script runs.
NOTE, ASIDE = ".groupgt-build", ".before-build"


@dataclass
class Build:
    """A script, the files that it makes, and what was noted of them."""

    script: Path
    files: Sequence[Path]
    notes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            notes = json.loads(self._note.read_text(encoding="utf-8"))
            self.notes = notes if isinstance(notes, dict) else {}
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise DataError(f"{self._note}: cannot be read; remove it, and the files that the script made") from error

    @property
    def _note(self) -> Path:
        return self.script.with_name(f".{self.script.name}{NOTE}")

    def _name(self, file: Path) -> str:
        try:
            return Path(os.path.relpath(file, self.script.parent)).as_posix()
        except ValueError:  # on another drive
            return file.as_posix()

    def _noted(self, file: Path) -> dict[str, Any]:
        noted = self.notes.get(self._name(file))
        return noted if isinstance(noted, dict) else {}

    def why(self, *, refresh: bool = False) -> str:
        """Why the script must run, empty where it need not; raises `DataError` for what somebody has changed since."""
        missing = [file for file in self.files if not file.exists()]
        for file in self.files:
            writer = self._noted(file).get("by", owner())
            if writer != owner() and not is_gone(writer, self._note):
                raise DataError(
                    f"{file}: {self.script.name} is at work on it in another process; wait until it is done"
                )
        if any("before" in self._noted(file) for file in self.files):
            return "it did not finish when it last ran"
        if missing:
            return f"{missing[0]} is missing"
        made = [file for file in self.files if self._noted(file)]
        if refresh and made:
            return "all is made again"
        for file in made:
            if digest_of(file) != self._noted(file)["made"]:
                raise DataError(
                    f"{file}: was changed after {self.script.name} had made it; --refresh makes it again, and without "
                    "the key `build` it is used as it is"
                )
        script = sha256(self.script)
        return "it has changed" if any(self._noted(file)["script"] != script for file in made) else ""

    def run(self, folder: Path) -> None:
        """Runs the script in a folder; where it fails, what was there before is put back."""
        self._put_back()
        before = {file: digest_of(file) if file.exists() else None for file in self.files}
        was_made = {file: bool(self._noted(file)) for file in self.files}
        for file in self.files:
            _remove(_aside(file))
            if before[file] is not None:
                _copy(file, _aside(file))
        marks = {file: {"before": before[file], "own": not was_made[file], "by": owner()} for file in self.files}
        self._write({self._name(file): mark for file, mark in marks.items()})
        try:
            self._call(folder)
        except BaseException:
            self._put_back()
            raise
        script = sha256(self.script)
        after = {file: digest_of(file) for file in self.files}
        # What the script left as it was, and had not made, is the user's own.
        made = [file for file in self.files if was_made[file] or after[file] != before[file]]
        self._write({self._name(file): {"script": script, "made": after[file]} for file in made})
        for file in self.files:
            _remove(_aside(file))

    def _call(self, folder: Path) -> None:
        # The script is the file's own, and the user has allowed it to run.
        ended = subprocess.run(  # noqa: S603
            [sys.executable, str(self.script)], cwd=folder, capture_output=True, text=True, check=False
        )
        last = (ended.stderr.strip().splitlines() or ["it printed no message"])[-1]
        if ended.returncode:
            raise DataError(f"{self.script} ended with status {ended.returncode}: {last}")
        missing = [str(file) for file in self.files if not file.exists()]
        if missing:
            raise DataError(f"{self.script} did not make {', '.join(missing)}")

    def _put_back(self) -> None:
        """What a script that failed has left is replaced by what was there before."""
        notes = {}
        for file in self.files:
            noted = self._noted(file)
            if "before" not in noted:
                continue
            if noted["before"] is None:
                _remove(file)
            elif not file.exists() or digest_of(file) != noted["before"]:
                if not _aside(file).exists():
                    raise DataError(
                        f"{file}: was half made by {self.script.name}, and {_aside(file)} is gone; remove it"
                    )
                _remove(file)
                _copy(_aside(file), file)
            if noted["before"] is not None and not noted["own"]:
                notes[self._name(file)] = {"script": "", "made": noted["before"]}
        self._write(notes)
        for file in self.files:
            _remove(_aside(file))

    def _write(self, notes: dict[str, Any]) -> None:
        """Writes what is noted of these files, beside what is noted of others."""
        ours = {self._name(file) for file in self.files}
        self.notes = {**{name: noted for name, noted in self.notes.items() if name not in ours}, **notes}
        if self.notes or self._note.exists():
            write_text(self._note, json.dumps(self.notes, indent=1, sort_keys=True) + "\n")


def _aside(file: Path) -> Path:
    return file.with_name(f".{file.name}{ASIDE}")


def _copy(source: Path, target: Path) -> None:
    """Copies a file or a folder, whole or not at all."""
    if source.is_dir():
        part = target.with_name(f"{target.name}-part")
        _remove(part)
        shutil.copytree(source, part)
        part.rename(target)
    else:
        make_folder(target.parent)
        written_whole(target, lambda part: _copy_bytes(source, part))


def _copy_bytes(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
