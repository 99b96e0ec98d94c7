"""The carrier for results in columns, which reads rows in batches and keeps only hits and one row per query."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from groupgt.engines.base import Flat, InvalidRowError, Labelled, LocalCarrier, RankedHits, matched, warn_if_empty
from groupgt.engines.choice import Engine
from groupgt.engines.columns import any_order, in_order
from groupgt.engines.columns.keys import Keys
from groupgt.engines.columns.reader import Batches
from groupgt.engines.lists import ListCarrier
from groupgt.errors import DataError, Faults, refuse
from groupgt.labellers.base import Labeller
from groupgt.labellers.ids import Named
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking, best_first, best_of_each, distinct_ranking, repeat_fault
from groupgt.model.run import Columns, Lists, Run
from groupgt.model.validity import shown
from groupgt.model.values import CALLS, FARTHEST, LONGEST, UNITS
from groupgt.runtime import pl

# Number of invalid rows listed.
NAMED = 100


class ColumnCarrier(LocalCarrier):
    """Accesses results in lazy columns. If a row may be invalid, the slow reader checks the row."""

    def __init__(self, run: Run, columns: Columns) -> None:
        self.run, self.columns = run, columns

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        columns = self.columns
        try:
            matches = matched(truth, labeller, policy, lambda rules: self.flat(truth, rules, "text"))
            # Keys matched by name do not depend on the results, so runs share them.
            make_keys = partial(Keys, truth, matches)
            keys = truth.judgments.once("keys", make_keys) if isinstance(labeller, Named) else make_keys()
            ranked = self._hits(truth, keys, Batches(columns, self.run.title, engine.ceiling), policy)
        except InvalidRowError:
            return self.checked.label(truth, labeller, policy, engine)
        warn_if_empty(ranked, self.run.title)
        return ranked.labelled(truth, labeller, matches, policy)

    @property
    def checked(self) -> LocalCarrier:
        """The carrier for the slow reader's output, which is lists, or columns if lists would be too large."""
        return row_carrier_of(replace(self.run, contents=self.columns.checked.contents))

    def _hits(self, truth: GroundTruth, keys: Keys, batches: Batches, policy: Policy) -> RankedHits:
        if policy.looks_at_all:
            batches.refuse_invalid_rows()
            rows, duplicated = self._without_repeats(truth, policy)
            return any_order.ranked_hits(truth, keys, batches.of(rows), policy, duplicated)
        if batches.begin_in_order():
            try:
                return in_order.ranked_hits(truth, keys, batches, policy)
            except in_order.NotSortedError:
                pass
        return any_order.ranked_hits(truth, keys, batches, policy)

    def _without_repeats(self, truth: GroundTruth, policy: Policy) -> tuple[pl.LazyFrame, int]:
        """Return the best row per (query, document), and the number of queries with repeats, or raise `DataError`."""
        columns = self.columns
        rows = columns.frame.with_row_index("row")
        best = best_of_each(rows, policy, columns.tie)
        repeated = self._repeated(truth, best)
        if policy.duplicates == "error":
            first = repeated.unique("qid", keep="first", maintain_order=True)
            refuse((f"{self.run.title}: query {qid!r}", repeat_fault(doc)) for qid, doc in first.iter_rows())
        return (best.drop("len") if len(repeated) else rows), repeated["qid"].n_unique()

    def _repeated(self, truth: GroundTruth, counts: pl.LazyFrame) -> pl.DataFrame:
        """Return the (`qid`, `doc`) pairs that are repeated in judged queries, given each pair's row count (`len`)."""
        judged = pl.LazyFrame({"qid": pl.Series(truth.qids, dtype=pl.String)})
        several = counts.filter(pl.col("len") > 1).select("qid", "doc").join(judged, on="qid", how="semi")
        frame: pl.DataFrame = self.columns.guard(lambda: several.sort("qid", "doc").collect(engine="streaming"))
        return frame

    def repeating(self, truth: GroundTruth) -> list[int] | None:
        if not self.columns.in_memory:
            return None
        repeated = self._repeated(truth, self.columns.frame.group_by("qid", "doc").len())
        return [truth.index[qid] for qid in repeated["qid"].unique().to_list()]

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        frame, recheck = self._renamed(labeller), lambda: self.checked.rename(truth, labeller, policy)
        columns = replace(self.columns, frame=frame, recheck=recheck, tie="own")
        return replace(self.run, contents=columns, original=self.run)

    def _renamed(self, labeller: Labeller) -> pl.LazyFrame:
        """Return the rows with `doc` renamed and the original ids in `own`."""
        frame = self.columns.frame
        schema = frame.collect_schema()
        original_doc = pl.col("doc").alias("own")
        if labeller.column == "span":
            if not {"start", "end"} <= set(schema):
                return frame.with_columns(original_doc)
            self._check_places(schema)
            bounds = [pl.col(name).cast(pl.Int64).cast(pl.String) for name in ("start", "end")]
            document = pl.col("document" if "document" in schema else "doc")
            place = pl.concat_str([document, pl.lit("["), bounds[0], pl.lit(":"), bounds[1], pl.lit("]")])
            return frame.with_columns(original_doc, doc=place)
        if labeller.column:
            if labeller.column not in schema:
                what = f"expected results with a {labeller.column} column, found {', '.join(schema)}"
                raise DataError(f"{self.run.title}: {what}")
            self._check_names(labeller.column, schema)
            return frame.with_columns(original_doc, doc=pl.col(labeller.column).cast(pl.String))
        distinct = self.columns.guard(lambda: frame.select(pl.col("doc").unique()).collect(engine="streaming"))
        ids = distinct["doc"].drop_nulls()
        table = pl.LazyFrame({"doc": ids, "name": pl.Series(list(labeller.names(ids.to_list())), dtype=pl.String)})
        joined = frame.with_columns(original_doc).join(table, on="doc", how="left", maintain_order="left")
        kept = [pl.col("name").alias("doc") if name == "doc" else pl.col(name) for name in (*schema, "own")]
        return joined.select(kept)

    def _check_places(self, schema: pl.Schema) -> None:
        """Raise `DataError` for rows whose document, start and end do not form a valid span."""
        for name in ("start", "end"):
            if not schema[name].is_numeric():
                what = f"{self.run.title}: expected whole numbers in the {name!r} column, found {schema[name]}"
                raise DataError(what)
        start, end = (pl.col(name).cast(pl.Float64) for name in ("start", "end"))
        sound = (start >= 0) & (end >= start) & (end <= FARTHEST) & (start == start.floor()) & (end == end.floor())
        if "document" in schema:
            sound &= pl.col("document").str.strip_chars() != ""
        what = f"expected a document and whole numbers from 0 to {FARTHEST} as start and end, with end not before start"
        self._refuse(~sound.fill_null(False), ["start", "end"], what)

    def _check_names(self, column: str, schema: pl.Schema) -> None:
        """Raise `DataError` for rows without a name or text."""
        kind = schema[column]
        if kind != pl.String and not kind.is_integer():
            raise DataError(f"{self.run.title}: expected strings or integers in the {column!r} column, found {kind}")
        blank = (pl.col(column).cast(pl.String).str.strip_chars() == "").fill_null(True)
        self._refuse(blank, [column], f"expected a {column}")

    def _refuse(self, wrong: pl.Expr, cells: list[str], what: str) -> None:
        """Raise `DataError` listing invalid rows and their values in these columns."""
        rows, guard = self.columns.frame.with_row_index("row").filter(wrong), self.columns.guard
        count = guard(lambda: rows.select(pl.len()).collect(engine="streaming")).item()
        if not count:
            return
        faults = Faults(grouped=False)
        first = guard(lambda: rows.select("row", "qid", *cells).head(NAMED).collect(engine="streaming"))
        for row, qid, *values in first.iter_rows():
            where = f"{self.run.title}: row {row + 1}: query {shown(qid)}"
            faults.add(where, f"{what}, found {' to '.join(map(shown, values))}")
        faults.total = count
        faults.stop(DataError)

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        of_query = self.columns.frame.filter(pl.col("qid") == qid).with_row_index("row")
        rows = self.columns.guard(lambda: of_query.collect(engine="streaming"))
        return distinct_ranking(*self._ranking(rows, policy), policy)

    def qids(self) -> list[str]:
        rows = self.columns.guard(self.columns.frame.select("qid").collect)
        distinct: list[str] = rows["qid"].drop_nulls().unique(maintain_order=True).to_list()
        return distinct

    def rankings(self, policy: Policy) -> Iterator[tuple[str, Ranking]]:
        columns = self.columns
        try:
            names = list(dict.fromkeys(("qid", "doc", "score", columns.tie)))
            lazy = columns.frame.select(names).with_row_index("row")
            rows = columns.guard(lambda: lazy.collect(engine="streaming"))
            suspicious = bool(rows.null_count().sum_horizontal().item()) or not rows["score"].is_finite().all()
        except (pl.exceptions.PolarsError, OSError):
            suspicious = True
        if suspicious:
            yield from self.checked.rankings(policy)
            return
        for (qid,), of_query in rows.group_by("qid", maintain_order=True):
            yield str(qid), self._ranking(of_query, policy)

    def _ranking(self, rows: pl.DataFrame, policy: Policy) -> Ranking:
        rows = best_first(rows, [], policy, tie=self.columns.tie, scored=True)
        # Scores only order the results of one call.
        return rows["doc"].to_list(), None if self.carries(CALLS) else (self.run.sign * rows["score"]).to_list()

    def sample(self, limit: int, queries: Collection[str] = ()) -> dict[str, list[str]]:
        rows = self.columns.guard(self.columns.frame.select("qid", "doc").head(limit).collect)
        by_query = rows.drop_nulls().group_by("qid", maintain_order=True).agg("doc")
        return dict(zip(by_query["qid"].to_list(), by_query["doc"].to_list()))

    def carries(self, field: str) -> bool:
        return field in self.columns.frame.collect_schema()

    def flat(self, truth: GroundTruth, policy: Policy, *fields: str) -> Flat:
        columns = self.columns
        judged = pl.LazyFrame({"qid": pl.Series(truth.qids, dtype=pl.String), "query": np.arange(len(truth))})
        rows = columns.frame.with_row_index("row").join(judged, on="qid", how="inner")
        rows = best_first(rows, ["query"], policy, tie=columns.tie, scored=True)
        if policy.duplicates == "drop":
            rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
        carried = [field for field in fields if self.carries(field)]
        chosen = rows.select("query", "doc", *carried)
        found: pl.DataFrame = columns.guard(lambda: chosen.collect(engine="streaming"))
        cells: dict[str, Any] = {field: [None] * len(found) for field in fields}
        for field in carried:
            cells[field] = self._lengths(truth, found, field) if field in UNITS else found[field].to_list()
        return Flat(found["query"].to_numpy().astype(np.int64), found["doc"], cells)

    def _lengths(self, truth: GroundTruth, rows: pl.DataFrame, unit: str) -> Ints:
        """Return a length column as whole numbers, or raise `DataError` for results with invalid lengths."""
        lengths = rows[unit].cast(pl.Float64, strict=False)
        sound = lengths.is_between(0, LONGEST).fill_null(False) & (lengths == lengths.round(0)).fill_null(False)
        wrong = rows.filter(~sound)
        if len(wrong):
            faults = Faults(grouped=False)
            for query, document, length in wrong.select("query", "doc", unit).head(NAMED).iter_rows():
                what = f"expected a whole number from 0 as the length of {document!r} in {unit}, found {length}"
                faults.add(f"{self.run.title}: query {truth.qids[query]!r}", what)
            faults.total += max(len(wrong) - NAMED, 0)
            faults.fail(DataError)
        return lengths.to_numpy().astype(np.int64)


def row_carrier_of(run: Run) -> LocalCarrier:
    """Return the carrier for local results, which are lists or columns."""
    run = run.resolved
    if isinstance(run.contents, Lists):
        return ListCarrier(run, run.contents)
    assert isinstance(run.contents, Columns)  # noqa: S101  # what is left
    return ColumnCarrier(run, run.contents)
