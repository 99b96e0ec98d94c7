"""Rankings as Python has them: read in every shape, and put in order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import gt, itemgetter
from typing import Any

from groupgt.errors import Faults
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.model.spans import span_of
from groupgt.model.validity import finite_number, id_text, plain, shown


def text_keys(rankings: Mapping[Any, Any], title: str) -> Mapping[str, Any]:
    """Rankings by query as text; raises `DataError` for keys that are no ids."""
    if set(map(type, rankings)) <= {str}:
        return rankings
    faults = Faults()
    out: dict[str, Any] = {}
    for key, ranking in rankings.items():
        name = id_text(key)
        if name is None:
            faults.add(title, f"expected a query id (text or an integer), found {key!r}")
        elif name in out:
            faults.add(title, f"query {name!r} stands twice, as a number and as text")
        else:
            out[name] = ranking
    faults.stop()
    return out


def ties_of(run: Run, policy: Policy) -> Policy:
    """The policy for a run's scores: renamed lists were put in order by the names they had before."""
    return replace(policy, ties="input") if run.original is not None and run.in_memory else policy


def in_order(ranking: list[str], scores: Sequence[float], policy: Policy) -> tuple[list[str], Sequence[float]]:
    """Results in the order of their scores, under the tie rule; at once where scores fall strictly already."""
    if all(map(gt, scores, islice(scores, 1, None))):
        return ranking, scores
    rows = list(zip(scores, ranking))
    if policy.ties == "id":
        rows.sort(reverse=True)
    else:
        rows.sort(key=itemgetter(0), reverse=True)
    return [name for _, name in rows], [score for score, _ in rows]


def places_in_order(ranking: list[str], scores: Sequence[float], policy: Policy) -> Sequence[int]:
    """Where the results of `in_order` stand among those given."""
    places = range(len(ranking))
    if all(map(gt, scores, islice(scores, 1, None))):
        return places
    by_id = policy.ties == "id"
    return sorted(places, key=lambda at: (scores[at], ranking[at] if by_id else ""), reverse=True)


def ranked(ids: list[str], scores: Sequence[float] | None, policy: Policy) -> Sequence[int]:
    """Where results stand among those given, best first; of repeats the first alone, where the policy drops them."""
    places: Sequence[int] = range(len(ids)) if scores is None else places_in_order(ids, scores, policy)
    if policy.duplicates != "drop":
        return places
    first: dict[str, int] = {}
    for place in places:
        first.setdefault(ids[place], place)
    return list(first.values())


def ranking_of(ranking: Any, policy: Policy, faults: Faults, where: str) -> tuple[list[str], Sequence[float] | None]:
    """Reads one ranking in any of its shapes: ids, (id, score) pairs or {id: score}; scores order only the last.

    Returns ids, best first, and the scores that ordered them, None where the order was given.
    """
    ranking = plain(ranking)
    if isinstance(ranking, Mapping):
        return _by_score(ranking, policy, faults, where)
    if ranking is None:
        return [], None
    if not isinstance(ranking, (list, tuple)):
        faults.add(where, f"expected a list of ids, a list of (id, score), or {{id: score}}, found {shown(ranking)}")
        return [], None
    ids: list[str] = []
    for place, cell in enumerate(ranking, 1):
        if isinstance(cell, (tuple, list)) and len(cell) == 2:
            if finite_number(cell[1]) is None and cell[1] is not None:
                faults.add(where, f"expected a score at rank {place}, found {cell[1]!r}")
                return [], None
            cell = cell[0]
        name = _name_of(cell)
        if name is None:
            faults.add(where, _what_is_wrong(cell, place))
            return [], None
        ids.append(name)
    return ids, None


def _name_of(cell: Any) -> str | None:
    """What names a result: its id; of `{"doc", "start", "end"}` its place, of `{"text"}` its text."""
    if not isinstance(cell, Mapping):
        return id_text(cell)
    if cell.get("id") is not None:
        return id_text(cell["id"])
    if cell.get("start") is not None:
        span = span_of(cell)
        return None if isinstance(span, str) else str(span)
    text = cell.get("text")
    return text if isinstance(text, str) else None


def _what_is_wrong(cell: Any, rank: int) -> str:
    span = span_of(cell) if isinstance(cell, Mapping) and cell.get("id") is None and "start" in cell else None
    if isinstance(span, str):
        return f"at rank {rank}: {span}"
    kind = type(cell).__name__
    return f"expected an id (text or an integer) at rank {rank}, found {shown(cell)} of type {kind}"


def carried(ranking: Any, key: str) -> list[Any] | None:
    """What results that are mappings carry under a key, None where there are none such."""
    ranking = plain(ranking)
    if not isinstance(ranking, (list, tuple)):
        return None
    cells = [cell[0] if isinstance(cell, (tuple, list)) and len(cell) == 2 else cell for cell in ranking]
    # A result that says where it is from carries its place.
    wanted = "start" if key == "span" else key
    if not any(isinstance(cell, Mapping) and (key in cell or wanted in cell) for cell in cells):
        return None
    found = []
    for cell in cells:
        given = cell if isinstance(cell, Mapping) else {}
        found.append(cell if key not in given and wanted in given else given.get(key))
    return found


def _by_score(
    ranking: Mapping[Any, Any], policy: Policy, faults: Faults, where: str
) -> tuple[list[str], Sequence[float] | None]:
    if set(map(type, ranking)) == {str} and set(map(type, ranking.values())) == {float}:
        scores = list(ranking.values())
        if all(map(math.isfinite, scores)):
            return in_order(list(ranking), scores, policy)
    rows: list[tuple[float, str]] = []
    for key, given in ranking.items():
        name, score = id_text(key), finite_number(given)
        if name is None:
            faults.add(where, f"expected an id (text or an integer), found {key!r} of type {type(key).__name__}")
            return [], None
        if score is None:
            faults.add(where, f"expected a finite number as the score of {name!r}, found {given!r}")
            return [], None
        rows.append((score, name))
    return in_order([name for _, name in rows], [score for score, _ in rows], policy)
