"""Result fields besides id and score, shared by all formats, and error messages for invalid values in a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np

from groupgt.errors import DataError, Faults, display, strange_result
from groupgt.formats.columns import declaring
from groupgt.model.validity import finite_number, id_fault, id_text, unscored
from groupgt.model.values import CALLS, LENGTH_UNITS, LONGEST, RANK

# The columns of lists of results per query, and the column of their scores.
NESTED = ("retrieved_ids", "retrieved_ids_lexical", "retrieved_ids_semantic")
SCORES = "retrieve_scores"
# The texts of results, which AutoRAG's compressors write without ids.
TEXTS = "retrieved_contents"
# The number of characters of a number that are shown.
LONGEST_CELL = 200
# For results without search calls.
NO_CALL = object()
T = TypeVar("T")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Field:
    """A result field, in the first of its `columns` or, if rows are queries, in the list `nested` (empty if never)."""

    name: str
    kind: Literal["length", "call", "text", "id", "span", "rank"]
    columns: tuple[str, ...] = ()
    nested: str = ""

    @property
    def is_integer(self) -> bool:
        """True if the field contains whole numbers."""
        return self.kind in ("length", "call")

    @property
    def is_unit(self) -> bool:
        """True if the field can serve as a budget unit."""
        return self.is_integer and bool(self.nested)

    def number(self, cell: Any) -> int | None:
        """Return a cell as a whole number, or None if it is not one."""
        return call_of(cell) if self.kind == "call" else length_of(cell)


CALL_COLUMN, CALL_LIST = "call", "retrieved_calls"
# The columns that number the times a system was asked, with one index or with one built anew each time.
TRIAL, BUILD = "trial", "build"
# What agents' harnesses and researchers call the number of a trial.
REPEATS = re.compile(
    r"(?:trial|epoch|attempt|repeat|repetition|rep|replicate|iteration|sample|seed|run)(?:_(?:id|no|num|number|index))?"
    r"|(?:system|model|retriever)(?:_name)?"
)
FIELDS = (
    *(Field(unit, "length", (unit,), f"retrieved_{unit}") for unit in LENGTH_UNITS),
    Field(CALLS, "call", (CALL_COLUMN,), CALL_LIST),
    Field("start", "length", ("start",)),
    Field("end", "length", ("end",)),
    Field("text", "text", ("contents", "text"), TEXTS),
    Field("parent", "id", ("parent",), "retrieved_parents"),
    # The document of a result, if its id does not name it.
    Field("document", "id", ("doc",)),
    Field("span", "span", (), "retrieved_spans"),
    # Beside a score, which decides the order.
    Field(RANK, "rank", ("rank",)),
)
COLUMNS = frozenset(column for field in FIELDS for column in field.columns)
LISTS = frozenset(field.nested for field in FIELDS if field.nested)


def first_in(names: Iterable[str], row: Container[str]) -> str | None:
    """Return the first of these names that the row contains."""
    return next((name for name in names if name in row), None)


@lru_cache(maxsize=64)
def carried(names: tuple[str, ...]) -> list[tuple[Field, str]]:
    """Return the fields in these columns, with their columns. The result is cached, since rows often share keys."""
    firsts = ((field, first_in(field.columns, names)) for field in FIELDS)
    return [(field, column) for field, column in firsts if column and (field.kind != "rank" or "score" in names)]


def units_of(row: Mapping[str, Any], plain: Callable[[Any], Any] = lambda cell: cell) -> dict[str, int | None]:
    """Return the lengths and the call number from a result row. `plain` converts each cell first."""
    fields = carried(tuple(row))
    return {field.name: field.number(plain(row[column])) for field, column in fields if field.is_unit}


def lists_of(names: Collection[str]) -> tuple[list[Field], list[Field]]:
    """Return the fields that a query stores as lists, separated into units and other fields."""
    fields = [field for field in FIELDS if field.nested in names]
    return [field for field in fields if field.is_unit], [field for field in fields if not field.is_unit]


def score_of(row: Mapping[str, Any]) -> float | None:
    """Return the score of a result, or its negative rank if it has no score. Return None if the score is not finite."""
    cell, sign = (row["score"], 1.0) if row.get("score") is not None else (row.get("rank"), -1.0)
    number = finite_number(cell)
    return None if number is None else sign * number


def length_of(cell: Any) -> int | None:
    """Parse a length, given as a non-negative whole number or as text, or return None for anything else."""
    if isinstance(cell, str):
        cell = int(cell) if cell.isascii() and cell.isdigit() and len(cell) <= 16 else None
    elif isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # a column with missing cells contains floats
    return cell if isinstance(cell, int) and not isinstance(cell, bool) and 0 <= cell <= LONGEST else None


def call_of(cell: Any) -> int | None:
    """Parse a search call number, given as a positive whole number or as text, or return None for anything else."""
    number = length_of(int(cell) if isinstance(cell, np.integer) else cell)
    return number or None


def trial_column(names: Container[str], title: str) -> str | None:
    """Return the column that numbers trials or builds, or None if missing. Raise `DataError` if both columns exist."""
    found = [name for name in (TRIAL, BUILD) if name in names]
    if len(found) > 1:
        what = "expected a trial column or a build column, found both"
        raise DataError(f"{title}: {what}; keep the build column if each build has its own index")
    return next(iter(found), None)


def repeats_in(names: Collection[str]) -> str | None:
    """Return the column that probably numbers trials, if no such column is declared."""
    if {TRIAL, BUILD} & set(names):
        return None
    return next((name for name in names if REPEATS.fullmatch(name.lower())), None)


def refuse_repeats(rows: Iterable[tuple[str, Any, Any]], column: str, before: str = "") -> None:
    """Raise `DataError` if a query has several values in a column. A row consists of its place, query and value."""
    firsts: dict[Any, Any] = {}
    for where, query, value in rows:
        if (first := firsts.setdefault(query, value)) != value:
            raise DataError(f"{where}: query {display(query)}: {repeat_fault(column, first, value, before)}")


def repeat_fault(column: str, first: Any, other: Any, before: str = "") -> str:
    """Return the error message for a query whose results have two values in a column that may number trials."""
    what = f"has results with {column} {display(first)} and {column} {display(other)}"
    are_numbers = None not in (length_of(first), length_of(other))
    way = before + (declaring("run", trial=column) if are_numbers else "number them from 1 in a trial column")
    return f"{what}: if these are trials of one system, {way}; if they are systems, write one file for each"


def trial_fault(cell: Any, column: str) -> str:
    """Return the error message for a cell that is not a trial or build number."""
    return f"expected a whole number as the {column} in every row, found {display(cell)}"


def calls_fault(calls: Sequence[int | None], size: int, *, in_order: bool) -> str | None:
    """Return an error message for invalid calls of `size` results, or None. `in_order` forbids decreasing calls."""
    count = len(calls) - list(calls).count(None)
    if not count == len(calls) == size:
        return f"expected a call (a whole number from 1) for each of {size:,} results, found {count:,}"
    for rank, (before, after) in enumerate(pairwise(calls), 2):
        if in_order and before is not None and after is not None and after < before:
            what = f"the result at rank {rank} is from call {after}, but the previous result is from call {before}"
            return f"{what}; list results in the order of their calls"
    return None


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a result besides its id and score: `text`, `parent`, `rank`, and `span` in a document."""
    fields: dict[str, Any] = {}
    for field, column in carried(tuple(row)):
        if field.kind == "rank" or (field.nested and not field.is_unit):
            fields[field.name] = row[column]
    if "start" in row and "end" in row:
        bounds = {key: number_in(row[key]) for key in ("start", "end")}
        fields["span"] = {"doc": row.get("doc", row.get("doc_id")), **bounds}
    return fields


