"""Reports what runs miss: the worst queries of one run, or the groups covered by the fewest of several runs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.comparison.failures import HardestGroups
from groupgt.comparison.systems import Systems
from groupgt.engines.carriers import all_rankings, carrier_of
from groupgt.engines.excluded import condensed_ranking
from groupgt.errors import first_of
from groupgt.evaluation.marks import Marks
from groupgt.evaluation.result import Evaluation, Misses
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.metrics.language import explanations
from groupgt.model.hits import Ints
from groupgt.model.ranking import Ranking
from groupgt.model.values import Budget
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.encodings import About
from groupgt.render.figures import group_ranks
from groupgt.render.page import data
from groupgt.render.page.blocks import score_texts, short
from groupgt.render.results import Teller
from groupgt.render.tables import ALTERNATIVES, Grid, counted, snippet
from groupgt.report.means import about, policy_text
from groupgt.report.sentences import (
    NAMED,
    appended,
    at_cutoff,
    enumerated,
    every,
    sentence_of,
    subject,
    unit_of,
    warning,
    warnings_about,
)

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

SNIPPET_CHARS = 60
# Maximum number of groups shown per query, those not covered first, and of rows of the table by group number.
GROUPS = 10
QUERY_CHARS = 100
RANK = "rank of the first hit"
# Results shown of each ranking.
RESULTS = 20
# Maximum number of worked examples: each takes about a tenth of a millisecond, more with many queries.
FORMULAS = 8_000
# Maximum number of results whose ids are read again; beyond it, only those of the first queries.
READ = 5_000_000
FEW = 200
# Groups in one heat map.
MOST_GROUPS = 40


class MissesTeller(Teller[Misses]):
    """Reports the worst queries of one run and their groups."""

    main_figure = "groups"
    fields = ("k", "queries", "by_group", "incomplete", "evaluated")

    def blocks(self) -> list[Item]:
        """Return the number of incomplete queries, the worst of them, and, as a detail, coverage by group number."""
        misses = self.result
        parts: list[Item] = [Verdict(list(self._sentences()))]
        unit = unit_of([misses.evaluation])
        texts = {query["qid"]: query["query"] for query in misses.queries}
        grid = _in_words(self._grid(misses.texts, GROUPS, ALTERNATIVES), unit, texts)
        if grid[1]:
            parts.append(grid)
        if len(misses.queries) < misses.incomplete:
            parts.append(f"the worst {len(misses.queries):,} of {misses.incomplete:,} queries; --worst lists more")
        if unit != "group":
            return parts  # for documents the number has no meaning
        headers = ["group number", "groups", f"covered at {misses.k}", "covered anywhere"]
        cells = [[str(row["number"]), row["groups"], row["covered"], row["anywhere"]] for row in misses.by_group]
        parts.append(Detail((headers, cells[:GROUPS])))
        if len(cells) > GROUPS:
            parts.append(Detail(f"and {len(cells) - GROUPS:,} more group numbers, up to {cells[-1][0]}"))
        return parts

    def _sentences(self) -> Iterator[data.Sentence]:
        """Report how many queries are complete, and whether missed groups are retrieved later or not at all."""
        misses = self.result
        complete = f"{misses.evaluated - misses.incomplete:,} of {counted(misses.evaluated, 'query')}"
        if trials := len(misses.evaluation.trials):
            complete += f" in all {trials:,} trials"
        unit = unit_of([misses.evaluation])
        sentence = f" completes {complete}{at_cutoff(misses.k)}"
        missed = sum(round(row["groups"] * (1 - row["covered"])) for row in misses.by_group)
        never = sum(round(row["groups"] * (1 - row["anywhere"])) for row in misses.by_group)
        if missed == 1:
            where = f", which {'is not retrieved at all' if never else 'comes later'}"
        elif never in (0, missed):
            none, every_one = ("neither", "both") if missed == 2 else ("none", "all")
            where = f", {none} of which is retrieved" if never else f", {every_one} of which come later"
        else:
            where = f": {counted(never, 'is not retrieved at all', 'are not retrieved at all')}"
            where += f", {counted(missed - never, 'comes later', 'come later')}"
        if missed:
            average = " in an average trial" if misses.evaluation.trials else ""
            sentence += f", and misses {counted(missed, unit)}{average}{where}"
        yield sentence_of("best", *subject(misses.run), f"{sentence}.")
        if misses.harmful:
            queries = counted(len({each["qid"] for each in misses.harmful}), "query")
            yield sentence_of(
                "loss", *subject(misses.run), f" returns harmful passages for {queries}{at_cutoff(misses.k)}."
            )
        yield from map(warning, warnings_about({misses.run: misses.evaluation}))

    def to_dict(self) -> Any:
        """Return the fields to export; harmful results only where the ground truth names some."""
        return super().to_dict() | ({} if self.result.harmful is None else {"harmful": self.result.harmful})

    def figure(self) -> Figure:
        """Draw the listed queries' groups by rank of their first hit."""
        misses = self.result
        rows = [
            {"group": f"{query['qid']}: {group['group']}", "system": misses.run, "rank": group["rank"]}
            for query in misses.queries
            for group in query["groups"]
        ]
        note = "" if len(misses.queries) == misses.evaluated else f"the worst {len(misses.queries):,} of them"
        return _group_ranks(rows, misses.evaluation, misses.evaluated, note)

    def csv_rows(self) -> Grid:
        """Return headers and one row for each group of the listed queries."""
        return self._grid({})

    def _grid(self, texts: Mapping[str, str], groups: int | None = None, alternatives: int | None = None) -> Grid:
        """Return one row for each group of the listed queries, with the text of the first alternative if known.

        `groups` and `alternatives` limit how many are shown (default: all).
        """
        k = self.result.k
        rows: list[list[Any]] = []
        for query in self.result.queries:
            # Up to `groups` of them in their original order, preferring groups that are not covered.
            worst_first = sorted(range(len(query["groups"])), key=lambda place: query["groups"][place]["covered"])
            shown = [query["groups"][place] for place in sorted(worst_first[:groups])]
            for group in shown:
                names = first_of(group["alternatives"], alternatives, " or ") or "no alternatives"
                if group["alternatives"] and group["alternatives"][0] in texts:
                    names += f": {snippet(texts[group['alternatives'][0]], SNIPPET_CHARS)}"
                rows.append([query["qid"], group["group"], place_of(group, query["results"], k), names])
            if hidden := len(query["groups"]) - len(shown):
                of_query, listed = (sum(not group["covered"] for group in some) for some in (query["groups"], shown))
                unmet = of_query - listed
                rows.append([query["qid"], f"{hidden:,} more", f"{unmet:,} of them not in the first {k}", ""])
        for each in self.result.harmful or ():
            rows.append([each["qid"], "", f"harmful at rank {each['rank']:,}", each["id"]])
        return ["query", "group", "first hit", "alternatives"], rows


