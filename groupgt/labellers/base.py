"""What a labeller is: the part that says which result hits which alternative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints

__all__ = ["Labeller", "Matches"]


@dataclass(frozen=True, eq=False)
class Matches:
    """What result keys hit, as one table sorted by query: `keys[i]` hits document number `documents[i]`.

    `sets` holds each query's keys, and query q has the rows from `bounds[q]` to `bounds[q + 1]`. A key that stands
    twice in a query counts where it stands first.
    """

    keys: list[str]
    documents: Ints
    bounds: list[int]
    sets: Sequence[frozenset[str]]


class Labeller(Protocol):
    """A labeller has two halves: `match` is a join that any engine can do, `settle` reduces its rows in rank order.

    `needs` names the columns of results it reads beyond ids; an engine that cannot supply them says so.
    """

    name: str
    needs: tuple[str, ...]

    def match(self, truth: GroundTruth) -> Matches:
        """The table of result keys and the documents they hit."""
        ...

    def settle(self, truth: GroundTruth, query: Ints, rank: Ints, document: Ints) -> tuple[Ints, Ints, Ints, Bools]:
        """Rows sorted by query and rank → (query, rank, alternative, repeat) in the normal form of `Hits`."""
        ...
