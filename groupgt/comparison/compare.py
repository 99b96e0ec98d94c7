"""Compare several runs on one ground truth with a baseline run: `compare` returns a `Comparison`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Unpack

from groupgt.comparison.contrast import Row
from groupgt.comparison.power import AuditPower, PowerAnalysis, alpha_of, power_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import CorrectionName, TestName
from groupgt.errors import ConfigError, display, near_names, printable
from groupgt.evaluation.estimates import Noise, mean_of
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.options import Metrics, RequestOptions, Runs, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.runs import named_runs
from groupgt.metrics.language import Metric, parse_metric
from groupgt.metrics.values import check_aggregates
from groupgt.options import Doc
from groupgt.render.drawing import Figure
from groupgt.render.results import Result
from groupgt.runtime import pl
from groupgt.store.files import write_bytes


class OfSystem(dict[str, Row]):
    """Rows of one system, keyed by metric. Any spelling of a metric works."""

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
    """A query-by-query comparison of systems with a baseline.

    `rows` contains a `Row` for each system and metric, also available as `table["dense"]["ndcg@10"]`. `per_query`
    contains all values. `slices` shows where differences come from, and `failures` shows which system covers which
    group. `headroom` contains the scores that a perfect choice among systems would reach. `pairs` compares all pairs of
    systems if `settings.pairs` is set. Use `print` to show everything. `evaluations` is empty if values were read from
    result folders.
    """

    def __getitem__(self, system: str) -> OfSystem:
        """Return the rows of one system, keyed by metric."""
        rows = {row.metric: row for row in self.rows if row.system == system}
        if not rows:
            raise ConfigError(
                f"system {system!r} is not part of this comparison{near_names(system, self.names)}; "
                f"known systems: {', '.join(self.names)}"
            )
        return OfSystem(rows, self.metrics, self.convention)

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame with columns `run`, `qid` and one float per metric, null if a query does not count."""
        columns = {text: self.first.column_of(text) if self.evaluations else text for text in self.metrics}
        frames = [
            pl.DataFrame(
                {
                    "run": [name] * len(self.qids),
                    "qid": list(self.qids),
                    **{column: each[text] for text, column in columns.items()},
                },
                schema_overrides={"run": pl.String, "qid": pl.String},
            )
            for name, each in self.shown.items()
        ]
        return pl.concat(frames).fill_nan(None)

    @property
    def warnings(self) -> list[str]:
        """Warnings that few queries differ, or that some queries count for only one system."""
        return self._teller.warnings()

    @property
    def trials(self) -> dict[str, dict[str, Noise]]:
        """How much each metric varies between a system's trials, for systems with trials (see `Evaluated.trials`)."""
        noises: dict[str, dict[str, Noise]] = self._teller.noises()
        return noises

    @property
    def footer(self) -> list[str]:
        """Lines that describe what was measured and under which rules."""
        return self._teller.footer()

    def summary(self) -> str:
        """Return short Markdown for a pull request: the verdict and any significant differences from the baseline."""
        return self._teller.summary()

    def to_metrics(self) -> dict[str, float]:
        """Return the means as a flat dict, such as `{"bm25/recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names. Undefined means are left out.
        """
        return self._teller.metrics()

    def plot(self, name: str = "queries", *, metric: str | None = None) -> Figure:
        """Draw a figure from `groupgt.render.figures.FIGURES` for one metric (default: the first)."""
        return self._teller.plot(name, metric=metric)

    def to_html(
        self, path: str | os.PathLike[str], *, metric: str | None = None, corpus: Mapping[str, str] | None = None
    ) -> None:
        """Write this comparison as a page, in a single HTML file.

        `metric` decides which system is best (default: the first). `corpus` maps ids to texts.
        """
        write_bytes(Path(path), self._teller.page(metric=metric, corpus=corpus))

    def to_latex(self, *, digits: int = 3, against: Sequence[str] = (), caption: str = "") -> str:
        """Return a LaTeX table of systems × metrics, with the best in bold and superscripts for significance.

        Args:
            digits: Number of digits after the decimal point.
            against: The systems to test the others against, each marked by a letter (default: the baseline).
            caption: The caption (default: a description of the metrics, the number of queries, and the test).
        """
        return self._teller.latex(digits=digits, against=against, caption=caption)

    def sorted_by(self, metric: str) -> Comparison:
        """Return the comparison with its systems sorted by their means of a metric, best first."""
        text = self.by(metric).primary
        chosen = self.metrics[text]
        names = sorted(self.names, key=lambda name: chosen.worth(mean_of(self.tested[name][text])), reverse=True)
        evaluations = {name: self.evaluations[name] for name in names if name in self.evaluations}
        return replace(self, values={name: self.values[name] for name in names}, evaluations=evaluations)

    def power(self, *, difference: float | None = None, power: float = 0.8) -> PowerAnalysis:
        """Return the minimum detectable difference and the queries needed to detect a difference. Needs SciPy.

        Args:
            difference: The difference to detect (default: the observed difference).
            power: Target power.
        """
        if self.basis == "audit":
            raise ConfigError("power: not available with an audit; use audit_power() to predict the width of intervals")
        powers = power_of(self.rows, self.settings, self.metrics, difference=difference, power=power)
        for part in self.slices:
            place = {"by": part.by, "value": part.value}
            powers += power_of(part.rows, self.settings, self.metrics, difference=difference, power=power, **place)
        return PowerAnalysis(tuple(powers), power, alpha_of(self.rows, self.primary, self.settings), self)

    def audit_power(self) -> AuditPower:
        """Predict how wide the confidence intervals would be with more or fewer audited queries."""
        return AuditPower.of(self)

    def __repr__(self) -> str:
        return printable(f"Comparison({', '.join(self.names)}; baseline {self.baseline}; {', '.join(self.metrics)})")


