"""Finds the groups that a run misses, the worst queries, and coverage by group number; `Misses` shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from groupgt.errors import ConfigError, Faults, display
from groupgt.metrics import views
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Hits, Ints
from groupgt.model.validity import is_integer
from groupgt.model.values import total


def groups_of(truth: GroundTruth, hits: Hits, query: int, top: int) -> list[dict[str, Any]]:
    """Return the groups of one query as plain Python: `group`, `rank`, `covered` and `alternatives`."""
    ranks = hits.first_ranks
    of_query = views.part_of(truth.judgments.group_query, query)
    return [
        {
            "group": truth.group_label(group),
            "rank": rank or None,
            "covered": 0 < rank <= top,
            "alternatives": [name for name, _ in truth.alternatives_of(group)],
        }
        for group, rank in zip(truth.relevant_groups[of_query].tolist(), ranks[of_query].tolist())
    ]


def check_misses(k: int, worst: int) -> None:
    """Raise `ConfigError` for invalid numbers."""
    faults = Faults()
    for option, value in (("k", k), ("worst", worst)):
        if not is_integer(value) or value < 1:
            faults.add(option, f"expected a whole number above 0, found {display(value)}")
    faults.stop(ConfigError)


def worst_first(hits: Hits, counts: Bools, k: int) -> tuple[Ints, Floats]:
    """Return the queries in `counts` that are not complete within k, and the coverage of every query.

    The queries are sorted by covered weight, then by how late their groups are hit.
    """
    judgments = hits.judgments
    rank, covered = hits.first_ranks, hits.covered(k)
    weight = total(judgments.group_query, judgments.weight * covered, hits.size)
    coverage = np.divide(weight, judgments.total_weight, out=np.ones(hits.size), where=judgments.total_weight > 0)
    earliness = total(judgments.group_query, (rank > 0) / np.maximum(rank, 1), hits.size)
    complete = np.bincount(judgments.group_query[covered], minlength=hits.size) == judgments.groups
    incomplete = np.flatnonzero(counts & ~complete)
    return incomplete[np.lexsort((incomplete, earliness[incomplete], coverage[incomplete]))], coverage


def coverage_by_number(hits: Hits, counts: Bools, k: int) -> list[dict[str, Any]]:
    """Return, for each group number within a query, the share of groups covered within k and at any rank."""
    number = views.nth(hits.judgments.group_query)
    of_counted = counts[hits.judgments.group_query]
    most = int(number.max(initial=0)) + 1
    masks = of_counted, of_counted & hits.covered(k), of_counted & (hits.first_ranks > 0)
    columns = [np.bincount(number[mask], minlength=most).tolist() for mask in masks]
    return [
        {"number": nth, "groups": size, "covered": within / size, "anywhere": anywhere / size}
        for nth, (size, within, anywhere) in enumerate(zip(*columns))
        if size
    ]


def harmful_results(truth: GroundTruth, hits: Hits, k: int) -> list[dict[str, Any]]:
    """Return the harmful results within k as plain Python: `qid`, `rank` and `id`, repeats included."""
    rows = np.flatnonzero(hits.harmful & (hits.rank <= k))
    columns = (column[rows].tolist() for column in (hits.query, hits.rank, hits.alternative))
    return [{"qid": truth.qids[query], "rank": rank, "id": truth.ids[at]} for query, rank, at in zip(*columns)]
