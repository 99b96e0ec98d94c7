"""Builds a `GroundTruth` from the columns that the readers of all formats return.

Values become arrays. Rows are checked one by one only if something may be invalid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults, display, listed, warn
from groupgt.formats.columns import Column, Lists, columns_in, declaring
from groupgt.formats.fields import Firsts, ids_fault
from groupgt.formats.roles import NO_COLUMNS, Declared, hint, missing_columns, path_to_ids, roles_in, shown_names
from groupgt.formats.rows import SHAPE, number_text
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.groups import ANSWERABLE, STATED
from groupgt.model.hits import Floats
from groupgt.model.policy import Policy
from groupgt.model.validity import GRADE_LIMIT, are_ids, finite_number, id_text, is_grade, number_of, plain, unjudged
from groupgt.model.values import normal_text, nulls
from groupgt.model.written import SHAPES, Shape
from groupgt.records import record

# Returns the location of a row.
Place = Callable[[int], str]
# A cell of a row that lacks the column, as records may.
ABSENT = object()
EXPECTED = "qid and retrieval_gt (a row per query), or qid, doc_id and grade or group (a row per judgment)"
NONRELEVANT = "nonrelevant"
# The second column of qrels, which means nothing or the subtopic.
ITERATIONS = ("iteration", "iter")
# The keys of groups and alternatives.
OF_GROUPS = ("alternatives", "ids", "id", "text", "all", "start")
# What else groups are called.
ASPECTS = re.compile(r"(?:aspect|facet|fact|nugget|intent|interpretation|slot)(?:_(?:id|no|num|number))?")
# Numbers under these names say where a document stands, not how relevant it is.
NOT_GRADES = ("position", "index", "start", "end", "offset", "page", "line", "unnamed: 0", "")
# Names of judgments, and words for relevant and not relevant.
JUDGMENTS = re.compile(r".*(?:relevant|relevance|judgment|judgement|verdict|label|grade|rating)")
MARKS = dict.fromkeys(("true", "yes", "relevant", "pass"), 1)
MARKS |= dict.fromkeys(("false", "no", "irrelevant", "not relevant", "nonrelevant", "non-relevant", "fail"), 0)
# What to write for a query that no document answers.
UNANSWERED = "; if nothing answers the query, add an answerable column that is false in this row"
# Roles that name ids of a query: to leave out of its results, and that must not be among them.
NAMED = {"excluded": "excluded_ids", "harmful": "harmful_ids"}
# Columns of ground truth that are part of it; the others are kept, for slices.
OWN = ("qid", "query", "retrieval_gt", SHAPE, *NAMED.values(), NONRELEVANT)


@record
class Table:
    """Columns from a reader. If `text` is set, as for CSV, numbers and lists are parsed. `where` locates the header."""

    title: str
    names: Sequence[str]
    column: Callable[[str], Sequence[Any]]
    place: Place
    text: bool = False
    where: str = ""
    faults: Faults = field(default_factory=Faults)
    declared: Declared = field(default_factory=lambda: NO_COLUMNS)

    @classmethod
    def of_records(cls, title: str, located: Iterable[tuple[str, Any]], **others: Any) -> Table:
        """Build a table from located records. The records' keys become columns, in order of first appearance."""
        places, rows = zip(*located) if (located := list(located)) else ((), ())
        # Rows share few key sequences.
        names = tuple(dict.fromkeys(chain.from_iterable(dict.fromkeys(map(tuple, rows)))))
        return cls(title, names, lambda name: [row.get(name, ABSENT) for row in rows], places.__getitem__, **others)


def truth_of(table: Table, policy: Policy) -> GroundTruth:
    """Build ground truth from columns, or raise `DataError` with every error in the table and its rows."""
    if not table.names:
        table.faults.stop()
        return GroundTruth.from_rows([], [], policy)
    roles = _roles(table)
    if "retrieval_gt" in roles and roles.keys() & {"qid", "query"}:
        return _grouped(table, roles, policy)
    if "doc_id" in roles and roles.keys() & {"qid", "query"}:
        return _judged(table, roles, policy)
    table.faults.stop()
    raise DataError(f"{table.where or table.title}: {_missing(table, roles)}")


