"""How alike two texts are: the texts of results and alternatives, normalized, and compared."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import contains
from types import MappingProxyType

import numpy as np

from groupgt.errors import DataError, Faults
from groupgt.labellers.base import Labeller, listed_by, spread
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Floats, Ints
from groupgt.model.spans import TEXT, kind_of
from groupgt.model.validity import shown

# Scripts that put no blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, Tai Le, Tai Tham, Balinese, Javanese,
# kana, and Han with its extensions. What follows a character of these and only changes it stays with it.
ALONE = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf\u0f40-\u0f6c"
ALONE += "\u1000-\u102a\u1780-\u17b3\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf"
ALONE += "\u1950-\u1974\u1980-\u19ab\u1a20-\u1a54\u1b05-\u1b33\ua984-\ua9b2"
ALONE += "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u0f90-\u0fbc\u102b-\u103e"
MARKS += "\u1a55-\u1a7f\u1b34-\u1b44\ua980-\ua983\ua9b3-\ua9c0"
MARKS += "\u17b4-\u17d3\u3099\u309a\ufe00-\ufe0f"
CHARACTER = re.compile(f"[{ALONE}][{MARKS}]*")


class _Signs(dict[int, str | int | None]):
    """What becomes of each character: punctuation turns into a blank (or stands alone), invisible ones go."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self.keep = keep

    def __missing__(self, code: int) -> str | int | None:
        kind = unicodedata.category(chr(code))
        made: str | int | None = code
        if kind == "Cf":
            made = None
        elif kind in ("Cc", "Zs", "Zl", "Zp"):
            made = " "
        elif kind.startswith("P"):
            made = f" {chr(code)} " if self.keep else " "
        self[code] = made
        return made


SIGNS = {keep: _Signs(keep=keep) for keep in (False, True)}


@dataclass(frozen=True)
class Normalization:
    """NFKC, case folded, punctuation to blanks, white space to single blanks, invisible characters removed.

    Each character of a script that puts no blanks between words is a word of its own, so that the same sentence is the
    same wherever its lines break.

    >>> Normalization()("The  ﬁnal\\nResult, (42%)!"), Normalization()("北京\\n是首都。")
    ('the final result 42', '北 京 是 首 都')
    """

    case_sensitive: bool = False
    punctuation: bool = False

    def __call__(self, text: str) -> str:
        """The normalized text: its words with single blanks between them."""
        plain = unicodedata.normalize("NFKC", text)
        if not self.case_sensitive:
            plain = unicodedata.normalize("NFKC", plain.casefold())
        plain = plain.translate(SIGNS[self.punctuation])
        if not plain.isascii():
            plain = CHARACTER.sub(r" \g<0> ", plain)
        return " ".join(plain.split())

    def __str__(self) -> str:
        case = "case kept" if self.case_sensitive else "case folded"
        signs = "punctuation kept" if self.punctuation else "punctuation dropped"
        return f"NFKC, {case}, {signs}, white space collapsed, characters of scripts without blanks are words"


PLACES = "places are what the labeller spans compares"
REFERENCE = "name the corpus it is from as `reference`, or write {text: …}"


def alternative_texts(
    truth: GroundTruth, reference: Mapping[str, str], way: str = REFERENCE, *, blank: bool = False
) -> list[str]:
    """The text of each alternative: itself, or what the reference holds under its id.

    Raises `DataError` that says the way out where there is none.
    """
    faults = Faults()
    found: list[str] = []
    unknown: list[int] = []
    for alternative, name in enumerate(truth.ids):
        form = truth.forms[alternative] if truth.forms else None
        text = name if form == TEXT else reference.get(name) if form is None else None
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        if kind_of(form) == "span":
            faults.add(where, f"expected a text, or an id of one, found the span {shown(name)}; {PLACES}")
        elif text is None:
            unknown.append(alternative)
        elif not blank and not text.strip():
            faults.add(where, f"the text of the alternative {shown(name)} is blank")
        found.append(text or "")
    if unknown and not reference:
        first = truth.ids[unknown[0]]
        more = f", nor of {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        where = f"query {truth.qids[int(truth.query_of[unknown[0]])]!r}"
        faults.add(where, f"the text of the alternative {shown(first)} is not known{more}; {way}")
    for alternative in unknown if reference else ():
        where = f"query {truth.qids[int(truth.query_of[alternative])]!r}"
        faults.add(where, f"the text of the alternative {shown(truth.ids[alternative])} is not known; {way}")
    faults.stop(DataError)
    return found


def result_texts(
    truth: GroundTruth,
    query: Ints,
    keys: list[str],
    carried: Sequence[str | None],
    corpus: Mapping[str, str],
    who: str,
) -> list[str]:
    """The text of each result: what it carries, else what the corpus holds; raises `DataError` where there is none."""
    found = [corpus.get(key) if own is None else own for key, own in zip(keys, carried)]
    if None in found and not corpus:
        first = found.index(None)
        where = f"results of query {truth.qids[int(query[first])]!r}"
        way = "name a corpus, or results that carry their contents"
        raise DataError(f"{where}: {who} needs the text of the result {shown(keys[first])}; {way}")
    faults = Faults()
    for place in [place for place, text in enumerate(found) if text is None]:
        where = f"results of query {truth.qids[int(query[place])]!r}"
        faults.add(where, f"the corpus has no text of the result {shown(keys[place])}")
    faults.stop(DataError)
    return [text for text in found if text is not None]


def pairs_of(truth: GroundTruth, query: Ints) -> tuple[Ints, Ints]:
    """Every result, whose queries these are, beside every alternative of its query: (result, alternative)."""
    return spread(query, listed_by(truth.query_of, len(truth)), np.arange(len(truth.ids)))


class Reader(Labeller):
    """A labeller that reads texts: those of results in its `corpus`, those of alternatives in its `reference`."""

    corpus: Mapping[str, str] = MappingProxyType({})
    reference: Mapping[str, str] = MappingProxyType({})

    def texts(self) -> Mapping[str, str]:
        """The texts of its reference and its corpus."""
        return {**self.reference, **self.corpus}


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
