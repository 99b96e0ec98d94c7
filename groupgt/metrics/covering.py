"""Computes ideal rankings under `coverage`, which have the largest gain possible for a query.

If no document belongs to several groups, the sum has a closed form. Otherwise, finding the largest gain is a maximum
coverage problem, which is solved exactly if the number of reachable states is small, and greedily otherwise.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from groupgt.metrics.base import Cut
from groupgt.metrics.ideals import Discount, IdealGains, descending, gain_of
from groupgt.metrics.terms import at_most_one, over, plus
from groupgt.metrics.views import changes, part_of
from groupgt.model.hits import Floats, Ints, Judgments
from groupgt.records import record

if TYPE_CHECKING:
    from groupgt.metrics.worksheet import Sheet

# A state is the best gain of each group so far. Up to this many states, ideals are exact.
STATES = 4096
# Up to this many pairs (state and document, or document and group), plain Python is faster than arrays.
FEW_PAIRS = 512
# Solutions of problems with at most this many documents are cached for other queries with the same problem.
FEW_DOCUMENTS = 64

LIMITS = (
    "the ideal is exact for up to 4,096 states of the covered groups. Beyond that, if groups share documents, "
    "groupgt computes the ideal greedily and caps the value at 1."
)

# The gains of a document: (group, gain), sorted.
Document = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Problem:
    """The group weights and documents of one query. Documents in several groups are in byte order of their ids."""

    weights: tuple[float, ...]
    documents: tuple[Document, ...]


@record
class Solution:
    """The largest sum that any ranking reaches at each depth (from 1), and the gains by rank that reach it."""

    sums: Sequence[float]
    gains_at: Callable[[int], Sequence[float]]

    def gains(self, depth: int | None) -> list[float]:
        """Return the gains of an ideal ranking cut at `depth`."""
        deepest = len(self.sums) if depth is None else min(depth, len(self.sums))
        return list(self.gains_at(deepest)) if deepest else []


def coverage_ideal(judgments: Judgments, gain: str | None, discount: Discount, cut: Cut) -> Floats:
    """Return the largest Σ gain · discount of any ranking, cut at `cut.ideal`, shape (Q,).

    If `gain` is None, each group counts once with its weight (`mrr`). With `linear` or `exp`, each group adds its
    weight × gain at its first hit, and only the increase in gain at a better one below (`ndcg`).
    """

    def make() -> Floats:
        closed, shared = judgments.once(("coverage gains", gain), lambda: _closed_form(judgments, gain))
        values = closed.discounted(judgments, discount, cut.ideal)
        if len(shared):
            key = ("coverage sums", gain, discount)
            starts, sums = judgments.once(key, lambda: _solved(judgments, shared, gain, discount))
            deepest = np.diff(starts) - 1
            depth = deepest if cut.ideal is None else np.minimum(deepest, cut.ideal[shared])
            values[shared] = sums[starts[:-1] + depth]
        return values

    return judgments.once(("coverage ideal", gain, discount, cut.key), make)


def _closed_form(judgments: Judgments, gain: str | None) -> tuple[IdealGains, Ints]:
    """Return the gains for queries with a closed form, and the queries without one."""
    relevant = np.flatnonzero(judgments.alternative_group >= 0)
    grade, group = judgments.alternative_grade[relevant], judgments.alternative_group[relevant]
    best = np.zeros(len(judgments.group_query))
    np.maximum.at(best, group, np.ones(len(relevant)) if gain is None else gain_of(grade, gain, judgments))
    closed = ~judgments.sharing[judgments.group_query]
    gains = descending(judgments.group_query[closed], (judgments.weight * best)[closed])
    return gains, np.flatnonzero(judgments.sharing)


def _solved(judgments: Judgments, queries: Ints, gain: str | None, discount: Discount) -> tuple[Ints, Floats]:
    """Return the largest sums at depths 0, 1, … for all queries in one array, and the offset of each query in it."""
    solved: dict[Problem, Floats] = {}
    sums: list[Floats] = []
    for query in queries.tolist():
        problem = problem_of(judgments, query, gain)
        few = len(problem.documents) <= FEW_DOCUMENTS
        best = solved.get(problem) if few else None
        if best is None:
            best = np.array([0.0, *solve(problem, discount).sums])
            if few:
                solved[problem] = best
        sums.append(best)
    return np.concatenate(([0], np.cumsum([len(best) for best in sums]))), np.concatenate(sums)


def explain_share_of_best(
    sheet: Sheet,
    terms: Sequence[tuple[int, float]],
    gain: str | None,
    discount: Discount,
    share: Callable[[int, float], str],
) -> str:
    """Format the sum of discounted (rank, gain) `terms` as a share of the ideal. `share` formats each term."""
    judgments, query = sheet.judgments, sheet.query
    key = ("best ranking", query, gain, discount)
    best = judgments.once(key, lambda: solve(problem_of(judgments, query, gain), discount))
    ideal = best.gains(sheet.ideal)
    both = terms, [(rank, value * sheet.scale) for rank, value in enumerate(ideal, 1)]
    text = over(*(plus(share(rank, value) for rank, value in gains) for gains in both))
    reached, most = (sum(value * _share(discount, rank) for rank, value in gains) for gains in both)
    return at_most_one(text, reached, most * (1 + 1e-12))


def problem_of(judgments: Judgments, query: int, gain: str | None) -> Problem:
    """Build the `Problem` for one query."""
    of_groups, part = part_of(judgments.group_query, query), part_of(judgments.alternative_query, query)
    grades = judgments.alternative_grade[part]
    gains = np.ones(len(grades)) if gain is None else gain_of(grades, gain, judgments)
    groups = judgments.alternative_group[part] - of_groups.start
    places = judgments.sharing_order[part], judgments.alternative_document[part]
    documents = _documents(*places, groups, gains) if len(grades) > FEW_PAIRS else _few(places, groups, gains)
    return Problem(tuple(judgments.weight[of_groups].tolist()), documents)


def _documents(place: Ints, document: Ints, groups: Ints, gains: Floats) -> tuple[Document, ...]:
    """Return the gains of each document, in position order."""
    order = np.lexsort((gains, groups, document, place))
    order = order[groups[order] >= 0]
    starts = np.flatnonzero(changes(place[order], document[order])).tolist()
    pairs = list(zip(groups[order].tolist(), gains[order].tolist()))
    return tuple(tuple(pairs[start:end]) for start, end in pairwise([*starts, len(pairs)]))


def _few(places: tuple[Ints, Ints], groups: Ints, gains: Floats) -> tuple[Document, ...]:
    """Return the gains of each document in plain Python, which is faster for few documents."""
    documents: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for group, gain, *place in zip(groups.tolist(), gains.tolist(), *(column.tolist() for column in places)):
        if group >= 0:
            documents.setdefault((place[0], place[1]), []).append((group, gain))
    return tuple(tuple(sorted(documents[place])) for place in sorted(documents))


def solve(problem: Problem, discount: Discount) -> Solution:
    """Find the best ranking at every depth, exactly for up to 4,096 states and greedily beyond that."""
    levels: list[set[float]] = [set() for _ in problem.weights]
    for group, gain in set(chain.from_iterable(problem.documents)):
        levels[group].add(gain)
    states = 1
    for gains in levels:
        states *= 1 + len(gains)
        if states > STATES:
            return _greedy(problem, discount)
    if states * len(problem.documents) <= FEW_PAIRS:
        return _exact(problem, discount)
    return _exact_in_arrays(problem, [sorted({0.0, *gains}) for gains in levels], discount)


@lru_cache(maxsize=1 << 12)
def _share(discount: Discount, rank: int) -> float:
    return float(discount(np.array([rank]))[0])


# Exact solutions go rank by rank and keep the best sum for each state. Sums are built in rank order, and gains in the
# order of groups, with the same operations as the sum of a run. Addition is monotone, so the ranking of a run cannot
# exceed the value by even a bit. A document that gains no more than another in any group is skipped.


def _exact(problem: Problem, discount: Discount) -> Solution:
    """Solve the problem one state and one document at a time."""
    distinct = list(dict.fromkeys(problem.documents))
    documents = [document for document in distinct if not any(_dominates(other, document) for other in distinct)]
    layer: dict[tuple[float, ...], tuple[float, tuple[float, ...]]] = {(0.0,) * len(problem.weights): (0.0, ())}
    best: tuple[float, tuple[float, ...]] = (0.0, ())
    sums: list[float] = []
    gains: list[tuple[float, ...]] = []
    while True:
        share = _share(discount, len(sums) + 1)
        following: dict[tuple[float, ...], tuple[float, tuple[float, ...]]] = {}
        for state, (value, path) in layer.items():
            for document in documents:
                gain = _new_gain(problem.weights, state, document)
                if gain > 0:
                    reached = list(state)
                    _meet(reached, document)
                    key, summed = tuple(reached), value + gain * share
                    if key not in following or summed > following[key][0]:
                        following[key] = (summed, (*path, gain))
        if not following:
            return Solution(sums, lambda depth: gains[depth - 1])
        layer = following
        best = max(best, *layer.values())
        sums.append(best[0])
        gains.append(best[1])


def _dominates(better: Document, document: Document) -> bool:
    """Return whether one document gains at least as much as another in every group, and more in some."""
    gains = dict(better)
    return better != document and all(gains.get(group, 0.0) >= gain for group, gain in document)


def _new_gain(weights: Sequence[float], state: Sequence[float], document: Document) -> float:
    added = 0.0
    for group, gain in document:
        if gain > state[group]:
            added += weights[group] * (gain - state[group])
    return added


def _meet(state: list[float], document: Document) -> None:
    for group, gain in document:
        state[group] = max(state[group], gain)


def _exact_in_arrays(problem: Problem, levels: Sequence[Sequence[float]], discount: Discount) -> Solution:
    """Solve the problem rank by rank, with all states and documents at once.

    A state is an integer that encodes the index of each group's gain in its `levels`, with one radix per group. A
    document is encoded as the state that results from adding the document to the empty state.
    """
    shape = [len(gains) for gains in levels]
    strides = np.array([math.prod(shape[group + 1 :]) for group in range(len(shape))])
    states = math.prod(shape)
    # places[s, g]: the position of the gain of group g in state s.
    places = np.stack(np.unravel_index(np.arange(states), shape), axis=1)
    gains = np.stack([np.array(reached)[places[:, group]] for group, reached in enumerate(levels)], axis=1)
    documents = _undominated(problem, levels, shape, strides)
    # added[s, d]: the gain that a document adds to a state, -inf for none; after[s, d]: the resulting state.
    added, after = np.zeros((states, len(documents))), np.zeros((states, len(documents)), dtype=np.int64)
    for group, weight in enumerate(problem.weights):
        added += weight * np.maximum(gains[None, documents, group] - gains[:, None, group], 0.0)
        after += strides[group] * np.maximum(places[None, documents, group], places[:, None, group])
    added[added <= 0] = -np.inf
    layers = [np.full(states, -np.inf)]
    layers[0][0] = 0.0
    sums: list[float] = []
    while True:
        reached = np.flatnonzero(layers[-1] > -np.inf)
        summed = layers[-1][reached, None] + added[reached] * _share(discount, len(layers))
        following = np.full(states, -np.inf)
        np.maximum.at(following, after[reached].ravel(), summed.ravel())
        highest = float(following.max())
        if highest == -np.inf:
            break
        layers.append(following)
        sums.append(highest)
    # A ranking may end before the depth, so the value never falls with depth.
    sums = list(accumulate(sums, max))

    def gains_at(depth: int) -> list[float]:
        """Return the gains of the shortest ranking that reaches the sum, traced back from its end."""
        rank = 1 + sums.index(sums[depth - 1])
        state = int(np.argmax(layers[rank]))
        steps: list[float] = []
        while rank:
            before, document = np.nonzero(after == state)
            summed = layers[rank - 1][before] + added[before, document] * _share(discount, rank)
            at = int(np.flatnonzero(summed == layers[rank][state])[0])
            steps.append(float(added[before[at], document[at]]))
            state, rank = int(before[at]), rank - 1
        return steps[::-1]

    return Solution(sums, gains_at)


def _undominated(problem: Problem, levels: Sequence[Sequence[float]], shape: Sequence[int], strides: Ints) -> Ints:
    """Return the distinct documents that are not dominated, encoded as states."""
    place = [{gain: at for at, gain in enumerate(gains)} for gains in levels]
    codes = [sum(int(strides[group]) * place[group][gain] for group, gain in pairs) for pairs in problem.documents]
    present = np.zeros(math.prod(shape), dtype=np.bool_)
    present[codes] = True
    present = present.reshape(shape)
    # Whether a document is at a state or beyond it, in every direction.
    beyond = present.copy()
    for group in range(len(shape)):
        beyond = np.flip(np.logical_or.accumulate(np.flip(beyond, group), axis=group), group)
    dominated = np.zeros_like(present)
    for group in range(len(shape)):
        here, further = [slice(None)] * len(shape), [slice(None)] * len(shape)
        here[group], further[group] = slice(None, -1), slice(1, None)
        dominated[tuple(here)] |= beyond[tuple(further)]
    return np.flatnonzero(present & ~dominated)


def _greedy(problem: Problem, discount: Discount) -> Solution:
    """Solve the problem by always taking the largest new gain. Ties go to the smallest id."""
    state = [0.0] * len(problem.weights)
    # New gains only shrink, so an entry that is unchanged when it reaches the top is the largest.
    documents = problem.documents
    heap = [(-_new_gain(problem.weights, state, document), place) for place, document in enumerate(documents)]
    heapq.heapify(heap)
    gains: list[float] = []
    while heap:
        negative, place = heapq.heappop(heap)
        gain = _new_gain(problem.weights, state, documents[place])
        if gain <= 0:
            continue
        if gain != -negative:
            heapq.heappush(heap, (-gain, place))
            continue
        _meet(state, documents[place])
        gains.append(gain)
    shares = discount(np.arange(1, len(gains) + 1, dtype=np.int64))
    return Solution(np.cumsum(np.array(gains) * shares).tolist(), lambda depth: gains[:depth])
