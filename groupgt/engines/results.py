"""What labellers are told of results: their names and texts, whatever carries them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.lists import carried, ranking_of
from groupgt.errors import DataError, Faults
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.ids import id_text, shown
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run
from groupgt.model.spans import Span, span_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Listed", "Streamed", "renamed"]

Row = tuple[int, list[str], Sequence[Any] | None]


class Listed:
    """Results of lists, as labellers ask for them."""

    def __init__(self, truth: GroundTruth, run: Run, policy: Policy) -> None:
        self.given, self.run, self.policy = truth, run, policy

    def pairs(self) -> tuple[Ints, list[str]]:
        """Each query with its distinct results; sorted by query."""
        return self._found[0], self._found[1]

    def texts(self) -> list[str | None]:
        """The text that each of them carries."""
        return self._found[2]

    @cached_property
    def _found(self) -> tuple[Ints, list[str], list[str | None]]:
        sizes: list[int] = []
        keys: list[str] = []
        texts: list[str | None] = []
        for _, ids, own in _rows(self.given, self.run, "text", self.policy):
            first: dict[str, Any] = dict.fromkeys(ids)
            if own is not None:
                first = dict(zip(reversed(ids), reversed(own)))
                first = {name: first[name] for name in dict.fromkeys(ids)}
            sizes.append(len(first))
            keys += first
            texts += [text if isinstance(text, str) else None for text in first.values()]
        return np.repeat(np.arange(len(self.given)), sizes).astype(np.int64), keys, texts


def _rows(truth: GroundTruth, run: Run, key: str, policy: Policy) -> list[Row]:
    """For every query of the ground truth its results, and what stands beside them under a key.

    Faults of rankings themselves are left to who labels them.
    """
    faults, quiet = Faults(), Faults()
    beside = run.beside[key]() if key in run.beside else {}
    keys = {str(name): name for name in run.rankings}
    rows: list[Row] = []
    for number, qid in enumerate(truth.qids):
        given = run.rankings.get(keys.get(qid, qid))
        own: Sequence[Any] | None = beside.get(qid)
        if type(given) is list and set(map(type, given)) == {str}:
            ids = given
        else:
            ids = ranking_of(given, policy, quiet, "")[0]
            own = carried(given, key) if own is None else own
        if own is not None and len(own) != len(ids):
            where = f"{run.source or run.name or 'results'}: query {qid!r}"
            faults.add(where, f"expected a {key} for each of {len(ids):,} results, found {len(own):,}")
        rows.append((number, ids, own))
    faults.stop(DataError)
    return rows


class Streamed:
    """Results of columns, as labellers ask for them."""

    def __init__(self, truth: GroundTruth, columns: Columns) -> None:
        self.given, self.columns = truth, columns

    def pairs(self) -> tuple[Ints, list[str]]:
        """Each query with its distinct results; sorted by query."""
        return self._found["query"].to_numpy().astype(np.int64), self._found["doc"].to_list()

    def texts(self) -> list[str | None]:
        """The text that each of them carries."""
        return self._found["text"].to_list() if "text" in self._found.columns else [None] * len(self._found)

    @cached_property
    def _found(self) -> pl.DataFrame:
        import polars as pl

        names = self.columns.frame.collect_schema().names()
        wanted = ["query", "doc", *(name for name in ("text",) if name in names)]
        judged = pl.LazyFrame({"qid": pl.Series(self.given.qids, dtype=pl.String), "query": np.arange(len(self.given))})
        rows = self.columns.frame.with_row_index("row").join(judged, on="qid", how="inner")
        rows = rows.filter(pl.col("doc").is_not_null()).sort("row").select(wanted)
        rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
        found: pl.DataFrame = self.columns.guard(lambda: rows.collect(engine="streaming"))
        return found.sort("query", maintain_order=True)


def renamed(truth: GroundTruth, run: Run, labeller: Labeller, policy: Policy) -> Run:
    """The run with its results called what the labeller calls them; their order, scores and places stay."""
    if not labeller.renames or run.original is not None:
        return run
    if run.columns is not None:
        return replace(run, columns=_renamed_columns(truth, run, run.columns, labeller, policy), original=run)
    rankings: dict[Any, Any] = dict(run.rankings)
    scores: dict[str, Sequence[float]] = dict(run.scores or {})
    keys = {str(name): name for name in run.rankings}
    faults = Faults()
    for number, _, own in _rows(truth, run, labeller.column, policy):
        qid = truth.qids[number]
        if qid not in keys:
            continue
        where = f"{run.source or run.name or 'results'}: query {qid!r}"
        given = rankings[keys[qid]]
        read, order = ranking_of(given, policy, faults, where)
        rankings[keys[qid]] = _names(labeller, read, own, where, faults) if labeller.column else labeller.names(read)
        if isinstance(given, Mapping) and order is not None:
            scores[qid] = order
    faults.stop(DataError)
    return replace(run, rankings=rankings, scores=scores or None, original=run)


def _names(labeller: Labeller, ids: list[str], own: Sequence[Any] | None, where: str, faults: Faults) -> list[str]:
    """What results are called by what they carry; their ids where they carry nothing, which may be places already."""
    if own is None:
        if labeller.column == "span" or not ids:
            return ids
        faults.add(where, f"expected results that carry a {labeller.column}, found {shown(ids[0])}")
        return ids
    found: list[str] = []
    for rank, cell in enumerate(own, 1):
        name: str | None
        if labeller.column == "span":
            span = cell if isinstance(cell, Span) else span_of(cell) if isinstance(cell, Mapping) else "found no place"
            name = str(span) if isinstance(span, Span) else None
            what = f"{span}" if isinstance(span, str) else ""
        else:
            name, what = id_text(cell), f"expected a {labeller.column}, found {shown(cell)}"
        if name is None:
            faults.add(where, f"at rank {rank}: {what}")
            break
        found.append(name)
    return found


def _renamed_columns(truth: GroundTruth, run: Run, columns: Columns, labeller: Labeller, policy: Policy) -> Columns:
    import polars as pl

    frame, names = columns.frame, columns.frame.collect_schema().names()

    def recheck() -> Run:
        return renamed(truth, columns.checked, labeller, policy)

    title = run.source or run.name or "results"
    if labeller.column == "span":
        if not {"start", "end"} <= set(names):
            return columns
        _check_places(columns, title)
        bounds = [pl.col(name).cast(pl.String) for name in ("start", "end")]
        name = pl.concat_str([pl.col("doc"), pl.lit("["), bounds[0], pl.lit(":"), bounds[1], pl.lit("]")])
        return replace(columns, frame=frame.with_columns(doc=name), recheck=recheck)
    if labeller.column:
        if labeller.column not in names:
            raise DataError(f"{title}: expected results with a column {labeller.column}, found {', '.join(names)}")
        return replace(columns, frame=frame.with_columns(doc=pl.col(labeller.column)), recheck=recheck)
    ids = columns.guard(lambda: frame.select(pl.col("doc").unique()).collect(engine="streaming"))["doc"].drop_nulls()
    table = pl.LazyFrame({"doc": ids, "name": pl.Series(list(labeller.names(ids.to_list())), dtype=pl.String)})
    joined = frame.join(table, on="doc", how="left", maintain_order="left")
    kept = [pl.col("name").alias("doc") if each == "doc" else pl.col(each) for each in names]
    return replace(columns, frame=joined.select(kept), recheck=recheck)


def _check_places(columns: Columns, title: str) -> None:
    """Raises `DataError` for rows whose start or end is no place."""
    import polars as pl

    start, end = pl.col("start"), pl.col("end")
    sound = (start >= 0) & (end >= start)
    wrong = columns.frame.with_row_index("row").filter(~sound.fill_null(False)).select("row", "qid", "start", "end")
    faults = Faults()
    for row, qid, first, last in columns.guard(lambda: wrong.head(100).collect(engine="streaming")).iter_rows():
        where = f"{title}: row {row + 1}: query {shown(qid)}"
        faults.add(where, f"expected whole numbers as start and end, end not before start, found {first} to {last}")
    faults.stop(DataError)
