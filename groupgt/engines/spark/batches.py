"""What Spark's workers run: Arrow in, Arrow out. Each batch holds whole queries, with their hits alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.columns.keys import Found, key_table, labelled
from groupgt.labellers.ids import Ids
from groupgt.metrics.language import Metric
from groupgt.metrics.values import values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.sums import exact_sum

if TYPE_CHECKING:
    import pyarrow as pa


def measure(asked: Mapping[str, Metric], policy: Policy) -> Callable[..., pa.Array]:
    """What makes values of queries: a function of `qid`, `groups`, `n` and `hits`, as `per_query` gathers them."""

    def measured(qid: pa.Array, groups: pa.Array, n: pa.Array, hits: pa.Array) -> pa.Array:
        import pyarrow as pa

        truth = GroundTruth.from_rows(qid.to_pylist(), list(map(_groups, groups.to_pylist())), policy)
        labeller = Ids()
        matches = labeller.match(truth, None)
        table = key_table(truth, matches)
        targets = dict(zip(zip(table["query"].to_list(), table["doc"].to_list()), table["target"].to_list()))
        rows = [
            (query, targets[query, hit["doc"]], hit["rank"])
            for query, own in enumerate(hits.to_pylist())
            for hit in own or ()
            if (query, hit["doc"]) in targets
        ]
        query, target, rank = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        length = np.array(n.fill_null(0), dtype=np.int64)
        found = labelled(truth, labeller, matches, policy, Found(query, target, rank, rank, rank, length))
        columns = values_of(asked, found.hits, found.present, policy)
        # NaN is null: a query that does not count.
        arrays = [pa.array(column, pa.float64(), mask=np.isnan(column)) for column in columns.values()]
        return pa.StructArray.from_arrays(arrays, names=[f"m{number}" for number in range(len(arrays))])

    return measured


def _groups(groups: list[list[dict[str, Any]]] | None) -> list[list[Any]] | None:
    """Groups of ids, with grades where there are any but 1."""
    if groups is None:
        return None
    return [
        None if group is None else [each["id"] if each["grade"] == 1 else each for each in group] for group in groups
    ]


def total(column: pa.Array) -> str:
    """How many there are, and their exact sum: two whole numbers."""
    known = np.asarray(column.drop_null(), dtype=np.float64)
    known = known[~np.isnan(known)]
    return f"{len(known)} {exact_sum(known)}"


def renamer(names: Callable[[list[str]], Any]) -> Callable[..., pa.Array]:
    """What calls results otherwise: a function of a column of ids."""

    def renamed(doc: pa.Array) -> pa.Array:
        import pyarrow as pa

        distinct = doc.dictionary_encode()
        known = pa.array(list(names(distinct.dictionary.to_pylist())), pa.string())
        return known.take(distinct.indices)

    return renamed
