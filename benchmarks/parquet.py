"""A hundred million rows of parquet, whole processes: groupgt beside a process in which polars reads two columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import data
import numpy as np
import polars as pl

METRICS = ("precision", "recall", "f1", "mrr", "map", "ndcg")
CUTOFFS = (10, 100)
DEPTH = 1_000
# Rows of a file in order, and in how many files each query stands where rows are scattered.
ROWS, FILES = 1_000_000, 10
# The floor: polars decodes the ids of queries and documents, and keeps how long they are.
READ = """
import sys, polars as pl
sums = [pl.col(name).str.len_bytes().cast(pl.Int64).sum() for name in ("qid", "doc_id")]
print(pl.scan_parquet(sys.argv[1]).select(sums).collect(engine="streaming").row(0))
"""
EVALUATE = """
import sys, polars as pl, groupgt
truth, pattern, metrics, cutoffs = sys.argv[1:]
run = pl.scan_parquet(pattern)
print(groupgt.evaluate(truth, run, metrics.split(","), k=list(map(int, cutoffs.split(",")))).means)
"""


@dataclass(frozen=True)
class Made:
    """A workload: grouped ground truth, and results in parts in which each query's rows stand together, best first."""

    folder: Path
    count: int
    depth: int

    @property
    def truth(self) -> Path:
        return self.folder / "qa.jsonl"

    @property
    def ordered(self) -> Path:
        return self.folder / "ordered"

    @property
    def scattered(self) -> Path:
        """The same rows in ten files: one holds the best tenth of every query, and so on, in random order."""
        return once(self.folder / "scattered", self._scatter)

    def _scatter(self, folder: Path) -> None:
        for number in range(FILES):
            own = slice(number * self.depth // FILES, (number + 1) * self.depth // FILES)
            # Copies, for a view would keep all of it.
            parts = [flat(queries, documents[:, own].copy(), scores[:, own].copy())
                     for _, queries, documents, scores in self.parts()]  # fmt: skip
            order = np.random.default_rng(number).permutation(sum(len(part["qid"]) for part in parts))
            columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
            named(columns).write_parquet(folder / f"part-{number:05d}.parquet")

    def parts(self) -> Iterator[tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]]:
        """Numbers of queries, shape (n,), with their documents and scores, shape (n, depth), best first."""
        per = max(ROWS // self.depth, 1)
        for part, first in enumerate(range(0, self.count, per)):
            queries = np.arange(first, min(first + per, self.count))
            rng = np.random.default_rng([data.SEED, self.count, self.depth, part])
            shape = len(queries), self.depth
            documents = distinct(rng, *shape)
            # Whole parts fall by one and the rest is below one, so scores fall strictly.
            yield rng, queries, documents, np.arange(self.depth, 0, -1.0) + rng.random(shape) * 0.999

    def truth_of(self, groups: int) -> Path:
        """Ground truth of so many groups for every query, over the same results."""
        folder = once(self.folder / f"groups-{groups}", lambda folder: _write(self, folder, None, groups))
        return folder / "qa.jsonl"


def once(folder: Path, write: Callable[[Path], None]) -> Path:
    """The folder, written unless it is there."""
    if not (folder / "_done").exists():
        print(f"writing {folder}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        write(folder)
        (folder / "_done").touch()
    return folder


def made(count: int, depth: int) -> Made:
    """Ids look like `q0000001` and `doc_0001234`; 1 to 4 groups of 1 to 3 alternatives, 40% of the groups are hit."""
    workload = Made(data.FOLDER / f"parquet-{count}x{depth}-{data.SEED}", count, depth)
    once(workload.folder, lambda folder: _write(workload, folder, workload.ordered))
    return workload


def _write(workload: Made, folder: Path, results: Path | None, wanted: int = 0) -> None:
    with (folder / "qa.jsonl").open("wb") as truth:
        for part, (rng, queries, documents, scores) in enumerate(workload.parts()):
            if results is not None:
                results.mkdir(exist_ok=True)
                named(flat(queries, documents, scores)).write_parquet(results / f"part-{part:05d}.parquet")
            groups(rng, queries, documents, wanted).write_ndjson(truth)


def flat(queries: np.ndarray, documents: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
    """A row a result."""
    return {"qid": np.repeat(queries, documents.shape[1]), "doc_id": documents.ravel(), "score": scores.ravel()}


def distinct(rng: np.random.Generator, count: int, depth: int) -> np.ndarray:
    """Distinct documents for each query: steps that share no factor with their number."""
    step = rng.integers(data.DOCUMENTS // 10, size=count) * 10 + rng.choice([1, 3, 7, 9], count)
    start = rng.integers(data.DOCUMENTS, size=count)
    return (start[:, None] + step[:, None] * np.arange(depth)) % data.DOCUMENTS


def groups(rng: np.random.Generator, queries: np.ndarray, documents: np.ndarray, wanted: int = 0) -> pl.DataFrame:
    depth = documents.shape[1]
    sizes = np.full(len(queries), wanted) if wanted else rng.integers(1, 5, len(queries))
    query = np.repeat(np.arange(len(queries)), sizes)
    many = rng.integers(1, 4, len(query))
    first = np.cumsum(many) - many
    alternatives = rng.integers(data.DOCUMENTS, size=many.sum())
    hit = np.flatnonzero(rng.random(len(query)) < data.SHARE_HIT)
    # Squared, so that hits are denser at the top.
    alternatives[first[hit]] = documents[query[hit], (rng.random(len(hit)) ** 2 * depth).astype(np.int64)]
    columns = {"qid": np.repeat(queries[query], many), "doc_id": alternatives, "group": np.repeat(first, many)}
    once_each = pl.col("doc_id").unique(maintain_order=True)
    nested = named(columns).group_by("qid", "group", maintain_order=True).agg(once_each)
    return nested.group_by("qid", maintain_order=True).agg(retrieval_gt="doc_id")


def named(columns: dict[str, np.ndarray]) -> pl.DataFrame:
    """Queries and documents by their names in place of their numbers."""
    names = {"qid": "q", "doc_id": "doc_"}
    digits = [pl.format(f"{start}{{}}", pl.col(name).cast(pl.String).str.zfill(7)).alias(name)
              for name, start in names.items()]  # fmt: skip
    return pl.DataFrame(columns).with_columns(digits)


def commands(truth: Path, results: Path) -> tuple[list[str], list[str]]:
    """Reading alone, and groupgt, over the files of a folder."""
    pattern = str(results / "*.parquet")
    asked = [",".join(METRICS), ",".join(map(str, CUTOFFS))]
    return [sys.executable, "-c", READ, pattern], [sys.executable, "-c", EVALUATE, str(truth), pattern, *asked]


def measure(rounds: int, count: int) -> bool:
    """Prints both tables; says whether scattered rows have the values of those in order."""
    import report
    from report import Pair
    from whole import run

    workload = made(count, DEPTH)
    places = {"in order": workload.ordered, f"scattered over {FILES} files": workload.scattered}
    size = sum(path.stat().st_size for path in workload.ordered.iterdir()) / 1e6
    report.section(
        f"Parquet → means, whole processes: {count:,} queries × {DEPTH:,} results, {size:,.0f} MB",
        f"{', '.join(METRICS)} at k = {', '.join(map(str, CUTOFFS))}; read = polars decodes two columns, no more",
    )
    found, told = [], []
    for title, folder in places.items():
        pair = Pair(title)
        reading, ours = commands(workload.truth, folder)
        run(reading)  # the files come into the memory of the operating system
        both = [(succeeded(run(reading)), succeeded(run(ours))) for _ in range(rounds)]
        pair.other, pair.ours = ([each.seconds for each in side] for side in zip(*both))
        pair.note = resources(*zip(*both))
        found.append(pair)
        told += [each.stdout for _, each in both]
    report.pairs(found, "read", inverse=True)
    alike = len(set(told)) == 1
    print(f"\nMeans of rows in order and scattered: {'the same to the last bit' if alike else 'DIFFER'}")
    return alike


def succeeded(finished):
    """What ran, unless it failed."""
    if finished.returncode:
        raise SystemExit(f"a process failed:\n{finished.stderr}")
    return finished


def resources(other: Sequence, ours: Sequence) -> str:
    """Processor seconds and the most memory of the two."""
    import statistics

    if other[0].processor is None:
        return ""
    processor = [f"{statistics.median(one.processor for one in each):.1f}" for each in (ours, other)]
    memory = [f"{max(one.megabytes for one in each):,.0f}" for each in (ours, other)]
    return f"processors {' against '.join(processor)} s, memory {' against '.join(memory)} MB"
