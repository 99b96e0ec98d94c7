"""Evaluates several runs on one ground truth and returns one table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Unpack

from groupgt.errors import ConfigError, display, near_names, printable
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.names import expanded, named
from groupgt.evaluation.options import MetricOptions, Metrics, Runs, Truth, takes_options
from groupgt.evaluation.reading import is_in_files
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated
from groupgt.formats.detect import run_paths
from groupgt.formats.parts import is_url
from groupgt.formats.roles import NO_COLUMNS, Declared
from groupgt.metrics.base import ConventionChoice, ConventionName
from groupgt.metrics.language import Metric, metrics_in
from groupgt.model.hits import Bools
from groupgt.model.run import Run, Trials
from groupgt.model.values import nulls
from groupgt.options import Doc
from groupgt.render.exports import frame_of
from groupgt.render.results import Result
from groupgt.render.tables import Grid
from groupgt.runtime import no_garbage_collection, pl


@dataclass(frozen=True, eq=False, repr=False)
class Evaluations(Result, Mapping[str, Evaluated]):
    """Evaluations of several runs on one ground truth, by run name, in the original order.

    `print` shows one table. `evaluations["bm25"]` is the `Evaluated` of one run, and `means["bm25"]["recall@5"]` is
    one mean. `to_polars` has one row per mean: `run`, `by`, `slice`, `metric`, `mean`, `queries`.
    """

    by_name: dict[str, Evaluated]
    conventions: tuple[str, ...]

    @classmethod
    def of(cls, evaluations: Sequence[Evaluated], conventions: Sequence[str]) -> Evaluations:
        """Index evaluations by run name."""
        return cls({evaluation.name: evaluation for evaluation in evaluations}, tuple(conventions))

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Means by run and metric; NaN if no query counts."""
        return {name: evaluation.means for name, evaluation in self.by_name.items()}

    @property
    def per_query(self) -> pl.DataFrame:
        """Polars frame with `run`, `qid` and one float column per metric; null if a query does not count."""
        return frame_of(*per_query_rows(list(self.by_name.values())))

    def __getitem__(self, name: str) -> Evaluated:
        if name not in self.by_name:
            near = near_names(str(name), self.by_name)
            raise ConfigError(f"run {str(name)!r} was not evaluated{near}; the runs are {', '.join(self.by_name)}")
        return self.by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def sorted_by(self, metric: str) -> Evaluations:
        """Return the evaluations sorted by their means of a metric, best first."""
        first = next(iter(self.by_name.values()))
        text = first.text_of(metric)
        means, worth = self.means, first.metrics[text].worth
        names = sorted(self.by_name, key=lambda name: worth(means[name][text]), reverse=True)
        return replace(self, by_name={name: self.by_name[name] for name in names})

    def to_metrics(self) -> dict[str, float]:
        """Return the means as a flat dict, such as `{"bm25/recall/at_5": 0.5}`, for MLflow, Weights & Biases or DVC.

        `groupgt.report.tracking` defines the names; undefined means are omitted.
        """
        return self._teller.metrics()

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def __repr__(self) -> str:
        metrics = ", ".join(next(iter(self.by_name.values())).metrics) if self.by_name else ""
        return printable(f"Evaluations({', '.join(self.by_name)}: {metrics})")


def per_query_rows(evaluations: Sequence[Evaluated]) -> Grid:
    """Return the columns `run` and `qid` and one column per metric; cells are None if a query does not count."""
    headers = ["run", "qid", *map(evaluations[0].column_of, evaluations[0].shown)]
    rows: list[list[Any]] = []
    for evaluation in evaluations:
        columns = (nulls(values.tolist()) for values in evaluation.shown.values())
        rows += [[evaluation.name, qid, *cells] for qid, *cells in zip(evaluation.truth.qids, *columns)]
    return headers, rows


