"""Explain one query in words: its groups, a table of hits by rank, and a worked example of each formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from groupgt.errors import first_of, printable
from groupgt.evaluation.explain import call_numbers, ids_of, number_of, values_explained
from groupgt.evaluation.misses import complete_within
from groupgt.evaluation.result import Evaluated
from groupgt.metrics.language import Metric
from groupgt.render.document import Block, document
from groupgt.render.layout import PAPER, Screen, wrapped
from groupgt.render.tables import Table, counted, fixed, snippet

# Maximum number of first results shown, and of further ones with a hit.
SHOWN, FURTHER = 20, 30
# Maximum number of groups, of alternatives of each, and of groups in a cell; more than `WIDE` groups share a column.
GROUPS, ALTERNATIVES, IN_CELL, WIDE = 20, 10, 8, 12
SNIPPET = 70
# Maximum length of a worked example, and the length of the end that is kept.
LONGEST, END = 1000, 80


def explanation(
    evaluation: Evaluated,
    qid: str,
    metrics: Sequence[Metric],
    corpus: Mapping[str, str] | None = None,
    screen: Screen = PAPER,
) -> str:
    """Describe a query with its groups, the hit matrix by rank, and a worked example of every formula."""
    truth = evaluation.truth
    query = number_of(truth, qid)
    text = truth.texts[query] if truth.texts else None
    parts = [f"query {qid}" + (f": {text}" if text else ""), _groups_text(evaluation, query, corpus)]
    if left_out := truth.excluded and truth.excluded[query]:
        parts.append(f"left out of its results: {first_of(sorted(left_out), ALTERNATIVES)}")
    if harmful := truth.harmful and truth.harmful[query]:
        parts.append(f"harmful: {first_of(sorted(harmful), ALTERNATIVES)}")
    if evaluation.labeller.name != "id":
        repeat = "a repeat hits an alternative that an earlier result already hit, and scores nothing"
        parts.append(f"labeller {evaluation.labeller}; {repeat}")
    if evaluation.repeats:
        times = round(complete_within(evaluation, None)[query] * len(evaluation.repeats))
        parts.append(f"results are from the first trial; complete in {times:,} of {len(evaluation.repeats):,} trials")
    if not truth.judgments.groups[query]:
        is_defined = evaluation.populations.defined[query]
        counts = "counts as 0" if is_defined else "is undefined (no ground truth) and excluded from all means"
        if evaluation.populations.unanswerable[query]:
            counts = "is declared unanswerable, and counts only in metrics for unanswerable queries"
        parts.append(f"no group with a relevant alternative: the query {counts}")
    for row in values_explained(evaluation, query, metrics):
        trials = row.get("trials", [])
        over = f", over {len(trials):,} trials: {', '.join(map(fixed, trials))}" if trials else ""
        lines = [f"{row['metric']} = {fixed(row['value'])}{over}", f"  {row['formula']}"]
        if row["worked"] is not None or np.isnan(row["value"]):
            first = " (first trial)" if trials else ""
            lines.append(f"  = {_without_middle(row['worked'] or 'undefined')}{first}")
        parts.append("\n".join(lines))
    texts = [wrapped(printable(part), screen.width) for part in parts]
    matrix = "\n".join(document([block], screen=screen) for block in _hit_matrix(evaluation, query, corpus))
    return "\n\n".join([*texts[:2], matrix, *texts[2:]])


def _without_middle(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - END].rstrip()} … ({len(text) - LONGEST:,} more characters) … {text[-END:].lstrip()}"


def _groups_text(evaluation: Evaluated, query: int, corpus: Mapping[str, str] | None) -> str:
    """List a query's groups with their relevant alternatives, and the number of documents judged non-relevant."""
    truth = evaluation.truth
    groups = truth.relevant_groups[truth.group_query[truth.relevant_groups] == query].tolist()
    shown = _most_telling(evaluation, groups)
    lines = []
    for group in shown:
        names = [name + (f" (grade {grade:g})" if grade != 1 else "") for name, grade in truth.alternatives_of(group)]
        weight = f", weight {truth.group_weight[group]:g}" if truth.group_weight[group] != 1 else ""
        alternatives = first_of(names, ALTERNATIVES, " or ") or "no alternatives"
        lines.append(f"{truth.group_label(group)}{weight}: {alternatives}")
        for name in (truth.ids[alternative] for alternative in truth.relevant_in(group)[:ALTERNATIVES]):
            if corpus and name in corpus:
                lines.append(f"    {name}: {snippet(corpus[name], SNIPPET)}")
    if len(shown) < len(groups):
        lines.append(f"and {counted(len(groups) - len(shown), 'more group')}")
    if rejected := int(truth.judgments.rejected[query]):
        lines.append(f"judged non-relevant: {counted(rejected, 'document')}")
    return "\n".join(lines) if lines else "no groups"


