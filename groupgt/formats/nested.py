"""Converts records with roles at paths to plain rows with cells named by role."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from groupgt.errors import ConfigError, Faults, display
from groupgt.formats.columns import is_path
from groupgt.formats.fields import SCORES, TEXTS
from groupgt.formats.paths import Found, Path, Row, beside, path_of
from groupgt.formats.roles import LISTS, NAMES, Declared
from groupgt.formats.rows import SHAPE
from groupgt.formats.source import Record
from groupgt.model.groups import Elements
from groupgt.model.validity import finite_number, is_integer

# The roles of each kind of file that may stand at a path.
TRUTH = (*NAMES["truth"], "text", "all")
RUN = tuple(NAMES["run"])


class Roles:
    """The path of each role in one kind of file. Each `needed` role must lead to a value in at least one record."""

    def __init__(self, names: Iterable[str], columns: Declared, kind: tuple[str, ...], *, needed: bool = True) -> None:
        self.needed = needed
        names, faults = set(names), Faults()
        self.paths: dict[str, Path] = {}
        self.texts = {role: text for role, text in columns.items() if role in (*kind, "rows")}
        for role, text in self.texts.items():
            # The elements of an array at the top are the records.
            top = "[]" if role == "rows" or "rows" not in columns else ""
            try:
                is_name = text in names and is_path(text)
                self.paths[role] = Path.of_name(text) if is_name else path_of(text.removeprefix(top))
            except ConfigError as error:
                faults.add(f"columns: {role}", str(error))
        faults.stop(ConfigError)
        self.rows = self.paths.pop("rows", None)
        self.named = frozenset(name for path in self.paths.values() for name in path.names)
        self._led: set[str] = set()

    def found(self, role: str, row: Row) -> Found:
        """Return the values at the path of a role."""
        found = self.paths[role].find(row) if role in self.paths else []
        if found:
            self._led.add(role)
        return found

    def one(self, role: str, row: Row) -> Record:
        """Return the value of a role as a cell named by the role (a list for a list role), or None if missing."""
        found = self.found(role, row)
        if self.paths[role].is_list and role in LISTS:
            return {role: [value for _, value in found]}
        if len(found) > 1:
            row.fault(f"expected one {role}, found {len(found)} at {self.texts[role]}")
        return {role: found[0][1] if found else None}

    def each(self, title: str, records: Iterable[tuple[str, Record]], faults: Faults) -> Iterator[tuple[str, Row]]:
        """Yield every row with its location. Report a path that leads to nothing in all rows."""
        where = ""
        for where, record in records:
            outer = Row(record, record, (), self.named, partial(faults.add, where))
            values: Found = [((), record)]
            around = values
            if self.rows is not None:
                values, around = self.rows.find(outer), self.rows.around.find(outer._replace(fault=lambda _: None))
            if values:
                self._led.add("rows")
            enclosing = beside(values, around, "record", outer.fault)
            for number, ((position, value), of_row) in enumerate(zip(values, enclosing), 1):
                place = where if self.rows is None else f"{where}: row {number}"
                keys = [key for _, key in position]
                yield place, outer._replace(value=value, outer=of_row, keys=keys, fault=partial(faults.add, place))
        if where and not faults:
            for role in sorted(self.texts.keys() - self._led):
                if self.needed or "?" not in self.texts[role]:
                    faults.add(title, f"no record has a value at {role}={self.texts[role]}")

    def cells(self, row: Row, apart: Container[str | None]) -> Record:
        """Return a row's cells at which no path starts, and one cell for each role that is not treated `apart`."""
        begun = {name for path in self.paths.values() if not path.from_outer for name in path.first}
        named = row.value if isinstance(row.value, dict) else {}
        cells = {name: cell for name, cell in named.items() if name not in begun}
        for role in self.paths:
            if role not in apart:
                cells |= self.one(role, row)
        return cells


def _truth_rows(roles: Roles, rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Record]]:
    """Yield ground truth for each row: groups if a path leads to several documents, otherwise a judgment."""
    of_documents = [role for role in ("doc_id", "retrieval_gt", "text") if role in roles.paths]
    is_grouped = "text" in of_documents or any(roles.paths[role].is_list for role in of_documents)
    parts = (*of_documents, "group", "grade", "weight", "all") if is_grouped else ()
    is_flat = "doc_id" in of_documents and "all" not in roles.paths
    shape = {SHAPE: "subtopics" if "group" in roles.paths else "flat"} if is_flat else {}
    for place, row in rows:
        cells = roles.cells(row, parts)
        if is_grouped:
            cells |= {"retrieval_gt": _groups(roles, row, of_documents)} | shape
        yield place, cells


