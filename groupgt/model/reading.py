"""Reading ground truth from Python: every shape becomes columns, and every fault is named with its query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from groupgt.errors import Faults
from groupgt.model.ids import finite_number, id_text, plain, shown
from groupgt.model.policy import Policy
from groupgt.model.spans import TEXT, Form, kind_of, span_of

__all__ = ["GRADE_LIMIT", "read_carefully", "read_plain"]

GRADE_LIMIT = 2.0**31
SEQUENCES = (list, tuple, set, frozenset)
# An alternative is an id, a place in a document, or a text: by the key that only it has, with its other keys.
SHAPES: dict[str, set[str]] = {"id": set(), "start": {"doc", "doc_id", "end"}, "text": set()}


def read_plain(qids: Sequence[Any], rows: Sequence[Any]) -> dict[str, Any] | None:
    """Reads lists of lists of text in a few passes in C; None where anything at all is unusual.

    An id that stands twice in one group is left for the caller to find.
    """
    if not set(map(type, qids)) <= {str} or len(set(qids)) < len(qids) or not all(map(str.strip, qids)):
        return None
    if not set(map(type, rows)) <= {list, tuple}:
        return None
    groups = list(chain.from_iterable(rows))
    if not set(map(type, groups)) <= {list, tuple}:
        return None
    ids = list(chain.from_iterable(groups))
    try:
        "".join(ids)  # raises for anything that is no text, and is the quickest way to look at every id
    except TypeError:
        return None
    if not all(map(str.strip, ids)) or not all(groups):
        return None
    group_query = np.repeat(np.arange(len(rows)), np.fromiter(map(len, rows), np.int64, len(rows)))
    sizes = np.fromiter(map(len, groups), np.int64, len(groups))
    return {
        "qids": list(qids),
        "ids": ids,
        "group_of": np.repeat(np.arange(len(groups)), sizes),
        "grade": np.ones(len(ids)),
        "group_query": group_query,
        "group_weight": np.ones(len(groups)),
    }


def read_carefully(
    qids: Sequence[Any], rows: Sequence[Any], policy: Policy, place: Callable[[int], str] | None
) -> dict[str, Any]:
    """Reads every shape, one alternative at a time, and collects what is wrong."""
    reader = _Reader(policy)
    for position, (qid, row) in enumerate(zip(qids, rows)):
        reader.read(qid, row, place(position) if place else "")
    reader.faults.stop()
    return {
        "qids": reader.qids,
        "ids": reader.ids,
        "group_of": np.array(reader.group_of, dtype=np.int64),
        "grade": np.array(reader.grades, dtype=np.float64),
        "group_query": np.array(reader.group_query, dtype=np.int64),
        "group_weight": np.array(reader.weights, dtype=np.float64),
        "group_name": reader.names if any(name is not None for name in reader.names) else None,
        "forms": reader.forms if any(form is not None for form in reader.forms) else None,
        "repeated_ids": reader.repeated,
        "dropped": reader.dropped,
    }


class _Reader:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.faults = Faults()
        self.seen: dict[str, str] = {}
        self.qids: list[str] = []
        self.ids: list[str] = []
        self.group_of: list[int] = []
        self.grades: list[float] = []
        self.group_query: list[int] = []
        self.weights: list[float] = []
        self.names: list[str | None] = []
        self.forms: list[Form] = []
        self.repeated = 0
        self.dropped = 0

    def read(self, qid: Any, row: Any, place: str) -> None:
        name = id_text(qid)
        if name is None or not name.strip():
            self.faults.add(place, f"expected a query id (text or an integer), found {qid!r}")
            return
        where = f"{place}: query {name!r}" if place else f"query {name!r}"
        if name in self.seen:
            self.faults.add(where, f"this query stands twice (first {self.seen[name]}); merge the two or remove one")
            return
        self.seen[name] = f"at {place}" if place else "under the same text"
        self.qids.append(name)
        groups = [group for group in (self.group(each, where) for each in self.listed(row, where)) if group is not None]
        empty = [group for group in groups if not group[0]]
        if len(empty) == len(groups):
            return
        if empty and self.policy.empty_groups == "error":
            self.faults.add(
                where,
                f"{len(empty)} of its {len(groups)} groups is empty, so no result can meet it; "
                "remove the group, or drop such groups with the policy empty_groups=drop",
            )
        self.dropped += len(empty)
        for alternatives, weight, label, blank in groups:
            if blank and alternatives and self.policy.empty_groups == "error":
                self.faults.add(
                    where, "a group holds a blank id; remove it, or drop it with the policy empty_groups=drop"
                )
            if not alternatives:
                continue
            for (alternative, _), (grade, form) in alternatives.items():
                self.ids.append(alternative)
                self.grades.append(grade)
                self.forms.append(form)
                self.group_of.append(len(self.group_query))
            self.group_query.append(len(self.qids) - 1)
            self.weights.append(weight)
            self.names.append(label)

    def listed(self, row: Any, where: str) -> list[Any]:
        """The groups of a row; a flat list becomes what the policy says it means."""
        row = plain(row)
        if row is None:
            return []
        if not isinstance(row, (list, tuple)):
            self.faults.add(where, f'expected a list of groups such as [["a", "b"], ["c"]], found {shown(row)}')
            return []
        cells = [plain(cell) for cell in row]
        flat = [cell for cell in cells if id_text(cell) is not None]
        if not flat:
            return cells
        if len(flat) < len(cells):
            self.faults.add(where, f"ids and groups are mixed in one list: {shown(row)}; put every id into a group")
            return []
        if self.policy.flat_gt == "and":
            return [[cell] for cell in flat]
        if self.policy.flat_gt == "or":
            return [flat]
        self.faults.add(
            where,
            f"expected groups (a list of lists), found the flat list {shown(row)}; say which is meant with the policy "
            "flat_gt=and (every id is needed) or flat_gt=or (any one is enough)",
        )
        return []

    def group(
        self, cell: Any, where: str
    ) -> tuple[dict[tuple[str, str], tuple[float, Form]], float, str | None, bool] | None:
        """(alternatives with grade and form, weight, name, whether one was blank); None after a fault."""
        weight, label = 1.0, None
        if cell is None:
            return {}, weight, label, False
        if isinstance(cell, Mapping):
            unknown = set(cell) - {"alternatives", "ids", "weight", "name"}
            if unknown or not ({"alternatives", "ids"} & set(cell)):
                self.faults.add(
                    where, f'expected a group {{"alternatives": [...], "weight", "name"}}, found {shown(cell)}'
                )
                return None
            if {"alternatives", "ids"} <= set(cell):
                self.faults.add(where, "a group holds both alternatives and ids, which are two names of one; keep one")
                return None
            given = cell.get("weight", 1)
            number = finite_number(given)
            if number is None or number <= 0:
                self.faults.add(where, f"expected a group weight above 0, found {given!r}")
                return None
            weight = number
            label = None if cell.get("name") is None else str(cell["name"])
            cell = plain(cell.get("alternatives", cell.get("ids")))
        if not isinstance(cell, SEQUENCES):
            self.faults.add(where, f"expected a group of ids, found {shown(cell)}")
            return None
        alternatives: dict[tuple[str, str], tuple[float, Form]] = {}
        blank = False
        for each in sorted(cell, key=str) if isinstance(cell, (set, frozenset)) else cell:
            read = self.alternative(each, where)
            if read is None:
                return None
            name, grade, form = read
            key = (name, kind_of(form))
            if not name.strip():
                blank = True
            elif key in alternatives:
                self.repeated += 1
                alternatives[key] = (max(alternatives[key][0], grade), form)
            else:
                alternatives[key] = (grade, form)
        return alternatives, weight, label, blank

    def alternative(self, cell: Any, where: str) -> tuple[str, float, Form] | None:
        """(id, or the place or text itself; grade; which of them it is); None after a fault."""
        grade = 1.0
        given = cell
        if isinstance(cell, Mapping):
            # A column of structs has every key in every cell.
            cell = {key: value for key, value in cell.items() if value is not None or key in ("id", "grade")}
            kinds = [kind for kind in SHAPES if kind in cell and cell[kind] is not None]
            kind = kinds[0] if len(kinds) == 1 else "id"
            if len(kinds) > 1 or kind not in cell or set(cell) - SHAPES[kind] - {"grade", *SHAPES}:
                expected = '{"id": …}, {"doc": …, "start": …, "end": …} or {"text": …}, each with or without a "grade"'
                self.faults.add(where, f"expected an alternative {expected}, found {shown(given)}")
                return None
            number = finite_number(1 if cell.get("grade") is None and "grade" not in given else cell.get("grade"))
            if number is None or abs(number) > GRADE_LIMIT:
                self.faults.add(where, f"expected a grade (a number within ±2^31), found {cell.get('grade')!r}")
                return None
            grade = number
            if kind == "text":
                if not isinstance(cell["text"], str):
                    self.faults.add(where, f"expected a text, found {shown(cell['text'])}")
                    return None
                return cell["text"], grade, TEXT
            if kind == "start":
                span = span_of(cell)
                if isinstance(span, str):
                    self.faults.add(where, span)
                    return None
                return str(span), grade, span
            cell = cell["id"]
        if cell is None:
            return "", grade, None
        name = id_text(cell)
        if name is None:
            kind = type(cell).__name__
            self.faults.add(where, f"expected an id (text or an integer), found {shown(given)} of type {kind}")
            return None
        return name, grade, None
