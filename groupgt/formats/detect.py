"""Detects the format of files from their contents and reads them. Only the TREC reader is imported in advance."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, DataError, Faults, first_of, listed, near_names, refuse, warn
from groupgt.formats import frames, roles, trec, words
from groupgt.formats import parts as run_parts
from groupgt.formats.columns import column_of, is_path
from groupgt.formats.endings import ENDINGS, REMOVED_ENDINGS, ending_of
from groupgt.formats.fields import TEXTS, collect
from groupgt.formats.format import Format
from groupgt.formats.paths import path_fault, path_of
from groupgt.formats.roles import NO_COLUMNS, Declared, check_declared, has_paths
from groupgt.formats.source import STANDARD_INPUT, AnyPath, Source
from groupgt.formats.validity import guarded
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.runtime import no_garbage_collection, pl

# Endings that only results have.
RUNS_ALONE = (".trec", ".run", ".res")
EMPTY, COMMENTS = "empty", "only comments"


def read_ground_truth(
    path: AnyPath,
    format: str | None = None,
    policy: Policy | None = None,
    *,
    columns: Declared = NO_COLUMNS,
    ceiling: int = 0,
) -> GroundTruth:
    """Read ground truth from a file, a BEIR folder or a frame. `ceiling` limits memory in bytes (0: no limit)."""
    require_columns(columns, [path], "truth")
    if frames.is_frame(path):
        return frames.truth_of(path, Policy.of(policy), columns=columns)
    if run_parts.is_url(path):
        policy = Policy.of(policy)
        if format in ("autorag", "parquet") or (format is None and ending_of(path) in (".parquet", ".pq")):
            frame = guarded(path, "cannot be read", pl.scan_parquet(path).collect)
            return frames.truth_of(frame, policy, path, columns)
        return run_parts.fetched(path, lambda copy: read_ground_truth(copy, format, policy, columns=columns))
    source = replace(Source.at(path), ceiling=ceiling, columns=columns)
    if source.is_blank:
        raise DataError(f"{path}: the ground truth is empty; expected at least one query")
    chosen = _format_of(source, format, is_truth=True)
    is_unnamed = format is None and chosen.name == "trec"
    read = partial(trec.read_qrels, named=False) if is_unnamed else chosen.truth
    assert read is not None  # noqa: S101  # detection chooses a format of ground truth
    with no_garbage_collection():
        truth = read(source, Policy.of(policy))
        return truth if chosen.shape is None else replace(truth, shape=chosen.shape)


def unread_run(
    path: AnyPath | Sequence[AnyPath],
    format: str | None = None,
    *,
    qids: list[str] | None = None,
    columns: Declared = NO_COLUMNS,
    tool_spans: Mapping[str, str] = NO_COLUMNS,
    streamed: bool = False,
    ceiling: int = 0,
) -> Run:
    """Read one system's results from one or several files. The evaluation reads lines and large files later."""

    def read(source: Source) -> Run:
        source = replace(source, ceiling=ceiling, columns=columns, tool_spans=tool_spans)
        chosen = _format_of(source, format, is_truth=False)
        if tool_spans and not chosen.name.startswith("otlp"):
            warn(f"{source.path}: tool spans have no effect, because these results are {chosen.name}, not traces")
        if chosen.name in ("autorag", "parquet"):
            from groupgt.formats import parquet

            return parquet.read_run(source, qids)
        assert chosen.run is not None  # noqa: S101  # detection chooses a format of results
        return chosen.run(source)

    if not isinstance(path, (str, os.PathLike)):
        return run_parts.joined([Path(file) for file in path], read, run_parts.title_of(path), columns)
    if run_parts.is_url(path):
        return run_parts.at_url(path, format)
    if (matches := run_parts.files_of(path)) is not None:
        files = _runs_among(os.fspath(path), matches, columns) if format is None else matches
        return run_parts.joined(files, read, os.fspath(path), columns)
    return read(replace(Source.at(path), streamed=streamed))


def column_names(value: Any) -> list[str] | None:
    """Return the column names or keys in a file or frame, or None if there are none or they are not available."""
    if frames.is_frame(value):
        return frames.names_of(value)
    if (source := _file_at(value)) is None:
        return None
    from groupgt.formats.records import keys_of

    return list(keys_of(source)) or None


