"""Report how often answers are correct when retrieval is complete and when it is not, with no claims about causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groupgt.comparison.outcomes import CORRECT, Outcomes
from groupgt.errors import first_of
from groupgt.metrics import views
from groupgt.model.values import nulls
from groupgt.render.columns import level_text
from groupgt.render.document import Detail, Item, Verdict, typeset
from groupgt.render.drawing import Figure, drawing
from groupgt.render.entries import Entries, Entry
from groupgt.render.page import data
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, count_text, counted, counts_text, minus
from groupgt.report.sentences import NAMED, appended, at_cutoff, sentence_of, subject, unit_of

ASSOCIATION = (
    "This is only an association. Harder queries tend to fail at both retrieval and answering, so better "
    "retrieval may not help."
)
SIDES = {True: "complete", False: "incomplete"}
NAMES = {
    "complete": "correct when complete",
    "incomplete": "correct when incomplete",
    "difference": "difference",
    "wrong": "incomplete when wrong",
    "gold": "gained with gold context",
}
# The outcome of queries in each cell of the table, and where to look.
CELLS = {
    "complete, correct": ("worked", ""),
    "complete, wrong": ("had it all, failed", "look at the model"),
    "incomplete, correct": ("correct anyway", "look at the ground truth"),
    "incomplete, wrong": ("missed it, failed", "look at retrieval"),
}
LOOK = (
    "If only the answers fail, look at the model. If only retrieval fails, look at the ground truth. If both fail, "
    "look at retrieval."
)
LEFT_OUT = {
    "unanswerable": "answered queries declared unanswerable",
    "undefined": "answered queries without ground truth or results",
    "unknown": "answers to queries that are not in the ground truth",
    "unjudged": "answers without a judgment",
    "unanswered": "queries without an answer",
}
# Queries named in a cell of the table: in text, and on the page; and those to look at first.
LISTED, LINKED, FIRST = 20, 200, 3


class OutcomesTeller(Teller[Outcomes]):
    """Report answers together with retrieval, with counts before percentages."""

    main_figure = "means"
    fields = tuple(name for name in Outcomes.__dataclass_fields__ if name != "failures")

    def blocks(self) -> list[Item]:
        """Return the conclusion, the table of queries, shares, the queries to look at first, and omitted counts."""
        return list(items(self.result))

    def to_dict(self) -> Any:
        """Return the fields, and a note on what the numbers do not show."""
        return super().to_dict() | {"note": ASSOCIATION}

    def figure(self) -> Figure:
        """Draw the shares of correct answers with complete and with incomplete retrieval."""
        from groupgt.render.encodings import About
        from groupgt.render.figures import forest

        result = self.result
        shares = [(side, result.shares[side]) for side in SIDES.values() if side in result.shares]
        rows = []
        for side, each in shares:
            low, high = each.interval
            rows.append({"name": f"retrieval {side}", "value": each.value, "low": low, "high": high, "kind": ""})
        level = level_text(result.confidence)
        about = About("share of correct answers", len(result.queries), "coverage", ASSOCIATION, level=level)
        return forest(rows, about, title="Correct answers by retrieval")

    def csv_rows(self) -> Grid:
        """Return headers and one row per cell of the table of counts, and per share."""
        result = self.result
        total = len(result.queries)
        rows: list[list[Any]] = [[label, None, None, None, count, total] for label, count in _counts(result).items()]
        rows += [[name, each.value, *each.interval, each.part, each.whole] for name, each in result.shares.items()]
        return ["name", "value", "low", "high", "part", "whole"], nulls(rows)


def items(result: Outcomes) -> Iterator[Item]:
    """Yield everything in reading order."""
    sentences = [_sentence(result), _difference(result)[0], _of_trials(result), ASSOCIATION]
    yield Verdict([sentence_of("note", text) for text in sentences if text])
    counted_in = zip(_counts(result), counts_text(_counts(result).values()))
    counts = [f"{count} {CELLS[label][0]}" for label, count in counted_in]
    yield Table([f"retrieval{_at(result)}", *HEADS], [["complete", *counts[:2]], ["incomplete", *counts[2:]]])
    yield LOOK
    yield Table(*_share_table(result))
    yield from _first_queries(result)
    for label, qids in _cells(result).items():
        yield Detail(f"{label}: {first_of(qids, LISTED) if qids else 'none'}")
    yield "\n".join(_notes(result))


def _notes(result: Outcomes) -> list[str]:
    left_out = [f"{LEFT_OUT[name]} ({count:,})" for name, count in result.left_out.items()]
    lines = [f"left out: {', '.join(left_out)}"] if left_out else []
    return [*lines, f"{counted(len(result.queries), 'query')} with answers"]


def _of_trials(result: Outcomes) -> str:
    """Explain counts over several trials."""
    if result.trials < 2:
        return ""
    return (
        f"Numbers are means over {result.trials:,} trials. In lists, a query is complete if it is complete in at least "
        "half of its trials."
    )


HEADS = ["answer correct", "answer wrong"]


def _at(result: Outcomes) -> str:
    return at_cutoff(int(result.cutoff) if result.cutoff.isdigit() else result.cutoff or None)


def _share_table(result: Outcomes) -> tuple[list[str], list[list[str]]]:
    """Return every share with its counts and its interval."""
    rows = [[NAMES[name], *_texts(result, name)] for name in NAMES if name in result.shares]
    return ["share of answers", "queries", "share", level_text(result.confidence)], rows


def _first_queries(result: Outcomes) -> Iterator[Entries]:
    """Yield the queries to look at first: incomplete retrieval and a wrong answer, most missed groups first."""
    worst = _worst({"": result})
    if not worst:
        return
    entries = [Entry(qid, _covered(result, qid), result.failures.text_of(qid) or "", []) for qid in worst[:FIRST]]
    of = f"{len(entries):,} of {len(worst):,}, " if len(entries) < len(worst) else ""
    title = f"look at these first ({of}incomplete and wrong, most missed groups first)"
    table = Table(["query", "covered", "text"], [[entry.name, entry.count, entry.text] for entry in entries])
    yield Entries(title, entries, table, f"see one: groupgt explain … --query {worst[0]}")


def _groups(result: Outcomes, qid: str) -> tuple[float, int]:
    """Return how many of a query's groups are covered (averaged over trials), and how many it has in total."""
    failures = result.failures
    part = views.part_of(failures.truth.judgments.group_query, failures.truth.index[qid])
    covered = failures.covered[part, 0]
    return float(covered.sum()) / failures.trials[0], len(covered)


