"""A lookup table that matches rows by comparing hash codes first, then ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groupgt.labellers.base import Matches
from groupgt.metrics.views import changes
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints
from groupgt.runtime import pl

Codes = NDArray[np.uint64]
# Every code is made with this seed.
SEED = 0
# Slots per key of a query, enough that few lookups are futile; and the maximum bytes of slots.
SLOTS, MOST_BYTES = 32, 1 << 26
HALF = np.uint64(32)
PIECE = 1 << 15


class Keys:
    """A labeller's keys as hash codes. The slots of a query are adjacent, so that they stay in the CPU cache."""

    def __init__(self, truth: GroundTruth, matches: Matches) -> None:
        docs = pl.Series(matches.keys, dtype=pl.String)
        table = pl.DataFrame({"doc": docs, "query": matches.queries, "target": matches.targets})
        # Only the first of repeated keys counts.
        table = table.unique(["query", "doc"], keep="first", maintain_order=True)
        query = table["query"].to_numpy().astype(np.int64)
        hashes = table["doc"].hash(SEED).to_numpy()
        codes = _code(hashes, query)
        order = np.argsort(codes)
        self.codes = codes[order]
        self.target = table["target"].to_numpy().astype(np.int64)[order]
        self.doc = table["doc"][order]
        # Keys with the same code are adjacent and all compared: a query with 300,000 keys has some.
        begins = np.flatnonzero(changes(self.codes))
        self.longest = int(np.diff(begins, append=len(codes)).max(initial=0))
        size = len(truth) + 1
        slots = SLOTS * max(len(codes) // size, 1)
        self.bits = max(min(slots, MOST_BYTES // size), 2).bit_length() - 1
        self.shift = np.uint64(64 - self.bits)
        self.taken = np.zeros(size << self.bits, dtype=np.bool_)
        self.taken[self.slots(query) + (hashes >> self.shift).view(np.int64)] = True

    def code(self, doc: pl.Expr) -> pl.Expr:
        """Return the hash codes for a column of ids."""
        return doc.hash(SEED)

    def slots(self, query: Ints) -> Ints:
        """Return the first slot of each query. The slots of −1 (no ground truth) are empty."""
        return (query + 1) << self.bits

    def likely(self, code: Codes, slots: Ints) -> Ints:
        """Return the rows that may be hits, skipping nearly all other rows."""
        flags = np.empty(len(code), dtype=np.bool_)
        # In pieces whose intermediate results stay in the processor's cache.
        place, mixed = np.empty(PIECE, dtype=np.uint64), np.empty(PIECE, dtype=np.int64)
        for start in range(0, len(code), PIECE):
            part = code[start : start + PIECE]
            size = len(part)
            np.right_shift(part, self.shift, out=place[:size])
            np.add(place[:size].view(np.int64), slots[start : start + size], out=mixed[:size])
            self.taken.take(mixed[:size], out=flags[start : start + size], mode="clip")
        return np.flatnonzero(flags)

    def sure(self, doc: pl.Series, code: Codes, query: Ints) -> tuple[Bools, Ints]:
        """Return which of these rows are hits, and their targets."""
        hits, target = np.zeros(len(query), dtype=np.bool_), np.zeros(len(query), dtype=np.int64)
        codes = _code(code, query)
        rows, place = np.arange(len(query)), np.searchsorted(self.codes, codes)
        for _ in range(self.longest):
            place = np.minimum(place, len(self.codes) - 1)
            is_same_code = self.codes[place] == codes[rows]
            rows, place = rows[is_same_code], place[is_same_code]
            same = (doc[rows] == self.doc[place]).to_numpy()
            hits[rows[same]] = True
            target[rows[same]] = self.target[place[same]]
            # Another key may have the same code.
            rows, place = rows[~same], place[~same] + 1
        return hits, target[hits]


def _code(hashes: Codes, query: Ints) -> Codes:
    return (query.view(np.uint64) << HALF) | (hashes >> HALF)
