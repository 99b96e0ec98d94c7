"""What runs miss, told: the worst queries of one run, and the groups that the fewest of several runs meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.comparison.misses import HardestGroups
from groupgt.errors import first_of
from groupgt.evaluation.misses import GROUPS, Misses, place_of
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.verdict import NAMED, appended, doubt, doubts, enumerated, every, subject
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import ALTERNATIVES, Grid, counted, snippet

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure
    from groupgt.render.page import data

SNIPPET_CHARS = 60
RANK = "rank of the first hit"


class MissesTeller(Teller[Misses]):
    """The worst queries of one run with their groups."""

    @property
    def main_figure(self) -> str:
        """The groups, where any is missed."""
        return "groups" if self.result.queries else ""

    def blocks(self) -> list[Item]:
        """How many queries miss a group, the worst of them, and as a detail coverage by the number of the group."""
        misses = self.result
        parts: list[Item] = [Verdict(list(self._sentences()))]
        headers, rows = self._grid(misses.texts, GROUPS, ALTERNATIVES)
        if rows:
            parts.append((headers, rows))
        if len(misses.queries) < misses.incomplete:
            parts.append(f"the worst {len(misses.queries):,} of {misses.incomplete:,} queries; --worst lists more")
        if texts := [f"{query['qid']}: {query['query']}" for query in misses.queries if query["query"]]:
            parts.append("\n".join(texts))
        headers = ["group number", "groups", f"met in the first {misses.k}", "met anywhere"]
        cells = [[str(row["number"]), row["groups"], row["met"], row["anywhere"]] for row in misses.by_group]
        parts.append(Detail((headers, cells[:GROUPS])))
        if len(cells) > GROUPS:
            parts.append(Detail(f"and {len(cells) - GROUPS:,} more group numbers, up to {cells[-1][0]}"))
        return parts

    def _sentences(self) -> Iterator[data.Sentence]:
        """How many queries have all they need, and whether the rest comes later or not at all."""
        misses = self.result
        complete = f"{misses.evaluated - misses.incomplete:,} of {counted(misses.evaluated, 'query', 'queries')}"
        sentence = f" meets every group within {_first_results(misses.k)} for {complete}"
        missed = sum(round(row["groups"] * (1 - row["met"])) for row in misses.by_group)
        never = sum(round(row["groups"] * (1 - row["anywhere"])) for row in misses.by_group)
        if missed == 1:
            sentence += f", and misses 1 group, which {'is not in its results at all' if never else 'comes later'}"
        elif never in (0, missed) and missed:
            none, every_one = ("neither", "both") if missed == 2 else ("none", "all")
            where = f"{none} of which is in its results" if never else f"{every_one} of which come later"
            sentence += f", and misses {counted(missed, 'group')}, {where}"
        elif missed:
            later = missed - never
            where = f"{never:,} {'is' if never == 1 else 'are'} not in its results at all"
            where += f", {later:,} {'comes' if later == 1 else 'come'} later"
            sentence += f", and misses {counted(missed, 'group')}: {where}"
        yield {"kind": "best", "parts": [*subject(misses.run), f"{sentence}."]}
        yield from map(doubt, doubts({misses.run: misses.evaluation}))

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The groups of the queries listed, by the rank of their first hit."""
        return {"groups": self._groups}

    def _groups(self) -> Figure:
        misses = self.result
        rows = [
            {"group": f"{query['qid']}: {group['group']}", "system": misses.run, "rank": group["rank"]}
            for query in misses.queries
            for group in query["groups"]
        ]
        note = "" if len(misses.queries) == misses.evaluated else f"the worst {len(misses.queries):,} of them"
        return _group_ranks(rows, misses.evaluation, misses.evaluated, note)

    def csv_rows(self) -> Grid:
        """Headers and a row for each group of the queries listed."""
        return self._grid({})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python."""
        names = ("k", "queries", "by_group", "incomplete", "evaluated")
        plain: dict[str, Any] = nulls({name: getattr(self.result, name) for name in names})
        return plain

    def _grid(self, texts: Mapping[str, str], groups: int | None = None, alternatives: int | None = None) -> Grid:
        """A row for each group of the queries listed; the first alternative with its text, if known.

        `groups` and `alternatives` are how many of them are shown (default: all).
        """
        k = self.result.k
        rows: list[list[Any]] = []
        for query in self.result.queries:
            shown = _unmet_first(query["groups"], groups)
            for group in shown:
                names = first_of(group["alternatives"], alternatives, " or ") or "no alternatives"
                if group["alternatives"] and group["alternatives"][0] in texts:
                    names += f": {snippet(texts[group['alternatives'][0]], SNIPPET_CHARS)}"
                rows.append([query["qid"], group["group"], place_of(group, query["results"], k), names])
            if hidden := len(query["groups"]) - len(shown):
                unmet = sum(not group["met"] for group in query["groups"]) - sum(not group["met"] for group in shown)
                rows.append([query["qid"], f"{hidden:,} more", f"{unmet:,} of them not in the first {k}", ""])
        return ["query", "group", "met", "alternatives"], rows


def _unmet_first(groups: list[dict[str, Any]], most: int | None) -> list[dict[str, Any]]:
    """Some groups of a query, those first that are not met, in their order."""
    if most is None or len(groups) <= most:
        return groups
    chosen = sorted(range(len(groups)), key=lambda place: groups[place]["met"])[:most]
    return [groups[place] for place in sorted(chosen)]


def _first_results(k: int) -> str:
    """How a sentence calls the results that are looked at.

    >>> _first_results(1), _first_results(10)
    ('the first result', 'the first 10 results')
    """
    return "the first result" if k == 1 else f"the first {k:,} results"


def _group_ranks(rows: Sequence[Mapping[str, Any]], evaluation: Evaluation, queries: int, note: str) -> Figure:
    """Groups by the rank of their first hit."""
    from groupgt.evaluation.systems import policy_text
    from groupgt.render.encodings import About
    from groupgt.render.figures import group_ranks

    return group_ranks(rows, About(RANK, queries, evaluation.convention, policy_text(evaluation.policy), note))


class HardestGroupsTeller(Teller[HardestGroups]):
    """The groups that the fewest runs meet."""

    @property
    def main_figure(self) -> str:
        """The groups, where any is missed."""
        return "groups" if self.result.failures.unmet.any() else ""

    def blocks(self) -> list[Item]:
        """How many queries each run completes, and the groups with the rank at which each run has them."""
        failures = self.result.failures
        headers, rows = self._grid(self.result.texts, ALTERNATIVES)
        parts: list[Item] = [Verdict(list(self._sentences()))]
        parts.append((headers, rows) if rows else "every run meets every group")
        unmet = int(failures.unmet.sum())
        if unmet > len(rows):
            parts.append(f"the hardest {len(rows):,} of {unmet:,} groups that at least one run misses")
        qids = dict.fromkeys(row[0] for row in rows)
        if texts := [f"{qid}: {text}" for qid in qids if (text := failures.text_of(qid))]:
            parts.append("\n".join(texts))
        return parts

    def _sentences(self) -> Iterator[data.Sentence]:
        """For how many queries each run meets every group, the most first, and how many no run completes."""
        failures = self.result.failures
        count = counted(int(failures.counted.sum()), "query", "queries")
        counts = sorted(failures.solved_counts.items(), key=lambda pair: -pair[1])
        within = f" within {_first_results(failures.cutoff)}" if isinstance(failures.cutoff, int) else ""
        tied = [name for name, solved in counts if solved == counts[0][1]]
        sentence = f" every group{within} for {counts[0][1]:,} of {count}"
        parts = enumerated(tied, f" {'meets' if len(tied) == 1 else 'meet'}{sentence}")
        if len(tied) == len(counts) > 1:
            parts = [f"{every(len(tied), 'run')} meet{sentence}"]
        named, others = counts[len(tied) :][: NAMED - 1], counts[len(tied) :][NAMED - 1 :]
        for name, solved in named:
            parts = appended(parts, ", ", name, f" for {solved:,}")
        if others:
            parts[-1] += f", {counted(len(others), 'other')} for at most {others[0][1]:,}"
        none = len(failures.nobody)
        parts[-1] += f"; no run does for {none:,}." if none else "; for every query some run does."
        yield {"kind": "best", "parts": parts}
        yield from map(doubt, doubts(self.result.evaluations))

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The groups listed: the rank of their first hit in each run."""
        return {"groups": self._groups}

    def _groups(self) -> Figure:
        failures = self.result.failures
        hardest = failures.hardest(self.result.worst)
        rows = [
            {"group": f"{group['qid']}: {group['group']}", "system": name, "rank": rank}
            for group in hardest
            for name, rank in group["ranks"].items()
        ]
        note = f"the {len(hardest):,} groups that the fewest runs meet"
        first = next(iter(self.result.evaluations.values()))
        return _group_ranks(rows, first, int(failures.counted.sum()), note)

    def csv_rows(self) -> Grid:
        """Headers and a row for each group, with the rank at which each system has it."""
        return self._grid(self.result.texts)

    def to_dict(self) -> Any:
        """Who solves what, and the hardest groups, as plain Python."""
        return self.result.failures.to_dict(self.result.worst)

    def _grid(self, texts: Mapping[str, str], most: int | None = None) -> Grid:
        """A row for each group; `most` is how many of its alternatives are shown (default: all)."""
        rows: list[list[Any]] = []
        for group in self.result.failures.hardest(self.result.worst):
            names = first_of(group["alternatives"], most, " or ") or "no alternatives"
            text = " ".join(texts.get((*group["alternatives"], "")[0], "").split())
            ranks = ["–" if rank is None else f"{rank:,}" for rank in group["ranks"].values()]
            rows.append([group["qid"], group["group"], *ranks, f"{names}: {text[:59]}" if text else names])
        return ["query", "group", *self.result.failures.systems, "alternatives"], rows
