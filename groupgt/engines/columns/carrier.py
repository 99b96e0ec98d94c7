"""Labels results held as columns: rows flow past in batches, only hits and one row a query are kept."""

from __future__ import annotations

from functools import partial

from groupgt.engines import memory
from groupgt.engines.base import Labelled
from groupgt.engines.columns import any_order, in_order
from groupgt.engines.columns.keys import Found, Keys, labelled
from groupgt.engines.columns.reader import Batches, DoubtError
from groupgt.engines.results import Streamed
from groupgt.errors import Faults
from groupgt.labellers.base import Labeller
from groupgt.labellers.ids import Named
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Run
from groupgt.runtime import pl


def label(truth: GroundTruth, run: Run, policy: Policy, labeller: Labeller, ceiling: int = 0) -> Labelled:
    """Labels a run of columns; raises `DataError` that names what is wrong with them.

    `ceiling` is how many bytes the process may hold; 0 is no limit.
    """
    columns = run.as_columns
    try:
        matches = labeller.match(truth, Streamed(truth, columns))
        named = isinstance(labeller, Named)
        # What is matched by name does not depend on the results: for many runs it is the same.
        make = partial(Keys, truth, matches)
        keys = truth.judgments.once("keys", make) if named else make()
        batches = Batches(columns, run.source or run.name or "results", ceiling)
        return labelled(truth, labeller, matches, policy, _found(truth, keys, batches, policy))
    except DoubtError:
        checked = columns.checked
    # What is too large for lists the slow reader gives back as columns, read with more care.
    if not checked.in_memory:
        return label(truth, checked, policy, labeller, ceiling)
    return memory.label(truth, checked, policy, labeller)


def _found(truth: GroundTruth, keys: Keys, batches: Batches, policy: Policy) -> Found:
    if policy.duplicates in ("drop", "error"):
        batches.refuse_doubts()
        rows, duplicated = _without_repeats(truth, batches.columns, batches.title, policy)
        return any_order.found(truth, keys, batches.of(rows), policy, duplicated)
    if batches.begin_in_order():
        try:
            return in_order.found(truth, keys, batches, policy)
        except in_order.DisorderError:
            pass
    return any_order.found(truth, keys, batches, policy)


def _without_repeats(truth: GroundTruth, columns: Columns, title: str, policy: Policy) -> tuple[pl.LazyFrame, int]:
    """The best row of each (query, document), and how many queries had several; or says that there are several."""
    rows = columns.frame.with_row_index("row")
    best = pl.col("score") == pl.col("score").max()
    tie = pl.col(columns.tie)
    # Of equal scores the one that comes first in the order of ties.
    chosen = best & (tie == tie.filter(best).max()) if policy.ties == "id" else best
    row = pl.col("row").filter(chosen).min()
    others = [] if columns.tie == "doc" else [tie.filter(pl.col("row") == row).first()]
    first = rows.group_by("qid", "doc").agg(pl.len(), pl.col("score").max(), row, *others)
    judged = pl.LazyFrame({"qid": pl.Series(truth.qids, dtype=pl.String)})
    repeated = first.filter(pl.col("len") > 1).select("qid", "doc").join(judged, on="qid", how="semi")
    repeated = repeated.sort("qid", "doc")
    found: pl.DataFrame = columns.guard(lambda: repeated.collect(engine="streaming"))
    if policy.duplicates == "error":
        faults = Faults()
        for qid, doc in found.unique("qid", keep="first", maintain_order=True).iter_rows():
            what = f"the result {doc!r} stands twice; remove it, or choose the policy duplicates=drop"
            faults.add(f"{title}: query {qid!r}", what)
        faults.stop()
    return (first.drop("len") if len(found) else rows), found["qid"].n_unique()
