"""What is asked of results, resolved once from what the user names: it then serves one run or a thousand.

`Request.of` takes the options of `evaluate` as they are spelled; all that evaluates, from `evaluate` to the runner of
experiments, holds one `Request`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groupgt.engines.choice import Engine, engine_of
from groupgt.errors import DataError
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.formats import detect, frames
from groupgt.labellers.base import Labeller
from groupgt.metrics.language import Metric, parse_metrics
from groupgt.metrics.values import check_policy
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.lengths import Budget, Lengths, as_lengths
from groupgt.model.policy import Policy
from groupgt.model.run import Run


@dataclass(frozen=True, eq=False)
class Request:
    """How results are to be measured: `metrics` by the text asked, under a `convention`, in slices `by` columns.

    `labeller` decides what hits what, `policy` what is done with doubtful data, `lengths` how much of a run fits a
    budget, `engine` where labelling happens; the corpus at hand is among the `sources`.
    """

    metrics: dict[str, Metric]
    convention: str
    by: tuple[str, ...]
    policy: Policy
    labeller: Labeller
    sources: Sources
    lengths: Lengths
    engine: Engine
    truth_format: str | None = None
    run_format: str | None = None

    @classmethod
    def of(
        cls,
        metrics: str | Metric | Sequence[str | Metric] = (),
        *,
        convention: str = "autorag",
        k: int | Sequence[int] = (),
        by: Sequence[str] | str = (),
        policy: Policy | str | Mapping[str, str] | None = None,
        labeller: Any = "id",
        lengths: Any = None,
        corpus: Any = None,
        truth_format: str | None = None,
        run_format: str | None = None,
        engine: Any = "auto",
    ) -> Request:
        """Resolves the options of `evaluate`; raises `MetricError` or `ConfigError`."""
        rules, how = Policy.of(policy), engine_of(engine)
        asked = parse_metrics(
            [metrics] if isinstance(metrics, (str, Metric)) else metrics, convention, [k] if isinstance(k, int) else k
        )
        check_policy(rules, asked)
        sources = Sources(corpus)
        judge = labeller_of(labeller, sources)
        known = as_lengths(lengths)
        if lengths is None and corpus is not None and any(metric.budget is not None for metric in asked.values()):
            known = Lengths(texts=sources.texts(None, "corpus"))
        return cls(
            metrics=asked,
            convention=convention,
            by=(by,) if isinstance(by, str) else tuple(by),
            policy=rules,
            labeller=judge,
            sources=sources,
            lengths=known,
            engine=how,
            truth_format=truth_format,
            run_format=run_format,
        )

    @property
    def budgets(self) -> set[Budget]:
        """The cutoffs that are a length, such as 2000 tokens."""
        return {metric.budget for metric in self.metrics.values() if metric.budget is not None}

    @property
    def reads_texts(self) -> bool:
        """Whether a metric looks into the texts of results."""
        return any(metric.definition.reads_texts for metric in self.metrics.values())

    def truth_of(self, value: Any) -> GroundTruth:
        """Ground truth under this policy, from whatever the user has."""
        return as_ground_truth(value, self.policy, self.truth_format)

    def run_of(self, value: Any, truth: GroundTruth, name: str = "") -> Run:
        """The results of one system, from whatever the user has."""
        return as_run(value, truth, self.run_format, name, engine=self.engine)


def metrics_in(texts: Sequence[str], conventions: Sequence[str], ks: Sequence[int]) -> list[Metric]:
    """Each metric under each convention, what has only one meaning once; cutoffs as in `parse_metrics`."""
    metrics: dict[Metric, None] = {}
    for convention in conventions:
        metrics.update(dict.fromkeys(parse_metrics(texts, convention, ks).values()))
    return list(metrics)


def as_ground_truth(value: Any, policy: Policy, format: str | None = None) -> GroundTruth:
    """A mapping, a path, a frame, or what is a `GroundTruth` already."""
    if isinstance(value, GroundTruth):
        return value
    if isinstance(value, (str, os.PathLike)):
        return detect.read_ground_truth(value, format, policy)
    if isinstance(value, Mapping):
        return GroundTruth.of(value, policy)
    if frames.is_frame(value):
        return frames.truth_of(value, policy)
    kind = type(value).__name__
    raise DataError(f"ground truth: expected {{query id: groups}}, a path or a frame, found {kind}")


def _are_paths(value: Any) -> bool:
    """Whether a value is a list of paths: one run in parts."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(p, (str, os.PathLike)) for p in value)


def as_run(
    value: Any,
    truth: GroundTruth,
    format: str | None = None,
    name: str = "",
    *,
    qids: list[str] | None = None,
    engine: Engine | None = None,
) -> Run:
    """A mapping, a path or several (parts of one run), a frame, or what is a `Run` already.

    Results without query ids follow `qids`, or the ground truth.
    """
    if isinstance(value, (str, os.PathLike)) or _are_paths(value):
        how = engine or Engine()
        if how.name == "spark":
            from groupgt.engines.spark.frames import run_of_files
            from groupgt.engines.spark.steps import session_of

            value = run_of_files(session_of(how.options.master, how.options.config), value, format)
        else:
            streamed = how.name == "streaming"
            value = detect.read_run(value, format, qids=truth.qids if qids is None else qids, streamed=streamed)
    elif frames.is_frame(value):
        value = frames.run_of(value, qids=truth.qids)
    elif not isinstance(value, Run):
        value = Run.of(value)
    run: Run = value
    return replace(run, name=name or run.name)
