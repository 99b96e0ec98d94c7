"""How often the interval of a corrected mean, or difference, holds the true one: `python benchmarks/corrected.py`.

Queries have one to four groups of one to three alternatives; a system finds each alternative with a chance that differs
between queries, a second system with a lower one. A model judges every pooled passage: it calls relevant ones so with
its sensitivity, and others by mistake with its rate of false positives. Errors of the model called `clustered` are made
on half of the queries only. An annotator, who makes no errors, judges a random sample of n of 300 queries.

Printed are, for every model, metric and n: the model's bias, how often its own t interval, the annotator's and the
corrected one hold the true mean, the ratio of the corrected width to that without the model, the labels saved, and the
ratio of the width to that of PPI++ without the floor of the variance (the h of groupgt.evaluation.estimates); the same
for the difference of both systems (`d` before the metric); and last, the worst for each n, for means between .05 and
.95 and for differences. `--trials` is 2,000 by default, `--sizes` 20, 50 and 100.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from groupgt.evaluation.estimates import OF_DELTAS, corrected, student_quantile

QUERIES, DEPTH = 300, 10
# Sensitivity, false positives, and whether errors cluster by query.
MODELS = {
    "good": (0.95, 0.01, False),
    "middling": (0.90, 0.02, False),
    "poor": (0.85, 0.06, False),
    "clustered": (0.85, 0.06, True),
}
METRICS = ("recall", "complete", "ndcg", "mrr")
BOUNDS = (0.0, 1.0)


def values(hits: np.ndarray, needed: np.ndarray) -> dict[str, np.ndarray]:
    """The four metrics by coverage, from `hits` of shape (Q, groups, ranks) and which groups are `needed`."""
    first = hits & (np.cumsum(hits, axis=2) == 1)
    covered = hits.any(axis=2) & needed
    count = needed.sum(axis=1)
    gain = (first & needed[:, :, None]).sum(axis=1)
    discount = 1 / np.log2(np.arange(2, hits.shape[2] + 2))
    ideal = np.array([discount[:size].sum() for size in range(needed.shape[1] + 1)])[count]
    any_hit = (hits & needed[:, :, None]).any(axis=1)
    rank = np.where(any_hit.any(axis=1), any_hit.argmax(axis=1) + 1, np.inf)
    with np.errstate(invalid="ignore"):
        found = {
            "recall": covered.sum(axis=1) / count,
            "complete": (covered.sum(axis=1) == count).astype(float),
            "ndcg": (gain * discount).sum(axis=1) / ideal,
            "mrr": 1 / rank,
        }
    return {name: np.where(count > 0, column, 0.0) for name, column in found.items()}


def with_differences(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The values of one system, and their differences from those of another."""
    return first | {f"d {metric}": column - second[metric] for metric, column in first.items()}


def population(rng: np.random.Generator, quality: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which of the passages that each of two systems ranks belong to which group, and which groups a query has."""
    groups = rng.integers(1, 5, QUERIES)
    needed = np.arange(4) < groups[:, None]
    ease = rng.beta(4 * quality, 4 * (1 - quality), QUERIES)
    systems = np.zeros((2, QUERIES, 4, DEPTH), dtype=bool)
    for alternative in range(3):
        present = needed & (rng.random((QUERIES, 4)) < (1.0, 0.5, 0.25)[alternative])
        for hits, chance in zip(systems, (ease, 0.8 * ease), strict=True):
            found = present & (rng.random((QUERIES, 4)) < chance[:, None])
            rank = rng.integers(0, DEPTH, (QUERIES, 4))
            query, group = np.nonzero(found)
            hits[query, group, rank[query, group]] = True
    return systems[0], systems[1], needed


def judged(rng: np.random.Generator, hits: np.ndarray, needed: np.ndarray, model: str) -> np.ndarray:
    """The hits as a model sees them."""
    sensitivity, false, clustered = MODELS[model]
    errs = np.ones(QUERIES, dtype=bool) if not clustered else rng.random(QUERIES) < 0.5
    seen = np.where(hits, rng.random(hits.shape) < sensitivity, rng.random(hits.shape) < false)
    return np.where(errs[:, None, None], seen, hits) & needed[:, :, None]


def main() -> None:
    """Prints one line for each model, size of the sample and metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 50, 100])
    arguments = parser.parse_args()
    print("model      quality   n  metric       mean   bias   model  audit  corrected  width  saved  floor")
    worst: dict[tuple[str, int], list[tuple[float, float, float, float]]] = {}
    for quality in (0.3, 0.6, 0.85):
        for model in MODELS:
            for size in arguments.sizes:
                for metric, figures in trials(arguments.trials, arguments.seed, quality, model, size).items():
                    mean, bias, own, audit, ours, width, saved, floor = figures
                    kind = "difference" if metric.startswith("d ") else "mean"
                    if kind == "difference" or 0.05 <= mean <= 0.95:
                        worst.setdefault((kind, size), []).append((audit, ours, width, floor))
                    held = f"{mean:6.3f} {bias:+6.3f}  {own:5.3f}  {audit:5.3f}  {ours:9.3f}"
                    shown = f"{held}  {width:5.3f}  {saved:5.1f}  {floor:5.3f}"
                    print(f"{model:10} {quality:7} {size:4}  {metric:10} {shown}", flush=True)
    for (kind, size), rows in sorted(worst.items(), key=lambda item: (item[0][0] == "difference", item[0][1])):
        audits, corrections, widths, floors = zip(*rows, strict=True)
        print(
            f"n {size}: the corrected interval holds the {kind} in {min(corrections):.3f} or more of trials, the "
            f"annotator's in {min(audits):.3f} or more; the corrected one is at most {max(widths):.3f} times as wide, "
            f"and {min(floors):.2f} to {max(floors):.2f} times as wide as without the floor"
        )


def trials(count: int, seed: int, quality: float, model: str, size: int) -> dict[str, tuple[float, ...]]:
    """The figures of each metric over many samples; the true mean is that of the superpopulation."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        first, second, needed = population(rng, quality)
        true, seen = (
            with_differences(*(values(hits, needed) for hits in both))
            for both in ((first, second), [judged(rng, hits, needed, model) for hits in (first, second)])
        )
        drawn.append((true, seen, rng.permutation(QUERIES) < size))
    found = {}
    for metric in drawn[0][0]:
        bounds, half = OF_DELTAS if metric.startswith("d ") else (BOUNDS, 0.5)
        true = float(np.mean([truth[metric].mean() for truth, _, _ in drawn]))
        rows = []
        for truth, seen, is_audited in drawn:
            f, y = seen[metric], truth[metric][is_audited]
            reach = student_quantile(0.95, QUERIES - 1) * f.std(ddof=1) / math.sqrt(QUERIES)
            each = corrected(f, y, is_audited, bounds, half)
            alone = corrected(np.zeros(QUERIES), y, is_audited, bounds, half)
            # PPI++: the variance of the sample alone.
            rest, others = y - each.weight * f[is_audited], QUERIES - size
            plain = math.sqrt(rest.var(ddof=1) / size + each.weight**2 * f.var(ddof=1) / others)
            width, other = (one.interval[1] - one.interval[0] for one in (each, alone))
            rows.append(
                (
                    f.mean() - true,
                    abs(f.mean() - true) <= reach,
                    alone.interval[0] <= true <= alone.interval[1],
                    each.interval[0] <= true <= each.interval[1],
                    width / other,
                    each.saved,
                    each.error / plain if plain > 0 else math.nan,
                )
            )
        found[metric] = (true, *np.nanmean(rows, axis=0).tolist())
    return found


if __name__ == "__main__":
    main()