def _file_at(value: Any) -> Source | None:
    """Return a file or the standard input, or None for anything else, such as a pipe, which is read only once."""
    if not isinstance(value, (str, os.PathLike)) or run_parts.is_url(value):
        return None
    is_there = os.fspath(value) == STANDARD_INPUT or Path(value).is_file()
    return Source.at(value) if is_there else None


def declared_in(columns: Declared, values: Iterable[Any]) -> dict[str, str]:
    """Return the declared columns that exist in any of these files or frames (for JSON, in any record)."""
    files = [(value, column_names(value) or ()) for value in _files_in(values)] if columns else []
    return {role: text for role, text in columns.items() if any(_has(*each, role, columns) for each in files)}


def _has(value: Any, names: Collection[str], role: str, columns: Declared) -> bool:
    """Return whether a file or frame has a declared column, or a name that the declared path starts with."""
    if columns[role] in names:
        return True
    if first := _first_names(columns[role]):
        return not set(first).isdisjoint(names) or any(_in_records(value, name) for name in first)
    # Such as `{}@`: what has the rows has this as well, and only one object has rows by key.
    if role != "rows":
        return "rows" not in columns or _has(value, names, "rows", columns)
    from groupgt.formats.jsonl import is_array, is_one_object

    source = _file_at(value)
    if source is None or not source.is_json or is_array(source):
        return source is not None and source.is_json and columns[role].startswith("[]")
    return is_one_object(source)


def _first_names(text: str) -> tuple[str, ...]:
    """Return the keys at which a declared column may begin in records: the first keys of its path, or its own name."""
    return path_of(text).first if is_path(text) and not path_fault(text) else (column_of(text).name,)


