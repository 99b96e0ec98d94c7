"""Approximate vector search in an HNSW graph, using usearch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from typing_extensions import Doc

from groupgt.retrievers import base, vectors
from groupgt.retrievers.base import RetrieverPlugin, best
from groupgt.retrievers.vectors import products

Candidates = Annotated[int, Ge(1), Le(100_000)]


@dataclass(frozen=True)
class Options(vectors.Options):
    """The options of `use: ann`: those of `dense` and the graph parameters; larger values are slower but more exact."""

    connectivity: Annotated[Candidates, Doc("Edges per node of the graph.")] = 16
    expansion_add: Annotated[Candidates, Doc("Candidates examined when a passage is added.")] = 128
    expansion_search: Annotated[Candidates, Doc("Candidates examined when a query is searched.")] = 64


class Ann:
    """Finds candidates in the graph, which a single thread builds and searches for reproducibility.

    Exact search then scores and sorts the candidates. A query whose vector is all zeros has no results.
    """

    def __init__(self, setting: base.Setting, options: Options) -> None:
        from usearch.index import Index

        self.ids = setting.corpus.ids
        self.vectors = vectors.Embedded(setting, options)
        documents = self.vectors.documents
        self.graph = Index(
            ndim=documents.shape[1],
            metric="cos" if self.vectors.normalize else "ip",
            dtype="f32",
            connectivity=options.connectivity,
            expansion_add=options.expansion_add,
            expansion_search=options.expansion_search,
        )
        self.graph.add(np.arange(len(documents)), documents.astype(np.float32), threads=1)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Returns the k best results from the graph for each query."""
        rankings: list[base.Ranking] = []
        for vector in self.vectors.of(queries):
            if not vector.any():
                rankings.append([])
                continue
            matches = self.graph.search(vector.astype(np.float32), min(k, len(self.ids)), threads=1)
            rows = np.sort(matches.keys.astype(np.int64))
            scores = products(vector[None, :], self.vectors.documents[rows])[0]
            rankings.append(best(self.ids, scores, k, rows))
        return rankings


PLUGIN = RetrieverPlugin(
    Options,
    Ann,
    summary="Approximate vector search in an HNSW graph, by usearch.",
    libraries=("usearch", "sentence-transformers", "torch"),
    modules={"usearch": "ann"},
    cheap=True,
)
