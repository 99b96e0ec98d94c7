"""Tables for metrics: the hits of one run by result, by group and by both. Each table is computed once per `Hits`;
metrics and the tables of misses, depth and failures use them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groupgt.model.hits import Bools, Floats, Hits, Ints


@dataclass(frozen=True, eq=False)
class HitRows:
    """Hits of alternatives, sorted by query and rank."""

    query: Ints
    rank: Ints
    group: Ints
    document: Ints
    grade: Floats

    def at(self, places: Ints | Bools) -> HitRows:
        """The rows at these positions."""
        return HitRows(
            self.query[places], self.rank[places], self.group[places], self.document[places], self.grade[places]
        )


@dataclass(frozen=True, eq=False)
class Results:
    """One row per result that counts: `nth` is its number among those of its query, `gain` its highest grade."""

    query: Ints
    rank: Ints
    nth: Ints
    gain: Floats


@dataclass(frozen=True, eq=False)
class MetGroups:
    """One row per covered group: the rank of its first hit, the grade of that hit, and the number of the result.

    `result` counts the results of the run that cover a new group, from 0; `nth` counts them within a query, from 1.
    """

    query: Ints
    rank: Ints
    group: Ints
    grade: Floats
    result: Ints
    nth: Ints


def parts_of_sets(hits: Hits) -> Bools:
    """Which hits are of a member of a set but do not complete it: only the last member hits the group."""

    def make() -> Bools:
        of_set = hits.judgments.alternative_set
        if of_set is None:
            return np.zeros(len(hits.alternative), dtype=np.bool_)
        row = np.flatnonzero((of_set[hits.alternative] >= 0) & ~hits.repeat)
        number = of_set[hits.alternative[row]]
        sizes = np.bincount(of_set[of_set >= 0])
        # Rows are in rank order: the last one completes the set, if all members are hit.
        last = np.full(len(sizes), -1, dtype=np.int64)
        np.maximum.at(last, number, row)
        last[np.bincount(number, minlength=len(sizes)) < sizes] = -1
        part = of_set[hits.alternative] >= 0
        part[last[last >= 0]] = False
        return part

    return hits.once("parts", make)


def relevant_hits(hits: Hits, *, repeats: bool = False) -> HitRows:
    """HitRows whose alternative is relevant; with `repeats`, repeated hits as well, if the policy keeps them."""
    repeats = repeats and hits.keep

    def make() -> HitRows:
        judgments = hits.judgments
        group = judgments.alternative_group[hits.alternative]
        chosen = (group >= 0) & ~parts_of_sets(hits)
        if not repeats:
            chosen &= ~hits.repeat
        alternative = hits.alternative[chosen]
        return HitRows(
            query=hits.query[chosen],
            rank=hits.rank[chosen],
            group=group[chosen],
            document=judgments.alternative_document[alternative],
            grade=judgments.alternative_grade[alternative],
        )

    return hits.once(("relevant", repeats), make)


def relevant_documents(hits: Hits) -> HitRows:
    """The first relevant hit of each document."""

    def make() -> HitRows:
        rows = relevant_hits(hits)
        return rows.at(_is_first(_first_row(rows.document, hits.judgments.documents)))

    return hits.once("documents", make)


def relevant_results(hits: Hits) -> Results:
    """The relevant results: each is the first to hit some relevant alternative."""
    return hits.once("found", lambda: _results(hits, relevant_hits(hits)))


def graded_results(hits: Hits) -> Results:
    """The results whose grade is above 0, regardless of the policy's level."""
    if hits.judgments.level is None:
        return relevant_results(hits)

    def make() -> Results:
        results = judged_results(hits)
        chosen = results.gain > 0
        query = results.query[chosen]
        return Results(query, results.rank[chosen], _nth(query), results.gain[chosen])

    return hits.once("graded", make)


def counted_results(hits: Hits) -> Results:
    """The relevant results, and their repeats if the policy keeps them."""
    if not hits.keep:
        return relevant_results(hits)
    return hits.once("counted", lambda: _results(hits, relevant_hits(hits, repeats=True)))


