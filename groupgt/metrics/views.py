"""Tables that metrics read: different cross-sections of the same hits, each made once per `Hits`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groupgt.model.hits import Bools, Floats, Hits, Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """Hits of relevant alternatives, sorted by query and rank."""

    query: Ints
    rank: Ints
    group: Ints
    document: Ints
    grade: Floats


@dataclass(frozen=True, eq=False)
class Found:
    """One row for each result that counts: `nth` is its number among those of its query, `gain` its highest grade."""

    query: Ints
    rank: Ints
    nth: Ints
    gain: Floats


@dataclass(frozen=True, eq=False)
class Met:
    """One row for each group met: the rank of its first hit, the grade it was met with, and the result's number.

    `result` counts the results of the run that meet a new group, from 0; `nth` counts them within a query, from 1.
    """

    query: Ints
    rank: Ints
    group: Ints
    grade: Floats
    result: Ints
    nth: Ints


def relevant(hits: Hits, *, repeats: bool = False) -> Rows:
    """Rows whose alternative is relevant; with `repeats`, repeated hits as well, where the policy keeps them."""

    def make() -> Rows:
        judgments = hits.judgments
        group = judgments.alternative_group[hits.alternative]
        chosen = group >= 0
        if not (repeats and hits.keep):
            chosen &= ~hits.repeat
        alternative = hits.alternative[chosen]
        return Rows(
            query=hits.query[chosen],
            rank=hits.rank[chosen],
            group=group[chosen],
            document=judgments.alternative_document[alternative],
            grade=judgments.alternative_grade[alternative],
        )

    return hits.once(("relevant", repeats and hits.keep), make)


def found(hits: Hits) -> Found:
    """The relevant results: each is the first to hit some relevant alternative."""
    return hits.once("found", lambda: _results(hits, relevant(hits)))


def counted_results(hits: Hits) -> Found:
    """The relevant results, and their repeats where the policy keeps them."""
    if not hits.keep:
        return found(hits)
    return hits.once("counted", lambda: _results(hits, relevant(hits, repeats=True)))


def judged(hits: Hits) -> Found:
    """The results that first hit any judged alternative; `gain` is the highest grade, which may be 0 or less."""

    def make() -> Found:
        first = ~hits.repeat
        alternative = hits.alternative[first]
        judgments = hits.judgments
        rows = Rows(
            query=hits.query[first],
            rank=hits.rank[first],
            group=judgments.alternative_group[alternative],
            document=judgments.alternative_document[alternative],
            grade=judgments.alternative_grade[alternative],
        )
        return _results(hits, rows)

    return hits.once("judged", make)


def met(hits: Hits) -> Met:
    """The groups met, in the order of queries, ranks and groups."""

    def make() -> Met:
        rows = relevant(hits)
        judgments = hits.judgments
        # Assigning backwards leaves the first row of each group.
        first = np.full(len(judgments.group_query), -1, dtype=np.int64)
        backwards = np.arange(len(rows.group) - 1, -1, -1)
        first[rows.group[::-1]] = backwards
        chosen = np.sort(first[first >= 0])
        query, rank, group = rows.query[chosen], rows.rank[chosen], rows.group[chosen]
        highest = np.zeros(len(first))
        at_first = rows.rank == rows.rank[first[rows.group]]
        np.maximum.at(highest, rows.group[at_first], rows.grade[at_first])
        starts = changes(query, rank)
        result = np.cumsum(starts) - 1
        return Met(query, rank, group, highest[group], result, _nth(query[starts])[result])

    return hits.once("met", make)


def novel(hits: Hits) -> Found:
    """The results that meet a group not met before; `gain` is the highest grade among the groups newly met."""

    def make() -> Found:
        rows = met(hits)
        starts = np.flatnonzero(changes(rows.query, rows.rank))
        gain = np.maximum.reduceat(rows.grade, starts) if len(starts) else np.zeros(0)
        return Found(rows.query[starts], rows.rank[starts], rows.nth[starts], gain)

    return hits.once("novel", make)


def in_groups(hits: Hits, *, repeats: bool = False) -> tuple[Rows, Ints]:
    """Distinct (group, rank) by query, rank and group, and the number of each among its group's hits, from 1."""

    def make() -> tuple[Rows, Ints]:
        rows = relevant(hits, repeats=repeats)
        order = np.lexsort((rows.rank, rows.group))
        distinct = order[changes(rows.group[order], rows.rank[order])]
        number = np.zeros(len(rows.group), dtype=np.int64)
        number[distinct] = _nth(rows.group[distinct])
        chosen = np.flatnonzero(number)
        kept = Rows(
            rows.query[chosen], rows.rank[chosen], rows.group[chosen], rows.document[chosen], rows.grade[chosen]
        )
        return kept, number[chosen]

    return hits.once(("in_groups", repeats and hits.keep), make)


def _results(hits: Hits, rows: Rows) -> Found:
    starts = np.flatnonzero(changes(rows.query, rows.rank))
    grade = hits.judgments.document_grade[rows.document]
    gain = np.maximum.reduceat(grade, starts) if len(starts) else np.zeros(0)
    query = rows.query[starts]
    return Found(query, rows.rank[starts], _nth(query), gain)


def changes(first: Ints, second: Ints) -> Bools:
    """Where a row differs from the one before it."""
    changed = np.ones(len(first), dtype=np.bool_)
    if len(first) > 1:
        changed[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return changed


def _nth(key: Ints) -> Ints:
    """The number of each row within its run of equal keys, from 1."""
    if not len(key):
        return np.zeros(0, dtype=np.int64)
    position = np.arange(len(key), dtype=np.int64)
    starts = np.ones(len(key), dtype=np.bool_)
    starts[1:] = key[1:] != key[:-1]
    return position - np.maximum.accumulate(np.where(starts, position, 0)) + 1
