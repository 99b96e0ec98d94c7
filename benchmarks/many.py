"""Many systems and many metrics: a thousand files in one process, a hundred systems in memory, all metrics at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import parquet
import polars as pl
from carriers import LINE
from parquet import CUTOFFS, METRICS
from peers import PYTREC, Means, flat, scored

QUERIES, DEPTH, POOL = 1_000, 100, 300
IN_MEMORY = 100
WIDE = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
TOLERANCE = 1e-6
# The floor: polars reads three columns of all files, and keeps their sums.
READ = """
import sys, polars as pl
schema = {name: pl.Float64 if name == "score" else pl.String for name in sys.argv[2].split(",")}
rows = pl.scan_csv(sys.argv[1], has_header=False, separator=" ", quote_char=None, schema=schema)
sums = [pl.col(name).str.len_bytes().cast(pl.Int64).sum() for name in ("qid", "doc_id")]
print(rows.select(*sums, pl.col("score").sum()).collect(engine="streaming").row(0))
"""


@dataclass(frozen=True)
class Systems:
    """Grouped ground truth, and runs `s0000.trec`, … of its queries."""

    folder: Path

    @property
    def truth(self) -> Path:
        return self.folder / "qa.jsonl"

    def files(self, count: int) -> str:
        """The pattern of the first 1, 10, 100, … files."""
        free = len(str(count)) - 1
        return str(self.folder / "runs" / f"s{'0' * (4 - free)}{'?' * free}.trec")


def made(count: int) -> Systems:
    """Each system has the 100 best of the 300 documents that a query knows, by scores of its own."""
    name = f"systems-{count}x{QUERIES}x{DEPTH}-{data.SEED}"
    return Systems(parquet.once(data.FOLDER / name, lambda folder: _write(folder, count)))


def _write(folder: Path, count: int) -> None:
    rng = np.random.default_rng(data.SEED)
    queries = np.arange(QUERIES)
    pool = parquet.distinct(rng, QUERIES, POOL)
    parquet.groups(rng, queries, pool).write_ndjson(folder / "qa.jsonl")
    every = np.zeros(pool.size)
    names = parquet.named(parquet.flat(queries, pool, every))
    common = np.linspace(3, 0, POOL)
    (folder / "runs").mkdir(exist_ok=True)
    for number in range(count):
        scores = common + rng.normal(scale=rng.uniform(0.2, 2), size=pool.shape)
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        rows = names[(best + queries[:, None] * POOL).ravel()].with_columns(
            score=np.take_along_axis(scores, best, 1).ravel().round(4),
            rank=np.tile(np.arange(1, DEPTH + 1), QUERIES),
            q0=pl.lit("Q0"),
            tag=pl.lit(f"s{number:04d}"),
        )
        path = folder / "runs" / f"s{number:04d}.trec"
        rows.select(LINE).write_csv(path, include_header=False, separator=" ")


def scan(pattern: str) -> pl.LazyFrame:
    schema = {name: pl.Float64 if name == "score" else pl.String for name in LINE}
    return pl.scan_csv(pattern, has_header=False, separator=" ", quote_char=None, schema=schema)


def commands(systems: Systems, count: int) -> tuple[list[str], list[str]]:
    """Reading alone, and groupgt's command line, over so many files."""
    files = systems.files(count)
    asked = ["-m", ",".join(METRICS), "-k", ",".join(map(str, CUTOFFS))]
    ours = [sys.executable, "-m", "groupgt", "evaluate", str(systems.truth), files, *asked]
    return [sys.executable, "-c", READ, files, ",".join(LINE)], ours


