"""Shows two annotators' judgments of a query side by side, with the differences that remain to be resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from groupgt.curation.matching import matching
from groupgt.formats.replay import Group, QueryState


def agreed(states: Mapping[str, QueryState]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the groups and non-relevant passages on which both annotators agree, in the form of an `open` act."""
    groups: list[dict[str, Any]] = []
    pairs = [[state.groups[number] if number else Group() for state, number in pair] for pair in _aligned(states)]
    # In one of two matched groups only, or with another grade.
    apart = {doc for one, two in pairs for doc, _ in one.docs.items() ^ two.docs.items()}
    for one, two in pairs:
        if docs := {doc: grade for doc, grade in one.docs.items() if doc not in apart}:
            groups.append({"docs": docs, "name": one.name or two.name})
    first, second = states.values()
    others = set(second.nonrelevant) - (first.harmful ^ second.harmful)
    return groups, [doc for doc in first.nonrelevant if doc in others]


def opinions(states: Mapping[str, QueryState]) -> dict[str, Any]:
    """Return each annotator's judgments of the query and of every passage, with matching group numbers."""
    pairs = _aligned(states)
    told: dict[str, Any] = {}
    for side, (by, state) in enumerate(states.items()):
        numbers = {pair[side][1]: number for number, pair in enumerate(pairs, 1)}
        passages = {}
        for doc, each in state.passages.items():
            passages[doc] = {**asdict(each), "groups": sorted(numbers[group] for group in each.groups)}
        told[by] = {"status": state.status, "declared": not state.has_answer, "passages": passages}
    return told


def _aligned(states: Mapping[str, QueryState]) -> list[list[tuple[QueryState, int | None]]]:
    """Match groups by shared passages. In each pair, a group is its annotator's state and its number, or None."""
    groups_of = [state.groups.items() for state in states.values()]
    members = [{number: set(group.docs) for number, group in groups if group.docs} for groups in groups_of]
    numbers = [list(groups) for groups in members]
    return [
        [(state, None if at is None else own[at]) for state, own, at in zip(states.values(), numbers, pair)]
        for pair in matching(*(list(groups.values()) for groups in members))
    ]