def at_paths(table: Table, *, is_truth: bool) -> Table:
    """Convert a table's rows to plain rows, using the declared paths."""
    from groupgt.formats.nested import plain_rows

    records = zip(*(map(plain, table.column(name)) for name in table.names))
    located = [(table.place(row), dict(zip(table.names, cells))) for row, cells in enumerate(records)]
    rows = plain_rows(table.title, table.names, table.declared, lambda _: located, is_truth=is_truth)
    return Table.of_records(table.title, rows)


def _roles(table: Table) -> dict[str, str]:
    """Return the column for each role. Numbers in `relevant` beside documents, and words such as yes, are grades."""
    roles = roles_in(table.names, "truth", table.declared)
    name = roles.get("retrieval_gt", "retrieval_gt")
    is_named = name == "retrieval_gt" or "retrieval_gt" in table.declared
    numbers = None if is_named else _numbers(table, name)
    if numbers is None:
        return roles
    are_flags = bool((np.isnan(numbers) | np.isin(numbers, (0, 1))).all())
    is_beside = "doc_id" in roles or (are_flags and " to doc_id" in hint(table.names, ["doc_id"]))
    if not is_beside and not any(str(cell).strip().lower() in MARKS for cell in table.column(name)):
        return roles
    return {role: name for role, name in roles.items() if role != "retrieval_gt"} | {"grade": name}


def _numbers(table: Table, name: str) -> Floats | None:
    """Convert a column to numbers, with NaN for missing cells, or return None if any other cell is no number."""
    cells = cells_of(table, name)
    _, numbers = _graded(cells)
    rated = ~np.isnan(numbers)
    return numbers if rated.any() and all(unjudged(cells[row]) for row in np.flatnonzero(~rated)) else None


def _graded(cells: Sequence[Any]) -> tuple[Sequence[Any], Floats]:
    """Return cells with words for relevant and not relevant as 1 and 0, and these cells as numbers."""
    kinds = set(map(type, cells))
    if kinds <= {str, bool, np.bool_, type(None)}:
        words = {cell: MARKS.get(str(cell).strip().lower()) for cell in set(cells) if not unjudged(cell)}
        if None not in words.values():
            cells, kinds = [words.get(cell, cell) for cell in cells], set()
    return cells, grades_of(cells, text=str in kinds and kinds <= {str, type(None)})


def _warn_of_grades(table: Table, roles: dict[str, str]) -> None:
    """Warn if no column has grades but a column of another name contains what may be grades."""
    for name in table.names:
        if name in roles.values() or name.lower() in NOT_GRADES:
            continue
        numbers, is_judgment = _numbers(table, name), JUDGMENTS.fullmatch(name.lower()) is not None
        # What is not certainly relevant.
        others = range(is_judgment) if numbers is None else np.flatnonzero(~(numbers > 0))
        is_mixed = numbers is not None and bool((numbers <= 0).any() and (numbers > 0).any())
        if len(others) and (is_judgment or is_mixed):
            cell = cells_of(table, name)[others[0]]
            before = "leave out unjudged documents and " if unjudged(cell) else "write numbers and " * (numbers is None)
            what = f"{table.title}: no column has grades, so every row counts as relevant"
            way = f"{before}add {declaring('truth', grade=name)}"
            warn(f"{what}; {name} contains {display(cell)}: if these are grades, {way}")


def _missing(table: Table, roles: dict[str, str]) -> str:
    """Report which columns are missing from the form that the table matches best."""
    by_document = roles.keys() & {"group", "grade", "doc_id"} or _repeats(table, roles)
    shape = ("qid", "doc_id") if by_document else ("qid", "retrieval_gt")
    missing = [role for role in shape if role not in roles and not (role == "qid" and "query" in roles)]

    def first(cells: Sequence[Any]) -> Any:
        return next((plain(cell) for cell in cells if cell is not ABSENT and cell not in (None, "")), None)

    return missing_columns({name: first(table.column(name)) for name in table.names}, missing, EXPECTED)


def _repeats(table: Table, roles: dict[str, str]) -> bool:
    """Return whether several rows have the same query, so that each may be a judgment."""
    cells = [cell for cell in map(str, cells_of(table, roles.get("qid", roles.get("query")))) if cell.strip()]
    return len({*cells}) < len(cells)


