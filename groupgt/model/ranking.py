"""Orders a query's results and handles repeats, in lists and in polars columns. The compiled module has its own loops.

A higher score ranks first. Results with equal scores are in descending byte order of their ids (`ties=id`), or in input
order (`ties=input`). A repeat is an id that also ranks higher in the same query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import gt, itemgetter
from typing import Any, TypeVar

from groupgt.model.policy import Policy
from groupgt.model.validity import finite_number
from groupgt.runtime import pl

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")
# The ids of one query, best first, and their scores as given; None if they have none.
Ranking = tuple[list[str], Sequence[float] | None]
WITHOUT_REPEATS = "remove it, or set the duplicates=drop policy"


def deciding(ties: str, tie: str = "tie") -> list[str]:
    """Return the columns that decide the order, most important first. The greatest values rank first."""
    return ["score", tie] if ties == "id" else ["score"]


def repeat_fault(name: str) -> str:
    """Return the message for a repeated result under the `duplicates=error` policy."""
    return f"duplicate result {name!r}; {WITHOUT_REPEATS}"


def by_rank(ranking: Any) -> Any:
    """Sort a list of objects by rank if all have ranks and no scores. Return any other ranking unchanged."""
    if not isinstance(ranking, list) or not all(
        isinstance(each, dict) and each.get("score") is None and finite_number(each.get("rank")) is not None
        for each in ranking
    ):
        return ranking
    return sorted(ranking, key=itemgetter("rank"))


def rank_keys(ids: Sequence[str], scores: Sequence[float], ties: str = "id") -> Sequence[Any]:
    """Return a sort key for each result. The greatest key ranks first. Strings sort by their UTF-8 bytes."""
    columns = {"score": scores, "tie": ids}
    chosen = [columns[name] for name in deciding(ties)]
    return list(zip(*chosen)) if len(chosen) > 1 else scores


def places_in_order(ids: Sequence[str], scores: Sequence[float], policy: Policy) -> Sequence[int]:
    """Return the input positions of results, best first. Strictly decreasing scores are fast."""
    places = range(len(ids))
    if all(map(gt, scores, islice(scores, 1, None))):
        return places
    return sorted(places, key=rank_keys(ids, scores, policy.ties).__getitem__, reverse=True)


def ranked_places(ids: list[str], scores: Sequence[float] | None, policy: Policy) -> Sequence[int]:
    """Return the input positions of results, best first. Remove repeats if the policy drops them."""
    places: Sequence[int] = range(len(ids)) if scores is None else places_in_order(ids, scores, policy)
    if policy.duplicates != "drop" or len(set(ids)) == len(ids):
        return places
    first: dict[str, int] = {}
    for place in places:
        first.setdefault(ids[place], place)
    return list(first.values())


def distinct_ranking(ids: list[str], scores: Sequence[float] | None, policy: Policy) -> Ranking:
    """Return a ranking. If the policy drops repeats, remove them and their scores."""
    return (ids, scores) if policy.duplicates != "drop" else (list(dict.fromkeys(ids)), None)


def best_first(rows: Frame, leads: list[str], policy: Policy, *, tie: str = "tie", scored: bool = False) -> Frame:
    """Sort rows by the leading columns, then best first (by score only if `scored`), then by `row`."""
    columns: list[str] = deciding(policy.ties, tie)[0 if scored else 1 :]
    return rows.sort([*leads, *columns, "row"], descending=[False] * len(leads) + [True] * len(columns) + [False])


def best_of_each(rows: pl.LazyFrame, policy: Policy, tie: str) -> pl.LazyFrame:
    """Return the best row for each (query, document), with its number of rows in `len`, without sorting all rows."""
    score, *others = deciding(policy.ties, tie)
    best = pl.col(score) == pl.col(score).max()
    for name in others:
        best &= pl.col(name) == pl.col(name).filter(best).max()
    first = pl.col("row").filter(best).min()
    ties = [] if tie == "doc" else [pl.col(tie).filter(pl.col("row") == first).first()]
    return rows.group_by("qid", "doc").agg(pl.len(), pl.col("score").max(), first, *ties)
