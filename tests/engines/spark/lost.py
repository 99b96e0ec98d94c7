"""Evaluates on a cluster of processes while one of them is killed; a program, for a process has one Spark context.

    python -m tests.engines.spark.lost FILE

writes into a file of JSON what was found with and without a loss, and what was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import groupgt
from groupgt.engines.spark import means, per_query
from groupgt.engines.spark.steps import session_of
from tests.engines.spark.conftest import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

METRICS = ["recall@100", "ndcg.coverage", "map.trec", "mrr", "precision@10"]
# 300 queries with 1,000 results each, of which the last ten have no ground truth.
QUERIES, SIZE, DOCUMENTS = 300, 300_000, 701
# Of so many processes one is killed at a time; another comes in its place.
WORKERS, PARTITIONS = 2, 16
# Longer than a process of Java needs to start on a busy machine.
PATIENCE = 60.0
STEP = 0.01
# More stages than a step has.
MOST = 200


def truth() -> dict[str, list[list[str]]]:
    """Ground truth, with queries of many hits, of none, and without results."""
    found = {
        f"q{query}": [
            [f"d{(query * 11 + group * 97 + other) % DOCUMENTS}" for other in range(1 + group % 3)]
            for group in range(60 if query % 50 == 7 else 1 + query % 4)
        ]
        for query in range(QUERIES - 10)
    }
    return {**found, "missing": [["d1"]], "undefined": []}


def rankings() -> dict[str, list[str]]:
    """The results as lists: many repeats, and many equal scores, which go by descending id."""
    found = {}
    for query in range(QUERIES):
        own = [((n * 37 + query) % 61, f"d{(n * n + 7 * query) % DOCUMENTS}") for n in range(SIZE // QUERIES)]
        found[f"q{query}"] = [name for _, name in sorted(own, reverse=True)]
    return found


def rows(spark: SparkSession) -> DataFrame:
    """The same as rows of a cluster: those of a query lie everywhere, and get there through the disks of executors."""
    from pyspark.sql import functions as sql

    query = sql.col("id") % QUERIES
    number = (sql.col("id") - query) / QUERIES
    whole = number.cast("long")
    frame = spark.range(0, SIZE, 1, PARTITIONS).select(
        sql.concat(sql.lit("q"), query).alias("qid"),
        sql.concat(sql.lit("d"), (whole * whole + 7 * query) % DOCUMENTS).alias("doc_id"),
        ((whole * 37 + query) % 61).cast("double").alias("score"),
    )
    return frame.repartition(PARTITIONS, "doc_id")


def digest(values: Mapping[str, Any]) -> str:
    """Of the bits of columns, in the order of names."""
    found = hashlib.sha256()
    for name in sorted(values):
        found.update(name.encode() + np.asarray(values[name], dtype="<f8").tobytes())
    return found.hexdigest()


def in_memory(run: dict[str, list[str]], policy: dict[str, str]) -> groupgt.Evaluation:
    return groupgt.evaluate(truth(), run, METRICS, policy=policy)


# The policy of each step: the first labels, the second makes values where the data is, in processes of Python.
STEPS: dict[str, dict[str, str]] = {"evaluate": {}, "per_query": {"duplicates": "drop"}}


def step(name: str, spark: SparkSession) -> str:
    """One step of the work there, as the digest of the values of each query, or of the means."""
    policy = STEPS[name]
    if name == "evaluate":
        return digest(groupgt.evaluate(truth(), rows(spark), METRICS, policy=policy).values)
    judged = spark.createDataFrame(list(truth().items()), "qid string, retrieval_gt array<array<string>>")
    return digest(means(per_query(rows(spark), judged, METRICS, policy=policy)))


def executors(port: str) -> dict[int, str]:
    """The processes that work for the driver behind a port, by their ids."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        number, _, command = line.strip().partition(" ")
        if "CoarseGrainedExecutorBackend" in command and f"-Dspark.driver.port={port} " in command:
            found[int(number)] = command.split("--executor-id ", 1)[1].split(" ", 1)[0]
    return found


def until(holds: Callable[[], bool], what: str) -> None:
    """Waits for another process; there is nobody to ask but by looking again."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:g} s for {what}")
        threading.Event().wait(STEP)


class Killer(threading.Thread):
    """Kills a worker in the middle of the second stage that it sees; what is left of the first on its disk is lost."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(daemon=True)
        self.tracker = spark.sparkContext.statusTracker()
        self.victims = executors(spark.conf.get("spark.driver.port"))
        self.ended = threading.Event()
        self.seen: set[int] = set()
        self.killed: dict[str, Any] = {}

    def run(self) -> None:
        while not self.ended.wait(STEP):
            for number in self.tracker.getActiveStageIds():
                stage = self.tracker.getStageInfo(number)
                if stage is None or not stage.numActiveTasks or not 0 < stage.numCompletedTasks < stage.numTasks:
                    continue
                self.seen.add(number)
                if len(self.seen) > 1:
                    pid = max(self.victims)
                    os.kill(pid, signal.SIGKILL)
                    self.killed = {"pid": pid, "executor": self.victims[pid]}
                    return

    def again(self) -> int:
        """How many tasks failed since, and how many stages were begun anew."""
        first = min(self.seen)
        stages = [self.tracker.getStageInfo(first + each) for each in range(MOST)]
        return sum(stage.numFailedTasks + stage.currentAttemptId for stage in stages if stage is not None)


def main(target: Path) -> None:
    config = {
        **SETTINGS,
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": SETTINGS["spark.driver.extraJavaOptions"],
        # Workers run elsewhere, and import what runs here.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        # So small a run would be put together into one task.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        # What the tracker says is what is.
        "spark.ui.liveUpdate.period": "0",
    }
    spark = session_of(f"local-cluster[{WORKERS},1,1500]", config)
    spark.sparkContext.setLogLevel("OFF")
    port = spark.conf.get("spark.driver.port")

    def complete() -> bool:
        return len(known()) == WORKERS and set(known()) == set(executors(port).values())

    def known() -> list[str]:
        return list(spark.sparkContext._jsc.sc().getExecutorIds().mkString(",").split(","))

    found: dict[str, Any] = {}
    for name in STEPS:
        until(complete, "the workers")
        own = {"whole": step(name, spark), "before": known()}
        killer = Killer(spark)
        killer.start()
        own["lost"] = step(name, spark)
        killer.ended.set()
        killer.join()
        own |= {"killed": killer.killed, "again": killer.again() if killer.killed else 0}
        until(complete, "a worker in the place of the lost one")
        own |= {"after": known(), "alive": sorted(executors(port))}
        found[name] = own
    spark.stop()
    target.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
