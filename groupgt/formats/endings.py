"""File name endings, the formats they stand for, and run names without endings."""

from __future__ import annotations

import glob
import os
from pathlib import PurePosixPath

COMPRESSED = (".gz", ".zst")
# The endings of results and their formats; JSON Lines and ranx JSON are distinguished by content.
ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".trec": "trec", ".run": "trec"}
ENDINGS |= {".txt": "trec", ".res": "trec"}
REMOVED_ENDINGS = (*COMPRESSED, *ENDINGS, ".jsonl", ".json")


def ending_of(path: str) -> str:
    """Return the ending of a path in lower case, without its compression ending."""
    endings = [ending.lower() for ending in PurePosixPath(path).suffixes]
    while endings and endings[-1] in COMPRESSED:
        endings.pop()
    return endings[-1] if endings else ""


def without_endings(name: str) -> str:
    """Return a file name without its known endings."""
    while True:
        stem, dot, ending = name.rpartition(".")
        if not stem or f"{dot}{ending}".lower() not in REMOVED_ENDINGS:
            return name
        name = stem


def name_of(path: str) -> str:
    """Return the name of a run that may span several files: the last part of its path without a pattern."""
    parts = [part for part in PurePosixPath(path.replace(os.sep, "/")).parts if not glob.has_magic(part)]
    return without_endings(parts[-1] if parts else "results")
