"""The greedy ideal ranking of the diversity metrics, as ndeval builds it."""

from __future__ import annotations

import heapq

import numpy as np

from groupgt.metrics import discounts
from groupgt.metrics.ideal import Path
from groupgt.model.hits import Floats, Ints, Judgments
from groupgt.model.sums import total

__all__ = ["greedy"]

# Queries with more documents than this are gone through one by one.
SMALL = 64


def greedy(judgments: Judgments, alpha: float) -> Path:
    """ndeval's ideal: always the document of the largest Σ_g (1−α)^(hits of g so far), equal gains by greatest id."""
    return judgments.once(("greedy", alpha), lambda: _greedy(judgments, alpha))


def _greedy(judgments: Judgments, alpha: float) -> Path:
    rows = np.flatnonzero(judgments.alternative_group >= 0)
    order = judgments.once("byte order", judgments.byte_order)
    place = order[judgments.alternative_document[rows]]
    # Documents numbered by query and byte order: in a tie the last one is the greatest.
    distinct, document = _dense(place, judgments.documents)
    query = np.zeros(len(distinct), dtype=np.int64)
    query[document] = judgments.alternative_query[rows]
    group = judgments.alternative_group[rows]
    large = np.bincount(query, minlength=judgments.size) > SMALL
    parts = []
    for each in np.flatnonzero(large):
        own = query[document] == each
        parts.append(_greedy_one(int(each), document[own], group[own], alpha))
    small = ~large[query[document]]
    parts.append(_greedy_all(query, document[small], group[small], alpha, len(judgments.group_query)))
    joined = Path(*(np.concatenate(columns) for columns in zip(*((p.query, p.rank, p.gain) for p in parts))))
    order = np.lexsort((joined.rank, joined.query))
    return Path(joined.query[order], joined.rank[order], joined.gain[order])


def _dense(numbers: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct numbers below `size`, ascending, and the place of each number among them, without sorting."""
    used = np.zeros(size, dtype=np.bool_)
    used[numbers] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]


def _greedy_all(query: Ints, document: Ints, group: Ints, alpha: float, groups: int) -> Path:
    """All queries take a step at a time."""
    found = np.zeros(groups, dtype=np.int64)
    queries: list[Ints] = []
    ranks: list[Ints] = []
    gains: list[Floats] = []
    rank = 0
    several = bool(len(document)) and int(np.bincount(document).max()) > 2
    while len(document):
        rank += 1
        alive, local = _dense(document, len(query))
        # Added up in one order for all, so that equal sets of hits are equal gains to the bit.
        if several:
            order = np.lexsort((found[group], local))
            local, document, group = local[order], document[order], group[order]
        gain = total(local, discounts.power(1 - alpha, found[group]), len(alive))
        owner = query[alive]
        starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
        best = np.maximum.reduceat(gain, starts)
        number = np.cumsum(np.concatenate(([True], owner[1:] != owner[:-1]))) - 1
        is_best = np.flatnonzero(gain == best[number])
        pick = np.zeros(len(starts), dtype=np.int64)
        pick[number[is_best]] = is_best
        taken = np.zeros(len(alive), dtype=np.bool_)
        taken[pick] = True
        queries.append(owner[starts])
        ranks.append(np.full(len(starts), rank, dtype=np.int64))
        gains.append(best)
        gone = taken[local]
        np.add.at(found, group[gone], 1)
        document, group = document[~gone], group[~gone]
    if not queries:
        return Path(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Path(np.concatenate(queries), np.concatenate(ranks), np.concatenate(gains))


def _greedy_one(query: int, document: Ints, group: Ints, alpha: float) -> Path:
    """One query with very many documents: those in the same groups gain the same, so a heap of such sets is enough."""
    memberships: dict[int, list[int]] = {}
    for each, its in zip(document.tolist(), group.tolist()):
        memberships.setdefault(each, []).append(its)
    alike: dict[tuple[int, ...], list[int]] = {}
    for each in sorted(memberships):
        alike.setdefault(tuple(sorted(memberships[each])), []).append(each)
    found = dict.fromkeys(group.tolist(), 0)

    def gain_now(groups: tuple[int, ...]) -> float:
        return float(sum((1 - alpha) ** count for count in sorted(found[its] for its in groups)))

    heap = [(-gain_now(groups), -stack[-1], groups) for groups, stack in alike.items()]
    heapq.heapify(heap)
    gains: list[float] = []
    while heap:
        negative, place, groups = heapq.heappop(heap)
        gain = gain_now(groups)
        if gain != -negative:
            heapq.heappush(heap, (-gain, place, groups))
            continue
        gains.append(gain)
        for its in groups:
            found[its] += 1
        alike[groups].pop()
        if alike[groups]:
            heapq.heappush(heap, (-gain_now(groups), -alike[groups][-1], groups))
    size = len(gains)
    return Path(np.full(size, query, dtype=np.int64), np.arange(1, size + 1, dtype=np.int64), np.array(gains))
