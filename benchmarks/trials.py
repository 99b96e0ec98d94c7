"""How far what groupgt says of trials can be trusted: simulated systems whose true means are known.

    python benchmarks/trials.py                # 1,000 data sets a cell
    python benchmarks/trials.py --sets 200

A query has a probability of success (or, for continuous metrics, a true value), drawn around 0.6, and the values of
trials vary around it. The columns are shares of data sets:

- other queries, these queries: the 95% interval contains the true mean over all queries, or over those of the data set;
- floor: two more runs of the system differ by more than the noise floor (0.05 wanted);
- compared: two systems with equal means over all queries differ significantly by the sign-flip test (0.05);
- gate, gate of 1: `unless: within_noise` calls a difference of runs of one system beyond noise, with as many trials on
  both sides, or with a single run on one (0.05);
- whole: trials that are alike are found to differ as a whole (0.05);
- found: the same for builds, which move all queries by a standard deviation of 0.05;
- flip, builds: two systems of such builds, equal on average, differ significantly by the sign-flip test, or by
  the test of declared builds (0.05).
"""

from __future__ import annotations

import argparse

import numpy as np

from groupgt.comparison.intervals import intervals
from groupgt.comparison.tests import p_values
from groupgt.comparison.trials import noise_of_difference, over_builds
from groupgt.evaluation.trials import noise_in, p_of_f
from groupgt.render.tables import table

MEAN, BUILDS = 0.6, 0.05


class Population:
    """Queries whose true values are drawn from a beta distribution; `spread` is how concentrated they are."""

    def __init__(self, rng: np.random.Generator, spread: float, *, is_binary: bool) -> None:
        self.rng, self.spread, self.is_binary = rng, spread, is_binary

    def queries(self, count: int) -> np.ndarray:
        """Draw the true values of some queries."""
        return self.rng.beta(MEAN * self.spread, (1 - MEAN) * self.spread, count)

    def trials(self, truth: np.ndarray, trials: int, builds: float = 0.0) -> np.ndarray:
        """Draw the values of trials, shape (r, n); those of a build move together."""
        moved = np.clip(truth + self.rng.normal(0, builds, (trials, 1)) if builds else truth, 0.001, 0.999)
        moved = np.broadcast_to(moved, (trials, len(truth)))
        if self.is_binary:
            return (self.rng.random(moved.shape) < moved).astype(float)
        return self.rng.beta(8 * moved, 8 * (1 - moved))


def cell(population: Population, queries: int, trials: int, sets: int) -> list[float]:
    """Simulate one cell of the grid."""
    counts = np.zeros(7)
    means, differences, between_builds = [], [], []
    for _ in range(sets):
        truth = population.queries(queries)
        values = population.trials(truth, trials)
        noise = noise_in(values)
        assert noise is not None
        means.append(values.mean(axis=0))
        differences.append(means[-1] - population.trials(population.queries(queries), trials).mean(axis=0))
        more = population.trials(truth, 2).mean(axis=1)
        counts[0] += noise.interval[0] <= truth.mean() <= noise.interval[1]
        counts[1] += abs(more[0] - more[1]) > noise.floor
        for column, number in ((2, trials), (3, 1)):
            other = population.trials(truth, number)
            limit = noise_of_difference([(values, False), (other, False)])
            assert limit is not None
            counts[column] += abs(values.mean() - other.mean()) > limit
        counts[4] += p_of_f([values]) < 0.05
        first, second = (population.trials(truth, trials, BUILDS) for _ in range(2))
        counts[5] += p_of_f([first]) < 0.05
        between_builds.append(first.mean(axis=0) - second.mean(axis=0))
        estimate = over_builds(between_builds[-1], [first, second])
        counts[6] += estimate is not None and estimate.p_value <= 0.05
    low, high = intervals(np.stack(means, axis=1), (0.0, 1.0), 0.95, 1000, 0).T
    significant = [
        float((p_values("randomization", np.stack(columns, axis=1), 999, 0) <= 0.05).mean())
        for columns in (differences, between_builds)
    ]
    these, floor, gate, single, alike, found, builds = (counts / sets).tolist()
    covered = float(((low <= MEAN) & (high >= MEAN)).mean())
    return [covered, these, floor, significant[0], gate, single, alike, found, significant[1], builds]


def main() -> None:
    """Print one row per cell of the grid."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", type=int, default=1000, help="data sets a cell")
    sets = options.parse_args().sets
    rng = np.random.default_rng(1)
    headers = ["metric", "queries", "trials", "noise", "other queries", "these queries", "floor", "compared", "gate"]
    rows = []
    for is_binary in (True, False):
        for queries in (30, 80):
            for trials in (2, 5):
                for noise, spread in (("little", 0.3), ("much", 4.0)):
                    shares = cell(Population(rng, spread, is_binary=is_binary), queries, trials, sets)
                    kind = "0 or 1" if is_binary else "continuous"
                    rows.append([kind, queries, trials, noise, *(f"{share:.3f}" for share in shares)])
    print(table([*headers, "gate of 1", "whole", "found", "flip", "builds"], rows))


if __name__ == "__main__":
    main()
