"""How often two equal systems are called different over several annotators: `python benchmarks/annotators.py`.

Two systems find the relevant passages of each query with the same chance. Each annotator errs independently: he misses
a relevant alternative with a rate, and accepts another passage with a tenth of it. Printed are, for every number of
queries and annotators, error rate and metric, the share of trials with p at most .05: by one annotator alone (t test),
and by the mean over annotators with their disagreement in the variance. `--trials` is 4,000 by default.
"""

from __future__ import annotations

import argparse

import numpy as np

from groupgt.evaluation.estimates import averaged

GROUPS, ALTERNATIVES, DEPTH = 3, 2, 6


def values(rng: np.random.Generator, queries: int, annotators: int, rate: float) -> dict[str, np.ndarray]:
    """Differences of two equal systems by each annotator, shape (Q, m), for recall and complete."""
    relevant = np.ones((annotators, queries, GROUPS, ALTERNATIVES), dtype=bool)
    accepted = relevant & (rng.random(relevant.shape) >= rate)
    accepted[..., 0] |= ~accepted.any(axis=3)  # a group keeps an alternative
    strangers = rng.random((annotators, queries, GROUPS, DEPTH)) < rate / 10
    ease = rng.beta(2, 2, queries)
    found = {}
    for system in range(2):
        hits = rng.random((queries, GROUPS, ALTERNATIVES)) < ease[:, None, None]
        shown = rng.random((queries, GROUPS, DEPTH)) < 0.3
        covered = (hits & accepted).any(axis=3) | (shown & strangers).any(axis=3)
        found[system] = {"recall": covered.mean(axis=2), "complete": covered.all(axis=2).astype(float)}
    return {name: (found[1][name] - found[0][name]).T for name in found[0]}


def main() -> None:
    """Prints one line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("queries  annotators  errors  metric      one alone  all")
    worst = 0.0
    for queries in (20, 50, 200):
        for annotators in (2, 3, 5):
            for rate in (0.05, 0.2):
                rng = np.random.default_rng(arguments.seed)
                rejected: dict[str, list[tuple[bool, bool]]] = {}
                for _ in range(arguments.trials):
                    for metric, deltas in values(rng, queries, annotators, rate).items():
                        together, alone = averaged(deltas[:, None, :]), averaged(deltas[:, None, [0, 0]])
                        known = [each is not None and each.p_value <= 0.05 for each in (alone, together)]
                        rejected.setdefault(metric, []).append((known[0], known[1]))
                for metric, rows in rejected.items():
                    one, every = np.mean(rows, axis=0)
                    worst = max(worst, every)
                    print(f"{queries:7}  {annotators:10}  {rate:6}  {metric:10}  {one:9.4f}  {every:.4f}", flush=True)
    print(f"at most {worst:.4f} of trials")


if __name__ == "__main__":
    main()
