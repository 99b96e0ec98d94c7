"""Random queries on which the package and the slow reference must agree, and the laws hold.

`python -m tests.agreement --queries 200000 --seed 1` compares as many as you like, `--seconds` ends it sooner; the
suite compares some thousands. A seed names a batch of queries: the same seed and size of batches, the same queries.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import groupgt
from groupgt.metrics.base import Parameter
from groupgt.metrics.language import Metric, list_metrics
from groupgt.testing import rejected
from tests import laws
from tests.reference import reference

TOLERANCE = 1e-12
CUTOFFS: tuple[int | None, ...] = (None, 1, 2, 3, 5, 10, 40)

# Parameters tried beside the defaults.
# Numbers of which a parameter takes those in its range.
NUMBERS = (0, 0.3, 0.95, 1, 6)


def others(parameter: Parameter) -> list[Any]:
    """Values of a parameter besides its default: all other words, or the lowest and the highest number in its range.

    A `max_grade` below the grades of the queries is an error, so only higher ones are tried.
    """
    if parameter.choices:
        return [choice for choice in parameter.choices if choice != parameter.default]
    least = float(parameter.default) if parameter.name == "max_grade" else 0
    held = [number for number in NUMBERS if number >= least and parameter.holds(number)]
    return sorted({held[0], held[-1]} - {parameter.default})


def all_metrics() -> Iterator[Metric]:
    """Every registered metric under every convention, with its defaults and each other value, without cutoff."""
    for definition in list_metrics():
        if definition.aggregate is not None or definition.queries == "unanswerable":
            continue  # it has no value per query, or none for queries with ground truth
        for convention, formula in definition.formulas.items():
            yield Metric(definition.name, convention)
            for parameter in formula.parameters:
                for value in others(parameter):
                    yield Metric(definition.name, convention, ((parameter.name, value),))


def at(metric: Metric, k: int | None) -> Metric:
    """The metric at a cutoff, where it takes one."""
    cutoff = k if metric.definition.takes_cutoff else None
    return Metric(metric.name, metric.convention, metric.parameters, cutoff)


def random_query(rng: random.Random) -> tuple[list[Any], list[str]]:
    """Groups that overlap, grades of every kind, weights, ids named twice; a ranking with repeats, or none at all."""
    pool = [f"d{number}" for number in range(rng.choice((3, 6, 12, 30)))]
    graded, weighted = rng.random() < 0.4, rng.random() < 0.3
    groups: list[Any] = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 5))):
        ids = rng.choices(pool, k=rng.randint(1, 4))
        if not graded and not weighted:
            groups.append(ids)
            continue
        cells = [{"id": name, "grade": rng.choice((-1, 0, 0.5, 1, 1, 2, 3, 4))} if graded else name for name in ids]
        weight = rng.choice((0.3, 1, 1, 2, 7.5)) if weighted else 1
        groups.append({"alternatives": cells, "weight": weight})
    noise = [f"x{number}" for number in range(6)]
    if rng.random() < 0.5:
        groups.append([{"id": name, "grade": 0} for name in noise[:2]])
    wanted = [name for group in groups for name in _names(group)]
    size = rng.choice((0, 1, 2, 3, 5, 8, 12))
    return groups, rng.choices([*pool, *noise, *wanted], k=size)


def _names(group: Any) -> list[str]:
    cells = group["alternatives"] if isinstance(group, dict) else group
    return [cell["id"] if isinstance(cell, dict) else cell for cell in cells]


def disagreements(seed: int, queries: int) -> list[str]:
    """A line for each value of a batch that differs by more than the tolerance, and for each broken law."""
    return compare(seed, queries)[1]


def compare(seed: int, queries: int, policies: tuple[str, ...] = ("penalize", "drop", "keep")) -> tuple[int, list[str]]:
    """Evaluates a batch both ways; how many values were compared, and the disagreements."""
    rng = random.Random(seed)
    batch = {f"q{number}": random_query(rng) for number in range(queries)}
    harmful = {qid: rejected(groups) for qid, (groups, _) in batch.items()}
    truth = groupgt.GroundTruth.of({qid: groups for qid, (groups, _) in batch.items()}, harmful_ids=harmful)
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    highest = max(truth.grade.tolist(), default=1)
    found: list[str] = []
    compared = 0
    for duplicates in policies:
        asked = [each for each in all_metrics() if duplicates != "keep" or each.convention == "autorag"]
        k = rng.choice(CUTOFFS)
        metrics = [at(each, cutoff) for each in asked for cutoff in {None, k}]
        result = groupgt.evaluate(truth, run, metrics, policy={"duplicates": duplicates}, corpus=laws.WORDS)
        for text, metric in result.metrics.items():
            values = result.values[text]
            for position, (qid, (groups, ranking)) in enumerate(batch.items()):
                expected = reference(
                    groups,
                    ranking,
                    metric.name,
                    metric.convention,
                    dict(metric.parameters),
                    metric.cutoff,
                    duplicates,
                    harmful=harmful[qid],
                    highest=highest,
                )
                value = values[position]
                compared += 1
                if (expected is None) != bool(np.isnan(value)) or (
                    expected is not None and abs(expected - value) > TOLERANCE * max(1.0, abs(expected))
                ):
                    found.append(f"{duplicates} {text} {qid} {groups} {ranking}: {value!r}, reference {expected!r}")
    return compared, found + laws.broken(rng, batch)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first batch; the next ones follow")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after the batch that passes these")
    given = parser.parse_args()
    queries = values = batches = 0
    start = time.monotonic()
    while queries < given.queries and time.monotonic() - start < given.seconds:
        size = min(given.batch, given.queries - queries)
        compared, found = compare(given.seed + batches, size)
        queries, values, batches = queries + size, values + compared, batches + 1
        if found:
            print(f"after {queries:,} queries, {len(found)} disagreements; the first:", *found[:5], sep="\n")
            return 1
        print(f"\r{queries:,} queries agree", end="", file=sys.stderr, flush=True)
    metrics = sum(1 for _ in all_metrics())
    print(
        f"seeds {given.seed} to {given.seed + batches - 1}: {queries:,} random queries, {values:,} values: "
        f"{metrics} metrics agree with the reference to {TOLERANCE:g}, and every law holds"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
