"""Runs user scripts that generate data set files, and restores the previous files if a script fails.

A note next to the script records a digest of the script and of each file it generated; while the script runs, the note
records digests of the previous files. Files without a note belong to the user and are never changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.store.cache import key_of
from groupgt.store.files import (
    digest_of,
    is_gone,
    owner,
    remove,
    sha256,
    temporary_folder,
    write_atomically,
    write_text,
)

# Name endings of the note, and of backups while a script runs.
NOTE, ASIDE = ".groupgt-build", ".before-build"


class Build:
    """A script, the files it generates, and the notes about them."""

    def __init__(self, script: Path, files: Sequence[Path]) -> None:
        self.script = script
        # Links are resolved to their targets; sorting puts a folder before its content.
        self.files = sorted({file.resolve() for file in files})
        self.notes: dict[str, Any] = {}
        self._read()

    def _read(self) -> None:
        try:
            notes = json.loads(self._note.read_text(encoding="utf-8"))
            self.notes = notes if isinstance(notes, dict) else {}
        except FileNotFoundError:
            self.notes = {}
        except (OSError, ValueError) as error:
            raise DataError(f"{self._note}: cannot be read; remove it, and the files that the script made") from error

    @property
    def _note(self) -> Path:
        return self.script.with_name(f".{self.script.name}{NOTE}")

    def _name(self, file: Path) -> str:
        try:
            return Path(os.path.relpath(file, self.script.parent.resolve())).as_posix()
        except ValueError:  # on another drive
            return file.as_posix()

    def _noted(self, file: Path) -> dict[str, Any]:
        noted = self.notes.get(self._name(file))
        return noted if isinstance(noted, dict) else {}

    def _digest(self, path: Path) -> str:
        """Computes the digest of a file, or of a folder excluding notes, backups, and files with their own digest."""
        if not path.is_dir():
            return digest_of(path)
        apart = {*self.files, *map(_aside, self.files), self._note.resolve()} - {path}
        return key_of(
            {
                str(file.relative_to(path)): digest_of(file)
                for file in path.rglob("*")
                if file.is_file() and apart.isdisjoint((file, *file.parents))
            }
        )

    def why(self, *, refresh: bool = False) -> str:
        """Returns the reason to run the script, or an empty string; raises `DataError` if a user edited the files."""
        self._check_idle()
        if any("before" in self._noted(file) for file in self.files):
            return "it did not finish when it last ran"
        made = [file for file in self.files if "made" in self._noted(file)]
        for file in made if not refresh else []:
            if file.exists() and self._digest(file) != self._noted(file)["made"]:
                raise DataError(
                    f"{file}: was changed after {self.script.name} had made it; --refresh makes it again, and without "
                    "the key `build` it is used as it is"
                )
        for file in self.files:
            if not file.exists():
                return f"{file} is missing"
        if refresh and made:
            return "all is made again"
        script = sha256(self.script)
        return "it has changed" if any(self._noted(file)["script"] != script for file in made) else ""

    def _check_idle(self) -> None:
        """Raises `DataError` if another process is already generating these files."""
        for file in self.files:
            # The script may continue after its parent is killed.
            for process in self._noted(file).get("by", []):
                if process != owner() and not is_gone(process, self._note):
                    raise DataError(
                        f"{file}: {self.script.name} is at work on it in another process ({process}); wait until it is "
                        "done, or end it"
                    )

    def run(self, folder: Path) -> None:
        """Runs the script in `folder`; restores the previous files if the script fails."""
        for file in self.files:
            if self.script.resolve().is_relative_to(file):
                raise DataError(f"{self.script}: is in {file}, which it generates; move it out of that folder")
        try:
            self._run(folder)
        except OSError as error:
            raise DataError(f"{self.script}: {error.filename or 'its files'}: {error.strerror or error}") from None

    def _run(self, folder: Path) -> None:
        self._read()
        self._check_idle()
        self._put_back()
        was_made = {file: "made" in self._noted(file) for file in self.files}
        self._write({file: {**self._noted(file), "by": [owner()]} for file in self.files})
        before = {file: self._digest(file) if file.exists() else None for file in self.files}
        for file in self.files:
            remove(_aside(file))
            if before[file] is not None:
                _copy(file, _aside(file))
        marks = {file: {"before": before[file], "own": not was_made[file]} for file in self.files}
        try:
            self._call(folder, lambda *by: self._write({file: {**mark, "by": by} for file, mark in marks.items()}))
            script = sha256(self.script)
            after = {file: self._digest(file) for file in self.files}
            # Existing files that the script had not made belong to the user.
            users_files = [file for file in self.files if before[file] is not None and not was_made[file]]
            for file in users_files:
                if after[file] != before[file]:
                    raise DataError(
                        f"{file}: {self.script.name} wrote over it, which it had not generated; it was restored; "
                        "move it away to have it generated, or write another file"
                    )
        except BaseException:
            self._put_back()
            raise
        self._end({file: {"script": script, "made": after[file]} for file in after if file not in users_files})

    def _call(self, folder: Path, mark: Callable[..., None]) -> None:
        mark(owner())
        # The experiment file names the script, and the user has allowed it to run.
        with subprocess.Popen(  # noqa: S603
            [sys.executable, str(self.script)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        ) as process:
            try:
                mark(owner(), owner(process.pid))
                err = process.communicate()[1]
            except BaseException:
                process.kill()
                raise
        last = (err.strip().splitlines() or ["it printed no message"])[-1]
        if process.returncode:
            raise DataError(f"{self.script} ended with status {process.returncode}: {last}")
        missing = [str(file) for file in self.files if not file.exists()]
        if missing:
            raise DataError(f"{self.script} did not make {', '.join(missing)}")

    def _put_back(self) -> None:
        """Restores the previous files after a failed run of the script."""
        notes: dict[Path, Any] = {}
        for file in self.files:
            noted = self._noted(file)
            if "before" not in noted:
                if "made" in noted:
                    notes[file] = noted
                continue
            if noted["before"] is None:
                remove(file)
            elif not file.exists() or self._digest(file) != noted["before"]:
                if not _aside(file).exists():
                    raise DataError(
                        f"{file}: was half made by {self.script.name}, and {_aside(file)} is gone; remove it"
                    )
                remove(file)
                _copy(_aside(file), file)
            if noted["before"] is not None and not noted["own"]:
                notes[file] = {"script": "", "made": noted["before"]}
        self._end(notes)

    def _end(self, notes: Mapping[Path, Any]) -> None:
        self._write(notes)
        for file in self.files:
            remove(_aside(file))

    def _write(self, notes: Mapping[Path, Any]) -> None:
        """Writes the notes for these files and keeps all other notes."""
        self._read()
        ours = set(map(self._name, self.files))
        self.notes = {name: noted for name, noted in self.notes.items() if name not in ours}
        self.notes |= {self._name(file): noted for file, noted in notes.items()}
        if self.notes or self._note.exists():
            write_text(self._note, json.dumps(self.notes, indent=1, sort_keys=True) + "\n")


def _aside(file: Path) -> Path:
    return file.with_name(f".{file.name}{ASIDE}")


def _copy(source: Path, target: Path) -> None:
    """Copies a file or folder atomically."""
    if source.is_dir():
        with temporary_folder(target.parent) as part:
            shutil.copytree(source, part / target.name)
            (part / target.name).rename(target)
    else:
        write_atomically(target, lambda part: shutil.copyfile(source, part))
