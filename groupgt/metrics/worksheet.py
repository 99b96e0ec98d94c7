"""The figures of one query for worked examples, as expressions.

An expression contains only numbers, `+ - * / **`, brackets and `log2`, so a reader or a test can evaluate it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.model.hits import Contents, Hits, Ints, Judgments


@dataclass(frozen=True)
class Hit:
    """A hit of one group: the result's rank, its number among the group's hits, the grade of the alternative."""

    rank: int
    nth: int
    grade: float


@dataclass(frozen=True)
class Group:
    """One group: its weight, the relevant alternatives' grades, and its hits within top."""

    weight: float
    grades: tuple[float, ...]
    hits: tuple[Hit, ...]

    @property
    def first(self) -> int | None:
        """The rank that first covers the group, or None."""
        return self.hits[0].rank if self.hits else None


@dataclass(frozen=True)
class Sheet:
    """One query, cut at `top` results; `k` is the k of formulas.

    `ideal` is the depth at which ideals are cut, None if they are not; with `no_cut` they are not cut at the length of
    the list either. Tables of results contain (rank, grade). Values are computed only when a formula uses them.
    """

    hits: Hits
    query: int
    top: int
    k: int
    ideal: int | None
    no_cut: bool

    @classmethod
    def of(cls, hits: Hits, query: int, cut: Cut) -> Sheet:
        """The sheet of one query of a run at a cutoff."""
        ideal = None if cut.ideal is None else int(cut.ideal[query])
        return cls(hits, query, int(cut.top[query]), int(cut.k[query]), ideal, cut.no_cut)

    @property
    def judgments(self) -> Judgments:
        """The judgments of every query."""
        return self.hits.judgments

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Each group, with its hits within top."""
        return _groups(self.hits, self.query, self.top, repeats=False)

    @cached_property
    def counted_groups(self) -> tuple[Group, ...]:
        """The hits with repeats, if the policy keeps them."""
        return _groups(self.hits, self.query, self.top, repeats=True)

    @cached_property
    def results(self) -> tuple[tuple[int, float], ...]:
        """The relevant results."""
        return self._results(views.relevant_results(self.hits))

    @cached_property
    def graded(self) -> tuple[tuple[int, float], ...]:
        """The results with a grade above 0, regardless of the policy's level."""
        return self._results(views.graded_results(self.hits))

    @cached_property
    def counted(self) -> tuple[tuple[int, float], ...]:
        """The same with repeats if the policy keeps them."""
        return self._results(views.counted_results(self.hits))

    @cached_property
    def judged(self) -> tuple[tuple[int, float], ...]:
        """All judged results."""
        return self._results(views.judged_results(self.hits))

    @cached_property
    def novel(self) -> tuple[tuple[int, float], ...]:
        """The results that cover a new group, with the highest grade among the groups newly covered."""
        return self._results(views.novel_results(self.hits))

    @cached_property
    def documents(self) -> int:
        """The number of distinct relevant documents that are hit: a result may hit several."""
        rows = views.relevant_hits(self.hits)
        return len(np.unique(rows.document[(rows.query == self.query) & (rows.rank <= self.top)]))

    @cached_property
    def contents(self) -> Mapping[str, Sequence[float]]:
        """The scores of the results' contents; available only to metrics that need them."""
        contents = cast(Contents, self.hits.contents)
        chosen = (contents.query == self.query) & (contents.rank <= self.top)
        return {name: column[chosen].tolist() for name, column in contents.scores.items()}

    def _results(self, table: views.Results) -> tuple[tuple[int, float], ...]:
        chosen = (table.query == self.query) & (table.rank <= self.top)
        return tuple(zip(table.rank[chosen].tolist(), table.gain[chosen].tolist()))

    @property
    def scale(self) -> float:
        """The ratio of the weights to the weights used for ideals."""
        if not self.groups:
            return 1.0
        first = int(np.searchsorted(self.judgments.group_query, self.query))
        return float(self.judgments.group_weight[first] / self.judgments.weight[first])

    def is_relevant(self, grade: float) -> bool:
        """Whether a document of this grade is relevant."""
        return bool(self.judgments.is_relevant(np.array([grade]))[0])

    @property
    def relevant(self) -> int:
        """R."""
        return int(self.judgments.relevant[self.query])

    @property
    def met(self) -> tuple[Group, ...]:
        """The groups covered within top."""
        return tuple(group for group in self.groups if group.hits)


def _groups(hits: Hits, query: int, top: int, *, repeats: bool) -> tuple[Group, ...]:
    judgments = hits.judgments
    rows, nth = views.group_hits(hits, repeats=repeats)
    first, last = np.searchsorted(judgments.group_query, [query, query + 1]).tolist()
    hits_of: list[list[Hit]] = [[] for _ in range(first, last)]
    part = _part(rows.query, query)
    columns = (rows.group[part], rows.rank[part], nth[part], rows.grade[part])
    for group, rank, number_of_hit, grade in zip(*(column.tolist() for column in columns)):
        if rank <= top:
            hits_of[group - first].append(Hit(rank, number_of_hit, grade))
    grades: list[list[float]] = [[] for _ in range(first, last)]
    part = _part(judgments.alternative_query, query)
    for group, grade in zip(judgments.alternative_group[part].tolist(), judgments.alternative_grade[part].tolist()):
        if group >= 0:
            grades[group - first].append(grade)
    weights = judgments.group_weight[first:last].tolist()
    return tuple(Group(*parts) for parts in zip(weights, map(tuple, grades), map(tuple, hits_of)))


def _part(queries: Ints, query: int) -> slice:
    """The slice of the rows of one query, among rows in the order of queries."""
    return slice(*np.searchsorted(queries, [query, query + 1]).tolist())


def number(value: float) -> str:
    """Formats a number with up to 12 digits.

    >>> number(2.0), number(0.1), number(-0.5)
    ('2', '0.1', '(-0.5)')
    """
    text = str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.12g}"
    return f"({text})" if value < 0 else text


def plus(terms: Iterable[str]) -> str:
    """`a + b`, or `0` if there is nothing to add."""
    return " + ".join(terms) or "0"


def times(*factors: str) -> str:
    """`a*b`, leaving out factors of 1."""
    return "*".join(factor for factor in factors if factor != "1") or "1"


def over(numerator: str, denominator: str | float) -> str:
    """`(numerator) / (denominator)`; 0 over anything is written 0."""
    bottom = denominator if isinstance(denominator, str) else number(denominator)
    if "0" in (numerator, bottom):
        return "0"
    return f"{_bracketed(numerator)} / {_bracketed(bottom)}"


def at_most_one(text: str, value: float, ideal: float) -> str:
    """A share as written, or `min(1, share)` if the value exceeds the ideal."""
    return f"min(1, {text})" if value > ideal > 0 else text


def log_share(rank: int, gain: float = 1.0) -> str:
    """`gain/log2(rank+1)`."""
    return f"{number(gain)}/log2({rank}+1)"


def _bracketed(text: str) -> str:
    simple = all(letter.isalnum() or letter == "." for letter in text)
    return text if simple else f"({text})"
