"""How often intervals of `groupgt outcomes` contain the truth: `python benchmarks/outcomes.py`.

A query has an ease, which makes both complete retrieval and correct answers likelier. Its answers also depend on
retrieval, and share a luck of their own. Printed are, for each number of queries, share of complete retrieval, chances
of a correct answer and kind of answers, the shares of data sets whose 95% interval contains the true value (known from
two million queries). Kinds: `one` answer per query; `three` per query; `scores` in
steps of a third; `trials`: three runs of a query, each with its own retrieval; `apart` is `three` as if all answers
were independent, which is wrong. `--data-sets` is 1,000 by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from groupgt.comparison.outcomes import Level, _shares

KINDS = ("one", "three", "scores", "trials", "apart")
NAMES = ("complete", "incomplete", "difference", "wrong", "gold")
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def answers(rng: np.random.Generator, queries: int, complete: float, chances: tuple[float, float], kind: str) -> Arrays:
    """Complete or not, the score, and the score with gold context, shape (queries, answers per query) each."""
    count = 1 if kind in ("one", "scores") else 3
    shape, ease = (queries, count), rng.normal(size=(queries, 1))
    luck = rng.random((queries, 1)) if kind != "one" else 0.5
    retrieved = rng.random(shape if kind == "trials" else (queries, 1)) < _shifted(complete, ease)
    retrieved = np.broadcast_to(retrieved, shape).astype(float)
    chance = np.where(retrieved == 1, _shifted(chances[0], ease), _shifted(chances[1], ease))
    gold = np.maximum(chance, _shifted(chances[0], ease))

    def judged(chance: np.ndarray) -> np.ndarray:
        if kind == "scores":
            return rng.binomial(3, chance) / 3
        # A query's luck is in two of five answers.
        drawn = rng.random(chance.shape)
        return (np.where(rng.random(chance.shape) < 0.4, np.broadcast_to(luck, chance.shape), drawn) < chance) * 1.0

    return retrieved, judged(chance), judged(gold)


def _shifted(chance: float, ease: np.ndarray) -> np.ndarray:
    """A chance for each query: higher where it is easy."""
    return 1 / (1 + np.exp(-np.log(chance / (1 - chance)) - 0.8 * ease))


def found(retrieved: np.ndarray, score: np.ndarray, gold: np.ndarray, kind: str) -> dict:
    """The shares by name, with their intervals."""
    if kind == "apart":
        retrieved, score, gold = (each.reshape(-1, 1) for each in (retrieved, score, gold))
    level = Level(0.95, np.full(len(score), score.shape[1]), kind != "scores")
    means = [each.mean(axis=1) for each in (score, retrieved, score * retrieved, gold)]
    return _shares(*means, level)


def cells() -> Iterator[tuple[int, float, tuple[float, float], str]]:
    """The grid: all kinds at 80 and 250 queries, and one answer per query at 30."""
    for chances in ((0.95, 0.4), (0.7, 0.6), (0.5, 0.1)):
        for complete in (0.4, 0.8):
            for kind in KINDS:
                for queries in (30, 80, 250)[kind != "one" :]:
                    yield queries, complete, chances, kind


def coverage(rng: np.random.Generator, data_sets: int) -> dict[str, list[float]]:
    """Prints a line for each cell of the grid; returns all coverages by kind."""
    print(f"queries  complete  chances     kind    {'  '.join(f'{name:>10}' for name in NAMES)}")
    by_kind: dict[str, list[float]] = {}
    for queries, complete, chances, kind in cells():
        true = {
            name: share.value for name, share in found(*answers(rng, 500_000, complete, chances, kind), kind).items()
        }
        hits: dict[str, list[bool]] = {name: [] for name in NAMES}
        for _ in range(data_sets):
            shares = found(*answers(rng, queries, complete, chances, kind), kind)
            for name, share in shares.items():
                if name in hits:
                    hits[name].append(share.interval[0] <= true[name] <= share.interval[1])
        # A coverage of few data sets says little.
        kept = {name: float(np.mean(hit)) if len(hit) >= data_sets / 2 else np.nan for name, hit in hits.items()}
        by_kind.setdefault(kind, []).extend(value for value in kept.values() if not np.isnan(value))
        texts = "  ".join(f"{value:10.3f}" if not np.isnan(value) else f"{'–':>10}" for value in kept.values())
        print(f"{queries:7}  {complete:8}  {chances!s:10}  {kind:7}  {texts}", flush=True)
    return by_kind


def main() -> None:
    """Prints the grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    for kind, values in coverage(rng, arguments.data_sets).items():
        print(f"{kind}: {min(values):.3f} to {max(values):.3f}")


if __name__ == "__main__":
    main()