def baseline_of(names: Sequence[str], baseline: str | None) -> str:
    """Return the baseline (default: the first run), or raise `ConfigError` if no run has this name."""
    if baseline is None:
        return names[0]
    if baseline not in names:
        near = near_names(baseline, names) if isinstance(baseline, str) else ""
        raise ConfigError(f"baseline: expected one of {', '.join(names)}, found {display(baseline)}{near}")
    return baseline


def comparison_of(
    evaluations: Mapping[str, Evaluated],
    baseline: str,
    settings: Settings,
    metrics: Sequence[str] = (),
    primary: str | None = None,
) -> Comparison:
    """Compare evaluations on the same ground truth. If `primary` is not among `metrics`, the first metric decides."""
    first = next(iter(evaluations.values()))
    texts = [first.text_of(metric) for metric in metrics] or list(first.metrics)
    decisive = None if primary is None else parse_metric(primary, first.convention)
    # Metrics without values per query are not tested, unless one is primary or there are no others.
    tested = [text for text in texts if text in first.values_per_query]
    needed = {text: first.metrics[text] for text in texts if not tested or first.metrics[text] == decisive}
    check_aggregates(needed, "a comparison")
    if settings.these_queries and not any(each.repeats for each in evaluations.values()):
        raise ConfigError("these_queries: needs a system with trials, because a single run does not show how runs vary")
    if settings.these_queries and (first.audit or first.annotators):
        what = "an audit" if first.audit else "several annotators"
        raise ConfigError(f"these_queries: cannot be combined with {what}, because intervals then cover other queries")
    texts = tested
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


ALPHA = "Call a difference significant if its p-value is at most alpha."


@takes_options(RequestOptions, Settings, alpha=ALPHA)
def compare(
    truth: Truth,
    runs: Runs,
    metrics: Metrics,
    *,
    baseline: Annotated[str | None, Doc("The run to compare with (default: the first).")] = None,
    primary: Annotated[str | None, Doc("The metric that decides the verdict (default: the first).")] = None,
    test: TestName = "randomization",
    correction: CorrectionName | None = None,
    alpha: float = 0.05,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    pairs: bool = False,
    these_queries: bool = False,
    annotators: Annotated[
        Sequence[Any],
        Doc(
            "Ground truth from additional annotators for the same queries. groupgt averages differences over "
            "annotators, and intervals and p-values account for their disagreement."
        ),
    ] = (),
    **options: Unpack[RequestOptions],
) -> Comparison:
    """Compare several runs with a baseline and test the differences for significance.

    Each mean and each delta has a bootstrap confidence interval. Raises `DataError`, `MetricError` or `ConfigError`.

    >>> truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    >>> half, whole = {qid: ["a", "x"] for qid in truth}, {qid: ["b", "c"] for qid in truth}
    >>> table = compare(truth, {"half": half, "whole": whole}, ["recall@2"])
    >>> row = table["whole"]["recall@2"]
    >>> row.delta, row.wins, row.p_value  # 2 of the 2^12 sign patterns are as far
    (0.5, 12, 0.00048828125)
    """
    settings = Settings(test, correction, alpha, confidence, resamples, seed, pairs, these_queries)
    named = named_runs(runs, options.get("run_columns"), least=2)
    against = baseline_of([name for name, _ in named], baseline)
    request = Request.of(metrics, **options)
    request = replace(request, annotators=tuple(map(request.reading.annotation, annotators)))
    evaluations = {each.name: each for each in evaluate_each(request, request.truth_of(truth), named)}
    text = None if primary is None else evaluations[against].text_of(primary)
    return comparison_of(evaluations, against, settings, primary=text)


@takes_options(
    RequestOptions, Settings, alpha=ALPHA, correction="Divide alpha by the number of comparisons, unless set to `none`."
)
def power(
    truth: Truth,
    runs: Runs,
    metrics: Metrics,
    *,
    baseline: Annotated[str | None, Doc("The run to compare with (default: the first).")] = None,
    primary: Annotated[str | None, Doc("The metric that decides the verdict (default: the first).")] = None,
    difference: Annotated[float | None, Doc("The difference to detect (default: the observed difference).")] = None,
    power: Annotated[float, Doc("Target power.")] = 0.8,
    test: TestName = "randomization",
    correction: CorrectionName | None = None,
    alpha: float = 0.05,
    **options: Unpack[RequestOptions],
) -> PowerAnalysis:
    """Return the minimum detectable difference and the number of queries needed to detect a difference.

    Both numbers are computed from the per-query differences between each run and the baseline. Needs SciPy. Raises
    `DataError`, `MetricError` or `ConfigError`.
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
