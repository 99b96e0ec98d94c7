"""Report how often answers are correct where retrieval is complete, and where it is not, without a word of causes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from groupgt.comparison.outcomes import CORRECT, Outcomes
from groupgt.errors import first_of
from groupgt.render.columns import level_text
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.drawing import drawing
from groupgt.render.exports import nulls
from groupgt.render.page import data
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted, fixed
from groupgt.report.sentences import at_cutoff, sentence_of

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

ASSOCIATION = "Association only: harder queries fail both, retrieval and answers."
SIDES = {True: "complete", False: "incomplete"}
NAMES = {
    "wrong": "wrong answers with incomplete retrieval",
    "gold": "accuracy with gold context minus accuracy",
}
LEFT_OUT = {
    "unanswerable": "answered queries declared unanswerable",
    "undefined": "answered queries without ground truth or results",
    "unknown": "answers to queries that are not in the ground truth",
    "unjudged": "answers without a judgment",
    "unanswered": "queries without an answer",
}
# Queries named in a cell of the table: in text, and on the page.
NAMED, LINKED = 20, 200


class OutcomesTeller(Teller[Outcomes]):
    """Report answers beside retrieval, counts before percentages."""

    main_figure = "means"
    fields = tuple(Outcomes.__dataclass_fields__)

    def blocks(self) -> list[Item]:
        """Return one sentence, the table of queries, shares, and what is missing."""
        return list(items(self.result))

    def figure(self) -> Figure:
        """Draw the shares of correct answers on both sides."""
        from groupgt.render.encodings import About
        from groupgt.render.figures import forest

        result = self.result
        shares = [(side, result.shares[side]) for side in SIDES.values() if side in result.shares]
        rows = [
            {"name": f"retrieval {side}", "value": each.value, **dict(zip(("low", "high"), each.interval)), "kind": ""}
            for side, each in shares
        ]
        level = level_text(result.confidence)
        about = About("share of correct answers", len(result.queries), "coverage", ASSOCIATION, level=level)
        return forest(rows, about, title="Correct answers by retrieval")

    def csv_rows(self) -> Grid:
        """Return headers and one row per cell of the table of counts, and per share."""
        result = self.result
        rows: list[list[Any]] = [
            [label, None, None, None, len(qids), len(result.queries)] for label, qids in _cells(result).items()
        ]
        rows += [[name, each.value, *each.interval, each.part, each.whole] for name, each in result.shares.items()]
        return ["name", "value", "low", "high", "part", "whole"], nulls(rows)


def items(result: Outcomes) -> Iterator[Item]:
    """Yield everything in the order in which it is read."""
    level = level_text(result.confidence)
    yield Verdict([sentence_of("note", _sentence(result)), sentence_of("note", ASSOCIATION)])
    correct = "correct" if result.is_plain else "correct (mean score of ½ or more)"
    counts = list(map(len, _cells(result).values()))
    rows: list[list[Any]] = [
        [name, *cells, *_texts(result, name)[1:]] for name, cells in zip(SIDES.values(), (counts[:2], counts[2:]))
    ]
    if "difference" in result.shares:
        rows.append(["difference", "", "", *_texts(result, "difference")[1:]])
    yield Table([f"retrieval{at_cutoff(result.cutoff or None)}", correct, "wrong", "share correct", level], rows)
    for label, qids in _cells(result).items():
        yield Detail(f"{label}: {first_of(qids, NAMED) if qids else 'none'}")
    if shares := [[NAMES[name], *_texts(result, name)] for name in NAMES if name in result.shares]:
        yield Table(["", "queries", "share", level], shares)
    lines = []
    if result.trials > 1:
        rule = "a query counts as complete where it is in half of them or more"
        lines.append(f"{result.trials:,} trials: {rule}; shares weigh it by the part of the trials")
    if left_out := [f"{LEFT_OUT[name]} ({count:,})" for name, count in result.left_out.items()]:
        lines.append(f"left out: {', '.join(left_out)}")
    yield "\n".join([*lines, f"{counted(len(result.queries), 'query')} with answers"])


def page_part(system: str, result: Outcomes) -> data.Outcomes:
    """Return what the page shows of a system."""
    *found, notes = items(result)
    parts: list[tuple[list[data.Sentence], list[str], list[list[str]]]] = []
    for item in found:
        if isinstance(item, Verdict):
            parts.append((list(item.sentences), [], []))
        elif isinstance(item, Table):
            rows = [[fixed(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in item.rows]
            parts.append(([], list(item.headers), rows))
    return {
        "system": system,
        "parts": parts,
        "cells": [(label, qids[:LINKED], max(len(qids) - LINKED, 0)) for label, qids in _cells(result).items()],
        "notes": str(notes).split("\n"),
        "drawing": drawing(result.plot()),
    }


def _cells(result: Outcomes) -> dict[str, list[str]]:
    """Return the queries of each cell of the table: complete or not, correct or wrong."""
    cells: dict[str, list[str]] = {f"{side}, {word}": [] for side in SIDES.values() for word in ("correct", "wrong")}
    for each in result.queries:
        cells[f"{SIDES[each.complete]}, {'correct' if each.score >= CORRECT else 'wrong'}"].append(each.qid)
    return cells


def _sentence(result: Outcomes) -> str:
    """Return counts on both sides, or mean scores where queries have several answers or scores between 0 and 1."""
    counts = {}
    for side in SIDES:
        scores = [each.score for each in result.queries if each.complete == side]
        mean = f"{math.fsum(scores) / max(len(scores), 1):.3f} ({counted(len(scores), 'query')})"
        counts[side] = f"{math.fsum(scores):,.0f} of {len(scores):,}" if result.is_plain else mean if scores else ""
    are = "{} answers are correct" if result.is_plain else "answers score {} on average"
    at = at_cutoff(int(result.cutoff) if result.cutoff.isdigit() else result.cutoff or None)
    alone = [side for side in SIDES if not any(each.complete != side for each in result.queries)]
    if alone:
        return f"Retrieval is {SIDES[alone[0]]}{at} for every answered query: {are.format(counts[alone[0]])}."
    return f"When retrieval is complete{at}, {are.format(counts[True])}; when it is not, {counts[False]}."


def _texts(result: Outcomes, name: str) -> list[str]:
    """Return a share as counts, as a percentage, and its interval."""
    share = result.shares.get(name)
    if share is None:
        return ["", "–", "–"]
    digits = 0 if result.is_plain else 1
    value, low, high = (f"{100 * each:.1f}%" for each in (share.value, *share.interval))
    counts = "" if share.part is None else f"{share.part:,.{digits}f} of {share.whole:,.{digits}f}"
    return [counts, value, f"{low} to {high}"]
