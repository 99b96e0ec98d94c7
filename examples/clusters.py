"""Evaluate results in a frame from Spark, Ray Data or Dask: `python examples/clusters.py spark` (or `ray`, `dask`)."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

import groupgt

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
ROWS = pd.DataFrame(
    [("q1", "a", 0.9), ("q1", "x", 0.8), ("q1", "c", 0.7), ("q2", "e", 0.5)], columns=["qid", "doc_id", "score"]
)


def on_spark() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    return session.createDataFrame(list(ROWS.itertuples(index=False)), list(ROWS.columns))


def on_ray() -> Any:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    return ray.data.from_pandas(ROWS)


def on_dask() -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(ROWS, npartitions=2)


FRAMES = {"spark": on_spark, "ray": on_ray, "dask": on_dask}

if __name__ == "__main__":
    frame = FRAMES[sys.argv[1]]()
    found = groupgt.evaluate(TRUTH, frame, ["recall@10", "mrr.coverage"])
    print(found)
    # A pandas frame gives exactly the same values.
    assert found.means == groupgt.evaluate(TRUTH, ROWS, ["recall@10", "mrr.coverage"]).means