def measure(rounds: int, size: int) -> bool:
    """Prints everything about many systems; says whether the values agree with pytrec_eval's."""
    count = 10 ** min(len(str(max(size // 10, 10))) - 1, 3)
    systems = made(count)
    _files(systems, count, min(rounds, 2))
    agreed = _in_memory(systems, min(count, IN_MEMORY), min(rounds, 2))
    _wide(min(rounds, 3), size)
    return agreed


def _files(systems: Systems, count: int, rounds: int) -> None:
    import report
    from report import Pair
    from whole import run

    size = sum(path.stat().st_size for path in (systems.folder / "runs").iterdir()) / 1e6
    report.section(
        f"Many systems, files: {count:,} × {QUERIES:,} queries × {DEPTH} results, {size:,.0f} MB of TREC files",
        f"{', '.join(METRICS)} at k = {', '.join(map(str, CUTOFFS))}; the command line, whole processes; "
        "read = polars reads the three columns of all files, no more",
    )
    pair = Pair(f"{count:,} files")
    reading, ours = commands(systems, count)
    parquet.succeeded(run(reading))
    both = [(parquet.succeeded(run(reading)), parquet.succeeded(run(ours))) for _ in range(rounds)]
    pair.other, pair.ours = ([each.seconds for each in side] for side in zip(*both))
    pair.note = f"{1000 * min(pair.ours) / count:.0f} ms a file; {parquet.resources(*zip(*both))}"
    report.pairs([pair], "read", inverse=True)


def _in_memory(systems: Systems, count: int, rounds: int) -> bool:
    import report
    from lists import timed
    from report import Pair

    import groupgt

    report.section(
        f"Many systems, in memory: {count} × {QUERIES:,} queries × {DEPTH} results, ground truth made once",
        "seconds of all of them, one after the other in one process; pytrec_eval's evaluator is made once too; what it "
        "needs is made from lists within the time",
    )
    ground_truth = groupgt.read_ground_truth(systems.truth)
    try:
        evaluator = _pytrec_eval(systems.truth)
    except ImportError:
        print("pytrec_eval is not installed")
        return True

    def ours(results: Any) -> Means:
        return groupgt.evaluate(ground_truth, results, METRICS, k=CUTOFFS, convention="trec").means

    forms: dict[str, tuple[Callable[[pl.DataFrame], Any], Callable[[Any], Means]]] = {
        "lists of ids": (_listed, lambda results: evaluator(scored(results))),
        "{id: score} for each query": (_mapped, evaluator),
    }
    found, worst, values = [], 0.0, 0
    for title, (shaped, theirs) in forms.items():
        pair = Pair(title)
        for _ in range(rounds):
            spent = {theirs: 0.0, ours: 0.0}
            for number in range(count):
                rows = scan(str(systems.folder / "runs" / f"s{number:04d}.trec")).collect()
                means = {}
                for tool in spent:
                    # New strings for each: a string keeps its hash once it was computed.
                    seconds, means[tool] = timed(partial(tool, shaped(rows)))
                    spent[tool] += seconds
                worst = max(worst, *(abs(means[ours][name] - mean) for name, mean in means[theirs].items()))
                values = len(means[theirs])
            pair.other.append(spent[theirs])
            pair.ours.append(spent[ours])
        pair.note = f"{values} values against {len(METRICS) * len(CUTOFFS)}"
        found.append(pair)
    report.pairs(found, "pytrec_eval")
    print(f"\nMeans: {'agree within 1e-6' if worst <= TOLERANCE else 'DIFFER'}, largest difference {worst:.1e}")
    return worst <= TOLERANCE


def _listed(rows: pl.DataFrame) -> dict[str, list[str]]:
    qids, ids = rows["qid"][::DEPTH].to_list(), rows["doc_id"].to_list()
    return {qid: ids[place * DEPTH : (place + 1) * DEPTH] for place, qid in enumerate(qids)}


def _mapped(rows: pl.DataFrame) -> dict[str, dict[str, float]]:
    scores = rows["score"].to_list()
    return {
        qid: dict(zip(ids, scores[place * DEPTH : (place + 1) * DEPTH], strict=True))
        for place, (qid, ids) in enumerate(_listed(rows).items())
    }


def _pytrec_eval(truth: Path) -> Callable[[dict[str, dict[str, float]]], Means]:
    """As in `peers`, of results that have its own form already."""
    import pytrec_eval

    cutoffs = ",".join(map(str, CUTOFFS))
    groups = {each["qid"]: each["retrieval_gt"] for each in map(json.loads, truth.read_text().splitlines())}
    evaluator = pytrec_eval.RelevanceEvaluator(flat(groups), {*(f"{name}.{cutoffs}" for name in PYTREC), "recip_rank"})
    names = {f"{theirs}_{k}": f"{ours}@{k}" for theirs, ours in PYTREC.items() for k in CUTOFFS}
    names["recip_rank"] = f"mrr@{max(CUTOFFS)}"

    def measure(results: dict[str, dict[str, float]]) -> Means:
        values = list(evaluator.evaluate(results).values())
        return {
            ours: pytrec_eval.compute_aggregated_measure(theirs, [value[theirs] for value in values])
            for theirs, ours in names.items()
        }

    return measure


def _wide(rounds: int, size: int) -> None:
    import report
    from lists import timed
    from report import Pair

    import groupgt
    from groupgt.metrics.catalogue import CATALOGUE

    every = [each for each in CATALOGUE.values() if not each.reads_texts]
    asked = [f"{each.name}@{k}" for each in every if each.takes_cutoff for k in WIDE]
    asked += [each.name for each in every if not each.takes_cutoff]
    twelve = [f"{name}@{k}" for name in METRICS for k in CUTOFFS]
    report.section(
        f"All metrics at once: {size:,} queries × {DEPTH} results",
        f"lists in memory, ground truth made once: the {len(every)} metrics that need no texts at {len(WIDE)} cutoffs, "
        f"{len(asked)} values a query, and the {len(twelve)} values of the other measurements",
    )
    truth, results = data.lists(size, DEPTH)
    ground_truth = groupgt.GroundTruth.of(truth)
    pair = Pair(f"{len(twelve)} values; {len(asked)} values")
    for _ in range(rounds):
        for metrics, into in ((twelve, pair.other), (asked, pair.ours)):
            run = data.fresh_results(results)
            into.append(timed(partial(groupgt.evaluate, ground_truth, run, metrics))[0])
    more = (min(pair.ours) - min(pair.other)) / (len(asked) - len(twelve))
    pair.note = f"{1e9 * more / size:.0f} ns more for each value of a query"
    report.pairs([pair], "other", inverse=True)
