"""The only inputs of metrics: ground truth as numbers (`Judgments`) and hits (`Hits`), without ids, texts or files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from groupgt.records import record

# What `NDArray` of numpy.typing stands for, which is slow to import.
Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
T = TypeVar("T")


class _Remembering:
    """Caches computed values, such as those that depend only on the ground truth and can be reused for every run."""

    @cached_property
    def _memo(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return `make()`, cached under `key`."""
        if key not in self._memo:
            self._memo[key] = make()
        result: T = self._memo[key]
        return result


@record
class Judgments(_Remembering):
    """Ground truth as numbers for `Q` queries, `G` groups with a relevant alternative, `A` alternatives, `D` documents.

    Each alternative is one membership: a document in two groups counts as two alternatives. Alternatives are sorted by
    query, then by group; groups are sorted by query.

    `alternative_group` is −1 if the alternative is judged non-relevant: its grade is ≤ 0, or below `level` if one is
    set. `byte_order` ranks documents by id in byte order within each query. `zeros` marks queries that count although
    they have no group, shape (Q,). If sets of alternatives are needed together, `alternative_set` contains the number
    of each alternative's set, or −1. `unanswerable` marks queries that are declared to have no answer, shape (Q,); only
    a few metrics are defined for them. `harmful` marks alternatives that must not be retrieved, shape (A,).
    `with_level` returns the judgments at another level, with the same alternatives in the same order. `highest` is the
    highest grade in the full ground truth if these are only some of its queries.
    """

    size: int
    alternative_query: Ints
    alternative_group: Ints
    alternative_grade: Floats
    alternative_document: Ints
    group_query: Ints
    group_weight: Floats
    documents: int
    byte_order: Callable[[Ints], Ints]
    qid: Callable[[int], str] = str
    level: float | None = None
    zeros: Bools | None = None
    alternative_set: Ints | None = None
    unanswerable: Bools | None = None
    harmful: Bools | None = None
    with_level: Callable[[float], Judgments] | None = None
    highest: float | None = None

    def at_level(self, level: float) -> Judgments:
        """Return the judgments with documents relevant at this grade or above."""
        if level == self.level or self.with_level is None:
            return self
        with_level = self.with_level
        return self.once(("level", level), lambda: with_level(level))

    def is_relevant(self, grade: Floats) -> Bools:
        """Return a mask of the grades that count as relevant."""
        return np.asarray(grade > 0 if self.level is None else grade >= self.level)

    @cached_property
    def groups(self) -> Ints:
        """Number of groups m for each query, shape (Q,)."""
        return np.bincount(self.group_query, minlength=self.size)

    @cached_property
    def defined(self) -> Bools:
        """Mask of the queries that count because they have a group or are scored 0, shape (Q,)."""
        return self.groups > 0 if self.zeros is None else (self.groups > 0) | self.zeros

    @cached_property
    def names_harmful(self) -> Bools:
        """Mask of the queries with a harmful alternative, shape (Q,)."""
        harmful = self.alternative_query[:0] if self.harmful is None else self.alternative_query[self.harmful]
        return np.bincount(harmful, minlength=self.size) > 0

    @cached_property
    def weight(self) -> Floats:
        """Group weights, scaled by a power of two for each query to prevent overflow in sums; ratios do not change."""
        if not self.group_weight.size or np.all(self.group_weight == 1.0):
            return self.group_weight
        highest = np.zeros(self.size)
        np.maximum.at(highest, self.group_query, self.group_weight)
        exponent = np.frexp(highest)[1]
        return np.ldexp(self.group_weight, -exponent[self.group_query])

    @cached_property
    def weighted(self) -> Bools:
        """Mask of the queries with at least one group weight other than 1, shape (Q,)."""
        weighted = np.zeros(self.size, dtype=np.bool_)
        weighted[self.group_query[self.group_weight != 1.0]] = True
        return weighted

    @cached_property
    def total_weight(self) -> Floats:
        """Total group weight for each query, summed in group order, shape (Q,)."""
        return np.bincount(self.group_query, self.weight, minlength=self.size).astype(np.float64, copy=False)

    @cached_property
    def document_grade(self) -> Floats:
        """Highest grade of each document across its groups, shape (D,); −inf for unused numbers."""
        grade = np.full(self.documents, -np.inf)
        np.maximum.at(grade, self.alternative_document, self.alternative_grade)
        return grade

    @cached_property
    def highest_grade(self) -> float:
        """Highest grade in the ground truth; −inf without documents."""
        return float(self.document_grade.max(initial=-np.inf)) if self.highest is None else self.highest

    @cached_property
    def is_judged(self) -> Bools:
        """Mask of the alternatives whose document is judged: its highest grade is at least 0, shape (A,)."""
        return np.asarray(self.document_grade[self.alternative_document] >= 0)

    @cached_property
    def document_query(self) -> Ints:
        """Query of each document, shape (D,); −1 for unused numbers."""
        query = np.full(self.documents, -1, dtype=np.int64)
        query[self.alternative_document] = self.alternative_query
        return query

    @cached_property
    def relevant(self) -> Ints:
        """Number of distinct relevant documents R for each query, shape (Q,)."""
        return np.bincount(self.document_query[self.is_relevant(self.document_grade)], minlength=self.size)

    @cached_property
    def rejected(self) -> Ints:
        """Number of judged non-relevant documents N (highest grade at least 0) for each query, shape (Q,)."""
        rejected = (self.document_grade >= 0) & ~self.is_relevant(self.document_grade)
        return np.bincount(self.document_query[rejected], minlength=self.size)

    @cached_property
    def one_to_one(self) -> bool:
        """True if every document occurs in at most one alternative."""
        counts = np.bincount(self.alternative_document, minlength=self.documents)
        return not bool(np.any(counts > 1))

    @cached_property
    def sharing(self) -> Bools:
        """Mask of the queries with a relevant document that occurs in more than one alternative, shape (Q,)."""
        sharing = np.zeros(self.size, dtype=np.bool_)
        if not self.one_to_one:
            relevant = np.flatnonzero(self.alternative_group >= 0)
            document = self.alternative_document[relevant]
            counts = np.bincount(document, minlength=self.documents)
            sharing[self.alternative_query[relevant[counts[document] > 1]]] = True
        return sharing

    @cached_property
    def sharing_order(self) -> Ints:
        """Rank of each alternative's document in byte order, or 0 if its query has no shared documents, shape (A,)."""
        places = np.zeros(len(self.alternative_query), dtype=np.int64)
        rows = np.flatnonzero(self.sharing[self.alternative_query])
        places[rows] = self.byte_order(rows)
        return places

    @cached_property
    def group_sizes(self) -> Ints:
        """Number of relevant alternatives |G| in each group, shape (G,)."""
        return np.bincount(self.alternative_group[self.alternative_group >= 0], minlength=len(self.group_query))

    @cached_property
    def alternatives_by_document(self) -> tuple[Ints, Ints]:
        """Alternatives sorted by document, and D + 1 offsets that mark where each document's alternatives begin."""
        order = np.argsort(self.alternative_document, kind="stable")
        counts = np.bincount(self.alternative_document, minlength=self.documents)
        return order, np.concatenate(([0], np.cumsum(counts)))


