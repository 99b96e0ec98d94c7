"""The figures that a result can draw, by name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from groupgt.comparison.compare import Comparison
from groupgt.comparison.systems import Systems
from groupgt.evaluation.result import Evaluated
from groupgt.evaluation.thresholds import thresholds_of
from groupgt.render.drawing import Drawable
from groupgt.report import contrasts, slices, trials
from groupgt.report.curves import depth_curves, ecdf, precision_recall, units
from groupgt.report.means import forest
from groupgt.report.misses import groups_figure


def of_runs(evaluations: Iterable[Evaluated]) -> Drawable:
    """Return the available figures of runs by name."""
    return of_systems(Systems.of({each.name: each for each in evaluations}))


def of_systems(systems: Systems) -> Drawable:
    """Return the available figures by name."""
    drawings: Drawable = {"means": partial(forest, systems)}
    if systems.evaluations:
        drawings |= {"depth": partial(depth_curves, systems), "ecdf": partial(ecdf, systems)}
        if systems.first.truth.set_of is None:
            drawings["iprec"] = partial(precision_recall, systems)
        drawings["groups"] = partial(groups_figure, systems)
        for unit in units(systems):
            drawings[unit] = partial(depth_curves, systems, unit)
        if systems.first.truth.unanswerable.any():
            drawings["thresholds"] = lambda: thresholds_of(systems.every, [0.9]).plot()
        if systems.first.slicer.by:
            drawings["slices"] = partial(slices.figure, systems)
        if trials.vary(systems):
            drawings["trials"] = partial(trials.figure, systems)
    return drawings


def of_comparison(systems: Systems, comparison: Comparison) -> Drawable:
    """Return the available figures of a comparison by name. `systems` may use a different primary metric."""
    drawings = of_systems(systems)
    if len(systems.names) > 1:
        drawings |= {name: partial(draw, systems) for name, draw in contrasts.FIGURES.items()}
        drawings["power"] = lambda: comparison.power().plot()
    return drawings
