"""The text labeller matches a result to an alternative if they contain the same text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Gt, Le

from groupgt.errors import Faults, display
from groupgt.labellers import likeness
from groupgt.labellers.base import Cached, Matches, Results, Table, matches_of, pairs_of, query_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.options import Clash, Doc
from groupgt.plugins import Plugin


@dataclass(frozen=True)
class Options:
    """Method for comparing text, and the sources of the text.

    Text is normalized first (NFKC, case folding, no punctuation) unless options change this.
    """

    method: Annotated[
        Literal["contained", "partial_ratio", "token_recall"],
        Doc(
            "contained: the result contains the alternative's words in sequence; partial_ratio: similarity of "
            "the best matching part of the result (RapidFuzz), or of the entire result if it is shorter; "
            "token_recall: fraction of the alternative's words that the result contains, counting repeats."
        ),
    ] = "contained"
    threshold: Annotated[
        float, Gt(0), Le(1), Doc("Minimum similarity for a hit, with partial_ratio and token_recall.")
    ] = 0.9
    corpus: Annotated[Table, Doc("Passage text for results that have no text.")] = ""
    reference: Annotated[Table, Doc("Passage text for alternatives that are ids.")] = ""
    case_sensitive: Annotated[bool, Doc("Distinguish upper and lower case.")] = False
    punctuation: Annotated[bool, Doc("Keep punctuation.")] = False

    def clashes(self) -> Iterator[Clash]:
        """Yield an error if the library for the method is not installed."""
        if self.method == "partial_ratio" and find_spec("rapidfuzz") is None:
            yield Clash("method", "partial_ratio needs RapidFuzz: pip install 'groupgt[text]'")


class Text(likeness.Reader):
    """A result hits an alternative that it contains, resembles, or shares enough words with."""

    name = "text"
    described = frozenset({"method", "threshold", "case_sensitive", "punctuation"})

    def __init__(self, options: Options, inputs: Any) -> None:
        super().__init__(options, inputs)
        self.normal = likeness.Normalization(options.case_sensitive, options.punctuation)
        self.normalized = Cached(self.normal).__getitem__

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Merge a group's alternatives that are equal after normalization. Raise `DataError` for empty alternatives."""
        texts = likeness.alternative_texts(truth, self.reference)
        first: dict[tuple[int, str], int] = {}
        chosen: list[int] = []
        faults = Faults()
        for alternative, (query, text) in enumerate(zip(truth.query_of.tolist(), texts)):
            if not (normal := self.normalized(text)):
                what = f"the alternative {display(text)} is empty after normalization"
                faults.add(query_of(truth, alternative), what)
            chosen.append(first.setdefault((query, normal), alternative))
        faults.stop()
        forms = truth.forms
        return truth.renamed([truth.ids[at] for at in chosen], [forms[at] for at in chosen] if forms else None)

    def unreachable(self, truth: GroundTruth) -> tuple[Ints, str]:
        """Return the alternatives with too many words for even the longest passage to contain the required share."""
        if not self.corpus or self.options.method == "partial_ratio":
            return super().unreachable(truth)

        def words_of(text: str) -> int:
            return len(self.normalized(text).split())

        longest = max(map(words_of, self.corpus.values()))
        words = np.array(list(map(words_of, likeness.alternative_texts(truth, self.reference))))
        share = 1.0 if self.options.method == "contained" else self.options.threshold - likeness.SLACK
        way = "compare by token_recall with a lower threshold" if share == 1 else "lower threshold"
        return np.flatnonzero(words * share > longest), way

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """Compare every result with the alternatives of its query. Compare each pair of texts only once."""
        query, keys = results.queries, results.names
        texts = likeness.result_texts(truth, query, keys, results.texts, self.corpus, f"the {self.name} labeller")
        targets = list(map(self.normalized, likeness.alternative_texts(truth, self.reference)))
        result, alternative = pairs_of(truth, query)
        pairs = likeness.text_pairs(list(map(self.normalized, texts)), targets, result, alternative)
        least = self.options.threshold - likeness.SLACK
        hits = (likeness.METHODS[self.options.method](pairs, least) >= least)[pairs.pair_of]
        return matches_of(truth, query, keys, result[hits], alternative[hits])

    def description(self) -> str:
        """Describe the method, its threshold and the normalization."""
        least = "" if self.options.method == "contained" else f" ≥ {self.options.threshold:g}"
        return f"{self.options.method}{least}; {self.normal}"


PLUGIN = Plugin(Options, Text)