def judged_results(hits: Hits) -> Results:
    """The results that first hit any judged alternative; `gain` is the highest grade, which may be 0 or less."""

    def make() -> Results:
        first = ~hits.repeat
        alternative = hits.alternative[first]
        judgments = hits.judgments
        rows = HitRows(
            query=hits.query[first],
            rank=hits.rank[first],
            group=judgments.alternative_group[alternative],
            document=judgments.alternative_document[alternative],
            grade=judgments.alternative_grade[alternative],
        )
        return _results(hits, rows)

    return hits.once("judged", make)


def met_groups(hits: Hits) -> MetGroups:
    """Covered groups, ordered by query, rank and group."""

    def make() -> MetGroups:
        rows = relevant_hits(hits)
        judgments = hits.judgments
        first = _first_row(rows.group, len(judgments.group_query))
        chosen = _is_first(first)
        query, rank, group = rows.query[chosen], rows.rank[chosen], rows.group[chosen]
        best_grade = np.zeros(len(judgments.group_query))
        at_first = rows.rank == rows.rank[first]
        np.maximum.at(best_grade, rows.group[at_first], rows.grade[at_first])
        starts = changes(query, rank)
        result = np.cumsum(starts) - 1
        return MetGroups(query, rank, group, best_grade[group], result, _nth(query[starts])[result])

    return hits.once("met", make)


def completion_ranks(hits: Hits) -> Ints:
    """The rank at which each query is complete, shape (Q,); 0 if it never is."""
    rows = met_groups(hits)
    last = np.zeros(hits.size, dtype=np.int64)
    np.maximum.at(last, rows.query, rows.rank)
    met = np.bincount(rows.query, minlength=hits.size)
    return np.where(met == hits.judgments.groups, last, 0)


def novel_results(hits: Hits) -> Results:
    """The results that cover a new group; `gain` is the highest grade among the newly covered groups."""

    def make() -> Results:
        rows = met_groups(hits)
        starts = np.flatnonzero(changes(rows.query, rows.rank))
        gain = np.maximum.reduceat(rows.grade, starts)
        return Results(rows.query[starts], rows.rank[starts], rows.nth[starts], gain)

    return hits.once("novel", make)


def group_hits(hits: Hits, *, repeats: bool = False) -> tuple[HitRows, Ints]:
    """Distinct (group, rank) by query, rank and group, and the number of each among its group's hits, from 1."""
    repeats = repeats and hits.keep

    def make() -> tuple[HitRows, Ints]:
        rows = relevant_hits(hits, repeats=repeats)
        # Sort by group, then by rank; the rows of one query are already in this order.
        order = np.argsort(rows.group, kind="stable")
        distinct = order[changes(rows.group[order], rows.rank[order])]
        number = np.zeros(len(rows.group), dtype=np.int64)
        number[distinct] = _nth(rows.group[distinct])
        chosen = np.flatnonzero(number)
        return rows.at(chosen), number[chosen]

    return hits.once(("in_groups", repeats), make)


def _results(hits: Hits, rows: HitRows) -> Results:
    starts = np.flatnonzero(changes(rows.query, rows.rank))
    grade = hits.judgments.document_grade[rows.document]
    gain = np.maximum.reduceat(grade, starts)
    query = rows.query[starts]
    return Results(query, rows.rank[starts], _nth(query), gain)


def changes(column: Ints, *others: Ints) -> Bools:
    """Where a row differs from the one before it in any of these columns."""
    changed = np.ones(len(column), dtype=np.bool_)
    changed[1:] = column[1:] != column[:-1]
    for other in others:
        changed[1:] |= other[1:] != other[:-1]
    return changed


def _first_row(key: Ints, size: int) -> Ints:
    """The first row with the key of each row; keys are below `size`."""
    # Assigning backwards leaves the first row of each.
    rows = np.arange(len(key))
    first = np.empty(size, dtype=np.int64)
    first[key[::-1]] = rows[::-1]
    return first[key]


def _is_first(first: Ints) -> Bools:
    """Which rows are the first of their keys."""
    return np.equal(first, np.arange(len(first)))


def _nth(key: Ints) -> Ints:
    """The number of each row within its run of equal keys, from 1."""
    position = np.arange(len(key), dtype=np.int64)
    return position - np.maximum.accumulate(np.where(changes(key), position, 0)) + 1
