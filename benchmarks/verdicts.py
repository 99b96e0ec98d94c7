"""How often reports claim a difference: simulated experiments whose truth is known.

    python benchmarks/verdicts.py                # 2,000 experiments of each kind
    python benchmarks/verdicts.py --experiments 200

A query has one relevant document, which each system ranks by chance, the better the easier the query is; metrics are
functions of that rank, so that they are discrete and correlated as those of a real ranking. The decision is read as
a colleague would. Where systems do not differ, at most alpha of all experiments may claim that they
do, however many metrics are listed; a planted loss is to be told as often as `groupgt power` promises. That
needs SciPy: `pip install -e '.[stats]'`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from groupgt.comparison.contrast import contrasts_of
from groupgt.comparison.draws import scipy_stats
from groupgt.comparison.power import Differences
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.metrics.language import parse_metrics
from groupgt.render.tables import table
from groupgt.report.decision import decide

QUERIES, ALPHA, RESAMPLES = 60, 0.05, 999
CUTOFFS = (1, 2, 3, 5, 10, 20)
Floats = NDArray[np.float64]
# The primary metric comes first; all are of the rank of the one relevant document.
METRICS = [f"{name}@{cutoff}" for cutoff in reversed(CUTOFFS) for name in ("ndcg", "mrr", "recall")]
SETTINGS = Settings(alpha=ALPHA, resamples=RESAMPLES)


def ranks(rng: np.random.Generator, queries: int, losses: Sequence[float]) -> Floats:
    """Ranks of the relevant document, shape (systems, queries); a loss makes the document harder to find."""
    ease = rng.normal(0.0, 1.0, queries)
    chance = 1 / (1 + np.exp(-(ease - np.array(losses)[:, None])))
    drawn: Floats = rng.geometric(np.clip(chance, 0.02, 0.98)).astype(np.float64)
    return drawn


def values_of(metric: str, ranked: Floats) -> Floats:
    """A metric of every query from the rank of its one relevant document."""
    name, cutoff = metric.split("@")
    value = {"ndcg": 1 / np.log2(1 + ranked), "mrr": 1 / ranked, "recall": np.ones_like(ranked)}[name]
    within: Floats = np.where(ranked <= int(cutoff), value, 0.0)
    return within


def systems_of(ranked: Floats, metrics: Sequence[str], *, is_baseline_named: bool = True, seed: int = 0) -> Systems:
    """The systems, the first of which is the baseline, from their values alone."""
    names = [f"s{number}" for number in range(len(ranked))]
    parsed = parse_metrics(list(metrics), "coverage")
    values = {name: {text: values_of(text, row) for text in metrics} for name, row in zip(names, ranked, strict=True)}
    return Systems(
        [f"q{number}" for number in range(ranked.shape[1])],
        parsed,
        "coverage",
        values,
        metrics[0],
        baseline=names[0],
        settings=Settings(alpha=ALPHA, resamples=RESAMPLES, seed=seed),
        is_baseline_named=is_baseline_named,
    )


def claim(systems: Systems) -> str:
    """What the decision claims: a `gain`, a `loss`, the `best` system; empty where it claims nothing."""
    claims = {"gain": "gain", "gains": "gain", "loss": "loss", "losses": "loss", "best": "best"}
    return claims.get(decide(systems).state, "")


def share(
    experiments: int, losses: Sequence[float], metrics: Sequence[str], wanted: Sequence[str], **how: bool
) -> float:
    """In how many experiments the first sentence makes one of some claims."""
    claims = 0
    for seed in range(experiments):
        ranked = ranks(np.random.default_rng([len(losses), seed]), QUERIES, losses)
        claims += claim(systems_of(ranked, metrics, seed=seed, **how)) in wanted
    return claims / experiments


def false_under_partial_null(experiments: int, losses: Sequence[float]) -> float:
    """In how many experiments a system that is as good as the baseline is marked, where others are worse."""
    marked = 0
    equal = [f"s{number}" for number, loss in enumerate(losses) if number and not loss]
    for seed in range(experiments):
        ranked = ranks(np.random.default_rng([7, seed]), QUERIES, losses)
        systems = systems_of(ranked, METRICS[:1], seed=seed)
        marked += any(systems.against_baseline[name].significant for name in equal)
    return marked / experiments


def promised(loss: float) -> float:
    """The power that `groupgt power` gives for this loss, from a sample so large that its spread is the true one."""
    ranked = ranks(np.random.default_rng(1), 200_000, [0.0, loss])
    metrics = parse_metrics(METRICS[:1], "coverage")
    values = {name: {METRICS[0]: values_of(METRICS[0], row)} for name, row in zip("ab", ranked, strict=True)}
    few = Settings(test="t", correction="none", resamples=1)
    (contrast,) = contrasts_of(values, metrics, [("b", "a")], few).values()
    return Differences.of(contrast).power(contrast.delta, QUERIES, ALPHA, "randomization")


def main() -> None:
    """Prints what was claimed, and how often."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=2000)
    count: int = parser.parse_args().experiments
    scipy_stats("what power promises")  # said before minutes are spent
    noise = 1.96 * math.sqrt(ALPHA * (1 - ALPHA) / count)
    began = time.perf_counter()
    rows: list[list[object]] = []
    for number in (2, 3, 5):
        for metrics in (1, 6, 18):
            false = share(count, [0.0] * number, METRICS[:metrics], ("gain", "loss", "best"))
            rows.append([f"{number} equal systems, a baseline", metrics, false, f"at most {ALPHA} + {noise:.3f}"])
    for number in (2, 3, 5):
        false = share(count, [0.0] * number, METRICS[:1], ("best",), is_baseline_named=False)
        rows.append([f"{number} equal systems, no baseline", 1, false, f"at most {ALPHA} + {noise:.3f}"])
    false = false_under_partial_null(count, [0.0, 0.0, 0.0, 1.0, 1.0])
    rows.append(["2 equal to the baseline, 2 worse", 1, false, f"at most {ALPHA} + {noise:.3f}"])
    for loss in (0.3, 0.6, 0.9):
        told = share(count, [0.0, loss], METRICS[:1], ("loss",))
        rows.append([f"a planted loss of {loss}", 1, told, f"{promised(loss):.4f} promised, within 0.03"])
    print(table(["experiment", "metrics", "share that claims a difference", "expected"], rows))
    seconds = time.perf_counter() - began
    print(f"\n{count:,} experiments of {QUERIES} queries each, {seconds:.0f} s in all")


if __name__ == "__main__":
    main()
