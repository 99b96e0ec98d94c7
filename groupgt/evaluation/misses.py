"""What an `Evaluation` missed: the unmet groups of the worst queries, where each is first hit, coverage by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupgt.errors import printable
from groupgt.evaluation.result import Evaluation
from groupgt.metrics import views
from groupgt.model.hits import Bools, Ints
from groupgt.model.values import total
from groupgt.render import tables

SNIPPET = 60


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
        """Headers and a row for each group of the queries listed; the first alternative with its text, if known."""
        rows: list[list[Any]] = []
        for query in self.queries:
            for group in query["groups"]:
                alternatives = " or ".join(group["alternatives"])
                if corpus is not None and group["alternatives"][0] in corpus:
                    alternatives += f": {tables.snippet(corpus[group['alternatives'][0]], SNIPPET)}"
                rows.append([query["qid"], group["group"], _place(group, query["results"], self.k), alternatives])
        return ["query", "group", "met", "alternatives"], rows

    def text(self, style: str = tables.DEFAULT, corpus: Mapping[str, str] | None = None) -> str:
        """How many queries miss a group, the worst of them, and coverage by the number of the group."""
        parts = [f"{self.incomplete:,} of {self.evaluated:,} queries miss a group in the first {self.k}"]
        headers, rows = self.grid(corpus)
        if rows:
            parts.append(tables.table(headers, rows, style))
            questions = [f"{query['qid']}: {query['query']}" for query in self.queries if query["query"]]
            parts.append(printable("\n".join(questions)))
        headers = ["group number", "groups", f"met in the first {self.k}", "met anywhere"]
        cells = [[str(row["number"]), row["groups"], row["met"], row["anywhere"]] for row in self.by_group]
        parts.append(tables.table(headers, cells, style))
        return "\n\n".join(part for part in parts if part)


def misses(evaluation: Evaluation, k: int = 10, worst: int = 20) -> Misses:
    """The queries that miss most within k, worst first: by weight met, then by how late the rest comes.

    >>> import groupgt
    >>> result = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "x", "b"]}, ["recall"])
    >>> misses(result, k=2).queries[0]["groups"][1]["rank"]
    3
    """
    truth, hits = evaluation.truth, evaluation.labelled.hits
    judgments = truth.judgments
    met_rows = views.met_groups(hits)
    # The rank of the first hit of each group, shape (G,); 0 if there is none.
    rank = np.zeros(len(judgments.group_query), dtype=np.int64)
    rank[met_rows.group] = met_rows.rank
    met = (rank > 0) & (rank <= k)
    covered = total(judgments.group_query, judgments.weight * met, len(truth))
    coverage = np.divide(covered, judgments.total_weight, out=np.ones(len(truth)), where=judgments.total_weight > 0)
    earliness = total(judgments.group_query, (rank > 0) / np.maximum(rank, 1), len(truth))
    complete = np.bincount(judgments.group_query[met], minlength=len(truth)) == judgments.groups
    counted = judgments.defined
    if evaluation.policy.missing == "skip":
        counted = counted & evaluation.labelled.present
    incomplete = np.flatnonzero(counted & ~complete)
    order = np.lexsort((incomplete, earliness[incomplete], coverage[incomplete]))
    # Groups without a relevant alternative are none to metrics: the number of each other one among those given.
    given = np.unique(truth.group_of[truth.grade > 0])
    queries = []
    for query in incomplete[order][:worst].tolist():
        groups = []
        for group in np.flatnonzero(judgments.group_query == query).tolist():
            alternatives = np.flatnonzero((truth.group_of == given[group]) & (truth.grade > 0)).tolist()
            groups.append(
                {
                    "group": truth.group_label(int(given[group])),
                    "rank": int(rank[group]) or None,
                    "met": bool(met[group]),
                    "alternatives": [truth.ids[alternative] for alternative in alternatives],
                }
            )
        queries.append(
            {
                "qid": truth.qids[query],
                "query": truth.texts[query] if truth.texts else None,
                "coverage": float(coverage[query]),
                "results": int(hits.length[query]),
                "groups": groups,
            }
        )
    by_group = _coverage_by_number(judgments.group_query, rank, met, counted)
    return Misses(k, queries, by_group, len(incomplete), int(counted.sum()))


def _place(group: dict[str, Any], results: int, k: int) -> str:
    if group["rank"] is None:
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {group['rank']:,}" + ("" if group["met"] else f" (beyond {k})")


def _coverage_by_number(group_query: Ints, rank: Ints, met: Bools, counted: Bools) -> list[dict[str, Any]]:
    """Of the first groups of all queries that count, of the second …, the shares met within k and anywhere."""
    first = np.searchsorted(group_query, group_query)
    number = np.arange(len(group_query)) - first + 1
    of_counted = counted[group_query]
    rows = []
    for each in np.unique(number[of_counted]).tolist():
        chosen = (number == each) & of_counted
        size = int(chosen.sum())
        shares = {"met": float(met[chosen].sum() / size), "anywhere": float((rank[chosen] > 0).sum() / size)}
        rows.append({"number": int(each), "groups": size, **shares})
    return rows
