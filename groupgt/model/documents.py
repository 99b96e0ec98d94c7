"""Reads LangChain, LlamaIndex and Haystack documents as results, without importing these libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupgt.errors import Faults, display
from groupgt.model.validity import finite_number, id_text
from groupgt.model.values import SCORE, TEXT

# Where the metadata of a document without an id may have one.
ID_KEYS = ("doc_id", "chunk_id", "document_id", "id", "_id")
# The usual types of what a ranking begins with.
_PLAIN = (str, int, float, Mapping)


def result_of(value: Any) -> dict[str, Any] | None:
    """Convert a document, alone or paired with its score, to `{"id", "text", "score"}`, or return None."""
    if isinstance(value, _PLAIN) or value is None:
        return None
    if isinstance(value, (tuple, list)):
        found = result_of(value[0]) if len(value) == 2 else None
        return found and found | {"score": value[1]}
    if hasattr(value, "node_id") and hasattr(value, "get_content"):  # LlamaIndex
        name, text, metadata = value.node_id, value.get_content(), value.metadata
    elif hasattr(value, "page_content"):  # LangChain
        name, text, metadata = getattr(value, "id", None), value.page_content, value.metadata
    elif hasattr(value, "content") and hasattr(value, "meta"):  # Haystack
        name, text, metadata = value.id, value.content, value.meta
    else:
        return None
    if name is None:
        name = next((metadata[key] for key in ID_KEYS if metadata.get(key) is not None), None)
    cells = {"id": name, "text": text, "score": getattr(value, "score", None)}
    return {key: cell for key, cell in cells.items() if cell is not None}


def columns_of(rankings: Mapping[Any, Any]) -> dict[str, dict[str, list[Any]]]:
    """Return the `id`, `text` and `score` of documents by query. Omit fields that some documents do not have."""
    faults = Faults()
    columns: dict[str, dict[str, list[Any]]] = {name: {} for name in ("id", TEXT, SCORE)}
    for key, ranking in rankings.items():
        qid = id_text(key) or key
        results = [result_of(cell) for cell in ranking or ()]
        for rank, (cell, result) in enumerate(zip(ranking or (), results), 1):
            score = None if result is None else result.get("score", 0.0)
            if finite_number(score) is None:
                what, found = ("a document", cell) if result is None else ("a finite number as the score", score)
                faults.add(f"results of query {qid!r}", f"expected {what} at rank {rank}, found {display(found)}")
        for name, column in columns.items():
            column[qid] = [result[name] for result in results if result is not None and name in result]
    faults.stop()
    size = sum(len(ranking or ()) for ranking in rankings.values())
    return {name: column for name, column in columns.items() if sum(map(len, column.values())) == size}
