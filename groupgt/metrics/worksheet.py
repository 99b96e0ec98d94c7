"""Collects one query's numbers for worked examples of formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.model.hits import Contents, Hits, Judgments
from groupgt.records import record


@dataclass(frozen=True)
class Hit:
    """A hit of a group, with the result's rank, the hit's number within the group, and the alternative's grade."""

    rank: int
    nth: int
    grade: float


@record
class Group:
    """A group with its weight, the grades of its relevant alternatives, and its hits within the cutoff."""

    weight: float
    grades: tuple[float, ...]
    hits: tuple[Hit, ...]

    @property
    def first(self) -> int | None:
        """The rank at which the group is first covered, or None."""
        return self.hits[0].rank if self.hits else None


def _table(view: Callable[[Hits], views.GainRows]) -> cached_property[tuple[tuple[int, float], ...]]:
    """Build a property for `Sheet` that lists (rank, grade) of the query's results in a view, within the cutoff."""

    def pairs(sheet: Sheet) -> tuple[tuple[int, float], ...]:
        table = view(sheet.hits)
        chosen = (table.query == sheet.query) & (table.rank <= sheet.top)
        return tuple(zip(table.rank[chosen].tolist(), table.gain[chosen].tolist()))

    return cached_property(pairs)


@record
class Sheet:
    """The data of one query, cut at `top` results. `k` is the value of k in formulas.

    `ideal` is the depth at which ideal rankings are cut, or None if ideal rankings are not cut. With `no_cut`, ideal
    rankings are not even cut at the length of the list. Result tables contain (rank, grade) pairs.
    """

    hits: Hits
    query: int
    top: int
    k: int
    ideal: int | None
    no_cut: bool

    @classmethod
    def of(cls, hits: Hits, query: int, cut: Cut) -> Sheet:
        """Build the sheet for one query of a run, with the given cut."""
        ideal = None if cut.ideal is None else int(cut.ideal[query])
        return cls(hits, query, int(cut.top[query]), int(cut.k[query]), ideal, cut.no_cut)

    @property
    def judgments(self) -> Judgments:
        """The judgments for all queries."""
        return self.hits.judgments

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups of the query, with their hits within the cutoff."""
        return _groups(self.hits, self.query, self.top, repeats=False)

    @cached_property
    def counted_groups(self) -> tuple[Group, ...]:
        """All groups of the query, with repeated hits if the policy keeps them."""
        return _groups(self.hits, self.query, self.top, repeats=True)

    # The tables of results, named after their views.
    results = _table(views.relevant_results)
    graded = _table(views.graded_results)
    counted = _table(views.counted_results)
    judged = _table(views.judged_results)
    novel = _table(views.novel_results)
    harmful = _table(views.harmful_results)

    @cached_property
    def documents(self) -> int:
        """The number of distinct relevant documents hit. A single result may hit several documents."""
        rows = views.relevant_hits(self.hits)
        return len(np.unique(rows.document[(rows.query == self.query) & (rows.rank <= self.top)]))

    @cached_property
    def contents(self) -> Mapping[str, Sequence[float]]:
        """The text scores of the results, by measure. Text scores are available only to metrics that use text."""
        contents = cast(Contents, self.hits.contents)
        chosen = (contents.query == self.query) & (contents.rank <= self.top)
        return {name: column[chosen].tolist() for name, column in contents.scores.items()}

    @property
    def scale(self) -> float:
        """The ratio of the group weights to the weights used for ideal rankings."""
        if not self.groups:
            return 1.0
        first = int(np.searchsorted(self.judgments.group_query, self.query))
        return float(self.judgments.group_weight[first] / self.judgments.weight[first])

    def is_relevant(self, grade: float) -> bool:
        """Return whether a document with this grade is relevant."""
        return bool(self.judgments.is_relevant(np.array([grade]))[0])

    @property
    def relevant(self) -> int:
        """The number of relevant documents, called R in formulas."""
        return int(self.judgments.relevant[self.query])

    @property
    def covered(self) -> tuple[Group, ...]:
        """The groups covered within the cutoff."""
        return tuple(group for group in self.groups if group.hits)


def _groups(hits: Hits, query: int, top: int, *, repeats: bool) -> tuple[Group, ...]:
    judgments = hits.judgments
    rows, nth = views.group_hits(hits, repeats=repeats)
    first, last = np.searchsorted(judgments.group_query, [query, query + 1]).tolist()
    hits_of: list[list[Hit]] = [[] for _ in range(first, last)]
    part = views.part_of(rows.query, query)
    columns = (rows.group[part], rows.rank[part], nth[part], rows.grade[part])
    for group, rank, number_of_hit, grade in zip(*(column.tolist() for column in columns)):
        if rank <= top:
            hits_of[group - first].append(Hit(rank, number_of_hit, grade))
    grades: list[list[float]] = [[] for _ in range(first, last)]
    part = views.part_of(judgments.alternative_query, query)
    for group, grade in zip(judgments.alternative_group[part].tolist(), judgments.alternative_grade[part].tolist()):
        if group >= 0:
            grades[group - first].append(grade)
    weights = judgments.group_weight[first:last].tolist()
    return tuple(Group(*parts) for parts in zip(weights, map(tuple, grades), map(tuple, hits_of)))
