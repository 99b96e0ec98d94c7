"""Values per query inside a pipeline of Dask: `python examples/dask_partitions.py` (needs dask, pandas and pyarrow)."""

from __future__ import annotations

import math
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from groupgt.engines.arrow import per_query

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


def values(part: pd.DataFrame) -> pd.DataFrame:
    """The ground truth travels with the function."""
    return per_query(pa.Table.from_pandas(part, preserve_index=False), METRICS, TRUTH).to_pandas()


def values_beside(part: pd.DataFrame) -> pd.DataFrame:
    """The ground truth is in the column retrieval_gt."""
    return per_query(pa.Table.from_pandas(part, preserve_index=False), METRICS).to_pandas()


# A batch without rows gives the columns and their kinds.
META = values(pd.DataFrame({"qid": []}))


def whole(rows: dd.DataFrame) -> dd.DataFrame:
    """One row per query: wherever partitions are cut, queries stay whole."""
    return rows.map_partitions(values_beside, meta=META)


def scattered(rows: dd.DataFrame) -> dd.DataFrame:
    """A row a result, in any partition: Dask brings the rows of each query together."""
    return rows.shuffle("qid").map_partitions(values, meta=META)


def indexed(rows: dd.DataFrame) -> dd.DataFrame:
    """With the query as the index its rows are together; `per_query` wants it as a column."""
    return rows.set_index("qid").map_partitions(lambda part: values(part.reset_index()), meta=META)


def means(found: dd.DataFrame) -> dict[str, float]:
    """The means over all queries that were judged."""
    rows = found.compute()
    seen = set(rows["qid"])
    if len(seen) < len(rows):
        raise ValueError("the rows of a query came apart")
    # Queries that no partition had are one more partition: they have no results.
    rest = [qid for qid in TRUTH if qid not in seen]
    rows = pd.concat([rows, values(pd.DataFrame({"qid": rest, "retrieved_ids": [[] for _ in rest]}))])
    # fsum rounds once: the order of partitions changes no bit.
    return {metric: math.fsum(rows[metric].dropna()) / int(rows[metric].count()) for metric in METRICS}


def main() -> None:
    rankings = {qid: sorted(own, key=lambda name: -own[name]) for qid, own in RUN.items()}
    nested = pd.DataFrame(
        {"qid": list(GIVEN), "retrieved_ids": [rankings.get(qid, []) for qid in GIVEN], "retrieval_gt": GIVEN.values()}
    )
    long = [(qid, name, score) for qid, scores in RUN.items() for name, score in scores.items()]
    np.random.default_rng(8).shuffle(long)
    frame = pd.DataFrame(long, columns=["qid", "doc_id", "score"])
    # Dask would make text of the lists of a frame of pandas; it leaves those of parquet files as they are.
    with dask.config.set({"dataframe.convert-string": False}):
        found = {"whole": means(whole(dd.from_pandas(nested, npartitions=4)))}
    found["scattered"] = means(scattered(dd.from_pandas(frame, npartitions=4)))
    found["indexed"] = means(indexed(dd.from_pandas(frame, npartitions=4)))
    expected = groupgt.evaluate(TRUTH, RUN, METRICS).means
    for name, own in found.items():
        print(name, own)
        if own != expected:
            raise SystemExit(f"expected {expected}")


if __name__ == "__main__":
    main()