@record
class Contents:
    """Content scores with one column per measure and one row per result, in rank order."""

    query: Ints
    rank: Ints
    scores: Mapping[str, Floats]


class Hit(NamedTuple):
    """One row of `Hits`. `group` is the number of the group in its query, or 0 if the alternative is not relevant."""

    rank: int
    group: int
    grade: float
    repeat: bool
    part: bool
    harmful: bool


@record
class Hits(_Remembering):
    """A table with one row per hit, sorted by query, rank and alternative, without a cutoff.

    The first row of each (query, alternative) pair has `repeat` False. All other rows score nothing unless `keep`
    selects AutoRAG's arithmetic. `length` is the number of results for each query, shape (Q,); `prefixes` contains the
    number of results within each requested budget, and `contents` the results' content scores, if a metric needs them.
    """

    judgments: Judgments
    query: Ints
    rank: Ints
    alternative: Ints
    repeat: Bools
    length: Ints
    keep: bool = False
    prefixes: Mapping[Hashable, Ints] = field(default_factory=dict)
    contents: Contents | None = None

    @property
    def size(self) -> int:
        """Number of queries."""
        return self.judgments.size

    @cached_property
    def group(self) -> Ints:
        """Group that each row hits, or −1 if its alternative is judged non-relevant."""
        return self.judgments.alternative_group[self.alternative]

    @cached_property
    def harmful(self) -> Bools:
        """Mask of the rows that hit a harmful alternative."""
        harmful = self.judgments.harmful
        return np.zeros(len(self.alternative), dtype=np.bool_) if harmful is None else harmful[self.alternative]

    @cached_property
    def part(self) -> Bools:
        """Mask of the rows that hit a set member without completing the set. Only the last member hits the group."""
        if (of_set := self.judgments.alternative_set) is None:
            return np.zeros(len(self.alternative), dtype=np.bool_)
        row = np.flatnonzero((of_set[self.alternative] >= 0) & ~self.repeat)
        number = of_set[self.alternative[row]]
        sizes = np.bincount(of_set[of_set >= 0])
        # Rows are in rank order: the last one completes the set, if all members are hit.
        last = np.full(len(sizes), -1, dtype=np.int64)
        np.maximum.at(last, number, row)
        last[np.bincount(number, minlength=len(sizes)) < sizes] = -1
        part: Bools = of_set[self.alternative] >= 0
        part[last[last >= 0]] = False
        return part

    @cached_property
    def relevant(self) -> Bools:
        """Mask of the rows that hit a group, including repeats."""
        return np.asarray((self.group >= 0) & ~self.part)

    @cached_property
    def counted(self) -> Bools:
        """Mask of the rows that hit a group and count. Repeats count only if the policy keeps them."""
        return self.relevant if self.keep else self.relevant & ~self.repeat

    @cached_property
    def first_ranks(self) -> Ints:
        """Rank of each group's first hit, or 0 without a hit, shape (G,)."""
        first = np.zeros(len(self.judgments.group_query), dtype=np.int64)
        # Rows are in rank order, and assigning backwards leaves the first one.
        first[self.group[self.relevant][::-1]] = self.rank[self.relevant][::-1]
        return first

    def covered(self, top: Ints | int) -> Bools:
        """Return a mask of the groups with a hit in the first `top` results (`top` may vary by query), shape (G,)."""
        depth = np.broadcast_to(np.asarray(top, dtype=np.int64), self.size)[self.judgments.group_query]
        return np.asarray((self.first_ranks > 0) & (self.first_ranks <= depth))

    @cached_property
    def completion_ranks(self) -> Ints:
        """Rank at which each query is complete, or 0 if it never is, shape (Q,)."""
        last = np.zeros(self.size, dtype=np.int64)
        np.maximum.at(last, self.judgments.group_query, self.first_ranks)
        last[self.judgments.group_query[self.first_ranks == 0]] = 0
        return last

    def of_query(self, query: int) -> Iterator[Hit]:
        """Yield the rows of one query in rank order."""
        rows = slice(*np.searchsorted(self.query, [query, query + 1]).tolist())
        before = int(np.searchsorted(self.judgments.group_query, query)) - 1
        group, grade = self.group[rows], self.judgments.alternative_grade[self.alternative[rows]]
        number = np.where(group < 0, 0, group - before)
        columns = (self.rank[rows], number, grade, self.repeat[rows], self.part[rows], self.harmful[rows])
        yield from map(Hit, *(column.tolist() for column in columns))

    def at_level(self, level: float | None) -> Hits:
        """Return the same hits with documents relevant at this grade or above. Without a level, return these hits."""
        if level is None or level == self.judgments.level:
            return self
        return self.once(("level", level), lambda: replace(self, judgments=self.judgments.at_level(level)))
