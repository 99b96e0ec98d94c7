"""Data sets that differ only in their corpus: one ground truth, several chunk sizes, in one table.

`display` shows it before the tables of each data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from groupgt.comparison.compare import comparison_of
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.experiment import Experiment
from groupgt.render.document import Item
from groupgt.report.comparison import items as items_of
from groupgt.report.contrasts import warnings


def sharing(experiment: Experiment) -> list[list[str]]:
    """The data sets of a file that differ in nothing but their corpus, where there are several of a kind."""
    kinds: dict[str, list[str]] = {}
    for name, dataset in experiment.config.datasets.items():
        if dataset.corpus is not None:
            same = dataset.model_copy(update={"corpus": None, "ground_truth": str(experiment.at(dataset.ground_truth))})
            kinds.setdefault(same.model_dump_json(exclude={"build"}), []).append(name)
    return [names for names in kinds.values() if len(names) > 1]


def blocks_of(experiment: Experiment, evaluations: Mapping[str, Mapping[str, Evaluation]]) -> Iterator[Item]:
    """For each such kind: the means of every system on every corpus, best first, and what they gain on the baseline."""
    for names in sharing(experiment):
        rows = {(name, system): found for name in names for system, found in evaluations[name].items()}
        if len({name for name, _ in rows}) < 2:
            continue
        first = next(iter(rows.values()))
        yield f"{', '.join(names)}: one ground truth, {len(names)} corpora"
        yield ["dataset", "system", *map(first.label_of, first.metrics)], _lines(experiment, rows)
        yield from _doubts(first)
        compare, baseline = experiment.config.compare, experiment.baseline
        if compare is not None and (names[0], baseline) in rows:
            by_name = {f"{name}: {system}": found for (name, system), found in rows.items()}
            comparison = comparison_of(
                by_name, f"{names[0]}: {baseline}", experiment.settings, compare.metrics or _compared(experiment, first)
            )
            yield from items_of(comparison)
            yield from warnings(comparison)


def _compared(experiment: Experiment, first: Evaluation) -> list[str]:
    """What corpora are compared by: the primary metric, or those with a budget, else all."""
    primary = experiment.config.evaluate.primary
    if primary is not None:
        return [first.text_of(primary)]
    return [text for text, metric in first.metrics.items() if metric.budget] or list(first.metrics)


def _lines(experiment: Experiment, rows: Mapping[tuple[str, str], Evaluation]) -> list[list[Any]]:
    primary = experiment.config.evaluate.primary
    order = list(rows)
    if primary is not None:

        def worse(place: tuple[str, str]) -> tuple[bool, float]:
            found = rows[place]
            text = found.text_of(primary)
            mean = found.means[text]
            return math.isnan(mean), -mean if found.metrics[text].higher_is_better else mean

        order.sort(key=worse)
    return [[*place, *rows[place].means.values()] for place in order]


def _doubts(first: Evaluation) -> Iterator[str]:
    """A cutoff counts results, and chunks are not of one size."""
    counted = [first.label_of(text) for text, metric in first.metrics.items() if isinstance(metric.cutoff, int)]
    budgets = [first.label_of(text) for text, metric in first.metrics.items() if metric.budget]
    if counted and budgets:
        yield f"chunks differ in size: {', '.join(budgets)} give each corpus the same length of text, @k does not"
    elif counted:
        example = f"{counted[0].partition('@')[0]}@4000chars"
        yield f"chunks differ in size, and @k gives larger ones more text: add a metric with a budget ({example})"
