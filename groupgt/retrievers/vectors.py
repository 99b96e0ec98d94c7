"""Vectors of documents and questions: from files, or from a sentence-transformers model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from groupgt.errors import ConfigError, Faults, RetrieverError, listed
from groupgt.model.ids import id_text
from groupgt.retrievers import base
from groupgt.retrievers.exact import on_grid, unit

__all__ = ["Asked", "Embedded", "Options", "Questions"]

SIMILARITIES = ("cosine", "dot")
COLUMNS = ("vector", "embedding", "embeddings")
Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Questions(base.Options):
    """Where the vectors of questions come from.

    `queries` is a file: .npy of shape (questions, dimensions), its rows those of the whole ground truth, or .parquet
    with a `qid` and a `vector` in each row. Without it a sentence-transformers `model` (a folder, or a name) makes
    vectors of the texts, each after `query_prefix`.
    """

    queries: str = field(default="", metadata={"path": True})
    model: str = field(default="", metadata={"folder": True})
    query_prefix: str = ""

    def searches_texts(self) -> bool:
        return not self.queries

    def __post_init__(self) -> None:
        faults = Faults()
        self._check(faults)
        faults.stop(ConfigError)

    def _check(self, faults: Faults) -> None:
        self._check_file("queries", faults)
        if self.model and find_spec("sentence_transformers") is None:
            faults.add("model", "a model needs sentence-transformers: pip install 'groupgt[dense]'")

    def _check_file(self, name: str, faults: Faults) -> None:
        given = getattr(self, name)
        if given and Path(given).suffix not in (".npy", ".parquet"):
            faults.add(name, f"expected a file that ends in .npy or .parquet, found {given!r}")
        elif not given and not self.model:
            faults.add(name, "expected a file of vectors (or a model that makes them), found nothing")


@dataclass(frozen=True)
class Options(Questions):
    """The options of `use: dense`: where vectors come from, and how two are compared.

    `documents` and `queries` are files: .npy of shape (rows, dimensions), its rows those of the corpus and of the whole
    ground truth, or .parquet with an id (`doc_id`, `qid`) and a `vector` in each row. Without them a
    sentence-transformers `model` (a folder, or a name) makes vectors of texts, after `document_prefix` and
    `query_prefix`. `similarity` is cosine or dot.
    """

    documents: str = field(default="", metadata={"path": True})
    document_prefix: str = ""
    similarity: str = "cosine"

    def least_score(self) -> float | None:
        return -1.0 if self.similarity == "cosine" else None

    def _check(self, faults: Faults) -> None:
        super()._check(faults)
        self._check_file("documents", faults)
        if self.similarity not in SIMILARITIES:
            faults.add("similarity", f"expected {listed(SIMILARITIES)}, found {self.similarity!r}")


class Asked:
    """What makes vectors of questions: `of` gives them, shape (questions, d)."""

    def __init__(self, setting: base.Setting, options: Questions) -> None:
        self.options = options
        self.encode = _encoder(options.model) if options.model else None
        self.stored = _read(Path(options.queries), "qid", setting.qids) if options.queries else None
        self.rows = {qid: row for row, qid in enumerate(setting.qids)}

    def of(self, queries: Sequence[str]) -> Vectors:
        """The vectors of some questions; raises `RetrieverError` where there are none."""
        if self.stored is not None:
            if not isinstance(queries, base.Queries):
                raise RetrieverError("vectors that were read from a file are those of its questions alone")
            return np.asarray(self.stored[[self.rows[qid] for qid in queries.ids]])
        if self.encode is None:
            raise RetrieverError("there is no model to make vectors of questions")
        return self.encode([self.options.query_prefix + text for text in queries])


class Embedded(Asked):
    """The vectors of a corpus besides: `documents`, shape (n, d), of length 1 where cosines are compared."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        super().__init__(setting, options)
        self.normalize = options.similarity == "cosine"
        self.documents = self._documents(setting, options)

    def of(self, queries: Sequence[str]) -> Vectors:
        """The vectors of some questions, with as many dimensions as those of the documents."""
        vectors = super().of(queries)
        if vectors.shape[1] != self.documents.shape[1]:
            raise RetrieverError(
                f"{self.options.queries or self.options.model}: expected {self.documents.shape[1]:,} dimensions, "
                f"those of the documents, found {vectors.shape[1]:,}"
            )
        return unit(vectors) if self.normalize else on_grid(vectors)

    def _documents(self, setting: base.Setting, options: Options) -> Vectors:
        encode, texts = self.encode, setting.corpus.texts
        if options.documents:
            vectors = _read(Path(options.documents), "doc_id", setting.corpus.ids)
        elif encode is None:
            raise RetrieverError("there is no model to make vectors of documents")
        else:
            prefix = options.document_prefix
            key = (__name__, options.model, prefix)
            vectors = setting.corpus.once(key, lambda: encode([prefix + text for text in texts]))
        return unit(vectors) if self.normalize else on_grid(vectors)


