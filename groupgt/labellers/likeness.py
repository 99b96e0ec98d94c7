"""Normalizes the texts of results and alternatives, and measures their similarity with one of three methods."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import contains
from types import MappingProxyType
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults, display, refuse
from groupgt.labellers.base import Cached, Labeller, query_of, spread, starts_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats, Ints
from groupgt.model.values import TEXT, kind_of

# Tolerance of thresholds: this much is subtracted before scores are compared with them.
SLACK = 1e-9
# Number of pairs that are compared at a time.
BLOCK = 500_000
# Scripts without blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, Tai Le, Tai Tham, Balinese, Javanese,
# kana, and Han with its extensions. Combining characters that follow stay with their character.
ALONE = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf\u0f40-\u0f6c"
ALONE += "\u1000-\u102a\u1780-\u17b3\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf"
ALONE += "\u1950-\u1974\u1980-\u19ab\u1a20-\u1a54\u1b05-\u1b33\ua984-\ua9b2"
ALONE += "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u0f90-\u0fbc\u102b-\u103e"
MARKS += "\u1a55-\u1a7f\u1b34-\u1b44\ua980-\ua983\ua9b3-\ua9c0"
MARKS += "\u17b4-\u17d3\u3099\u309a\ufe00-\ufe0f"
# A character that is a separate word.
LONE = re.compile(f"[{ALONE}][{MARKS}]*")
REFERENCE = "set `reference` to its corpus, or write {text: …}"


@dataclass(frozen=True)
class Normalization:
    """Text normalization with NFKC and case folding. Punctuation becomes blanks, and white space is collapsed.

    In scripts without spaces between words, each character is a word, so line breaks do not change a sentence.
    """

    case_sensitive: bool = False
    punctuation: bool = False

    def __call__(self, text: str) -> str:
        """Return the normalized text, with words separated by single blanks."""
        plain = unicodedata.normalize("NFKC", text)
        if not self.case_sensitive:
            plain = unicodedata.normalize("NFKC", plain.casefold())
        plain = plain.translate(BECOMES[self.punctuation])
        if not plain.isascii():
            plain = LONE.sub(r" \g<0> ", plain)
        return " ".join(plain.split())

    def __str__(self) -> str:
        case = "case kept" if self.case_sensitive else "case folded"
        punctuation = "punctuation kept" if self.punctuation else "punctuation dropped"
        return f"NFKC, {case}, {punctuation}, white space collapsed, scripts without blanks split into characters"


def _becomes(punctuation: str, code: int) -> str | int:
    """Replace punctuation with `punctuation` and white space with a blank, and remove invisible characters."""
    category = unicodedata.category(chr(code))
    if category == "Cf":
        return ""
    if category in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    return punctuation.format(chr(code)) if category.startswith("P") else code


# What each character becomes, without punctuation and with each mark as a word.
BECOMES = {keep: Cached(partial(_becomes, " {} " if keep else " ")) for keep in (False, True)}


@dataclass(frozen=True, eq=False)
class TextPairs:
    """Distinct pairs of texts. Pair i has `result[i]` and `alternative[i]`, and input pair p is pair `pair_of[p]`."""

    results: list[str]
    alternatives: list[str]
    result: Ints
    alternative: Ints
    pair_of: Ints


def text_pairs(results: Sequence[str], alternatives: Sequence[str], result: Ints, alternative: Ints) -> TextPairs:
    """Pair `results[result[p]]` with `alternatives[alternative[p]]` for each p."""
    distinct_results, text_of_result = distinct(results)
    distinct_alternatives, text_of_alternative = distinct(alternatives)
    size = max(len(distinct_alternatives), 1)
    codes, pair_of = np.unique(text_of_result[result] * size + text_of_alternative[alternative], return_inverse=True)
    return TextPairs(distinct_results, distinct_alternatives, codes // size, codes % size, pair_of)


def distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the distinct texts, and the index of each input text among them."""
    first = list(dict.fromkeys(texts))
    codes = dict(zip(first, range(len(first))))
    return first, np.fromiter(map(codes.__getitem__, texts), np.int64, len(texts))


def contained(pairs: TextPairs, least: float = 0.0) -> Floats:
    """Return 1 if the words of the alternative occur consecutively in the result, otherwise 0."""
    # Add blanks at both ends, so that only whole words match.
    padded, parts = [f" {text} " for text in pairs.results], [f" {text} " for text in pairs.alternatives]
    results = map(padded.__getitem__, pairs.result.tolist())
    alternatives = map(parts.__getitem__, pairs.alternative.tolist())
    return np.fromiter(map(contains, results, alternatives), np.float64, len(pairs.result))


def partial_ratio(pairs: TextPairs, least: float = 0.0) -> Floats:
    """Return RapidFuzz's partial ratio (0 to 1), or its ratio if the result is shorter. Below `least`, return 0."""
    from rapidfuzz import fuzz, process

    lengths = np.fromiter(map(len, pairs.results), np.int64, len(pairs.results))
    sizes = np.fromiter(map(len, pairs.alternatives), np.int64, len(pairs.alternatives))
    is_shorter = lengths[pairs.result] < sizes[pairs.alternative]
    score = np.zeros(len(pairs.result))
    for mask, scorer in ((~is_shorter, fuzz.partial_ratio), (is_shorter, fuzz.ratio)):
        chosen = np.flatnonzero(mask)
        for start in range(0, len(chosen), BLOCK):
            rows = chosen[start : start + BLOCK]
            results = list(map(pairs.results.__getitem__, pairs.result[rows].tolist()))
            alternatives = list(map(pairs.alternatives.__getitem__, pairs.alternative[rows].tolist()))
            percent = process.cpdist(
                alternatives, results, scorer=scorer, score_cutoff=100 * least, dtype=np.float64, workers=-1
            )
            score[rows] = percent / 100
    return score


