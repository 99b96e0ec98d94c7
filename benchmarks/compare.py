"""Tests of significance beside ranx's, and what a whole comparison takes: time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import report
from report import Pair

SYSTEMS = 20
RESAMPLES = 10_000


def systems(queries: int, count: int) -> dict[str, np.ndarray]:
    """Values like those of ndcg: a third are 0, systems share most of them and differ by a little."""
    rng = np.random.default_rng(0)
    base = rng.beta(2, 1.5, queries)
    base[rng.random(queries) < 0.3] = 0
    out = {}
    for number in range(count):
        moved = np.clip(base + rng.normal(0.001 * number, 0.2, queries), 0, 1)
        out[f"s{number:02d}"] = np.where(rng.random(queries) < 0.6, base, moved)
    return out


def measure(rounds: int, size: int) -> None:
    small = max(size // 100, 10)
    report.section("Significance", "the randomization test of every two systems, from values per query to p-values")
    try:
        from ranx.statistical_tests import compute_statistical_significance
    except ImportError:
        print("ranx is not installed")
    else:
        compute_statistical_significance(["a", "b"], _metric(systems(50, 2), "ab"), n_permutations=10)  # compiles
        found = []
        for queries, count, resamples, times in (
            (small, SYSTEMS, 1_000, min(rounds, 3)),
            (size, 2, RESAMPLES, 1),
        ):
            pair = Pair(f"{queries:,} queries, {count} systems, {resamples:,} resamples")
            values = systems(queries, count)
            for _ in range(times):
                pair.other.append(_seconds(_ranx, compute_statistical_significance, values, resamples))
                pair.ours.append(_seconds(_groupgt, values, resamples))
            found.append(pair)
        report.pairs(found, "ranx")
    report.section(
        "A whole comparison", "means, deltas, their intervals, p-values, wins and losses; a process of its own"
    )
    rows = []
    for queries, count in ((small, SYSTEMS), (size, SYSTEMS)):
        code = f"import compare; compare.whole({queries}, {count})"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout)
        rows.append([f"{queries:,} × {count} systems, {RESAMPLES:,} resamples", *told.values()])
    report.table(["", "seconds", "MB before", "MB at most"], rows)


def _metric(values: dict[str, np.ndarray], names: str) -> dict[str, dict[str, np.ndarray]]:
    return {name: {"ndcg": column} for name, column in zip(names, values.values())}


def _ranx(test, values: dict[str, np.ndarray], resamples: int) -> None:
    test(list(values), {name: {"ndcg": column} for name, column in values.items()}, "fisher", resamples, 0.05, 42)


def _groupgt(values: dict[str, np.ndarray], resamples: int) -> None:
    from itertools import combinations

    from groupgt.comparison.tests import p_values

    columns = list(values.values())
    differences = np.stack([first - second for first, second in combinations(columns, 2)], axis=1)
    p_values("randomization", differences, resamples, 0)


def _seconds(call, *given) -> float:
    start = time.perf_counter()
    call(*given)
    return time.perf_counter() - start


def whole(queries: int, count: int) -> None:
    """Compares, and prints what it took as JSON."""
    import resource

    from groupgt.comparison.contrast import rows_of
    from groupgt.comparison.settings import Settings
    from groupgt.metrics.language import parse_metric

    metric = parse_metric("ndcg.trec@10")
    values = {name: {"ndcg": column} for name, column in systems(queries, count).items()}

    def megabytes() -> int:
        status = Path("/proc/self/status")
        if status.exists():  # what getrusage says there began in the parent
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
            return round(int(line.split()[1]) / 1024)
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    before = megabytes()
    taken = _seconds(rows_of, values, {"ndcg": metric}, "s00", Settings(resamples=RESAMPLES))
    print(json.dumps({"seconds": f"{taken:.1f}", "before": str(before), "after": str(megabytes())}))
