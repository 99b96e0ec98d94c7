"""Reads and writes parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.formats import frames
from groupgt.formats.endings import without_endings
from groupgt.formats.fields import CALL_LIST, SCORES
from groupgt.formats.rows import SHAPE, Calls, Ranking, Trials, numbered
from groupgt.formats.source import Source
from groupgt.formats.tables import named_ids
from groupgt.formats.validity import Guard, guarded
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.runtime import pl


def scan(source: Source) -> pl.LazyFrame:
    """Return the columns of a file lazily."""
    return source.cached(_scan)


def _scan(source: Source) -> pl.LazyFrame:
    if not source.is_parquet:
        raise DataError(f"{source.path}: expected a parquet file, but this is not one; choose another format")
    if source.is_pipe:
        raise DataError(f"{source.path}: Parquet cannot be read from a pipe; save it to a file")
    frame = pl.scan_parquet(source.path, glob=False)
    _guard_of(source)(frame.collect_schema)
    return frame


def _guard_of(source: Source) -> Guard:
    """Return a function that runs a polars step and converts errors about damaged files to a `DataError`."""
    return partial(guarded, source.path, "the parquet file is damaged or cut off")


def names_of(source: Source) -> list[str]:
    """Return the column names of a file."""
    return list(scan(source).collect_schema())


def read_table(source: Source) -> pl.DataFrame:
    """Read a file as a single table."""
    table: pl.DataFrame = _guard_of(source)(scan(source).collect)
    return table


def rows_of(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row of a file as a dict, with its location."""
    for number, row in enumerate(read_table(source).to_dicts(), 1):
        yield f"{source.path}: row {number}", row


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Read AutoRAG's `qa.parquet` (`qid`, `query`, `retrieval_gt`, …) or rows with `qid, group, doc_id[, grade]`."""
    return frames.truth_of(read_table(source), policy, str(source.path), source.columns)


def read_run(source: Source, qids: list[str] | None = None) -> Run:
    """Read long (`qid, doc_id, score | rank`) or nested (`qid, retrieved_ids[, retrieve_scores]`) results."""
    guard, columns = _guard_of(source), source.columns
    run = frames.run_of(scan(source), str(source.path), qids, guard=guard, columns=columns)
    return replace(run, name=without_endings(source.path.name))


def read_parts(sources: Sequence[Source], title: str) -> Run:
    """Read one run from many files with the same columns."""
    guard = partial(guarded, title, "a parquet file is damaged, cut off, or has different columns from the rest")
    frame = pl.scan_parquet([source.path for source in sources], glob=False)
    return frames.run_of(frame, title, guard=guard, columns=sources[0].columns)


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """Write AutoRAG's `qa.parquet`, which cannot store grades, group weights or group names."""
    columns: dict[str, pl.Series] = {"qid": pl.Series(truth.qids, dtype=pl.String)}
    if truth.texts:
        columns["query"] = pl.Series(truth.texts, dtype=pl.String)
    lists = [[each["alternatives"] if isinstance(each, dict) else each for each in truth[qid]] for qid in truth]
    columns["retrieval_gt"] = pl.Series(lists, dtype=pl.List(pl.List(pl.String)))
    columns |= {name: pl.Series(ids, dtype=pl.List(pl.String)) for name, ids in named_ids(truth).items()}
    if truth.shape != "groups":
        columns[SHAPE] = pl.Series([truth.shape] * len(truth), dtype=pl.String)
    for name, values in truth.columns.items():
        columns[name] = pl.Series(values, strict=False)
    pl.DataFrame(columns).write_parquet(path)


def write_run(path: Path, rows: Sequence[Ranking], *, calls: Calls | None, trials: Trials) -> None:
    """Write `qid, retrieved_ids[, retrieve_scores][, retrieved_calls][, trial]`. Missing scores are null."""
    columns = {"qid": pl.Series([qid for qid, _, _ in rows], dtype=pl.String)}
    columns["retrieved_ids"] = pl.Series([ids for _, ids, _ in rows], dtype=pl.List(pl.String))
    if any(scores is not None for _, _, scores in rows):
        columns[SCORES] = pl.Series([scores for _, _, scores in rows], dtype=pl.List(pl.Float64))
    if calls:
        of_results = [list(each) for _, each, _ in numbered(rows, calls, trials)]
        columns[CALL_LIST] = pl.Series(of_results, dtype=pl.List(pl.Int64))
    columns |= {column: pl.Series(numbers, dtype=pl.Int64) for column, numbers in trials.items()}
    pl.DataFrame(columns).write_parquet(path)
