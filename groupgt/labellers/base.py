"""What a labeller is: the part that says which result hits which alternative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints

__all__ = ["Labeller"]


class Labeller(Protocol):
    """A labeller has two halves: `match` is a join that any engine can do, `settle` reduces its rows in rank order.

    `needs` names the columns of results it reads beyond ids; an engine that cannot supply them says so.
    """

    name: str
    needs: tuple[str, ...]

    def match(self, truth: GroundTruth) -> Sequence[Mapping[str, int]]:
        """For each query, what a result's key may be and the document number it then hits."""
        ...

    def settle(self, truth: GroundTruth, query: Ints, rank: Ints, document: Ints) -> tuple[Ints, Ints, Ints, Bools]:
        """Rows sorted by query and rank → (query, rank, alternative, repeat) in the normal form of `Hits`."""
        ...
