"""Reads vectors from files, and loads encoders that compute vectors from texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from groupgt.errors import DataError, first_of
from groupgt.formats.fields import first_in
from groupgt.formats.validity import first_line, guarded
from groupgt.model.validity import id_text
from groupgt.runtime import pl

COLUMNS = ("vector", "embedding", "embeddings")
# The first version of sentence-transformers that takes only weights from the folder of a model.
MIN_MAJOR = 6
Vectors = NDArray[np.float64]


def encoder_of(model: str) -> Callable[[list[str]], Vectors]:
    """Load a sentence-transformers model by name or folder. Reject library versions that run code from the folder."""
    import sentence_transformers

    installed = str(getattr(sentence_transformers, "__version__", "of an unknown version"))
    if not installed.partition(".")[0].isdecimal() or int(installed.partition(".")[0]) < MIN_MAJOR:
        hint = f"version {MIN_MAJOR} or later is needed: pip install -U 'groupgt[dense]'"
        what = f"sentence-transformers {installed} runs code from a model's folder"
        raise DataError(f"the model {model!r}: {what}; {hint}")
    try:
        loaded = sentence_transformers.SentenceTransformer(model, trust_remote_code=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(f"the model {model!r} cannot be loaded: {first_line(error)}") from None

    def encode(texts: list[str]) -> Vectors:
        vectors = loaded.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        return _check_finite(np.asarray(vectors, dtype=np.float64).reshape(len(texts), -1), f"the model {model!r}", [])

    return encode


def read_vectors(path: Path, key: str, ids: Sequence[str]) -> Vectors:
    """Read the vectors for `ids`, in their order, or raise `DataError` if a vector is missing or invalid."""
    vectors = _npy(path) if path.suffix == ".npy" else _parquet(path, key, ids)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise DataError(f"{path}: expected an array of shape (rows, dimensions), found shape {vectors.shape}")
    if len(vectors) != len(ids):
        what = "document in the corpus" if key == "doc_id" else "query in the ground truth"
        raise DataError(f"{path}: expected {len(ids):,} rows, one for each {what}, found {len(vectors):,}")
    return _check_finite(vectors, str(path), ids)


def table_of(path: Path) -> dict[str, Vectors]:
    """Read `{id: vector}` from a parquet file, or raise `DataError`."""
    if path.suffix != ".parquet":
        raise DataError(f"{path}: expected a .parquet file of ids and vectors, found {path.suffix or 'no extension'}")
    frame = _table(path)
    key = first_in(("doc_id", "id", "_id"), frame.columns)
    ids = [name for cell in frame[key].to_list() if (name := id_text(cell)) is not None] if key else []
    return dict(zip(ids, read_vectors(path, key or "doc_id", ids)))


def _table(path: Path) -> pl.DataFrame:
    return guarded(path, "expected a parquet file", partial(pl.read_parquet, path))


def _check_finite(vectors: Vectors, source: str, ids: Sequence[str]) -> Vectors:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        name = f" ({ids[int(bad[0])]!r})" if len(ids) else ""
        raise DataError(f"{source}: row {int(bad[0]) + 1}{name}: expected finite numbers, found NaN or infinity")
    return vectors


def _npy(path: Path) -> Vectors:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise DataError(f"{path}: expected a NumPy array: {first_line(error)}") from None
    if not isinstance(loaded, np.ndarray):
        raise DataError(f"{path}: expected a NumPy array, found an archive")
    if loaded.dtype.kind not in "fiu":
        raise DataError(f"{path}: expected an array of numbers, found {loaded.dtype}")
    return loaded.astype(np.float64)


def _parquet(path: Path, key: str, ids: Sequence[str]) -> Vectors:
    frame = _table(path)
    name, id_column = first_in(COLUMNS, frame.columns), first_in((key, "id", "_id"), frame.columns)
    if name is None or id_column is None:
        raise DataError(f"{path}: expected the columns {key} and vector, found {', '.join(frame.columns)}")
    names = list(map(id_text, frame[id_column].to_list()))
    rows = {text: row for row, text in enumerate(names)}
    if missing := [text for text in ids if text not in rows]:
        raise DataError(f"{path}: no vectors for {first_of(missing, 3)}")
    if len(rows) < len(names):
        requested = set(ids)
        if repeated := [str(text) for text, count in Counter(names).items() if count > 1 and text in requested]:
            raise DataError(f"{path}: several vectors for {first_of(repeated, 3)}")
    column = frame[name].gather([rows[text] for text in ids])
    try:
        lists = column.cast(pl.List(pl.Float64))
    except pl.exceptions.PolarsError:
        raise DataError(f"{path}: expected lists of numbers in the {name} column, found {column.dtype}") from None
    lengths = lists.list.len().unique().to_list()
    if len(lengths) != 1 or None in lengths:
        raise DataError(f"{path}: expected vectors of the same length in the {name} column")
    return lists.explode().to_numpy().reshape(len(ids), -1) if lengths[0] else np.empty((len(ids), 0))