def means_and_slices(evaluations: Sequence[Evaluated]) -> Grid:
    """Return headers and one row per mean, over all queries (empty `by`) and for each slice."""
    rows: list[list[Any]] = []
    by_labels = ["mean_by_labels"] if any(each.audit or each.annotators for each in evaluations) else []
    for evaluation in evaluations:
        everywhere: list[tuple[str, str, Bools | None]] = [("", "", None), *evaluation.slicer]
        for by, value, mask in everywhere:
            labels = evaluation.means_by_labels(mask)
            for text, mean in evaluation.means_among(mask).items():
                cells = [str(evaluation.metrics[text]), mean, evaluation.counted(text, mask)]
                rows.append([evaluation.name, by, value, *cells, *([labels[text]] if by_labels else [])])
    return ["run", "by", "slice", "metric", "mean", "queries", *by_labels], rows


@takes_options(MetricOptions)
def evaluate_runs(
    truth: Truth,
    runs: Runs,
    metrics: Metrics,
    *,
    convention: Annotated[
        ConventionChoice | Sequence[ConventionName],
        Doc(
            "`autorag`, `trec` or `coverage`, or several, shown side by side; `auto` chooses one based on the shape of "
            "the ground truth."
        ),
    ] = "auto",
    **options: Unpack[MetricOptions],
) -> Evaluations:
    """Evaluate several runs against one ground truth and show them in one table.

    Raises a `DataError`, `MetricError` or `ConfigError` that lists every problem.

    >>> found = evaluate_runs({"q": [["a"], ["b"]]}, {"one": {"q": ["a"]}, "both": {"q": ["a", "b"]}}, ["recall@2"])
    >>> found["both"].means, found.means["one"]["recall@2"]
    ({'recall@2': 1.0}, 0.5)
    """
    pairs = named_runs(runs, options.get("run_columns"))
    conventions = (convention,) if isinstance(convention, str) else tuple(convention)
    if not conventions:
        raise ConfigError("convention: expected at least one, found none")
    requested: Sequence[str | Metric] = [metrics] if isinstance(metrics, (str, Metric)) else metrics
    if len(conventions) > 1:
        k = options.pop("k", ())
        requested = metrics_in([str(metric) for metric in requested], conventions, [k] if isinstance(k, int) else k)
    with no_garbage_collection():
        request = Request.of(requested, convention=conventions[0], **options)
        evaluations = evaluate_each(request, request.truth_of(truth), pairs)
        return Evaluations.of(evaluations, conventions if len(conventions) > 1 else [evaluations[0].convention])


def named_runs(runs: Any, columns: Declared | None, least: int = 1) -> list[tuple[str, Any]]:
    """Return (name, run) pairs from `{name: run}` or from paths, or raise `ConfigError` or `DataError`.

    A list of runs under one name contains the trials of one system. Each file in a folder or a glob is a run.
    """
    if isinstance(runs, (str, os.PathLike)):
        runs = [runs]
    if not isinstance(runs, (Mapping, Sequence)):
        raise ConfigError(f"runs: expected {{name: run}} or a list of paths, found {display(runs)}")
    pairs: list[tuple[str, Any]] = []
    if isinstance(runs, Mapping):
        pairs = [(str(name), Trials(run) if isinstance(run, list) and run else run) for name, run in runs.items()]
    else:
        for run in runs:
            is_local = isinstance(run, (str, os.PathLike)) and not is_url(run)
            pairs += expanded(run, run_paths(run, columns or NO_COLUMNS)) if is_local else [("", run)]
    if len(pairs) < least:
        raise ConfigError(f"runs: expected at least {'one' if least == 1 else least}, found {len(pairs)}")
    nameless = [run for name, run in pairs if not (name or is_in_files(run) or (isinstance(run, Run) and run.name))]
    if len(pairs) > 1 and nameless:
        raise ConfigError(f"runs: {len(nameless):,} of {len(pairs):,} runs have no name; pass {{name: run}}")
    return named(pairs)