def place_of(group: dict[str, Any], results: int, k: int) -> str:
    """Describe where a group is covered, and in how many trials, if there are several."""
    if not group["alternatives"]:
        return "cannot be covered"
    if "trials" in group:
        times = f"covered in {group['covered_trials']:,} of {group['trials']:,} trials"
        return times if group["rank"] is None else f"{times}; rank {group['rank']:,} in the first"
    if group["rank"] is None:
        if results == 1:
            return "not its only result"
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {group['rank']:,}" + ("" if group["covered"] else f" (beyond {k:,})")


def _in_words(grid: Grid, unit: str, texts: Mapping[str, str | None]) -> Grid:
    """Add the text of each query to its first row; group of a single document are named after that document."""
    headers, rows = grid
    if unit != "group":
        group, last = headers.index("group"), headers.index("alternatives")
        rows = [[*row[:last], row[last] or row[group], *row[last + 1 :]] for row in rows]
        headers = [*headers[:last], unit, *headers[last + 1 :]]
        headers, *rows = [[*row[:group], *row[group + 1 :]] for row in (headers, *rows)]
    if any(texts.values()):
        before = [None, *(row[0] for row in rows)]
        shown = [
            "" if row[0] == above else snippet(texts.get(row[0]) or "", QUERY_CHARS) for row, above in zip(rows, before)
        ]
        rows = [[row[0], text, *row[1:]] for row, text in zip(rows, shown)]
        headers = [headers[0], "text", *headers[1:]]
    return headers, rows


def _group_ranks(rows: Sequence[Mapping[str, Any]], evaluation: Evaluation, queries: int, note: str) -> Figure:
    return group_ranks(rows, About(RANK, queries, evaluation.convention, policy_text(evaluation.policy), note))


