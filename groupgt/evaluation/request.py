"""Resolves the options of `evaluate` once for all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from groupgt.engines.choice import Engine
from groupgt.evaluation.options import EvaluateOptions
from groupgt.evaluation.reading import Reading
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.labellers.base import Labeller
from groupgt.labellers.ids import Ids
from groupgt.metrics.base import AUTO, OF_SHAPE
from groupgt.metrics.language import Metric, parse_metrics, split_names, warn_of_idle_cutoffs
from groupgt.metrics.values import check_aggregates, check_harm, check_policy
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.values import Budget, Lengths, as_lengths
from groupgt.records import record


@record
class Audit:
    """Ground truth from an annotator for some queries; `assume_random` asserts that they are a random sample."""

    truth: GroundTruth
    assume_random: bool = False


# The texts of metrics, and the cutoffs for metrics without one.
Requested = tuple[Sequence[str | Metric], Sequence[int]]
# What the default options mean: they need not be read.
DEFAULT_LABELLER, NO_LENGTHS = Ids(), Lengths()


@record
class Request:
    """A request for an evaluation: `metrics` by text, under a `convention`, sliced `by` columns.

    If the convention is `auto`, it depends on the shape of the ground truth, and `resolved` parses `requested` again.
    `audit` corrects means and differences; metric values are averaged over all `annotators`.
    """

    metrics: dict[str, Metric]
    convention: str
    by: tuple[str, ...]
    policy: Policy
    labeller: Labeller
    sources: Sources
    lengths: Lengths
    reading: Reading
    requested: Requested
    is_auto: bool
    audit: Audit | None = None
    annotators: tuple[GroundTruth, ...] = ()

    @classmethod
    def of(cls, metrics: str | Metric | Sequence[str | Metric] = (), **options: Unpack[EvaluateOptions]) -> Request:
        """Read the given options, and raise `MetricError` or `ConfigError` if any are invalid."""
        reading = Reading.of(**options)
        policy, given = reading.policy, reading.options
        if isinstance(metrics, str):
            metrics = split_names(metrics) or [metrics]
        convention, k, by = given["convention"], given["k"], given["by"]
        texts, ks = [metrics] if isinstance(metrics, Metric) else metrics, [k] if isinstance(k, int) else k
        # Invalid metrics are reported before any data are read; `auto` accepts what is valid in any convention.
        parsed = parse_metrics(texts, convention, ks)
        if ks:
            warn_of_idle_cutoffs(texts, convention, ks)
        if parsed and all(metric.judged_only for metric in parsed.values()):
            policy = replace(policy, unjudged="drop")
            reading = replace(reading, policy=policy)
        check_policy(policy, parsed)
        if by:
            check_aggregates(parsed, "a slice")
        sources = Sources(given["corpus"])
        labeller = labeller_of(options["labeller"], sources) if "labeller" in options else DEFAULT_LABELLER
        check_harm(labeller.name, parsed)
        lengths = NO_LENGTHS if given["lengths"] is None else as_lengths(given["lengths"])
        has_budgets = any(metric.budget is not None for metric in parsed.values())
        if given["lengths"] is None and given["corpus"] is not None and has_budgets:
            lengths = Lengths(texts=sources.texts(None, "corpus"))
        audit = given["audit"]
        return cls(
            metrics=parsed,
            convention=convention,
            by=(by,) if isinstance(by, str) else tuple(by),
            policy=policy,
            labeller=labeller,
            sources=sources,
            lengths=lengths,
            reading=reading,
            requested=(tuple(texts), tuple(ks)),
            is_auto=convention == AUTO,
            audit=None if audit is None else Audit(reading.annotation(audit), given["assume_random"]),
        )

    def resolved(self, truth: GroundTruth) -> Request:
        """Return this request with a fixed convention, which by default depends on the shape of the ground truth."""
        if self.convention != AUTO:
            return self
        convention = OF_SHAPE[truth.shape]
        metrics = parse_metrics(self.requested[0], convention, self.requested[1])
        check_policy(self.policy, metrics)
        return replace(self, convention=convention, metrics=metrics)

    @property
    def passages(self) -> Mapping[str, str]:
        """The corpus texts by id, if there is a corpus."""
        return self.lengths.texts or self.sources.texts(None, "corpus")

    @property
    def budgets(self) -> set[Budget]:
        """The cutoffs that are budgets, such as 2000 tokens."""
        return {metric.budget for metric in self.metrics.values() if metric.budget is not None}

    @property
    def reads_texts(self) -> bool:
        """True if any metric reads the text of results."""
        return any(metric.definition.reads_texts for metric in self.metrics.values())

    @property
    def options(self) -> EvaluateOptions:
        """All options by name, as given."""
        return self.reading.options

    @property
    def engine(self) -> Engine:
        """The engine that labels results."""
        return self.reading.engine

    def truth_of(self, value: Any) -> GroundTruth:
        """Read ground truth from user data, and select its queries."""
        return self.reading.truth(value)

    def run_of(self, value: Any, truth: GroundTruth, name: str = "") -> Run:
        """Read one system's results from user data; the run's name is `name`, or else the name in the request."""
        return self.reading.run(value, truth, name)
