"""Which system is the best: by one metric, or by several as AutoRAG's strategies have it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from groupgt.evaluation.result import Evaluation
from groupgt.experiment.schema import Best, Config, Evaluate
from groupgt.experiment.timing import Timing
from groupgt.experiment.yaml import Document
from groupgt.metrics.language import Metric, parse_metric


def check_best(document: Document, section: Evaluate, metrics: Mapping[str, Metric], convention: str) -> None:
    """Faults of `evaluate.best`."""
    best = section.best
    if best.max_latency_ms is not None and not section.timed:
        document.fault(
            ("evaluate", "best", "max_latency_ms"), "a ceiling needs questions that are timed; evaluate.timed is 0"
        )
    if best.strategy == "primary":
        if best.metrics:
            document.fault(
                ("evaluate", "best", "metrics"), "the strategy primary looks at `primary` alone; remove this key"
            )
        if best.max_latency_ms is not None and section.primary is None:
            document.fault(("evaluate", "best"), "the strategy primary needs `evaluate.primary`")
        return
    if best.strategy == "rank":
        return
    lower = [text for text in best.metrics or metrics if not metric_of(text, metrics, convention).higher_is_better]
    if lower:
        document.fault(
            ("evaluate", "best", "metrics"),
            f"{best.strategy} adds metrics of which more is better, and of {', '.join(lower)} less is; name the others",
        )


def metric_of(text: str, metrics: Mapping[str, Metric], convention: str) -> Metric:
    """One of the metrics by its text, or the metric that a text is."""
    return metrics[text] if text in metrics else parse_metric(text, convention)


def looked_at(best: Best, primary: str | None, metrics: Sequence[str]) -> list[str]:
    """The texts of the metrics that decide; none where nothing does."""
    if best.strategy == "primary":
        return [primary] if primary is not None else []
    return list(best.metrics or metrics)


def scores(strategy: str, means: Sequence[Sequence[float]], higher: Sequence[bool]) -> list[float]:
    """The score of each system, the greater the better, from its means, shape (systems, metrics).

    `primary` and `mean`: their mean. `rank`: Σ 1 ÷ rank of the system by each metric, equal ones sharing the mean of
    their ranks. `normalized_mean`: the mean of (m − min) ÷ (max − min) over systems, 0 where all are equal. A system
    without a mean has no score.

    >>> scores("rank", [[0.5, 0.2], [0.4, 0.3]], [True, True])
    [1.5, 1.5]
    >>> scores("normalized_mean", [[0.5, 0.2], [0.4, 0.3], [0.5, 0.25]], [True, True])
    [0.5, 0.5, 0.75]
    """
    table = np.array(means, dtype=np.float64) * np.where(np.array(higher, dtype=np.bool_), 1.0, -1.0)
    sound = ~np.isnan(table).any(axis=1)
    out = np.full(len(table), np.nan)
    if not sound.any():
        return [math.nan] * len(table)
    kept = table[sound]
    if strategy == "rank":
        values = 1 / np.column_stack([_ranks(column) for column in kept.T])
        out[sound] = [math.fsum(row) for row in values.tolist()]
    elif strategy == "normalized_mean":
        low, high = kept.min(axis=0), kept.max(axis=0)
        values = np.divide(kept - low, high - low, out=np.zeros_like(kept), where=high > low)
        out[sound] = [math.fsum(row) / len(row) for row in values.tolist()]
    else:
        out[sound] = [math.fsum(row) / len(row) for row in kept.tolist()]
    found: list[float] = out.tolist()
    return found


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value, the greatest first; equal ones share the mean of their ranks."""
    ordered = np.sort(-values)
    first, last = np.searchsorted(ordered, -values, "left"), np.searchsorted(ordered, -values, "right")
    ranks: NDArray[np.float64] = (first + 1 + last) / 2
    return ranks


def best_of(names: Sequence[str], values: Sequence[float]) -> str | None:
    """The first of the systems with the greatest score; None where none has one."""
    known = [(value, -place) for place, value in enumerate(values) if not math.isnan(value)]
    return names[-max(known)[1]] if known else None


def described(best: Best, texts: Sequence[str]) -> str:
    """How the best was chosen, in words."""
    rule = texts[0] if best.strategy == "primary" else f"{best.strategy} of {', '.join(texts)}"
    return rule if best.max_latency_ms is None else f"{rule}, at most {best.max_latency_ms:g} ms a question (median)"


def best_systems(
    config: Config,
    metrics: Mapping[str, Metric],
    evaluations: Mapping[str, dict[str, Evaluation]],
    timings: Mapping[tuple[str, str], Timing],
) -> tuple[dict[str, str | None], str | None]:
    """The best system of each dataset, and of all of them by the macro mean of what decides."""
    section = config.evaluate
    texts = looked_at(section.best, section.primary, list(metrics))
    if not texts:
        return {}, None
    limit = section.best.max_latency_ms
    found: dict[str, str | None] = {}
    everywhere: dict[str, list[list[float]]] = {}
    higher = [metric_of(text, metrics, config.convention).higher_is_better for text in texts]
    for dataset, own in evaluations.items():
        names = [name for name in own if limit is None or _quick(timings.get((dataset, name)), limit)]
        means = [[own[name][text] for text in texts] for name in names]
        found[dataset] = best_of(names, scores(section.best.strategy, means, higher)) if names else None
        for name, row in zip(names, means):
            everywhere.setdefault(name, []).append(row)
    whole = {name: rows for name, rows in everywhere.items() if len(rows) == len(evaluations)}
    if len(evaluations) < 2 or not whole:
        return found, None
    macro = [[math.fsum(column) / len(rows) for column in zip(*rows)] for rows in whole.values()]
    return found, best_of(list(whole), scores(section.best.strategy, macro, higher))


def _quick(timing: Timing | None, limit: float) -> bool:
    """Whether the median of one question is known to be within a limit."""
    return timing is not None and timing.latency_p50_ms is not None and timing.latency_p50_ms <= limit
