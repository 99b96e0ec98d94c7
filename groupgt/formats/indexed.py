"""Turns everything in a frame into columns: a pandas index, and the rows of a Hugging Face data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupgt.errors import DataError, display
from groupgt.formats.roles import Declared, Kind, roles_in, shown_names

# The column of what a series holds.
SERIES: dict[Kind, str] = {"truth": "retrieval_gt", "run": "retrieved_ids", "corpus": "contents"}


def of_data_set(value: Any, title: str) -> Any:
    """Return the rows of a Hugging Face data set as an Arrow table; raise `DataError` for splits and streams."""
    if isinstance(value, Mapping):
        raise DataError(f"{title}: expected one split; pass only {' or '.join(map(repr, value))}")
    if not hasattr(value, "num_rows"):
        raise DataError(f"{title}: expected a data set in memory or on disk; load it without streaming=True")
    return value.with_format("arrow")[:]


def of_pandas(value: Any, title: str, kind: Kind, columns: Declared) -> Any:
    """Return a pandas frame or series with its named index as a column; an unnamed index of texts is an error."""
    key = "doc_id" if kind == "corpus" else "qid"
    if not hasattr(value, "columns"):
        value = value.to_frame() if value.index.nlevels > 1 else value.to_frame(SERIES[kind])
    names = list(map(str, value.columns))
    levels = [name for name in value.index.names if name is not None and str(name) not in names]
    has_key = bool(roles_in(names, kind, columns).keys() & ({key} if kind == "corpus" else {key, "query"}))
    if not (levels or has_key) and len(value) and isinstance(value.index[0], (str, tuple)):
        found = f"an unnamed index, which begins with {display(value.index[0])}"
        axis = key if value.index.nlevels == 1 else ["qid", "doc_id"]
        way = f"if it contains the ids, name it: .rename_axis({axis!r})"
        raise DataError(f"{title}: the {key!r} column is missing: found {shown_names(names)} and {found}; {way}")
    return value.reset_index(level=levels) if levels else value
