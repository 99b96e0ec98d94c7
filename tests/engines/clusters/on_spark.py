"""A program, for a process has one Spark context: `python -m tests.engines.clusters.on_spark FOLDER [same|lost]`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import groupgt
from groupgt.engines.remote import session_of
from tests.engines.clusters.world import (
    METRICS,
    digest,
    executor,
    nested,
    rows,
    same,
    truth,
    truth_rows,
    with_a_loss,
)

# No host name is looked up, and nothing listens to the outside.
# Compiling well takes longer than what is compiled runs here.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "1g",
    # Workers run elsewhere, and import what runs here.
    "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    "spark.sql.shuffle.partitions": "4",
    # So small a run would be put together into one task.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main(folder: Path) -> None:
    # Two executors, one of which is lost.
    spark = session_of("local-cluster[2,1,1500]", SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.createDataFrame(rows().to_arrow()).repartition(5)
    same(frame, spark.createDataFrame(nested().to_arrow()), spark.createDataFrame(truth_rows().to_arrow()))
    # Files that Spark reads, of names of its own, in cells of a fixed length.
    rows().write_parquet(folder / "run.parquet")
    rows().write_ndjson(folder / "run.jsonl")
    expected = groupgt.evaluate(truth(), rows(), METRICS)
    for name in ("run.parquet", "run.jsonl"):
        assert digest(groupgt.evaluate(truth(), folder / name, METRICS, engine="spark")) == digest(expected)
    short = frame.selectExpr("cast(qid as char(8)) `query.id`", "cast(doc_id as varchar(9)) doc_id", "score", "tokens")
    named = groupgt.evaluate(truth(), short, METRICS, run_columns={"qid": "query.id"})
    assert named.means == expected.means
    with_a_loss(
        lambda labeller: groupgt.evaluate(truth(), frame, METRICS[:3], labeller=labeller), folder / "killed", executor
    )
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in range(200)]
    again = sum(stage.numFailedTasks + stage.currentAttemptId for stage in stages if stage is not None)
    spark.stop()
    print(json.dumps({"again": again}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