def _present(table: Table, names: Iterable[str], others: Collection[int] = ()) -> None:
    """Report each row that has none of the `others` and does not have all of these columns."""
    columns = {name: table.column(name) for name in names}
    rows = {row for cells in columns.values() for row, cell in enumerate(cells) if cell is ABSENT}
    for position in rows.difference(others):
        cells_of = ((name, table.column(name)[position]) for name in table.names)
        has = {name: cell for name, cell in cells_of if cell is not ABSENT}
        missing = [name for name, cells in columns.items() if cells[position] is ABSENT]
        what = f"expected the key{'s' * (len(missing) > 1)} {' and '.join(missing)}, found {shown_names(has)}"
        table.faults.add(table.place(position), what + hint(has, missing))
    table.faults.stop()


def cells_of(table: Table, name: str | None, rows: int | None = None) -> list[Any]:
    """Return the cells of a column, with None for rows or tables without this column."""
    if name is None:
        return [None] * (rows or 0)
    return [None if cell is ABSENT else cell for cell in table.column(name)]


def _lists(table: Table) -> tuple[Lists, Callable[[str, str], list[Any]]]:
    """Return a reader for the lists of ids in a table, and a function that returns the lists for a role."""
    lists, declared = Lists(table.faults), columns_in(table.names, table.declared)

    def column(role: str, name: str) -> list[Any]:
        return lists.column(cells_of(table, name), declared.get(role, Column(name)), role, table.place)

    return lists, column


def named_ids(truth: GroundTruth) -> dict[str, list[list[str]]]:
    """Return the columns that list ids for each query, as files store them."""
    columns = ((column, getattr(truth, what)) for what, column in NAMED.items())
    return {column: [sorted(ids) for ids in named] for column, named in columns if named}


def _qids(table: Table, roles: dict[str, str], rows: int) -> list[Any]:
    """Return the query ids or, if no column has them, the query texts, which then identify the queries."""
    if "qid" in roles:
        qids = cells_of(table, roles["qid"], rows)
        if roles["qid"] != "qid" and "qid" not in table.declared and "query" in roles:
            _refuse_labels(table, roles, qids)
        return qids
    return [normal_text(cell) if isinstance(cell, str) else cell for cell in cells_of(table, roles["query"], rows)]


def _refuse_labels(table: Table, roles: dict[str, str], qids: list[Any]) -> None:
    """Raise `DataError` if a column read as the query id, such as `topic`, has the same value for different queries."""
    first: dict[str, Any] = {}
    for qid, text in zip(qids, cells_of(table, roles["query"])):
        if text is not None and first.setdefault(str(qid), text) != text:
            what = f"{roles['qid']} was read as the query id, but has {display(qid)} for different queries"
            way = f"if it is a label, declare the ids, such as {declaring('truth', qid=roles['query'])}"
            raise DataError(f"{table.title}: {what}; {way}")


def _grouped(table: Table, roles: dict[str, str], policy: Policy) -> GroundTruth:
    """Build ground truth from one row per query."""
    needed = [roles[role] for role in ("qid", "retrieval_gt") if role in roles]
    if any(ABSENT in table.column(name) for name in needed):
        answerable = cells_of(table, roles.get("answerable"))
        _present(table, needed, {row for row, cell in enumerate(answerable) if cell is not None and not cell})
    lists, column = _lists(table)
    groups = column("retrieval_gt", roles["retrieval_gt"])
    if _repeats(table, roles) and not any(
        str(plain(cell)).lstrip()[:1] in ("[", "{") for cell in table.column(roles["retrieval_gt"])
    ):
        way = f"if each row contains one passage, add {declaring('truth', doc_id=roles['retrieval_gt'])}"
        raise DataError(f"{table.title}: expected one row per query in retrieval_gt, found several; {way}")
    if roles["retrieval_gt"] != "retrieval_gt" and (text := lists.first_text(groups)):
        what = f"the {roles['retrieval_gt']} column contains text, such as {display(text)}, not ids"
        raise DataError(f'{table.title}: {what}; write text as {{"text": …}} and match it with the text labeller')
    first = next((cell[0] for cell in groups if isinstance(cell, list) and cell), None)
    is_group = not isinstance(first, dict) or not first.keys().isdisjoint(OF_GROUPS)
    if not is_group and (way := path_to_ids({roles["retrieval_gt"]: [first]}, "truth")):
        raise DataError(
            f"{table.title}: expected groups of ids in {roles['retrieval_gt']}, found {display(first)}{way}"
        )
    if NONRELEVANT in table.names:
        rejected = cells_of(table, NONRELEVANT)
        groups = [_with_rejected(table, row, *cells) for row, cells in enumerate(zip(groups, rejected))]
    named = {what: role for what, role in NAMED.items() if role in roles}
    ours = ("qid", "query", "retrieval_gt", ANSWERABLE, *named.values())
    canonical = {name: role for role, name in roles.items() if role in ours}
    keys = [canonical.get(name, name) for name in table.names]
    texts = [None if text is None else str(text) for text in cells_of(table, roles.get("query"))]
    others = {key: name for key, name in zip(keys, table.names) if key not in OWN}
    columns: dict[str, Any] = {what: column(role, roles[role]) for what, role in named.items()}
    columns["texts"] = texts if any(text is not None for text in texts) else None
    columns["columns"] = {key: nulls(cells_of(table, name)) for key, name in others.items()}
    with table.faults.merging(DataError):
        qids = _qids(table, roles, len(groups))
        truth = GroundTruth.from_rows(qids, groups, policy, place=table.place, **columns)
    table.faults.stop()
    return replace(truth, shape=_shape_in(table, "groups"), keys=tuple(keys), unsplit=lists.unsplit)