def number_in(cell: Any) -> Any:
    """Convert a whole number that a CSV file stores as text. Other cells stay unchanged."""
    length = length_of(cell.strip()) if isinstance(cell, str) else None
    return cell if length is None else length


def ids_fault(qid: str, document: str) -> str | None:
    """Return an error message for an invalid query id or document id, or None if both are valid."""
    if fault := id_fault(qid):
        return f"the query id {fault}"
    if fault := id_fault(document):
        return f"the document id {display(document)} {fault}"
    return None


def query_fault(cell: object, qid: str | None, column: str = "qid") -> str | None:
    """Explain why a cell with the text `qid` does not identify a query, or return None if it does."""
    fault = None if qid is None else id_fault(qid)
    if qid is not None and fault is None:
        return None
    expected = "a qid (a string or integer)" if column == "qid" else f"a {column} (a string)"
    return f"expected {expected}, found {display(cell)}" + (f", which {fault}" if fault else "")


def score_fault(cell: object, order: str = "score") -> str:
    """Return the error message for a cell that is not a valid score or rank."""
    return f"expected a finite number as the {order}, found {display(cell, LONGEST_CELL)}{unscored(cell)}"


def result_fault(
    qid: str, document: str, score: float | None, cell: object, order: str = "score", call: object = NO_CALL
) -> str | None:
    """Return an error message for an invalid result, or None. `cell` is the raw score, `call` the call number."""
    if fault := ids_fault(qid, document):
        return fault
    if score is None:
        return score_fault(cell, order)
    if call is not NO_CALL and call_of(call) is None:
        return f"expected a whole number from 1 as the call, found {display(call)}"
    return None


