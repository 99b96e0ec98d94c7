"""Reads groups in any form into columns for `GroundTruth.from_rows`, and reports every error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar

import numpy as np

from groupgt import native
from groupgt.errors import Faults, display, key_of_id, warn
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.policy import Policy
from groupgt.model.validity import (
    GRADE_LIMIT,
    are_ids,
    finite_number,
    id_fault,
    id_text,
    is_grade,
    is_integer,
    plain,
    unjudged,
)
from groupgt.model.values import TEXT, Form, kind_of, span_of

# The columns of a `GroundTruth`, and values of its cached properties that are known already.
Read = tuple[dict[str, Any], dict[str, Any]]
T = TypeVar("T")
SEQUENCES = (list, tuple, set, frozenset)
# The set number of an alternative that is in no set.
ALONE = -1
# Most scales of grades end here or before.
HIGHEST_USUAL_GRADE = 5
# BRIGHT's marker for a query that excludes nothing.
NO_ID = "N/A"
# The kinds of alternative (id, span, text): the key that only this kind has, with its other keys.
SHAPES: dict[str, set[str]] = {"id": set(), "start": {"doc", "doc_id", "end"}, "text": set()}
ANSWERABLE = "answerable"
# What files and frames write for true, false, and nothing.
STATED: dict[str, bool | None] = {
    **dict.fromkeys(("true", "1", "1.0", "yes"), True),
    **dict.fromkeys(("false", "0", "0.0", "no"), False),
    **dict.fromkeys(("", "none", "nan", "<na>", "null")),
}


def read_groups(qids: Sequence[Any], rows: Sequence[Any], policy: Policy, place: Callable[[int], str] | None) -> Read:
    """Read each query's groups. Return the columns of a `GroundTruth`, and any properties already computed."""
    read = _read_plain(qids, rows) if native.built is None else _read_compiled(qids, rows, graded=False)
    if read is not None:
        return read
    reader = _Reader(policy)
    for position, (qid, row) in enumerate(zip(qids, rows)):
        reader.read(qid, row, place(position) if place else "")
    return reader.columns(), {}


def read_qrels(qids: Sequence[Any], rows: Sequence[Mapping[Any, Any]]) -> Read:
    """Read one `{id: grade}` per query, in the same way as `read_groups`, or raise `DataError` with all errors."""
    read = _read_compiled(qids, rows, graded=True)
    if read is not None and bool((np.abs(read[0]["grade"]) <= GRADE_LIMIT).all()):
        return read
    faults = Faults()
    names: list[str] = []
    grades: list[float] = []
    for qid, row in zip(qids, rows):
        where = f"query {display(qid)}"
        if id_text(qid) is None or id_fault(id_text(qid) or ""):
            faults.add(where, "expected text or an integer as the query id")
        relevant: set[str] = set()
        for name, cell in row.items():
            text, grade = id_text(name), finite_number(cell)
            if text is None or id_fault(text):
                faults.add(where, f"expected text or an integer as a document id, found {display(name)}")
            elif text in relevant:
                faults.add(where, f"document {text!r} is judged twice, as text and as a number")
            elif grade is None or not is_grade(grade):
                faults.add(where, f"expected a number as the grade of {text!r}, found {display(cell)}{unjudged(cell)}")
            else:
                relevant.add(text)
                names.append(text)
                grades.append(grade)
    faults.stop()
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    columns = _plain_columns([id_text(qid) or "" for qid in qids], names, sizes, np.ones(len(names), dtype=np.int64))
    return columns | {"grade": np.array(grades, dtype=np.float64)}, {}


def _read_compiled(qids: Sequence[Any], rows: Sequence[Any], *, graded: bool) -> Read | None:
    """Read lists of lists of ids (or `{id: grade}` if `graded`) with the compiled module. Return None otherwise."""
    read = None if native.built is None else native.built.index(list(qids), list(rows), native.SEED)
    if read is None or (read[3] is not None) != graded:
        return None
    ids, *arrays, grades, firsts, index = read
    groups, sizes, firsts = (np.frombuffer(array, dtype=np.int64) for array in (*arrays, firsts))
    columns = _plain_columns(list(qids), ids, groups, sizes)
    if graded:
        columns["grade"] = np.frombuffer(grades)
    return columns, {"document_of": firsts, "compiled": index}


