"""The id labeller matches a result to every alternative with the same id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groupgt.labellers.base import Labeller, Matches, Results, Settled, all_ids, first_hits, spread
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.plugins import Plugin


@dataclass(frozen=True)
class Options:
    """The `id` labeller has no options."""


class Named(Labeller):
    """Matches ids, spans or parents whose names are identical, byte for byte."""

    reads_results = False

    def match(self, truth: GroundTruth, results: Results | None) -> Matches:
        """Return the names for each query. Targets are documents."""
        return truth.judgments.once("names", lambda: Matches(truth, truth.ids, truth.query_of, truth.document_of))

    def settle(self, truth: GroundTruth, matches: Matches, query: Ints, rank: Ints, target: Ints) -> Settled:
        """Hit one alternative in each group that contains the document. Later results with the document are repeats."""
        alternative = target
        judgments = truth.judgments
        if not judgments.one_to_one:
            order, starts = judgments.alternatives_by_document
            row, alternative = spread(target, starts, order)
            query, rank = query[row], rank[row]
        return query, rank, alternative, first_hits(alternative, judgments.documents)


class Ids(Named):
    """A result hits every alternative with the same id."""

    name = "id"

    def __init__(self, options: Options | None = None, inputs: Any = None) -> None:
        pass

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the ground truth unchanged, or raise `DataError` if an alternative is not an id."""
        return all_ids(truth, self.name)

    # There is nothing to cache.
    read = truth


PLUGIN = Plugin(Options, Ids)
