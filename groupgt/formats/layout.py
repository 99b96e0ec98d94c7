"""Checks the bytes of a table before polars reads it, to make sure that separators form regular columns.

polars drops carriage returns and surplus cells, and accepts quotes anywhere, so Python reads irregular tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from groupgt.formats.source import BYTE_ORDER_MARK, Source
from groupgt.model.validity import holds_odd_letters

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
# The bytes checked at a time; and the bytes without a line end from which a cell may be too long for an id.
CHUNK, LINE = 1 << 20, 1 << 15
LINE_END, RETURN, BLANK, QUOTE = 10, 13, 32, 34


@dataclass(frozen=True)
class Layout:
    """The byte layout of a table: whether it is `regular` for polars and has `plain_ids`, and its counts."""

    regular: bool = True
    plain_ids: bool = True
    lines: int = 0
    separators: int = 0
    open_line: bool = False

    def then(self, later: Layout) -> Layout:
        """Combine two adjacent layouts."""
        regular, plain_ids = self.regular and later.regular, self.plain_ids and later.plain_ids
        return Layout(regular, plain_ids, self.lines + later.lines, self.separators + later.separators, later.open_line)

    def has_columns(self, count: int) -> bool:
        """Return whether lines average `count` cells; if no line has fewer, every line has exactly `count`."""
        return self.regular and self.separators == (self.lines + self.open_line) * (count - 1)


def layout_of(source: Source, separator: str, *, words: bool = False) -> Layout:
    """Return the layout of a table. In a table of `words`, quotes are ordinary, and no cell is empty."""
    from concurrent.futures import ThreadPoolExecutor

    look = partial(_look_at, separator=ord(separator), words=words)
    content = _mapped(source)
    layout, within = Layout(), [0]
    if content is None:
        for chunk in _streamed(source):
            layout = layout.then(look(chunk, within[-1]))
            within = [0 if words else within[-1] ^ _count_quotes(chunk) & 1]
    else:
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            # Whether a chunk begins within quotes.
            quotes = [0] if words else [0, *workers.map(_count_quotes, _cut(content))]
            within = (np.cumsum(quotes) & 1).tolist()
            layout = reduce(Layout.then, workers.map(look, _cut(content), chain(within, repeat(0))), layout)
    return replace(layout, regular=False) if within[-1] else layout


def _look_at(chunk: Bytes, within: int, *, separator: int, words: bool) -> Layout:
    """Return the layout of a chunk that starts with the previous chunk's last byte. `within` is 1 inside quotes."""
    lines, cells = chunk == LINE_END, chunk == separator
    quotes = chunk[1:] == QUOTE
    borders = lines | cells
    has_no_nul = not (chunk == 0).any()
    if words or not (within or quotes.any()):
        # A carriage return must be followed by a line end.
        regular = has_no_nul and bool(lines[np.flatnonzero(chunk[:-1] == RETURN) + 1].all())
        marks = borders | (chunk == RETURN)
        controls = (chunk < BLANK) & ~marks
        # Cells that are empty or begin with a blank.
        blank = borders[:-1] & (marks[1:] | (chunk[1:] == BLANK))
        blocks = lines[: len(lines) // LINE * LINE].reshape(-1, LINE)
        plain = not controls.any() and not blank.any() and bool(blocks.any(axis=1).all())
        if words:
            regular = regular and plain and (separator == BLANK or not (chunk == BLANK).any())
        return Layout(regular, plain and not holds_odd_letters(chunk), *_counts(lines, cells))
    # Whether quotes are open after each byte, and before it.
    after = np.bitwise_xor.accumulate(np.concatenate(([within], quotes)).astype(np.uint8)).view(np.bool_)
    after, before = after[1:], after[:-1]
    quoted = chunk[:-1] == QUOTE
    # An opening quote starts a cell or is the second of two; a closing quote ends a cell or is the first of two.
    regular = (
        has_no_nul
        and not (quotes & ~before & ~(borders[:-1] | quoted)).any()
        and not (quoted & ~before & ~(borders[1:] | quotes | (chunk[1:] == RETURN))).any()
        and not ((chunk[:-1] == RETURN) & ~lines[1:] & ~before).any()
    )
    outside = np.concatenate(([False], ~before))
    return Layout(regular, False, *_counts(lines & outside, cells & outside))


def _counts(lines: Bools, cells: Bools) -> tuple[int, int, bool]:
    """Count line endings and separators, and return whether the last line has not ended yet."""
    return int(np.count_nonzero(lines[1:])), int(np.count_nonzero(cells[1:])), not lines[-1]


def _count_quotes(chunk: Bytes) -> int:
    return int(np.count_nonzero(chunk[1:] == QUOTE))


def _mapped(source: Source) -> Bytes | None:
    """Return content from memory or a memory map, or None if it must be decompressed in pieces."""
    if isinstance(source.for_polars, bytes):
        return np.frombuffer(source.for_polars, dtype=np.uint8)
    if source.is_compressed:
        return None
    size = source.path.stat().st_size
    content = np.memmap(source.path, dtype=np.uint8, mode="r") if size else np.zeros(0, dtype=np.uint8)
    mark = len(BYTE_ORDER_MARK)
    return content[mark:] if bytes(content[:mark]) == BYTE_ORDER_MARK else content


def _cut(content: Bytes) -> Iterator[Bytes]:
    """Split content into chunks, each preceded by the previous byte. A line ending precedes the first chunk."""
    if len(content):
        yield np.concatenate((np.array([LINE_END], dtype=np.uint8), content[:CHUNK]))
    for start in range(CHUNK, len(content), CHUNK):
        yield content[start - 1 : start + CHUNK]


def _streamed(source: Source) -> Iterator[Bytes]:
    last = b"\n"
    for piece in source.pieces(CHUNK):
        if piece:
            yield np.frombuffer(last + piece, dtype=np.uint8)
            last = piece[-1:]
