"""Columns as users declare them, `ROLE=COLUMN`: the name of a column, or `COLUMN[;]` to split its texts into lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

# What separates the ids in a text.
SEPARATORS = ",;|"
_SPLIT = re.compile(rf"(.+)\[([{SEPARATORS}])\]", re.DOTALL)


class Column(NamedTuple):
    """A column, and what separates the parts of its texts; empty if they are not split."""

    name: str
    separator: str = ""

    def parts(self, cell: Any) -> Any:
        """Split a text into parts without blanks around them; any other cell stays unchanged.

        >>> Column("expected", ";").parts("a; b;"), Column("expected").parts("a;b")
        (['a', 'b'], 'a;b')
        """
        if not (self.separator and isinstance(cell, str)):
            return cell
        return [part for each in cell.split(self.separator) if (part := each.strip())]


def column_of(text: str) -> Column:
    """Read a declaration as if no column had a name like `expected[;]`.

    >>> column_of("expected[;]"), column_of("expected")
    (Column(name='expected', separator=';'), Column(name='expected', separator=''))
    """
    split = _SPLIT.fullmatch(text)
    return Column(text) if split is None else Column(split[1], split[2])


def columns_in(names: Collection[str], declared: Mapping[str, str]) -> dict[str, Column]:
    """Return the declared columns that a file has, by role; a name that a column literally has wins over a split.

    >>> columns_in(["qid", "ids"], {"retrieval_gt": "ids[,]", "doc_id": "chunk"})
    {'retrieval_gt': Column(name='ids', separator=',')}
    """
    columns = {role: Column(text) if text in names else column_of(text) for role, text in declared.items()}
    return {role: column for role, column in columns.items() if column.name in names}
