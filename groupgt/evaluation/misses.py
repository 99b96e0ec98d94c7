"""What was missed: the unmet groups of the worst queries, the rank of their first hit, coverage by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupgt.evaluation.result import Evaluation
from groupgt.metrics import views
from groupgt.model.sums import total
from groupgt.render import tables


@dataclass(frozen=True)
class Misses:
    """The worst queries with their groups, and how far each group by number is covered.

    `queries` lists dicts with `qid`, `query`, `coverage`, `results` and `groups`; a group has `group`, `rank` (None
    where no result meets it), `met` (within k) and `alternatives`. `by_group` has one dict per group number.
    """

    k: int
    queries: list[dict[str, Any]]
    by_group: list[dict[str, Any]]
    incomplete: int
    evaluated: int

    def grid(self, corpus: Mapping[str, str] | None = None) -> tuple[list[str], list[list[Any]]]:
        """Headers and a row for each group of the queries listed."""
        rows: list[list[Any]] = []
        for query in self.queries:
            for group in query["groups"]:
                wanted = " or ".join(group["alternatives"])
                if corpus is not None and group["alternatives"][0] in corpus:
                    wanted += f": {_snippet(corpus[group['alternatives'][0]])}"
                rows.append([query["qid"], group["group"], _place(group, query["results"], self.k), wanted])
        return ["query", "group", "met", "alternatives"], rows

    def text(self, style: str = tables.DEFAULT, corpus: Mapping[str, str] | None = None) -> str:
        """Both tables."""
        lines = [f"{self.incomplete:,} of {self.evaluated:,} queries miss a group in the first {self.k}"]
        headers, rows = self.grid(corpus)
        if rows:
            lines.append(tables.table(headers, rows, style))
            lines.append("\n".join(f"{query['qid']}: {query['query']}" for query in self.queries if query["query"]))
        numbers = ["group number", "groups", f"met in the first {self.k}", "met anywhere"]
        cells = [[str(each["number"]), each["groups"], each["met"], each["anywhere"]] for each in self.by_group]
        lines.append(tables.table(numbers, cells, style))
        return "\n\n".join(line for line in lines if line)


def _place(group: dict[str, Any], results: int, k: int) -> str:
    if group["rank"] is None:
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {group['rank']:,}" + ("" if group["met"] else f" (beyond {k})")


def _snippet(text: str, size: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"


def misses(evaluation: Evaluation, k: int = 10, worst: int = 20) -> Misses:
    """The queries that miss most within k, worst first: by weight met, then by how late the rest comes.

    >>> import groupgt
    >>> result = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, ["recall"])
    >>> misses(result, k=2).queries[0]["groups"][1]["rank"]
    3
    """
    truth, hits = evaluation.truth, evaluation.labelled.hits
    judgments = truth.judgments
    rows = views.met_groups(hits)
    rank = np.zeros(len(judgments.group_query), dtype=np.int64)
    rank[rows.group] = rows.rank
    met = (rank > 0) & (rank <= k)
    covered = total(judgments.group_query, judgments.weight * met, len(truth))
    share = np.divide(covered, judgments.total_weight, out=np.ones(len(truth)), where=judgments.total_weight > 0)
    found = total(judgments.group_query, (rank > 0) / np.maximum(rank, 1), len(truth))
    complete = np.bincount(judgments.group_query[met], minlength=len(truth)) == judgments.groups
    counted = judgments.defined
    if evaluation.policy.missing == "skip":
        counted = counted & evaluation.labelled.present
    candidates = np.flatnonzero(counted & ~complete)
    order = candidates[np.lexsort((candidates, found[candidates], share[candidates]))][:worst]
    given = _given_groups(evaluation)
    queries = []
    for position in order.tolist():
        own = np.flatnonzero(judgments.group_query == position).tolist()
        queries.append(
            {
                "qid": truth.qids[position],
                "query": truth.texts[position] if truth.texts else None,
                "coverage": float(share[position]),
                "results": int(hits.length[position]),
                "groups": [
                    {
                        "group": truth.group_label(int(given[group])),
                        "rank": int(rank[group]) or None,
                        "met": bool(met[group]),
                        "alternatives": [
                            truth.ids[a]
                            for a in np.flatnonzero((truth.group_of == given[group]) & (truth.grade > 0)).tolist()
                        ],
                    }
                    for group in own
                ],
            }
        )
    return Misses(k, queries, _by_number(evaluation, rank, met, counted), len(candidates), int(counted.sum()))


def _given_groups(evaluation: Evaluation) -> Any:
    """For each group that metrics see, its number among the groups as given."""
    truth = evaluation.truth
    return np.unique(truth.group_of[truth.grade > 0])


def _by_number(evaluation: Evaluation, rank: Any, met: Any, counted: Any) -> list[dict[str, Any]]:
    judgments = evaluation.truth.judgments
    first = np.searchsorted(judgments.group_query, judgments.group_query)
    number = np.arange(len(judgments.group_query)) - first + 1
    out = []
    for each in np.unique(number[counted[judgments.group_query]]).tolist():
        own = (number == each) & counted[judgments.group_query]
        total = int(own.sum())
        shares = {"met": float(met[own].sum() / total), "anywhere": float((rank[own] > 0).sum() / total)}
        out.append({"number": int(each), "groups": total, **shares})
    return out
