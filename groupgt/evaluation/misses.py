"""What a run missed: the unmet groups of the worst queries, where each is first hit, coverage by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, Faults, display, first_of
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.systems import policy_text
from groupgt.evaluation.verdict import doubt, doubts, subject
from groupgt.metrics import views
from groupgt.model.hits import Bools, Ints
from groupgt.model.validity import is_integer
from groupgt.model.values import total
from groupgt.render import figures, tables
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About
from groupgt.render.exports import nulls
from groupgt.render.page import data
from groupgt.render.results import Result
from groupgt.render.tables import ALTERNATIVES, Grid, counted

SNIPPET = 60
# The most groups of a query that are shown, unmet ones first, and the most rows of the table by group number.
GROUPS = 10


@dataclass(frozen=True)
class Misses(Result):
    """The worst queries with their groups, and how far each group by number is covered.

    `queries` lists dicts with `qid`, `query`, `coverage`, `results` and `groups`; a group has `group`, `rank` (None
    where no result meets it), `met` (within k) and `alternatives`. `by_group` has one dict per group number. `texts`,
    by id, are shown beside ids; `run` is the name of the run, `rules` its convention and policy, and `doubts` says what
    changes how all of it is read.
    """

    k: int
    queries: list[dict[str, Any]]
    by_group: list[dict[str, Any]]
    incomplete: int
    evaluated: int
    texts: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    run: str = "results"
    rules: tuple[str, str] = field(default=("", ""), repr=False)
    doubts: Sequence[str] = field(default=(), repr=False)

    def blocks(self) -> list[Item]:
        """How many queries miss a group, the worst of them, and as a detail coverage by the number of the group."""
        parts: list[Item] = [Verdict(list(self._verdict()))]
        headers, rows = self._grid(self.texts, GROUPS, ALTERNATIVES)
        if rows:
            parts.append((headers, rows))
        if len(self.queries) < self.incomplete:
            parts.append(f"the worst {len(self.queries):,} of {self.incomplete:,} queries; --worst lists more")
        if questions := [f"{query['qid']}: {query['query']}" for query in self.queries if query["query"]]:
            parts.append("\n".join(questions))
        headers = ["group number", "groups", f"met in the first {self.k}", "met anywhere"]
        cells = [[str(row["number"]), row["groups"], row["met"], row["anywhere"]] for row in self.by_group]
        parts.append(Detail((headers, cells[:GROUPS])))
        if len(cells) > GROUPS:
            parts.append(Detail(f"and {len(cells) - GROUPS:,} more group numbers, up to {cells[-1][0]}"))
        return parts

    def _verdict(self) -> Iterator[data.Sentence]:
        """How many queries have all they need, and whether the rest comes later or not at all."""
        complete = f"{self.evaluated - self.incomplete:,} of {counted(self.evaluated, 'query', 'queries')}"
        said = f" meets every group within {first_results(self.k)} for {complete}"
        missed = sum(round(row["groups"] * (1 - row["met"])) for row in self.by_group)
        never = sum(round(row["groups"] * (1 - row["anywhere"])) for row in self.by_group)
        if missed == 1:
            said += f", and misses 1 group, which {'is not in its results at all' if never else 'comes later'}"
        elif never in (0, missed) and missed:
            both = ("neither", "both") if missed == 2 else ("none", "all")
            where = f"{both[0]} of which is in its results" if never else f"{both[1]} of which come later"
            said += f", and misses {counted(missed, 'group')}, {where}"
        elif missed:
            later = missed - never
            where = f"{never:,} {'is' if never == 1 else 'are'} not in its results at all"
            said += (
                f", and misses {counted(missed, 'group')}: {where}, {later:,} {'comes' if later == 1 else 'come'} later"
            )
        yield {"kind": "best", "parts": [*subject(self.run), f"{said}."]}
        yield from map(doubt, self.doubts)

    def plot(self) -> Figure:
        """A figure of the groups of the queries listed, by the rank of their first hit."""
        rows = [
            {"group": f"{query['qid']}: {group['group']}", "system": self.run, "rank": group["rank"]}
            for query in self.queries
            for group in query["groups"]
        ]
        note = "" if len(self.queries) == self.evaluated else f"the worst {len(self.queries):,} of them"
        return figures.group_ranks(rows, About("rank of the first hit", self.evaluated, *self.rules, note))

    def _figure(self) -> Figure | None:
        return self.plot() if self.queries else None

    def csv_rows(self) -> Grid:
        """Headers and a row for each group of the queries listed."""
        return self._grid({})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python."""
        names = ("k", "queries", "by_group", "incomplete", "evaluated")
        plain: dict[str, Any] = nulls({name: getattr(self, name) for name in names})
        return plain

    def _grid(self, texts: Mapping[str, str], groups: int | None = None, alternatives: int | None = None) -> Grid:
        """A row for each group of the queries listed; the first alternative with its text, if known.

        `groups` and `alternatives` are how many of them are shown (default: all).
        """
        rows: list[list[Any]] = []
        for query in self.queries:
            shown = _most_telling(query["groups"], groups)
            for group in shown:
                named = first_of(group["alternatives"], alternatives, " or ") or "no alternatives"
                if group["alternatives"] and group["alternatives"][0] in texts:
                    named += f": {tables.snippet(texts[group['alternatives'][0]], SNIPPET)}"
                rows.append([query["qid"], group["group"], place_of(group, query["results"], self.k), named])
            if hidden := len(query["groups"]) - len(shown):
                unmet = sum(not group["met"] for group in query["groups"]) - sum(not group["met"] for group in shown)
                rows.append([query["qid"], f"{hidden:,} more", f"{unmet:,} of them not in the first {self.k}", ""])
        return ["query", "group", "met", "alternatives"], rows


