"""Names each run as the user does, or else after its own file alone, so that other files never change its name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Any

from groupgt.errors import ConfigError, DataError, Faults, first_of
from groupgt.evaluation.reading import is_in_files
from groupgt.formats.endings import name_of, without_endings
from groupgt.formats.parts import title_of
from groupgt.formats.source import AnyPath
from groupgt.model.run import Trials


def expanded(path: AnyPath, files: Sequence[AnyPath]) -> list[tuple[str, AnyPath]]:
    """Name each file by its relative path without known endings. A path to a single file gets an empty name.

    >>> expanded("runs/*/bm25.trec", ["runs/new/bm25.trec", "runs/old/bm25.trec"])
    [('new/bm25', 'runs/new/bm25.trec'), ('old/bm25', 'runs/old/bm25.trec')]
    """
    if [os.fspath(file) for file in files] == [os.fspath(path)]:
        return [("", path)]
    parts = PurePath(path).parts
    depth = len(parts if Path(path).is_dir() else [*takewhile(lambda part: not glob.has_magic(part), parts)])
    places = [PurePath(file).parts[depth:] for file in files]
    return [("/".join((*folders, without_endings(name))), file) for (*folders, name), file in zip(places, files)]


def named(runs: Iterable[tuple[str, Any]], *, trials: bool = False) -> list[tuple[str, Any]]:
    """Name each run without a name after its file. Raise `DataError` for duplicate names unless runs are `trials`."""
    pairs = [(name or _name_of(run), run) for name, run in runs]
    if trials:
        by_name: dict[str, list[Any]] = {}
        for name, run in pairs:
            by_name.setdefault(name, []).append(run)
        if len(pairs) == 1:
            raise ConfigError(
                f"--trials: expected several runs of one system, found one ({pairs[0][0]}); remove --trials"
            )
        if len(by_name) == len(pairs):
            what = f"all runs have different names ({first_of(list(by_name), 5)}), so none are trials of one system"
            raise ConfigError(f"--trials: {what}; give all trials of a system the same name: NAME=PATH NAME=PATH")
        return [(name, Trials(of_name) if len(of_name) > 1 else of_name[0]) for name, of_name in by_name.items()]
    faults = Faults()
    first: dict[str, Any] = {}
    for name, run in pairs:
        if name in first:
            files = " and ".join(title_of(twin) for twin in (first[name], run) if is_in_files(twin))
            ways = "name the runs (NAME=PATH, {name: run} in Python), or add --trials if they are trials of one system"
            faults.add(files, f"duplicate run name {name!r}; {ways}")
        first.setdefault(name, run)
    faults.stop(DataError)
    return pairs


def _name_of(run: Any) -> str:
    if not is_in_files(run):
        return str(getattr(run, "name", ""))
    title = title_of(run)
    return without_endings(Path(title).name) if Path(title).is_file() else name_of(title)