def _read_plain(qids: Sequence[Any], rows: Sequence[Any]) -> Read | None:
    """Read lists of lists of strings in a few passes without the compiled module. Return None for any other input."""
    if not set(map(type, qids)) <= {str} or len(set(qids)) < len(qids) or not are_ids(qids):
        return None
    if not set(map(type, rows)) <= {list, tuple}:
        return None
    groups = list(chain.from_iterable(rows))
    if not set(map(type, groups)) <= {list, tuple} or not all(groups):
        return None
    ids = list(chain.from_iterable(groups))
    if not set(map(type, ids)) <= {str} or not are_ids(ids):
        return None
    counts = np.fromiter(map(len, rows), np.int64, len(rows)), np.fromiter(map(len, groups), np.int64, len(groups))
    return _plain_columns(list(qids), ids, *counts), {}


def _plain_columns(qids: list[str], ids: list[str], groups: Ints, sizes: Ints) -> dict[str, Any]:
    """Build the columns from the number of groups per query and the number of ids per group."""
    return {
        "qids": qids,
        "ids": ids,
        "group_of": np.repeat(np.arange(len(sizes)), sizes),
        "grade": np.ones(len(ids)),
        "group_query": np.repeat(np.arange(len(groups)), groups),
        "group_weight": np.ones(len(sizes)),
    }


def read_judgments(
    qids: Sequence[str],
    ids: Sequence[str],
    grades: Floats,
    groups: Sequence[str] | None,
    weights: Floats | None,
    more_qids: Iterable[str],
) -> dict[str, Any]:
    """Sort one valid judgment per row into the columns of a `GroundTruth`, in order of first appearance."""
    numbers = dict(zip(dict.fromkeys(chain(more_qids, qids)), count()))
    query = np.fromiter(map(numbers.__getitem__, qids), np.int64, len(qids))
    order = np.arange(len(ids)) if bool((query[1:] >= query[:-1]).all()) else np.argsort(query, kind="stable")
    starts: Ints = np.arange(len(ids))
    names: list[str | None] = []
    if groups is not None:
        keys = list(zip(qids, groups))
        codes = dict(zip(dict.fromkeys(keys), count()))
        group = np.fromiter(map(codes.__getitem__, keys), np.int64, len(keys))
        order = np.lexsort((group, query))
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        firsts = order[starts]
        places = np.arange(len(starts)) - np.searchsorted(query[firsts], query[firsts]) + 1
        labels = map(groups.__getitem__, firsts.tolist())
        names = [None if label == str(place) else label for label, place in zip(labels, places.tolist())]
    return {
        "qids": list(numbers),
        "ids": list(map(ids.__getitem__, order.tolist())),
        "group_of": np.searchsorted(starts, np.arange(len(ids)), side="right") - 1,
        "grade": grades[order],
        "group_query": query[order[starts]],
        "group_weight": np.ones(len(starts)) if weights is None else weights[order[starts]],
        "group_name": _if_any(names),
    }


def read_named(
    what: str,
    qids: Sequence[str],
    rows: Sequence[Any] | None,
    others: Mapping[str, Sequence[Collection[str]]],
    place: Callable[[int], str] | None = None,
) -> list[frozenset[str]] | None:
    """Read the `excluded` or `harmful` ids of each query, if any. An id that is also among the `others` is an error."""
    faults = Faults()
    named: list[frozenset[str]] = []
    for query, (qid, row) in enumerate(zip(qids, rows or ())):
        where = f"{place(query)}: query {display(qid)}" if place else f"query {display(qid)}"
        cells = () if row is None or row == NO_ID else plain(row)
        if not isinstance(cells, SEQUENCES):
            faults.add(where, f"expected {what}_ids to be a list of ids, found {display(row)}")
            cells = ()
        ids: set[str] = set()
        for cell in cells:
            name = id_text(cell)
            if name is None or (fault := id_fault(name)):
                problem = "must be a string or integer" if name is None else fault
                faults.add(where, f"the {what} id {display(cell)} {problem}")
            elif name != NO_ID:
                ids.add(name)
        for other, others_of in others.items():
            if both := ids.intersection(others_of[query]):
                faults.add(where, f"{display(min(both))} is both {what} and {other}; remove one")
        named.append(frozenset(ids))
    faults.stop()
    return named if any(named) else None


class Elements(list[Any]):
    """Ids at a path that names each element, such as `evidence[]`. By default, all of these ids are required."""


class _GroupError(Exception):
    """An error in a query's groups."""


class _Alternative(NamedTuple):
    """An alternative with its id, span or text (`name`), and the `set_number` that members of a set share."""

    name: str
    grade: float
    form: Form
    set_number: int = ALONE