def _covered(result: Outcomes, qid: str) -> str:
    covered, groups = _groups(result, qid)
    return f"{count_text(covered)} of {counted(groups, unit_of([result.failures]))}"


def _worst(results: Mapping[str, Outcomes]) -> list[str]:
    """Return the queries that are incomplete and wrong in every result, starting with the most missed groups."""
    lists = [_cells(result)["incomplete, wrong"] for result in results.values()]
    shared = set(lists[0]).intersection(*lists[1:])

    def missed(qid: str) -> float:
        return sum(groups - covered for covered, groups in (_groups(result, qid) for result in results.values()))

    return sorted((qid for qid in lists[0] if qid in shared), key=lambda qid: -missed(qid))


def page_part(results: Mapping[str, Outcomes], about: str | None = None) -> data.Outcomes | None:
    """Return the page data of all systems with answers, or None if there are none.

    If no query is incomplete and wrong in every system, list the queries of one system: `about`, if it has answers.
    """
    if not results:
        return None
    where, listed = {1: "", 2: " in both systems"}.get(len(results), f" in all {len(results):,} systems"), results
    if not _worst(results):
        name = (
            about
            if about is not None and about in results
            else max(results, key=lambda name: len(_worst({name: results[name]})))
        )
        where, listed = f" in {name}", {name: results[name]}
    worst, first = _worst(listed), next(iter(listed.values()))

    def covered(qid: str) -> list[str]:
        return [f"{name} {_covered(each, qid)}" if where else _covered(each, qid) for name, each in listed.items()]

    return {
        "sentences": typeset(_of_systems(results)),
        "note": ASSOCIATION,
        "why": f"incomplete and wrong{where}, most missed groups first",
        "first": [(qid, first.failures.text_of(qid) or "", ", ".join(covered(qid))) for qid in worst[:FIRST]],
        "more": worst[FIRST:][:LINKED],
        "systems": [_system_part(name, each) for name, each in results.items()],
    }


def _of_systems(results: Mapping[str, Outcomes]) -> Iterator[data.Sentence]:
    """Yield one sentence on the wrong answers of all systems, or one per system if any system lacks plain counts."""
    wrong = [(name, each.shares["wrong"]) for name, each in results.items() if each.is_plain and "wrong" in each.shares]
    if len(wrong) < len(results):
        yield from (sentence_of("note", "", name, f": {_sentence(each)}") for name, each in results.items())
        return
    parts = [""]
    for name, share in wrong[:NAMED]:
        one = parts == [""]
        lead, kind, had = ("Of", " wrong answers", " had incomplete retrieval") if one else ("; of", "", "")
        parts = appended(parts, f"{lead} {share.whole:,.0f}{kind} from ", name, f", {share.part:,.0f}{had}")
    yield sentence_of("note", *parts[:-1], f"{parts[-1]}.")


