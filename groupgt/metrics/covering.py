"""Ideal rankings: the most that any ranking of a query can gain, a function of the ground truth alone."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from groupgt.errors import MetricError
from groupgt.metrics.base import Cut
from groupgt.model.hits import Bools, Floats, Ints, Judgments
from groupgt.model.sums import total

STATES = 4096


def coverage_ideal(judgments: Judgments, gain: str | None, discount: Discount, cut: Cut) -> Floats:
    """The largest Σ gain · discount any ranking reaches, cut at `cut.ideal`, shape (Q,).

    `gain` None counts each group once with its weight (`mrr`); `linear` or `exp` counts weight × gain of the grade,
    with upgrades (`ndcg`). Where no document is shared between groups, one best alternative per group, largest first.
    Else exact by dynamic programming over what has been met, up to 4,096 states, and greedy beyond.
    """

    def make() -> Floats:
        closed, shared = judgments.once(("coverage path", gain), lambda: _coverage_parts(judgments, gain))
        values = closed.value(judgments, discount, cut.ideal)
        for query, problem in shared:
            best = _best_values(problem, discount)
            depth = len(best) if cut.ideal is None else min(len(best), int(cut.ideal[query]))
            values[query] = best[depth - 1] if depth else 0.0
        return values

    if cut.ideal is not None and cut.key is None:
        return make()
    return judgments.once(("coverage ideal", gain, discount, cut.key), make)


# (weights of the groups, for each document its (group, gain) pairs): what a query's ideal depends on.
Problem = tuple[tuple[float, ...], tuple[tuple[tuple[int, float], ...], ...]]


def _coverage_parts(judgments: Judgments, gain: str | None) -> tuple[Path, list[tuple[int, Problem]]]:
    """The closed form of the queries that have one, and the problems of those that do not."""
    rows = np.flatnonzero(judgments.alternative_group >= 0)
    group = judgments.alternative_group[rows]
    value = np.ones(len(rows)) if gain is None else gain_of(judgments.alternative_grade[rows], gain, judgments)
    best = np.zeros(len(judgments.group_query))
    np.maximum.at(best, group, value)
    shared = _shared_queries(judgments, rows)
    closed = ~shared[judgments.group_query]
    path = descending(judgments.group_query[closed], (judgments.weight * best)[closed])
    problems = [(int(query), problem_of(judgments, int(query), gain)) for query in np.flatnonzero(shared)]
    return path, problems


def _shared_queries(judgments: Judgments, rows: Ints) -> Bools:
    """Queries in which a relevant document stands in more than one alternative."""
    shared = np.zeros(judgments.size, dtype=np.bool_)
    if not judgments.one_to_one:
        document = judgments.alternative_document[rows]
        counts = np.bincount(document, minlength=judgments.documents)
        shared[judgments.alternative_query[rows[counts[document] > 1]]] = True
    return shared


def problem_of(judgments: Judgments, query: int, gain: str | None) -> Problem:
    """What the coverage ideal of one query depends on; documents in the byte order of their ids."""
    first, last = np.searchsorted(judgments.group_query, [query, query + 1]).tolist()
    low, high = np.searchsorted(judgments.alternative_query, [query, query + 1]).tolist()
    order = judgments.once("byte order", judgments.byte_order)
    grades = judgments.alternative_grade[low:high]
    gains = np.ones(high - low) if gain is None else gain_of(grades, gain, judgments)
    documents: dict[int, list[tuple[int, float]]] = {}
    for at in range(low, high):
        if judgments.alternative_group[at] >= 0:
            entry = (int(judgments.alternative_group[at]) - first, float(gains[at - low]))
            documents.setdefault(int(order[judgments.alternative_document[at]]), []).append(entry)
    return tuple(judgments.weight[first:last].tolist()), tuple(tuple(sorted(documents[d])) for d in sorted(documents))


def _best_values(problem: Problem, discount: Discount) -> list[float]:
    return _solve(problem, discount)[0]


def exact_path(problem: Problem, discount: Discount, depth: int | None) -> list[float]:
    """The gains, rank by rank, of an ideal ranking cut at `depth`."""
    values, paths = _solve(problem, discount)
    if depth is None or depth > len(values):
        depth = len(values)
    return list(paths[depth - 1]) if depth else []


@lru_cache(maxsize=4096)
def _solve(problem: Problem, discount: Discount) -> tuple[list[float], list[tuple[float, ...]]]:
    """The best value at each depth, and the gains that reach it."""
    weights, documents = problem
    if (
        math.prod(
            1 + len({gain for doc in documents for group, gain in doc if group == g}) for g in range(len(weights))
        )
        > STATES
    ):
        return _greedy_values(problem, discount)
    return _exact_values(problem, discount)


def _new_gain(weights: tuple[float, ...], state: tuple[float, ...], doc: tuple[tuple[int, float], ...]) -> float:
    total = 0.0
    for group, gain in doc:
        if gain > state[group]:
            total += weights[group] * (gain - state[group])
    return total


def _after(state: tuple[float, ...], doc: tuple[tuple[int, float], ...]) -> tuple[float, ...]:
    best = list(state)
    for group, gain in doc:
        best[group] = max(best[group], gain)
    return tuple(best)


def _exact_values(problem: Problem, discount: Discount) -> tuple[list[float], list[tuple[float, ...]]]:
    """Rank by rank, the best sum with which each state (best gain so far in every group) can be reached.

    Sums are built in rank order with the operations of a run's own sum, and addition is monotone, so no ranking of a
    run can pass the value by a bit.
    """
    weights, documents = problem
    documents = tuple(doc for doc in set(documents) if not any(_dominates(other, doc) for other in set(documents)))
    layer: dict[tuple[float, ...], tuple[float, tuple[float, ...]]] = {(0.0,) * len(weights): (0.0, ())}
    values: list[float] = []
    paths: list[tuple[float, ...]] = []
    best: tuple[float, tuple[float, ...]] = (0.0, ())
    while True:
        share = float(discount(np.array([len(values) + 1]))[0])
        following: dict[tuple[float, ...], tuple[float, tuple[float, ...]]] = {}
        for state, (value, path) in layer.items():
            for doc in documents:
                gain = _new_gain(weights, state, doc)
                if gain > 0:
                    reached = _after(state, doc)
                    total = value + gain * share
                    if reached not in following or total > following[reached][0]:
                        following[reached] = (total, (*path, gain))
        if not following:
            return values, paths
        layer = following
        best = max(best, *layer.values())
        values.append(best[0])
        paths.append(best[1])


def _dominates(better: tuple[tuple[int, float], ...], doc: tuple[tuple[int, float], ...]) -> bool:
    """Whether one document gains at least as much as another in every group, and is not its equal."""
    gains = dict(better)
    return better != doc and all(gains.get(group, 0.0) >= gain for group, gain in doc)


def _greedy_values(problem: Problem, discount: Discount) -> tuple[list[float], list[tuple[float, ...]]]:
    """Largest new gain first, equal gains by the smallest id."""
    weights, documents = problem
    state: tuple[float, ...] = (0.0,) * len(weights)
    # New gains only shrink, so an entry that is still what it was when it comes to the top is the largest.
    heap = [(-_new_gain(weights, state, doc), place) for place, doc in enumerate(documents)]
    heapq.heapify(heap)
    values: list[float] = []
    path: list[float] = []
    total = 0.0
    while heap:
        negative, place = heapq.heappop(heap)
        gain = _new_gain(weights, state, documents[place])
        if gain <= 0:
            continue
        if gain != -negative:
            heapq.heappush(heap, (-gain, place))
            continue
        state = _after(state, documents[place])
        path.append(gain)
        total += gain * float(discount(np.array([len(path)]))[0])
        values.append(total)
    return values, [tuple(path[:depth]) for depth in range(1, len(path) + 1)]


HIGHEST_EXPONENT = 1000.0

Discount = Callable[[Ints], Floats]


@dataclass(frozen=True, eq=False)
class Path:
    """What an ideal ranking gains at each rank: rows sorted by query and rank."""

    query: Ints
    rank: Ints
    gain: Floats

    def value(self, judgments: Judgments, discount: Discount, depth: Ints | None) -> Floats:
        """Σ gain · discount(rank) over ranks ≤ depth, shape (Q,), summed in rank order as a run's gains are."""
        terms = self.gain * discount(self.rank)
        if depth is None:
            return total(self.query, terms, judgments.size)
        kept = self.rank <= depth[self.query]
        return total(self.query[kept], terms[kept], judgments.size)


