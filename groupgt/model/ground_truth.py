"""Ground truth: for each query a list of groups (AND) of alternatives (OR), read from Python and kept as columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from groupgt.errors import Faults, display
from groupgt.model.hits import Floats, Ints, Judgments
from groupgt.model.policy import Policy
from groupgt.model.spans import TEXT, Form, Span, kind_of, span_of
from groupgt.model.validity import finite_number, id_text, is_grade, plain

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
            self.faults.add(where, f'expected a list of groups such as [["a", "b"], ["c"]], found {display(row)}')
            return []
        cells = [plain(cell) for cell in row]
        flat = [cell for cell in cells if id_text(cell) is not None]
        if not flat:
            return cells
        if len(flat) < len(cells):
            self.faults.add(where, f"ids and groups are mixed in one list: {display(row)}; put every id into a group")
            return []
        if self.policy.flat_gt == "and":
            return [[cell] for cell in flat]
        if self.policy.flat_gt == "or":
            return [flat]
        self.faults.add(
            where,
            f"expected groups (a list of lists), found the flat list {display(row)}; say which is meant with the "
            "policy flat_gt=and (every id is needed) or flat_gt=or (any one is enough)",
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
                    where, f'expected a group {{"alternatives": [...], "weight", "name"}}, found {display(cell)}'
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
            self.faults.add(where, f"expected a group of ids, found {display(cell)}")
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
                self.faults.add(where, f"expected an alternative {expected}, found {display(given)}")
                return None
            number = finite_number(1 if cell.get("grade") is None and "grade" not in given else cell.get("grade"))
            if number is None or not is_grade(number):
                self.faults.add(where, f"expected a grade (a number within ±2^31), found {cell.get('grade')!r}")
                return None
            grade = number
            if kind == "text":
                if not isinstance(cell["text"], str):
                    self.faults.add(where, f"expected a text, found {display(cell['text'])}")
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
            self.faults.add(where, f"expected an id (text or an integer), found {display(given)} of type {kind}")
            return None
        return name, grade, None


WIDEST_SORT = 64


@dataclass(frozen=True, eq=False, repr=False)
class GroundTruth:
    """The grouped ground truth of many queries; `[["a", "b"], ["c"]]` means (a or b) and c.

    Inside are columns: `ids`, `grade` and `group_of` for each alternative, `group_query`, `group_weight` and
    `group_name` for each group, sorted by query. Where not all alternatives are ids, `forms` says which is a `Span` and
    which a text, and `ids` holds what names them. `texts` holds the query texts, `columns` what else
    was stored with each query: the slices of `by`.

    >>> truth = GroundTruth.of({"q1": [["a", "b"], ["c"]], "q2": [["d"]]})
    >>> len(truth), truth["q1"]
    (2, [['a', 'b'], ['c']])
    """

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
    dropped: int = 0
    forms: list[Form] | None = None

    @classmethod
    def of(cls, groups: Mapping[Any, Any], policy: Policy | None = None) -> GroundTruth:
        """Reads `{qid: groups}`; raises `DataError` with every fault found.

        A group is a sequence of ids, or `{"alternatives": [...], "weight": 2, "name": "capital"}`; an alternative is an
        id or `{"id": "b", "grade": 2}`, a place `{"doc": "d", "start": 120, "end": 480}`, or `{"text": "…"}`. Integer
        ids are read as their decimal text.
        """
        return cls.from_rows(list(groups), list(groups.values()), policy or Policy())

    @classmethod
    def from_rows(
        cls,
        qids: Sequence[Any],
        groups: Sequence[Any],
        policy: Policy,
        *,
        place: Callable[[int], str] | None = None,
        texts: list[str | None] | None = None,
        columns: Mapping[str, list[Any]] | None = None,
    ) -> GroundTruth:
        """Reads one row a query; `place(i)` names row i in error messages (a file and its line)."""
        rest: dict[str, Any] = {"texts": texts, "columns": columns or {}}
        simple = read_plain(qids, groups)
        if simple is None:
            return cls(**read_carefully(qids, groups, policy, place), **rest)
        return cls(**simple, **rest)._without_repeats()

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.qids)

    def __contains__(self, qid: object) -> bool:
        return qid in self.index

    def __repr__(self) -> str:
        return f"GroundTruth({len(self):,} queries, {len(self.group_query):,} groups, {len(self.ids):,} alternatives)"

    def __getitem__(self, qid: str) -> list[Any]:
        """The groups of one query as they were given: lists, or mappings where there is a grade, weight or name."""
        at = self.index[qid]
        first, last = np.searchsorted(self.group_query, [at, at + 1])
        bounds = np.searchsorted(self.group_of, np.arange(first, last + 1)).tolist()
        groups: list[Any] = []
        for group in range(int(first), int(last)):
            low, high = bounds[group - int(first)], bounds[group - int(first) + 1]
            alternatives = [self._given(a) for a in range(low, high)]
            name = self.group_name[group] if self.group_name else None
            extra: dict[str, Any] = {}
            if self.group_weight[group] != 1:
                extra["weight"] = _number(self.group_weight[group])
            if name is not None:
                extra["name"] = name
            groups.append({"alternatives": alternatives, **extra} if extra else alternatives)
        return groups

    def _given(self, alternative: int) -> Any:
        """An alternative as it was given."""
        form = self.forms[alternative] if self.forms else None
        grade = {} if self.grade[alternative] == 1 else {"grade": _number(self.grade[alternative])}
        if isinstance(form, Span):
            return {**form._asdict(), **grade}
        if form == TEXT:
            return {"text": self.ids[alternative], **grade}
        return {"id": self.ids[alternative], **grade} if grade else self.ids[alternative]

    def items(self) -> Iterator[tuple[str, list[Any]]]:
        """Each query with its groups."""
        for qid in self.qids:
            yield qid, self[qid]

    def select(self, keep: Iterable[int]) -> GroundTruth:
        """The queries at these positions, in this order."""
        wanted = list(keep)
        texts = [self.texts[i] for i in wanted] if self.texts else None
        columns = {name: [values[i] for i in wanted] for name, values in self.columns.items()}
        qids = [self.qids[i] for i in wanted]
        return self.from_rows(qids, [self[qid] for qid in qids], Policy(), texts=texts, columns=columns)

    def renamed(self, names: list[str], forms: list[Form] | None = None) -> GroundTruth:
        """The same with other alternatives; those of one group that have one name become one, of the highest grade."""
        codes: dict[str, int] = {}
        keys = _keys(names, forms)
        code = np.fromiter((codes.setdefault(key, len(codes)) for key in keys), np.int64, len(names))
        _, first, place = np.unique(self.group_of * len(names) + code, return_index=True, return_inverse=True)
        if len(first) == len(names):
            return replace(self, ids=names, forms=forms)
        highest = np.full(len(first), -np.inf)
        np.maximum.at(highest, place, self.grade)
        order = np.argsort(first)
        kept = first[order].tolist()
        return replace(
            self,
            ids=[names[a] for a in kept],
            group_of=self.group_of[kept],
            grade=highest[order],
            forms=None if forms is None else [forms[a] for a in kept],
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is judged: queries, groups, alternatives, grades and weights, in their order."""
        found = hashlib.sha256()
        for texts in (self.qids, self.ids):
            found.update(json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        for numbers, kind in ((self.group_of, "<i8"), (self.group_query, "<i8"), (self.grade, "<f8")):
            found.update(numbers.astype(kind).tobytes())
        found.update(self.group_weight.astype("<f8").tobytes())
        if self.forms:
            found.update(json.dumps([kind_of(form) for form in self.forms]).encode())
        return found.hexdigest()

    @cached_property
    def index(self) -> dict[str, int]:
        """The position of each query."""
        return dict(zip(self.qids, range(len(self.qids))))

    @cached_property
    def query_of(self) -> Ints:
        """The query of each alternative."""
        return self.group_query[self.group_of] if len(self.group_of) else self.group_of

    @cached_property
    def per_query(self) -> Ints:
        """The number of alternatives of each query."""
        return np.bincount(self.query_of, minlength=len(self.qids))

    @cached_property
    def id_sets(self) -> list[frozenset[str]]:
        """The ids of each query: what a result list is probed with."""
        ids = iter(self.ids)
        return [frozenset(islice(ids, size)) for size in self.per_query.tolist()]

    @cached_property
    def document_of(self) -> Ints:
        """The document number of each alternative: its own position, or that of the first one with the same id."""
        documents = np.arange(len(self.ids), dtype=np.int64)
        sizes = self.per_query
        names, sets = self.ids, self.id_sets
        if self.forms:
            names = _keys(self.ids, self.forms)
            each = iter(names)
            sets = [frozenset(islice(each, size)) for size in sizes.tolist()]
        distinct = np.fromiter(map(len, sets), np.int64, len(sets))
        ends = np.cumsum(sizes)
        for query in np.flatnonzero(distinct < sizes).tolist():
            end = int(ends[query])
            start = end - int(sizes[query])
            own = names[start:end]
            # Of equal names the first, which is written last.
            first = dict(zip(reversed(own), range(end - 1, start - 1, -1)))
            documents[start:end] = [first[name] for name in own]
        return documents

    def _without_repeats(self) -> GroundTruth:
        """The same with an id that stands twice in one group kept once, and counted."""
        documents = self.document_of
        if np.all(documents == np.arange(len(documents))):
            return self
        pairs = self.group_of * len(self.ids) + documents
        order = np.argsort(pairs, kind="stable")
        again = order[1:][pairs[order][1:] == pairs[order][:-1]]
        if not len(again):
            return self
        kept = np.delete(np.arange(len(pairs)), again)
        ids = [self.ids[place] for place in kept.tolist()]
        return replace(
            self, ids=ids, group_of=self.group_of[kept], grade=self.grade[kept], repeated_ids=len(self.ids) - len(ids)
        )

    @cached_property
    def judgments(self) -> Judgments:
        """The numeric side, for metrics: groups without a relevant alternative are gone."""
        relevant = self.grade > 0
        kept = np.bincount(self.group_of[relevant], minlength=len(self.group_query)) > 0
        renumber = np.cumsum(kept) - 1
        return Judgments(
            size=len(self.qids),
            alternative_query=self.query_of,
            alternative_group=np.where(relevant, renumber[self.group_of], -1) if len(self.ids) else self.group_of,
            alternative_grade=self.grade,
            alternative_document=self.document_of,
            group_query=self.group_query[kept],
            group_weight=self.group_weight[kept],
            documents=len(self.ids),
            byte_order=self._byte_order,
            qid=self.qids.__getitem__,
        )

    @cached_property
    def irrelevant_groups(self) -> int:
        """The number of groups without a relevant alternative, which no metric sees."""
        return len(self.group_query) - len(self.judgments.group_query)

    def group_label(self, group: int) -> str:
        """A name for a group, counted among all groups as given: its own, or its number within the query."""
        name = self.group_name[group] if self.group_name else None
        first = int(np.searchsorted(self.group_query, self.group_query[group]))
        return name if name is not None else f"group {group - first + 1}"

    def _byte_order(self) -> Ints:
        """The place of each alternative's document when ids are sorted by their bytes within each query."""
        order = _sorted_by_bytes(self.ids, self.query_of)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        return places[self.document_of] if len(order) else places


def _keys(names: list[str], forms: list[Form] | None) -> list[str]:
    """What tells alternatives apart: an id, a place and a text of one spelling are three."""
    if not forms:
        return names
    return [name if form is None else f"{kind_of(form)}\0{name}" for name, form in zip(names, forms)]


def _sorted_by_bytes(ids: list[str], query: Ints) -> Ints:
    """Positions sorted by query, then by the UTF-8 bytes of the id."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in ids]
    width = -(-max(map(len, encoded), default=0) // 8) * 8
    if not 0 < width <= WIDEST_SORT:
        return np.array(sorted(range(len(ids)), key=lambda at: (query[at], encoded[at])), dtype=np.int64)
    # Eight bytes at a time, as numbers: the first are the most significant.
    words = np.array(encoded, dtype=f"S{width}").view(">u8").reshape(len(ids), -1).astype(np.uint64)
    return np.lexsort((*words.T[::-1], query))


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else float(value)
