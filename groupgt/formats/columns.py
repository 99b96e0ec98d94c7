"""Parses columns declared by users (`ROLE=COLUMN` or `ROLE=COLUMN[;]`), and lists of ids written as text."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, pairwise
from shlex import quote
from typing import Any, NamedTuple

from groupgt.errors import Faults, display
from groupgt.model.validity import are_texts
from groupgt.model.values import Unsplit

# What separates the ids in a text.
SEPARATORS = ",;|"
_SIGNS = re.compile(r'[.\[\]{}^|@?"]')
_SPLIT = re.compile(rf"(.+)\[([{SEPARATORS}])\]", re.DOTALL)


class Column(NamedTuple):
    """A column, and the separator that splits its cells (empty if cells are not split)."""

    name: str
    separator: str = ""

    def parts(self, cell: Any) -> Any:
        """Split a text cell into parts and strip blanks. Any other cell stays unchanged."""
        if not (self.separator and isinstance(cell, str)):
            return cell
        return [part for each in cell.split(self.separator) if (part := each.strip())]


def column_of(text: str) -> Column:
    """Parse a declaration, assuming that no column is literally named like `expected[;]`."""
    split = _SPLIT.fullmatch(text)
    return Column(text) if split is None else Column(split[1], split[2])


def declaring(kind: str, **columns: str) -> str:
    """Return how to declare columns of a kind of file, by role, in the shell, in experiments and in Python."""
    python = f", {kind}_columns= in Python" if kind in ("truth", "run") else ""
    shell = " ".join(f"--columns {quote(f'{role}={text}')}" for role, text in columns.items())
    return f"{shell} (columns: in experiments{python})"


def is_path(text: str) -> bool:
    """Return whether a declared column that does not exist is a path. `name[;]` is a column to split, not a path."""
    return bool(_SIGNS.search(re.sub(rf"\[[{SEPARATORS}]\]$", "", text)))


def columns_in(names: Collection[str], declared: Mapping[str, str]) -> dict[str, Column]:
    """Return the declared columns that a file has, by role. A column's literal name takes precedence over a split."""
    columns = {role: Column(text) if text in names else column_of(text) for role, text in declared.items()}
    return {role: column for role, column in columns.items() if column.name in names}


class Lists:
    """Reads lists of ids that may be written as text. `unsplit` records each single id that may be several ids."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.unsplit: Unsplit = {}

    def column(self, cells: Sequence[Any], column: Column, role: str, place: Callable[[int], str]) -> list[Any]:
        """Return the lists in the cells of a column."""
        if str not in set(map(type, cells)) and not column.separator:
            return list(cells)
        return [self.read(cell, column, role, place(row)) for row, cell in enumerate(cells)]

    def read(self, cell: Any, column: Column, role: str, where: str) -> Any:
        """Parse text as a declared, JSON or Python list, or as a single id. Other cells stay unchanged."""
        mark = column.separator
        if mark and isinstance(cell, list) and any(isinstance(each, str) and mark in each for each in cell):
            way = declaring("run" if role == "retrieved_ids" else "truth", **{role: f"{column.name}[][{mark}]"})
            what = f"expected text to split at {mark!r}, found {display(cell)}"
            self.faults.add(where, f"{what}; to split each text in the list, use {way}")
        if not isinstance(cell, str):
            return cell
        if column.separator:
            return column.parts(cell)
        ids = listed_in(cell, where, self.faults)
        if ids == [cell.strip()] and set(SEPARATORS) & set(cell):
            self.unsplit.setdefault(ids[0], (where, f"{role}={column.name}"))
        return ids

    @staticmethod
    def first_text(groups: Sequence[Any]) -> str:
        """Return the first string if most strings in these cells look like text, not ids. Otherwise, return `""`."""
        cells = chain.from_iterable(cell if isinstance(cell, list) else [cell] for cell in groups[:20])
        strings = [cell for cell in cells if isinstance(cell, str)]
        # Blanks behind separators are those of a list.
        joined = [re.sub(rf"([{SEPARATORS}]) +", r"\1", cell) for cell in strings]
        return strings[0] if strings and are_texts(joined) else ""


def listed_in(cell: Any, where: str, faults: Faults) -> Any:
    """Parse a list in JSON or Python. Text without brackets is one id, and anything else is an error."""
    text = cell.strip() if isinstance(cell, str) else ""
    if not text or text[0] not in "[({":
        return [text] if text else None
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        tokens = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline)]
        if any(one == other == tokenize.STRING for one, other in pairwise(tokens)):
            what = f"found a list without commas, as numpy prints it: {display(text)}"
            faults.add(where, f"{what}; save lists as JSON, or the table as JSON Lines or parquet")
            return None
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, tokenize.TokenError, MemoryError, RecursionError):
        what = f'expected a list such as [["a", "b"], ["c"]], found {display(text)}'
        faults.add(where, f"{what}; save lists as JSON, or the table as JSON Lines or parquet")
        return None