def _groups(roles: Roles, row: Row, of_documents: Sequence[str]) -> list[Any]:
    """Return the groups of a row: one for each document, or for each element or name at the path of groups."""
    places: Found = []
    alternatives: list[Any] = []
    for role in of_documents:
        for position, value in roles.found(role, row):
            places.append((position, value))
            alternatives.append({"text": value} if role == "text" else value)
    if "grade" in roles.paths:
        grades = beside(places, roles.found("grade", row), "grade", row.fault)
        alternatives = [
            None if grade is None else {**(each if isinstance(each, dict) else {"id": each}), "grade": grade}
            for each, grade in zip(alternatives, grades)
        ]
    if "group" not in roles.paths and "all" not in roles.paths:
        distinct = {repr(each): each for each in alternatives if each is not None}
        if of_documents == ["retrieval_gt"] and "grade" not in roles.paths:
            # The policy reads ids in a flat list.
            is_split = roles.paths["retrieval_gt"].steps[-1].kind == "split"
            return list(distinct.values()) if is_split else Elements(distinct.values())
        return [each if isinstance(each, list) else [each] for each in distinct.values()]
    groups: dict[Any, Record] = {}
    keys: Found = []
    for position, value in roles.found("group", row):
        is_name = isinstance(value, str) or is_integer(value)
        keys.append((position, str(value) if is_name else position))
        groups.setdefault(keys[-1][1], {"alternatives": [], **({"name": str(value)} if is_name else {})})
    weights = beside(places, roles.found("weight", row), "weight", row.fault)
    sets = beside(places, [(at, (number,)) for number, (at, _) in enumerate(roles.found("all", row))], "set", row.fault)
    together: dict[Any, dict[Any, list[Any]]] = {}
    own = beside(places, keys, "group", row.fault)
    for (position, _), key, weight, of_set, each in zip(places, own, weights, sets, alternatives):
        key = (position if "group" in roles.paths else ()) if key is None else key
        group = groups.setdefault(key, {"alternatives": []})
        if weight is not None:
            group.setdefault("weight", weight)
        if of_set is not None:
            together.setdefault(key, {}).setdefault(of_set, []).append(each)
        elif each is not None and each not in group["alternatives"]:
            group["alternatives"].append(each)
    for key, of_group in together.items():
        groups[key]["alternatives"] += [each[0] if len(each) == 1 else {"all": each} for each in of_group.values()]
    return list(groups.values())


def _run_rows(roles: Roles, rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Record]]:
    """Yield result rows: one row with lists if the ids are a list, or one row per id if the ids are keys."""
    ids = next((role for role in ("retrieved_ids", "doc_id") if role in roles.paths), None)
    scores = next((role for role in ("retrieve_scores", "score") if role in roles.paths), None)
    if ids is None or not roles.paths[ids].is_list:
        ids = None
    parts = {ids, scores, "rank", "text"} if ids is not None else set()
    # The values of an object have no order.
    by_key = ids is not None and scores is not None and any(step.kind == "values" for step in roles.paths[ids].steps)
    for place, row in rows:
        cells = roles.cells(row, parts)
        if ids is None:
            yield place, cells
            continue
        ranking = _ranking(roles, row, ids, scores)
        if not by_key:
            yield place, cells | ranking
            continue
        for at, name in enumerate(ranking["retrieved_ids"]):
            own = {role: ranking[key][at] for key, role in ((SCORES, "score"), (TEXTS, "contents")) if key in ranking}
            yield place, {**cells, "doc_id": name, "score": None, **own}


def _ranking(roles: Roles, row: Row, ids: str, scores: str | None) -> Record:
    """Return a row's lists of ids, scores and texts. If the row has ranks but no scores, sort the lists by rank."""
    places = roles.found(ids, row)
    cells = {"retrieved_ids": [value for _, value in places]}
    for role, name in ((scores, SCORES), ("text", TEXTS)):
        if role in roles.paths and (found := roles.found(role, row)):
            cells[name] = beside(places, found, role, row.fault)
    if "rank" in roles.paths and scores is None:
        ranks = beside(places, roles.found("rank", row), "rank", row.fault)
        if wrong := [rank for rank in ranks if finite_number(rank) is None]:
            row.fault(f"expected numbers as ranks, found {display(wrong[0])}")
        else:
            order = sorted(range(len(ranks)), key=ranks.__getitem__)
            cells = {name: [cell[at] for at in order] for name, cell in cells.items()}
    return cells


def plain_rows(
    title: str,
    names: Iterable[str],
    columns: Declared,
    located: Callable[[Faults], Iterable[tuple[str, Record]]],
    *,
    is_truth: bool,
    needed: bool = True,
) -> list[tuple[str, Record]]:
    """Return plain rows with their locations, or raise `DataError` with every error in the paths."""
    faults = Faults()
    roles = Roles(names, columns, TRUTH if is_truth else RUN, needed=needed)
    rows = roles.each(title, located(faults), faults)
    plain = list((_truth_rows if is_truth else _run_rows)(roles, rows))
    faults.stop()
    return plain
