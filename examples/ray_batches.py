"""Values per query inside a pipeline of Ray Data: `python examples/ray_batches.py` (needs ray and pyarrow)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import ray
from groupgt.engines.arrow import per_query
from ray.data import Dataset

import groupgt

METRICS = ["recall@10", "complete@10", "ndcg.coverage@10"]


def made_up(queries: int = 200) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Ground truth and scores by chance; every tenth query has no results."""
    rng = np.random.default_rng(7)
    truth, run = {}, {}
    for number in range(queries):
        qid, names = f"q{number}", [f"d{each}" for each in rng.permutation(100)]
        truth[qid] = [names[10 * group : 10 * group + 2] for group in range(rng.integers(1, 4))]
        if number % 10:
            run[qid] = dict(zip(rng.permutation(names[:30])[:20].tolist(), rng.random(20).tolist()))
    return truth, run


GIVEN, RUN = made_up()
TRUTH = groupgt.GroundTruth.of(GIVEN)


def values(batch: pa.Table) -> pa.Table:
    """The ground truth travels with the function."""
    return per_query(batch, METRICS, TRUTH)


def values_beside(batch: pa.Table) -> pa.Table:
    """The ground truth is in the column retrieval_gt."""
    return per_query(batch, METRICS)


def whole(rows: Dataset) -> Dataset:
    """One row per query: wherever blocks are cut, queries stay whole."""
    return rows.map_batches(values_beside, batch_format="pyarrow")


def scattered(rows: Dataset) -> Dataset:
    """A row a result, in any block: Ray brings the rows of each query together, and calls once a query."""
    return rows.groupby("qid", num_partitions=4).map_groups(values, batch_format="pyarrow")


def scattered_many(rows: Dataset) -> Dataset:
    """The same with one call a block, for many queries."""
    together = rows.repartition(4, keys=["qid"])
    return together.map_batches(values, batch_format="pyarrow", batch_size=None)


def means(found: Dataset) -> dict[str, float]:
    """The means over all queries that were judged."""
    rows = found.take_all()
    seen = {row["qid"] for row in rows}
    if len(seen) < len(rows):
        raise ValueError("the rows of a query came apart")
    # Queries that no batch had are one more batch: they have no results.
    rest = [qid for qid in TRUTH if qid not in seen]
    rows += values(pa.table({"qid": rest, "retrieved_ids": [[] for _ in rest]})).to_pylist()
    counted = {metric: [row[metric] for row in rows if row[metric] is not None] for metric in METRICS}
    # fsum rounds once: the order of batches changes no bit.
    return {metric: math.fsum(column) / len(column) for metric, column in counted.items()}


def main() -> None:
    # On a cluster: ray.init() alone.
    ray.init(num_cpus=2, include_dashboard=False)
    rankings = {qid: sorted(own, key=lambda name: -own[name]) for qid, own in RUN.items()}
    nested = [
        {"qid": qid, "retrieved_ids": rankings.get(qid, []), "retrieval_gt": groups} for qid, groups in GIVEN.items()
    ]
    long = [
        {"qid": qid, "doc_id": name, "score": score} for qid, scores in RUN.items() for name, score in scores.items()
    ]
    np.random.default_rng(8).shuffle(long)
    found = {
        "whole": means(whole(ray.data.from_items(nested, override_num_blocks=4))),
        "scattered": means(scattered(ray.data.from_items(long, override_num_blocks=4))),
        "scattered, many": means(scattered_many(ray.data.from_items(long, override_num_blocks=4))),
    }
    ray.shutdown()
    expected = groupgt.evaluate(TRUTH, RUN, METRICS).means
    for name, own in found.items():
        print(name, own)
        if own != expected:
            raise SystemExit(f"expected {expected}")


if __name__ == "__main__":
    main()
