"""Computes per-query values inside another pipeline, such as Ray Data or Dask, with Arrow batches in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.calls import in_call_order
from groupgt.engines.carriers import local_carrier_of
from groupgt.engines.choice import Engine
from groupgt.engines.excluded import without_excluded
from groupgt.errors import DataError
from groupgt.formats import frames
from groupgt.formats.fields import CALL_COLUMN, CALL_LIST, NESTED, SCORES
from groupgt.formats.tables import NAMED
from groupgt.labellers.ids import Ids
from groupgt.metrics.base import OF_SHAPE, ConventionChoice
from groupgt.metrics.language import Metric, parse_metrics
from groupgt.metrics.values import check_batch, values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.validity import shown
from groupgt.model.written import Shape
from groupgt.runtime import no_garbage_collection, pl

if TYPE_CHECKING:
    import pyarrow as pa


TRUTH = "retrieval_gt"
READ = {"qid", "doc_id", "score", "rank", SCORES, *NESTED, CALL_COLUMN, CALL_LIST}


def per_query(
    batch: pa.Table,
    metrics: str | Metric | Sequence[str | Metric],
    truth: GroundTruth | Mapping[Any, Any] | None = None,
    *,
    convention: ConventionChoice = "auto",
    k: int | Sequence[int] = (),
    policy: Policy | str | Sequence[str] | Mapping[str, str] | None = None,
) -> pa.Table:
    """Return a table with `qid` and one column of doubles per metric; null marks queries left out of the mean.

    `batch` contains complete queries: either one row per query with `qid, retrieved_ids`, or all rows of each query
    with `qid, doc_id` and `score` or `rank`; an optional column `call` takes precedence in the ordering. `truth` is a
    `GroundTruth` or `{qid: groups}`; without it, groups are read from the column `retrieval_gt` in the first row of
    each query. The table has one row for each query in the batch that has ground truth, in order of first appearance;
    queries that occur only in `truth` are omitted. Values are bit-identical to `groupgt.evaluate`. A batch without rows
    returns an empty table. Raises `DataError`, `MetricError` or `ConfigError`. Requires pyarrow.

    >>> import pyarrow as pa
    >>> batch = pa.table({"qid": ["q2", "q1"], "retrieved_ids": [["e", "d"], ["a", "x", "b", "y"]]})
    >>> truth = {"q1": [["a", "b"], ["c"]], "q2": [["d"]], "q3": [["f"]]}
    >>> per_query(batch, ["recall@5", "mrr"], truth).to_pydict()
    {'qid': ['q2', 'q1'], 'recall@5': [1.0, 0.5], 'mrr': [0.5, 0.5]}
    """
    import pyarrow as pa

    shape = truth.shape if isinstance(truth, GroundTruth) else "groups"
    rules, parsed = rules_and_metrics(policy, metrics, convention, k, shape)
    if not isinstance(batch, pa.Table):
        way = 'Ray gives tables with batch_format="pyarrow", pyarrow.Table.from_pandas makes them of frames'
        raise DataError(f"batch: expected a table of Arrow, found {type(batch).__name__}; {way}")
    # A caller that only needs the schema passes no rows, and often columns without a type.
    qids, columns = [], {text: np.zeros(0) for text in parsed}
    if batch.num_rows:
        with no_garbage_collection():
            run = _run(batch)
            results = local_carrier_of(run, "values per query")
            judged = _judged(batch, results.qids(), truth, rules)
            results = local_carrier_of(without_excluded(judged, run), "values per query")
            labelled = results.label(judged, Ids(), rules, Engine())
            qids, columns = judged.qids, values_of(parsed, labelled.hits, labelled.present, rules)
    arrays = [pa.array(column, pa.float64(), mask=np.isnan(column)) for column in columns.values()]
    return pa.Table.from_arrays([pa.array(qids, pa.string()), *arrays], names=["qid", *columns])


def rules_and_metrics(
    policy: Any, metrics: str | Metric | Sequence[str | Metric], convention: str, k: int | Sequence[int], shape: Shape
) -> tuple[Policy, dict[str, Metric]]:
    """Return the policy and the metrics for per-query values; `shape` determines what the convention `auto` means."""
    rules = Policy.of(policy)
    parsed = parse_metrics(
        [metrics] if isinstance(metrics, (str, Metric)) else metrics,
        OF_SHAPE[shape] if convention == "auto" else convention,
        [k] if isinstance(k, int) else k,
    )
    check_batch(rules, parsed)
    return rules, parsed


def _run(batch: pa.Table) -> Run:
    """Read the results in a batch, ignoring other columns, whose types polars may not support."""
    names = READ.intersection(batch.column_names)
    if "qid" not in names:
        raise DataError(f"batch: expected a qid column; found {', '.join(batch.column_names)}")
    is_complete = names & {*NESTED} or ("doc_id" in names and names & {"score", "rank"})
    return in_call_order(frames.run_of(batch.select(sorted(names)) if is_complete else batch, "batch"))


def _judged(batch: pa.Table, qids: Iterable[str], truth: Any, policy: Policy) -> GroundTruth:
    """Return the ground truth for these queries only, in their order."""
    if isinstance(truth, GroundTruth):
        truth_by_id = Ids().read(truth.under(policy))
        return truth_by_id.select(truth_by_id.index[qid] for qid in qids if qid in truth_by_id.index)
    if isinstance(truth, Mapping):
        # Query ids may be text or integers, as in `GroundTruth.of`.
        keys = [key for qid in qids for key in (qid, _number(qid)) if key is not None and key in truth]
        return Ids().read(GroundTruth.of({key: truth[key] for key in keys}, policy))
    if truth is not None:
        raise DataError(f"truth: expected a GroundTruth or {{query id: groups}}, found {shown(truth)}")
    if TRUTH not in batch.column_names:
        columns = ", ".join(batch.column_names)
        raise DataError(f"batch: expected ground truth, as the argument truth or the {TRUTH} column; found {columns}")
    names = [name for name in ("qid", TRUTH, *NAMED.values()) if name in batch.column_names]
    rows = pl.DataFrame(batch.select(names)).unique("qid", keep="first", maintain_order=True)
    return Ids().read(frames.truth_of(rows, policy, f"{TRUTH} of the batch, one row per query"))


def _number(qid: str) -> int | None:
    """Return the query id as an integer, or None if it is not a plain decimal integer."""
    try:
        number = int(qid)
    except ValueError:
        return None
    return number if str(number) == qid else None
