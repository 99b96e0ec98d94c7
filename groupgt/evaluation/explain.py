"""One query worked out: who hit what, and each formula with its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupgt.engines.base import Labelled
from groupgt.engines.rankings import ranking_for
from groupgt.errors import DataError, near_names
from groupgt.metrics.language import Metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.render import tables
from groupgt.render.numbers import fixed

SHOWN = 20


def position_of(truth: GroundTruth, qid: str) -> int:
    """The position of a query; raises `DataError` that lists near ones."""
    if qid not in truth.index:
        raise DataError(f"query {qid!r} is not in the ground truth{near_names(qid, truth.qids)}")
    return truth.index[qid]


def worked_out(labelled: Labelled, position: int, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """For each metric its formula, the formula filled in, and the value."""
    rows = []
    for metric in metrics:
        value = float(metric.values(labelled.hits)[position])
        defined = bool(labelled.hits.judgments.defined[position])
        rows.append(
            {
                "metric": str(metric),
                "formula": metric.formula.text,
                "worked": metric.explanation(labelled.hits, position) if defined else None,
                "value": value if defined else float("nan"),
            }
        )
    return rows


def explanation(
    truth: GroundTruth,
    run: Run,
    labelled: Labelled,
    policy: Policy,
    qid: str,
    metrics: Sequence[Metric],
    corpus: Mapping[str, str] | None = None,
    labeller: str = "id",
) -> str:
    """The query, its groups, the hit matrix by rank, and every formula with its figures filled in."""
    position = position_of(truth, qid)
    parts = [
        _heading(truth, position),
        _groups(truth, position, corpus),
        _matrix(truth, run, labelled, policy, position, corpus),
    ]
    if labeller != "id":
        parts.append(f"labeller {labeller}; a repeat hits what an earlier result has hit, and earns nothing")
    if not labelled.hits.judgments.defined[position]:
        parts.append("no group with a relevant alternative: the query is undefined and counts in no mean")
    for row in worked_out(labelled, position, metrics):
        figures = row["worked"] if row["worked"] is not None else "undefined"
        parts.append(f"{row['metric']} = {fixed(row['value'])}\n  {row['formula']}\n  = {figures}")
    return "\n\n".join(parts)


def as_dict(
    truth: GroundTruth, run: Run, labelled: Labelled, policy: Policy, qid: str, metrics: Sequence[Metric]
) -> dict[str, Any]:
    """The same as plain Python: the groups, every result with the groups it hits (from 1), and the formulas."""
    position = position_of(truth, qid)
    hits = labelled.hits
    met: dict[int, list[int]] = {}
    first = int(np.searchsorted(truth.group_query, position))
    for row in np.flatnonzero((hits.query == position) & ~hits.repeat).tolist():
        alternative = int(hits.alternative[row])
        if truth.grade[alternative] > 0:
            met.setdefault(int(hits.rank[row]), []).append(int(truth.group_of[alternative]) - first + 1)
    ids, _ = ranking_for(run, qid, policy)
    return {
        "qid": qid,
        "query": truth.texts[position] if truth.texts else None,
        "groups": truth[qid],
        "results": [{"rank": rank, "id": name, "hits": met.get(rank, [])} for rank, name in enumerate(ids, 1)],
        "metrics": worked_out(labelled, position, metrics),
    }


def _heading(truth: GroundTruth, position: int) -> str:
    text = truth.texts[position] if truth.texts else None
    return f"query {truth.qids[position]}" + (f": {text}" if text else "")


def _groups(truth: GroundTruth, position: int, corpus: Mapping[str, str] | None) -> str:
    lines = []
    for number, group in enumerate(np.flatnonzero(truth.group_query == position).tolist()):
        own = np.flatnonzero(truth.group_of == group).tolist()
        cells = []
        for a in own:
            grade = f" (grade {truth.grade[a]:g})" if truth.grade[a] != 1 else ""
            cells.append(f"{truth.ids[a]}{grade}")
        weight = f", weight {truth.group_weight[group]:g}" if truth.group_weight[group] != 1 else ""
        label = truth.group_label(group)
        title = label if label == f"group {number + 1}" else f"group {number + 1} ({label})"
        lines.append(f"{title}{weight}: {' or '.join(cells)}")
        lines += [
            f"    {truth.ids[a]}: {_snippet(corpus[truth.ids[a]])}" for a in own if corpus and truth.ids[a] in corpus
        ]
    return "\n".join(lines) if lines else "no groups"


def _matrix(
    truth: GroundTruth,
    run: Run,
    labelled: Labelled,
    policy: Policy,
    position: int,
    corpus: Mapping[str, str] | None,
) -> str:
    hits = labelled.hits
    length = int(hits.length[position])
    if not length:
        return "no results"
    ids, _ = ranking_for(run, truth.qids[position], policy)
    own = np.flatnonzero(hits.query == position)
    groups = np.flatnonzero(truth.group_query == position).tolist()
    marks: dict[int, dict[int, str]] = {}
    for row in own.tolist():
        alternative = int(hits.alternative[row])
        mark = "1" if truth.grade[alternative] > 0 else "0"
        shown = "(repeat)" if hits.repeat[row] else mark
        marks.setdefault(int(hits.rank[row]), {})[int(truth.group_of[alternative])] = shown
    ranks = sorted({*range(1, min(length, SHOWN) + 1), *marks})
    headers = ["rank", "result", *(f"g{number}" for number in range(1, len(groups) + 1))]
    rows: list[list[Any]] = []
    for rank in ranks:
        cells = [marks.get(rank, {}).get(group, "·") for group in groups]
        name = ids[rank - 1] if rank <= len(ids) else "?"
        if corpus is not None and name in corpus:
            name = f"{name}: {_snippet(corpus[name])}"
        rows.append([str(rank), name, *cells])
    text = tables.table(headers, rows)
    hidden = length - len(ranks)
    note = f"\n{hidden:,} more of {length:,} results hit nothing" if hidden else f"\n{length:,} results"
    return text + note


def _snippet(text: str, size: int = 70) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"
