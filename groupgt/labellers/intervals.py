"""Joins of intervals: which of these overlap which of those, without comparing each with each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groupgt.model.hits import Ints

__all__ = ["first_covered", "overlapping"]

# So many pairs are looked at at a time.
BLOCK = 4_000_000


def overlapping(
    left_key: Ints, left_start: Ints, left_end: Ints, right_key: Ints, right_start: Ints, right_end: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs (left, right) of half-open intervals with one key that overlap, in blocks, each pair once.

    Two intervals overlap when the right one starts within the left one, or the left one starts behind the start of the
    right one and before its end; starts being sorted, each of the two is a range. Keys are from 0; empty intervals
    overlap nothing.

    >>> one = lambda *values: np.array(values)
    >>> [pair] = overlapping(one(0), one(3), one(7), one(0, 0, 1), one(5, 7, 5), one(9, 8, 9))
    >>> [each.tolist() for each in pair]
    [[0], [0]]
    """
    points = np.unique(np.concatenate((left_start, left_end, right_start, right_end)))
    # Numbered closely, so that no code overflows.
    _, keys = np.unique(np.concatenate((left_key, right_key)), return_inverse=True)
    left_key, right_key = keys[: len(left_key)], keys[len(left_key) :]

    def coded(key: Ints, value: Ints) -> Ints:
        return key * len(points) + np.searchsorted(points, value)

    starts, ends = coded(left_key, left_start), coded(left_key, left_end)
    other_starts, other_ends = coded(right_key, right_start), coded(right_key, right_end)
    order = np.argsort(other_starts, kind="stable")
    for own, other in _ranges(starts, ends, other_starts[order], "left"):
        yield own, order[other]
    order = np.argsort(starts, kind="stable")
    for own, other in _ranges(other_starts, other_ends, starts[order], "right"):
        yield order[other], own


def _ranges(start: Ints, end: Ints, points: Ints, side: str) -> Iterator[tuple[Ints, Ints]]:
    """(interval, place) for all sorted points from its start to before its end; `right`: not those at its start."""
    low = np.searchsorted(points, start, side="right" if side == "right" else "left")
    count = np.maximum(np.searchsorted(points, end, side="left") - low, 0)
    total = np.concatenate(([0], np.cumsum(count)))
    first = 0
    while first < len(start):
        last = max(int(np.searchsorted(total, total[first] + BLOCK, side="right")) - 1, first + 1)
        own = np.repeat(np.arange(first, last), count[first:last])
        within = np.arange(len(own)) - np.repeat(total[first:last] - total[first], count[first:last])
        if len(own):
            yield own, low[own] + within
        first = last


def first_covered(owner: Ints, low: Ints, high: Ints, need: Ints) -> tuple[Ints, Ints]:
    """Where pieces that come one after the other first cover `need[owner]` of their owner together.

    Returns (row, owner) of those that do. The union of pieces is cut at every bound; each part belongs to the first
    piece that covers it, and parts are added up in the order of pieces.

    >>> one = lambda *values: np.array(values)
    >>> row, owner = first_covered(one(0, 0, 0), one(0, 2, 8), one(4, 5, 9), one(6))
    >>> row.tolist(), owner.tolist()
    ([2], [0])
    """
    points = np.unique(np.concatenate((low, high)))
    size = len(points)
    begin, end = (owner * size + np.searchsorted(points, value) for value in (low, high))
    bounds = np.unique(np.concatenate((begin, end)))
    first, last = np.searchsorted(bounds, begin), np.searchsorted(bounds, end)
    rows: list[Ints] = []
    parts: list[Ints] = []
    covered = np.zeros(len(bounds), dtype=np.bool_)
    for row, part in _pieces(first, last):
        # Of each part the first piece: pieces come in their order, and assigning backwards leaves the first.
        fresh = ~covered[part]
        row, part = row[fresh], part[fresh]
        part, place = np.unique(part, return_index=True)
        rows.append(row[place])
        parts.append(part)
        covered[part] = True
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    row, part = np.concatenate(rows), np.concatenate(parts)
    length = points[bounds[part + 1] % size] - points[bounds[part] % size]
    of = bounds[part] // size
    order = np.lexsort((row, of))
    row, of, length = row[order], of[order], length[order]
    sums = np.cumsum(length)
    starts = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1])))
    before = np.repeat(sums[starts] - length[starts], np.diff(np.append(starts, len(of))))
    enough = np.flatnonzero(sums - before >= need[of])
    _, place = np.unique(of[enough], return_index=True)
    chosen = enough[place]
    return row[chosen], of[chosen]


def _pieces(first: Ints, last: Ints) -> Iterator[tuple[Ints, Ints]]:
    """(piece, part) for all parts of each piece, in blocks."""
    yield from _ranges(first, last, np.arange(int(last.max()) if len(last) else 0), "left")
