"""Runs user scripts that generate data set files: if a file is missing, or the script has changed or did not finish.

A note next to the script lists the files that it generated, and a digest of the script once it has finished. Files that
are not in the note belong to the user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.store.files import is_gone, owner, sha256, write_text

# How the name of the note ends.
NOTE = ".groupgt-build"


class Build:
    """A script, the files it generates, and the note about them."""

    def __init__(self, script: Path, files: Sequence[Path]) -> None:
        self.script, self.files = script, files
        self.note = script.with_name(f".{script.name}{NOTE}")
        self.names = [Path(os.path.relpath(file, script.parent)).as_posix() for file in files]

    def why(self, *, refresh: bool = False) -> str:
        """Return the reason to run the script, or an empty string."""
        noted = self._noted()
        for file in self.files:
            if not file.exists():
                return f"{file} is missing"
        if not set(self.names) & set(noted.get("made", ())):
            return ""
        if refresh:
            return "all is made again"
        if "script" not in noted:
            return "it did not finish when it last ran"
        return "it has changed" if noted["script"] != sha256(self.script) else ""

    def run(self, folder: Path) -> None:
        """Run the script in `folder`; raise `DataError` if it fails or does not generate every file."""
        noted = self._noted()
        if (by := noted.get("by", owner())) != owner() and not is_gone(by, self.note):
            raise DataError(f"{self.script}: another process runs it ({by}); wait until it is done, or end it")
        missing = {name for name, file in zip(self.names, self.files) if not file.exists()}
        made = sorted(missing.union(noted.get("made", ())))
        self._write({"made": made, "by": owner()})
        script = sha256(self.script)
        # The experiment file names the script, and the user has allowed it to run.
        done = subprocess.run(  # noqa: S603
            [sys.executable, str(self.script)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it printed no message"])[-1]
            raise DataError(f"{self.script} ended with status {done.returncode}: {last}")
        absent = [str(file) for file in self.files if not file.exists()]
        if absent:
            raise DataError(f"{self.script} did not make {', '.join(absent)}")
        self._write({"made": made, "script": script})

    def _noted(self) -> dict[str, Any]:
        try:
            noted: dict[str, Any] = json.loads(self.note.read_text(encoding="utf-8"))
            return noted
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataError(f"{self.note}: cannot be read; remove it, and the files that the script made") from error

    def _write(self, noted: dict[str, Any]) -> None:
        write_text(self.note, json.dumps(noted, indent=1) + "\n")
