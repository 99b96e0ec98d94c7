"""The compiled module `groupgt._native`, for whoever has a loop over all results; None where it was not built.

`GROUPGT_NATIVE=0` in the environment turns it off. Its functions take and return arrays of int64 as bytes:

`index(qids, rows, seed)` reads the groups of each query, lists of lists of ids, as an index that results are compared
with; or of each query `{id: grade}`. It returns all ids (the keys; a key is known by its place), how many groups each
query has, how many ids each group (one, of dicts), the grades as float64 (None of lists), where each key stands first
in its query, and the index. None where a query id is repeated, or where a query id, a group, an id or a grade is not
plain: a list or tuple, a str without control characters that does not begin with a blank, a finite number.

`plain(rankings, ends)` says whether the id of every query is plain, or for `ends` whether no ranking begins or ends
with a result that is a mapping; False is a doubt.

`probe(rankings, scores, qids, index, by_id, distinct)` compares rankings held in memory with the index of the same
queries. A ranking is a list or tuple of ids or of (id, score), or `{id: score}`; `scores`, `{qid: list}`, put lists in
order. Equal scores go by descending id, or as given. It returns the number of results of each query, `NO_RANKING` where
there is none and `NOT_PLAIN` where it must be read in Python (also one with a repeat, where they must be `distinct`),
and rows of five: query, key, rank, and the first and last rank among results of an equal score; by query and rank.

`scan(data, index, mode, by_id, base, hits)` compares the lines of a TREC run, which begin at the offset `base` of their
file, with the index. It returns two tables with rows of five, and where the first line begins that is not surely a
result, −1 where there is none such. Mode `WHOLE`, for lines that stand together by query: hits as of `probe`, and for
each such block the query (−1: no ground truth), the number of lines, offset and size of the query id, 0. Mode `FIRST`,
for scattered lines: hits as query, key, offset, the bits of the score, and a place in the index; and for each query its
number, its lines, and three 0, or −1, 0, offset and size of its id, 0, where it has no ground truth. Mode `SECOND`,
given those hits of all parts of a file: for each in their order its place among those given, how many lines stand ahead
of it, how many have a higher and how many an equal score, and 0; what is ahead of several hits of a query is counted at
the first of them, likewise what is higher, and what equals several.
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
# The hashes of one process say nothing about those of the next.
SEED = int.from_bytes(os.urandom(8), "little")


def digest() -> str:
    """What the source is known by: a module that was built of another one is not used."""
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
    """Whether rankings are surely a dict by query ids; False is a doubt."""
    return built is not None and bool(built.plain(rankings, False))


def has_plain_ends(rankings: object) -> bool:
    """Whether rankings are surely a dict of which none begins or ends with a mapping; False is a doubt."""
    return built is not None and bool(built.plain(rankings, True))


def index_of(qids: list[str], keys: list[str], starts: Sequence[int]) -> bytes | None:
    """The index of keys, those of query q from `starts[q]` on; None without the module, or where one is not plain."""
    if built is None:
        return None
    found = built.index(qids, [[keys[low:high]] if low < high else [] for low, high in pairwise(starts)], SEED)
    return None if found is None else found[-1]