class HardestGroupsTeller(Teller[HardestGroups]):
    """Reports the groups covered by the fewest runs."""

    main_figure = "groups"

    def blocks(self) -> list[Item]:
        """Return the number of queries that each run completes, and the rank of each group in each run."""
        failures = self.result.failures
        unit = unit_of(self.result.evaluations.values())
        grid = self._grid(self.result.texts, ALTERNATIVES)
        rows = grid[1]
        texts = {qid: failures.text_of(qid) for qid in {row[0] for row in rows}}
        table: Item = _in_words(grid, unit, texts) if rows else f"all runs cover all {unit}s"
        parts = [Verdict(list(self._sentences())), table]
        unmet = int(failures.unmet.sum())
        if unmet > len(rows):
            parts.append(f"the hardest {len(rows):,} of {unmet:,} {unit}s that at least one run misses")
        return parts

    def _sentences(self) -> Iterator[data.Sentence]:
        """Report how many queries each run completes, highest first, and how many no run completes."""
        failures = self.result.failures
        count = counted(int(failures.counted.sum()), "query")
        counts = sorted(failures.solved_counts.items(), key=lambda pair: -pair[1])
        tied = [name for name, complete in counts if complete == counts[0][1]]
        sentence = f" {counts[0][1]:,} of {count}{at_cutoff(failures.cutoff)}"
        parts = enumerated(tied, f" {'completes' if len(tied) == 1 else 'complete'}{sentence}")
        if len(tied) == len(counts) > 1:
            parts = [f"{every(len(tied), 'run')} complete{sentence}"]
        others = counts[len(tied) :]
        for name, complete in others[: NAMED - 1]:
            parts = appended(parts, ", ", name, f" {complete:,}")
        if more := others[NAMED - 1 :]:
            parts[-1] += f", {counted(len(more), 'other')} at most {more[0][1]:,}"
        in_none = counted(len(failures.nobody), "is complete in no run", "are complete in no run")
        parts[-1] += f"; {in_none if failures.nobody else 'every query is complete in some run'}."
        yield sentence_of("best", *parts)
        yield from map(warning, warnings_about(self.result.evaluations))

    def figure(self) -> Figure:
        """Draw the listed groups, with the rank of their first hit in each run."""
        failures = self.result.failures
        hardest = failures.hardest(self.result.worst)
        rows = [
            {"group": f"{group['qid']}: {group['group']}", "system": name, "rank": rank}
            for group in hardest
            for name, rank in group["ranks"].items()
        ]
        note = f"the {len(hardest):,} groups covered by the fewest runs"
        first = next(iter(self.result.evaluations.values()))
        return _group_ranks(rows, first, int(failures.counted.sum()), note)

    def csv_rows(self) -> Grid:
        """Return headers and one row per group with its rank in each system."""
        return self._grid(self.result.texts)

    def to_dict(self) -> Any:
        """Return the queries that each system completes and the hardest groups, as plain Python."""
        return self.result.failures.to_dict(self.result.worst)

    def _grid(self, texts: Mapping[str, str], most: int | None = None) -> Grid:
        """Return one row per group; `most` limits the number of alternatives shown (default: all)."""
        rows: list[list[Any]] = []
        for group in self.result.failures.hardest(self.result.worst):
            names = first_of(group["alternatives"], most, " or ") or "no alternatives"
            text = " ".join(texts.get((*group["alternatives"], "")[0], "").split())
            ranks = ["–" if rank is None else f"{rank:,}" for rank in group["ranks"].values()]
            rows.append([group["qid"], group["group"], *ranks, f"{names}: {text[:59]}" if text else names])
        return ["query", "group", *self.result.failures.systems, "alternatives"], rows


# --- Figures and the page: what each result hits.


def _why_never_covered(alternatives: Sequence[Sequence[str]], absent: Collection[str]) -> str:
    """Explains why no result can cover a group, given the ids that each alternative needs; empty if one can.

    >>> _why_never_covered([], []), _why_never_covered([["a"], ["b", "c"]], {"a", "c"})
    ('it has no relevant alternative', 'none of its alternatives is in the corpus')
    """
    if not alternatives:
        return "it has no relevant alternative"
    if not all(any(name in absent for name in members) for members in alternatives):
        return ""
    which = "its only alternative is not" if len(alternatives) == 1 else "none of its alternatives is"
    return f"{which} in the corpus"


