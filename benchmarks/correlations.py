"""How far rank correlations of resampled queries can be trusted: simulated systems whose true order is known.

    python benchmarks/correlations.py                # 300 data sets a cell
    python benchmarks/correlations.py --sets 50

Each system has a true mean under two ground truths; the values of a query vary around them, with queries in common. The
true coefficient is that of the true means. `covered` is the share of data sets in which the range over resampled
queries contains it: a confidence interval would have 0.95. `swaps` is the share of data sets, in which all systems are
equal under both truths, with a swap that is called significant on either side: at most alpha on each side.
"""

from __future__ import annotations

import argparse

import numpy as np

from groupgt.comparison.correlation import Side, correlation_of, tau_ap, tau_b
from groupgt.comparison.settings import Settings
from groupgt.metrics.language import parse_metric
from groupgt.render.tables import table

METRIC = parse_metric("map", "trec")


def sides(rng: np.random.Generator, means: np.ndarray, queries: int, noise: float) -> tuple[Side, Side]:
    """Two sides, with means of shape (2, S); the difficulty of a query is the same on both."""
    ease = rng.normal(0, 0.2, queries)
    qids = [f"q{number}" for number in range(queries)]
    made = []
    for label, row in zip(("first", "second"), means, strict=True):
        values = row[:, None] + ease + rng.normal(0, noise, (len(row), queries))
        made.append(Side(label, METRIC, "map", qids, {f"s{place}": each for place, each in enumerate(values)}))
    return made[0], made[1]


def main() -> None:
    """Print one row per cell of the grid."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", type=int, default=300, help="data sets a cell")
    count = options.parse_args().sets
    rng = np.random.default_rng(1)
    settings = Settings(pairs=True, resamples=500)
    rows = []
    for systems in (8, 20):
        for queries in (50, 200):
            for spread in (0.02, 0.1):
                covered, swaps = np.zeros(2), 0
                for _ in range(count):
                    first = rng.normal(0.4, spread, systems)
                    means = np.stack([first, first + rng.normal(0, spread / 2, systems)])
                    found = correlation_of(*sides(rng, means, queries, 0.15), settings)
                    true = tau_b(*means), tau_ap(*means)
                    ranges = found.ranges["tau"], found.ranges["tau_ap"]
                    covered += [low <= value <= high for value, (low, high) in zip(true, ranges, strict=True)]
                    equal = correlation_of(*sides(rng, np.full((2, systems), 0.4), queries, 0.15), settings)
                    swaps += any(swap.first.significant or swap.second.significant for swap in equal.swaps)
                rows.append([systems, queries, spread, *(covered / count), swaps / count])
    print(table(["systems", "queries", "spread", "covered: tau-b", "covered: tau_AP", "swaps"], rows))


if __name__ == "__main__":
    main()
