"""The text labeller: a result hits an alternative when it says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from operator import contains
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, listed, near_names
from groupgt.labellers.base import Labeller, Matches, Results, Tables, matches_of
from groupgt.labellers.normal import Normalization
from groupgt.labellers.reading import alternative_texts, pairs_of, result_texts
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.ids import shown

__all__ = ["METHODS", "Options", "Text", "common_tokens", "distinct", "partial_ratios", "token_recalls"]

BLOCK = 500_000


@dataclass(frozen=True)
class Options:
    """How texts are compared, and where they stand.

    `method`: `contained` (the alternative's words stand in the result, one after the other), `partial_ratio` (the
    result's most similar part, by RapidFuzz, where the result is as long as the alternative; else the whole of it) or
    `token_recall` (the share of the alternative's words, as often as they stand there, that the result has), of which
    at least `threshold`. `corpus` holds the texts of results that carry none, `reference` those of alternatives that
    are ids. Texts are normalized: NFKC, case folded (unless `case_sensitive`), punctuation dropped (unless
    `punctuation`).
    """

    method: str = "contained"
    threshold: float = 0.9
    corpus: Any = field(default="", metadata={"path": True})
    reference: Any = field(default="", metadata={"path": True})
    case_sensitive: bool = False
    punctuation: bool = False

    def __post_init__(self) -> None:
        faults = Faults()
        if self.method not in METHODS:
            near = near_names(str(self.method), METHODS)
            faults.add("method", f"expected {listed(METHODS)}, found {self.method!r}{near}")
        elif self.method == "partial_ratio" and find_spec("rapidfuzz") is None:
            faults.add("method", "partial_ratio needs RapidFuzz: pip install 'groupgt[text]'")
        if not 0 < self.threshold <= 1:
            faults.add("threshold", f"expected a number above 0, at most 1, found {self.threshold!r}")
        faults.stop(ConfigError)


class _Kept(dict[str, str]):
    """Normalized texts, each made once."""

    def __init__(self, normal: Normalization) -> None:
        super().__init__()
        self.normal = normal

    def __missing__(self, text: str) -> str:
        found = self[text] = self.normal(text)
        return found


class Text(Labeller):
    """A result hits an alternative that it contains, resembles, or shares enough words with.

    >>> import groupgt
    >>> truth = {"q": [[{"text": "thirty days of leave"}]]}
    >>> run = {"q": [{"id": "c1", "text": "You work."}, {"id": "c2", "text": "Thirty days\\nof leave, each year."}]}
    >>> groupgt.evaluate(truth, run, ["mrr"], labeller="text").means
    {'mrr': 0.5}
    """

    name = "text"

    def __init__(self, options: Options, tables: Tables) -> None:
        self.options = options
        self.normal = Normalization(options.case_sensitive, options.punctuation)
        self.corpus = tables.texts(options.corpus, "corpus")
        self.reference = tables.texts(options.reference, "reference")
        self.normalized = _Kept(self.normal).__getitem__

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Alternatives of a group that are the same once normalized become one; one without a word is an error."""
        texts = alternative_texts(truth, self.reference)
        first: dict[tuple[int, str], int] = {}
        faults = Faults()
        for alternative, text in enumerate(texts):
            query = int(truth.query_of[alternative])
            if not self.normalized(text):
                where = f"query {truth.qids[query]!r}"
                faults.add(where, f"nothing is left of the alternative {shown(text)} once it is normalized")
            first.setdefault((query, self.normalized(text)), alternative)
        faults.stop(DataError)
        queries = truth.query_of.tolist()
        chosen = [first[query, self.normalized(text)] for query, text in zip(queries, texts)]
        forms = truth.forms
        return truth.renamed([truth.ids[at] for at in chosen], [forms[at] for at in chosen] if forms else None)

    def texts(self) -> Mapping[str, str]:
        """The texts of its reference and its corpus."""
        return {**self.reference, **self.corpus}

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """Every result beside the alternatives of its query; two texts are compared once, however often they meet."""
        query, keys = results.pairs()
        said = result_texts(truth, query, keys, results, self.corpus, self.name)
        left, left_of = distinct(list(map(self.normalized, said)))
        right, right_of = distinct(list(map(self.normalized, alternative_texts(truth, self.reference))))
        pairs = pairs_of(truth, query)
        code = left_of[pairs.result] * max(len(right), 1) + right_of[pairs.alternative]
        codes, place = np.unique(code, return_inverse=True)
        first, second = codes // max(len(right), 1), codes % max(len(right), 1)
        hits = METHODS[self.options.method](left, right, first, second, self.options.threshold)[place]
        return matches_of(truth, query, keys, pairs.result[hits], pairs.alternative[hits])

    def __str__(self) -> str:
        least = "" if self.options.method == "contained" else f" ≥ {self.options.threshold:g}"
        return f"text ({self.options.method}{least}; {self.normal})"


def distinct(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """The distinct texts, and which of them each is."""
    first = list(dict.fromkeys(texts))
    codes = dict(zip(first, range(len(first))))
    return first, np.fromiter(map(codes.__getitem__, texts), np.int64, len(texts))


def _contained(left: list[str], right: list[str], first: Ints, second: Ints, threshold: float) -> Bools:
    # Blanks at both ends: words are compared whole.
    whole, part = [f" {text} " for text in left], [f" {text} " for text in right]
    results, alternatives = map(whole.__getitem__, first.tolist()), map(part.__getitem__, second.tolist())
    return np.fromiter(map(contains, results, alternatives), np.bool_, len(first))


def partial_ratios(left: list[str], right: list[str], first: Ints, second: Ints, least: float = 0.0) -> Floats:
    """RapidFuzz' partial ratio of the alternatives in the results, from 0 to 1; the plain ratio in shorter results.

    What is below `least` is 0.
    """
    from rapidfuzz import fuzz, process

    shorter = np.array([len(text) for text in left])[first] < np.array([len(text) for text in right])[second]
    score = np.zeros(len(first))
    for mask, scorer in ((~shorter, fuzz.partial_ratio), (shorter, fuzz.ratio)):
        for start in range(0, int(mask.sum()), BLOCK):
            rows = np.flatnonzero(mask)[start : start + BLOCK]
            results, alternatives = ([texts[at] for at in of[rows]] for texts, of in ((left, first), (right, second)))
            found = process.cpdist(
                alternatives, results, scorer=scorer, score_cutoff=100 * least, dtype=np.float64, workers=-1
            )
            score[rows] = found / 100
    return score


def _partial(left: list[str], right: list[str], first: Ints, second: Ints, threshold: float) -> Bools:
    least = threshold - 1e-9
    return np.asarray(partial_ratios(left, right, first, second, least) >= least)


def token_recalls(left: list[str], right: list[str], first: Ints, second: Ints) -> Floats:
    """Σ_words min(times in the result, times in the alternative) ÷ the alternative's number of words."""
    common, _, sizes = common_tokens(left, right, first, second, str.split)
    return common / np.maximum(sizes[second], 1)


def common_tokens(
    left: list[str], right: list[str], first: Ints, second: Ints, split: Callable[[str], list[str]]
) -> tuple[Ints, Ints, Ints]:
    """How many words two texts have in common, as often as both have them; and the number of words of each text."""
    codes: dict[str, int] = {}
    (of_left, word, times, left_size), (of_right, other, often, right_size) = (
        _counted(texts, codes, split) for texts in (left, right)
    )
    size = max(len(codes), 1)
    table = of_left * size + word
    order = np.argsort(table)
    table, times = table[order], times[order]
    starts = np.searchsorted(of_right, np.arange(len(right) + 1))
    common = np.zeros(len(first), dtype=np.int64)
    for begin in range(0, len(first), BLOCK // 10):
        rows = slice(begin, begin + BLOCK // 10)
        mine, theirs = first[rows], second[rows]
        counts = (starts[1:] - starts[:-1])[theirs]
        row = np.repeat(np.arange(len(theirs)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        token = np.repeat(starts[:-1][theirs], counts) + within
        wanted = mine[row] * size + other[token]
        at = np.minimum(np.searchsorted(table, wanted), max(len(table) - 1, 0))
        there = table[at] == wanted if len(table) else np.zeros(len(wanted), dtype=np.bool_)
        both = np.where(there, np.minimum(times[at] if len(table) else 0, often[token]), 0)
        common[rows] = np.bincount(row, both, minlength=len(theirs)).astype(np.int64)
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


def _recall(left: list[str], right: list[str], first: Ints, second: Ints, threshold: float) -> Bools:
    return np.asarray(token_recalls(left, right, first, second) >= threshold - 1e-9)


METHODS: dict[str, Callable[[list[str], list[str], Ints, Ints, float], Bools]] = {
    "contained": _contained,
    "partial_ratio": _partial,
    "token_recall": _recall,
}
