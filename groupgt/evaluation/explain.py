"""One query of an `Evaluation` laid out: its groups, who hit what at which rank, and each formula with its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupgt.engines.base import carrier_of
from groupgt.errors import DataError, near_names, printable
from groupgt.evaluation.result import Evaluation
from groupgt.metrics.language import Metric
from groupgt.model.ground_truth import GroundTruth
from groupgt.render.tables import fixed, snippet, table

# So many results are shown though they hit nothing.
SHOWN = 20
SNIPPET = 70


def explanation(
    evaluation: Evaluation, qid: str, metrics: Sequence[Metric], corpus: Mapping[str, str] | None = None
) -> str:
    """The query, its groups, the hit matrix by rank, and every formula with its figures filled in."""
    query = _number_of(evaluation.truth, qid)
    text = evaluation.truth.texts[query] if evaluation.truth.texts else None
    parts = [
        f"query {qid}" + (f": {text}" if text else ""),
        _groups_text(evaluation.truth, query, corpus),
        _hit_matrix(evaluation, query, corpus),
    ]
    if evaluation.labeller.name != "id":
        parts.append(
            f"labeller {evaluation.labeller}; a repeat hits what an earlier result has already hit, and earns nothing"
        )
    if not evaluation.truth.judgments.defined[query]:
        parts.append("no group with a relevant alternative: the query is undefined and left out of all means")
    for row in _figures(evaluation, query, metrics):
        lines = [f"{row['metric']} = {fixed(row['value'])}", f"  {row['formula']}"]
        if row["worked"] is not None or np.isnan(row["value"]):
            lines.append(f"  = {row['worked'] or 'undefined'}")
        parts.append("\n".join(lines))
    return printable("\n\n".join(parts))


def explanation_dict(evaluation: Evaluation, qid: str, metrics: Sequence[Metric]) -> dict[str, Any]:
    """The same as plain Python: the groups, every result with the groups it hits (from 1), and the formulas."""
    truth, hits = evaluation.truth, evaluation.labelled.hits
    query = _number_of(truth, qid)
    first_group = int(np.searchsorted(truth.group_query, query))
    groups_hit: dict[int, list[int]] = {}
    for row in np.flatnonzero((hits.query == query) & ~hits.repeat).tolist():
        alternative = int(hits.alternative[row])
        if truth.grade[alternative] > 0:
            group = int(truth.group_of[alternative]) - first_group + 1
            groups_hit.setdefault(int(hits.rank[row]), []).append(group)
    ids, _ = carrier_of(evaluation.run).ranking(qid, evaluation.policy)
    return {
        "qid": qid,
        "query": truth.texts[query] if truth.texts else None,
        "groups": truth[qid],
        "results": [{"rank": rank, "id": name, "hits": groups_hit.get(rank, [])} for rank, name in enumerate(ids, 1)],
        "metrics": _figures(evaluation, query, metrics),
    }


def _number_of(truth: GroundTruth, qid: str) -> int:
    if qid not in truth.index:
        raise DataError(f"query {qid!r} is not in the ground truth{near_names(qid, truth.qids)}")
    return truth.index[qid]


def _figures(evaluation: Evaluation, query: int, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """For each metric its formula, the formula filled in, and the value."""
    hits = evaluation.labelled.hits
    defined = bool(hits.judgments.defined[query])
    return [
        {
            "metric": str(metric),
            "formula": metric.formula.text,
            "worked": metric.explanation(hits, query) if defined else None,
            "value": float(metric.values(hits)[query]) if defined else float("nan"),
        }
        for metric in metrics
    ]


def _groups_text(truth: GroundTruth, query: int, corpus: Mapping[str, str] | None) -> str:
    lines = []
    for number, group in enumerate(np.flatnonzero(truth.group_query == query).tolist(), 1):
        alternatives = np.flatnonzero(truth.group_of == group).tolist()
        names = [
            truth.ids[each] + (f" (grade {truth.grade[each]:g})" if truth.grade[each] != 1 else "")
            for each in alternatives
        ]
        weight = f", weight {truth.group_weight[group]:g}" if truth.group_weight[group] != 1 else ""
        label = truth.group_label(group)
        title = label if label == f"group {number}" else f"group {number} ({label})"
        lines.append(f"{title}{weight}: {' or '.join(names)}")
        for name in (truth.ids[each] for each in alternatives):
            if corpus and name in corpus:
                lines.append(f"    {name}: {snippet(corpus[name], SNIPPET)}")
    return "\n".join(lines) if lines else "no groups"


def _hit_matrix(evaluation: Evaluation, query: int, corpus: Mapping[str, str] | None) -> str:
    """A row a result, a column a group: the first results, and all that hit something."""
    truth, hits = evaluation.truth, evaluation.labelled.hits
    length = int(hits.length[query])
    if not length:
        return "no results"
    ids, _ = carrier_of(evaluation.run).ranking(truth.qids[query], evaluation.policy)
    groups = np.flatnonzero(truth.group_query == query).tolist()
    marks: dict[int, dict[int, str]] = {}
    for row in np.flatnonzero(hits.query == query).tolist():
        alternative = int(hits.alternative[row])
        mark = "(repeat)" if hits.repeat[row] else "1" if truth.grade[alternative] > 0 else "0"
        marks.setdefault(int(hits.rank[row]), {})[int(truth.group_of[alternative])] = mark
    ranks = sorted({*range(1, min(length, SHOWN) + 1), *marks})
    rows = []
    for rank in ranks:
        name = ids[rank - 1] if rank <= len(ids) else "?"
        if corpus is not None and name in corpus:
            name = f"{name}: {snippet(corpus[name], SNIPPET)}"
        rows.append([str(rank), name, *(marks.get(rank, {}).get(group, "·") for group in groups)])
    headers = ["rank", "result", *(f"g{number}" for number in range(1, len(groups) + 1))]
    hidden = length - len(ranks)
    note = f"{hidden:,} more of {length:,} results hit nothing" if hidden else f"{length:,} results"
    return f"{table(headers, rows)}\n{note}"