def _most_telling(groups: list[dict[str, Any]], most: int | None) -> list[dict[str, Any]]:
    """Some groups of a query, those first that are not met, in their order."""
    if most is None or len(groups) <= most:
        return groups
    chosen = sorted(range(len(groups)), key=lambda place: groups[place]["met"])[:most]
    return [groups[place] for place in sorted(chosen)]


@dataclass(frozen=True, eq=False)
class MetRanks:
    """Where each group is first hit: its `rank`, shape (G,), 0 where it never is, and whether that is within `top`.

    `top` is how many results of each query are looked at, shape (Q,).
    """

    evaluation: Evaluation
    top: Ints
    rank: Ints
    met: Bools

    @classmethod
    def of(cls, evaluation: Evaluation, top: Ints | int) -> MetRanks:
        """The ranks of an evaluation; one `top` holds for all queries."""
        judgments, met_rows = evaluation.truth.judgments, views.met_groups(evaluation.labelled.hits)
        rank = np.zeros(len(judgments.group_query), dtype=np.int64)
        rank[met_rows.group] = met_rows.rank
        every = np.broadcast_to(np.asarray(top, dtype=np.int64), len(evaluation.truth))
        return cls(evaluation, every, rank, (rank > 0) & (rank <= every[judgments.group_query]))

    def groups(self, query: int) -> list[dict[str, Any]]:
        """The groups of one query as plain Python: `group`, `rank`, `met` and `alternatives`."""
        truth = self.evaluation.truth
        first, last = np.searchsorted(truth.judgments.group_query, [query, query + 1]).tolist()
        return [
            {
                "group": truth.group_label(given),
                "rank": int(self.rank[group]) or None,
                "met": bool(self.met[group]),
                "alternatives": [name for name, _ in truth.alternatives_of(given)],
            }
            for group, given in enumerate(truth.relevant_groups[first:last].tolist(), first)
        ]


def check_misses(k: int, worst: int) -> None:
    """Raises `ConfigError` for invalid numbers."""
    faults = Faults()
    for option, value in (("k", k), ("worst", worst)):
        if not is_integer(value) or value < 1:
            faults.add(option, f"expected a whole number above 0, found {display(value)}")
    faults.stop(ConfigError)


def misses_of(evaluation: Evaluation, k: int = 10, worst: int = 20, texts: Mapping[str, str] | None = None) -> Misses:
    """The queries that miss most within k, worst first: by weight met, then by how late the rest comes."""
    check_misses(k, worst)
    truth, hits = evaluation.truth, evaluation.labelled.hits
    judgments = truth.judgments
    ranks = MetRanks.of(evaluation, k)
    rank, met = ranks.rank, ranks.met
    covered = total(judgments.group_query, judgments.weight * met, len(truth))
    coverage = np.divide(covered, judgments.total_weight, out=np.ones(len(truth)), where=judgments.total_weight > 0)
    earliness = total(judgments.group_query, (rank > 0) / np.maximum(rank, 1), len(truth))
    complete = np.bincount(judgments.group_query[met], minlength=len(truth)) == judgments.groups
    counts = judgments.groups > 0  # what counts as 0 without a group misses none
    if evaluation.policy.missing == "skip":
        counts = counts & evaluation.labelled.present
    incomplete = np.flatnonzero(counts & ~complete)
    order = np.lexsort((incomplete, earliness[incomplete], coverage[incomplete]))
    queries = [
        {
            "qid": truth.qids[query],
            "query": truth.texts[query] if truth.texts else None,
            "coverage": float(coverage[query]),
            "results": int(hits.length[query]),
            "groups": ranks.groups(query),
        }
        for query in incomplete[order][:worst].tolist()
    ]
    by_group = _coverage_by_number(judgments.group_query, rank, met, counts)
    rules = evaluation.convention, policy_text(evaluation.policy)
    return Misses(
        k,
        queries,
        by_group,
        len(incomplete),
        int(counts.sum()),
        texts or {},
        evaluation.name,
        rules,
        tuple(doubts({evaluation.name: evaluation})),
    )


def first_results(k: int) -> str:
    """How a sentence calls the results that are looked at.

    >>> first_results(1), first_results(10)
    ('the first result', 'the first 10 results')
    """
    return "the first result" if k == 1 else f"the first {k:,} results"


def place_of(group: dict[str, Any], results: int, k: int) -> str:
    """Where a group is met, in words."""
    if not group["alternatives"]:
        return "cannot be met"
    if group["rank"] is None:
        if results == 1:
            return "not its only result"
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {group['rank']:,}" + ("" if group["met"] else f" (beyond {k:,})")


def _coverage_by_number(group_query: Ints, rank: Ints, met: Bools, counted: Bools) -> list[dict[str, Any]]:
    """Of the first groups of all queries that count, of the second …, the shares met within k and anywhere."""
    first = np.searchsorted(group_query, group_query)
    number = np.arange(len(group_query)) - first + 1
    of_counted = counted[group_query]
    rows = []
    for nth in np.unique(number[of_counted]).tolist():
        chosen = (number == nth) & of_counted
        size = int(chosen.sum())
        shares = {"met": float(met[chosen].sum() / size), "anywhere": float((rank[chosen] > 0).sum() / size)}
        rows.append({"number": int(nth), "groups": size, **shares})
    return rows
