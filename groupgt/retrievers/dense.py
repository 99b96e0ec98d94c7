"""Exact vector search, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin, best
from groupgt.retrievers.vectors import Embedded, Options, products


class Dense:
    """Compares a query with every document: no index, no approximation; equal scores by position in the corpus.

    A query whose vector is all zeros has no results.
    """

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.ids = setting.corpus.ids
        self.vectors = Embedded(setting, options)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """The k best of each query."""
        vectors = self.vectors.of(queries)
        scores = products(vectors, self.vectors.documents)
        return [best(self.ids, row, k) if vector.any() else [] for row, vector in zip(scores, vectors)]


PLUGIN = RetrieverPlugin(
    Options,
    Dense,
    summary="Exact search over your own vectors or those of a sentence-transformers model.",
    libraries=("sentence-transformers", "torch"),
    cheap=True,
)
