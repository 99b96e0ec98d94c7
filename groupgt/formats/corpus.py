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
from groupgt.formats.tokenizers import tokenizer_named
from groupgt.model.ids import id_text, shown
from groupgt.model.lengths import UNITS, Lengths

__all__ = ["IDS", "read_corpus", "read_lengths", "table_rows"]

IDS = ("chunk_id", "doc_id", "_id", "id")
TEXTS = ("contents", "text")


def read_corpus(path: str | os.PathLike[str]) -> dict[str, str]:
    """`{doc_id: text}` of a JSONL, parquet or CSV file with `doc_id` (or `_id`) and `contents` (or `text`).

    A `title` stands before the text, on a line of its own, unless the text begins with it already. A BEIR folder gives
    its `corpus.jsonl`.
    """
    return _read(path)


def read_lengths(
    path: str | os.PathLike[str],
    tokenizer: str | Callable[[Sequence[str]], Sequence[int]] | None = None,
    *,
    allow_code: bool = False,
) -> Lengths:
    """How long the documents of a corpus are: by its columns `tokens` and `chars`, else by its texts.

    `tokenizer` is a name (`whitespace`, `tiktoken:cl100k_base`, `tokenizers:FILE_OR_NAME`; `python:module:function`
    with `allow_code`) or a function from texts to counts, and goes before a column of tokens. Raises `DataError` or
    `ConfigError`.
    """
    count = tokenizer_named(tokenizer, allow_code=allow_code) if isinstance(tokenizer, str) else tokenizer
    known: dict[str, dict[str, Any]] = {}
    texts = _read(path, known)
    if count is not None:
        known.pop("tokens", None)
    faults: dict[str, tuple[str, ...]] = {}
    for unit, cells in known.items():
        wrong = [(name, cell) for name, cell in cells.items() if length_of(cell) is None]
        expected = f"expected a whole number from 0 in the column {unit}"
        faults[unit] = tuple(f"{path}: document {name!r}: {expected}, found {shown(cell)}" for name, cell in wrong)
    whole = {unit: {name: length_of(cell) or 0 for name, cell in cells.items()} for unit, cells in known.items()}
    return Lengths(whole, texts, count, str(path), {unit: own for unit, own in faults.items() if own})


def _read(path: str | os.PathLike[str], lengths: dict[str, dict[str, Any]] | None = None) -> dict[str, str]:
    """The texts; what columns say of lengths goes into `lengths`, and then a document need not have a text."""
    source = Source.at(path)
    if source.is_folder:
        source = Source.at(source.path / "corpus.jsonl")
    faults = Faults()
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    for where, row in table_rows(source, faults):
        key = next((name for name in IDS if row.get(name) is not None), None)
        name = id_text(row[key]) if key else None
        text = next((row[column] for column in TEXTS if isinstance(row.get(column), str)), None)
        told = [] if lengths is None else [unit for unit in UNITS if row.get(unit) not in (None, "")]
        if name is None:
            faults.add(
                where, f"expected a doc_id (text or an integer), found {row.get(key) if key else ', '.join(row)!r}"
            )
        elif fault := bad_id(name):
            faults.add(where, f"the doc_id {fault}")
        elif text is None and not told:
            faults.add(where, f"document {name!r}: expected text in the column contents, found {', '.join(row)}")
        elif name in places:
            faults.add(where, f"document {name!r} stands twice (first at {places[name]}); remove one")
        else:
            places[name] = where
            for unit in told if lengths is not None else ():
                lengths.setdefault(unit, {})[name] = row[unit]  # type: ignore[union-attr]  # told is empty without
            if text is None:
                continue
            title = row.get("title")
            texts[name] = (
                f"{title}\n{text}" if isinstance(title, str) and title and not text.startswith(title) else text
            )
    faults.stop()
    if not places:
        raise DataError(f"{source.path}: the corpus holds no documents")
    return texts


def table_rows(source: Source, faults: Faults) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a JSONL, parquet or CSV file with the place where it stands."""
    if source.is_parquet:
        for number, row in enumerate(frames.rows_of(source), 1):
            yield f"{source.path}: row {number}", row
    elif source.head().lstrip()[:1] == b"{":
        for number, row in objects(source, faults):
            yield f"{source.path}:{number}", row
    else:
        yield from csv.table(source, (), faults)
