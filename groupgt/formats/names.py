"""Run names, derived from file names without format endings.

Parts of folder names are added to make run names distinct.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import PurePath, PurePosixPath

COMPRESSED = (".gz", ".zst")
# The endings of results and their formats; JSON Lines and ranx JSON are distinguished by content.
ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".trec": "trec", ".run": "trec"}
ENDINGS |= {".txt": "trec", ".res": "trec"}
REMOVED_ENDINGS = (*COMPRESSED, *ENDINGS, ".jsonl", ".json")


def ending_of(path: str) -> str:
    """Return the ending of a path in lower case, without its compression ending.

    >>> ending_of("runs/bm25.trec.gz"), ending_of("runs/bm25")
    ('.trec', '')
    """
    endings = [ending.lower() for ending in PurePosixPath(path).suffixes]
    while endings and endings[-1] in COMPRESSED:
        endings.pop()
    return endings[-1] if endings else ""


def without_endings(name: str) -> str:
    """Return a file name without its known endings.

    >>> [without_endings(name) for name in ("input.bm25.gz", "bm25-k1=0.9-b=0.4", "bm25.v2.trec.gz", ".trec")]
    ['input.bm25', 'bm25-k1=0.9-b=0.4', 'bm25.v2', '.trec']
    """
    while True:
        stem, dot, ending = name.rpartition(".")
        if not stem or f"{dot}{ending}".lower() not in REMOVED_ENDINGS:
            return name
        name = stem


def name_of(path: str) -> str:
    """Return the name of a run that may span several files: the last part of its path that is not a pattern.

    >>> name_of("runs/bm25/part-*.parquet"), name_of("s3://bucket/dense.parquet")
    ('bm25', 'dense')
    """
    parts = [part for part in PurePosixPath(path.replace(os.sep, "/")).parts if not glob.has_magic(part)]
    return without_endings(parts[-1] if parts else "results")


def distinct_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Derive distinct run names from paths; runs with equal file names get the differing parts of their folder names.

    Shared beginnings and endings, up to a dot, are removed. Files in one folder keep their endings if nothing else
    differs.

    >>> distinct_names(["a/run/bm25.trec", "b/run/bm25.trec", "b/run/dense.trec"])
    ['a/bm25', 'b/bm25', 'dense']
    >>> distinct_names(["runs/input.uwmt.gz", "runs/input.pircs.gz"])
    ['uwmt', 'pircs']
    """
    names = _without_shared([without_endings(PurePath(path).name) for path in paths])
    positions_of: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions_of.setdefault(name, []).append(position)
    for positions in positions_of.values():
        files = [PurePath(os.path.abspath(paths[position])) for position in positions]
        if len(set(files)) < 2:
            continue
        for position, file, folders in zip(positions, files, _differing([file.parent.parts for file in files])):
            neighbors = {other for other in files if other.parent == file.parent}
            names[position] = "/".join((*folders, names[position] if len(neighbors) == 1 else file.name))
    return names


def _without_shared(names: Sequence[str]) -> list[str]:
    """Remove leading and trailing dotted parts that all names share, as long as no name becomes empty."""
    parts = [name.split(".") for name in names]
    if len(set(names)) < 2:
        return list(names)
    # A decimal point does not separate parts.
    while min(map(len, parts)) > 1 and len({words[0] for words in parts}) == 1 and not parts[0][0][-1:].isdigit():
        parts = [words[1:] for words in parts]
    while min(map(len, parts)) > 1 and len({words[-1] for words in parts}) == 1 and not parts[0][-1][:1].isdigit():
        parts = [words[:-1] for words in parts]
    return [".".join(words) for words in parts]


def _differing(folders: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the parts of each folder that are not common to all folders."""
    if len({len(parts) for parts in folders}) == 1:
        differs = [len(set(column)) > 1 for column in zip(*folders)]
        return [tuple(part for part, differing in zip(parts, differs) if differing) for parts in folders]
    depths = range(min(map(len, folders)) + 1)
    shared = next(depth for depth in depths if len({parts[: depth + 1] for parts in folders}) > 1)
    return [parts[shared:] for parts in folders]
