"""BM25 retrieval, using bm25s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le

from groupgt.errors import RetrieverError, listed, near_names
from groupgt.options import Clash, Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin, best

# The languages that bm25s has stop words for.
Stopwords = Literal["none", "english", "german", "dutch", "french", "spanish", "portuguese", "italian", "russian",
                    "swedish", "norwegian", "chinese", "turkish"]  # fmt: skip


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: bm25`."""

    k1: Annotated[float, Ge(0), Le(1000), Doc("Term-frequency saturation.")] = 1.2
    b: Annotated[float, Ge(0), Le(1), Doc("Length normalization.")] = 0.75
    variant: Annotated[Literal["lucene", "robertson", "atire", "bm25l", "bm25+"], Doc("The BM25 formula.")] = "lucene"
    stemmer: Annotated[
        str, Doc("Snowball stemmer language, such as english, or none (stemming needs groupgt[retrieval]).")
    ] = "none"
    stopwords: Annotated[Stopwords, Doc("Language of the stop words to remove, or none.")] = "none"

    def least_score(self) -> float | None:
        return 0.0

    def clashes(self) -> Iterator[Clash]:
        """Yield an error if PyStemmer does not support the stemmer."""
        if self.stemmer == "none":
            return
        if find_spec("Stemmer") is None:
            yield Clash("stemmer", "stemming needs PyStemmer: pip install 'groupgt[retrieval]'")
            return
        import Stemmer

        if self.stemmer not in (languages := sorted(Stemmer.algorithms())):
            suggestions = near_names(self.stemmer, languages)
            yield Clash("stemmer", f"expected none, {listed(languages)}, found {self.stemmer!r}{suggestions}")


class BM25:
    """Indexes a corpus for BM25. bm25s computes only the scores, because its top-k is not stable across k."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        import bm25s

        corpus = setting.corpus
        self.ids = corpus.ids
        self.stopwords = None if options.stopwords == "none" else options.stopwords
        self.stem: Any = None
        if options.stemmer != "none":
            import Stemmer

            self.stem = Stemmer.Stemmer(options.stemmer)
        self.model: Any = bm25s.BM25(k1=options.k1, b=options.b, method=options.variant)
        # Systems of one sweep share the words of the corpus.
        words = corpus.once((__name__, options.stemmer, options.stopwords), lambda: self._words(corpus.texts))
        if not any(words):
            raise RetrieverError("the corpus cannot be indexed: no passage contains a word of two or more letters")
        self.model.index(words, show_progress=False)

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        import bm25s

        words: list[list[str]] = bm25s.tokenize(
            list(texts), stopwords=self.stopwords, stemmer=self.stem, return_ids=False, show_progress=False
        )
        return words

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the k best passages that contain query words, with ties in corpus order."""
        return [self._best(words, k) for words in self._words(queries)]

    def _best(self, words: list[str], k: int) -> base.Ranking:
        indexed = [word for word in words if word in self.model.vocab_dict]
        if not indexed:
            return []
        scores = self.model.get_scores(indexed)
        # bm25l and bm25+ also score passages without any of the words; this is that score.
        absent = self.model.nonoccurrence_array
        lowest = np.zeros(1, scores.dtype)
        if absent is not None:
            lowest += absent[self.model.get_tokens_ids(indexed)].sum()
        return best(self.ids, scores, k, above=float(lowest[0]))


PLUGIN = RetrieverPlugin(Options, BM25, summary="BM25, using bm25s.", libraries=("bm25s", "PyStemmer"), cheap=True)
