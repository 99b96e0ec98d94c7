"""Records as benchmarks publish them (JSON, JSON Lines or parquet), and the queries that readers build from them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, display, near_names
from groupgt.formats import parquet
from groupgt.formats.checks import Firsts
from groupgt.formats.jsonl import is_array, object_of, objects
from groupgt.formats.rows import rename_hint
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.validity import id_text

# Keys of groupgt's own formats: a record with one of them is not from a benchmark.
OWN = {"retrieval_gt", "retrieved_ids", "doc_id"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|:\s*([{\[]?)|[{}\[\]]', re.DOTALL)


def holds(source: Source, *keys: str) -> bool:
    """Whether the first record of a file has all of these keys and none of groupgt's own.

    The value of one of them must be a string or number, unlike in an object keyed by query, as ranx writes it.
    """
    found = keys_of(source)
    return found.keys() >= set(keys) and not found.keys() & OWN and any(found[key] for key in keys)


def keys_of(source: Source) -> dict[str, bool]:
    """The keys of the first record of a file, with whether their value is a string or number; empty for other files."""
    if "record keys" not in source.kept:
        source.kept["record keys"] = _keys_of(source)
    keys: dict[str, bool] = source.kept["record keys"]
    return keys


def _keys_of(source: Source) -> dict[str, bool]:
    if source.is_folder:
        return {}
    if source.is_parquet:
        return dict.fromkeys(parquet.names_of(source), True)
    head = source.head().lstrip()
    return _first_keys(head.decode("utf-8", "replace")) if head[:1] in (b"{", b"[") else {}


def _first_keys(text: str) -> dict[str, bool]:
    """The keys of the first object in a JSON text, which may be truncated."""
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


def files_in(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """The files of a folder with one of some endings, by name."""
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(endings))


def parts_of(source: Source, endings: tuple[str, ...]) -> list[Source]:
    """The file itself, or the files of a folder with one of some endings."""
    if not source.is_folder:
        return [source]
    return [Source(path, ceiling=source.ceiling) for path in files_in(source.path, endings)]


def records(source: Source, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each record with its place; anything that is not a record is collected as an error."""
    if source.is_parquet:
        for number, row in enumerate(parquet.rows_of(source), 1):
            yield f"{source.path}: row {number}", row
    elif _is_one_object(source):
        yield f"{source.path}:1", object_of(source)
    else:
        for number, row in objects(source, faults):
            yield f"{source.path}:{number}", row


def _is_one_object(source: Source) -> bool:
    """Whether a file is one JSON object over several lines, rather than one object per line."""
    return not is_array(source) and not source.first_line.rstrip().endswith(b"}")


