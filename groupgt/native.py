"""Loads the compiled module `groupgt._native`, which loops over all results. `built` is None if the module is missing.

`GROUPGT_NATIVE=0` in the environment disables the module. The module's functions take and return int64 arrays as bytes:

`index(qids, rows, seed)` reads the groups of each query (lists of lists of ids, or `{id: grade}`) into an index for
comparison with results. It returns all ids (the keys, identified by position), the number of groups per query, the
number of ids per group (1 for dicts), the grades as float64 (None for lists), the first position of each key in its
query, and the index. It returns None if a query id is repeated, or if any input is not plain: groups must be lists or
tuples, ids must be str without control characters or a leading blank, and grades must be finite numbers.

`plain(rankings, ends)` returns True if all query ids are plain or, with `ends`, if no ranking begins or ends with a
mapping; False means that it cannot tell.

`probe(rankings, scores, qids, index, by_id, distinct)` compares rankings in memory with the index for the same queries.
A ranking is a list or tuple of ids or of (id, score), or `{id: score}`; `scores` (`{qid: list}`) determines the order
of lists. Equal scores are ordered by descending id with `by_id`, and otherwise keep their order. It returns the number
of results per query (`NO_RANKING` if there is none; `NOT_PLAIN` if it must be read in Python, or if it has a repeat but
results must be `distinct`), and rows with five columns: query, key, rank, and the first and last rank with the same
score, sorted by query and rank.

`scan(data, index, mode, by_id, base, hits)` compares the lines of a TREC run, which begin at file offset `base`, with
the index. It returns two tables with five columns, and the offset of the first line that may not be a result (−1 if
there is none). Mode `WHOLE` is for queries with contiguous lines. It returns hits as in `probe`, and for each block the
query (−1 without ground truth), the number of lines, the offset and size of the query id, and 0; in mode `CLOSELY`, the
last column says what was noticed: `REPEATS` if a judged query may have a repeated result, `CONTRADICTED` if a better
rank has a lower score, `UNORDERED` if neither ranks nor scores are in order, so that contradictions are not detected.
Mode `FIRST` is for scattered lines. It returns hits as query, key, offset, score bits and a position in the index, and
for each query its number, its lines and three zeros, or without ground truth −1, 0, the offset and size of its id, and
0. Mode `SECOND` takes these hits from all parts of a file. For each hit, in order, it returns its position among the
hits, the number of lines before it, the numbers of lines with a higher score and with an equal score, and 0. A line
that counts for several hits of a query is counted only for the first hit.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).with_name("_native.c")
WHOLE, FIRST, SECOND, CLOSELY = range(4)
REPEATS, CONTRADICTED, UNORDERED = 1, 2, 4
NO_RANKING, NOT_PLAIN = -1, -2
# Hashes differ from process to process.
SEED = int.from_bytes(os.urandom(8), "little")


def digest() -> str:
    """Return a checksum of the C source. A compiled module with a different checksum is not used."""
    return f"{zlib.crc32(SOURCE.read_bytes()):08x}"


def _load() -> ModuleType | None:
    if os.environ.get("GROUPGT_NATIVE") == "0":
        return None
    try:
        module = import_module("groupgt._native")
        return module if module.source == digest() else None
    except (ImportError, OSError):
        return None


built = _load()


def is_plain(rankings: object, *, ends: bool) -> bool:
    """Return what the function `plain` returns, or False without the compiled module."""
    return built is not None and bool(built.plain(rankings, ends))


def index_of(qids: list[str], keys: list[str], starts: Sequence[int]) -> tuple[bytes, bytes] | None:
    """Return each key's first position in its query (from `starts[q]`) and an index, or None if a key is not plain."""
    if built is None:
        return None
    index = built.index(qids, [[keys[low:high]] if low < high else [] for low, high in pairwise(starts)], SEED)
    return None if index is None else index[-2:]
