"""Implements the policy unjudged=drop: condensed lists, which are rankings without unjudged results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from groupgt.engines.base import Flat, Labelled, Ranking
from groupgt.errors import ConfigError
from groupgt.labellers.base import Labeller
from groupgt.metrics.views import changes
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools
from groupgt.model.policy import Policy


def check_condensed(policy: Policy, labeller: Labeller) -> None:
    """Raise `ConfigError` if the policy drops unjudged results, but ids do not identify them."""
    if policy.unjudged == "drop" and labeller.name != "id":
        raise ConfigError(
            f"unjudged=drop compares ids, and with the labeller {labeller.name} a result of any id may be relevant; "
            "choose unjudged=nonrelevant, or the labeller id"
        )


def condensed(labelled: Labelled, truth: GroundTruth) -> Labelled:
    """Remove unjudged results, but keep the original hits. Raises `ConfigError` if this would be misleading."""
    if truth.is_relevant.all():
        raise ConfigError(
            "unjudged=drop: no document of the ground truth is judged non-relevant, so only relevant results would "
            "remain, and precision and MRR would be 1; choose unjudged=nonrelevant"
        )
    hits = labelled.hits
    starts = changes(hits.query, hits.rank)
    length = np.bincount(hits.query[starts], minlength=hits.size)
    before = np.cumsum(length) - length
    width = int(hits.length.max(initial=0)) + 1
    places = (hits.query * width + hits.rank)[starts]
    tied = labelled.tie_query
    first = np.searchsorted(places, tied * width + labelled.tie_first)
    last = np.searchsorted(places, tied * width + labelled.tie_last, side="right")
    return replace(
        labelled,
        hits=replace(hits, rank=np.cumsum(starts) - before[hits.query], length=length),
        tie_first=first - before[tied] + 1,
        tie_last=last - before[tied],
        uncondensed=hits,
    )


def condensed_flat(flat: Flat, truth: GroundTruth, policy: Policy) -> Flat:
    """Return only the rows of judged results if the policy drops unjudged results, otherwise all rows."""
    if policy.unjudged != "drop":
        return flat
    judged = np.array([name in truth.id_sets[at] for at, name in zip(flat.query.tolist(), flat.ids)], dtype=np.bool_)
    fields = {name: _chosen(column, judged) for name, column in flat.fields.items()}
    return Flat(flat.query[judged], _chosen(flat.ids, judged), fields)


def condensed_ranking(ranking: Ranking, truth: GroundTruth, qid: str, policy: Policy) -> Ranking:
    """Return only the judged results of a query if the policy drops unjudged results, otherwise all results."""
    if policy.unjudged != "drop":
        return ranking
    ids, scores = ranking
    judged = [name in truth.id_sets[truth.index[qid]] for name in ids]
    return list(compress(ids, judged)), None if scores is None else list(compress(scores, judged))


def _chosen(column: Any, mask: Bools) -> Any:
    if isinstance(column, np.ndarray):
        return column[mask]
    chosen: Sequence[Any] = list(compress(column, mask.tolist()))
    return chosen
