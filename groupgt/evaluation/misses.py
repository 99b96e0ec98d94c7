"""Finds the groups that a run misses, the worst queries, and coverage by group number; `Misses` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, Faults, display
from groupgt.metrics import views
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.validity import is_integer
from groupgt.model.values import total


def groups_of(truth: GroundTruth, trials: Sequence[Hits], query: int, top: int) -> list[dict[str, Any]]:
    """Return the groups of one query as plain Python: `group`, `rank`, `covered` and `alternatives`.

    With several trials, the rank is that of the first, `covered` means in all of them, and `covered_trials` and
    `trials` count them.
    """
    of_query = views.part_of(truth.judgments.group_query, query)
    ranks = np.stack([hits.first_ranks[of_query] for hits in trials])
    times = ((ranks > 0) & (ranks <= top)).sum(axis=0)
    return [
        {
            "group": truth.group_label(group),
            "rank": rank or None,
            "covered": covered == len(trials),
            "alternatives": [name for name, _ in truth.alternatives_of(group)],
            **({"covered_trials": covered, "trials": len(trials)} if len(trials) > 1 else {}),
        }
        for group, rank, covered in zip(truth.relevant_groups[of_query].tolist(), ranks[0].tolist(), times.tolist())
    ]


def check_misses(k: int, worst: int) -> None:
    """Raise `ConfigError` for invalid numbers."""
    faults = Faults()
    for option, value in (("k", k), ("worst", worst)):
        if not is_integer(value) or value < 1:
            faults.add(option, f"expected a whole number above 0, found {display(value)}")
    faults.stop(ConfigError)


def worst_first(trials: Sequence[Hits], counts: Bools, k: int) -> tuple[Ints, Floats]:
    """Return the queries in `counts` that are not complete within k in every trial, and the coverage of every query.

    The queries are sorted by covered weight, then by how late their groups are hit, both averaged over trials.
    """
    judgments, size = trials[0].judgments, trials[0].size
    rank, covered = np.stack([hits.first_ranks for hits in trials]), np.stack([hits.covered(k) for hits in trials])
    weight = total(judgments.group_query, judgments.weight * covered.mean(axis=0), size)
    coverage = np.divide(weight, judgments.total_weight, out=np.ones(size), where=judgments.total_weight > 0)
    earliness = total(judgments.group_query, ((rank > 0) / np.maximum(rank, 1)).mean(axis=0), size)
    complete = np.bincount(judgments.group_query[covered.all(axis=0)], minlength=size) == judgments.groups
    incomplete = np.flatnonzero(counts & ~complete)
    return incomplete[np.lexsort((incomplete, earliness[incomplete], coverage[incomplete]))], coverage


def coverage_by_number(trials: Sequence[Hits], counts: Bools, k: int) -> list[dict[str, Any]]:
    """Return, for each group number within a query, the share of groups covered within k and at any rank.

    With several trials, it is averaged over them.
    """
    number = views.nth(trials[0].judgments.group_query)
    of_counted = counts[trials[0].judgments.group_query]
    most = int(number.max(initial=0)) + 1
    covered, anywhere = (
        np.sum(masks, axis=0) for masks in zip(*((hits.covered(k), hits.first_ranks > 0) for hits in trials))
    )
    weights = (np.ones(len(number)), covered, anywhere)
    columns = [np.bincount(number, of_counted * weight, minlength=most).tolist() for weight in weights]
    return [
        {
            "number": nth,
            "groups": int(size),
            "covered": within / size / len(trials),
            "anywhere": anywhere / size / len(trials),
        }
        for nth, (size, within, anywhere) in enumerate(zip(*columns))
        if size
    ]


def harmful_results(truth: GroundTruth, hits: Hits, k: int) -> list[dict[str, Any]]:
    """Return the harmful results within k as plain Python: `qid`, `rank` and `id`, repeats included."""
    rows = np.flatnonzero(hits.harmful & (hits.rank <= k))
    columns = (column[rows].tolist() for column in (hits.query, hits.rank, hits.alternative))
    return [{"qid": truth.qids[query], "rank": rank, "id": truth.ids[at]} for query, rank, at in zip(*columns)]
