"""Exact similarities of vectors, the same whatever stands beside them in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["products", "unit"]

# Rows of documents multiplied at once.
CHUNK = 16_384


def unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of length 1, shape (n, d); rows of zeros stay zeros."""
    rows: NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    out: NDArray[np.float64] = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return out


def products(queries: NDArray[Any], documents: NDArray[Any]) -> NDArray[np.float64]:
    """Dot products, shape (queries, documents), summed as doubles and rounded to single precision.

    BLAS adds in an order that depends on the shape of the batch; the rounding hides that, so that equal documents have
    equal scores.

    >>> products(unit(np.array([[2.0, 0.0]])), unit(np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))).tolist()
    [[1.0, 0.0, 0.0]]
    """
    left = np.ascontiguousarray(queries, dtype=np.float64)
    out = np.empty((len(left), len(documents)), dtype=np.float32)
    for start in range(0, len(documents), CHUNK):
        part = np.asarray(documents[start : start + CHUNK], dtype=np.float64)
        out[:, start : start + CHUNK] = left @ part.T
    return out.astype(np.float64)
