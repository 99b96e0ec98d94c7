"""How the best is chosen, as the file has it."""

from __future__ import annotations

from collections.abc import Mapping

from groupgt.experiment.description.schema import Evaluate
from groupgt.experiment.description.yamlfile import Document
from groupgt.metrics.language import Metric, parse_metric

__all__ = ["check_best", "metric_of"]


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
