"""What labellers are told of results: their names and texts, whatever carries them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from groupgt.engines.lists import carried, places_in_order, ranking_of
from groupgt.errors import DataError, Faults
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Remote, Run
from groupgt.model.spans import FARTHEST, Span, span_of
from groupgt.model.validity import id_text, shown
from groupgt.runtime import pl


class Row(NamedTuple):
    """The results of a query of the ground truth, by its number; the scores that ordered them, and what is beside."""

    number: int
    ids: list[str]
    order: Sequence[float] | None
    beside: Sequence[Any] | None


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
        wanted = self.given.per_query > 0
        for number, ids, _, own in rows_of(self.given, self.run, "text", self.policy):
            if not wanted[number]:
                sizes.append(0)
                continue
            first: dict[str, Any] = dict.fromkeys(ids)
            if own is not None and len(first) == len(ids):
                first = dict(zip(ids, own))
            elif own is not None:
                # What a repeated result says is what its best place says.
                scores = (self.run.lists.scores or {}).get(self.given.qids[number])
                places = range(len(ids)) if scores is None else places_in_order(ids, scores, self.policy)
                said = {ids[place]: own[place] for place in reversed(places)}
                first = {name: said[name] for name in first}
            sizes.append(len(first))
            keys += first
            texts += [text if isinstance(text, str) else None for text in first.values()]
        return np.repeat(np.arange(len(self.given)), sizes).astype(np.int64), keys, texts


def rows_of(truth: GroundTruth, run: Run, key: str, policy: Policy, faults: Faults | None = None) -> list[Row]:
    """For every query of the ground truth its results, and what stands beside them under a key.

    Faults of the rankings themselves go into `faults`; without it they are left to who labels them.
    """
    told, quiet = Faults(), Faults()
    beside = run.lists.fields[key]() if key in run.lists.fields else {}
    keys = {str(name): name for name in run.rankings}
    title = run.source or run.name or "results"
    rows: list[Row] = []
    for number, qid in enumerate(truth.qids):
        given = run.rankings.get(keys.get(qid, qid))
        own: Sequence[Any] | None = beside.get(qid)
        order: Sequence[float] | None = None
        if type(given) is list and set(map(type, given)) == {str}:
            ids = given
        else:
            ids, order = ranking_of(given, policy, quiet if faults is None else faults, f"{title}: query {qid!r}")
            own = carried(given, key) if own is None else own
        if own is not None and len(own) != len(ids):
            told.add(
                f"{title}: query {qid!r}", f"expected a {key} for each of {len(ids):,} results, found {len(own):,}"
            )
        rows.append(Row(number, ids, order, own))
    told.stop(DataError)
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
        names = self.columns.frame.collect_schema().names()
        wanted = ["query", "doc", *(name for name in ("text",) if name in names)]
        asked = np.flatnonzero(self.given.per_query > 0)
        qids = pl.Series(self.given.qids, dtype=pl.String).gather(asked)
        judged = pl.LazyFrame({"qid": qids, "query": asked})
        rows = self.columns.frame.with_row_index("row").join(judged, on="qid", how="inner")
        rows = rows.filter(pl.col("doc").is_not_null())
        # What a repeated result says is what its best place says.
        keys = ["score", self.columns.tie, "row"] if "text" in wanted else ["row"]
        rows = rows.sort(keys, descending=[True, True, False] if "text" in wanted else [False]).select(wanted)
        rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
        found: pl.DataFrame = self.columns.guard(lambda: rows.collect(engine="streaming"))
        return found.sort("query", maintain_order=True)


def renamed(truth: GroundTruth, run: Run, labeller: Labeller, policy: Policy) -> Run:
    """The run with its results called what the labeller calls them; their order, scores and places stay."""
    if not labeller.renames or run.original is not None:
        return run
    if isinstance(run.contents, Remote):
        from groupgt.engines import spark

        return replace(run, contents=spark.renamed(run.contents, labeller, run.name or run.source), original=run)
    if isinstance(run.contents, Columns):
        return replace(run, contents=_renamed_columns(truth, run, run.contents, labeller, policy), original=run)
    rankings: dict[Any, Any] = dict(run.rankings)
    scores: dict[str, Sequence[float]] = dict(run.lists.scores or {})
    keys = {str(name): name for name in run.rankings}
    faults = Faults()
    for number, read, order, own in rows_of(truth, run, labeller.column, policy, faults):
        qid = truth.qids[number]
        if qid not in keys:
            continue
        key = keys[qid]
        where = f"{run.source or run.name or 'results'}: query {qid!r}"
        called = _names(labeller, read, own, where, faults) if labeller.column else list(labeller.names(read))
        if len(called) < len(read):
            continue  # at fault
        if run.lists.scores is not None and key in run.lists.scores:
            # Equal scores go by the names that results had.
            order = run.lists.scores[key]
            places = places_in_order(read, order, policy)
            called, order = [called[place] for place in places], [order[place] for place in places]
        rankings[key] = called
        if order is not None:
            scores[key] = order
    faults.stop(DataError)
    lists = replace(run.lists, rankings=rankings, scores=scores or None)
    return replace(run, contents=lists, original=run)


def _names(labeller: Labeller, ids: list[str], own: Sequence[Any] | None, where: str, faults: Faults) -> list[str]:
    """What results are called by what they carry; their ids where they carry nothing, which may be places already."""
    if own is None:
        if labeller.column == "span" or not ids:
            return ids
        way = f"; the labeller {labeller.name} has options that find it from ids" if labeller.column == "parent" else ""
        faults.add(where, f"expected results that carry a {labeller.column}, found {shown(ids[0])}{way}")
        return ids
    found: list[str] = []
    for rank, cell in enumerate(own, 1):
        name: str | None
        if labeller.column == "span":
            span = cell if isinstance(cell, Span) else span_of(cell) if isinstance(cell, Mapping) else ""
            name = str(span) if isinstance(span, Span) else None
            what = span if isinstance(span, str) and span else f"expected doc, start and end, found {shown(cell)}"
        else:
            name, what = id_text(cell), f"expected a {labeller.column}, found {shown(cell)}"
            name = name if name and name.strip() else None
        if name is None:
            faults.add(where, f"at rank {rank}: {what}")
            break
        found.append(name)
    return found


def _renamed_columns(truth: GroundTruth, run: Run, columns: Columns, labeller: Labeller, policy: Policy) -> Columns:
    frame, names = columns.frame, columns.frame.collect_schema().names()

    def recheck() -> Run:
        return renamed(truth, columns.checked, labeller, policy)

    title = run.source or run.name or "results"
    own = pl.col("doc").alias("own")
    if labeller.column == "span":
        if not {"start", "end"} <= set(names):
            return columns
        _check_places(columns, title)
        bounds = [pl.col(name).cast(pl.Int64).cast(pl.String) for name in ("start", "end")]
        document = pl.col("document" if "document" in names else "doc")
        name = pl.concat_str([document, pl.lit("["), bounds[0], pl.lit(":"), bounds[1], pl.lit("]")])
        return replace(columns, frame=frame.with_columns(own, doc=name), recheck=recheck, tie="own")
    if labeller.column:
        if labeller.column not in names:
            raise DataError(f"{title}: expected results with a column {labeller.column}, found {', '.join(names)}")
        _check_names(columns, labeller.column, title)
        called = pl.col(labeller.column).cast(pl.String)
        return replace(columns, frame=frame.with_columns(own, doc=called), recheck=recheck, tie="own")
    ids = columns.guard(lambda: frame.select(pl.col("doc").unique()).collect(engine="streaming"))["doc"].drop_nulls()
    table = pl.LazyFrame({"doc": ids, "name": pl.Series(list(labeller.names(ids.to_list())), dtype=pl.String)})
    joined = frame.with_columns(own).join(table, on="doc", how="left", maintain_order="left")
    kept = [pl.col("name").alias("doc") if each == "doc" else pl.col(each) for each in (*names, "own")]
    return replace(columns, frame=joined.select(kept), recheck=recheck, tie="own")


def _check_places(columns: Columns, title: str) -> None:
    """Raises `DataError` for rows whose document, start or end is no place."""
    schema = columns.frame.collect_schema()
    for name in ("start", "end"):
        if not schema[name].is_numeric():
            raise DataError(f"{title}: expected whole numbers in the column {name!r}, found {schema[name]}")
    start, end = (pl.col(name).cast(pl.Float64) for name in ("start", "end"))
    sound = (start >= 0) & (end >= start) & (end <= FARTHEST) & (start == start.floor()) & (end == end.floor())
    if "document" in schema:
        sound &= pl.col("document").str.strip_chars() != ""
    what = f"expected a document and whole numbers from 0 to {FARTHEST} as start and end, end not before start"
    _refuse(columns, ~sound.fill_null(False), ["start", "end"], title, what)


def _check_names(columns: Columns, name: str, title: str) -> None:
    """Raises `DataError` for rows that carry no name, or no text."""
    kind = columns.frame.collect_schema()[name]
    if kind != pl.String and not kind.is_integer():
        raise DataError(f"{title}: expected text or integers in the column {name!r}, found {kind}")
    blank = (pl.col(name).cast(pl.String).str.strip_chars() == "").fill_null(True)
    _refuse(columns, blank, [name], title, f"expected a {name}")


def _refuse(columns: Columns, wrong: pl.Expr, shown_columns: list[str], title: str, what: str) -> None:
    rows = columns.frame.with_row_index("row").filter(wrong)
    told = columns.guard(lambda: rows.select(pl.len()).collect(engine="streaming")).item()
    if not told:
        return
    faults = Faults()
    first = columns.guard(lambda: rows.select("row", "qid", *shown_columns).head(100).collect(engine="streaming"))
    for row, qid, *cells in first.iter_rows():
        faults.add(f"{title}: row {row + 1}: query {shown(qid)}", f"{what}, found {' to '.join(map(shown, cells))}")
    faults.total = told
    faults.stop(DataError)