def _files_in(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the files in folders and those that match patterns, and anything else unchanged."""
    for value in values:
        is_local = isinstance(value, (str, os.PathLike)) and not run_parts.is_url(value)
        yield from (is_local and run_parts.files_of(value)) or [value]


def _in_records(value: Any, name: str) -> bool:
    """Return whether a JSON file has a key anywhere, even if the first record does not."""
    source = _file_at(value)
    if source is None or not source.is_json:
        return False
    written = (json.dumps(name, ensure_ascii=is_ascii).encode() for is_ascii in (False, True))
    key = re.compile(rb"(?:%b)\s*:" % b"|".join(map(re.escape, written)))
    return any(map(key.search, source.lines() if source.is_huge else [source.data]))


def require_columns(columns: Declared, values: Iterable[Any], *kinds: roles.Kind) -> None:
    """Raise `ConfigError` for a role that these kinds lack, or for a declared column that is in no file or frame."""
    check_declared(columns, *kinds)
    values = list(values)
    found = declared_in(columns, values)
    names = (column_names(value) or () for value in _files_in(values) if columns)
    every = list(dict.fromkeys(chain.from_iterable(names)))
    faults = [(f"columns: {role}", _absent(text, every)) for role, text in columns.items() if role not in found]
    refuse(faults, ConfigError)


def _absent(text: str, names: Sequence[str]) -> str:
    """Report that no file has a declared column, or that the column is not a valid path."""
    if fault := path_fault(text):
        return fault
    name = " or ".join(_first_names(text)) or text
    return f"there is no {name!r} column; found {roles.shown_names(names)}{near_names(name, names)}"


def located(path: AnyPath | Sequence[AnyPath], format: str | None = None) -> tuple[list[str], str, str]:
    """Return the paths of a run's files, their format and a common name for another program to read."""
    names: list[AnyPath] = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    paths: list[str] = []
    for name in names:
        if run_parts.is_url(name):
            paths.append(name)
        else:
            paths += [str(Source.at(file).path.resolve()) for file in run_parts.files_of(name) or [Path(name)]]
    title = os.fspath(names[0]) if len(names) == 1 else os.path.dirname(paths[0])
    if format is not None:
        _named(format, is_truth=False)
    chosen = format or ENDINGS.get(ending_of(paths[0]))
    if chosen is None and not run_parts.is_url(paths[0]):
        chosen = _detect(Source.at(paths[0]), is_truth=False).name
    if chosen is None:
        raise ConfigError(f"{title}: cannot tell the format from the file name; add --run-format")
    return paths, chosen, title


def run_paths(path: AnyPath, columns: Declared = NO_COLUMNS) -> list[Path]:
    """Return a path, or the runs in a folder or glob (one per system). Skip other files with a warning."""
    text = os.fspath(path)
    folder = Path(text)
    if folder.is_dir():
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
        if not files:
            raise DataError(f"{folder}: the folder contains no files")
    elif (matches := run_parts.files_of(text, hidden=".")) is None:
        return [folder]
    else:
        files = matches
    return _runs_among(text, files, columns)


def _runs_among(text: str, files: Sequence[Path], columns: Declared) -> list[Path]:
    """Return the runs in a folder or glob, without AutoRAG's copies of the best. Name skipped files in a warning."""
    # If no file is certainly a run, the readers report what records lack.
    kept = {file for file in files if _is_run(file, columns)} or {file for file in files if _is_run(file, None)}
    bests = ((file, file.with_name(file.name.removeprefix("best_"))) for file in files)
    copies = {best for best, file in bests if best != file in files and file.with_name("summary.csv").exists()}
    others = [file.name for file in files if file not in kept]
    if not kept:
        raise DataError(f"{text}: expected runs, found only {first_of(others, 5)}")
    passed = [f"{first_of(others, 5)} ({'not a run' if len(others) == 1 else 'not runs'})"] if others else []
    passed += [f"{first_of(sorted(each.name for each in copies), 5)} (AutoRAG's copy of the best)"] if copies else []
    if passed:
        warn(f"{text}: skipped {' and '.join(passed)}")
    kept -= copies
    return [file for file in files if file in kept]


def _is_run(path: Path, columns: Declared | None) -> bool:
    """Return whether a file is a run, based on its content and the declared `columns` (None: records may lack keys)."""
    if ending_of(path.name) in RUNS_ALONE:
        return True
    source = replace(Source.at(path), columns=columns or NO_COLUMNS)
    try:
        detected, kind = _recognized(source)
    except DataError:
        return ending_of(path.name) in REMOVED_ENDINGS
    if detected is None:
        return kind == EMPTY and ending_of(path.name) in REMOVED_ENDINGS
    if detected.name in ("jsonl", "parquet") and columns is not None:
        names = column_names(path) or ()
        of_runs = {"qid", "query", "doc_id", "retrieved_ids"} & roles.roles_in(names, "run").keys()
        return kind != "truth" and bool(of_runs or TEXTS in names or declared_in(columns, [path]))
    # A line of prose can have as many words as results have columns.
    return kind != "truth" and (detected.name != "trec" or any(map(trec.is_result, words.first_lines(source))))


def require_paths(
    truth: AnyPath, runs: Iterable[AnyPath], *, in_parts: bool = False, columns: Declared = NO_COLUMNS
) -> list[list[AnyPath]]:
    """Return the files or URL of each run (with `in_parts`, its path). Raise `DataError` for missing paths."""

    def existing(path: AnyPath) -> list[AnyPath]:
        if run_parts.is_url(path):
            return [path]
        if not in_parts:
            return [Source.at(file).path for file in run_paths(path, columns)]
        run_parts.refuse_one(path)
        return [path]

    faults = Faults()
    collect(Source.at, [] if run_parts.is_url(truth) else [truth], faults)
    paths = collect(existing, runs, faults)
    faults.stop()
    return paths


def kind_of(path: AnyPath, columns: Declared = NO_COLUMNS) -> str:
    """Return `truth` or `run`, based on the declared roles that the file has at paths, or on its content."""
    source = replace(Source.at(path), columns=columns)
    if columns and has_paths(column_names(source) or (), columns):
        of_runs = roles.NAMES["run"].keys() - {*roles.NAMES["truth"], "text"}
        return "run" if declared_in(columns, [source]).keys() & of_runs else "truth"
    detected, kind = _recognized(source)
    if detected is None:
        return "run"
    if kind == "either" and detected.name == "trec" and len(words.first_lines(source)[0].split()) == 3:
        # Qrels and runs of three columns look alike where each query has one row.
        queries = [line.split()[0] for line in words.first_lines(source)]
        return "run" if len(set(queries)) < len(queries) else "truth"
    return detected.usually if kind == "either" else kind


def _named(name: str, *, is_truth: bool) -> Format:
    for each in words.FORMATS:
        if each.name == name and each.reads(is_truth=is_truth):
            return each
    from groupgt.formats import known

    if (found := known.format_named(name, is_truth=is_truth)) is None:
        names = known.format_names(is_truth=is_truth)
        raise ConfigError(f"format: expected {listed(names)}, found {name!r}{near_names(name, names)}")
    return found


def _format_of(source: Source, name: str | None, *, is_truth: bool) -> Format:
    """Return the named or detected format, or raise `DataError` if a folder does not have its layout."""
    if source.columns and has_paths(column_names(source) or (), source.columns):
        from groupgt.formats import recipes

        return recipes.DECLARED
    chosen = _detect(source, is_truth=is_truth) if name is None else _named(name, is_truth=is_truth)
    if source.path.is_dir() and not (chosen.folder is not None and chosen.folder(source.path)):
        what = "expected a file or a BEIR folder (with queries.jsonl and qrels/), found a different kind of folder"
        raise DataError(f"{source.path}: {what}")
    return chosen


def _detect(source: Source, *, is_truth: bool) -> Format:
    """Detect the format of a file, or raise `DataError` if it has the wrong kind of content."""
    recognized, kind = _recognized(source)
    fits = kind in ("either", "truth" if is_truth else "run")
    if fits and recognized is not None and words.are_words(source):
        return recognized
    from groupgt.formats import known
    from groupgt.formats.records import keys_of

    if (recognized is None or recognized.name == "trec") and known.is_table(source):
        return known.BY_NAME["csv"]
    # Cells of a table can have as many words as results have columns.
    is_of_words = kind == "run" and recognized is not None and recognized.name == "trec"
    if is_of_words and b"," in source.first_line and not any(map(trec.is_result, words.first_lines(source))):
        return known.BY_NAME["csv"]
    if recognized is None and (not is_truth or kind == EMPTY):
        # Text of unknown shape: the reader of TREC files reports the errors of each line.
        return known.BY_NAME["trec"]
    if recognized is not None and fits:
        return known.BY_NAME["autorag"] if is_truth and recognized.name == "parquet" else recognized
    if not is_truth and recognized is not None and recognized.name == "trec" and len(source.first_line.split()) == 3:
        return recognized  # its reader says what ranks are expected
    if not (source.path.is_dir() or source.is_parquet) and b"\r" in source.first_line:
        raise DataError(f"{source.path}:1: {trec.BARE_RETURN}")
    wanted = "ground truth" if is_truth else "a run"
    if recognized is None:
        shapes = "qrels, CSV with a header line, JSON, JSON Lines or parquet"
        what = f"expected {wanted} ({shapes}), but the first line is {kind}"
        way = f"if the file has another format, set it with --{'truth' if is_truth else 'run'}-format"
        raise DataError(f"{source.path}: {what}; {way}")
    other = "a run" if is_truth else "ground truth"
    name = {"trec truth": "qrels", "beir truth": "beir"}.get(f"{recognized.name} {kind}", f"{recognized.name} {kind}")
    columns = roles.of_other_kind(keys_of(source), is_truth=is_truth)
    way = f" {columns[0].upper()}{columns[1:]}" if columns else ""
    swapped = "Did you swap TRUTH and RUN?"
    raise DataError(f"{source.path}: expected {wanted}, but this looks like {other} ({name}). {swapped}{way}")


def _recognized(source: Source) -> tuple[Format | None, str]:
    """Return a file's format and kind of content, or None and its first line if no format matches."""
    if words.are_words(source) and (kind := words.look(source)) is not None:
        return words.FORMATS[0], kind
    from groupgt.formats import known

    if source.path.is_dir():
        folders = (each for each in known.FORMATS if each.folder is not None and each.folder(source.path))
        return next(folders, known.BY_NAME["beir"]), "truth"
    if not source.is_parquet and not words.first_lines(source):
        return None, EMPTY if not source.head().strip() or not source.data.strip() else COMMENTS
    several = [each.name for each in known.PUBLISHED if each.look is not None and each.look(source) is not None]
    if len(several) > 1:
        what = f"has the keys of {' and '.join(several)}; name its format with --truth-format"
        raise DataError(f"{source.path}: {what}: {' or '.join(several)}")
    for candidate in known.FORMATS:
        if candidate.look is not None and (kind := candidate.look(source)) is not None:
            return candidate, kind
    return None, repr(words.first_lines(source)[0][:60].decode("utf-8", "replace"))
