"""Handles scores that are distances, and results whose order contradicts their scores or ranks."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from groupgt.engines.lists import ListCarrier
from groupgt.engines.shapes import ids_and_scores
from groupgt.errors import ConfigError, Faults, display
from groupgt.model.hits import Floats, Ints
from groupgt.model.run import Columns, Lines, Lists, Run
from groupgt.model.validity import finite_number, number_of
from groupgt.model.values import CALLS, ORIGINAL_SCORE, RANK, SCORE, count_distinct
from groupgt.runtime import pl

Direction = Literal["descending", "ascending"]
# Whether higher scores are better: in all runs, or by the name of the run.
Scores = Direction | Mapping[str, Direction]
DIRECTIONS: tuple[Direction, ...] = ("descending", "ascending")
# The most results in columns whose ranks are read unless a check asks for them.
MOST_ROWS = 1 << 20
# The rows that are read first to learn whether scores rise from row to row.
FIRST_ROWS = 1000
# How surprising it must be that the scores of every query rise: by chance, 1 of 100 files at most.
SURE = math.log(100)
WAY_OUT = (
    "if the scores are distances, declare them as ascending (--scores in the shell, scores= in Python, "
    "scores: next to use in experiments)"
)


def check_direction(value: Any) -> None:
    """Raise `ConfigError` unless a value is a direction or a mapping from run names to directions."""
    for named in value.values() if isinstance(value, Mapping) else [value]:
        if named not in DIRECTIONS:
            what = f"expected {' or '.join(DIRECTIONS)}, or {{run: direction}}"
            raise ConfigError(f"scores: {what}, found {display(named)}")


def with_distances(run: Run) -> Run:
    """Return a run with its distances negated. Lists keep their order, and ranks are not negated."""
    if run.ascending:
        return run
    run = run.loaded
    contents = run.contents
    negated = _negated_lists(run, contents) if isinstance(contents, Lists) else _negated_columns(contents)  # type: ignore[arg-type]  # what is left
    return run if negated is None else replace(run, contents=negated, ascending=True)


def _negated_lists(run: Run, lists: Lists) -> Lists | None:
    carrier = ListCarrier(run, lists)
    rankings: dict[Any, Any] = dict(lists.rankings)
    scores: dict[Any, Sequence[float]] = {}
    listed: dict[str, Sequence[float | None]] = {}
    for key, ranking in lists.rankings.items():
        # Labelling reports invalid rankings.
        ids, order = ids_and_scores(ranking, Faults(), "")
        of_query = (lists.scores or {}).get(key, order)
        if of_query is not None:
            scores[key] = [-score for score in of_query]
            rankings[key] = ranking if order is None else ids
        elif (cells := carrier.listed_scores(key)) is not None:
            numbers = map(finite_number, cells)
            listed[str(key)] = [None if number is None else -number for number in numbers]
    ranks = [list(map(float, range(1, len(row) + 1))) for row in scores.values()]
    if scores and [sorted(row) for row in scores.values()] == ranks:
        return None
    fields = {**lists.fields, SCORE: lambda: listed} if listed else lists.fields
    return replace(lists, rankings=rankings, scores=scores or None, fields=fields)


def _negated_columns(columns: Columns) -> Columns | None:
    place = pl.col("score").rank("ordinal", descending=True).over("qid").cast(pl.Int64)
    only_ranks = columns.frame.select((pl.col("score") == -place).all())
    if columns.guard(lambda: only_ranks.collect(engine="streaming")).item():
        return None
    names = {"score", ORIGINAL_SCORE} & set(columns.frame.collect_schema())
    frame, recheck = columns.frame.with_columns(-pl.col(*sorted(names))), lambda: with_distances(columns.recheck())
    return replace(columns, frame=frame, recheck=recheck)


# --- Contradictions.


class Contradictions(NamedTuple):
    """Numbers of queries whose scores rise with rank, whose `rank` contradicts a score, or whose rows all rise."""

    rising_scores: int = 0
    contradicted_ranks: int = 0
    rising_rows: int = 0


def contradictions(run: Run, *, thorough: bool = False) -> Contradictions:
    """Count the queries of a run with a contradictory order. `thorough` also reads the ranks in the largest files."""
    run = run.by_original_ids.resolved
    if isinstance(run.contents, Lines) and run.contents.blocks:
        return Contradictions(contradicted_ranks=sum(_contradicted(run.contents)))
    run = run.loaded
    if isinstance(run.contents, Lists):
        rising, contradicted = _rising(ListCarrier(run, run.contents)), _of_ranks(*_ranked_rows(run.contents))
        return Contradictions(rising, contradicted, _rising_rows(_scores_by_row(run.contents)))
    if isinstance(run.contents, Columns):
        contradicted = _of_ranks(*_ranked_columns(run.contents, thorough=thorough))
        return Contradictions(0, contradicted, _rising_rows(_scores_in_columns(run.contents)))
    return Contradictions()


def rises(query: Ints, scores: Floats) -> Ints:
    """Return the positions, by query and rank, of results that score lower than the next result of their query."""
    return np.flatnonzero((query[1:] == query[:-1]) & (scores[1:] > scores[:-1]))


def _rising_rows(by_query: Iterable[Sequence[float]]) -> int:
    """Count the queries whose scores rise from row to row, or return 0 if any query's fall or this may be chance."""
    rising, surprise = 0, 0.0
    for scores in by_query:
        if any(map(operator.gt, scores, scores[1:])):
            return 0
        if len(scores) and scores[0] < scores[-1]:
            # Of n! orders of a query's rows, one rises.
            rising, surprise = rising + 1, surprise + math.lgamma(len(scores) + 1)
    return rising if surprise > SURE else 0


