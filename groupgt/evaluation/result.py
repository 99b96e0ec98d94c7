"""Defines `Evaluation`, the result for one run, `Repeated`, the result for several trials, and their base class."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.engines.carriers import carrier_of
from groupgt.engines.order import Contradictions, contradictions
from groupgt.errors import ConfigError, MetricError, near_names, printable
from groupgt.evaluation.estimates import Corrected, Noise, mean_of, of_column, plain_of
from groupgt.evaluation.slices import Slicer
from groupgt.labellers.base import Labeller
from groupgt.metrics.base import Cut
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates, values_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Hits
from groupgt.model.policy import Policy
from groupgt.model.populations import Populations
from groupgt.model.run import Run
from groupgt.model.values import means_over_trials, nulls
from groupgt.render.results import Result
from groupgt.runtime import pl

if TYPE_CHECKING:
    from groupgt.evaluation.missed import Misses
    from groupgt.render.drawing import Figure


# Ends the names of columns with values by the labels, where the mean beside them is corrected.
BY_LABELS = " by labels"


class Fixed(dict[str, Any]):
    """A dict that cannot be changed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle and copy, which would otherwise set the items one by one."""
        return Fixed, (dict(self),)


def _refuse(self: Fixed, *_: Any, **__: Any) -> Any:
    raise TypeError("the results of an evaluation cannot be changed; copy them with dict(…)")


for _change in ("__setitem__", "__delitem__", "__ior__", "update", "setdefault", "pop", "popitem", "clear"):
    setattr(Fixed, _change, _refuse)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated(Result, ABC):
    """Metric values for every query of one system: an `Evaluation` of one run, or `Repeated` runs.

    `values` has one column per metric, shape (Q,), with NaN if a query does not count. `print` shows the means, the
    policy and the counts; `means[text]` and `result[text]` return one mean. `is_auto` is True if the shape of the
    ground truth determined the convention. `audit` is the same system evaluated against an annotator's judgments for a
    random sample of queries; `annotators` contains an evaluation for each further annotator. `repeats` has the
    evaluation of each trial, and is empty for one run.
    """

    truth: GroundTruth
    metrics: dict[str, Metric]
    values: dict[str, Floats]
    policy: Policy
    convention: str
    by: tuple[str, ...]
    labeller: Labeller
    is_auto: bool = False
    audit: Evaluated | None = None
    annotators: tuple[Evaluated, ...] = ()
    repeats: tuple[Evaluation, ...] = ()

    def __post_init__(self) -> None:
        """Make the values read-only, because means are computed from them."""
        for column in self.values.values():
            column.setflags(write=False)
        object.__setattr__(self, "values", Fixed(self.values))

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.first.run.name or "results"

    @property
    def counting(self) -> Bools:
        """Mask of the queries that count, shape (Q,): defined and, unless missing queries count as 0, with results."""
        return self.populations.counting

    @property
    @abstractmethod
    def each(self) -> tuple[Evaluation, ...]:
        """The evaluations of single runs: one for each trial."""

    @property
    def first(self) -> Evaluation:
        """The first trial's evaluation, for displays of a single run."""
        return self.each[0]

    @property
    def results(self) -> Run:
        """The run's results, with the results of every trial in `trials`."""
        return replace(self.first.run, trials=tuple(each.run for each in self.repeats))

    @property
    def is_plain(self) -> bool:
        """True if results certainly contain only ids and scores, in every trial."""
        return all(each.run.by_original_ids.is_plain for each in self.each)

    @property
    def is_build(self) -> bool:
        """True if trials are builds of an index, which differ as a whole."""
        return self.first.run.is_build

    @property
    def hits_in_trials(self) -> list[Hits]:
        """The hits of every trial, or of the only run."""
        return [each.labelled.hits for each in self.each]

    def averaged(self, read: Callable[[Hits], Any]) -> Floats:
        """Average a value read from the hits of each trial, shape (Q,), ignoring NaN and queries that do not count."""
        if len(self.each) == 1:
            return np.asarray(read(self.first.labelled.hits), dtype=np.float64)
        found = [np.where(each.counting, read(each.labelled.hits), np.nan) for each in self.each]
        return means_over_trials(np.stack(found))

    @cached_property
    def populations(self) -> Populations:
        """The populations of the queries; a query is missing if it has no results in any trial."""
        present: Bools = np.any([each.labelled.present for each in self.each], axis=0)
        return Populations(self.truth.judgments, present, self.policy)

    @cached_property
    def means(self) -> dict[str, float]:
        """Mean of each metric over the queries that count, by its text in the request; NaN if no query counts.

        With annotators, each mean covers all annotators. With an audit, means are corrected, or NaN where correction is
        impossible. `means_by_labels` has the means under the ground truth alone.
        """
        return Fixed(self.means_among())

    def means_among(self, queries: Bools | None = None) -> dict[str, float]:
        """Return `means` over all queries, or only over those in a mask."""
        if self.tested is self.values_per_query:
            return self.means_by_labels(queries)
        columns = {text: column if queries is None else column[queries] for text, column in self.tested.items()}
        return {text: mean_of(columns[text]) if text in columns else math.nan for text in self.values}

    def means_by_labels(self, queries: Bools | None = None) -> dict[str, float]:
        """Return the mean of each metric under the ground truth alone, over all queries or only those in a mask."""
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

    def column_of(self, text: str) -> str:
        """Return the name of a metric's column in `per_query`: with an audit, `recall@5 by labels`."""
        return text if self.audit is None else text + BY_LABELS

    @cached_property
    def corrected(self) -> dict[str, Corrected]:
        """Means corrected by the audit, for every metric between 0 and 1 with a value per query.

        Raises `ConfigError` if the run was evaluated without an audit.
        """
        if self.audit is None:
            raise ConfigError("corrected: expected a run with an audit (audit=HUMAN, or --audit)")
        columns = {text: column for text, column in self.tested.items() if column.ndim > 1}
        return {text: each for text, column in columns.items() if (each := of_column(column)) is not None}

    @property
    def trials(self) -> dict[str, Noise]:
        """How much each metric varies between trials, by its text; empty for one run.

        Each `Noise` has `trials`, `queries`, `mean`, `interval` (these queries, other trials), `floor` (two runs differ
        by up to this much in 95% of cases) and `changing` (the mean number of queries that differ between two trials).
        """
        noises: dict[str, Noise] = self._teller.noises()
        return noises

    def is_corrected(self, text: str) -> bool:
        """Return whether an audit corrects a metric. The metric must be defined for answerable queries."""
        return self.audit is not None and self.metrics[text].definition.queries == "answerable"

    @cached_property
    def tested(self) -> dict[str, Floats]:
        """Columns used to test means and differences: `values_per_query`, or (Q, 2) for metrics that an audit corrects.

        The second column contains values from the annotator: NaN outside the sample, and for metrics that are not
        between 0 and 1. If a query has a value only under the audited ground truth, the annotator's value is 0. With m
        annotators in total, the shape is (Q, 1, m), with NaN for queries that an annotator's ground truth lacks.
        """
        if self.annotators:
            return {text: self._of_annotators(text) for text in self.values_per_query}
        if self.audit is None:
            return self.values_per_query
        places = self._places_in(self.audit)
        columns = {}
        for text, column in self.values_per_query.items():
            if not self.is_corrected(text):
                columns[text] = column
                continue
            columns[text] = np.stack([column, np.full(len(column), np.nan)], axis=1)
            if self.metrics[text].definition.bounded:
                audited = self.audit.values[text]
                columns[text][places, 1] = np.where(np.isnan(audited) & ~np.isnan(column[places]), 0.0, audited)
        return columns

    def _of_annotators(self, text: str) -> Floats:
        columns = np.full((len(self.truth), 1, 1 + len(self.annotators)), np.nan)
        for number, other in enumerate((self, *self.annotators)):
            columns[self._places_in(other), 0, number] = other.values[text]
        return columns

    def _places_in(self, other: Evaluated) -> list[int]:
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
        because they were empty. `unanswerable` counts queries declared unanswerable, and `without_row` counts
        unanswerable queries absent from the run, which count as abstentions. `irrelevant_groups` counts groups without
        a relevant alternative, `negative` documents with a negative grade, and `excluded` results whose ids the ground
        truth excludes. `rising_scores` counts queries whose scores rise along the ranking (or fall, if declared as
        ascending), `rising_rows` queries whose scores rise from row to row in a file where no query's fall, and
        `contradicted_ranks` queries whose ranks and scores give different orders. With trials, each count that depends
        on the results is the largest count in any trial.
        """
        each = self.populations
        unanswerable, without_row = int(each.unanswerable.sum()), int((each.unanswerable & each.absent).sum())
        contradictions = np.max([run.contradictions for run in self.each], axis=0).tolist()
        return {
            "queries": len(self.truth),
            "evaluated": int(each.counting.sum()),
            "undefined": int(each.undefined.sum()),
            "missing": int(each.missing.sum()),
            "extra": self._most(lambda run: run.labelled.extra),
            "duplicates": self._most(lambda run: run.duplicates),
            "ties": self._most(lambda run: run.ties),
            "repeated_ids": self.truth.repeated_ids,
            "empty_groups": len(self.truth.dropped),
            "irrelevant_groups": self.truth.irrelevant_groups,
            **({"negative": self.truth.negative} if self.truth.negative else {}),
            **({"comments": self.comments} if self.comments else {}),
            **({"unanswerable": unanswerable, "without_row": without_row} if unanswerable else {}),
            **({} if self.truth.excluded is None else {"excluded": self._most(lambda run: run.excluded)}),
            **{name: count for name, count in zip(Contradictions._fields, contradictions) if count},
        }

    def _most(self, count: Callable[[Evaluation], int]) -> int:
        return max(map(count, self.each))

    @property
    def comments(self) -> int:
        """Lines in the ground truth and run files that begin with `#` and are not rows."""
        return self.truth.comments + self._most(lambda each: each.run.by_original_ids.resolved.comments)

    def judged(self, primary: str | None = None) -> tuple[Metric, float] | None:
        """Return the `judged` metric at a metric's cutoff (default: the first metric's), and its mean.

        The mean is computed before any results are dropped. Returns None if the ground truth contains no documents
        judged non-relevant, or if it contains sets of passages needed together, for which `judged` is not defined.
        """
        hits = [each.labelled.uncondensed or each.labelled.hits for each in self.each]
        judgments = hits[0].judgments
        if not self.metrics or judgments.alternative_set is not None or not judgments.rejected.any():
            return None
        cutoff = self.metrics[next(iter(self.metrics)) if primary is None else primary].cutoff
        metric = Metric("judged", cutoff=cutoff if isinstance(cutoff, int) or cutoff in hits[0].prefixes else None)
        columns = [
            values_of({"judged": metric}, found, each.labelled.present, self.policy)["judged"]
            for found, each in zip(hits, self.each)
        ]
        return metric, mean_of(means_over_trials(np.stack(columns)))

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """Polars frame with `qid` and one float column per metric; null if a query does not count.

        With an audit, these values (unlike the means) are not corrected, so the columns are named `recall@5 by labels`.
        """
        columns = {"qid": self.truth.qids, **{self.column_of(text): column for text, column in self.shown.items()}}
        return pl.DataFrame(columns, schema_overrides={"qid": pl.String}).fill_nan(None)

    def counted(self, text: str, among: Bools | None = None) -> int:
        """Return the number of queries in one mean."""
        column = self.shown.get(text, self.values[text])
        return int((~np.isnan(column if among is None else column[among])).sum())

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
        from groupgt.evaluation.missed import Misses

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
        """Return the explanation of one query as plain Python objects."""
        return dict(nulls(self._teller.explain_dict(qid)))

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return the evaluation as plain Python, with None for undefined values; `--format json` prints the same."""
        plain: dict[str, Any] = super().to_dict()
        if per_query:
            columns = {self.column_of(text): nulls(values.tolist()) for text, values in self.shown.items()}
            plain["per_query"] = {"qid": list(self.truth.qids), **columns}
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
        """Write the page for this run as one HTML file; `corpus` maps ids to the text that is shown next to them."""
        from groupgt.store.files import write_bytes

        write_bytes(Path(path), self._teller.page(corpus or {}))

    def __repr__(self) -> str:
        means = ", ".join(f"{text}={mean:.4f}" for text, mean in self.means.items())
        return printable(f"{type(self).__name__}({self.name}: {means})")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation(Evaluated):
    """Metric values for every query of one run, with the run and its hits."""

    run: Run
    labelled: Labelled

    @property
    def each(self) -> tuple[Evaluation, ...]:
        """This evaluation."""
        return (self,)

    @property
    def contradictions(self) -> Contradictions:
        """Queries whose scores rise along the ranking, or whose ranks and scores give different orders."""
        return Contradictions(*self.labelled.contradictory) if self.run.is_remote else contradictions(self.run)

    @property
    def duplicates(self) -> int:
        """Queries with a repeated result."""
        repeating = None if self.policy.looks_at_all else carrier_of(self.run).repeating(self.truth)
        found = self.labelled
        return found.duplicated if repeating is None else len({*repeating, *found.hit_again.tolist()})

    @property
    def ties(self) -> int:
        """Queries where a cutoff splits equal scores that include a hit."""
        cutoffs = {metric.cutoff for metric in self.metrics.values()}
        depths = [None if cutoff is None else Cut.at(self.labelled.hits, cutoff).k for cutoff in cutoffs]
        return self.labelled.tied_at(depths)

    @property
    def excluded(self) -> int:
        """Results whose ids the ground truth excludes."""
        return self.run.excluded + self.labelled.excluded


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Repeated(Evaluated):
    """Metric values for every query of a system that was queried several times, as means over its trials.

    A `Repeated` has no single run or ranking. `each` has the evaluation of every trial, and `averaged` computes means
    over trials. Where only one ranking can be shown, the ranking of the `first` trial is shown.
    """

    @property
    def each(self) -> tuple[Evaluation, ...]:
        """The evaluations of all trials."""
        return self.repeats
