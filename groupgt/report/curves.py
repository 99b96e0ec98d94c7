"""Draw metrics against depth and against swept options, and first hits and complete queries by rank."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from groupgt.comparison.systems import Systems, finite
from groupgt.errors import ConfigError
from groupgt.evaluation.curves import cumulative, depths_of, mean_at, precision_by_recall, ranks_reached
from groupgt.evaluation.result import Evaluated
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.values import Budget
from groupgt.render import figures, tradeoffs
from groupgt.render.drawing import Figure
from groupgt.report.means import about

if TYPE_CHECKING:
    from groupgt.experiment.outcome import Outcome

CURVES = ("recall", "complete", "ndcg")
# Maximum number of systems in these figures.
LINES = 8


def shown_systems(systems: Systems, subject: str = "") -> dict[str, Evaluated]:
    """Select the systems to draw: those to highlight, and the first of the others."""
    names = list(dict.fromkeys([*_named(systems, subject), *systems.names]))[:LINES]
    return {name: each for name, each in systems.evaluations.items() if name in names}


def units(systems: Systems) -> list[str]:
    """Return the budget units with at least two evaluated cutoffs."""
    names = [budget.unit for budget in _budgets(systems)]
    return [unit for unit in dict.fromkeys(names) if names.count(unit) > 1]


def _budgets(systems: Systems) -> list[Budget]:
    budgets = {metric.budget for metric in systems.metrics.values() if metric.budget is not None}
    return sorted(budgets, key=lambda each: (each.unit, each.amount))


def depth_curves(systems: Systems, unit: str = "results", metrics: Sequence[Metric] = (), subject: str = "") -> Figure:
    """Draw metrics (default: recall, complete and ndcg) against k, or against the evaluated budgets in a given unit."""
    shown = shown_systems(systems, subject)
    cutoffs: Sequence[int | Budget] = depths_of(shown.values())
    if unit != "results":
        cutoffs = [budget for budget in _budgets(systems) if budget.unit == unit]
    # For alternatives that are needed together, only the coverage of groups is defined.
    has_sets = systems.first.truth.set_of is not None
    names, convention = (CURVES[:2], "coverage") if has_sets else (CURVES, systems.convention)
    curves = {curve: parse_metric(curve, convention) for curve in names}
    if metrics:
        if fixed := [str(metric) for metric in metrics if not metric.definition.takes_cutoff]:
            raise ConfigError(f"{', '.join(fixed)}: metrics without a cutoff cannot be plotted against depth")
        uncut_metrics = [replace(metric, cutoff=None) for metric in metrics]
        curves = {metric.short(systems.convention): metric for metric in uncut_metrics}
    rows = []
    for name, each in shown.items():
        for curve, metric in curves.items():
            for cutoff in cutoffs:
                mean = finite(mean_at(each, replace(metric, cutoff=cutoff)))
                amount = cutoff.amount if isinstance(cutoff, Budget) else cutoff
                rows.append({"system": name, "metric": curve, "k": amount, "value": mean})
    return figures.depth(rows, about(systems, ", ".join(curves), _note(systems, shown)), unit, _named(systems, subject))


def ecdf(systems: Systems, subject: str = "") -> Figure:
    """Draw, by rank, the fraction of queries that have a first hit and the fraction that are complete."""
    shown = shown_systems(systems, subject)
    rows: list[dict[str, Any]] = []
    for name, each in shown.items():
        reached, weights = ranks_reached(each)
        for kind, ranks in reached.items():
            shares = cumulative(ranks, weights)
            rows += [{"system": name, "kind": kind, "rank": rank, "share": share} for rank, share in shares]
    return figures.ecdf(rows, about(systems, "rank", _note(systems, shown)), _named(systems, subject))


def precision_recall(systems: Systems) -> Figure:
    """Draw interpolated precision at eleven recall levels."""
    shown = shown_systems(systems)
    rows = []
    for name, each in shown.items():
        for recall, precision in precision_by_recall(each):
            rows.append({"system": name, "recall": recall, "precision": finite(precision)})
    return figures.precision_recall(rows, about(systems, "iprec", _note(systems, shown)), _named(systems))


def _named(systems: Systems, subject: str = "") -> list[str]:
    """Return the systems to highlight if there are many: the subject (default: the best system) and the baseline."""
    return list(dict.fromkeys([name for name in (subject or systems.best, *systems.always) if name]))


def _note(systems: Systems, shown: Mapping[str, Evaluated]) -> str:
    hidden = len(systems.evaluations) - len(shown)
    return f"{len(shown):,} of {len(systems.evaluations):,} systems" if hidden else ""


def sweeps(outcome: Outcome, systems: Systems) -> dict[str, Figure]:
    """Return a figure for each entry in the file that sweeps one or two options."""
    entries = {family: config.matrix for family, config in outcome.experiment.config.systems.items()}
    families = {name: outcome.experiment.systems[name].family for name in systems.names}
    options = {}
    for name, family in families.items():
        given = outcome.experiment.systems[name].options
        options[name] = {key: getattr(given, key) for key in entries[family]}
    return sweeps_of(systems, entries, families, options)


def sweeps_of(
    systems: Systems,
    entries: Mapping[str, Mapping[str, Sequence[Any]]],
    families: Mapping[str, str],
    options: Mapping[str, Mapping[str, Any]],
) -> dict[str, Figure]:
    """Draw a figure for each entry that sweeps options. `families` and `options` are keyed by system name."""
    swept: dict[str, Figure] = {}
    stated = about(systems)
    for family, matrix in entries.items():
        keys = [key for key, values in matrix.items() if len(values) > 1]
        members = [name for name in systems.names if families.get(name) == family]
        if len(members) < 2 or len(keys) not in (1, 2):
            continue
        axes = dict(zip(("x", "y"), keys))
        rows = []
        for name in members:
            low, high = systems.ends(name)
            row = {"family": family, "value": systems.mean(name), "low": low, "high": high}
            rows.append(row | {axis: _plain(options[name][key]) for axis, key in axes.items()})
        # In the order of the file's lists.
        order = {axis: list(map(_plain, matrix[key])) for axis, key in axes.items()}
        rows.sort(key=lambda row: [[*values, row[axis]].index(row[axis]) for axis, values in order.items()])
        swept[f"sweep {family}"] = tradeoffs.sweep(rows, stated, [f"{key} of {family}" for key in keys])
    return swept


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else json.dumps(value)