def _with_rejected(table: Table, row: int, groups: Any, ids: Any) -> Any:
    """Return groups followed by the documents judged non-relevant, as groups with grade 0."""
    if (ids := plain(ids)) is None:
        return groups
    if not isinstance(ids, list):
        table.faults.add(table.place(row), f"expected {NONRELEVANT} to be a list, found {display(ids)}")
        return groups
    return [*(groups if isinstance(groups, list) else []), *([{"id": name, "grade": 0}] for name in ids)]


def _shape_in(table: Table, default: Shape) -> Shape:
    """Return the shape given in rows, or else `default`. Raise `DataError` if the shape is invalid or not unique."""
    cells = table.column(SHAPE) if SHAPE in table.names else ()
    named: list[Any] = list(dict.fromkeys(cell for cell in cells if cell not in (None, "", ABSENT)))
    shape: Shape = named[0] if named else default
    if len(named) > 1 or shape not in SHAPES:
        what = f"expected {listed(SHAPES)} as {SHAPE}, the same in all rows, found {display(named)}"
        raise DataError(f"{table.title}: {what}")
    return shape


@record
class Judged:
    """Judgments as columns, one per row, with NaN for invalid grades. Rows may have to be `unique`."""

    qids: Sequence[Any]
    documents: Sequence[Any]
    cells: Sequence[Any]
    grades: Floats
    groups: Sequence[Any] | None
    place: Place
    called: str = "grade"
    unique: bool = False
    hint: str = ""

    def truth(
        self, policy: Policy, shape: Shape, faults: Faults | None = None, *, sound: bool = False, **others: Any
    ) -> GroundTruth:
        """Build ground truth, or raise `DataError` with every error. With `sound`, skip checking the ids."""
        faults = Faults() if faults is None else faults
        if not (sound or self._are_texts()) or not bool((np.abs(self.grades) <= GRADE_LIMIT).all()):
            self.report(faults)
        faults.stop()
        columns = self.qids, self.documents, self.grades, self.groups
        truth = GroundTruth.from_judgments(*columns, policy=policy, shape=shape, **others)
        is_flat = self.groups is None
        if truth.repeated_ids or (is_flat and bool((truth.document_of != np.arange(len(truth.ids))).any())):
            faults = Faults()
            self.report(faults)
            faults.stop()
            return self.without_repeats().truth(policy, shape, **others) if is_flat else truth
        return truth

    def _are_texts(self) -> bool:
        """Return whether groups are texts, and queries and documents valid ids."""
        columns = (self.qids, self.documents, *(() if self.groups is None else (self.groups,)))
        is_text = all(set(map(type, column)) <= {str} for column in columns)
        return is_text and are_ids(list(dict.fromkeys(self.qids))) and are_ids(self.documents)

    def without_repeats(self) -> Judged:
        """Return these judgments, except those that repeat earlier judgments."""
        first = dict(zip(reversed(list(zip(self.qids, self.documents))), reversed(range(len(self.qids)))))
        kept = sorted(first.values())
        qids, documents, cells = ([column[at] for at in kept] for column in (self.qids, self.documents, self.cells))
        return replace(self, qids=qids, documents=documents, cells=cells, grades=self.grades[kept])

    def report(self, faults: Faults) -> None:
        """Check the judgments row by row and add every error."""
        firsts = Firsts(self.place)
        groups = [""] * len(self.qids) if self.groups is None else self.groups
        rows = zip(self.qids, groups, self.documents, self.grades.tolist(), self.cells)
        for row, (qid, *cells) in enumerate(rows):
            if fault := self._fault(firsts, row, qid, *cells):
                faults.add(f"{self.place(row)}: query {display(qid)}", fault)

    def _fault(self, firsts: Firsts, row: int, qid: Any, group: Any, document: Any, grade: Any, cell: Any) -> str:
        for role, name in (("qid", qid), ("doc_id", document), ("group", group)):
            if not isinstance(name, str):
                found = "null" if name is None else display(name)
                what = f"expected an id (a string or integer) as {role}, found {found}"
                return what + (UNANSWERED if name is None and role == "doc_id" else "")
        if fault := ids_fault(qid, document):
            return fault + ("" if document.strip() else unjudged(cell) or UNANSWERED)
        if not is_grade(finite_number(grade)):
            what = f"expected a number within ±2^31 as the {self.called} of {display(document)}, found {display(cell)}"
            return what + unjudged(cell)
        key = (qid, group, document)
        if self.unique:
            again = firsts.again(key, row)
            return f"{display(document)} is judged twice {again}{self.hint}" if again else ""
        earlier = firsts.earlier(key, row, grade)
        if earlier is None or earlier[1] == grade:
            return ""
        within = "" if self.groups is None else f" in the group {group!r}"
        what = f"{display(document)} has {self.called} {number_text(grade)}{within}"
        return f"{what}, but {number_text(earlier[1])} at {earlier[0]}; remove one"


