"""The largest ideals of `coverage` where documents are shared: seconds, and memory, in processes of their own."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import report


def half(groups: int, documents: int, grades: tuple[float, ...] = (1,)) -> list[dict[str, object]]:
    """Documents that stand in half of the groups each."""
    rng = random.Random(0)
    return [
        {
            "alternatives": [
                {"id": f"d{number}", "grade": rng.choice(grades)}
                for number in range(documents)
                if number == group or rng.random() < 0.5
            ]
        }
        for group in range(groups)
    ]


def sparse(groups: int, documents: int) -> list[list[str]]:
    """Three alternatives a group, drawn from all documents."""
    rng = random.Random(0)
    return [[f"d{rng.randrange(documents)}" for _ in range(3)] for _ in range(groups)]


# One query each. Exact up to 4,096 states: 2^12 of twelve groups, 4^6 of six with three grades.
SHAPES: dict[str, Callable[[], object]] = {
    "12 groups, 10,000 documents": lambda: half(12, 10_000),
    "6 groups of 3 grades, 10,000 documents": lambda: half(6, 10_000, (1, 2, 3)),
    "13 groups, 10,000 documents (greedy)": lambda: half(13, 10_000),
    "10,000 groups of 3 (greedy)": lambda: sparse(10_000, 10_000),
}
METRICS = ("mrr.coverage", "ndcg.coverage")


def measure(rounds: int) -> None:
    report.section(
        "Ideals of coverage", "one query whose groups share documents: seconds of each metric, and memory held"
    )
    rows = []
    for title in SHAPES:
        found = []
        for _ in range(min(rounds, 3)):
            code = f"import ideals; ideals.one({title!r})"
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
            )
            found.append(json.loads(done.stdout))
        medians = [f"{statistics.median(each[name] for each in found):.2f}" for name in METRICS]
        rows.append([title, *medians, max(each["MB"] for each in found)])
    report.table(["", *METRICS, "MB more at most"], rows)


def one(title: str) -> None:
    """Measures one shape, and prints what it took as JSON."""
    import resource

    import groupgt

    truth = groupgt.GroundTruth.of({"q": SHAPES[title]()})
    run = {"q": ["d1", "d2"]}
    groupgt.evaluate(truth, run, ["recall"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken: dict[str, float] = {}
    for name in METRICS:
        start = time.perf_counter()
        groupgt.evaluate(truth, run, [name])
        taken[name] = time.perf_counter() - start
    print(json.dumps({**taken, "MB": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)}))