def _encoder(model: str) -> Callable[[list[str]], Vectors]:
    from sentence_transformers import SentenceTransformer

    try:
        loaded = SentenceTransformer(model)
    except (OSError, ValueError, RuntimeError) as error:
        raise RetrieverError(f"the model {model!r} cannot be loaded: {_first_line(error)}") from None

    def encode(texts: list[str]) -> Vectors:
        vectors = loaded.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        return _sound(np.asarray(vectors, dtype=np.float64).reshape(len(texts), -1), f"the model {model!r}", [])

    return encode


def _read(path: Path, key: str, ids: Sequence[str]) -> Vectors:
    """The vectors of `ids`, in their order; raises `RetrieverError` where one is missing or no vector."""
    vectors = _npy(path) if path.suffix == ".npy" else _parquet(path, key, ids)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise RetrieverError(f"{path}: expected an array of shape (rows, dimensions), found shape {vectors.shape}")
    if len(vectors) != len(ids):
        what = "documents of the corpus" if key == "doc_id" else "questions of the ground truth"
        raise RetrieverError(f"{path}: expected {len(ids):,} rows, those of the {what}, found {len(vectors):,}")
    return _sound(vectors, str(path), ids)


def _sound(vectors: Vectors, source: str, ids: Sequence[str]) -> Vectors:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        name = f" ({ids[int(bad[0])]!r})" if len(ids) else ""
        raise RetrieverError(f"{source}: row {int(bad[0]) + 1}{name}: expected finite numbers, found NaN or infinity")
    return vectors


def _npy(path: Path) -> Vectors:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise RetrieverError(f"{path}: expected an array of NumPy: {_first_line(error)}") from None
    if not isinstance(loaded, np.ndarray):
        raise RetrieverError(f"{path}: expected an array of NumPy, found an archive")
    if loaded.dtype.kind not in "fiu":
        raise RetrieverError(f"{path}: expected an array of numbers, found {loaded.dtype}")
    return loaded.astype(np.float64)


def _parquet(path: Path, key: str, ids: Sequence[str]) -> Vectors:
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RetrieverError(f"{path}: expected a parquet file: {_first_line(error)}") from None
    name = next((each for each in COLUMNS if each in frame.columns), None)
    own = next((each for each in (key, "id", "_id") if each in frame.columns), None)
    if name is None or own is None:
        raise RetrieverError(f"{path}: expected the columns {key} and vector, found {', '.join(frame.columns)}")
    names = [id_text(each) for each in frame[own].to_list()]
    rows = {each: row for row, each in enumerate(names)}
    missing = [each for each in ids if each not in rows]
    if missing:
        raise RetrieverError(f"{path}: {len(missing):,} ids have no vector: {', '.join(missing[:3])}")
    if len(rows) < len(names):
        counts, known = Counter(names), set(ids)
        twice = [each for each, count in counts.items() if count > 1 and each in known]
        if twice:
            raise RetrieverError(f"{path}: {len(twice):,} ids have several vectors: {', '.join(map(str, twice[:3]))}")
    column = frame[name].gather([rows[each] for each in ids])
    try:
        lists = column.cast(pl.List(pl.Float64))
    except pl.exceptions.PolarsError:
        raise RetrieverError(f"{path}: expected lists of numbers in the column {name}, found {column.dtype}") from None
    lengths = lists.list.len().unique().to_list()
    if len(lengths) != 1 or None in lengths:
        raise RetrieverError(f"{path}: expected vectors of one length in the column {name}")
    return lists.explode().to_numpy().reshape(len(ids), -1) if lengths[0] else np.empty((len(ids), 0))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
