"""The one order of scores: the best first, equal ones by position in the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groupgt.retrievers.base import Ranking

__all__ = ["best"]


def best(
    ids: Sequence[str],
    scores: NDArray[Any],
    k: int,
    places: NDArray[Any] | None = None,
    *,
    above: float | None = None,
) -> Ranking:
    """The k best of `scores`, shape (n,), as (id, score); `places` are their positions in `ids`, ascending.

    What is not `above` is no result.

    >>> best(["a", "b", "c"], np.array([1.0, 2.0, 1.0]), 2)
    [('b', 2.0), ('a', 1.0)]
    """
    chosen = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
    own = scores[chosen]
    if len(own) > k:
        # Everything from the k-th score up, so that equal ones at the cut are told apart by position alone.
        kept = own >= np.partition(own, len(own) - k)[len(own) - k]
        chosen, own = chosen[kept], own[kept]
    order = np.argsort(-own, kind="stable")[:k]
    rows = chosen[order] if places is None else places[chosen[order]]
    return [(ids[place], score) for place, score in zip(rows.tolist(), own[order].tolist())]
