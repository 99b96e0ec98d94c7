"""Vector search, exact with NumPy or approximate with a usearch HNSW graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from groupgt.errors import RetrieverError
from groupgt.formats.vectors import Vectors, encoder_of, read_vectors
from groupgt.options import Clash, Doc, File, Folder
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin, best

# Number of document rows multiplied at a time.
CHUNK = 16_384
# Bits of a component below the length of its row: twice as many, plus a carry bit, fit in a double.
BITS = 26
# The distributions that affect the vectors of a model.
MODEL_LIBRARIES = ("sentence-transformers", "torch")


def on_grid(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Round rows, shape (n, d), to 2⁻²⁶ of the power of two above their length.

    BLAS adds in an order that depends on the batch shape. With rounded rows, every sum of products is exact, so any
    order gives the same bits.
    """
    rows: NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    shift = BITS - np.frexp(np.linalg.norm(rows, axis=1, keepdims=True))[1]
    out: NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(rows, shift)), -shift)
    return out


def unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Scale rows, shape (n, d), to length 1 and round them with `on_grid`. All-zero rows stay zero."""
    rows: NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return on_grid(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def products(queries: NDArray[Any], documents: NDArray[Any]) -> NDArray[np.float64]:
    """Return exact dot products of rounded rows, shape (queries, documents), rounded to single precision.

    Documents that differ by no more than the last bit of a double have equal scores.
    """
    left = np.ascontiguousarray(queries, dtype=np.float64)
    out = np.empty((len(left), len(documents)), dtype=np.float32)
    for start in range(0, len(documents), CHUNK):
        part = np.asarray(documents[start : start + CHUNK], dtype=np.float64)
        out[:, start : start + CHUNK] = left @ part.T
    return out.astype(np.float64)


@dataclass(frozen=True)
class QueryOptions(base.Options):
    """Options for query vectors, which come from a file or from a model that embeds texts."""

    queries: Annotated[
        File,
        Doc(
            "File of query vectors: .npy with one row per query of the full ground truth, or .parquet with qid "
            "and vector."
        ),
    ] = ""
    model: Annotated[Folder, Doc("Sentence-transformers model (folder or name) to embed text without vectors.")] = ""
    query_prefix: Annotated[str, Doc("Prefix added to each query before the model embeds it.")] = ""

    def searches_texts(self) -> bool:
        return not self.queries

    def clashes(self) -> Iterator[Clash]:
        """Yield an error unless vectors come from a file in a known format or from a model."""
        yield from self._file("queries", self.queries)
        if self.model and find_spec("sentence_transformers") is None:
            yield Clash("model", "a model needs sentence-transformers: pip install 'groupgt[dense]'")

    def _file(self, option: str, path: str) -> Iterator[Clash]:
        if path and Path(path).suffix not in (".npy", ".parquet"):
            yield Clash(option, f"expected a file that ends in .npy or .parquet, found {path!r}")
        elif not path and not self.model:
            yield Clash(option, "expected a file of vectors (or a model), found neither", ("model",))


@dataclass(frozen=True)
class Options(QueryOptions):
    """Options for `use: dense`: where the vectors come from, and how they are compared."""

    documents: Annotated[
        File,
        Doc(
            "File of passage vectors: .npy with one row per passage of the corpus, or .parquet with doc_id and vector."
        ),
    ] = ""
    document_prefix: Annotated[str, Doc("Prefix added to each passage before the model embeds it.")] = ""
    similarity: Annotated[Literal["cosine", "dot"], Doc("How to compare two vectors.")] = "cosine"

    def least_score(self) -> float | None:
        return -1.0 if self.similarity == "cosine" else None

    def clashes(self) -> Iterator[Clash]:
        """Yield an error unless both query and document vectors have a source."""
        yield from super().clashes()
        yield from self._file("documents", self.documents)


@dataclass(frozen=True)
class AnnOptions(Options):
    """Options for `use: ann`, which adds the size of the graph to the options of `dense`."""

    connectivity: Annotated[
        int, Ge(1), Le(100_000), Doc("Edges per node of the graph. More edges are slower but more accurate.")
    ] = 16


class QueryVectors:
    """A source of query vectors. `of` returns vectors with shape (queries, d)."""

    def __init__(self, setting: base.Setting, options: QueryOptions) -> None:
        self.options = options
        self.encoder = encoder_of(options.model) if options.model else None
        self.stored = read_vectors(Path(options.queries), "qid", setting.qids) if options.queries else None
        self.rows = {qid: row for row, qid in enumerate(setting.qids)}

    def encode(self, texts: list[str], what: str) -> Vectors:
        """Embed texts, or raise `RetrieverError` if there is no model."""
        if self.encoder is None:
            raise RetrieverError(f"there is no model to embed {what}")
        return self.encoder(texts)

    def of(self, queries: Sequence[str]) -> Vectors:
        """Return the vectors of the given queries, or raise `RetrieverError` if there are none."""
        if self.stored is not None:
            if not isinstance(queries, base.Queries):
                raise RetrieverError("a file of vectors covers only its own queries")
            return np.asarray(self.stored[[self.rows[qid] for qid in queries.ids]])
        return self.encode([self.options.query_prefix + text for text in queries], "queries")


class Dense:
    """Compares a query with every document. Ties are in corpus order, and a query of zeros has no results."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.ids, self.options = setting.corpus.ids, options
        self.queries = QueryVectors(setting, options)
        self.scaled = unit if options.similarity == "cosine" else on_grid
        corpus, prefix = setting.corpus, options.document_prefix
        if options.documents:
            vectors = read_vectors(Path(options.documents), "doc_id", corpus.ids)
        else:
            key, encode = (__name__, options.model, prefix), self.queries.encode
            vectors = corpus.once(key, lambda: encode([prefix + text for text in corpus.texts], "documents"))
        self.documents = self.scaled(vectors)

    def _vectors(self, queries: Sequence[str]) -> Vectors:
        """Return the vectors of the given queries, checked to have as many dimensions as the documents."""
        vectors = self.queries.of(queries)
        if vectors.shape[1] != self.documents.shape[1]:
            what = f"expected {self.documents.shape[1]:,} dimensions, as in the documents, found {vectors.shape[1]:,}"
            raise RetrieverError(f"{self.options.queries or self.options.model}: {what}")
        return self.scaled(vectors)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the k best results for each query."""
        vectors = self._vectors(queries)
        scores = products(vectors, self.documents)
        return [best(self.ids, row, k) if vector.any() else [] for row, vector in zip(scores, vectors)]


class Ann(Dense):
    """Scores candidates from the graph exactly. For reproducibility, a single thread builds and searches the graph."""

    def __init__(self, setting: base.Setting, options: AnnOptions) -> None:
        from usearch.index import Index

        super().__init__(setting, options)
        size, metric = self.documents.shape[1], "cos" if options.similarity == "cosine" else "ip"
        self.graph = Index(ndim=size, metric=metric, dtype="f32", connectivity=options.connectivity)
        self.graph.add(np.arange(len(self.documents)), self.documents.astype(np.float32), threads=1)

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the k best results from the graph for each query."""
        return [self._best(vector, k) if vector.any() else [] for vector in self._vectors(queries)]

    def _best(self, vector: Vectors, k: int) -> base.Ranking:
        matches = self.graph.search(vector.astype(np.float32), min(k, len(self.ids)), threads=1)
        rows = np.sort(matches.keys.astype(np.int64))
        return best(self.ids, products(vector[None, :], self.documents[rows])[0], k, rows)


PLUGIN = RetrieverPlugin(
    Options,
    Dense,
    summary="Exact search over your own vectors, or over vectors from a sentence-transformers model.",
    libraries=MODEL_LIBRARIES,
    cheap=True,
)
ANN = RetrieverPlugin(
    AnnOptions,
    Ann,
    summary="Approximate vector search in an HNSW graph, using usearch.",
    libraries=("usearch", *MODEL_LIBRARIES),
    modules={"usearch": "ann"},
    cheap=True,
)
