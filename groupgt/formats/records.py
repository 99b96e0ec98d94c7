"""Reads published benchmark records (JSON, JSON Lines or parquet), from which readers build queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from groupgt.errors import Faults, display
from groupgt.formats import csv, parquet
from groupgt.formats.columns import listed_in
from groupgt.formats.fields import Firsts
from groupgt.formats.jsonl import objects, wrappers_in
from groupgt.formats.roles import has_near, hint
from groupgt.formats.source import Record, Source
from groupgt.formats.tables import Table, truth_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import id_text, is_number

# Keys of groupgt's own formats: a record with one of them is not from a benchmark.
OUR_KEYS = {"retrieval_gt", "retrieved_ids", "doc_id"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|:\s*([{\[]?)|[{}\[\]]', re.DOTALL)
_NAMES: dict[type, str] = {dict: "objects", str: "strings"}


def has_keys(source: Source, *keys: str) -> bool:
    """Return whether the first record has these keys (one with a text or number) and none of groupgt's own keys."""
    first = keys_of(source)
    return first.keys() >= set(keys) and not first.keys() & OUR_KEYS and any(first[key] for key in keys)


def look_for(*keys: str) -> Callable[[Source], str | None]:
    """Return a function that recognizes ground truth by the keys of the first record."""
    return lambda source: "truth" if has_keys(source, *keys) else None


def keys_of(source: Source) -> dict[str, bool]:
    """Return the first record's keys and whether each value is a string or number, or nothing without records."""
    return source.cached(_keys_of)


def _keys_of(source: Source) -> dict[str, bool]:
    if source.is_parquet:
        return dict.fromkeys(parquet.names_of(source), True)
    if not source.is_json:
        names = csv.header_of(source)
        return dict.fromkeys(names, True) if len(names) > 1 and not any(map(is_number, names)) else {}
    keys = first_keys(text := source.head().decode("utf-8", "replace"))
    # One object that lists the records.
    named = (re.search(rf'"{name}"\s*:\s*\[', text) for name in wrappers_in(tuple(keys)) if not keys[name])
    wrapped = next(filter(None, named), None)
    return keys if wrapped is None else first_keys(text[wrapped.end() :]) or keys


def first_keys(text: str) -> dict[str, bool]:
    """Return the keys of the first object in a JSON text, which may be truncated."""
    keys: dict[str, bool] = {}
    depth = opened = 0
    last = ""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign[0] == ":":
            if depth == opened:
                keys[last[1:-1]] = not token[1]
            depth += bool(token[1])
        elif sign in "{[":
            depth += 1
            opened = opened or (depth if sign == "{" else 0)
        elif sign in "}]":
            if depth == opened:
                break
            depth -= 1
        last = sign
    return keys


def parts_of(source: Source, endings: tuple[str, ...]) -> list[Source]:
    """Return the file itself, or the files in a folder that have one of these endings, sorted by name."""
    if not source.path.is_dir():
        return [source]
    paths = sorted(path for path in source.path.iterdir() if path.is_file() and path.name.endswith(endings))
    return [Source(path, ceiling=source.ceiling) for path in paths]


def folder_of(look: Callable[[Source], str | None], endings: tuple[str, ...]) -> Callable[[Path], bool]:
    """Return a function that recognizes a folder by its first file with one of these endings."""
    return lambda folder: any(map(look, parts_of(Source(folder), endings)[:1]))


def records(source: Source, faults: Faults, *, unwrapped: bool = True) -> Iterator[tuple[str, Record]]:
    """Yield each record with its location and collect errors. Lists under keys such as `data` can be `unwrapped`."""
    if source.is_parquet:
        yield from parquet.rows_of(source)
    elif not source.is_json:
        for where, row in csv.table(source, (), faults):
            listed = [name for name, cell in row.items() if cell.strip()[:1] in ("[", "{")]
            yield where, row | {name: listed_in(row[name], where, faults) for name in listed}
    else:
        yield from objects(source, faults, unwrapped=unwrapped)


