"""A starter experiment with a few passages, a few queries, and an experiment file that runs as is."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from groupgt.errors import ConfigError
from groupgt.store.files import write_text

FILES = {
    "experiment.yaml": "what to run; change names and paths to yours",
    "corpus.jsonl": "replace with your passages",
    "questions.jsonl": "replace with your queries and their grouped ground truth",
}


def write_starter(folder: Path) -> list[Path]:
    """Write the starter files to a folder. Raise `ConfigError` instead of overwriting an existing file."""
    targets = [folder / name for name in FILES]
    there = [str(target) for target in targets if target.exists()]
    if there:
        raise ConfigError(f"{', '.join(there)}: already exists; choose another folder")
    source = files("groupgt.experiment") / "starter_files"
    for target in targets:
        write_text(target, (source / target.name).read_text(encoding="utf-8"))
    return targets