def grades_of(cells: Sequence[Any], *, text: bool) -> Floats:
    """Return cells as numbers, with NaN for any other cell. If `text` is set, parse numbers from text."""
    if text:
        numbers = {cell: _or_nan(number_of(cell or "")) for cell in set(cells)}
        return np.fromiter(map(numbers.__getitem__, cells), np.float64, len(cells))
    if set(map(type, cells)) <= {int, float}:
        try:
            return np.array(cells, dtype=np.float64)
        except OverflowError:
            pass
    return np.array([_or_nan(finite_number(cell)) for cell in cells], dtype=np.float64)


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


def texts_of_ids(cells: Sequence[Any]) -> list[Any]:
    """Return ids as text. A cell that is neither text nor an integer stays unchanged."""
    if set(map(type, cells)) <= {str}:
        return list(cells)
    return [cell if (name := id_text(cell)) is None else name for cell in cells]


def _judged(table: Table, roles: dict[str, str], policy: Policy) -> GroundTruth:
    """Build ground truth from one row per judgment. Without a group column, each document is its own group."""
    table, unanswerable = _without_unanswerable(table, roles)
    documents = table.column(roles["doc_id"])
    names = [roles[role] for role in ("qid", "doc_id", "group", "grade") if role in roles]
    if any(ABSENT in table.column(name) for name in names):
        _present(table, names)
    if "grade" not in roles:
        _warn_of_grades(table, roles)
    if "group" not in roles:
        _refuse_iterations(table)
        _refuse_aspects(table, roles)
    cells, grades = _graded(table.column(roles["grade"]) if "grade" in roles else [1.0] * len(documents))
    groups = texts_of_ids(table.column(roles["group"])) if "group" in roles else None
    qids = texts_of_ids(_qids(table, roles, len(documents)))
    rows = Judged(qids, texts_of_ids(documents), cells, grades, groups, table.place)
    lists, column = _lists(table)
    named = {what: column(role, roles[role]) for what, role in NAMED.items() if role in roles}
    others: dict[str, Any] = {what: _named_by(rows, cells) for what, cells in named.items()}
    if "weight" in roles and groups is not None:
        others["weights"] = _weights(table, rows, roles["weight"])
    shape = "flat" if groups is None else _shape_in(table, "subtopics")
    texts = {**unanswerable, **_texts(table, qids, roles["query"])} if "query" in roles else {}
    truth = rows.truth(policy, shape, table.faults, unsplit=lists.unsplit, more_qids=unanswerable, **others)
    declared = {ANSWERABLE: [False if qid in unanswerable else None for qid in truth.qids]} if unanswerable else {}
    return replace(truth, texts=[texts.get(qid) for qid in truth.qids] if texts else None, columns=declared)