class _Group(NamedTuple):
    """Distinct alternatives of one group. `has_blank` records that at least one id was blank."""

    alternatives: list[_Alternative]
    weight: float = 1.0
    name: str | None = None
    importance: str | None = None
    has_blank: bool = False


class _Reader:
    """Reads groups in any form, one alternative at a time, and collects at most one error per group."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.faults = Faults()
        self.places: dict[str, str] = {}
        # Each group with the position of its query.
        self.groups: list[tuple[int, _Group]] = []
        self.sets = self.repeated = 0
        # The query of each empty group, and of each group with a blank id.
        self.dropped: list[str] = []
        self.blank: list[str] = []
        # Groups of two integers of which the second is small, as of an id and its grade.
        self.pairs = 0

    def columns(self) -> dict[str, Any]:
        """Return everything read so far as columns, or raise a `DataError` that lists all errors."""
        self.faults.stop()
        groups = [group for _, group in self.groups]
        if self.pairs == len(groups) > 0:
            what = f"every group consists of two integers, the second at most {HIGHEST_USUAL_GRADE}"
            way = 'if they are an id and its grade, write {"id": …, "grade": …}, or write the query as {id: grade}'
            warn(f"{what}, and groupgt reads both integers as ids; {way}")
        rows = [alternative for group in groups for alternative in group.alternatives]
        sizes = [len(group.alternatives) for group in groups]
        return {
            "qids": list(self.places),
            "ids": [row.name for row in rows],
            "group_of": np.repeat(np.arange(len(sizes)), np.array(sizes, dtype=np.int64)),
            "grade": np.array([row.grade for row in rows], dtype=np.float64),
            "group_query": np.array([query for query, _ in self.groups], dtype=np.int64),
            "group_weight": np.array([group.weight for group in groups], dtype=np.float64),
            "group_name": _if_any([group.name for group in groups]),
            "importance": _if_any([group.importance for group in groups]),
            "set_of": np.array([row.set_number for row in rows], dtype=np.int64) if self.sets else None,
            "forms": _if_any([row.form for row in rows]),
            "repeated_ids": self.repeated,
            "dropped": tuple(self.dropped),
            "blank": tuple(self.blank),
        }

    def read(self, qid: Any, row: Any, place: str) -> None:
        name = id_text(qid)
        fault = None if name is None else id_fault(name)
        if name is None or fault:
            why = "" if fault in (None, "is blank") else f", which {fault}"
            self.faults.add(place, f"expected a query id (a string or integer), found {display(qid)}{why}")
            return
        where = f"{place}: query {display(name)}" if place else f"query {display(name)}"
        if name in self.places:
            self.faults.add(where, f"duplicate query (first {self.places[name]}); merge them or remove one")
            return
        self.places[name] = f"at {place}" if place else "under the same text"
        cells = self.checked(self.cells, row, where) or []
        groups = [group for cell in cells if (group := self.checked(self.group, cell, where)) is not None]
        self.keep(groups, where)

    def checked(self, read: Callable[[Any], T], cell: Any, where: str) -> T | None:
        """Return the value read from a cell, or None after an error."""
        try:
            return read(cell)
        except _GroupError as error:
            self.faults.add(where, str(error))
            return None

    def keep(self, groups: Sequence[_Group], where: str) -> None:
        """Add the groups of the query just read. The policy decides whether to drop, keep or reject empty groups."""
        empty = sum(not group.alternatives for group in groups)
        if empty == len(groups):
            return
        strict, unmeetable = (self.policy.empty_groups == choice for choice in ("error", "unmeetable"))
        if empty and strict:
            what = f"{empty} of its {len(groups)} groups {'is' if empty == 1 else 'are'} empty and cannot be covered"
            way = "remove empty groups, drop them with the empty_groups=drop policy"
            other = "with empty_groups=unmeetable, count them as groups that cannot be covered"
            self.faults.add(where, f"{what}; {way}, or {other}")
        qid = next(reversed(self.places))
        self.dropped += [] if unmeetable else [qid] * empty
        for group in groups:
            if group.alternatives or unmeetable:
                self.groups.append((len(self.places) - 1, group))
                self.blank += [qid] * group.has_blank
                if group.has_blank and strict:
                    way = "remove it, or drop it with the empty_groups=drop policy"
                    self.faults.add(where, f"a group contains a blank id; {way}")

    def cells(self, row: Any) -> list[Any]:
        """Return the groups in a row. The policy decides how to read a flat list."""
        if (row := plain(row)) is None:
            return []
        if isinstance(row, (set, frozenset)):
            row = sorted(row, key=str)
        if not isinstance(row, (list, tuple)):
            raise _GroupError(f'expected a list of groups such as [["a", "b"], ["c"]], found {display(row)}')
        cells = [plain(cell) for cell in row]
        if not (ids := [cell for cell in cells if id_text(cell) is not None]):
            return cells
        if len(ids) < len(cells):
            raise _GroupError(f"one list mixes ids and groups: {display(row)}; put every id into a group")
        if self.policy.flat_gt == "error" and len(ids) > 1 and not isinstance(row, Elements):
            what = f"expected groups (a list of lists), found the flat list {display(row)}"
            way = "set the policy flat_gt=and (all ids required) or flat_gt=or (any id suffices)"
            raise _GroupError(f"{what}; {way}")
        return [ids] if self.policy.flat_gt == "or" else [[name] for name in ids]

    def group(self, cell: Any) -> _Group:
        """Read one group, and keep the higher grade of a duplicate id."""
        if cell is None:
            return _Group([])
        if isinstance(cell, Mapping):
            return self.described_group(cell)
        distinct: dict[tuple[str, str, int], _Alternative] = {}
        has_blank = False
        alternatives = _in_order(cell)
        if mixed := _record_in(alternatives):
            raise _GroupError(mixed)
        integers = [int(inner) for inner in alternatives if is_integer(inner)]
        self.pairs += len(integers) == len(alternatives) == 2 and 0 <= integers[1] <= HIGHEST_USUAL_GRADE
        for inner in alternatives:
            is_set = isinstance(inner, Mapping) and inner.get("all") is not None
            for alternative in self.members(inner) if is_set else [self.alternative(inner)]:
                key = (alternative.name, kind_of(alternative.form), alternative.set_number)
                if not alternative.name.strip():
                    has_blank = True
                elif key in distinct:
                    self.repeated += 1
                    distinct[key] = alternative._replace(grade=max(distinct[key].grade, alternative.grade))
                else:
                    distinct[key] = alternative
        return _Group(list(distinct.values()), has_blank=has_blank)

    def members(self, cell: Mapping[str, Any]) -> list[_Alternative]:
        """Read a set of alternatives needed together. A set with one member becomes an ordinary alternative."""
        others = [key for key, value in cell.items() if key not in ("all", "grade") and value is not None]
        members = plain(cell["all"])
        if others or not isinstance(members, SEQUENCES) or not members:
            expected = 'a set {"all": [...]} of one or more alternatives, with or without a "grade"'
            raise _GroupError(f"expected {expected}, found {display(cell)}")
        grade = _grade(cell)
        distinct: dict[tuple[str, str], _Alternative] = {}
        for inner in _in_order(members):
            if isinstance(inner, Mapping) and {"all", "grade"} & {k for k, v in inner.items() if v is not None}:
                what = "sets cannot be nested, and grades apply to the set, not to members"
                raise _GroupError(f"{what}; found {display(inner)}")
            member = self.alternative(inner)
            key = (member.name, kind_of(member.form))
            self.repeated += key in distinct
            distinct[key] = member._replace(grade=grade, set_number=self.sets)
        if len(distinct) == 1:
            return [member._replace(set_number=ALONE) for member in distinct.values()]
        self.sets += 1
        return list(distinct.values())

    def described_group(self, cell: Mapping[Any, Any]) -> _Group:
        listed = {"alternatives", "ids"} & set(cell)
        if not listed or set(cell) - {"alternatives", "ids", "weight", "name", "importance"}:
            expected = '{"alternatives": [...], "weight", "name", "importance"}'
            raise _GroupError(f"expected a group {expected}, found {display(cell)}{key_of_id(cell)}")
        if len(listed) > 1:
            raise _GroupError("a group has both alternatives and ids, which mean the same thing; keep one key")
        weight = finite_number(cell.get("weight", 1))
        if weight is None or weight <= 0:
            raise _GroupError(f"expected a group weight above 0, found {cell['weight']!r}")
        group = self.group(_in_order(plain(cell[listed.pop()])))
        name, importance = (None if cell.get(key) is None else str(cell[key]) for key in ("name", "importance"))
        return group._replace(weight=weight, name=name, importance=importance)

    def alternative(self, cell: Any) -> _Alternative:
        """Read one alternative: an id, or a mapping that contains an id, a span or text, and a grade."""
        if not isinstance(cell, Mapping):
            return _of_id(cell, 1.0, cell)
        # A column of structs has every key in every cell.
        cells = {key: value for key, value in cell.items() if value is not None or key in ("id", "grade")}
        kinds = [kind for kind in SHAPES if cells.get(kind) is not None]
        kind = kinds[0] if len(kinds) == 1 else "id"
        if len(kinds) > 1 or kind not in cells or set(cells) - SHAPES[kind] - {"grade", *SHAPES}:
            expected = '{"id": …}, {"doc": …, "start": …, "end": …} or {"text": …}, each with or without a "grade"'
            found = f"found {display(cell)}{key_of_id(cell)}"
            raise _GroupError(f'expected an alternative {expected}, or a set {{"all": [...]}}, {found}')
        grade = _grade(cells)
        if kind == "id":
            return _of_id(cells["id"], grade, cell)
        if kind == "text":
            if not isinstance(cells["text"], str):
                raise _GroupError(f"expected text, found {display(cells['text'])}")
            return _Alternative(cells["text"], grade, TEXT)
        span = span_of(cells)
        if isinstance(span, str):
            raise _GroupError(span)
        return _Alternative(str(span), grade, span)


def _record_in(cells: Sequence[Any]) -> str | None:
    """Explain how to write a group that seems to contain more than ids, such as grades. Otherwise, return None."""
    kinds = {"text" if isinstance(cell, str) else "number" for cell in cells if not isinstance(cell, Mapping)}
    inner = next((cell for cell in cells if isinstance(plain(cell), (list, tuple)) and not isinstance(cell, str)), None)
    numbers = [cell for cell in cells if finite_number(cell) is not None]
    has_grade = (kinds == {"text", "number"} and numbers) or any(isinstance(number, float) for number in numbers)
    if inner is None and not has_grade:
        return None
    record = cells if inner is None else plain(inner)
    found = f"expected only ids in a group, found {display(record if inner is None else cells)}"
    if len(record) == 3 and isinstance(record[0], str):
        return f'{found}; write a span as {{"doc": …, "start": …, "end": …}} and match it with the spans labeller'
    way = 'write grades as {"id": …, "grade": …}, or a query as {id: grade}'
    return f"{found}; {way}. For [title, sentence number] pairs, keep the title (the hotpotqa format reads such files)"


def _if_any(cells: Sequence[Any]) -> list[Any] | None:
    return list(cells) if any(cell is not None for cell in cells) else None


def _in_order(cell: Any) -> Sequence[Any]:
    """Return the alternatives of a group, sorted if it is a set."""
    if not isinstance(cell, SEQUENCES):
        raise _GroupError(f"expected a group of ids, found {display(cell)}")
    return sorted(cell, key=str) if isinstance(cell, (set, frozenset)) else cell


def _grade(cell: Mapping[str, Any]) -> float:
    grade = finite_number(found := cell.get("grade", 1))
    if grade is None or not is_grade(grade):
        raise _GroupError(f"expected a grade (a number within ±2^31), found {found!r}{unjudged(found)}")
    return grade


def _of_id(cell: Any, grade: float, original: Any) -> _Alternative:
    """Read an alternative written as an id. A missing id counts as blank."""
    name = "" if cell is None else id_text(cell)
    if name is None:
        kind = type(cell).__name__
        raise _GroupError(f"expected an id (a string or integer), found {display(original)} of type {kind}")
    fault = id_fault(name)
    if fault and name.strip():
        raise _GroupError(f"an id {fault}: {display(name)}")
    return _Alternative(name, grade, None)


def declared_unanswerable(qids: Sequence[str], columns: Mapping[str, Sequence[Any]], relevant: Ints) -> Bools:
    """Return a mask of queries declared to have no answer. Raise `DataError` if such a query is in `relevant`."""
    declared = np.zeros(len(qids), dtype=np.bool_)
    if ANSWERABLE not in columns:
        return declared
    faults = Faults()
    answerable = np.isin(np.arange(len(qids)), relevant)
    for query, cell in enumerate(columns[ANSWERABLE]):
        try:
            declared[query] = stated_answerable(cell) is False
        except KeyError:
            faults.add(f"query {qids[query]!r}", f"expected true or false as {ANSWERABLE}, found {display(cell)}")
        if declared[query] and answerable[query]:
            faults.add(f"query {qids[query]!r}", f"declared {ANSWERABLE}: false, but it has relevant alternatives")
    faults.stop()
    return declared


def stated_answerable(cell: Any) -> bool | None:
    """Parse true and false as written in files and frames. Return None if missing, or raise `KeyError` if invalid."""
    return STATED[str(cell).strip().lower()]
