"""Orders, labels and measures the results of a run, locally or on a cluster worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from groupgt.engines.base import Labelled
from groupgt.engines.budgets import depths
from groupgt.engines.calls import in_call_order
from groupgt.engines.carriers import local_carrier_of
from groupgt.engines.choice import Engine
from groupgt.engines.excluded import without_excluded
from groupgt.engines.order import with_distances
from groupgt.errors import DataError
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.values import Budget, Lengths


def in_order(truth: GroundTruth, run: Run, *, ascending: bool) -> Run:
    """Return a run ordered by its scores and calls, without the results that the ground truth excludes."""
    return without_excluded(truth, ordered(run, ascending=ascending))


def ordered(run: Run, *, ascending: bool) -> Run:
    """Return a run ordered by its scores, which may be distances, and by its calls."""
    return in_call_order(with_distances(run) if ascending else run)


def measured(
    truth: GroundTruth,
    run: Run,
    labeller: Labeller,
    policy: Policy,
    engine: Engine,
    lengths: Lengths | None = None,
    budgets: Collection[Budget] = (),
    contents: tuple[GroundTruth, Mapping[str, str]] | None = None,
    *,
    in_part: bool = False,
) -> Labelled:
    """Label local results, including unjudged ones. The hits include how many results fit each budget.

    `contents` has the ground truth before the labeller read it, and texts by id, for metrics over contents.
    """
    if not (run.by_original_ids.has_ids or labeller.compares_texts):
        what = f"not all of these results have ids, and the {labeller.name} labeller needs ids"
        raise DataError(f"{run.title}: {what}; match them by passage text (--labeller text), or add ids")
    labelled = local_carrier_of(run, "labelling").label(truth, labeller, policy, engine)
    prefixes = depths(truth, run, policy, lengths or Lengths(), budgets, in_part=in_part) if budgets else {}
    scores = None
    if contents is not None:
        from groupgt.engines.contents import contents_of

        scores = contents_of(contents[0], run, policy, contents[1])
    return replace(labelled, hits=replace(labelled.hits, prefixes=prefixes, contents=scores))
