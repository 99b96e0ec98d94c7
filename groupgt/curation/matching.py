"""Matches the groups of two annotators by shared passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints


@dataclass(frozen=True)
class GroupPair:
    """A group from the first annotator and its match from the second, either of which may be None."""

    qid: str
    first: str | None
    second: str | None
    both: int
    only_first: int
    only_second: int
    neither: int


def group_pairs(first: GroundTruth, second: GroundTruth) -> list[GroupPair]:
    """Find the best matching of groups for every query that both annotators judged, most disagreement first.

    The matching maximizes the number of shared passages. Groups without shared passages are not matched.
    """
    pairs: list[GroupPair] = []
    for qid in (qid for qid in first.qids if qid in second.index):
        (one, names), (two, others) = _groups(first, qid), _groups(second, qid)
        judged = len({*judged_ids(first, qid), *judged_ids(second, qid)})
        for at, other in matching(one, two):
            left = one[at] if at is not None else set()
            right = two[other] if other is not None else set()
            counts = (len(left & right), len(left - right), len(right - left), judged - len(left | right))
            labels = (None if at is None else names[at], None if other is None else others[other])
            pairs.append(GroupPair(qid, *labels, *counts))
    return sorted(pairs, key=lambda pair: -(pair.only_first + pair.only_second))


def _groups(truth: GroundTruth, qid: str) -> tuple[list[set[str]], list[str]]:
    """Return the relevant passages and the labels of a query's groups."""
    groups = truth.relevant_groups[truth.group_query[truth.relevant_groups] == truth.index[qid]].tolist()
    members = [{truth.ids[alternative] for alternative in truth.relevant_in(group)} for group in groups]
    return members, list(map(truth.group_label, groups))


def judged_ids(truth: GroundTruth, qid: str) -> list[str]:
    """Return the ids judged for a query. An id that belongs to several groups is repeated."""
    return [truth.ids[row] for row in np.flatnonzero(truth.query_of == truth.index[qid]).tolist()]


def matching(first: Sequence[set[str]], second: Sequence[set[str]]) -> list[tuple[int | None, int | None]]:
    """Pair sets to maximize the number of shared elements. Sets without a counterpart are paired with None."""
    sizes = [len(one & two) for one in first for two in second]
    shared = np.array(sizes, dtype=np.int64).reshape(len(first), len(second))
    chosen = _assigned(shared)
    pairs: list[tuple[int | None, int | None]] = [
        (at, chosen[at] if at in chosen and shared[at, chosen[at]] else None) for at in range(len(first))
    ]
    taken = {other for _, other in pairs}
    return pairs + [(None, other) for other in range(len(second)) if other not in taken]


def _assigned(value: Ints) -> dict[int, int]:
    """Find the assignment of rows to columns with the largest sum, by shortest augmenting paths (Kuhn 1955)."""
    if value.shape[0] > value.shape[1]:
        return {row: column for column, row in _assigned(value.T).items()}
    rows, columns = value.shape
    cost = -value.astype(float)
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    row_of = np.zeros(columns + 1, dtype=np.int64)  # from 1; 0: free
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        least, back = np.full(columns + 1, np.inf), np.zeros(columns + 1, dtype=np.int64)
        used = np.zeros(columns + 1, dtype=np.bool_)
        while True:
            used[column] = True
            at = row_of[column]
            reduced = cost[at - 1] - row_price[at] - column_price[1:]
            better = ~used[1:] & (reduced < least[1:])
            least[1:][better] = reduced[better]
            back[1:][better] = column
            following = int(np.argmin(np.where(used, np.inf, least)))
            step = least[following]
            row_price[row_of[used]] += step
            column_price[used] -= step
            least[~used] -= step
            column = following
            if row_of[column] == 0:
                break
        while column:
            row_of[column] = row_of[back[column]]
            column = int(back[column])
    return {int(row_of[column]) - 1: column - 1 for column in range(1, columns + 1) if row_of[column]}
