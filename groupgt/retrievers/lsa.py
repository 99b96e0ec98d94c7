"""Latent semantic analysis, TF-IDF reduced by a truncated SVD, using scikit-learn: a weak baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge
from typing_extensions import Doc

from groupgt.errors import RetrieverError
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin, best
from groupgt.retrievers.tfidf import LIBRARIES, MODULES, Ngrams, Stopwords, vectorized
from groupgt.retrievers.vectors import products, unit

# Default number of dimensions.
DIMENSIONS = 256


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: lsa`, a weak baseline; the SVD starts from the file's `seed`."""

    dimensions: Annotated[
        Annotated[int, Ge(1)] | None, Doc("Rank of the SVD (default: 256, or as many as a small corpus allows).")
    ] = None
    ngrams: Annotated[Ngrams, Doc("Maximum n-gram length, in words.")] = 1
    sublinear: Annotated[bool, Doc("Use 1 + ln of word counts.")] = True
    stopwords: Annotated[Stopwords, Doc("Language whose stop words are removed, or none.")] = "none"

    def least_score(self) -> float | None:
        return -1.0


class LSA:
    """A retriever that scores by cosine similarity in the reduced space, with ties in corpus order.

    A query without any words from the corpus has no results.
    """

    def __init__(self, setting: base.Setting, options: Options) -> None:
        from sklearn.decomposition import TruncatedSVD

        self.ids = setting.corpus.ids
        self.words, matrix = vectorized(options, setting.corpus.texts)
        most = min(matrix.shape) - 1
        dimensions = options.dimensions or max(1, min(DIMENSIONS, most))
        if dimensions > most:
            raise RetrieverError(
                f"dimensions: expected at most {most:,} for a corpus of {matrix.shape[0]:,} documents and "
                f"{matrix.shape[1]:,} words, found {dimensions:,}"
            )
        self.reduced = TruncatedSVD(dimensions, random_state=setting.seed)
        self.documents = unit(self.reduced.fit_transform(matrix))

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Returns the k best results for each query."""
        words = self.words.transform(list(queries))
        scores = products(unit(self.reduced.transform(words)), self.documents)
        has_words = np.diff(words.indptr) > 0
        return [best(self.ids, row, k) if some else [] for row, some in zip(scores, has_words.tolist())]


PLUGIN = RetrieverPlugin(
    Options,
    LSA,
    summary="Latent semantic analysis, by scikit-learn.",
    libraries=LIBRARIES,
    modules=MODULES,
    cheap=True,
    note="weak baseline",
)
