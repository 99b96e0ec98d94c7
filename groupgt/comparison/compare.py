"""Compares several runs on one ground truth with a baseline: `compare` returns a `Comparison`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from groupgt.comparison.audit_power import AuditPower
from groupgt.comparison.contrast import Row
from groupgt.comparison.power import alpha_of, power_of
from groupgt.comparison.power_analysis import PowerAnalysis
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import CorrectionName, TestName
from groupgt.errors import ConfigError, display, near_names, printable
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.options import RequestOptions, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import named_runs
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates
from groupgt.render.drawing import Figure
from groupgt.render.results import Result
from groupgt.runtime import pl
from groupgt.store.files import write_bytes


class OfSystem(dict[str, Row]):
    """The rows of one system by metric; any spelling of a metric finds its row."""

    def __init__(self, rows: Mapping[str, Row], metrics: Mapping[str, Metric], convention: str) -> None:
        super().__init__(rows)
        self._metrics, self._convention = metrics, convention

    def __missing__(self, metric: str) -> Row:
        parsed = parse_metric(metric, self._convention)
        text = next((text for text, compared in self._metrics.items() if compared == parsed), None)
        if text is None:
            raise ConfigError(
                f"metric {str(metric)!r} is not part of this comparison{near_names(str(metric), self._metrics)}"
            )
        return self[text]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Systems, Result):
    """Systems compared with a baseline, query by query.

    `rows` has a `Row` for each system and metric, `table["dense"]["ndcg@10"]` is one of them; `per_query` has every
    value. `slices` shows where differences come from, `failures` which system covers which group, `headroom` what a
    perfect choice among systems would reach, `pairs` all pairs of systems if `settings.pairs` is set.
    `print` shows all of it. `evaluations` is empty if values were read from result folders.
    """

    def __getitem__(self, system: str) -> OfSystem:
        """The rows of one system by metric."""
        if system not in self._by_system:
            raise ConfigError(
                f"system {system!r} is not part of this comparison{near_names(system, self.names)}; "
                f"known systems: {', '.join(self.names)}"
            )
        return self._by_system[system]

    @cached_property
    def _by_system(self) -> dict[str, OfSystem]:
        by_system: dict[str, dict[str, Row]] = {}
        for row in self.rows:
            by_system.setdefault(row.system, {})[row.metric] = row
        return {name: OfSystem(rows, self.metrics, self.convention) for name, rows in by_system.items()}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame: `run`, `qid` and one float column per metric, null if a query does not count."""
        frames = [
            pl.DataFrame(
                {
                    "run": pl.Series([name] * len(self.qids), dtype=pl.String),
                    "qid": pl.Series(list(self.qids), dtype=pl.String),
                    **{text: pl.Series(columns[text]).fill_nan(None) for text in self.metrics},
                }
            )
            for name, columns in self.values.items()
        ]
        return pl.concat(frames)

    @property
    def warnings(self) -> list[str]:
        """Warnings against overinterpretation: few queries that differ, or queries that count for only one system."""
        return self._teller.warnings()

    @property
    def footer(self) -> list[str]:
        """Describes what was measured, and by which rules."""
        return self._teller.footer()

    def summary(self) -> str:
        """Short Markdown for a pull request: the verdict, and only what differs significantly from the baseline."""
        return self._teller.summary()

    def to_metrics(self) -> dict[str, float]:
        """The means as a flat dict, such as `{"bm25/recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names; undefined means are left out.
        """
        return self._teller.metrics()

    def plot(self, name: str = "queries", *, metric: str | None = None) -> Figure:
        """A figure of `groupgt.render.figures.FIGURES` by one metric (default: the first)."""
        return self._teller.plot(name, metric=metric)

    def to_html(
        self, path: str | os.PathLike[str], *, metric: str | None = None, corpus: Mapping[str, str] | None = None
    ) -> None:
        """Writes the page of this comparison, one HTML file.

        `metric` decides which system is best (default: the first); `corpus` has texts by id.
        """
        write_bytes(Path(path), self._teller.page(metric=metric, corpus=corpus))

    def to_latex(self, *, digits: int = 3, against: Sequence[str] = (), caption: str = "") -> str:
        """A LaTeX table for a paper: systems × metrics, the best in bold, superscripts for significant differences.

        Args:
            digits: Digits after the decimal point.
            against: The systems that the others are tested against, one letter for each (default: the baseline).
            caption: The caption (default: what was measured, over how many queries, and how it was tested).
        """
        return self._teller.latex(digits=digits, against=against, caption=caption)

    def power(self, *, difference: float | None = None, power: float = 0.8) -> PowerAnalysis:
        """Minimum detectable difference, and number of queries needed to detect a given one. Needs SciPy.

        Args:
            difference: The difference to detect (default: the observed one).
            power: Target power.
        """
        if self.basis == "audit":
            raise ConfigError("power: with an audit, ask how wide intervals will be: audit_power()")
        powers = power_of(self.rows, self.settings, difference=difference, power=power)
        for part in self.slices:
            powers += power_of(
                part.rows, self.settings, difference=difference, power=power, by=part.by, value=part.value
            )
        return PowerAnalysis(tuple(powers), power, alpha_of(self.rows, self.primary, self.settings), self)

    def audit_power(self) -> AuditPower:
        """How wide the intervals will be if more, or fewer, queries are audited."""
        return AuditPower.of(self)

    def __repr__(self) -> str:
        return printable(f"Comparison({', '.join(self.names)}; baseline {self.baseline}; {', '.join(self.metrics)})")


