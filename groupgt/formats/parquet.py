"""Parquet files: AutoRAG's questions and node outputs, long and nested results, and tables of any other kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from groupgt.errors import DataError
from groupgt.formats import frames
from groupgt.formats.pages import check_pages
from groupgt.formats.rankings import SCORES, run_name
from groupgt.formats.source import Source
from groupgt.formats.validity import Guard, guarded
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.runtime import pl


def scan(source: Source) -> pl.LazyFrame:
    """The columns of a file, whose pages are checked when it is first looked at."""
    if "frame" not in source.kept:
        source.kept["frame"] = _checked(source)
    frame: pl.LazyFrame = source.kept["frame"]
    return frame


def _checked(source: Source) -> pl.LazyFrame:
    if not source.is_parquet:
        raise DataError(f"{source.path}: expected a parquet file, found something else; name another format")
    if source.is_pipe:
        raise DataError(f"{source.path}: parquet cannot be read from a pipe; save it as a file")
    check_pages(source.path)
    frame = pl.scan_parquet(source.path, glob=False)
    _guard_of(source)(frame.collect_schema)
    return frame


def _guard_of(source: Source) -> Guard:
    """Runs a step of polars; what it says of a damaged file becomes a `DataError`."""
    return partial(guarded, source.path, "the parquet file is damaged or cut off")


def names_of(source: Source) -> list[str]:
    """The columns of a file."""
    names: list[str] = scan(source).collect_schema().names()
    return names


def read_table(source: Source) -> pl.DataFrame:
    """A file as it is."""
    table: pl.DataFrame = _guard_of(source)(scan(source).collect)
    return table


def rows_of(source: Source) -> list[dict[str, Any]]:
    """Every row of a file as a dict."""
    return read_table(source).to_dicts()


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """AutoRAG's `qa.parquet`: `qid`, `query`, `retrieval_gt`, other columns; or `qid, group, doc_id[, grade]` rows."""
    return frames.truth_of(read_table(source), policy, str(source.path))


def read_run(source: Source, qids: list[str] | None = None) -> Run:
    """Long (`qid, doc_id, score | rank`), nested (`qid, retrieved_ids[, retrieve_scores]`), or AutoRAG's node output.

    Node output has no `qid`: its rows are those of `qids`, in order.
    """
    run = frames.run_of(scan(source), str(source.path), qids, guard=_guard_of(source))
    return replace(run, name=run_name(source), source=str(source.path))


def read_parts(sources: Sequence[Source], title: str) -> Run:
    """One run of many files, whose columns are alike."""
    for source in sources:
        check_pages(source.path)

    def guard(step: Callable[[], Any]) -> Any:
        return guarded(title, "a parquet file is damaged, cut off, or has other columns than the rest", step)

    return frames.run_of(pl.scan_parquet([source.path for source in sources], glob=False), title, guard=guard)


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """AutoRAG's `qa.parquet`; grades, weights and names of groups have no place in it."""
    columns: dict[str, pl.Series] = {"qid": pl.Series(truth.qids, dtype=pl.String)}
    if truth.texts:
        columns["query"] = pl.Series(truth.texts, dtype=pl.String)
    groups = [groups for _, groups in truth.items()]
    columns["retrieval_gt"] = pl.Series(groups, dtype=pl.List(pl.List(pl.String)))
    for name, values in truth.columns.items():
        columns[name] = pl.Series(values, strict=False)
    pl.DataFrame(columns).write_parquet(path)


def write_run(path: Path, rankings: Iterable[tuple[str, list[str], list[float]]], *, scored: bool) -> None:
    """`qid, retrieved_ids[, retrieve_scores]`."""
    rows = list(rankings)
    columns = {
        "qid": pl.Series([qid for qid, _, _ in rows], dtype=pl.String),
        "retrieved_ids": pl.Series([ids for _, ids, _ in rows], dtype=pl.List(pl.String)),
    }
    if scored:
        columns[SCORES] = pl.Series([scores for _, _, scores in rows], dtype=pl.List(pl.Float64))
    pl.DataFrame(columns).write_parquet(path)