def ids_at(record: Mapping[str, Any], keys: Sequence[str], where: str, faults: Faults) -> tuple[str, str] | None:
    """Return the query id and document id of a record. Report an error if an id is neither text nor an integer."""
    qid, document = (id_text(record.get(key)) for key in keys)
    if qid is None or document is None:
        cells = " and ".join(display(record.get(key)) for key in keys)
        faults.add(where, f"expected ids (strings or integers) as {' and '.join(keys)}, found {cells}")
        return None
    return qid, document


def ranking(cells: list[Any], where: str, faults: Faults) -> list[str]:
    """Return the ids in a list of results, best first. Report invalid ids as errors."""
    ids: list[str] = []
    for rank, cell in enumerate(cells, 1):
        name = id_text(cell)
        if isinstance(cell, dict):
            faults.add(where, f"{strange_result(cell)} (at rank {rank}); rename the key that contains the ids to id")
            continue
        fault = "must be a string or integer" if name is None else id_fault(name)
        if name is None or fault:
            faults.add(where, f"the id {display(cell)} at rank {rank} {fault}")
        else:
            ids.append(name)
    return ids


def scores_fault(scores: Any, count: int, key: str) -> str | None:
    """Explain why a cell does not contain `count` finite scores, one for each result in `key`, or return None."""
    if not isinstance(scores, list):
        return f"expected {SCORES} to be a list of numbers, found {display(scores)}"
    if len(scores) != count:
        return f"expected as many {SCORES} as {key} ({count}), found {len(scores)}"
    if not (wrong := [score for score in scores if finite_number(score) is None]):
        return None
    return f"expected finite numbers as {SCORES}, found {display(wrong[0], LONGEST_CELL)}{unscored(wrong[0])}"


def collect(read: Callable[[T], Result], items: Iterable[T], faults: Faults) -> list[Result]:
    """Call a function on each item, return the results, and collect data errors."""
    results = []
    for item in items:
        try:
            results.append(read(item))
        except DataError as error:
            faults.merge(error)
    return results


class Firsts:
    """The first occurrence of each name, with its location and value. `where` formats a location for messages."""

    def __init__(self, where: Callable[[Any], str] = str) -> None:
        self.where = where
        self._entries: dict[Hashable, tuple[Any, Any]] = {}

    def earlier(self, name: Hashable, location: Any, value: Any = None) -> tuple[str, Any] | None:
        """Return the location and value of the first occurrence, or None if this is the first."""
        entry = (location, value)
        first = self._entries.setdefault(name, entry)
        return None if first is entry else (self.where(first[0]), first[1])

    def again(self, name: Hashable, location: Any) -> str:
        """Return `(first at …); remove one` for a repeated name, or an empty string for the first occurrence."""
        earlier = self.earlier(name, location)
        return "" if earlier is None else f"(first at {earlier[0]}); remove one"
