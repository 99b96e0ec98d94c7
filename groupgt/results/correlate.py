"""Correlate two orders of systems, evaluated now or read from result folders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

from groupgt.comparison.correlation import FEWEST, Correlation, correlation_of, side_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.errors import ConfigError
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.options import RequestOptions, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.runs import named_runs
from groupgt.metrics.language import Metric, parse_metric
from groupgt.options import Doc
from groupgt.results.folder import ResultFolder, folders_of
from groupgt.results.merge import merged
from groupgt.store.stamped import LATEST


@takes_options(RequestOptions, Settings, alpha="Significance level for the order of two systems.")
def correlate(
    first: Annotated[Any, Doc("The reference: ground truth, a result folder or a comparison.")],
    second: Annotated[
        Any,
        Doc(
            "Another ground truth for the runs, or another result folder or comparison. Omit it to correlate two "
            "metrics."
        ),
    ] = None,
    runs: Annotated[Any, Doc("The runs, if `first` is ground truth.")] = None,
    metrics: Annotated[
        Sequence[str | Metric] | str,
        Doc("One metric, or two if there is no `second` (default with folders: their primary metrics)."),
    ] = (),
    *,
    dataset: Annotated[str | None, Doc("The data set to use, if result folders have several.")] = None,
    alpha: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
    **options: Unpack[RequestOptions],
) -> Correlation:
    """Correlate the orders of systems under two ground truths, by two metrics, or in two result folders.

    Sources: Kendall, Biometrika 1945 (tau-b); Yilmaz, Aslam & Robertson, SIGIR 2008 (tau_AP); Urbano & Marrero, ICTIR
    2017 (ties in tau_AP: the mean over all orders of tied systems). Needs at least five systems. Raises `DataError`,
    `MetricError` or `ConfigError`.

    >>> truth = {f"q{n}": {"a": 1, "b": 1} for n in range(6)}
    >>> runs = {f"s{n}": {qid: ["x"] * n + ["a", "b"] for qid in truth} for n in range(5)}
    >>> result = correlate(truth, runs=runs, metrics=["mrr", "precision@3"])
    >>> result.tau_ap, len(result.swaps)
    (0.6875, 0)
    """
    settings = Settings(alpha=alpha, resamples=resamples, seed=seed, pairs=True)
    texts: list[str | Metric] = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    if runs is None:
        sides = _stored(first, second, texts, dataset, options)
    else:
        expected = 2 if second is None else 1
        if len(texts) != expected:
            whose = "two metrics of one ground truth" if second is None else "one metric for both ground truths"
            raise ConfigError(f"metrics: expected {whose}, found {len(texts)}")
        sides = _measured(first, second, runs, texts, options)
    one, two = (side_of(*side) for side in sides)
    return correlation_of(one, two, settings)


def _measured(
    first: Any, second: Any, runs: Any, texts: Sequence[str | Metric], options: Any
) -> list[tuple[Systems, str, str]]:
    """Evaluate the runs under one or both ground truths; return the table, the metric and the title of each side."""
    request = Request.of(texts, **options)
    named = named_runs(runs, options.get("run_columns"), least=FEWEST)
    tables = [
        Systems.of({each.name: each for each in evaluate_each(request, request.truth_of(truth), named)})
        for truth in (first, second)
        if truth is not None
    ]
    if second is None:
        return [(tables[0], text, text) for text in tables[0].metrics]
    names = [Path(each).name if isinstance(each, (str, os.PathLike)) else "" for each in (first, second)]
    if not all(names) or names[0] == names[1]:
        names = ["first", "second"]
    return [(table, table.primary, name) for table, name in zip(tables, names)]


def _stored(
    first: Any, second: Any, texts: Sequence[str | Metric], dataset: str | None, options: Mapping[str, Any]
) -> list[tuple[Systems, str, str]]:
    """Return the table, the metric and the title of each side, from one or two result folders or comparisons."""
    if options:
        raise ConfigError(f"{', '.join(options)}: needs ground truth and runs, because stored values cannot be changed")
    tables = [_table(each, dataset) for each in ((first,) if second is None else (first, second))]
    if second is None:
        if len(texts) != 2:
            raise ConfigError(f"metrics: expected two metrics of {tables[0][0]}, found {len(texts)}")
        (_, table) = tables[0]
        return [(table, name, name) for name in (_text_in(table, str(text)) for text in texts)]
    if len(texts) > 1:
        raise ConfigError(f"metrics: expected one metric for both sides, found {len(texts)}")
    chosen = [_text_in(table, str(texts[0])) if texts else table.primary for _, table in tables]
    labels = [label for label, _ in tables]
    if labels[0] == labels[1] and not isinstance(first, Systems):
        labels = [str(first), str(second)]
    return [(table, text, label) for label, (_, table), text in zip(labels, tables, chosen)]


def _table(source: Any, dataset: str | None) -> tuple[str, Systems]:
    if isinstance(source, Systems):
        return "comparison", source
    if not isinstance(source, (str, os.PathLike)):
        what = f"expected a result folder or a comparison, found {type(source).__name__}"
        raise ConfigError(f"{what}; if it is ground truth, also pass runs")
    folder = ResultFolder.read(folders_of([Path(source)])[-1])
    tables = merged([folder], Settings())
    if dataset not in tables and (dataset is not None or len(tables) > 1):
        found = "none" if dataset is None else repr(dataset)
        raise ConfigError(f"{source}: dataset: expected one of {', '.join(tables)}, found {found}")
    name = folder.path.parent.name if Path(source).name == LATEST else Path(source).name
    return name, next(iter(tables.values())) if dataset is None else tables[dataset]


def _text_in(table: Systems, text: str) -> str:
    metric = parse_metric(text, table.convention)
    found = next((name for name, each in table.metrics.items() if each == metric), None)
    if found is None:
        raise ConfigError(f"metric {text!r}: not among the stored metrics {', '.join(table.metrics)}")
    return found
