"""The id labeller: a result hits every alternative that is its id."""

from __future__ import annotations

import numpy as np

from groupgt.labellers.base import Matches
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints

__all__ = ["Ids"]


class Ids:
    """Matches by equal ids, to the byte.

    >>> truth = GroundTruth.of({"q": [["a", "b"], ["b"]]})
    >>> zero = np.zeros(1, dtype=np.int64)
    >>> document = Ids().match(truth).documents[[1]]
    >>> Ids().settle(truth, zero, zero + 1, document)[2].tolist()  # b is the second and the third alternative
    [1, 2]
    """

    name = "id"
    needs: tuple[str, ...] = ()

    def match(self, truth: GroundTruth) -> Matches:
        """The ids of each query."""
        return Matches(truth.id_sets, truth.ids, truth.query_of, truth.document_of)

    def settle(self, truth: GroundTruth, query: Ints, rank: Ints, document: Ints) -> tuple[Ints, Ints, Ints, Bools]:
        """A document in several groups hits one alternative in each; its second result is a repeat."""
        alternative = document
        judgments = truth.judgments
        if not judgments.one_to_one:
            order, starts = judgments.alternatives_by_document
            counts = (starts[1:] - starts[:-1])[document]
            query, rank = np.repeat(query, counts), np.repeat(rank, counts)
            ends = np.cumsum(counts)
            within = np.arange(len(query)) - np.repeat(ends - counts, counts)
            alternative = order[np.repeat(starts[:-1][document], counts) + within]
        # Assigning backwards leaves the first row of each alternative.
        position = np.arange(len(alternative))
        first = np.zeros(judgments.documents, dtype=np.int64)
        first[alternative[::-1]] = position[::-1]
        return query, rank, alternative, first[alternative] != position
