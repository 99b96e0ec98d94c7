"""Exact similarities of vectors, the same whatever stands beside them in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["on_grid", "products", "unit"]

# Rows of documents multiplied at once.
CHUNK = 16_384
# Bits of a component below the length of its row: twice as many, and one for carrying, are what a double holds.
BITS = 26


def on_grid(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Rows, shape (n, d), rounded to 2⁻²⁶ of the power of two above their length.

    BLAS adds in an order that depends on the shape of the batch. Of such rows every sum of products is exact, so any
    order gives the same bits.
    """
    rows: NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    shift = BITS - np.frexp(np.linalg.norm(rows, axis=1, keepdims=True))[1]
    out: NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(rows, shift)), -shift)
    return out


def unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of length 1, shape (n, d), on the grid; rows of zeros stay zeros."""
    rows: NDArray[np.float64] = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return on_grid(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def products(queries: NDArray[Any], documents: NDArray[Any]) -> NDArray[np.float64]:
    """Dot products, shape (queries, documents), of rows on the grid: exact, then rounded to single precision.

    Documents that differ by no more than the last bit of a double have equal scores.

    >>> products(unit(np.array([[2.0, 0.0]])), unit(np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))).tolist()
    [[1.0, 0.0, 0.0]]
    """
    left = np.ascontiguousarray(queries, dtype=np.float64)
    out = np.empty((len(left), len(documents)), dtype=np.float32)
    for start in range(0, len(documents), CHUNK):
        part = np.asarray(documents[start : start + CHUNK], dtype=np.float64)
        out[:, start : start + CHUNK] = left @ part.T
    return out.astype(np.float64)
