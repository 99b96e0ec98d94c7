"""The result of an evaluation: values, means, population, and further analyses."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.errors import ConfigError, MetricError, near_names, printable
from groupgt.evaluation.corrected import Corrected, of_column
from groupgt.evaluation.estimates import estimate_of
from groupgt.evaluation.slices import Slicer
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates, values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.values import summed
from groupgt.render.exports import nulls
from groupgt.render.results import Result
from groupgt.runtime import pl
from groupgt.store.files import write_bytes

if TYPE_CHECKING:
    from groupgt.evaluation.facts import Facts
    from groupgt.evaluation.misses import Misses
    from groupgt.render.drawing import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """The values of some metrics for every query of one run.

    `values` has one column per metric, shape (Q,), NaN if a query does not count. `print` shows the means, the policy
    and the counts; `means[text]` and `result[text]` are one mean. `is_auto` is whether the convention is that of the
    ground truth's shape, because the user named none. `audit` is the same run measured against an annotator's judgments
    of a random sample of the queries, `annotators` the same against the ground truth of each further annotator.
    """

    truth: GroundTruth
    run: Run
    metrics: dict[str, Metric]
    values: dict[str, Floats]
    labelled: Labelled
    policy: Policy
    convention: str
    slicer: Slicer
    labeller: Labeller
    is_auto: bool = False
    audit: Evaluation | None = None
    annotators: tuple[Evaluation, ...] = ()

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.run.name or "results"

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of each metric over the queries that count, by its text in the request; NaN if none counts."""
        return {text: self._mean(text) for text in self.values}

    def __getitem__(self, metric: str | Metric) -> float:
        """One mean, by any spelling of the metric."""
        return self._mean(self.text_of(metric))

    def _mean(self, text: str) -> float:
        mean, aggregate = mean_of(self.values[text]), self.metrics[text].definition.aggregate
        return mean if aggregate is None else aggregate(mean)

    @cached_property
    def values_per_query(self) -> dict[str, Floats]:
        """The columns of the metrics that have a value per query."""
        return {text: column for text, column in self.values.items() if not self.metrics[text].definition.aggregate}

    @cached_property
    def corrected(self) -> dict[str, Corrected]:
        """The means corrected by the audit, of every metric between 0 and 1 with a value per query.

        Raises `ConfigError` if the run was evaluated without an audit.
        """
        if self.audit is None:
            raise ConfigError("corrected: expected an audit: evaluate(…, audit=HUMAN), or --audit")
        estimates = {text: of_column(column) for text, column in self.tested.items()}
        return {text: each for text, each in estimates.items() if each is not None}

    @cached_property
    def tested(self) -> dict[str, Floats]:
        """The columns that means and differences are tested by: `values_per_query`, or with an audit shape (Q, 2) each.

        The second value is the annotator's: NaN outside of the sample, and for metrics that are not between 0 and 1.
        Queries without a value count as 0 on both sides. With m annotators in all, shape (Q, 1, m): NaN for queries
        that are not in the ground truth of one of them.
        """
        if self.annotators:
            return {text: self._of_annotators(text) for text in self.values_per_query}
        if self.audit is None:
            return self.values_per_query
        places = [self.truth.index[qid] for qid in self.audit.truth.qids]
        columns = {}
        for text, column in self.values_per_query.items():
            columns[text] = np.stack([np.nan_to_num(column), np.full(len(column), np.nan)], axis=1)
            if self.metrics[text].definition.bounded and not self.metrics[text].definition.of_unanswerable:
                columns[text][places, 1] = np.nan_to_num(self.audit.values[text])
        return columns

    def _of_annotators(self, text: str) -> Floats:
        columns = np.full((len(self.truth), 1, 1 + len(self.annotators)), np.nan)
        columns[:, 0, 0] = self.values[text]
        for number, other in enumerate(self.annotators, 1):
            places = [self.truth.index[qid] for qid in other.truth.qids]
            columns[places, 0, number] = other.values[text]
        return columns

    @cached_property
    def deciding(self) -> dict[str, float]:
        """The means that decide which system is best: corrected if there is an audit, NaN if a metric has none."""
        if self.tested is self.values_per_query:
            return self.means
        return {text: mean_of(self.tested[text]) if text in self.tested else math.nan for text in self.values}

    def text_of(self, metric: str | Metric) -> str:
        """The text of a metric in the request."""
        if isinstance(metric, str) and metric in self.values:
            return metric
        parsed = parse_metric(metric, self.convention)
        for text, candidate in self.metrics.items():
            if candidate == parsed:
                return text
        raise MetricError(f"metric {str(metric)!r} was not evaluated{near_names(str(metric), self.metrics)}")

    @cached_property
    def counts(self) -> dict[str, int]:
        """The population: the number of queries, and how many are evaluated, undefined, missing, extra or suspicious.

        `duplicates` counts queries with a repeated result (of a relevant document, unless the policy considers all),
        `ties` those with a hit among equal scores that a cutoff divides (among any equal scores, if a metric uses the
        entire ranking), `repeated_ids` ids that occur twice in one group, `empty_groups` groups dropped because they
        were empty, `unanswerable` queries declared so, `without_row` those of them that the run does not have, which
        abstain, `irrelevant_groups` those without a relevant alternative, `excluded` results that were left out
        because the ground truth lists their ids as excluded.
        """
        defined, present = self.truth.judgments.defined, self.labelled.present
        unanswerable = self.truth.unanswerable
        missing = int((defined & ~present).sum())
        undefined = int((~defined & ~unanswerable).sum())
        declared = {"unanswerable": int(unanswerable.sum()), "without_row": int((unanswerable & ~present).sum())}
        skipped = missing if self.policy.missing == "skip" else 0
        cutoffs = {metric.cutoff for metric in self.metrics.values()}
        depths = [None if cutoff is None else Cut.at(self.labelled.hits, cutoff).k for cutoff in cutoffs]
        return {
            "queries": len(self.truth),
            "evaluated": int(defined.sum()) - skipped,
            "undefined": undefined,
            "missing": missing,
            "extra": self.labelled.extra,
            "duplicates": self.labelled.duplicated,
            "ties": self.labelled.tied_at(depths),
            "repeated_ids": self.truth.repeated_ids,
            "empty_groups": self.truth.dropped,
            "irrelevant_groups": self.truth.irrelevant_groups,
            **(declared if unanswerable.any() else {}),
            **({} if self.truth.excluded is None else {"excluded": self.run.excluded}),
        }

    def judged(self, primary: str | None = None) -> tuple[Metric, float] | None:
        """`judged` at the cutoff of a metric (default: the first), and its mean, before any result was dropped.

        None if the ground truth has nothing judged non-relevant.
        """
        hits = self.labelled.uncondensed or self.labelled.hits
        if not self.metrics or not hits.judgments.rejected.any():
            return None
        cutoff = self.metrics[next(iter(self.metrics)) if primary is None else primary].cutoff
        metric = Metric("judged", cutoff=cutoff if isinstance(cutoff, int) or cutoff in hits.prefixes else None)
        values = values_of({"judged": metric}, hits, self.labelled.present, self.policy)
        return metric, mean_of(values["judged"])

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame: `qid` and one float column per metric, null if a query does not count."""
        columns = {text: pl.Series(column).fill_nan(None) for text, column in self.values_per_query.items()}
        return pl.DataFrame({"qid": pl.Series(self.truth.qids, dtype=pl.String), **columns})

    def counted(self, text: str, among: Bools | None = None) -> int:
        """The number of queries in one mean."""
        column = self.values[text] if among is None else self.values[text][among]
        return int((~np.isnan(column)).sum())

    @cached_property
    def slices(self) -> list[dict[str, Any]]:
        """For each slice of `by`: its column, value, number of queries that count, and means."""
        defined = self.truth.judgments.defined
        return [
            {
                "by": column,
                "value": value,
                "queries": int((mask & defined).sum()),
                "means": {text: mean_of(values[mask]) for text, values in self.values.items()},
            }
            for column, value, mask in self.slicer
        ]

    def label_of(self, text: str) -> str:
        """The name of a metric in tables: shortened to what differs from the convention in their heading."""
        return self.metrics[text].label(text, self.convention)

    @cached_property
    def facts(self) -> Facts:
        """Notes on means in the convention `autorag`."""
        from groupgt.evaluation.facts import Facts

        return Facts(self)

    def footer(self) -> list[str]:
        """The convention and the counts that are not 0; the policy and the labeller if they are not the default."""
        return self._teller.footer()

    def misses(self, k: int | None = None, worst: int = 20) -> Misses:
        """The groups not covered within k, worst queries first.

        Args:
            k: Cutoff; None for the largest cutoff of the metrics, or 10 if they have none.
            worst: Number of queries to list.
        """
        from groupgt.evaluation.misses import misses_of

        cutoffs = [metric.cutoff for metric in self.metrics.values() if isinstance(metric.cutoff, int)]
        return misses_of(self, max(cutoffs, default=10) if k is None else k, worst)

    def assert_at_least(self, least: Mapping[str, float]) -> None:
        """Raises `AssertionError` unless each mean is at least the given number, for tests.

        The message lists the metrics that fall short, the queries that are below the number, and what each of them
        misses. Raises `MetricError` for a metric where lower is better, or that was not evaluated, and `ConfigError`
        for a number that its metric cannot reach.

        Args:
            least: The minimum mean of each metric, in any spelling.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test and not this one
        from groupgt.evaluation.requirements import shortfalls

        if message := shortfalls(self, least):
            raise AssertionError(message)

    def explain(
        self, qid: str, metrics: str | Metric | Sequence[str | Metric] = (), *, corpus: Mapping[str, str] | None = None
    ) -> str:
        """The hit matrix of one query, and a worked example of every formula."""
        from groupgt.evaluation.explain import explanation

        listed = [metrics] if isinstance(metrics, (str, Metric)) else metrics
        requested = [parse_metric(metric, self.convention) for metric in listed]
        check_aggregates({str(metric): metric for metric in requested}, "an explanation")
        return explanation(self, qid, requested or list(self.metrics.values()), corpus)

    def explain_dict(self, qid: str) -> dict[str, Any]:
        """The same as plain Python."""
        from groupgt.evaluation.explain import explanation_dict

        plain: dict[str, Any] = nulls(explanation_dict(self, qid, list(self.metrics.values())))
        return plain

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """The evaluation as plain Python, with None for undefined values: the output of `--format json`."""
        plain: dict[str, Any] = super().to_dict()
        if per_query:
            columns = {text: nulls(values.tolist()) for text, values in self.values_per_query.items()}
            plain["per_query"] = {"qid": list(self.truth.qids), **columns}
        return plain

    def to_metrics(self) -> dict[str, float]:
        """The means as a flat dict, such as `{"recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names; undefined means are left out.
        """
        return self._teller.metrics()

    def plot(self, name: str = "depth") -> Figure:
        """A figure of `groupgt.render.figures.FIGURES`, which Jupyter displays and `.save(path)` writes."""
        return self._teller.plot(name)

    def to_html(self, path: str | os.PathLike[str], *, corpus: Mapping[str, str] | None = None) -> None:
        """Writes the page of this run, one HTML file; `corpus` has texts by id, to be shown next to ids."""
        write_bytes(Path(path), self._teller.page(corpus or {}))

    def __repr__(self) -> str:
        means = ", ".join(f"{text}={mean:.4f}" for text, mean in self.means.items())
        return printable(f"Evaluation({self.name}: {means})")


def mean_of(column: Floats) -> float:
    """The mean of the values that are not NaN, summed exactly, so that the order of queries does not change any bit.

    For a column with more than one value per query, the mean of its `Estimate`.
    """
    if column.ndim > 1:
        estimate = estimate_of(column)
        return math.nan if estimate is None else estimate.mean
    absent = np.isnan(column)
    counted = column[~absent] if absent.any() else column
    return summed(counted) / len(counted) if len(counted) else math.nan
