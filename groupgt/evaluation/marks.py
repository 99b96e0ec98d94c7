"""Finds the groups that each result in an evaluation hits, for pages and figures."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from groupgt.evaluation.result import Evaluated
from groupgt.metrics import views

# Kinds of marks: covers groups that no result above covers, covers only groups covered above, judged non-relevant, and
# harmful. The page has one more, for results that are not judged.
FIRST, AGAIN, IRRELEVANT, HARMFUL = 0, 1, 2, 4


class Marks:
    """The groups of each query in an evaluation, and the groups that each result hits (in the first trial)."""

    def __init__(self, evaluation: Evaluated) -> None:
        self.truth, self.hits = evaluation.truth, evaluation.first.labelled.hits

    def groups(self, query: int) -> list[int]:
        """Return the groups of a query that have a relevant alternative."""
        groups: list[int] = self.truth.relevant_groups[views.part_of(self.truth.judgments.group_query, query)].tolist()
        return groups

    def of(self, query: int) -> list[tuple[int, int, list[int]]]:
        """Return (rank, kind, group) of a query's judged results. Groups are counted from 0 within the query."""
        rows = [hit for hit in self.hits.of_query(query) if not hit.part]
        marks: list[tuple[int, int, list[int]]] = []
        covered: set[int] = set()
        for rank, of_rank in groupby(rows, key=attrgetter("rank")):
            places = list(of_rank)
            groups = {hit.group - 1 for hit in places if hit.group}
            if groups - covered:
                marks.append((rank, FIRST, sorted(groups - covered)))
                covered |= groups
            elif groups:
                marks.append((rank, AGAIN, sorted(groups)))
            elif any(hit.harmful for hit in places):
                marks.append((rank, HARMFUL, []))
            elif any(hit.grade >= 0 for hit in places):
                marks.append((rank, IRRELEVANT, []))
        return marks
