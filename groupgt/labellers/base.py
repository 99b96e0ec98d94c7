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
    """What result keys hit, as a table sorted by query: `keys[i]` of query `queries[i]` hits document `documents[i]`.

    `sets` holds the keys of each query. A key that stands twice in a query counts where it stands first.
    """

    sets: Sequence[frozenset[str]]
    keys: list[str]
    queries: Ints
    documents: Ints


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