def token_recall(pairs: TextPairs, least: float = 0.0) -> Floats:
    """Return Σ_words min(count in the result, count in the alternative) ÷ number of words in the alternative."""
    common, _, sizes = common_words(pairs, str.split)
    return common / np.maximum(sizes[pairs.alternative], 1)


# Functions that score the similarity of texts, from 0 to 1; scores below the requested minimum may be 0.
METHODS: dict[str, Callable[[TextPairs, float], Floats]] = {
    "contained": contained,
    "partial_ratio": partial_ratio,
    "token_recall": token_recall,
}


def common_words(pairs: TextPairs, split: Callable[[str], list[str]]) -> tuple[Ints, Ints, Ints]:
    """Count the words that each pair of texts shares, including repeats, and the words in each distinct text."""
    codes: dict[str, int] = {}
    result, result_word, result_sizes = _coded(pairs.results, codes, split)
    alternative, alternative_word, alternative_sizes = _coded(pairs.alternatives, codes, split)
    size = max(len(codes), 1)
    # The distinct words of each text, and how often they occur in it.
    table, result_counts = np.unique(result * size + result_word, return_counts=True)
    words, alternative_counts = np.unique(alternative * size + alternative_word, return_counts=True)
    # Add a last row that matches no word, so that every search ends within the table.
    table, result_counts = np.append(table, np.iinfo(np.int64).max), np.append(result_counts, 0)
    starts, rows_of_words = starts_of(words // size, len(pairs.alternatives)), np.arange(len(words))
    common = np.zeros(len(pairs.result), dtype=np.int64)
    for begin in range(0, len(common), BLOCK // 10):
        rows = slice(begin, begin + BLOCK // 10)
        pair, word = spread(pairs.alternative[rows], starts, rows_of_words)
        code = pairs.result[rows][pair] * size + words[word] % size
        place = np.searchsorted(table, code)
        both = np.where(table[place] == code, np.minimum(result_counts[place], alternative_counts[word]), 0)
        common[rows] = np.bincount(pair, both, minlength=len(common[rows])).astype(np.int64)
    return common, result_sizes, alternative_sizes


def _coded(texts: list[str], codes: dict[str, int], split: Callable[[str], list[str]]) -> tuple[Ints, Ints, Ints]:
    """Return the text and code of each word, and the number of words in each text."""
    sizes = np.zeros(len(texts), dtype=np.int64)
    words: list[int] = []
    for position, text in enumerate(texts):
        before = len(words)
        words += [codes.setdefault(word, len(codes)) for word in split(text)]
        sizes[position] = len(words) - before
    return np.repeat(np.arange(len(texts)), sizes), np.array(words, dtype=np.int64), sizes


class Reader(Labeller):
    """Base class of labellers that compare result texts from a `corpus` with alternative texts from a `reference`."""

    compares_texts = True
    corpus: Mapping[str, str] = MappingProxyType({})
    reference: Mapping[str, str] = MappingProxyType({})

    def __init__(self, options: Any, inputs: Any) -> None:
        self.options = options
        self.corpus = inputs.texts(options.corpus, "corpus")
        self.reference = inputs.texts(options.reference, "reference")

    def texts(self) -> Mapping[str, str]:
        """Return the texts of the reference and the corpus."""
        return {**self.reference, **self.corpus}


def alternative_texts(
    truth: GroundTruth, reference: Mapping[str, str], way: str = REFERENCE, *, blank: bool = False
) -> list[str]:
    """Return each alternative's own text, or text looked up by id. Suggest `way` if texts are missing."""
    faults = Faults()
    texts: list[str] = []
    unknown: list[int] = []
    for alternative, name in enumerate(truth.ids):
        form = truth.forms[alternative] if truth.forms else None
        text = name if form == TEXT else reference.get(name) if form is None else None
        where = query_of(truth, alternative)
        if kind_of(form) == "span":
            what = "expected passage text or the id of a passage, found the span"
            faults.add(where, f"{what} {display(name)}; use the spans labeller for spans")
        elif text is None:
            unknown.append(alternative)
        elif not blank and not text.strip():
            faults.add(where, f"the text of the alternative {display(name)} is blank")
        texts.append(text or "")
    # Without a reference, report only one: no text can be looked up.
    more = f", nor for {len(unknown) - 1:,} more" if len(unknown) > 1 and not reference else ""
    for alternative in unknown if reference else unknown[:1]:
        what = f"no text for the alternative {display(truth.ids[alternative])}{more}; {way}"
        faults.add(query_of(truth, alternative), what)
    faults.stop(DataError)
    return texts


def result_texts(
    truth: GroundTruth, query: Ints, keys: list[str], carried: Sequence[str | None], corpus: Mapping[str, str], who: str
) -> list[str]:
    """Return result texts from the results or the corpus, or raise a `DataError` that says `who` needs them."""
    texts = [corpus.get(key) if text is None else text for key, text in zip(keys, carried)]
    unknown = [place for place, text in enumerate(texts) if text is None]
    lacks = "the corpus has no text for" if corpus else f"{who} needs the text of"
    way = "" if corpus else "; specify a corpus, or use results with text"
    refuse(
        (f"results of query {truth.qids[int(query[place])]!r}", f"{lacks} the result {display(keys[place])}{way}")
        for place in (unknown if corpus else unknown[:1])
    )
    return [text for text in texts if text is not None]