def comparison_of(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    settings: Settings,
    metrics: Sequence[str] = (),
    primary: str | None = None,
) -> Comparison:
    """A comparison of evaluations on one ground truth, by some or all of their metrics.

    `primary` decides which system is best (the first metric if it is not one of these).
    Raises `ConfigError` if the baseline is not one of them.
    """
    names = list(evaluations)
    if baseline not in evaluations:
        raise ConfigError(
            f"baseline: expected one of {', '.join(names)}, found {baseline!r}{near_names(baseline, names)}"
        )
    first = evaluations[names[0]]
    texts = [first.text_of(metric) for metric in metrics] or list(first.metrics)
    check_aggregates({text: first.metrics[text] for text in texts}, "a comparison")
    decisive = None if primary is None else parse_metric(primary, first.convention)
    return Comparison(
        first.truth.qids,
        {text: first.metrics[text] for text in texts},
        first.convention,
        {name: {text: each.values[text] for text in texts} for name, each in evaluations.items()},
        next((text for text in texts if first.metrics[text] == decisive), texts[0]),
        evaluations,
        baseline=baseline,
        settings=settings,
    )


@takes_options(RequestOptions)
def compare(
    truth: Any,
    runs: Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str],
    metrics: Sequence[str | Metric],
    *,
    baseline: str | None = None,
    primary: str | None = None,
    test: TestName = "randomization",
    correction: CorrectionName = "holm",
    alpha: float = 0.05,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    pairs: bool = False,
    annotators: Sequence[Any] = (),
    **options: Unpack[RequestOptions],
) -> Comparison:
    """Compares several runs and tests differences for significance.

    Every mean and every delta has a bootstrap confidence interval. Raises `DataError`, `MetricError` or `ConfigError`.

    Args:
        baseline: The run to compare with (default: the first).
        primary: The metric that decides the verdict (default: the first).
        test: The paired test: `randomization`, `t`, `wilcoxon` (these two need SciPy) or `bootstrap`.
        correction: Correction of p-values over the runs compared in one metric: `holm`, `bonferroni`, `bh` or `none`.
        alpha: Significance level: a difference is significant if its p-value is at most this.
        confidence: Confidence level of the intervals of means.
        resamples: Number of resamples.
        seed: Random seed; the same seed gives bit-identical results.
        pairs: Also compare all pairs of runs.
        annotators: The ground truth of further annotators, on the same queries: differences are then averaged over
        annotators, and intervals and p-values include their disagreement.

    >>> truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    >>> half, whole = {qid: ["a", "x"] for qid in truth}, {qid: ["b", "c"] for qid in truth}
    >>> table = compare(truth, {"half": half, "whole": whole}, ["recall@2"])
    >>> row = table["whole"]["recall@2"]
    >>> row.delta, row.wins, row.p_value  # 2 of the 2^12 sign patterns are as far
    (0.5, 12, 0.00048828125)
    """
    settings = Settings(test, correction, alpha, confidence, resamples, seed, pairs)
    named = named_runs(runs, least=2)
    if baseline is not None and not isinstance(baseline, str):
        raise ConfigError(f"baseline: expected the name of a run, found {display(baseline)}")
    request = Request.of(metrics, **options)
    request = replace(request, annotators=tuple(map(request.truth_of, annotators)))
    evaluations = {each.name: each for each in evaluate_each(request, request.truth_of(truth), named)}
    first = next(iter(evaluations))
    text = None if primary is None else evaluations[first].text_of(primary)
    return comparison_of(evaluations, first if baseline is None else baseline, settings, primary=text)


@takes_options(RequestOptions)
def power(
    truth: Any,
    runs: Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str],
    metrics: Sequence[str | Metric],
    *,
    baseline: str | None = None,
    primary: str | None = None,
    difference: float | None = None,
    power: float = 0.8,
    test: TestName = "randomization",
    correction: CorrectionName = "holm",
    alpha: float = 0.05,
    **options: Unpack[RequestOptions],
) -> PowerAnalysis:
    """Minimum detectable difference, and number of queries needed to detect a given one. Needs SciPy.

    Computed from the per-query differences of each run from the baseline. Raises `DataError`, `MetricError` or
    `ConfigError`.

    Args:
        baseline: The run to compare with (default: the first).
        primary: The metric that decides the verdict (default: the first).
        difference: The difference to detect (default: the observed one).
        power: Target power.
        test: The paired test: `randomization`, `t`, `wilcoxon` or `bootstrap`.
        correction: Unless this is `none`, alpha is divided by the number of comparisons.
        alpha: Significance level: a difference is significant if its p-value is at most this.
    """
    comparison = compare(
        truth,
        runs,
        metrics,
        baseline=baseline,
        primary=primary,
        test=test,
        correction=correction,
        alpha=alpha,
        resamples=1,  # no interval is shown
        **options,
    )
    return comparison.power(difference=difference, power=power)