def _most_telling(evaluation: Evaluated, groups: list[int]) -> list[int]:
    """Select a few groups if there are many. Prefer covered groups, and keep the order of groups."""
    if len(groups) <= GROUPS:
        return groups
    hits = evaluation.first.labelled.hits
    covered = set(evaluation.truth.group_of[hits.alternative].tolist())
    return sorted(sorted(groups, key=lambda group: group not in covered)[:GROUPS])


def _hit_matrix(evaluation: Evaluated, query: int, corpus: Mapping[str, str] | None) -> list[Block]:
    """Build a table of the first results and any further hits. Many groups share one column."""
    truth, hits = evaluation.truth, evaluation.first.labelled.hits
    length = int(hits.length[query])
    if not length:
        return ["no results"]
    ids = ids_of(evaluation, truth.qids[query])
    calls = call_numbers(evaluation, truth.qids[query])
    marks: dict[int, dict[int, str]] = {}
    rejected: dict[int, str] = {}
    for rank, group, grade, repeat, part, harmful in hits.of_query(query):
        if group:
            mark = "(repeat)" if repeat else "(part)" if part else "1"
            hit = marks.setdefault(rank, {})
            if mark == "1" or group not in hit:
                hit[group] = mark
        elif grade >= 0:
            rejected[rank] = "harmful" if harmful else rejected.get(rank, "not relevant")
    first = range(1, min(length, SHOWN) + 1)
    ranks = [*first, *[rank for rank in sorted(marks) if rank > SHOWN][:FURTHER]]
    groups = range(1, int(truth.judgments.groups[query]) + 1)
    # A result that hits one group may be judged non-relevant to another.
    judged = not (rejected.keys() - marks.keys()).isdisjoint(ranks)
    rows = []
    for rank in ranks:
        name = ids[rank - 1] if rank <= len(ids) else "?"
        if corpus is not None and name in corpus:
            name = f"{name}: {snippet(corpus[name], SNIPPET)}"
        hit = marks.get(rank, {})
        call = [str(calls[rank - 1])] if calls else []
        cells = [_named(hit)] if len(groups) > WIDE else [hit.get(number, "·") for number in groups]
        verdict = ["" if hit else rejected.get(rank, "")] if judged else []
        rows.append([str(rank), *call, name, *cells, *verdict])
    columns = ["hits"] if len(groups) > WIDE else [f"g{number}" for number in groups]
    headers = ["rank", *(["call"] if calls else []), "result", *columns, *(["judged"] if judged else [])]
    note = counted(length, "result")
    if hidden := length - len(ranks):
        hitting = len(marks.keys() - set(ranks))
        relevant = f"of which {hitting:,} are hits" if hitting else "none relevant"
        note = f"{hidden:,} more of {length:,} results, {relevant}"
    return [Table(headers, rows), note]


def _named(hit: Mapping[int, str]) -> str:
    """Format the groups that a result hits as one cell."""
    names = [f"g{number}" if mark == "1" else f"g{number} {mark}" for number, mark in sorted(hit.items())]
    return first_of(names, IN_CELL, " ") or "·"
