"""Resolves the options of `evaluate` once for all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groupgt.engines.choice import Engine, engine_of
from groupgt.engines.order import check_direction
from groupgt.evaluation.inputs import Scores, as_ground_truth, as_run
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.formats.roles import NO_COLUMNS, Declared, check_declared
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import AUTO, OF_SHAPE
from groupgt.metrics.language import Metric, parse_metrics, split_names, warn_of_idle_cutoffs
from groupgt.metrics.values import check_aggregates, check_policy
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.values import Budget, Lengths, as_lengths


@dataclass(frozen=True, eq=False)
class Audit:
    """Ground truth from an annotator for some queries; `assume_random` asserts that they are a random sample."""

    truth: GroundTruth
    assume_random: bool = False


# The texts of metrics, and the cutoffs for metrics without one.
Requested = tuple[Sequence[str | Metric], Sequence[int]]


@dataclass(frozen=True, eq=False)
class Request:
    """Evaluation request: `metrics` by text, under a `convention`, sliced `by` columns.

    If the convention is `auto`, it depends on the shape of the ground truth, and `resolved` parses `requested` again.
    `labeller` decides how results are matched to alternatives, `policy` how invalid or ambiguous data are handled,
    `lengths` how much of a run fits a budget, and `engine` where labelling happens; `sources` includes the corpus. If
    `parts` is True, many files form one run; `scores` says whether higher scores are better; `name` is used for a run
    without a name. `audit` corrects means and
    differences. `annotators` contains ground truth from further annotators; metric values are averaged over all
    annotators.
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
    truth_columns: Declared = field(default_factory=lambda: NO_COLUMNS)
    run_columns: Declared = field(default_factory=lambda: NO_COLUMNS)
    parts: bool = False
    scores: Scores = "descending"
    name: str = ""
    requested: Requested = ((), ())
    is_auto: bool = False
    audit: Audit | None = None
    annotators: tuple[GroundTruth, ...] = ()

    @classmethod
    def of(
        cls,
        metrics: str | Metric | Sequence[str | Metric] = (),
        *,
        convention: str = AUTO,
        k: int | Sequence[int] = (),
        by: Sequence[str] | str = (),
        policy: Policy | str | Sequence[str] | Mapping[str, str] | None = None,
        labeller: Any = "id",
        lengths: Any = None,
        corpus: Any = None,
        name: str = "",
        truth_format: str | None = None,
        run_format: str | None = None,
        truth_columns: Declared = NO_COLUMNS,
        run_columns: Declared = NO_COLUMNS,
        parts: bool = False,
        scores: Scores = "descending",
        engine: Any = "auto",
        audit: Any = None,
        assume_random: bool = False,
    ) -> Request:
        """Resolve the options of `evaluate`; raise `MetricError` or `ConfigError` if they are invalid."""
        rules, how = Policy.of(policy), engine_of(engine)
        check_direction(scores)
        if isinstance(metrics, str):
            metrics = split_names(metrics) or [metrics]
        texts, ks = [metrics] if isinstance(metrics, Metric) else metrics, [k] if isinstance(k, int) else k
        # Invalid metrics are reported before any data are read; `auto` accepts what is valid in any convention.
        parsed = parse_metrics(texts, convention, ks)
        warn_of_idle_cutoffs(texts, convention, ks)
        if parsed and all(metric.judged_only for metric in parsed.values()):
            rules = replace(rules, unjudged="drop")
        check_policy(rules, parsed)
        if by:
            check_aggregates(parsed, "a slice")
        sources = Sources(corpus)
        judge = labeller_of(labeller, sources)
        read_lengths = as_lengths(lengths)
        if lengths is None and corpus is not None and any(metric.budget is not None for metric in parsed.values()):
            read_lengths = Lengths(texts=sources.texts(None, "corpus"))
        return cls(
            metrics=parsed,
            convention=convention,
            by=(by,) if isinstance(by, str) else tuple(by),
            policy=rules,
            labeller=judge,
            sources=sources,
            lengths=read_lengths,
            engine=how,
            truth_format=truth_format,
            run_format=run_format,
            truth_columns=check_declared(truth_columns),
            run_columns=check_declared(run_columns),
            parts=parts,
            scores=scores,
            name=name,
            requested=(tuple(texts), tuple(ks)),
            is_auto=convention == AUTO,
            audit=None if audit is None else Audit(as_ground_truth(audit, rules), assume_random),
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
    def budgets(self) -> set[Budget]:
        """Cutoffs that are budgets, such as 2000 tokens."""
        return {metric.budget for metric in self.metrics.values() if metric.budget is not None}

    @property
    def reads_texts(self) -> bool:
        """True if any metric reads the texts of results."""
        return any(metric.definition.reads_texts for metric in self.metrics.values())

    def truth_of(self, value: Any) -> GroundTruth:
        """Read ground truth from user data under this policy."""
        return as_ground_truth(value, self.policy, self.truth_format, self.engine, self.truth_columns)

    def run_of(self, value: Any, truth: GroundTruth, name: str = "") -> Run:
        """Read one system's results from user data; the run's name is `name`, or else the name in the request."""
        options: dict[str, Any] = {"parts": self.parts, "engine": self.engine, "columns": self.run_columns}
        return as_run(value, truth, self.run_format, name or self.name, scores=self.scores, **options)
