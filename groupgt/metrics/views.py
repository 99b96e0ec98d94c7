"""Tables for metrics, by result, by group, or by both. Each table is computed once from a run's `Hits`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from groupgt.metrics.base import Cut
from groupgt.model.hits import Bools, Floats, Hits, Ints, Judgments
from groupgt.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

P = ParamSpec("P")
T = TypeVar("T")


def _once(view: Callable[Concatenate[Hits, P], T]) -> Callable[Concatenate[Hits, P], T]:
    """Cache a view with its hits."""

    @wraps(view)
    def cached(hits: Hits, /, *args: P.args, **options: P.kwargs) -> T:
        # The only options are flags; one that is not set is the same as none.
        return hits.once((view.__name__, any(options.values())), lambda: view(hits, *args, **options))

    return cached


@record
class Rows:
    """Rows of results or hits, sorted by query and rank."""

    query: Ints
    rank: Ints

    def at(self, places: Ints | Bools) -> Self:
        """Return the rows at the given positions."""
        if places.dtype == np.bool_:
            # Positions are faster than a mask, and all rows need no copy.
            if places.all():
                return self
            places = np.flatnonzero(places)
        return type(self)(*(getattr(self, field.name)[places] for field in fields(self)))

    def within(self, cut: Cut) -> Self:
        """Return the rows within the cutoff."""
        return self.at(self.rank <= cut.top[self.query])


@record
class HitRows(Rows):
    """Hits of alternatives, sorted by query and rank."""

    group: Ints
    document: Ints
    grade: Floats


@record
class GainRows(Rows):
    """One row per counted result. `nth` is its number within the query, and `gain` is its highest grade."""

    nth: Ints
    gain: Floats


@record
class CoveredGroups(Rows):
    """One row per covered group, with the rank and grade of its first hit, and the number of the result.

    `result` numbers the results that cover a new group, from 0 across the run, and `nth` from 1 within each query.
    """

    group: Ints
    grade: Floats
    result: Ints
    nth: Ints


@_once
def relevant_hits(hits: Hits, *, repeats: bool = False) -> HitRows:
    """Return hits of relevant alternatives. With `repeats`, include repeated hits if the policy keeps them."""
    if repeats and not hits.keep:
        return relevant_hits(hits)
    return _hit_rows(hits, hits.relevant if repeats else hits.relevant & ~hits.repeat)


def _hit_rows(hits: Hits, chosen: Bools) -> HitRows:
    judgments, alternative = hits.judgments, hits.alternative[chosen]
    place = hits.query[chosen], hits.rank[chosen], hits.group[chosen]
    return HitRows(*place, judgments.alternative_document[alternative], judgments.alternative_grade[alternative])


@_once
def relevant_documents(hits: Hits) -> HitRows:
    """Return the first relevant hit of each document."""
    rows = relevant_hits(hits)
    return rows.at(_first_row(rows.document, hits.judgments.documents) == np.arange(len(rows.document)))


@_once
def relevant_results(hits: Hits) -> GainRows:
    """Return the relevant results, each of which is the first to hit a relevant alternative."""
    return _results(hits, relevant_hits(hits))


@_once
def graded_results(hits: Hits) -> GainRows:
    """Return the results with a grade above 0, regardless of the policy's relevance level."""
    if hits.judgments.level is None:
        return relevant_results(hits)
    results = judged_results(hits)
    chosen = results.gain > 0
    query = results.query[chosen]
    return GainRows(query, results.rank[chosen], nth(query), results.gain[chosen])


@_once
def counted_results(hits: Hits) -> GainRows:
    """Return the relevant results, including repeats if the policy keeps them."""
    return _results(hits, relevant_hits(hits, repeats=True)) if hits.keep else relevant_results(hits)


@_once
def judged_results(hits: Hits) -> GainRows:
    """Return results that are first to hit a judged alternative. `gain`, the highest grade, may be 0 or negative."""
    return _results(hits, _hit_rows(hits, ~hits.repeat))


@_once
def harmful_results(hits: Hits) -> GainRows:
    """Return the results that are harmful, repeats included."""
    return _results(hits, _hit_rows(hits, hits.harmful))