def _scores_by_row(lists: Lists) -> Iterator[Sequence[float]]:
    """Yield the scores of each query in the order of its rows or items, without queries that are ranked by rank."""
    if RANK in lists.fields or CALLS in lists.lengths:
        return
    for key, ranking in lists.rankings.items():
        if lists.scores is not None and key in lists.scores:
            yield lists.scores[key]
        elif isinstance(ranking, Mapping):
            yield [number for number in map(finite_number, ranking.values()) if number is not None]


def _scores_in_columns(columns: Columns) -> Iterator[Sequence[float]]:
    """Yield the scores of each query in the order of its rows, reading more than the first rows only if these rise."""
    if RANK in columns.guard(columns.frame.collect_schema):
        return
    for rows in (FIRST_ROWS, MOST_ROWS):
        head = columns.frame.head(rows).select("qid", "score")
        by_query = head.group_by("qid", maintain_order=True).agg("score").select("score")
        scores = [row.to_numpy() for row in columns.guard(by_query.collect)["score"]]
        if any(np.any(row[1:] < row[:-1]) for row in scores):
            yield [1.0, 0.0]
            return
    yield from (row.tolist() for row in scores)


def _rising(carrier: ListCarrier) -> int:
    if CALLS in carrier.lists.lengths:
        return 0  # each call has scores of its own
    scored = carrier.lists.scores or {}
    rows = [carrier.listed_scores(key) or () for key in carrier.lists.rankings if key not in scored]
    query, (scores,) = _flattened([rows])
    return count_distinct(query[rises(query, scores)])


def _contradicted(lines: Lines) -> Iterator[bool]:
    """Yield for each query whether a rank contradicts a score. Read lines only if scores are unordered."""
    for block in lines.blocks.values():
        if block.unordered:
            rank, score = (np.array(list(map(float, lines.column(block, at)))) for at in (3, 4))
            yield bool(_of_ranks(np.zeros(len(rank), dtype=np.int64), rank, score))
        else:
            yield block.contradicted


def _of_ranks(query: Ints, rank: Floats, score: Floats) -> int:
    """Count queries in which a result has a better rank but a lower score than another."""
    is_ranked = np.isfinite(rank)
    query, rank, score = query[is_ranked], rank[is_ranked], score[is_ranked]
    order = np.lexsort((-score, rank, query))
    return count_distinct(query[order][rises(query[order], score[order])])


def _ranked_rows(lists: Lists) -> tuple[Ints, Floats, Floats]:
    ranks, scores = lists.fields[RANK]() if RANK in lists.fields else {}, lists.scores or {}
    qids = [qid for qid, row in ranks.items() if len(row) == len(scores.get(qid, ()))]
    query, (score,) = _flattened([[scores[qid] for qid in qids]])
    cells = [cell for qid in qids for cell in ranks[qid]]
    try:
        return query, np.array(cells, dtype=np.float64), score
    except (TypeError, ValueError, OverflowError):
        numbers = (number_of(cell.strip()) if isinstance(cell, str) else finite_number(cell) for cell in cells)
        return query, np.array(list(numbers), dtype=np.float64), score


def _ranked_columns(columns: Columns, *, thorough: bool) -> tuple[Ints, Floats, Floats]:
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    if RANK not in columns.guard(columns.frame.collect_schema):
        return nothing
    rank = pl.col(RANK).cast(pl.Float64, strict=False)
    frame = columns.frame.select(pl.col("qid").cast(pl.Categorical), rank.fill_null(np.nan), "score")
    frame = frame if thorough else frame.head(MOST_ROWS + 1)
    rows = columns.guard(lambda: frame.collect(engine="streaming"))
    if len(rows) > MOST_ROWS and not thorough:
        return nothing
    return rows["qid"].to_physical().to_numpy().astype(np.int64), rows[RANK].to_numpy(), rows["score"].to_numpy()


def _flattened(columns: Sequence[Sequence[Sequence[float | None]]]) -> tuple[Ints, list[Floats]]:
    """Return the query and numbers of each result, from columns with one row per query. Missing numbers are NaN."""
    query = np.repeat(np.arange(len(columns[0])), list(map(len, columns[0])))
    return query, [np.array([cell for row in rows for cell in row], dtype=np.float64) for rows in columns]
