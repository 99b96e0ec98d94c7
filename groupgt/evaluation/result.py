"""Defines `Evaluation`, the result of evaluating one run: its values, means, counts and misses."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.engines.carriers import carrier_of
from groupgt.engines.order import Contradictions, contradictions
from groupgt.errors import ConfigError, MetricError, near_names, printable
from groupgt.evaluation.estimates import Corrected, estimate_of, of_column, plain_of
from groupgt.evaluation.misses import (
    Failures,
    PlacedGroup,
    check_misses,
    coverage_by_number,
    failures_of,
    harmful_results,
    plain_group,
    whole,
    worst_first,
)
from groupgt.evaluation.slices import Slicer
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates, values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.policy import Policy
from groupgt.model.populations import Populations
from groupgt.model.run import Run
from groupgt.model.values import means_over_trials, summed
from groupgt.render.exports import nulls
from groupgt.render.results import Result
from groupgt.runtime import pl

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure


# Ends the names of columns with values by the labels, where the mean beside them is corrected.
BY_LABELS = " by labels"


class Fixed(dict[str, Any]):
    """A dict that cannot be changed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle and copy need, which would otherwise set the items one by one."""
        return Fixed, (dict(self),)


def _refuse(self: Fixed, *_: Any, **__: Any) -> Any:
    raise TypeError("the results of an evaluation cannot be changed; copy them with dict(…)")


for _change in ("__setitem__", "__delitem__", "__ior__", "update", "setdefault", "pop", "popitem", "clear"):
    setattr(Fixed, _change, _refuse)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """Metric values for every query of one run.

    `values` has one column per metric, shape (Q,), with NaN if a query does not count. `print` shows the means, the
    policy and the counts; `means[text]` and `result[text]` return one mean. `is_auto` is True if the shape of the
    ground truth determined the convention. `audit` is the same run evaluated against an annotator's judgments for a
    random sample of queries; `annotators` contains an evaluation for each further annotator. If the system was asked
    several times, `trials` has an evaluation for each time: `values` are their means per query, counts are means over
    trials, and a ranking that is shown is that of the first.
    """

    truth: GroundTruth
    run: Run
    metrics: dict[str, Metric]
    values: dict[str, Floats]
    labelled: Labelled
    policy: Policy
    convention: str
    by: tuple[str, ...]
    labeller: Labeller
    is_auto: bool = False
    audit: Evaluation | None = None
    annotators: tuple[Evaluation, ...] = ()
    trials: tuple[Evaluation, ...] = ()

    def __post_init__(self) -> None:
        """Protect the values, which the means have been or will be computed from."""
        for column in self.values.values():
            column.setflags(write=False)
        object.__setattr__(self, "values", Fixed(self.values))

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.name or "results"

    @property
    def counting(self) -> Bools:
        """Mask of the queries that count, shape (Q,): defined, and (unless missing queries count as 0) with results."""
        return self.populations.counting

    @property
    def each(self) -> tuple[Evaluation, ...]:
        """The evaluations of single runs: of every trial, or this one."""
        return self.trials or (self,)

    @property
    def hits_in_trials(self) -> list[Hits]:
        """The hits of every trial, or of the only run."""
        return [each.labelled.hits for each in self.each]

    def averaged(self, read: Callable[[Hits], Any]) -> Floats:
        """Return the mean of a value read from the hits of each trial, shape (Q,), without NaN and absent queries."""
        if not self.trials:
            return np.asarray(read(self.labelled.hits), dtype=np.float64)
        found = [np.where(each.counting, read(each.labelled.hits), np.nan) for each in self.trials]
        return means_over_trials(np.stack(found))

    @cached_property
    def populations(self) -> Populations:
        """The populations of the queries: answerable, missing, declared unanswerable, and undefined."""
        return Populations(self.truth.judgments, self.labelled.present, self.policy)

    @cached_property
    def means(self) -> dict[str, float]:
        """Mean of each metric over the queries that count, by its text in the request; NaN if no query counts.

        With annotators, it is the mean over all of them. With an audit, it is corrected, and NaN where that is
        impossible; `means_by_labels` are the means by the ground truth alone.
        """
        return Fixed(self.means_among())

    def means_among(self, queries: Bools | None = None) -> dict[str, float]:
        """Return `means` over all queries, or over those of a mask."""
        if self.tested is self.values_per_query:
            return self.means_by_labels(queries)
        columns = {text: column if queries is None else column[queries] for text, column in self.tested.items()}
        return {text: mean_of(columns[text]) if text in columns else math.nan for text in self.values}

    def means_by_labels(self, queries: Bools | None = None) -> dict[str, float]:
        """Return the mean of each metric by the ground truth alone, over all queries or over those of a mask."""
        means = {}
        for text, values in self.values.items():
            mean = mean_of(values if queries is None else values[queries])
            aggregate = self.metrics[text].definition.aggregate
            means[text] = mean if aggregate is None else aggregate(mean)
        return means

    def __getitem__(self, metric: str | Metric) -> float:
        """Return one mean; the metric may be spelled in any valid way."""
        return self.means[self.text_of(metric)]

    @cached_property
    def values_per_query(self) -> dict[str, Floats]:
        """Columns for the metrics that have a value per query."""
        return {text: column for text, column in self.values.items() if not self.metrics[text].definition.aggregate}

    @property
    def shown(self) -> Mapping[str, Floats]:
        """One value per query and metric, as tables show it: with annotators, the mean over all of them."""
        if not self.annotators:
            return self.values_per_query
        return {text: plain_of(column) for text, column in self.tested.items()}

    @property
    def value_names(self) -> list[str]:
        """Names of the columns of `shown` in files: with an audit, `recall@5 by labels`, since means are corrected."""
        return [text if self.audit is None else text + BY_LABELS for text in self.shown]

    @cached_property
    def corrected(self) -> dict[str, Corrected]:
        """Means corrected by the audit, for every metric between 0 and 1 with a value per query.

        Raises `ConfigError` if the run was evaluated without an audit.
        """
        if self.audit is None:
            raise ConfigError("corrected: expected an audit: evaluate(…, audit=HUMAN), or --audit")
        return {text: each for text, column in self.tested.items() if (each := of_column(column)) is not None}

    @cached_property
    def tested(self) -> dict[str, Floats]:
        """Columns used to test means and differences: `values_per_query`, or columns of shape (Q, 2) with an audit.

        The second column contains values from the annotator: NaN outside the sample, and for metrics that are not
        between 0 and 1. A query with a value only under the audited ground truth has the annotator's value 0. With m
        annotators in total, the shape is (Q, 1, m), with NaN for queries that an annotator's ground truth lacks.
        """
        if self.annotators:
            return {text: self._of_annotators(text) for text in self.values_per_query}
        if self.audit is None:
            return self.values_per_query
        places = self._places_in(self.audit)
        columns = {}
        for text, column in self.values_per_query.items():
            columns[text] = np.stack([column, np.full(len(column), np.nan)], axis=1)
            definition = self.metrics[text].definition
            if definition.bounded and definition.queries == "answerable":
                audited = self.audit.values[text]
                columns[text][places, 1] = np.where(np.isnan(audited) & ~np.isnan(column[places]), 0.0, audited)
        return columns

    def _of_annotators(self, text: str) -> Floats:
        columns = np.full((len(self.truth), 1, 1 + len(self.annotators)), np.nan)
        for number, other in enumerate((self, *self.annotators)):
            columns[self._places_in(other), 0, number] = other.values[text]
        return columns

    def _places_in(self, other: Evaluation) -> list[int]:
        return [self.truth.index[qid] for qid in other.truth.qids]

    def text_of(self, metric: str | Metric) -> str:
        """Return the text that the request uses for a metric."""
        if isinstance(metric, str) and metric in self.values:
            return metric
        parsed = parse_metric(metric, self.convention)
        for text, candidate in self.metrics.items():
            if candidate == parsed:
                return text
        raise MetricError(f"metric {str(metric)!r} was not evaluated{near_names(str(metric), self.metrics)}")

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of queries in total, and of evaluated, undefined, missing, extra and suspicious queries.

        `duplicates` counts queries with a repeated result; in files that are streamed, only repeats of relevant results
        count (`groupgt check` counts all of them), unless the policy removes or refuses repeats. `ties` counts queries
        where a cutoff splits equal scores that include a hit (or, if a metric uses the entire ranking, where any equal
        scores include one). `repeated_ids` counts ids that occur twice in one group, and `empty_groups` groups dropped
        because they were empty. `unanswerable` counts queries declared unanswerable, and `without_row` counts the ones
        that are absent from the run, which count as abstaining. `irrelevant_groups` counts groups without a relevant
        alternative, `negative` documents with a negative grade, and `excluded` results whose ids the ground truth
        excludes. `rising_scores` counts queries whose scores rise along the ranking (fall, if they are declared as
        ascending), and `contradicted_ranks` queries whose ranks and scores give different orders.
        """
        each = self.populations
        unanswerable, without_row = int(each.unanswerable.sum()), int((each.unanswerable & each.absent).sum())
        cutoffs = {metric.cutoff for metric in self.metrics.values()}
        depths = [None if cutoff is None else Cut.at(self.labelled.hits, cutoff).k for cutoff in cutoffs]
        return {
            "queries": len(self.truth),
            "evaluated": int(each.counting.sum()),
            "undefined": int(each.undefined.sum()),
            "missing": int(each.missing.sum()),
            "extra": self.labelled.extra,
            "duplicates": self._duplicates,
            "ties": self.labelled.tied_at(depths),
            "repeated_ids": self.truth.repeated_ids,
            "empty_groups": self.truth.dropped,
            "irrelevant_groups": self.truth.irrelevant_groups,
            **({"negative": self.truth.negative} if self.truth.negative else {}),
            **({"comments": self.comments} if self.comments else {}),
            **({"unanswerable": unanswerable, "without_row": without_row} if unanswerable else {}),
            **({} if self.truth.excluded is None else {"excluded": self.run.excluded + self.labelled.excluded}),
            **{name: count for name, count in self._contradictions._asdict().items() if count},
        }

    @property
    def comments(self) -> int:
        """Lines in the ground truth and run files that begin with `#` and are not rows."""
        return self.truth.comments + self.run.by_original_ids.resolved.comments

    @property
    def _contradictions(self) -> Contradictions:
        return Contradictions(*self.labelled.contradictory) if self.run.is_remote else contradictions(self.run)

    @property
    def _duplicates(self) -> int:
        repeating = None if self.policy.looks_at_all else carrier_of(self.run).repeating(self.truth)
        found = self.labelled
        return found.duplicated if repeating is None else len({*repeating, *found.hit_again.tolist()})

    def judged(self, primary: str | None = None) -> tuple[Metric, float] | None:
        """Return `judged` at a metric's cutoff (default: the first) and its mean, before any results are dropped.

        Returns None if the ground truth contains no documents judged non-relevant.
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
        """Polars frame with `qid` and one float column per metric; null if a query does not count.

        With an audit, the values follow the labels, unlike the means, and the columns say so: `recall@5 by labels`.
        """
        columns = {"qid": self.truth.qids, **dict(zip(self.value_names, self.shown.values()))}
        return pl.DataFrame(columns, schema_overrides={"qid": pl.String}).fill_nan(None)

    def counted(self, text: str, among: Bools | None = None) -> int:
        """Return the number of queries in one mean."""
        column = self.values[text] if among is None else self.values[text][among]
        return int((~np.isnan(column)).sum())

    @cached_property
    def valued(self) -> Bools:
        """Mask of the queries with a value of at least one metric, shape (Q,)."""
        none = np.zeros(len(self.truth), dtype=np.bool_)
        valued: Bools = np.any([none, *(~np.isnan(column) for column in self.values.values())], axis=0)
        return valued

    @cached_property
    def slices(self) -> list[dict[str, Any]]:
        """Slices for each `by` column, with the column, value, number of queries with a value, and means."""
        slices = []
        for column, value, mask in self.slicer:
            queries, means = int((mask & self.valued).sum()), self.means_among(mask)
            slices.append({"by": column, "value": value, "queries": queries, "means": means})
        return slices

    def label_of(self, text: str) -> str:
        """Return the metric name for tables, shortened if the convention is already in the heading."""
        return self.metrics[text].label(text, self.convention)

    @cached_property
    def slicer(self) -> Slicer:
        """The slices of the queries by the requested columns."""
        return Slicer(self.truth, self.by)

    def footer(self) -> list[str]:
        """Return the convention and all nonzero counts, plus the policy and labeller unless they are the defaults."""
        return self._teller.footer()

    def misses(self, k: int | None = None, worst: int = 20) -> Misses:
        """List the groups not covered within k, worst queries first.

        Args:
            k: Cutoff; None for the largest cutoff of the metrics, or 10 if they have none.
            worst: Number of queries to list.
        """
        cutoffs = [metric.cutoff for metric in self.metrics.values() if isinstance(metric.cutoff, int)]
        return Misses.of([self], max(cutoffs, default=10) if k is None else k, worst)

    def assert_at_least(self, least: Mapping[str, float]) -> None:
        """Raise `AssertionError` unless each mean reaches its minimum; for use in tests.

        The message lists the metrics that fall short, the queries below the minimum, and the groups that each query
        misses. Raises `MetricError` for a metric that was not evaluated or is better when lower, and `ConfigError`
        for a minimum that the metric cannot reach.

        Args:
            least: Minimum mean for each metric; metrics may be spelled in any valid way.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test and not this one
        if message := self._teller.shortfalls(least):
            raise AssertionError(message)

    def explain(
        self, qid: str, metrics: str | Metric | Sequence[str | Metric] = (), *, corpus: Mapping[str, str] | None = None
    ) -> str:
        """Return the hit matrix of one query and a worked example of every formula."""
        listed = [metrics] if isinstance(metrics, (str, Metric)) else metrics
        requested = [parse_metric(metric, self.convention) for metric in listed]
        check_aggregates({str(metric): metric for metric in requested}, "an explanation")
        return str(self._teller.explain(qid, requested or list(self.metrics.values()), corpus))

    def explain_dict(self, qid: str) -> dict[str, Any]:
        """Return the explanation of one query as plain Python."""
        return dict(nulls(self._teller.explain_dict(qid)))

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return the evaluation as plain Python, with None for undefined values; `--format json` prints the same."""
        plain: dict[str, Any] = super().to_dict()
        if per_query:
            columns = (nulls(values.tolist()) for values in self.shown.values())
            plain["per_query"] = {"qid": list(self.truth.qids), **dict(zip(self.value_names, columns))}
        return plain

    def to_metrics(self) -> dict[str, float]:
        """Return the means as a flat dict, such as `{"recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names; undefined means are omitted.
        """
        return self._teller.metrics()

    def to_events(self) -> list[dict[str, Any]]:
        """Return one OpenTelemetry event per query and metric; `groupgt.report.events` defines their attributes."""
        headers, rows = self._teller.events()
        return [dict(zip(headers, row)) for row in rows]

    def plot(self, name: str = "depth") -> Figure:
        """Return a figure from `groupgt.render.figures.FIGURES`, which Jupyter displays and `.save(path)` writes."""
        return self._teller.plot(name)

    def to_html(self, path: str | os.PathLike[str], *, corpus: Mapping[str, str] | None = None) -> None:
        """Write the page for this run as one HTML file; `corpus` maps ids to texts that are shown next to the ids."""
        from groupgt.store.files import write_bytes

        write_bytes(Path(path), self._teller.page(corpus or {}))

    def __repr__(self) -> str:
        means = ", ".join(f"{text}={mean:.4f}" for text, mean in self.means.items())
        return printable(f"Evaluation({self.name}: {means})")


@dataclass(frozen=True, eq=False)
class Misses(Result):
    """The misses of one or several runs within `k`: the worst queries, and the groups that the fewest runs cover.

    `worst` limits the number of queries or, for several runs, of groups that are listed. `texts` maps ids to texts that
    are shown next to the ids. `failures` has the place of every group in every run. `given` names them in a shell.
    """

    k: int
    worst: int
    evaluations: Mapping[str, Evaluation] = field(repr=False)
    failures: Failures = field(repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    given: str = field(default="…", repr=False)

    @classmethod
    def of(
        cls,
        evaluations: Sequence[Evaluation],
        k: int = 10,
        worst: int = 20,
        texts: Mapping[str, str] | None = None,
        given: str = "…",
    ) -> Misses:
        """Find the misses of runs on one ground truth within k."""
        check_misses(k, worst)
        by_name = {evaluation.name: evaluation for evaluation in evaluations}
        found = failures_of(by_name, k)
        # Queries that count as 0 without a group miss none.
        counted = found.counted & (found.truth.judgments.groups > 0)
        for_every_run = np.repeat(counted[:, np.newaxis], len(by_name), axis=1)
        return cls(k, worst, by_name, replace(found, counting=for_every_run), texts or {}, given)

    @property
    def groups(self) -> list[PlacedGroup]:
        """The groups covered by the fewest runs, up to `worst`; among equals, the latest best rank comes first."""
        return self.failures.hardest(self.worst)

    @cached_property
    def of_worst(self) -> list[PlacedGroup]:
        """All groups of the worst queries of a single run, up to `worst` queries, in order."""
        order, _ = self._worst_first
        return [group for query in order[: self.worst].tolist() for group in self.failures.groups_of(query)]

    @cached_property
    def queries(self) -> list[dict[str, Any]]:
        """The worst queries of a single run, with `qid`, `query`, `coverage`, `results` and `groups`.

        Each group has `group`, `rank` (None without a hit), `covered` (within k, in every trial) and `alternatives`;
        with several trials, also `covered_trials` and `trials`.
        """
        failures, (order, coverage) = self.failures, self._worst_first
        results = self.evaluations[self.run].averaged(lambda hits: hits.length)
        return [
            {
                "qid": failures.truth.qids[query],
                "query": failures.truth.texts[query] if failures.truth.texts else None,
                "coverage": float(coverage[query]),
                "results": whole(float(results[query])),
                "groups": [plain_group(group) for group in failures.groups_of(query)],
            }
            for query in order[: self.worst].tolist()
        ]

    @property
    def incomplete(self) -> int:
        """The number of queries that a single run does not complete in at least one trial."""
        return len(self._worst_first[0])

    @property
    def evaluated(self) -> int:
        """The number of queries that count."""
        return int(self.failures.counted.sum())

    @property
    def by_group(self) -> list[dict[str, Any]]:
        """Coverage by group number within a query, for a single run: `number`, `groups`, `covered` and `anywhere`."""
        return coverage_by_number(self._trials, self.k)

    @property
    def harmful(self) -> list[dict[str, Any]] | None:
        """The harmful results of a single run within k; None if no query names harmful passages."""
        return harmful_results(self.failures.truth, self._trials[0][0], self.k) if self.failures.truth.harmful else None

    @property
    def run(self) -> str:
        """Name of the first run."""
        return next(iter(self.evaluations))

    @property
    def _trials(self) -> list[tuple[Hits, Bools]]:
        return [(each.labelled.hits, each.counting) for each in self.evaluations[self.run].each]

    @cached_property
    def _worst_first(self) -> tuple[Ints, Floats]:
        return worst_first(self._trials, self.k)

    def plot(self) -> Figure:
        """Plot the listed groups by the rank of their first hit."""
        return self._teller.plot("groups")


def mean_of(column: Floats) -> float:
    """Return the mean of all values except NaN, summed exactly so that query order never changes the result.

    For a column with more than one value per query, this is the mean of its `Estimate`.
    """
    if column.ndim > 1:
        estimate = estimate_of(column)
        return math.nan if estimate is None else estimate.mean
    absent = np.isnan(column)
    counted = column[~absent] if absent.any() else column
    return summed(counted) / len(counted) if len(counted) else math.nan