@_once
def covered_groups(hits: Hits) -> CoveredGroups:
    """Return the covered groups, sorted by query, rank and group."""
    rows = relevant_hits(hits)
    size = len(hits.judgments.group_query)
    first = _first_row(rows.group, size)
    chosen = first == np.arange(len(first))
    query, rank, group = rows.query[chosen], rows.rank[chosen], rows.group[chosen]
    best_grade = np.zeros(size)
    at_first = rows.rank == rows.rank[first]
    np.maximum.at(best_grade, rows.group[at_first], rows.grade[at_first])
    starts = changes(query, rank)
    result = np.cumsum(starts) - 1
    return CoveredGroups(query, rank, group, best_grade[group], result, nth(query[starts])[result])


@_once
def novel_results(hits: Hits) -> GainRows:
    """Return the results that cover a new group. `gain` is the highest grade among the newly covered groups."""
    rows = covered_groups(hits)
    starts = np.flatnonzero(changes(rows.query, rows.rank))
    return GainRows(rows.query[starts], rows.rank[starts], rows.nth[starts], np.maximum.reduceat(rows.grade, starts))


@_once
def group_hits(hits: Hits, *, repeats: bool = False) -> tuple[HitRows, Ints]:
    """Return distinct (group, rank) pairs, sorted by query, rank and group, with their number in the group, from 1."""
    if repeats and not hits.keep:
        return group_hits(hits)
    rows = relevant_hits(hits, repeats=repeats)
    # Sort by group, then by rank; the rows of one query are already in this order.
    order = np.argsort(rows.group, kind="stable")
    distinct = order[changes(rows.group[order], rows.rank[order])]
    number = np.zeros(len(rows.group), dtype=np.int64)
    number[distinct] = nth(rows.group[distinct])
    chosen = np.flatnonzero(number)
    return rows.at(chosen), number[chosen]


def _results(hits: Hits, rows: HitRows) -> GainRows:
    starts = np.flatnonzero(changes(rows.query, rows.rank))
    gain = np.maximum.reduceat(hits.judgments.document_grade[rows.document], starts)
    query = rows.query[starts]
    return GainRows(query, rows.rank[starts], nth(query), gain)


def relevant_counts(judgments: Judgments) -> Ints:
    """Count the relevant alternatives of each query, shape (Q,). A document in two groups counts twice."""
    return np.bincount(judgments.alternative_query[judgments.alternative_group >= 0], minlength=judgments.size)


def part_of(queries: Ints, query: int) -> slice:
    """Return the slice with the rows of one query, given rows sorted by query."""
    return slice(*np.searchsorted(queries, [query, query + 1]).tolist())


def query_key(hits: Hits, query: int) -> Hashable:
    """Return a key for one query. Runs with equal keys on the same judgments have equal metric values for the query."""
    part, contents = part_of(hits.query, query), hits.contents
    columns: list[Ints | Floats | Bools] = [hits.rank[part], hits.alternative[part], hits.repeat[part]]
    if contents is not None:
        part = part_of(contents.query, query)
        columns += [contents.rank[part], *(column[part] for column in contents.scores.values())]
    depths = [int(column[query]) for column in (hits.length, *hits.prefixes.values())]
    return hits.judgments, hits.keep, *depths, *(column.tobytes() for column in columns)


def changes(column: NDArray[Any], *others: NDArray[Any]) -> Bools:
    """Mark rows that differ from the previous row in any of the columns."""
    changed = np.ones(len(column), dtype=np.bool_)
    changed[1:] = column[1:] != column[:-1]
    for other in others:
        changed[1:] |= other[1:] != other[:-1]
    return changed


def _first_row(key: Ints, size: int) -> Ints:
    """Return, for each row, the first row with the same key. All keys are less than `size`."""
    # Assigning backwards leaves the first row of each.
    rows = np.arange(len(key))
    first = np.empty(size, dtype=np.int64)
    first[key[::-1]] = rows[::-1]
    return first[key]


def nth(key: Ints) -> Ints:
    """Assign numbers to the rows within each run of equal keys, from 1."""
    position = np.arange(len(key), dtype=np.int64)
    return position - np.maximum.accumulate(np.where(changes(key), position, 0)) + 1