def details(systems: Systems, queries: Ints) -> Iterator[data.Detail]:
    """Yield details of the given queries in order; only the first few have worked examples."""
    question_of = {at: place for place, at in enumerate(np.sort(queries).tolist())}
    every_ranking = [_rankings(systems, name, queries) for name in systems.evaluations]
    every_mark = [Marks(each) for each in systems.every]
    every_count = [_times_covered(each, systems.cutoff) for each in systems.every]
    truth = systems.first.truth
    left = FORMULAS
    for at in queries.tolist():
        formulas = None
        left -= len(systems.every) * len(systems.metrics)
        if left >= 0 and any(each.valued[at] for each in systems.every):
            examples: dict[Hashable, list[str | None]] = {}
            formulas = []
            for each in systems.every:
                # Many systems of a sweep have the same hits.
                key = views.query_key(each.labelled.hits, at)
                if key not in examples:
                    worked = explanations(each.metrics.values(), each.labelled.hits, at)
                    has_value = [bool(metric.valued(each.populations)[at]) for metric in each.metrics.values()]
                    examples[key] = [text if there else None for text, there in zip(worked, has_value)]
                formulas.append(examples[key])
        # Each id is stored once and referred to by its index.
        places: dict[str, int] = {}
        groups: list[list[Any]] = []
        for group in every_mark[0].groups(at):
            graded = truth.alternatives_of(group)
            alternatives = [[places.setdefault(name, len(places)), short(grade)] for name, grade in graded]
            cannot = _why_never_covered(truth.members_of(group), systems.absent)
            weight = short(float(truth.group_weight[group]))
            groups.append([truth.group_label(group), weight, alternatives, *([cannot] if cannot else [])])
        important = set(places)
        rankings: list[list[Any] | None] = []
        for by_query, marks, (several, times) in zip(every_ranking, every_mark, every_count):
            if systems.qids[at] not in by_query:
                rankings.append(None)
                continue
            ids, scores = by_query[systems.qids[at]]
            of_query = marks.of(at)
            marked = {rank: ids[rank - 1] for rank, _, _ in of_query if rank <= len(ids)}
            important.update(marked.values())
            top = [places.setdefault(name, len(places)) for name in ids[:RESULTS]]
            far = {rank: places.setdefault(name, len(places)) for rank, name in marked.items() if rank > RESULTS}
            texts = None if scores is None else score_texts([float(score) for score in scores[:RESULTS]])
            covered = times[views.part_of(truth.judgments.group_query, at)].tolist() if several else []
            in_trials = [f"covered in {count:,} of {several:,} trials" for count in covered]
            rankings.append([len(ids), top, texts, of_query, far, *([in_trials] if several else [])])
        yield data.Detail(question_of[at], groups, list(places), important, rankings, formulas)


def _times_covered(evaluation: Evaluation, cutoff: int | Budget | None) -> tuple[int, Ints]:
    """Return the number of trials, and in how many of them each group is covered, shape (G,)."""
    covered = [hits.covered(Cut.at(hits, cutoff).top) for hits in evaluation.hits_in_trials]
    return len(evaluation.trials), np.sum(covered, axis=0)


def _rankings(systems: Systems, name: str, queries: Ints) -> Mapping[str, Ranking]:
    """Return a system's results by query with their original ids."""
    evaluation = systems.evaluations[name]
    run = evaluation.run.by_original_ids

    def measured(qid: str, ranking: Ranking) -> Ranking:
        return condensed_ranking(ranking, evaluation.truth, qid, evaluation.policy)

    if run.is_remote or int(evaluation.labelled.hits.length.sum()) > READ:
        some = [evaluation.truth.qids[at] for at in queries[:FEW].tolist()]
        return {qid: measured(qid, carrier_of(run).ranking(qid, evaluation.policy)) for qid in some}
    return {qid: measured(qid, ranking) for qid, ranking in all_rankings(run, evaluation.policy)}


def groups_figure(systems: Systems, most: int = MOST_GROUPS) -> Figure:
    """Draw covered groups by rank of their first hit for the most informative queries."""
    marks = {name: Marks(each) for name, each in systems.evaluations.items()}
    first = next(iter(marks.values()))
    rows: list[dict[str, Any]] = []
    for at in systems.most_telling.tolist():
        if len(rows) >= most * len(marks):
            break
        hits = {name: at_rank.first_hits(at) for name, at_rank in marks.items()}
        for number, group in enumerate(first.groups(at)):
            label = f"{systems.qids[at]}: {first.truth.group_label(group)}"
            rows += [{"group": label, "system": name, "rank": at_rank.get(number)} for name, at_rank in hits.items()]
    shows_all = len(systems.first.truth.group_query) <= most
    note = "" if shows_all else "those of the queries on which systems differ most"
    return group_ranks(rows, about(systems, RANK, note))
