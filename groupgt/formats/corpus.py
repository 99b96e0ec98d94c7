"""Corpora: the texts that document ids stand for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from groupgt.errors import DataError, Faults
from groupgt.formats import csv, frames
from groupgt.formats.jsonl import objects
from groupgt.formats.rows import length_of
from groupgt.formats.source import Source, bad_id
from groupgt.model.ids import id_text
from groupgt.model.lengths import UNITS, Lengths

__all__ = ["read_corpus", "read_lengths"]

IDS = ("doc_id", "_id", "id")
TEXTS = ("contents", "text")


def read_corpus(path: str | os.PathLike[str]) -> dict[str, str]:
    """`{doc_id: text}` of a JSONL, parquet or CSV file with `doc_id` (or `_id`) and `contents` (or `text`).

    A `title` stands before the text, on a line of its own, unless the text begins with it already. A BEIR folder gives
    its `corpus.jsonl`.
    """
    return _read(path, {})


def read_lengths(
    path: str | os.PathLike[str], count: Callable[[Sequence[str]], Sequence[int]] | None = None
) -> Lengths:
    """How long the documents of a corpus are: by its columns `tokens` and `chars`, else by its texts.

    `count` makes token counts of texts, and goes before a column of tokens.
    """
    known: dict[str, dict[str, int]] = {}
    texts = _read(path, known)
    if count is not None:
        known.pop("tokens", None)
    return Lengths(known, texts, count, str(path))


def _read(path: str | os.PathLike[str], lengths: dict[str, dict[str, int]]) -> dict[str, str]:
    """The texts; what columns say of lengths goes into `lengths`."""
    source = Source.at(path)
    if source.is_folder:
        source = Source.at(source.path / "corpus.jsonl")
    faults = Faults()
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    for where, row in _rows(source, faults):
        key = next((name for name in IDS if row.get(name) is not None), None)
        name = id_text(row[key]) if key else None
        text = next((row[column] for column in TEXTS if isinstance(row.get(column), str)), None)
        if name is None:
            faults.add(
                where, f"expected a doc_id (text or an integer), found {row.get(key) if key else ', '.join(row)!r}"
            )
        elif fault := bad_id(name):
            faults.add(where, f"the doc_id {fault}")
        elif text is None:
            faults.add(where, f"document {name!r}: expected text in the column contents, found {', '.join(row)}")
        elif name in texts:
            faults.add(where, f"document {name!r} stands twice (first at {places[name]}); remove one")
        else:
            title = row.get("title")
            texts[name] = (
                f"{title}\n{text}" if isinstance(title, str) and title and not text.startswith(title) else text
            )
            places[name] = where
            for unit in UNITS:
                if (length := length_of(row.get(unit))) is not None:
                    lengths.setdefault(unit, {})[name] = length
    faults.stop()
    if not texts:
        raise DataError(f"{source.path}: the corpus holds no documents")
    return texts


def _rows(source: Source, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    if source.is_parquet:
        for number, row in enumerate(frames.rows_of(source), 1):
            yield f"{source.path}: row {number}", row
    elif source.head().lstrip()[:1] == b"{":
        for number, row in objects(source, faults):
            yield f"{source.path}:{number}", row
    else:
        yield from csv.table(source, (), faults)
