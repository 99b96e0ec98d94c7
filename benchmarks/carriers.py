"""The same results in every form they may come in: time, memory, and a digest of every value, which must be one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import data
import numpy as np
import parquet
import polars as pl
from parquet import CUTOFFS, DEPTH, FILES, METRICS, Made

REPEATED = 0.02
LINE = ("qid", "q0", "doc_id", "rank", "score", "tag")
# Clusters take longer to start than all others need.
CLUSTERS = ("spark", "ray", "dask")
CLUSTER_ROUNDS = 1


def made(count: int) -> Path:
    """The results as files: about eight of a query share a score, 2% of the rows repeat an id of their query."""
    return parquet.once(data.FOLDER / f"carriers-{count}x{DEPTH}-{data.SEED}", lambda folder: _write(folder, count))


def _write(folder: Path, count: int) -> None:
    parts = []
    with (folder / "qa.jsonl").open("wb") as truth:
        for rng, queries, documents, scores in Made(folder, count, DEPTH).parts():
            others = np.take_along_axis(documents, rng.integers(DEPTH, size=documents.shape), 1)
            documents = np.where(rng.random(documents.shape) < REPEATED, others, documents)
            parquet.groups(rng, queries, documents).write_ndjson(truth)
            # Quarters are the same as text and as doubles.
            parts.append(parquet.named(parquet.flat(queries, documents, scores // 8 / 4)))
    rows = pl.concat(parts)
    del parts
    rows.write_parquet(folder / "one.parquet")
    _lines(rows, folder / "ordered.trec")
    rows = rows.sample(fraction=1, shuffle=True, seed=data.SEED)
    _lines(rows, folder / "shuffled.trec")
    (folder / "scattered").mkdir(exist_ok=True)
    for number, part in enumerate(rows.iter_slices(-(-len(rows) // FILES))):
        part.write_parquet(folder / "scattered" / f"part-{number:05d}.parquet")


def _lines(rows: pl.DataFrame, path: Path) -> None:
    made = [pl.lit("Q0").alias("q0"), pl.int_range(1, pl.len() + 1).alias("rank"), pl.lit("made").alias("tag")]
    rows.with_columns(made).select(LINE).write_csv(path, include_header=False, separator=" ")


def lists(folder: Path) -> Any:
    from groupgt import Run

    rows = pl.read_parquet(folder / "one.parquet")
    qids = rows["qid"][::DEPTH].to_list()
    ids, scores = ({
        qid: column[start : start + DEPTH].to_list() for qid, start in zip(qids, range(0, len(column), DEPTH))
    } for column in (rows["doc_id"], rows["score"]))  # fmt: skip
    return Run.of(ids, scores=scores)


def scan(folder: Path) -> pl.LazyFrame:
    frame = pl.scan_csv(
        folder / "shuffled.trec",
        has_header=False,
        separator=" ",
        quote_char=None,
        schema={name: pl.Float64 if name == "score" else pl.String for name in LINE},
    )
    return frame.select("qid", "doc_id", "score")


def spark(folder: Path) -> Any:
    from groupgt.engines.remote import session_of

    config = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    session = session_of("local[2]", config)
    return session.read.parquet(str(folder / "scattered"))


def ray(folder: Path) -> Any:
    import ray as library

    library.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    return library.data.read_parquet(str(folder / "scattered"))


def dask(folder: Path) -> Any:
    import dask.dataframe as library

    return library.read_parquet(str(folder / "scattered"))


def shuffled(session: Any) -> int:
    """How many bytes Spark wrote for other tasks."""
    context = session.sparkContext
    machine = context._gateway.jvm
    stages = (
        context._jsc.sc()
        .statusStore()
        .stageList(None, False, False, context._gateway.new_array(machine.double, 0), machine.java.util.ArrayList())
    )
    return sum(stages.apply(number).shuffleWriteBytes() for number in range(stages.size()))


CARRIERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "lists": ("lists of ids, lists of scores", lists),
    "lists-python": ("the same without the compiled module", lists),
    "trec": ("a TREC file in order", lambda folder: folder / "ordered.trec"),
    "trec-python": ("the same without the compiled module", lambda folder: folder / "ordered.trec"),
    "shuffled": ("a TREC file, shuffled", lambda folder: folder / "shuffled.trec"),
    "shuffled-python": ("the same without the compiled module", lambda folder: folder / "shuffled.trec"),
    "parquet": ("one parquet file in order", lambda folder: folder / "one.parquet"),
    "scattered": (f"{FILES} parquet files, shuffled", lambda folder: pl.scan_parquet(folder / "scattered/*.parquet")),
    "scan": ("polars' scan of shuffled lines", scan),
    "spark": ("Spark, local[2], of those parquet files", spark),
    "ray": ("Ray Data on two processors, of those files", ray),
    "dask": ("Dask with two threads, of those files", dask),
}


def whole(name: str, folder: str) -> None:
    """Evaluates one carrier, and prints what it took as JSON."""
    if name.endswith("-python"):
        os.environ["GROUPGT_NATIVE"] = "0"
    import groupgt

    given = CARRIERS[name][1](Path(folder))
    before, called, truth = _most("self"), groupgt.evaluate, Path(folder, "qa.jsonl")
    start = time.perf_counter()
    found = called(truth, given, METRICS, k=CUTOFFS)
    told = {"seconds": time.perf_counter() - start, "before": before, "digest": digest(found), "counts": found.counts}
    if name == "spark":
        told["shuffled"] = shuffled(given.sparkSession) / 1e6
        told["java"] = _most(str(given.sparkSession.sparkContext._gateway.proc.pid))
        given.sparkSession.stop()
    print(json.dumps(told))


def _most(process: str) -> float | None:
    """The most megabytes that a process held; None where the system has no such file."""
    status = Path("/proc", process, "status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3


def digest(found: Any) -> str:
    """SHA-256 over the queries, the metrics and the bytes of every value."""
    total = hashlib.sha256()
    for text in (*found.truth.qids, "", *found.values):
        total.update(text.encode() + b"\0")
    for column in found.values.values():
        values = column.astype("<f8")
        values[np.isnan(values)] = np.nan  # one of many
        total.update(values.tobytes())
    return total.hexdigest()


def measure(rounds: int, count: int) -> bool:
    """Prints the table; says whether all digests are the same."""
    import report
    from whole import run

    folder = made(count)
    report.section(
        f"The same results in every form: {count:,} queries × {DEPTH:,} results, many scores equal, some ids repeated",
        f"{', '.join(METRICS)} at k = {', '.join(map(str, CUTOFFS))}; seconds of `evaluate` alone, memory of a process "
        "each, before it (imports, and the lists where there are any) and at most",
    )
    names = list(CARRIERS)
    for name in CLUSTERS:
        module = "pyspark" if name == "spark" else name
        if find_spec(module) is None or (name == "spark" and shutil.which("java") is None):
            print(f"{name} is left out: it is not installed, or there is no Java\n")
            names.remove(name)
    told: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    most: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names:
            if name not in CLUSTERS or number < CLUSTER_ROUNDS:
                finished = parquet.succeeded(run([sys.executable, __file__, name, str(folder)]))
                told[name].append(json.loads(finished.stdout.splitlines()[-1]))
                most[name].append(finished.megabytes or 0)
    rows = []
    for name, each in told.items():
        seconds = report.seconds([one["seconds"] for one in each])
        digests = {one["digest"][:16] for one in each}
        note = (
            f"{each[0]['shuffled']:,.0f} MB shuffled; and {each[0]['java']:,.0f} MB of Java" if name == "spark" else ""
        )
        memory = [f"{max(one['before'] or 0 for one in each):,.0f}", f"{max(most[name]):,.0f}"]
        rows.append([CARRIERS[name][0], seconds, *memory, len(each), ", ".join(sorted(digests)), note])
    report.table(["", "s: min / median", "MB before", "MB at most", "rounds", "digest", ""], rows)
    counts = {json.dumps(one["counts"]) for each in told.values() for one in each}
    alike = len({one["digest"] for each in told.values() for one in each}) == 1
    print(f"\nDigests: {'all the same' if alike else 'DIFFER'}; counts: {' | '.join(sorted(counts))}")
    return alike


if __name__ == "__main__":
    whole(*sys.argv[1:])