class Queries:
    """Queries collected from records, together with their errors. `where` is the location of the current record."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.where = ""
        self.rows: list[tuple[str, Record]] = []
        self._firsts = Firsts()
        self._reported = 0

    def records(self, *sources: Source) -> Iterator[Record]:
        """Yield the records of all files in order."""
        for where, record in (row for source in sources for row in records(source, self.faults)):
            self.where = where
            yield record

    def fault(self, what: str) -> None:
        """Add an error in the current record."""
        self.faults.add(self.where, what)

    def add(
        self,
        qid: Any,
        groups: list[Any],
        text: Any = None,
        columns: Record | None = None,
        excluded: list[str] | None = None,
    ) -> None:
        """Add one query with the ids to exclude from its results, unless its record already has an error."""
        if self.faults.total > self._reported:
            self._reported = self.faults.total
            return
        for number, group in enumerate(groups, 1):
            if isinstance(group, Mapping):
                self.is_important(qid, group.get("name"), group.get("importance"), number)
        query = text if isinstance(text, str) and text.strip() else None
        row = {"qid": qid, "retrieval_gt": groups, "query": query, "excluded_ids": excluded}
        self.rows.append((self.where, row | (columns or {})))

    def has(self, record: Record, key: str) -> bool:
        """Return whether a record has a key. If the key is missing, suggest similar keys in an error."""
        if key not in record:
            keys = ", ".join(map(str, record)) or "no keys"
            self.fault(f"expected the key {key}, found {keys}{hint(record, [key])}")
        return key in record

    def once(self, name: Hashable, what: str) -> bool:
        """Return whether a name occurs for the first time. Otherwise, add an error with both locations."""
        if again := self._firsts.again(name, self.where):
            self.fault(f"{what} twice {again}")
        return not again

    def agrees(self, name: Hashable, value: Any, number: int, what: str) -> bool:
        """Return whether a nugget value matches any earlier value. Otherwise, add an error with both locations."""
        where = f"{self.where}, nugget {number}"
        earlier = self._firsts.earlier(name, where, value)
        if earlier is None or earlier[1] == value:
            return True
        self.faults.add(where, f"{what} {value}, but {earlier[1]} at {earlier[0]}; keep one")
        return False

    def is_important(self, qid: Any, nugget: Any, importance: Any, number: int) -> None:
        """Record the importance of a nugget, if any. Different importance values for the same nugget are an error."""
        if isinstance(nugget, str) and importance is not None:
            what = f"query {display(qid)}: the nugget {display(nugget)} is"
            self.agrees(("importance", str(qid), nugget), importance, number, what)

    def list_at(self, record: Record, key: str, kind: type = dict, *, optional: bool = False) -> list[Any]:
        """Return the list at a key, empty for null. An `optional` key may be missing if no similar key exists."""
        if (optional and key not in record and not has_near(key, tuple(record))) or not self.has(record, key):
            return []
        cells = [] if record[key] is None else record[key]
        if not isinstance(cells, list):
            self.fault(f"expected a list as {key}, found {display(cells)}")
            return []
        if invalid := [cell for cell in cells if not isinstance(cell, kind)]:
            self.fault(f"expected {_NAMES[kind]} in {key}, found {display(invalid[0])}")
        return [cell for cell in cells if isinstance(cell, kind)]

    def text_at(self, record: Record, key: str) -> str | None:
        """Return the text at a key. Any other value is an error."""
        if self.has(record, key) and not isinstance(record[key], str):
            self.fault(f"expected a string as the {key}, found {display(record[key])}")
        text = record.get(key)
        return text if isinstance(text, str) else None

    def ids_at(self, record: Record, key: str) -> list[str]:
        """Return the ids in the list at a key."""
        cells = self.list_at(record, key, object)
        if invalid := [cell for cell in cells if id_text(cell) is None]:
            self.fault(f"expected ids (strings or integers) in {key}, found {display(invalid[0])}")
        return [name for cell in cells if (name := id_text(cell)) is not None]

    def truth(self, policy: Policy) -> GroundTruth:
        """Return the ground truth for all queries, or raise `DataError` with every error."""
        return replace(truth_of(Table.of_records("", self.rows, faults=self.faults), policy), keys=())


def graded(grades: Record) -> list[Record]:
    """Build alternatives from documents and their grades."""
    return [{"id": document, "grade": grade} for document, grade in grades.items()]


def singles(alternatives: Iterable[Any]) -> list[list[Any]]:
    """Make a group from each distinct alternative."""
    return [[alternative] for alternative in dict.fromkeys(alternatives)]
