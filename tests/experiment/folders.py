"""What result folders hold."""

from __future__ import annotations

import json
from pathlib import Path


def contents(folder: Path | None) -> dict[str, bytes]:
    """The files of a result folder, but for the times, which the page shows too."""
    assert folder is not None
    timed = ("timings.json", "report.html")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in timed)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def file_of(folder: Path, name: str) -> str:
    """How the files of a system are named."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return str(manifest["systems"][name]["files"])