def _without_unanswerable(table: Table, roles: dict[str, str]) -> tuple[Table, dict[Any, str | None]]:
    """Split off rows without a document that declare a query unanswerable. Return these queries with their texts."""
    stated, documents = (cells_of(table, roles.get(role)) for role in ("answerable", "doc_id"))
    absent = {row for row, cell in enumerate(stated) if STATED.get(str(cell).lower(), True) is False}
    absent = {row for row in absent if documents[row] is None or not str(documents[row]).strip()}
    if not absent:
        return table, {}
    qids = texts_of_ids(_qids(table, roles, len(documents)))
    texts = _texts(table, qids, roles["query"]) if "query" in roles else {}
    rows = [row for row in range(len(documents)) if row not in absent]
    kept = replace(
        table,
        column=lambda name: list(map(table.column(name).__getitem__, rows)),
        place=lambda row: table.place(rows[row]),
    )
    return kept, {qids[row]: texts.get(qids[row]) for row in sorted(absent)}


def _texts(table: Table, qids: Sequence[Any], name: str) -> dict[Any, str]:
    """Return the text of each query that has one. A different text in a later row is an error."""
    first: dict[Any, tuple[int, str]] = {}
    for row, (qid, text) in enumerate(zip(qids, cells_of(table, name))):
        if not isinstance(text, str) or not text.strip():
            continue
        earlier, known = first.setdefault(qid, (row, text))
        if text != known and normal_text(text) != normal_text(known):
            what = f"the text of the query is {display(text)}, but {display(known)} at {table.place(earlier)}; keep one"
            table.faults.add(f"{table.place(row)}: query {display(qid)}", what)
    return {qid: text for qid, (_, text) in first.items()}


def _refuse_iterations(table: Table) -> None:
    """Raise `DataError` if an iteration column has several values, because they may be subtopics."""
    for name in table.names:
        if name.lower() in ITERATIONS and len(set(map(str, table.column(name)))) > 1:
            what = f"{table.where or table.title}: the {name} column has several values"
            way = f"if they are subtopics (groups), add {declaring('truth', group=name)}"
            raise DataError(f"{what}; {way}; otherwise, drop the column")


def _refuse_aspects(table: Table, roles: dict[str, str]) -> None:
    """Raise `DataError` if a column that may name groups has two values for a document, or shares some in a query."""
    for name in (name for name in table.names if ASPECTS.fullmatch(name.lower()) and name not in roles.values()):
        first: dict[tuple[str, str], str] = {}
        sharing: dict[str, dict[str, str]] = {}
        columns = (table.column(column) for column in (roles.get("qid", roles.get("query", "")), roles["doc_id"], name))
        for row, (qid, document, cell) in enumerate(zip(*(map(str, column) for column in columns))):
            again = first.setdefault((qid, document), cell) != cell
            other = sharing.setdefault(qid, {}).setdefault(cell, document)
            if again or (other != document and len(sharing[qid]) > 1):
                alike = f"and {display(other)} have the same {name}, and others have a different one"
                what = f"is judged again, with a different value for {name}" if again else alike
                ways = (
                    f"if these are groups (subtopics), add {declaring('truth', group=name)}; otherwise, drop the column"
                )
                raise DataError(f"{table.place(row)}: query {display(qid)}: {display(document)} {what}; {ways}")


def _named_by(rows: Judged, cells: Sequence[Any]) -> dict[str, list[Any]]:
    ids: dict[str, list[Any]] = {}
    for qid, cell in zip(rows.qids, cells):
        cell = plain(cell)
        ids.setdefault(qid, []).extend(cell if isinstance(cell, (list, tuple)) else [] if cell is None else [cell])
    return ids


def _weights(table: Table, rows: Judged, name: str) -> Floats:
    """Return the weight of each row's group. Different weights in the same group are an error."""
    cells = table.column(name)
    weights = grades_of(cells, text=table.text)
    firsts = Firsts(table.place)
    for row, (key, weight) in enumerate(zip(zip(rows.qids, rows.groups or ()), weights.tolist())):
        if not weight > 0:
            table.faults.add(table.place(row), f"expected a group weight above 0, found {display(cells[row])}")
        elif (earlier := firsts.earlier(key, row, weight)) is not None and earlier[1] != weight:
            what = f"the group {key[1]!r} has weight {number_text(weight)}, but {number_text(earlier[1])}"
            table.faults.add(f"{table.place(row)}: query {display(key[0])}", f"{what} at {earlier[0]}; keep one")
    return weights
