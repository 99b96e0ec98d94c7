"""The figures that evaluations of one ground truth can draw, from `Systems` to the tables of `render.figures`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.systems import Marks, Systems, known
from groupgt.metrics import views
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.hits import Ints
from groupgt.model.values import Budget
from groupgt.render import figures
from groupgt.render.drawing import Figure

# Where curves are drawn, as far as results go.
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
CURVES = ("recall", "complete", "ndcg")
# Groups in one heat map.
GROUPS = 40


def drawable(systems: Systems) -> dict[str, Callable[[], Figure]]:
    """The figures that can be drawn, by name."""
    found: dict[str, Callable[[], Figure]] = {"forest": lambda: forest(systems)}
    if systems.evaluations:
        found |= {"depth": lambda: depth(systems), "ecdf": lambda: ecdf(systems), "groups": lambda: groups(systems)}
        for unit in units(systems):
            found[unit] = lambda unit=unit: depth(systems, unit)  # type: ignore[misc]
        if systems.first.slicer.by:
            found["slices"] = lambda: slices(systems)
    return found


def forest(systems: Systems) -> Figure:
    """Means with their intervals."""
    rows = []
    for name in systems.names:
        low, high = systems.ends(name)
        rows.append({"name": name, "value": systems.mean(name), "low": low, "high": high, "kind": ""})
    return figures.forest(rows, systems.about(systems.label))


def units(systems: Systems) -> list[str]:
    """The units of budgets at which at least two cutoffs were evaluated."""
    budgets = {metric.budget for metric in systems.metrics.values() if metric.budget is not None}
    found = [each.unit for each in sorted(budgets, key=lambda each: (each.unit, each.amount))]
    return [unit for unit in dict.fromkeys(found) if found.count(unit) > 1]


def depth(systems: Systems, unit: str = "results") -> Figure:
    """Recall, complete and ndcg against k, or against the budgets of a unit that were evaluated."""
    shown = systems.shown()
    cutoffs: Sequence[int | Budget]
    if unit == "results":
        deepest = max(int(each.labelled.hits.length.max(initial=0)) for each in shown.values())
        cutoffs = [k for k in DEPTHS if k <= deepest] or [1]
    else:
        budgets = {metric.budget for metric in systems.metrics.values() if metric.budget is not None}
        own = [each for each in budgets if each.unit == unit]
        ordered = sorted(own, key=lambda each: each.amount)
        cutoffs = ordered
    curves = {curve: parse_metric(curve, systems.convention) for curve in CURVES}
    if systems.first.truth.set_of is not None:
        # Of alternatives that are needed together only the coverage of groups is defined.
        curves = {curve: parse_metric(curve, "coverage") for curve in CURVES[:2]}
    rows = []
    for name, each in shown.items():
        for curve, metric in curves.items():
            for cutoff in cutoffs:
                mean = known(_mean(systems, each, replace(metric, cutoff=cutoff)))
                amount = cutoff.amount if isinstance(cutoff, Budget) else cutoff
                rows.append({"system": name, "metric": curve, "k": amount, "value": mean})
    return figures.depth(rows, systems.about(", ".join(curves), _note(systems, shown)), unit)


def ecdf(systems: Systems) -> Figure:
    """By which rank the first hit, and all groups, have come."""
    shown = systems.shown()
    rows = []
    for name, each in shown.items():
        counts, hits = systems.counts(each), each.labelled.hits
        kinds = {"first hit": first_ranks(each), "all groups met": views.completion_ranks(hits)}
        for kind, ranks in kinds.items():
            rows += [{"system": name, "kind": kind, **point} for point in _steps(ranks[counts])]
    return figures.ecdf(rows, systems.about("rank", _note(systems, shown)))


def groups(systems: Systems, most: int = GROUPS) -> Figure:
    """Which groups are met, and at what rank, of the questions that say most."""
    marks = {name: Marks(each) for name, each in systems.evaluations.items()}
    first = next(iter(marks.values()))
    rows: list[dict[str, Any]] = []
    for at in systems.telling.tolist():
        if len(rows) >= most * len(marks):
            break
        met = {name: own.met(at) for name, own in marks.items()}
        for number, group in enumerate(first.groups(at)):
            label = f"{systems.qids[at]}: {group['name']}"
            rows += [{"group": label, "system": name, "rank": own.get(number)} for name, own in met.items()]
    whole = len(systems.first.truth.group_query) <= most
    note = "" if whole else "those of the queries on which systems differ most"
    return figures.group_ranks(rows, systems.about("rank of the first hit", note))


def slices(systems: Systems) -> Figure:
    """The mean of each system in each slice."""
    rows = []
    for place, part in enumerate(systems.first.slices):
        label = slice_label(part["by"], part["value"], part["queries"])
        for name, each in systems.evaluations.items():
            value = known(each.slices[place]["means"][systems.primary])
            rows.append({"slice": label, "system": name, "value": value, "queries": part["queries"]})
    return figures.slices(rows, systems.about(systems.label))


def slice_label(by: str, value: str, questions: int) -> str:
    """What figures call a slice."""
    return f"{by} = {value} ({questions:,})"


def first_ranks(evaluation: Evaluation) -> Ints:
    """The rank of the first relevant result of each question, shape (Q,); 0 if there is none."""
    rows = views.met_groups(evaluation.labelled.hits)
    far = np.iinfo(np.int64).max
    first = np.full(evaluation.labelled.hits.size, far, dtype=np.int64)
    np.minimum.at(first, rows.query, rows.rank)
    return np.where(first == far, 0, first)


def _mean(systems: Systems, evaluation: Evaluation, metric: Metric) -> float:
    """The mean of any metric over the questions that count."""
    counts = systems.counts(evaluation)
    return float(metric.values(evaluation.labelled.hits)[counts].mean()) if counts.any() else math.nan


def _steps(ranks: Ints) -> list[dict[str, Any]]:
    """The steps of the share of questions by rank; ranks of 0 never come."""
    if not len(ranks):
        return []
    distinct, counts = np.unique(ranks[ranks > 0], return_counts=True)
    shares = np.cumsum(counts) / len(ranks)
    points = [{"rank": rank, "share": share} for rank, share in zip(distinct.tolist(), shares.tolist())]
    if not points or points[0]["rank"] > 1:
        points.insert(0, {"rank": 1, "share": 0.0})
    return points


def _note(systems: Systems, shown: Mapping[str, Evaluation]) -> str:
    hidden = len(systems.evaluations) - len(shown)
    return f"{len(shown):,} of {len(systems.evaluations):,} systems" if hidden else ""