@dataclass
class Questions:
    """Queries gathered from the records of one file, and the errors in them."""

    faults: Faults = field(default_factory=Faults)
    qids: list[Any] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)
    columns: list[dict[str, Any]] = field(default_factory=list)
    excluded: list[list[str]] = field(default_factory=list)
    firsts: Firsts = field(default_factory=Firsts)
    known_faults: int = 0

    def add(
        self,
        where: str,
        qid: Any,
        groups: list[Any],
        text: Any = None,
        columns: Mapping[str, Any] | None = None,
        excluded: list[str] | None = None,
    ) -> None:
        """Adds one query; `excluded` are ids that are left out of its results.

        If its record has an error, it is not checked further: errors that follow from another are not reported.
        """
        if self.faults.total > self.known_faults:
            self.known_faults = self.faults.total
            return
        for number, group in enumerate(groups, 1):
            if isinstance(group, Mapping):
                self.is_important(qid, group.get("name"), group.get("importance"), f"{where}, nugget {number}")
        self.qids.append(qid)
        self.groups.append(groups)
        self.places.append(where)
        self.texts.append(text if isinstance(text, str) and text.strip() else None)
        self.columns.append(dict(columns or {}))
        self.excluded.append(excluded or [])

    def has(self, record: Mapping[str, Any], key: str, where: str) -> bool:
        """Whether a record has a key; records an error if not, with the key that may have been meant."""
        if key not in record:
            found = ", ".join(map(str, record)) or "no keys"
            self.faults.add(where, f"expected the key {key}, found {found}{rename_hint(record, [key])}")
        return key in record

    def once(self, name: Hashable, where: str, what: str) -> bool:
        """Whether something occurs for the first time; a repetition is an error that names both places."""
        again = self.firsts.again(name, where)
        if again:
            self.faults.add(where, f"{what} twice {again}")
        return not again

    def agrees(self, name: Hashable, value: Any, where: str, what: str) -> bool:
        """Whether something agrees with its earlier value, if any; a contradiction is an error with both places."""
        earlier = self.firsts.earlier(name, where, value)
        if earlier is None or earlier[1] == value:
            return True
        self.faults.add(where, f"{what} {value}, and {earlier[1]} at {earlier[0]}; keep one")
        return False

    def is_important(self, qid: Any, nugget: Any, importance: Any, where: str) -> None:
        """Records the importance of a nugget, if it has one; the same nugget must not have another."""
        if isinstance(nugget, str) and importance is not None:
            what = f"query {display(qid)}: the nugget {display(nugget)} is"
            self.agrees(("importance", str(qid), nugget), importance, where, what)

    def importance_of(self, qid: Any, nugget: str) -> Any:
        """The importance of a nugget; None if it has none."""
        return self.firsts.value(("importance", str(qid), nugget))

    def list_at(
        self, record: Mapping[str, Any], key: str, where: str, kind: type, *, optional: bool = False
    ) -> list[Any]:
        """The list at a key; any other value is an error, and so are other items in it.

        An `optional` key may be absent, unless a key with a similar name is present.
        """
        if optional and (record[key] is None if key in record else not _has_near(tuple(record), key)):
            return []
        if not self.has(record, key, where):
            return []
        cells = record[key]
        if not isinstance(cells, list):
            self.faults.add(where, f"expected a list as {key}, found {display(cells)}")
            return []
        sound = [cell for cell in cells if isinstance(cell, kind)]
        if len(sound) < len(cells):
            wrong = next(cell for cell in cells if not isinstance(cell, kind))
            self.faults.add(where, f"expected {_NAMES[kind]} in {key}, found {display(wrong)}")
        return sound

    def text_at(self, record: Mapping[str, Any], key: str, where: str) -> str | None:
        """The text at a key; any other value is an error."""
        if not self.has(record, key, where):
            return None
        if isinstance(record[key], str):
            return str(record[key])
        self.faults.add(where, f"expected a string as the {key}, found {display(record[key])}")
        return None

    def ids_at(self, record: Mapping[str, Any], key: str, where: str) -> list[str]:
        """The ids in the list at a key."""
        cells = self.list_at(record, key, where, object)
        ids = [name for cell in cells if (name := id_text(cell)) is not None]
        if len(ids) < len(cells):
            wrong = next(cell for cell in cells if id_text(cell) is None)
            self.faults.add(where, f"expected ids (strings or integers) in {key}, found {display(wrong)}")
        return ids

    def truth(self, policy: Policy) -> GroundTruth:
        """The ground truth of all queries; raises `DataError` with every error."""
        names = dict.fromkeys(name for row in self.columns for name in row)
        columns = {name: [row.get(name) for row in self.columns] for name in names}
        try:
            truth = GroundTruth.from_rows(
                self.qids,
                self.groups,
                policy,
                place=self.places.__getitem__,
                texts=self.texts if any(self.texts) else None,
                columns=columns,
                excluded=self.excluded if any(self.excluded) else None,
            )
        except DataError as error:
            self.faults.merge(error)
        self.faults.stop()
        return truth


@lru_cache
def _has_near(keys: tuple[str, ...], key: str) -> bool:
    """Whether one of some keys is nearly the name of another; the records of a file have few sequences of keys."""
    return bool(near_names(key, keys))


_NAMES: dict[type, str] = {dict: "objects", str: "strings"}
