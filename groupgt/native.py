"""The compiled module `groupgt._native`, for loops over all results; None if it was not built.

`GROUPGT_NATIVE=0` in the environment disables it. Its functions take and return arrays of int64 as bytes:

`index(qids, rows, seed)` reads the groups of each query (lists of lists of ids, or `{id: grade}`) into an index that
results are compared with. It returns all ids (the keys, identified by their positions), the number of groups of each
query, the number of ids of each group (1 for dicts), the grades as float64 (None for lists), the first position of each
key in its query, and the index. It returns None if a query id is repeated, or if a query id, a group, an id or a grade
is not plain: a list or tuple, a str without control characters that does not begin with a blank, a finite number.

`plain(rankings, ends)` returns whether the id of every query is plain, or for `ends` whether no ranking begins or ends
with a result that is a mapping; False means unsure.

`probe(rankings, scores, qids, index, by_id, distinct)` compares rankings held in memory with the index of the same
queries. A ranking is a list or tuple of ids or of (id, score), or `{id: score}`; `scores`, `{qid: list}`, order lists.
Equal scores are ordered by descending id, or keep their order. It returns the number of results of each query
(`NO_RANKING` if there is none, `NOT_PLAIN` if it must be read in Python, also for one with a repeat if results must be
`distinct`), and rows of five: query, key, rank, and the first and last rank with the same score; by query and rank.

`scan(data, index, mode, by_id, base, hits)` compares the lines of a TREC run, which begin at the offset `base` of their
file, with the index. It returns two tables with rows of five, and the offset of the first line that is not certainly a
result (−1 if there is none). Mode `WHOLE`, for contiguous lines of each query: hits as in `probe`, and for each block
the query (−1: no ground truth), the number of lines, the offset and size of the query id, and 0. Mode `FIRST`, for
scattered lines: hits as query, key, offset, the bits of the score, and a position in the index; and for each query its
number, its lines, and three 0, or −1, 0, the offset and size of its id, and 0 if it has no ground truth. Mode `SECOND`,
given those hits of all parts of a file: for each in their order its position among them, the number of lines before it,
the numbers of lines with a higher and with an equal score, and 0; lines that count for several hits of a query are
counted at the first.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).with_name("_native.c")
WHOLE, FIRST, SECOND = range(3)
NO_RANKING, NOT_PLAIN = -1, -2
# Hashes differ from process to process.
SEED = int.from_bytes(os.urandom(8), "little")


def digest() -> str:
    """The digest of the source: a module that was built from another source is not used."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def _load() -> ModuleType | None:
    if os.environ.get("GROUPGT_NATIVE") == "0":
        return None
    try:
        module = import_module("groupgt._native")
        return module if module.source == digest() else None
    except (ImportError, OSError):
        return None


built = _load()


def has_plain_keys(rankings: object) -> bool:
    """Whether rankings are certainly a dict by query ids; False means unsure."""
    return built is not None and bool(built.plain(rankings, False))


def has_plain_ends(rankings: object) -> bool:
    """Whether rankings are certainly a dict, and none begins or ends with a mapping; False means unsure."""
    return built is not None and bool(built.plain(rankings, True))


def index_of(qids: list[str], keys: list[str], starts: Sequence[int]) -> bytes | None:
    """The index of keys (query q begins at `starts[q]`); None without the module, or if a key is not plain."""
    if built is None:
        return None
    index = built.index(qids, [[keys[low:high]] if low < high else [] for low, high in pairwise(starts)], SEED)
    return None if index is None else index[-1]
