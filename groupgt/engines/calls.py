"""Combines results from several searches, ordered first by the number of the call that returned them.

Call and score become one score, so that all policies for ties and repeats apply as usual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from groupgt import native
from groupgt.engines.carriers import all_rankings, local_carrier_of
from groupgt.engines.shapes import carried_cells, ids_and_scores, is_text_list
from groupgt.errors import DataError, Faults
from groupgt.formats.fields import BUILD, CALL_COLUMN, CALL_LIST, TRIAL, call_of, calls_fault
from groupgt.formats.frames import remote_names
from groupgt.formats.roles import canonical
from groupgt.formats.rows import NO_TRIALS, Ranking, Trials
from groupgt.formats.validity import call_numbers, is_score
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lists, Remote, Run
from groupgt.model.validity import plain
from groupgt.model.values import CALLS, ORIGINAL_SCORE
from groupgt.runtime import pl


def in_call_order(run: Run) -> Run:
    """Sort a run by call, then by score or input order. Raise `DataError` if calls are missing or out of order."""
    if isinstance(run.contents, Lists):
        return _lists_in_order(run, run.contents)
    return _columns_in_order(run, run.contents) if isinstance(run.contents, Columns) else run


def _lists_in_order(run: Run, lists: Lists) -> Run:
    carried_calls = _calls_carried(lists)
    if carried_calls is None:
        return run
    faults = Faults()
    scores = dict(lists.scores or {})
    before: dict[str, Sequence[float]] = {}
    calls: dict[str, Sequence[int]] = {}
    for key, ranking in lists.rankings.items():
        where = f"{run.title}: query {str(key)!r}"
        others = Faults()
        ids, order = (ranking, None) if is_text_list(ranking) else ids_and_scores(ranking, others, where)
        if others:
            continue  # reported during labelling, together with all other errors
        cells: Any = carried_calls.get(str(key), [])
        of_query = scores.get(key, order)
        if fault := calls_fault(cells, len(ids), in_order=of_query is None):
            faults.add(where, fault)
            continue
        calls[str(key)] = cells
        if of_query is not None:
            before[str(key)], scores[key] = of_query, _composed(cells, of_query)
    faults.stop(DataError)
    fields = {ORIGINAL_SCORE: lambda: before, **lists.fields} if before else lists.fields
    lengths = {**lists.lengths, CALLS: calls}
    return replace(run, contents=replace(lists, scores=scores or None, lengths=lengths, fields=fields))


def _calls_carried(lists: Lists) -> Mapping[str, Sequence[int | None]] | None:
    """Return calls by query id, from a column or from results that are mappings, or None if calls are missing."""
    if CALLS in lists.lengths:
        return {str(key): cells for key, cells in lists.lengths[CALLS].items()}
    if native.is_plain(lists.rankings, ends=True) or not _hold_mappings(lists.rankings.values()):
        return None
    carried = ((str(key), carried_cells(ranking, CALL_COLUMN)) for key, ranking in lists.rankings.items())
    return {key: list(map(call_of, cells)) for key, cells in carried if cells is not None} or None


def _hold_mappings(rankings: Iterable[Any]) -> bool:
    """Return whether rankings contain mappings. Only the first and last results are checked, for speed."""
    rankings = list(rankings)
    if set(map(type, rankings)) == {list}:
        filled = list(filter(None, rankings))
        if {*map(type, map(itemgetter(0), filled)), *map(type, map(itemgetter(-1), filled))} <= {str}:
            return False
    for ranking in rankings:
        kind = type(ranking)
        if kind is dict:
            continue
        cells = ranking if kind is list or kind is tuple else plain(ranking)
        if isinstance(cells, (list, tuple)) and cells and any(map(_is_mapping, (cells[0], cells[-1]))):
            return True
    return False


def _is_mapping(cell: Any) -> bool:
    """Return whether a result is a mapping, with or without a score."""
    result = cell[0] if isinstance(cell, (tuple, list)) and len(cell) == 2 else cell
    # Nearly all are ids, so rule out strings first.
    return type(result) is not str and isinstance(result, Mapping)


def _composed(calls: Sequence[int], scores: Sequence[float]) -> list[float]:
    """Compute scores that decrease from one call to the next and keep the original order within a call."""
    call, score = (np.unique(np.array(column), return_inverse=True)[1] + 1 for column in (calls, scores))
    composed: list[float] = (score - call * (len(calls) + 1.0)).tolist()
    return composed


def _columns_in_order(run: Run, columns: Columns) -> Run:
    schema = columns.guard(columns.frame.collect_schema)
    if CALLS not in schema:
        return run
    call, score = call_numbers(pl.col(CALLS)), pl.col("score") + 0.0
    places = [column.rank("dense").over("qid").cast(pl.Float64) for column in (call, score)]
    composed = places[1] - places[0] * (pl.len().over("qid") + 1.0)
    # A row without a valid call has no score: the slow reader reports the error.
    sound = call.is_not_null() & is_score(score)
    original_score = pl.col(ORIGINAL_SCORE if ORIGINAL_SCORE in schema else "score").alias(ORIGINAL_SCORE)
    frame = columns.frame.with_columns(original_score, score=pl.when(sound).then(composed))

    def recheck() -> Run:
        return in_call_order(replace(run, contents=columns.recheck().contents))

    return replace(run, contents=replace(columns, frame=frame, recheck=recheck))


def calls_between(calls: Ints, rank: Ints) -> Ints:
    """Return the increase in call number from result to result. The cumulative sum in rank order gives the calls."""
    return np.where(rank == 1, calls, np.diff(calls, prepend=0))


def rankings_to_write(run: Run, policy: Policy) -> tuple[Iterable[Ranking], dict[Any, list[int]], Trials]:
    """Return all rankings with their original scores, their calls by query (or query and trial), and their trials."""
    if run.trials:
        written: list[Ranking] = []
        calls: dict[Any, list[int]] = {}
        trials: list[int] = []
        for trial, one in enumerate(run.trials, 1):
            of_one, called, _ = rankings_to_write(one, policy)
            written += of_one
            calls |= {(qid, trial): each for qid, each in called.items()}
            trials += [trial] * (len(written) - len(trials))
        return written, calls, {BUILD if run.is_build else TRIAL: trials}
    by_query = calls_of(run, replace(policy, duplicates="penalize"))
    rankings = (
        (qid, ids, by_query[qid].scores if by_query else None if scores is None else list(scores))
        for qid, (ids, scores) in all_rankings(run, policy)
    )
    return rankings, {qid: of_query.calls for qid, of_query in by_query.items()}, NO_TRIALS


class QueryCalls(NamedTuple):
    """The call that returned each result of a query, in rank order, and the original scores, if any."""

    calls: list[int]
    scores: list[float] | None


def calls_of(run: Run, policy: Policy, qids: Sequence[str] | None = None) -> dict[str, QueryCalls]:
    """Return the calls for these queries (on a cluster, only one) or for all, or nothing if results have no calls."""
    if isinstance(run.contents, Remote):
        if qids is None or {CALL_COLUMN, CALL_LIST}.isdisjoint(canonical(remote_names(run.contents.frame))):
            return {}
        run = run.contents.of_query(run, qids[0], policy)
    carrier = local_carrier_of(run, "reading calls")
    if not carrier.carries(CALLS):
        return {}
    names = carrier.qids() if qids is None else list(qids)
    queries = GroundTruth.from_rows(names, [[] for _ in names], Policy())
    flat = carrier.flat(queries, policy, CALLS, carrier.score_field)
    ends = np.cumsum(flat.sizes(len(names))).tolist()
    calls, scores = flat.fields[CALLS].tolist(), flat.fields[carrier.score_field]
    numbers = {}
    for name, begin, end in zip(names, [0, *ends], ends):
        of_query = scores[begin:end]
        as_given = None if None in of_query else [run.sign * score for score in of_query]
        numbers[name] = QueryCalls(calls[begin:end], as_given)
    return numbers
