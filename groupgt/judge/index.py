"""A BM25 index of a corpus. The index needs little memory, and is built once, in a thread if possible."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from groupgt.errors import DataError
from groupgt.model.hits import Bools, Floats, Ints

# Source: Robertson & Zaragoza 2009, with the idf of Lucene.
K1, B = 1.2, 0.75
# Letters of a piece of a word, and the bits of its number: pieces beyond 4 million share numbers.
PIECE, BITS = 4, 22
# How many passages' similarities are kept: enough for the groups of one query.
LIKENESSES = 100
# The most letters and passages of one part, whose passages are numbered in 16 bits.
LETTERS, PASSAGES = 1 << 21, 1 << 16
Numbers = npt.NDArray[np.integer[Any]]
# An odd number that spreads codes over all bits: 2⁶⁴ ÷ the golden ratio.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class _Part:
    """Postings of consecutive passages: the passages that contain each piece, and how often (at most 255).

    The postings of `pieces[i]` are at `begins[i]` to `begins[i + 1]`.
    """

    first: int
    pieces: Numbers
    begins: Ints
    passages: Numbers
    counts: Numbers

    def found(self, pieces: Ints) -> tuple[Ints, Ints]:
        """Return each piece's first posting and number of postings."""
        at = np.searchsorted(self.pieces, pieces)
        after = np.searchsorted(self.pieces, pieces, side="right")
        return self.begins[at], self.begins[after] - self.begins[at]


class Index:
    """A BM25 index of corpus texts, which are split into four-letter pieces of words.

    Pieces match inflected words and parts of compounds, and need no spaces between words. The index is built when it is
    first needed, or earlier with `build`, in any thread.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.ids = list(texts)
        self.number = {name: number for number, name in enumerate(self.ids)}
        self.done = 0.0
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._parts: list[_Part] = []
        self._likeness: dict[str, Floats] = {}

    def build(self) -> None:
        """Build the index, or wait for the thread that builds it. Raise `DataError` if the index is `stopped`."""
        with self._lock:
            if self.done == 1:
                return
            self._parts, lengths = [], []
            for first, texts in _blocks(list(self.texts.values())):
                if self.stopped.is_set():
                    raise DataError("the session has ended")
                part, length = _part(first, texts)
                self._parts.append(part)
                lengths.append(length)
                self.done = first / len(self.ids)
            length = np.concatenate([*lengths, np.zeros(0)])
            mean = float(length.mean()) if length.sum() else 1.0
            self._saturation = K1 * (1 - B + B * length / mean)
            self.done = 1.0

    def scores(self, text: str) -> Floats:
        """Return every passage's score for some text, in the order of `ids`."""
        self.build()
        scores = np.zeros(len(self.ids))
        pieces, times = np.unique(_pieces_of([text])[0], return_counts=True)
        places = [part.found(pieces) for part in self._parts]
        found = np.sum([count for _, count in places], axis=0) if places else np.zeros(len(pieces))
        idf = np.log1p((len(self.ids) - found + 0.5) / (found + 0.5)) * times
        for part, (begin, count) in zip(self._parts, places):
            # The positions of all postings of all pieces, one piece after the other.
            ends = np.cumsum(count)
            rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begin - ends + count, count)
            passages = part.passages[rows].astype(np.int64)
            often = part.counts[rows].astype(np.float64)
            gains = np.repeat(idf, count) * often / (often + self._saturation[part.first + passages])
            size = int(min(PASSAGES, len(self.ids) - part.first))
            scores[part.first : part.first + size] += np.bincount(passages, gains, minlength=size)
        return scores

    def search(self, text: str, k: int) -> list[str]:
        """Return the k best passages for some text, among the passages that share a piece with the text."""
        scores = self.scores(text)
        return [self.ids[row] for row in np.argsort(-scores, kind="stable")[:k].tolist() if scores[row] > 0]

    def likeness(self, doc: str) -> Floats:
        """Return the similarity of every passage to `doc`: the passage's score for that text ÷ the text's own score."""
        if doc not in self._likeness:
            if len(self._likeness) == LIKENESSES:
                del self._likeness[next(iter(self._likeness))]
            scores = self.scores(self.texts[doc])
            highest = scores[self.number[doc]]
            self._likeness[doc] = np.minimum(scores / highest, 1) if highest > 0 else scores
        return self._likeness[doc]


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield blocks of consecutive texts that fit into one part, each with the number of its first text."""
    first = letters = 0
    for number, text in enumerate(texts):
        if number > first and (letters + len(text) > LETTERS or number - first == PASSAGES):
            yield first, texts[first:number]
            first, letters = number, 0
        letters += len(text)
    if texts:
        yield first, texts[first:]


def _part(first: int, texts: Sequence[str]) -> tuple[_Part, Floats]:
    """Return the postings of texts, and the number of pieces in each text."""
    pieces, passages = _pieces_of(texts)
    keys = pieces << 16 | passages
    keys.sort()
    begins = _starts(keys)
    counts = np.minimum(np.diff(begins, append=len(keys)), 255).astype(np.uint8)
    keys = keys[begins]
    of_piece = (keys >> 16).astype(np.uint32)
    begins = _starts(of_piece)
    part = _Part(first, of_piece[begins], np.append(begins, len(keys)), keys.astype(np.uint16), counts)
    return part, np.bincount(passages, minlength=len(texts)).astype(np.float64)


def _starts(values: Numbers) -> Ints:
    """Return the positions of values that differ from the previous value."""
    return np.flatnonzero(np.diff(values, prepend=values[:1] - 1))


def _pieces_of(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the number of each piece in these texts, and the text that contains the piece.

    A word has a space at both ends, and its pieces are all of its four-letter parts, or the word itself if it has a
    single letter: `Ferry to` has the pieces ` fer`, `ferr`, `erry`, `rry ` and ` to `.
    """
    lowered = [text.lower() for text in texts]
    joined = f" {' '.join(lowered)}  "
    letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    is_letter = _letters(0x80 if joined.isascii() else 0x110000)[letters]
    # Any other character is a space; characters beyond 16 bits share codes with others.
    letters = np.where(is_letter, letters & 0xFFFF, 32)
    pairs = letters[:-1] << 16 | letters[1:]
    fours = pairs[:-2].astype(np.uint64) << 32 | pairs[2:]
    # The two letters within a piece belong to one word; a word of one letter is a piece with its two spaces.
    is_piece = is_letter[1:-2] & is_letter[2:-1]
    alone = np.flatnonzero(is_letter[1:-2] & ~is_letter[:-3] & ~is_letter[2:-1])
    fours[alone] = letters[alone + 1]
    is_piece[alone] = True
    starts = np.flatnonzero(is_piece)
    numbers = (fours[is_piece] * _SPREAD) >> (64 - BITS)
    ends = np.cumsum([len(text) + 1 for text in lowered])
    per_text = np.diff(np.searchsorted(starts, ends), prepend=0)
    return numbers.astype(np.int64), np.repeat(np.arange(len(texts)), per_text)


@cache
def _letters(end: int) -> Bools:
    """Return, for every character code below `end`, whether the character can be part of a word."""
    return np.fromiter((chr(code).isalnum() or code == ord("_") for code in range(end)), dtype=np.bool_)
