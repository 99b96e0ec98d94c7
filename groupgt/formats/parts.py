"""Reads results from many files, or from a URL, as one run whose queries may span files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard, TypeVar

from groupgt.errors import ConfigError, DataError, Faults, first_of
from groupgt.formats import fields, frames, trec
from groupgt.formats.endings import ENDINGS, ending_of, name_of
from groupgt.formats.fields import collect
from groupgt.formats.roles import Declared, canonical, has_paths, roles_in
from groupgt.formats.rows import RunBuilder
from groupgt.formats.source import AnyPath, Source
from groupgt.formats.validity import guarded
from groupgt.model.run import Columns, Run
from groupgt.model.values import CALLS
from groupgt.runtime import pl

# At least two letters: a single one is a drive.
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
T = TypeVar("T")


def is_url(path: object) -> TypeGuard[str]:
    """Return whether a path is a URL, such as `s3://bucket/run.parquet`."""
    return isinstance(path, str) and URL.match(path) is not None


def files_of(path: AnyPath, hidden: str = "._") -> list[Path] | None:
    """Return the files of a folder or glob, except those that begin with a `hidden` character; None for other paths."""
    text = os.fspath(path)
    folder = Path(text)
    if folder.is_dir():
        files = [file for file in folder.rglob("*") if file.is_file()]
    elif glob.has_magic(text) and not folder.exists():
        files = [Path(file) for file in glob.glob(text, recursive=True) if Path(file).is_file()]
    else:
        return None
    if not (files := sorted(file for file in files if file.name[0] not in hidden)):
        raise DataError(f"{text}: {'the folder contains no files' if folder.is_dir() else 'no file matches'}")
    return files


def title_of(path: AnyPath | Sequence[AnyPath]) -> str:
    """Return the name of a run in messages, which is its path or the common folder of its files."""
    if isinstance(path, (str, os.PathLike)):
        return os.fspath(path)
    return os.path.commonpath([str(Path(file).absolute().parent) for file in path] or ["results"])


def refuse_many(path: AnyPath | Sequence[AnyPath]) -> None:
    """Raise `ConfigError` if a path matches several files, which could be separate runs or parts of one run."""
    if isinstance(path, (str, os.PathLike)):
        title, runs = os.fspath(path), repr(os.fspath(path))
        files: Sequence[Any] | None = None if is_url(path) else files_of(path)
    else:
        title, runs, files = first_of([os.fspath(file) for file in path], 2), "[…]", path if len(path) > 1 else None
    if files is not None:
        what = f"expected one run, found {len(files):,} file{'' if len(files) == 1 else 's'}"
        hint = f"measure each with groupgt.evaluate_runs(truth, {runs}, …), or read them as one run with parts=True"
        raise ConfigError(f"{title}: {what}; {hint}")


def are_parts(path: AnyPath) -> bool:
    """Return whether a path is a folder or a glob."""
    return not is_url(path) and files_of(path) is not None


def refuse_one(path: AnyPath | Sequence[AnyPath]) -> None:
    """Raise `DataError` if a path that should match the parts of one run is a single file."""
    if isinstance(path, (str, os.PathLike)) and not is_url(path) and not are_parts(path):
        what = "expected a folder or a glob as parts of one run (--parts, parts=True), found one file"
        raise DataError(f"{path}: {what}; remove the option, or quote a glob so that the shell does not expand it")


def joined(files: Sequence[Path], read: Callable[[Source], Run], title: str, columns: Declared) -> Run:
    """Read each file with `read` and join the results into one run, or raise `DataError` with all errors."""
    sources = [replace(Source.at(file), columns=columns) for file in files]
    if all(source.is_parquet for source in sources):
        from groupgt.formats import parquet

        run = parquet.read_parts(sources, title)
    else:
        _refuse_trials(sources, title)
        faults = Faults()
        parts = collect(lambda source: read(replace(source, streamed=True)), sources, faults)
        if faults and not any(source.is_huge for source in sources):
            # Parts that are not read yet may have errors as well.
            collect(lambda part: part.as_columns.checked, parts, faults)
        faults.stop()
        unsplit = {text: place for part in parts for text, place in part.unsplit.items()}
        run = replace(_in_one(parts, title), unsplit=unsplit)
    return replace(run, name=name_of(title), source=title)


def _refuse_trials(sources: Sequence[Source], title: str) -> None:
    """Raise `DataError` if files number trials, or if the results of a query have several values in such a column."""
    from groupgt.formats.records import keys_of, records

    named: list[tuple[Source, str]] = []
    column = ""
    for source in sources:
        names = list(keys_of(source))
        numbers = {*canonical(names, source.columns), *(source.columns if has_paths(names, source.columns) else ())}
        if numbers & {fields.TRIAL, fields.BUILD}:
            raise DataError(f"{title}: a run in many files cannot have trials; join the files, or write parquet")
        roles = roles_in(names, "run", source.columns)
        column = column or fields.repeats_in(names) or ""
        if column in names and (query := roles.get("qid", roles.get("query"))):
            named.append((source, query))
    rows = ((query, *row) for source, query in named for row in records(source, Faults()))
    located = ((where, row.get(query), row.get(column)) for query, where, row in rows)
    fields.refuse_repeats(located, column, "join the files and add ")


def _in_one(parts: Sequence[Run], title: str) -> Run:
    """Join lists or columns. If a query spans several files, sort its list by score."""
    if not all(part.in_memory for part in parts):
        return _of_columns(parts, title)
    builder = RunBuilder()
    for part in parts:
        lists = part.lists
        carried = {name: read() for name, read in lists.fields.items()}
        for qid, ids in lists.rankings.items():
            if qid in builder.ids and (lists.scores is None or qid not in builder.scores):
                what = f"is also in another file of {title}, without scores"
                builder.faults.add(f"{part.source}: query {qid!r}", what)
                continue
            lengths = {unit: column.get(qid, ()) for unit, column in lists.lengths.items()}
            cells = {name: column.get(qid, ()) for name, column in carried.items()}
            builder.add_ranking(qid, ids, None if lists.scores is None else lists.scores[qid], lengths, cells)
    lists = builder.lists
    if lists.scores and len(lists.scores) < len(lists.rankings):
        raise DataError(f"{title}: some files have scores and some do not; add scores to all files, or to none")
    return Run(lists)


def _of_columns(parts: Sequence[Run], title: str) -> Run:
    """Concatenate columns. Convert parts that were read as lists to columns."""
    columns_of_parts = [part.as_columns for part in parts]
    schemas = [columns.frame.collect_schema() for columns in columns_of_parts]
    names = [name for name in schemas[0].names() if all(name in schema for schema in schemas)]
    if CALLS not in names and any(CALLS in schema for schema in schemas):
        raise DataError(f"{title}: some files have calls and some do not; add calls to all files, or to none")

    def guard(step: Callable[[], Any]) -> Any:
        for columns in reversed(columns_of_parts):
            step = partial(columns.guard, step)
        return step()

    def recheck() -> Run:
        faults = Faults()
        runs = collect(lambda columns: columns.checked, columns_of_parts, faults)
        faults.stop()
        return _in_one(runs, title)

    frame = pl.concat([columns.frame.select(names) for columns in columns_of_parts])
    return Run(Columns(frame, recheck, guard, ids_checked=all(columns.ids_checked for columns in columns_of_parts)))


def at_url(url: str, format: str | None = None) -> Run:
    """Read a run with polars from a URL, or from all files that match a URL pattern."""
    chosen = format or ENDINGS.get(ending_of(url))
    if chosen not in ("parquet", "csv", "trec"):
        way = "specify the format (--run-format; run_format=)"
        raise ConfigError(f"{url}: expected results as parquet, csv or trec; {way}")
    guard, lines = partial(guarded, url, "cannot be read"), partial(_lines_at, url)
    if chosen == "parquet":
        return replace(frames.run_of(pl.scan_parquet(url), url, guard=guard), name=name_of(url), source=url)
    from groupgt.formats import csv

    contents = csv.columns_at(url, guard, lines) if chosen == "csv" else trec.columns_at(url, lines)
    return Run(contents, name=name_of(url), source=url)


def _lines_at(url: str) -> Iterator[bytes]:
    guard = partial(guarded, url, "cannot be read")
    batches = guard(lambda: iter(pl.scan_lines(url).collect_batches(maintain_order=True)))
    while (batch := guard(lambda: next(batches, None))) is not None:
        yield from map(str.encode, batch["line"].to_list())


def fetched(url: str, read: Callable[[Path], T]) -> T:
    """Call `read` on a local copy of a text file at a URL."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="groupgt-") as folder:
        copy = Path(folder) / PurePosixPath(url).name
        with copy.open("wb") as file:
            file.writelines(line + b"\n" for line in _lines_at(url))
        try:
            return read(copy)
        except DataError as error:
            raise DataError(*(text.replace(str(copy), url) for text in error.faults), total=error.total) from None
