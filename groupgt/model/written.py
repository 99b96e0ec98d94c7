"""Describes the columns of a ground truth, and returns its groups in input form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from groupgt.model.groups import ALONE
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.values import TEXT, Form, Span, Unsplit

# The shape of the rows that were read: single documents, documents of subtopics to cover, or groups.
Shape = Literal["flat", "subtopics", "groups"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True, eq=False, repr=False)
class Written:
    """The columns of a `GroundTruth` (see its docstring), and each query's groups in input form."""

    qids: list[str]
    ids: list[str]
    group_of: Ints
    grade: Floats
    group_query: Ints
    group_weight: Floats
    group_name: list[str | None] | None = None
    texts: list[str | None] | None = None
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    repeated_ids: int = 0
    dropped: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    forms: list[Form] | None = None
    keys: tuple[str, ...] = ()
    importance: list[str | None] | None = None
    policy: Policy = field(default_factory=Policy)
    shape: Shape = "groups"
    excluded: list[frozenset[str]] | None = None
    harmful: list[frozenset[str]] | None = None
    set_of: Ints | None = None
    comments: int = 0
    judged: Bools | None = None
    highest: float | None = None
    has_rejected: bool = False
    selected_from: list[str] | None = None
    unsplit: Unsplit = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.qids)

    def __contains__(self, qid: object) -> bool:
        return qid in self.index

    @cached_property
    def index(self) -> dict[str, int]:
        """Mapping from each query id to its position."""
        return dict(zip(self.qids, range(len(self.qids))))

    def __getitem__(self, qid: str) -> list[Any]:
        """Return a query's groups as lists, or as mappings for groups with a grade, weight or name."""
        query = self.index[qid]
        first, last = np.searchsorted(self.group_query, [query, query + 1]).tolist()
        bounds = np.searchsorted(self.group_of, np.arange(first, last + 1)).tolist()
        alternatives = (range(low, high) for low, high in pairwise(bounds))
        return [self._group_as_written(group, each) for group, each in enumerate(alternatives, first)]

    def items(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield each query with its groups."""
        for qid in self.qids:
            yield qid, self[qid]

    def _group_as_written(self, group: int, alternatives: Iterable[int]) -> Any:
        """Return a group in input form, limited to these alternatives."""
        written = [self._as_written(members) for members in self._sets(alternatives)]
        name = self.group_name[group] if self.group_name else None
        described: dict[str, Any] = {}
        if self.group_weight[group] != 1:
            described["weight"] = _number(self.group_weight[group])
        if name is not None:
            described["name"] = name
        if self.importance and self.importance[group] is not None:
            described["importance"] = self.importance[group]
        return {"alternatives": written, **described} if described else written

    def _sets(self, alternatives: Iterable[int]) -> list[list[int]]:
        """Within a group, combine alternatives of the same set."""
        if self.set_of is None:
            return [[alternative] for alternative in alternatives]
        sets: dict[object, list[int]] = {}
        for alternative in alternatives:
            number = int(self.set_of[alternative])
            sets.setdefault(number if number != ALONE else (alternative,), []).append(alternative)
        return list(sets.values())

    def _as_written(self, members: list[int], *, graded: bool = True) -> Any:
        """Return one alternative in input form, or a set if there are several members."""
        alternative = members[0]
        grade = {} if self.grade[alternative] == 1 or not graded else {"grade": _number(self.grade[alternative])}
        if len(members) > 1:
            return {"all": [self._as_written([member], graded=False) for member in members], **grade}
        form = self.forms[alternative] if self.forms else None
        if isinstance(form, Span):
            return {**form._asdict(), **grade}
        if form == TEXT:
            return {"text": self.ids[alternative], **grade}
        return {"id": self.ids[alternative], **grade} if grade else self.ids[alternative]


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else float(value)
