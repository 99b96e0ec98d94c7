"""Places in documents: a span as ground truth and results name it, and the table of where chunks lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from groupgt.errors import Faults, display
from groupgt.model.hits import Ints
from groupgt.model.validity import id_fault, id_text, is_integer

FARTHEST = 10**12
TEXT: Literal["text"] = "text"
# How `str` writes a place, for reading many back at once.
SPELLED = r"(?s)^(?<doc>.*)\[(?<start>[0-9]{1,13}):(?<end>[0-9]{1,13})\]$"


class Span(NamedTuple):
    """A place in a document: characters, pages or lines from `start` to `end`.

    >>> str(Span("leave.md", 120, 480))
    'leave.md[120:480]'
    """

    doc: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.doc}[{self.start}:{self.end}]"


# What an alternative is: a place, a text, or (None) an id.
Form = Span | Literal["text"] | None


def kind_of(form: Form) -> str:
    """`id`, `span` or `text`: what an alternative is."""
    return "id" if form is None else "span" if isinstance(form, Span) else "text"


def span_of(cell: Mapping[str, Any]) -> Span | str:
    """The place that `doc` (or `doc_id`), `start` and `end` of a mapping name; what is wrong where they name none.

    >>> span_of({"doc": "a", "start": 3, "end": 9})
    Span(doc='a', start=3, end=9)
    """
    name = id_text(cell.get("doc", cell.get("doc_id")))
    if name is None or id_fault(name):
        return f"expected the id of a document as doc, found {display(cell.get('doc', cell.get('doc_id')))}"
    bounds = []
    for key in ("start", "end"):
        value: Any = cell.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # a column with gaps holds numbers with a point
        if not is_integer(value) or not 0 <= int(value) <= FARTHEST:
            return f"expected a whole number from 0 to {FARTHEST} as {key}, found {display(cell.get(key))}"
        bounds.append(int(value))
    if bounds[1] < bounds[0]:
        return f"expected an end that is not before its start, found {bounds[0]} to {bounds[1]}"
    return Span(name, *bounds)


@dataclass(frozen=True, eq=False)
class Chunks:
    """The places of chunks, as columns: `ids[i]` is `docs[i]` from `start[i]` to `end[i]`."""

    ids: list[str]
    docs: list[str]
    start: Ints
    end: Ints

    @classmethod
    def of(cls, places: Mapping[str, Any]) -> Chunks:
        """Of `{chunk: (doc, start, end)}` or `{chunk: {"doc", "start", "end"}}`; raises `DataError`."""
        faults = Faults()
        spans: dict[str, Span] = {}
        for key, given in places.items():
            name = id_text(key)
            listed = isinstance(given, (list, tuple)) and len(given) == 3
            cell = dict(zip(("doc", "start", "end"), given)) if listed else given
            span = (
                span_of(cell) if isinstance(cell, Mapping) else f"expected doc, start and end, found {display(given)}"
            )
            if name is None or name in spans:
                faults.add(f"chunk {key!r}", "expected an id (text or an integer) that no other chunk has")
            elif isinstance(span, str):
                faults.add(f"chunk {key!r}", span)
            else:
                spans[name] = span
        faults.stop()
        start, end = (np.array([span[at] for span in spans.values()], dtype=np.int64) for at in (1, 2))
        return cls(list(spans), [span.doc for span in spans.values()], start, end)

    def __len__(self) -> int:
        return len(self.ids)

    def spans(self) -> dict[str, Span]:
        """The place of each chunk."""
        return dict(zip(self.ids, map(Span, self.docs, self.start.tolist(), self.end.tolist())))