def gain_of(grade: Floats, gain: str, judgments: Judgments) -> Floats:
    """The gain of a grade: itself (`linear`), or 2^grade − 1 (`exp`)."""
    if gain == "linear":
        return grade
    highest = judgments.once("highest grade", lambda: _highest(judgments.alternative_grade))
    if highest > HIGHEST_EXPONENT:
        at = int(np.argmax(judgments.alternative_grade))
        qid = judgments.qid(int(judgments.alternative_query[at]))
        raise MetricError(
            f"query {qid!r}: the gain 2^grade - 1 takes grades up to {HIGHEST_EXPONENT:g}, found {highest:g}; "
            "use gain=linear, or smaller grades"
        )
    # Distinct grades are few, and Python's power has the same bits on every processor.
    distinct, where = np.unique(grade, return_inverse=True)
    return np.array([exponential(each) for each in distinct.tolist()])[where] if len(distinct) else grade


def exponential(grade: float) -> float:
    """2^grade − 1; a tiny grade keeps its digits."""
    return math.expm1(grade * math.log(2)) if abs(grade) < 1e-3 else 2.0**grade - 1.0


def _highest(values: Floats) -> float:
    return float(values.max()) if values.size else 0.0


def to_one(numerator: Floats, ideal: Floats) -> Floats:
    """numerator ÷ ideal, capped at 1; a ranking within rounding of the ideal is 1 and not 0.9999999999999999."""
    value = np.zeros(len(numerator))
    np.divide(numerator, ideal, out=value, where=ideal > 0)
    value[(ideal > 0) & (numerator >= ideal * (1 - 1e-15))] = 1.0
    return value


def sorted_grades(judgments: Judgments, gain: str) -> Path:
    """The relevant documents of each query, highest grade first."""

    def make() -> Path:
        grade = judgments.document_grade
        chosen = np.flatnonzero(grade > 0)
        return descending(judgments.document_query[chosen], gain_of(grade[chosen], gain, judgments))

    return judgments.once(("sorted grades", gain), make)


def descending(query: Ints, gain: Floats) -> Path:
    """A path of gains sorted within each query, largest first."""
    order = np.lexsort((-gain, query))
    query = query[order]
    counts = np.bincount(query) if len(query) else np.zeros(0, dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    rank = np.arange(len(query), dtype=np.int64) - starts[query] + 1
    return Path(query, rank, gain[order])
