"""How alike texts are: whether one holds the other, how near it comes, and how many words they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import contains

import numpy as np

from groupgt.labellers.base import listed_by, spread
from groupgt.model.hits import Floats, Ints

__all__ = ["METHODS", "SLACK", "Meeting", "common_words", "distinct", "meeting", "partial_ratio", "token_recall"]

BLOCK = 500_000
# A likeness is compared with a threshold as if it had this much more.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Meeting:
    """Texts of results (`left`) and of alternatives (`right`) that meet: each two are compared once.

    They are `left[first[i]]` and `right[second[i]]`; the pair p that was asked about is the one at `each[p]`.
    """

    left: list[str]
    right: list[str]
    first: Ints
    second: Ints
    each: Ints


def meeting(left: Sequence[str], right: Sequence[str], result: Ints, alternative: Ints) -> Meeting:
    """The texts of these pairs, each two once, however often they meet."""
    said, said_by = distinct(left)
    wanted, wanted_by = distinct(right)
    size = max(len(wanted), 1)
    codes, each = np.unique(said_by[result] * size + wanted_by[alternative], return_inverse=True)
    return Meeting(said, wanted, codes // size, codes % size, each)


def distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """The distinct texts, and which of them each is."""
    first = list(dict.fromkeys(texts))
    codes = dict(zip(first, range(len(first))))
    return first, np.fromiter(map(codes.__getitem__, texts), np.int64, len(texts))


def contained(met: Meeting, least: float = 0.0) -> Floats:
    """1 where the words of the alternative stand in the result, one after the other, else 0."""
    # Blanks at both ends: words are compared whole.
    whole, part = [f" {text} " for text in met.left], [f" {text} " for text in met.right]
    results, alternatives = map(whole.__getitem__, met.first.tolist()), map(part.__getitem__, met.second.tolist())
    return np.fromiter(map(contains, results, alternatives), np.float64, len(met.first))


def partial_ratio(met: Meeting, least: float = 0.0) -> Floats:
    """RapidFuzz' partial ratio of the alternatives in the results, from 0 to 1; the plain ratio in shorter results.

    What is below `least` is 0.
    """
    from rapidfuzz import fuzz, process

    sizes = [np.fromiter(map(len, texts), np.int64, len(texts)) for texts in (met.left, met.right)]
    shorter = sizes[0][met.first] < sizes[1][met.second]
    score = np.zeros(len(met.first))
    for mask, scorer in ((~shorter, fuzz.partial_ratio), (shorter, fuzz.ratio)):
        chosen = np.flatnonzero(mask)
        for start in range(0, len(chosen), BLOCK):
            rows = chosen[start : start + BLOCK]
            results = list(map(met.left.__getitem__, met.first[rows].tolist()))
            alternatives = list(map(met.right.__getitem__, met.second[rows].tolist()))
            found = process.cpdist(
                alternatives, results, scorer=scorer, score_cutoff=100 * least, dtype=np.float64, workers=-1
            )
            score[rows] = found / 100
    return score


def token_recall(met: Meeting, least: float = 0.0) -> Floats:
    """Σ_words min(times in the result, times in the alternative) ÷ the alternative's number of words."""
    common, _, sizes = common_words(met, str.split)
    return common / np.maximum(sizes[met.second], 1)


def common_words(met: Meeting, split: Callable[[str], list[str]]) -> tuple[Ints, Ints, Ints]:
    """How many words two texts have in common, as often as both have them; and the number of words of each text."""
    codes: dict[str, int] = {}
    of_left, word, times, left_size = _counted(met.left, codes, split)
    of_right, other, often, right_size = _counted(met.right, codes, split)
    size = max(len(codes), 1)
    # A last row that no word has, so that every search ends within the table.
    table = np.append(of_left * size + word, np.iinfo(np.int64).max)
    order = np.argsort(table)
    table, times = table[order], np.append(times, 0)[order]
    starts, own = listed_by(of_right, len(met.right)), np.arange(len(of_right))
    common = np.zeros(len(met.first), dtype=np.int64)
    for begin in range(0, len(common), BLOCK // 10):
        rows = slice(begin, begin + BLOCK // 10)
        row, token = spread(met.second[rows], starts, own)
        wanted = met.first[rows][row] * size + other[token]
        at = np.searchsorted(table, wanted)
        both = np.where(table[at] == wanted, np.minimum(times[at], often[token]), 0)
        common[rows] = np.bincount(row, both, minlength=len(common[rows])).astype(np.int64)
    return common, left_size, right_size


def _counted(
    texts: list[str], codes: dict[str, int], split: Callable[[str], list[str]]
) -> tuple[Ints, Ints, Ints, Ints]:
    """(text, word, how often) for the distinct words of each text, and the number of words of each."""
    owners: list[int] = []
    words: list[int] = []
    times: list[int] = []
    sizes: list[int] = []
    for text in texts:
        counts = Counter(split(text))
        owners.append(len(counts))
        words += [codes.setdefault(word, len(codes)) for word in counts]
        times += counts.values()
        sizes.append(sum(counts.values()))
    columns = (np.repeat(np.arange(len(texts)), owners), words, times, sizes)
    return tuple(np.asarray(each, dtype=np.int64) for each in columns)  # type: ignore[return-value]  # four of them


# What scores the likeness of texts that meet, from 0 to 1; what is below the least score asked may be 0.
METHODS: dict[str, Callable[[Meeting, float], Floats]] = {
    "contained": contained,
    "partial_ratio": partial_ratio,
    "token_recall": token_recall,
}
