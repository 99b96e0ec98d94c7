"""Error messages for invalid values in a row or record; readers add the location."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from groupgt.errors import DataError, Faults, display
from groupgt.formats.fields import call_of
from groupgt.formats.rows import Judgment, number_text
from groupgt.model.validity import id_fault, id_text, is_grade

# The number of characters of a number that are shown.
LONGEST_CELL = 200
# For results without search calls.
NO_CALL = object()
T = TypeVar("T")
Result = TypeVar("Result")


def ids_fault(qid: str, document: str) -> str | None:
    """Return an error message for an invalid query id or document id, or None if both are valid.

    >>> ids_fault("q1", "d1"), ids_fault("q1", " ")
    (None, "the document id ' ' is blank")
    """
    if fault := id_fault(qid):
        return f"the query id {fault}"
    if fault := id_fault(document):
        return f"the document id {display(document)} {fault}"
    return None


def score_fault(cell: object, order: str = "score") -> str:
    """Return the error message for a cell that is not a valid score or rank."""
    return f"expected a finite number as the {order}, found {display(cell, LONGEST_CELL)}"


def result_fault(
    qid: str, document: str, score: float | None, cell: object, order: str = "score", call: object = NO_CALL
) -> str | None:
    """Return an error message for an invalid result, or None; `cell` is the raw score, and `call` the call number."""
    if fault := ids_fault(qid, document):
        return fault
    if score is None:
        return score_fault(cell, order)
    if call is not NO_CALL and call_of(call) is None:
        return f"expected a whole number from 1 as the call, found {display(call)}"
    return None


def ids_at(record: Mapping[str, Any], keys: Sequence[str], where: str, faults: Faults) -> tuple[str, str] | None:
    """Return the query id and document id of a record; reports an error if either is neither text nor an integer."""
    qid, document = (id_text(record.get(key)) for key in keys)
    if qid is None or document is None:
        cells = " and ".join(display(record.get(key)) for key in keys)
        faults.add(where, f"expected ids (strings or integers) as {' and '.join(keys)}, found {cells}")
        return None
    return qid, document


def ranking(cells: list[Any], where: str, faults: Faults) -> list[str]:
    """Return the ids in a list of results, best first; invalid ids are reported as errors."""
    ids: list[str] = []
    for rank, cell in enumerate(cells, 1):
        name = id_text(cell)
        fault = "must be a string or integer" if name is None else id_fault(name)
        if name is None or fault:
            faults.add(where, f"the id at rank {rank}, {display(cell)}, {fault}")
        else:
            ids.append(name)
    return ids


def collect(read: Callable[[T], Result], items: Iterable[T], faults: Faults) -> list[Result]:
    """Call a function on each item and return the results; its data errors are collected."""
    results = []
    for item in items:
        try:
            results.append(read(item))
        except DataError as error:
            faults.merge(error)
    return results


class Firsts:
    """The first occurrence of each name, with its location and value; `where` formats a location for messages."""

    def __init__(self, where: Callable[[Any], str] = str) -> None:
        self.where = where
        self._entries: dict[Hashable, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def earlier(self, name: Hashable, location: Any, value: Any = None) -> tuple[str, Any] | None:
        """Return the location and value of the first occurrence, or None if this is the first."""
        entry = (location, value)
        first = self._entries.setdefault(name, entry)
        return None if first is entry else (self.where(first[0]), first[1])

    def again(self, name: Hashable, location: Any) -> str:
        """Return `(first at …); remove one` for a repeated name, or an empty string for the first occurrence."""
        earlier = self.earlier(name, location)
        return "" if earlier is None else f"(first at {earlier[0]}); remove one"

    def value(self, name: Hashable) -> Any:
        """Return the value of a name, or None if the name has not occurred."""
        return self._entries.get(name, (None, None))[1]


class Judgments:
    """Judgments from one source, checked row by row, together with their errors.

    Args:
        where: A function that formats the location of a row for messages.
        called: The source's term for a grade.
        grouped: Whether a document may be judged in several groups of a query.
        hint: A hint for repeated judgments; None if repeats with the same grade are allowed.
    """

    def __init__(
        self,
        where: Callable[[Any], str] = str,
        *,
        called: str = "grade",
        grouped: bool = False,
        hint: str | None = "",
    ) -> None:
        self.faults = Faults()
        self.where, self.called, self.grouped, self.hint = where, called, grouped, hint
        self._rows: list[Judgment] = []
        self._firsts = Firsts(where)

    def add(self, row: Any, qid: str, group: str, document: str, grade: float | None, cell: object) -> None:
        """Add one judgment; `cell` is the raw grade."""
        if fault := self._fault(row, qid, group, document, grade, cell):
            self.faults.add(f"{self.where(row)}: query {display(qid)}", fault)
        elif grade is not None:
            self._rows.append((qid, group, document, grade))

    def _fault(self, row: Any, qid: str, group: str, document: str, grade: float | None, cell: object) -> str | None:
        if fault := ids_fault(qid, document):
            return fault
        if grade is None or not is_grade(grade):
            return f"expected a number within ±2^31 as the {self.called} of {display(document)}, found {display(cell)}"
        key = (qid, group, document) if self.grouped else (qid, document)
        if self.hint is not None:
            again = self._firsts.again(key, row)
            return f"{display(document)} is judged twice {again}{self.hint}" if again else None
        earlier = self._firsts.earlier(key, row, grade)
        if earlier is None or earlier[1] == grade:
            return None
        what = f"{display(document)} has the grade {number_text(grade)} in the group {group!r}"
        return f"{what}, and {number_text(earlier[1])} at {earlier[0]}; remove one"

    def rows(self) -> list[Judgment]:
        """Return all judgments; raises `DataError` with all errors."""
        self.faults.stop()
        return self._rows
