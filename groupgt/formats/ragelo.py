"""RAGElo's subtopic qrels: TREC's four columns, with a placeholder for each criterion that no document addresses."""

from __future__ import annotations

from typing import Any

from groupgt.formats import trec
from groupgt.formats.source import Source
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy

PLACEHOLDER = "__ragelo_unaddressed__"


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """Each criterion is a group; one that has a placeholder alone is empty, for the policy `empty_groups`."""
    queries: dict[str, dict[str, list[Any]]] = {}
    for qid, criterion, document, grade in trec.judgments(source, "topic subtopic doc rel"):
        group = queries.setdefault(qid, {}).setdefault(criterion, [])
        if not document.startswith(PLACEHOLDER):
            group.append({"id": document, "grade": grade})
    groups = [
        [{"alternatives": documents, "name": name} for name, documents in criteria.items()]
        for criteria in queries.values()
    ]
    return GroundTruth.from_rows(list(queries), groups, policy, place=lambda _: str(source.path))
