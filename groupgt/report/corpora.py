"""What is said of data sets that differ only in their corpus: one ground truth, several chunk sizes, in one table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from groupgt.comparison.compare import comparison_of
from groupgt.comparison.systems import finite
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.outcome import Outcome
from groupgt.options import as_dict
from groupgt.render.document import Item
from groupgt.render.page.data import Sentence
from groupgt.render.tables import fixed
from groupgt.report.comparison import items
from groupgt.report.contrasts import warnings

# Systems of which it is told on which data set they do best.
SYSTEMS = 3


def sentences(outcome: Outcome) -> Iterator[Sentence]:
    """On which data set a system reaches most, and least, by the primary metric."""
    sets = {name: by_system for name, by_system in outcome.evaluations.items() if by_system}
    primary = outcome.experiment.config.evaluate.primary
    truths = {next(iter(by_system.values())).truth.digest for by_system in sets.values()}
    if len(sets) < 2 or len(truths) > 1 or primary is None:
        return
    first = next(iter(next(iter(sets.values())).values()))
    text = first.text_of(primary)
    label, higher = first.label_of(text), first.metrics[text].higher_is_better
    for system in list(dict.fromkeys(name for by_system in sets.values() for name in by_system))[:SYSTEMS]:
        means = {name: finite(each[system].means[text]) for name, each in sets.items() if system in each}
        ordered = sorted(
            ((mean, name) for name, mean in means.items() if mean is not None), key=lambda each: each[0], reverse=higher
        )
        if len(ordered) > 1 and fixed(ordered[0][0]) != fixed(ordered[-1][0]):
            (most, best), (least, worst) = ordered[0], ordered[-1]
            parts = ["", system, " does best on the data set ", best, f" ({label} {fixed(most)}), and worst on "]
            yield {"kind": "note", "parts": [*parts, worst, f" ({fixed(least)}); the queries are the same."]}


def sharing(experiment: Experiment) -> list[list[str]]:
    """The data sets of a file that differ in nothing but their corpus, where there are several of a kind."""
    kinds: dict[str, list[str]] = {}
    for name, dataset in experiment.config.datasets.items():
        if dataset.corpus is not None:
            truth = str(experiment.at(dataset.ground_truth))
            same = as_dict(replace(dataset, corpus=None, ground_truth=truth, build=None))
            kinds.setdefault(json.dumps(same, sort_keys=True), []).append(name)
    return [names for names in kinds.values() if len(names) > 1]


def blocks(experiment: Experiment, evaluations: Mapping[str, Mapping[str, Evaluation]]) -> Iterator[Item]:
    """For each such kind: the means of every system on every corpus, best first, and what they gain on the baseline."""
    for names in sharing(experiment):
        rows = {(name, system): each for name in names for system, each in evaluations[name].items()}
        if len({name for name, _ in rows}) < 2:
            continue
        first = next(iter(rows.values()))
        yield f"{', '.join(names)}: one ground truth, {len(names)} corpora"
        yield ["dataset", "system", *map(first.label_of, first.metrics)], _lines(experiment, rows)
        yield from _doubts(first)
        compare, baseline = experiment.config.compare, experiment.baseline
        if compare is not None and (names[0], baseline) in rows:
            by_name = {f"{name}: {system}": each for (name, system), each in rows.items()}
            comparison = comparison_of(
                by_name, f"{names[0]}: {baseline}", experiment.settings, compare.metrics or _compared(experiment, first)
            )
            yield from items(comparison)
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
            evaluation = rows[place]
            text = evaluation.text_of(primary)
            mean = evaluation.means[text]
            return math.isnan(mean), -mean if evaluation.metrics[text].higher_is_better else mean

        order.sort(key=worse)
    return [[*place, *rows[place].means.values()] for place in order]


def _doubts(first: Evaluation) -> Iterator[str]:
    """A cutoff counts results, and chunks are not of one size."""
    counts = [first.label_of(text) for text, metric in first.metrics.items() if isinstance(metric.cutoff, int)]
    budgets = [first.label_of(text) for text, metric in first.metrics.items() if metric.budget]
    if counts and budgets:
        yield f"chunks differ in size: {', '.join(budgets)} give each corpus the same length of text, @k does not"
    elif counts:
        example = f"{counts[0].partition('@')[0]}@4000chars"
        yield f"chunks differ in size, and @k gives larger ones more text: add a metric with a budget ({example})"
