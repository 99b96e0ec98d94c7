"""Reads results' ids, scores and other fields from rankings in any supported shape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from groupgt import native
from groupgt.errors import Faults, strange_result
from groupgt.formats.fields import CALL_COLUMN, call_of, calls_fault
from groupgt.formats.roles import id_in
from groupgt.model.validity import are_ids, are_plainly_ids, finite_number, id_fault, id_text, plain, shown, unscored
from groupgt.model.values import SCORE, span_of

# The usual types for a pair of id and score.
PAIRS = {tuple, list}


def by_text_keys(rankings: Mapping[Any, Any], title: str) -> Mapping[str, Any]:
    """Return rankings by query id, as text, or raise `DataError` for keys that are not ids."""
    if native.is_plain(rankings, ends=False) or (set(map(type, rankings)) <= {str} and are_ids(list(rankings))):
        return rankings
    faults = Faults()
    out: dict[str, Any] = {}
    for key, ranking in rankings.items():
        name = id_text(key)
        if name is None:
            faults.add(title, f"expected a query id (a string or integer), found {key!r}")
        elif fault := id_fault(name):
            faults.add(title, f"the query id {shown(name)} {fault}")
        elif name in out:
            faults.add(title, f"duplicate query {name!r}, as a number and as a string")
        else:
            out[name] = ranking
    faults.stop()
    return out


def is_text_list(ranking: Any) -> bool:
    """Return whether a ranking is a list of strings, which can be used as is."""
    return type(ranking) is list and set(map(type, ranking)) == {str}


def ids_and_scores(ranking: Any, faults: Faults, where: str) -> tuple[list[str], list[float] | None]:
    """Read a ranking of ids, pairs or {id: score}. Scores are None for pairs, because pairs keep their order."""
    ranking = plain(ranking)
    if isinstance(ranking, Mapping):
        return _scored(ranking, faults, where)
    if ranking is None:
        return [], None
    if not isinstance(ranking, (list, tuple)):
        expected = "a list of ids, a list of (id, score) pairs, or {id: score}"
        faults.add(where, f"expected {expected}, found {shown(ranking)}")
        return [], None
    # The usual sequences: a few checks in C over all results.
    kinds = set(map(type, ranking))
    if kinds == {str}:
        return list(ranking), None
    if kinds <= PAIRS and set(map(len, ranking)) == {2}:
        names, scores = zip(*ranking)
        if set(map(type, names)) == {str} and _doubles(scores) is not None:
            return list(names), None
    ids: list[str] = []
    for place, cell in enumerate(ranking, 1):
        is_pair = isinstance(cell, (tuple, list)) and len(cell) == 2
        score = cell[1] if is_pair else cell.get(SCORE) if isinstance(cell, Mapping) else None
        if score is not None and finite_number(score) is None:
            faults.add(where, f"expected a score at rank {place}, found {score!r}")
            return [], None
        if is_pair:
            cell = cell[0]
        name = _name_of(cell)
        if name is None:
            faults.add(where, _what_is_wrong(cell, place))
            return [], None
        ids.append(name)
    calls = carried_cells(ranking, CALL_COLUMN)
    if calls is not None and (fault := calls_fault(list(map(call_of, calls)), len(ids), in_order=False)):
        faults.add(where, fault)
    return ids, None


def note_faulty_ids(ranking: Any, faults: Faults, where: str) -> None:
    """Record every result with an invalid id. Results identified by text or span have no id."""
    ranking = plain(ranking)
    if is_text_list(ranking) and are_plainly_ids(ranking):
        return
    if not isinstance(ranking, (list, tuple, Mapping)):
        return
    pairs = not isinstance(ranking, Mapping)
    for rank, result in enumerate(ranking, 1):
        cell = result[0] if pairs and isinstance(result, (tuple, list)) and len(result) == 2 else result
        name = id_text(id_in(cell) if isinstance(cell, Mapping) else cell)
        fault = None if name is None else id_fault(name)
        if fault:
            faults.add(where, f"the id {shown(name)} at rank {rank} {fault}")


def _scored(ranking: Mapping[Any, Any], faults: Faults, where: str) -> tuple[list[str], list[float] | None]:
    # The usual mapping: a few checks in C of its keys and values.
    if set(map(type, ranking)) == {str} and (doubles := _doubles(ranking.values())) is not None:
        return list(ranking), doubles
    ids: list[str] = []
    scores: list[float] = []
    for key, value in ranking.items():
        name, score = id_text(key), finite_number(value)
        if name is None:
            faults.add(where, f"expected an id (a string or integer), found {key!r} of type {type(key).__name__}")
            return [], None
        if score is None:
            faults.add(where, f"expected a finite number as the score of {name!r}, found {value!r}{unscored(value)}")
            return [], None
        ids.append(name)
        scores.append(score)
    return ids, scores


def _doubles(values: Iterable[Any]) -> list[float] | None:
    """Convert doubles to Python floats, or return None unless all are certainly finite."""
    try:
        # NumPy doubles also have this method; nothing else does.
        doubles = list(map(float.conjugate, values))
    except TypeError:
        return None
    return doubles if math.isfinite(sum(doubles)) else None


def _name_of(cell: Any) -> str | None:
    """Return the id of a result, or else its span (`{"doc", "start", "end"}`) or text (`{"text"}`) as its name."""
    if not isinstance(cell, Mapping):
        return id_text(cell)
    if (name := id_in(cell)) is not None:
        return id_text(name)
    if cell.get("start") is not None:
        span = span_of(cell)
        return None if isinstance(span, str) else str(span)
    text = cell.get("text")
    return text if isinstance(text, str) else None


def _what_is_wrong(cell: Any, rank: int) -> str:
    if isinstance(cell, Mapping) and id_in(cell) is None:
        span = span_of(cell) if "start" in cell else None
        return f"at rank {rank}: {span}" if isinstance(span, str) else strange_result(cell)
    return f"expected an id (a string or integer) at rank {rank}, found {shown(cell)} of type {type(cell).__name__}"


def carried_cells(ranking: Any, field: str) -> list[Any] | None:
    """Return a field's values from results that are mappings, or scores from pairs. Without values, return None."""
    ranking = plain(ranking)
    if not isinstance(ranking, (list, tuple)):
        return None
    in_pairs = [isinstance(cell, (tuple, list)) and len(cell) == 2 for cell in ranking]
    if field == SCORE and in_pairs and all(in_pairs):
        return [cell[1] for cell in ranking]
    results = [cell[0] if is_pair else cell for cell, is_pair in zip(ranking, in_pairs)]
    # A result with start and end is its own span.
    key = "start" if field == "span" else field
    if not any(isinstance(result, Mapping) and (field in result or key in result) for result in results):
        return None
    cells: list[Any] = []
    for result in results:
        fields: Mapping[str, Any] = result if isinstance(result, Mapping) else {}
        cells.append(result if field not in fields and key in fields else fields.get(field))
    return cells
