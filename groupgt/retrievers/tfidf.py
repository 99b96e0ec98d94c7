"""Weak baselines with scikit-learn, using TF-IDF and cosine similarity, with or without truncated SVD (LSA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le

from groupgt.errors import RetrieverError
from groupgt.options import Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import Count, RetrieverPlugin, best
from groupgt.retrievers.vectors import products, unit

Ngrams = Annotated[int, Ge(1), Le(5)]
Stopwords = Literal["none", "english"]
# What both plug-ins have in common.
BASELINE: dict[str, Any] = {"cheap": True, "note": "weak baseline", "modules": {"sklearn": "retrieval"}}
BASELINE |= {"libraries": ("scikit-learn", "scipy")}


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: tfidf`, a weak baseline."""

    ngrams: Annotated[Ngrams, Doc("Maximum n-gram length, in words.")] = 1
    sublinear: Annotated[bool, Doc("Scale word counts to 1 + ln(count).")] = True
    stopwords: Annotated[Stopwords, Doc("Language of the stop words to remove, or none.")] = "none"

    def least_score(self) -> float | None:
        return 0.0


def vectorized(options: Any, texts: Sequence[str]) -> tuple[Any, Any]:
    """Return a fitted vectorizer and corpus vectors of length 1, or raise `RetrieverError` if there are no words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        ngram_range=(1, options.ngrams),
        sublinear_tf=options.sublinear,
        stop_words=None if options.stopwords == "none" else options.stopwords,
        token_pattern=r"(?u)\b\w+\b",  # noqa: S106  # words, no password
    )
    try:
        return vectorizer, vectorizer.fit_transform(list(texts))
    except ValueError as error:
        raise RetrieverError(f"the corpus cannot be indexed: {error}") from None


class TfIdf:
    """A retriever that ranks passages with a TF-IDF cosine similarity above 0, with ties in corpus order."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.ids = setting.corpus.ids
        self.words, self.documents = vectorized(options, setting.corpus.texts)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the k best results for each query."""
        scores = (self.words.transform(list(queries)) @ self.documents.T).tocsr()
        rankings = []
        for start, end in zip(scores.indptr, scores.indptr[1:]):
            rows, values = scores.indices[start:end], scores.data[start:end]
            order = np.argsort(rows)
            rankings.append(best(self.ids, values[order], k, rows[order], above=0.0))
        return rankings


# Default number of dimensions.
DIMENSIONS = 256


@dataclass(frozen=True)
class LsaOptions(base.Options):
    """Options for `use: lsa`, a weak baseline. The SVD is seeded with the file's `seed`."""

    dimensions: Annotated[Count | None, Doc("Rank of the SVD (default: 256, or the maximum for a small corpus).")] = (
        None
    )
    ngrams: Annotated[Ngrams, Doc("Maximum n-gram length, in words.")] = 1
    sublinear: Annotated[bool, Doc("Scale word counts to 1 + ln(count).")] = True
    stopwords: Annotated[Stopwords, Doc("Language of the stop words to remove, or none.")] = "none"

    def least_score(self) -> float | None:
        return -1.0


class LSA:
    """Ranks by cosine similarity in the reduced space. A query without words from the corpus has no results."""

    def __init__(self, setting: base.Setting, options: LsaOptions) -> None:
        from sklearn.decomposition import TruncatedSVD

        self.ids = setting.corpus.ids
        self.words, matrix = vectorized(options, setting.corpus.texts)
        most = min(matrix.shape) - 1
        dimensions = options.dimensions or max(1, min(DIMENSIONS, most))
        if dimensions > most:
            corpus = f"a corpus of {matrix.shape[0]:,} documents and {matrix.shape[1]:,} words"
            raise RetrieverError(f"dimensions: expected at most {most:,} for {corpus}, found {dimensions:,}")
        self.reduced = TruncatedSVD(dimensions, random_state=setting.seed)
        self.documents = unit(self.reduced.fit_transform(matrix))

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the k best results for each query."""
        words = self.words.transform(list(queries))
        scores = products(unit(self.reduced.transform(words)), self.documents)
        has_words = np.diff(words.indptr) > 0
        return [best(self.ids, row, k) if some else [] for row, some in zip(scores, has_words.tolist())]


PLUGIN = RetrieverPlugin(Options, TfIdf, summary="TF-IDF with cosine similarity, using scikit-learn.", **BASELINE)
LSA_PLUGIN = RetrieverPlugin(LsaOptions, LSA, summary="Latent semantic analysis, using scikit-learn.", **BASELINE)