def _system_part(name: str, result: Outcomes) -> data.OutcomesOfSystem:
    """Return the page data of one system."""
    sentence, interval = _difference(result)
    headers, rows = _share_table(result)
    return {
        "system": name,
        "heads": HEADS,
        "sides": [f"retrieval complete{_at(result)}", "retrieval incomplete"],
        "cells": [_cell_part(label, _counts(result)[label], qids) for label, qids in _cells(result).items()],
        "bars": [
            (side, 100 * share.value, 100 * low, 100 * high, f"{100 * share.value:.1f}% correct")
            for side, share in result.shares.items()
            for low, high in [share.interval]
            if side in SIDES.values()
        ],
        "sentence": minus(sentence.removesuffix(f" ({interval}).")) if interval else "",
        "interval": minus(interval),
        "shares": (headers, [[row[0], *map(minus, row[1:])] for row in rows]),
        "notes": [*filter(None, [_of_trials(result)]), *_notes(result)],
        "drawing": drawing(result.plot()),
    }


def _cell_part(label: str, count: float, qids: list[str]) -> data.OutcomeCell:
    (outcome, look), more = CELLS[label], max(len(qids) - LINKED, 0)
    return {"count": count_text(count), "label": outcome, "look": look, "qids": qids[:LINKED], "more": more}


def _counts(result: Outcomes) -> dict[str, float]:
    """Return the number of queries in each cell of the table, weighted by their trials and answers."""
    counts: dict[str, float] = {}
    for side in SIDES.values():
        share = result.shares.get(side)
        part, whole = (0.0, 0.0) if share is None else (share.part or 0.0, share.whole or 0.0)
        counts |= {f"{side}, correct": part, f"{side}, wrong": whole - part}
    return counts


def _cells(result: Outcomes) -> dict[str, list[str]]:
    """Return the queries in each cell of the table. A query is in the cell with most of its trials and answers."""
    cells: dict[str, list[str]] = {f"{side}, {word}": [] for side in SIDES.values() for word in ("correct", "wrong")}
    for each in result.queries:
        cells[f"{SIDES[each.complete]}, {'correct' if each.score >= CORRECT else 'wrong'}"].append(each.qid)
    return cells


def _sentence(result: Outcomes) -> str:
    """Return the counts of wrong answers, or mean scores if queries have several answers or scores between 0 and 1."""
    at, wrong = _at(result), result.shares.get("wrong")
    shares = {side: result.shares[name] for side, name in SIDES.items() if name in result.shares}
    alone = list(shares) if len(shares) == 1 else []
    if result.is_plain:
        if alone:
            count = f"{shares[alone[0]].part:,.0f} of {len(result.queries):,}"
            return f"Retrieval is {SIDES[alone[0]]}{at} for every answered query, and {count} answers are correct."
        if wrong is None:
            lacking = f"{shares[False].whole:,.0f} had incomplete retrieval{at}"
            return f"All {len(result.queries):,} answers are correct, and {lacking}."
        of = f" from {name}" if (name := subject(result.run)[1]) else ""
        return f"Of {wrong.whole:,.0f} wrong answers{of}, {wrong.part:,.0f} had incomplete retrieval{at}."
    means = {side: f"{each.value:.3f} ({counted(each.whole or 0, 'query')})" for side, each in shares.items()}
    if alone:
        side = alone[0]
        return f"Retrieval is {SIDES[side]}{at} for every answered query. Answers score {means[side]} on average."
    return f"Answers score {means[True]} on average when retrieval is complete{at}, and {means[False]} when it is not."


def _difference(result: Outcomes) -> tuple[str, str]:
    """Describe how much better answers are when retrieval is complete, with the CI, or return an empty text."""
    share = result.shares.get("difference")
    if share is None:
        return "", ""
    low, high = (f"{100 * each:.1f}" for each in share.interval)
    signed = f"difference {100 * share.value:.1f}, " if share.value < 0 else ""
    interval = f"{signed}{level_text(result.confidence)} {low} to {high}"
    points = f"{abs(100 * share.value):.1f} points"
    less = share.value < 0
    verb = f"score {points} {'lower' if less else 'higher'}"
    if result.is_plain:
        verb = f"are correct {points} {'less' if less else 'more'} often"
    return f"Answers {verb} where retrieval is complete ({interval}).", interval


def _texts(result: Outcomes, name: str) -> list[str]:
    """Return a share as counts and as a percentage (points for a difference), and its interval."""
    share = result.shares[name]
    digits, is_difference = 0 if result.is_plain else 1, name in ("difference", "gold")
    sign, unit = ("", " points") if is_difference else ("%", "%")
    value, low, high = (f"{100 * each:.1f}" for each in (share.value, *share.interval))
    counts = "" if share.part is None else f"{share.part:,.{digits}f} of {share.whole:,.{digits}f}"
    return [counts, f"{value}{unit}", f"{low}{sign} to {high}{sign}"]
