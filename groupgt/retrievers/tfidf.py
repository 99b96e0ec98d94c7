"""TF-IDF retrieval with cosine similarity, using scikit-learn: a weak baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from typing_extensions import Doc

from groupgt.errors import RetrieverError
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin, best

Ngrams = Annotated[int, Ge(1), Le(5)]
Stopwords = Literal["none", "english"]
LIBRARIES = ("scikit-learn", "scipy")
MODULES = {"sklearn": "retrieval"}


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: tfidf`, a weak baseline."""

    ngrams: Annotated[Ngrams, Doc("Maximum n-gram length, in words.")] = 1
    sublinear: Annotated[bool, Doc("Use 1 + ln of word counts.")] = True
    stopwords: Annotated[Stopwords, Doc("Language whose stop words are removed, or none.")] = "none"

    def least_score(self) -> float | None:
        return 0.0


def vectorized(options: Any, texts: Sequence[str]) -> tuple[Any, Any]:
    """Returns a fitted scikit-learn vectorizer and the corpus vectors; raises `RetrieverError` without words.

    Words are lowercased and may have a single letter; rows have length 1.
    """
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
    """A retriever that scores by cosine similarity of TF-IDF vectors, above 0 only, with ties in corpus order."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.ids = setting.corpus.ids
        self.words, self.documents = vectorized(options, setting.corpus.texts)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Returns the k best results for each query."""
        scores = (self.words.transform(list(queries)) @ self.documents.T).tocsr()
        rankings = []
        for start, end in zip(scores.indptr, scores.indptr[1:]):
            rows, values = scores.indices[start:end], scores.data[start:end]
            order = np.argsort(rows)
            rankings.append(best(self.ids, values[order], k, rows[order], above=0.0))
        return rankings


PLUGIN = RetrieverPlugin(
    Options,
    TfIdf,
    summary="TF-IDF with cosine similarity, by scikit-learn.",
    libraries=LIBRARIES,
    modules=MODULES,
    cheap=True,
    note="weak baseline",
)
