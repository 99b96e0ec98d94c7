"""Report what runs miss: the worst queries of one run or, for several, the groups that the fewest runs cover."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from groupgt.comparison.systems import Systems
from groupgt.engines.carriers import all_rankings, carrier_of
from groupgt.engines.excluded import condensed_ranking
from groupgt.errors import first_of
from groupgt.evaluation.marks import Marks
from groupgt.evaluation.missed import Misses
from groupgt.evaluation.misses import PlacedGroup, failures_of
from groupgt.metrics import views
from groupgt.metrics.base import Cut
from groupgt.metrics.language import explanations
from groupgt.model.hits import Ints
from groupgt.model.ranking import Ranking
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About
from groupgt.render.entries import Entries, Entry, Line
from groupgt.render.figures import group_ranks
from groupgt.render.page import data
from groupgt.render.page.blocks import score_texts, short
from groupgt.render.results import Teller
from groupgt.render.tables import ALTERNATIVES, Grid, Table, count_text, counted, snippet
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
    """Report the worst queries of one run with their groups or, for several, the groups that the fewest runs cover."""

    main_figure = "groups"
    fields = ("k", "queries", "by_group", "incomplete", "evaluated")

    @property
    def _is_of_one(self) -> bool:
        return len(self.result.evaluations) == 1

    def blocks(self) -> list[Item]:
        """Return a verdict, the queries or groups to list and, for one run, coverage by group number as a detail."""
        items = self._worst_queries() if self._is_of_one else self._hardest_groups()
        return [Verdict(list(self._sentences())), *items]

    def _worst_queries(self) -> Iterator[Item]:
        """Yield the worst queries of one run with the groups that they miss, and harmful results."""
        misses, unit = self.result, unit_of(self.result.evaluations.values())
        texts = {each["qid"]: each["query"] for each in misses.queries}
        of_queries = groupby(misses.of_worst, lambda group: group.qid)
        if entries := [_entry(qid, list(groups), misses, unit) for qid, groups in of_queries]:
            most = f"{len(entries):,} of {misses.listable:,}, " if len(entries) < misses.listable else ""
            more = "; --worst N lists more" if most else ""
            title = f"worst queries ({most}lowest coverage first{more})"
            grid = _in_words(self._grid(misses.texts, GROUPS, ALTERNATIVES), unit, texts)
            one = f"see one: groupgt explain {misses.given} --query {shlex.quote(entries[0].name)}"
            yield Entries(title, entries, Table(*grid), one)
        if misses.harmful:
            rows = [[each["qid"], each["rank"], each["id"], *_how_often(each)] for each in misses.harmful]
            several = ["returned in"] if len(rows[0]) > 3 else []
            yield Table(["query", "rank", "harmful passage", *several], rows, keep=3)
        if unit != "group":
            return  # for documents the number has no meaning
        headers = ["group number", "groups", f"covered at {misses.k}", "covered anywhere"]
        cells = [[str(row["number"]), row["groups"], row["covered"], row["anywhere"]] for row in misses.by_group]
        yield Detail((headers, cells[:GROUPS]))
        if len(cells) > GROUPS:
            yield Detail(f"and {len(cells) - GROUPS:,} more group numbers, up to {cells[-1][0]}")

    def _hardest_groups(self) -> Iterator[Item]:
        """Yield the groups that the fewest runs cover, with the best rank of a first hit, and the run with that hit."""
        misses, unit = self.result, unit_of(self.result.evaluations.values())
        runs, unmet = list(misses.evaluations), int(misses.failures.unmet.sum())
        if not unmet:
            yield f"all runs cover all {unit}s"
            return
        is_all = unmet == len(misses.groups)
        title = f"{len(misses.groups):,} of {unmet:,}, fewest runs first; --worst N lists more"
        yield f"hardest {unit}s ({'fewest runs first' if is_all else title})"
        rows = list[list[Any]]()
        for each in misses.groups:
            ranks = {name: place.rank for name, place in each.places.items()}
            best = min((rank, name) for name, rank in ranks.items() if rank) if any(ranks.values()) else None
            covering = sum(place.covered / place.trials for place in each.places.values())
            group = each.group if unit == "group" or not each.alternatives else each.alternatives[0]
            of_best = ("none", "") if best is None else (f"{best[0]:,}", best[1])
            line = [each.qid, group, f"{count_text(covering)} of {len(runs):,}", *of_best, *self._places(each)]
            text = snippet(misses.failures.text_of(each.qid) or "", QUERY_CHARS)
            rows.append([*line, text, _alternatives(each, misses.texts, ALTERNATIVES)])
        every_rank = "every run's rank"
        headers = ["query", unit, "runs", "best rank", "in run", *runs, "text", "alternatives"]
        above = [""] * 5 + [every_rank] * len(runs) + ["", ""]
        yield Table(headers, rows, (every_rank, "alternatives"), 2, above, ["in run"])
        if any(each.repeats for each in misses.evaluations.values()):
            yield "counts of runs and complete queries are means over trials; ranks are medians"

    def _sentences(self) -> Iterator[data.Sentence]:
        yield from self._of_one() if self._is_of_one else self._of_several()
        yield from map(warning, warnings_about(self.result.evaluations))

    def _of_one(self) -> Iterator[data.Sentence]:
        """Report how many queries are complete, and whether missed groups are retrieved later or not at all."""
        misses = self.result
        ((run, evaluation),) = misses.evaluations.items()
        often = f"{at_cutoff(misses.k)}{' in an average trial' if evaluation.repeats else ''}"
        complete = f"{count_text(misses.evaluated - misses.incomplete)} of {counted(misses.evaluated, 'query')}"
        yield sentence_of("best", *subject(run), f" completes {complete}{often}.{self._missed()}")
        if misses.harmful:
            queries = counted(misses.harmful_queries, "query")
            yield sentence_of("loss", *subject(run), f" returns harmful passages for {queries}{often}.")

    def _missed(self) -> str:
        """Return a sentence about the groups that one run misses: not in its results, or after the cutoff."""
        misses, (evaluation,) = self.result, self.result.evaluations.values()
        keys = ("covered", "anywhere")
        missed, never = (round(sum(row["groups"] * (1 - row[key]) for row in misses.by_group), 9) for key in keys)
        if not missed:
            return ""
        lengths = np.unique([hits.length[misses.failures.counted] for hits in evaluation.hits_in_trials])
        results = f"its {counted(int(lengths[0]), 'result')}" if len(lengths) == 1 else "its results"
        later = f"after rank {misses.k:,}"
        none, every_one = ("neither", "both") if missed == 2 else ("none", "all")
        if missed == 1:
            where = f", which {f'is not in {results}' if never else f'comes {later}'}"
        elif never == missed:
            where = f", {none} of which is in {results}"
        elif not never:
            where = f", {every_one} of which come {later}"
        else:
            where = f": {counted(never, f'is not in {results}', f'are not in {results}')}"
            where += f", {counted(missed - never, f'comes {later}', f'come {later}')}"
        total = counted(sum(row["groups"] for row in misses.by_group), unit_of([evaluation]))
        return f" It misses {count_text(missed)} of {total}{where}."

    def _of_several(self) -> Iterator[data.Sentence]:
        """Report how many queries each run completes, highest first, and how many no run completes."""
        failures = self.result.failures
        count = counted(int(failures.counted.sum()), "query")
        counts = sorted(failures.solved_counts.items(), key=lambda pair: (-pair[1], pair[0]))
        tied = [name for name, complete in counts if complete == counts[0][1]]
        sentence = f" {count_text(counts[0][1])} of {count}{at_cutoff(failures.cutoff)}"
        parts = enumerated(tied, f" {'completes' if len(tied) == 1 else 'complete'}{sentence}")
        if len(tied) == len(counts):
            parts = [f"{every(len(tied), 'run')} complete{sentence}"]
        others = counts[len(tied) :]
        for name, complete in others[: NAMED - 1]:
            parts = appended(parts, ", ", name, f" {count_text(complete)}")
        if more := others[NAMED - 1 :]:
            parts[-1] += f", {counted(len(more), 'other')} at most {count_text(more[0][1])}"
        in_none = f"{counted(failures.none_count, 'query is', 'queries are')} complete in no run"
        parts[-1] += f". {in_none if failures.none_count else 'Every query is complete in at least one run'}."
        yield sentence_of("best", *parts)

    def to_dict(self) -> Any:
        """Return the fields to export. Include harmful results only if the ground truth names harmful passages."""
        misses = self.result
        if not self._is_of_one:
            return misses.failures.to_dict(misses.worst)
        return super().to_dict() | ({} if misses.harmful is None else {"harmful": misses.harmful})

    def figure(self) -> Figure:
        """Draw the listed groups by rank of their first hit in each run."""
        misses = self.result
        note = f"the {len(self._groups):,} groups covered by the fewest runs"
        if self._is_of_one:
            note = "" if len(misses.queries) == misses.evaluated else f"the worst {len(misses.queries):,} of them"
        first = misses.evaluations[misses.run]
        shown = About(RANK, misses.evaluated, first.convention, policy_text(first.policy), note)
        return _figure_of(self._groups, shown)

    @cached_property
    def _groups(self) -> list[PlacedGroup]:
        """The groups to list, either from the worst queries of one run or the hardest groups of several runs."""
        return self.result.of_worst if self._is_of_one else self.result.groups

    def csv_rows(self) -> Grid:
        """Return headers and one row for each listed group."""
        return self._grid({} if self._is_of_one else self.result.texts)

    def _grid(self, texts: Mapping[str, str], most: int | None = None, alternatives: int | None = None) -> Grid:
        """Return a row for each listed group. `most` limits a query's groups, `alternatives` a group's alternatives."""
        misses, rows = self.result, list[list[Any]]()
        for qid, of_query in groupby(self._groups, lambda group: group.qid):
            groups = list(of_query)
            shown = groups
            if self._is_of_one:
                # Up to `most` of them in their original order, preferring groups that are not covered.
                worst_first = sorted(range(len(groups)), key=lambda place: _is_covered(groups[place]))
                shown = [groups[place] for place in sorted(worst_first[:most])]
            rows += [[qid, each.group, *self._places(each), _alternatives(each, texts, alternatives)] for each in shown]
            if hidden := len(groups) - len(shown):
                unmet = count_text(hidden - _covered(groups) + _covered(shown))
                rows.append([qid, f"{hidden:,} more", f"{unmet} of them not in the first {misses.k}", ""])
        for each in (self._is_of_one and misses.harmful) or ():
            often = "".join(f", returned in {text}" for text in _how_often(each))
            rows.append([each["qid"], "", f"harmful at rank {each['rank']:,}{often}", each["id"]])
        return ["query", "group", *(["first hit"] if self._is_of_one else misses.evaluations), "alternatives"], rows

    def _places(self, group: PlacedGroup) -> list[str]:
        if not self._is_of_one:
            return ["–" if place.rank is None else f"{place.rank:,}" for place in group.places.values()]
        misses = self.result
        query = misses.failures.truth.index[group.qid]
        return [place_of(group, int(misses.lengths[query]), misses.k)]


def _how_often(harmful: Mapping[str, Any]) -> list[str]:
    """Return the number of trials with this harmful result, or nothing for a single run."""
    return [f"{harmful['returned_trials']:,} of {harmful['trials']:,} trials"] if "trials" in harmful else []


def _entry(qid: str, groups: Sequence[PlacedGroup], misses: Misses, unit: str) -> Entry:
    """Return a query of one run with the groups that it misses, up to `GROUPS` of them."""
    unmet = [group for group in groups if not _is_covered(group)]
    results = int(misses.lengths[misses.failures.truth.index[qid]])
    lines = []
    for group in unmet[:GROUPS]:
        place = place_of(group, results, misses.k, brief=True)
        ids = group.alternatives or ["no alternatives"]
        lines.append(Line([group.group, place] if unit == "group" else [place], ids, misses.texts.get(ids[0], "")))
    count = f"{count_text(_covered(groups))} of {counted(len(groups), unit)}"
    more = f"and {len(unmet) - GROUPS:,} more" if len(unmet) > GROUPS else ""
    return Entry(qid, count, misses.failures.text_of(qid) or "", lines, more)


def _is_covered(group: PlacedGroup) -> bool:
    return all(place.is_covered for place in group.places.values())


def _covered(groups: Sequence[PlacedGroup]) -> float:
    """Return how many groups the only run covers, as a mean over trials."""
    return math.fsum(place.covered / place.trials for group in groups for place in group.places.values())


def _alternatives(group: PlacedGroup, texts: Mapping[str, str], most: int | None) -> str:
    names = first_of(group.alternatives, most, " or ") or "no alternatives"
    text = texts.get(group.alternatives[0], "") if group.alternatives else ""
    return f"{names}: {snippet(text, SNIPPET_CHARS)}" if text else names


def place_of(group: PlacedGroup, results: int, k: int, *, brief: bool = False) -> str:
    """Describe where the only run covers a group. If `brief`, the group is listed among groups that are not covered."""
    (place,) = group.places.values()
    if not group.alternatives:
        return "cannot be covered"
    if place.trials > 1:
        times = f"covered in {place.covered:,} of {place.trials:,} trials"
        return times if place.rank is None else f"{times}; median rank {place.rank:,}"
    if brief and (results or place.rank):
        return f"not in {results:,}" if place.rank is None else f"rank {place.rank:,}"
    if place.rank is None:
        if results == 1:
            return "not its only result"
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {place.rank:,}" + ("" if place.is_covered else f" (beyond {k:,})")


def _in_words(grid: Grid, unit: str, texts: Mapping[str, str | None]) -> Grid:
    """Add the text of each query to its first row. Name groups of a single document after that document."""
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


def _why_never_covered(alternatives: Sequence[Sequence[str]], absent: Collection[str]) -> str:
    """Explain why no result can cover a group, given the ids that each alternative needs, or return an empty text."""
    if not alternatives:
        return "it has no relevant alternative"
    if not all(any(name in absent for name in members) for members in alternatives):
        return ""
    which = "its only alternative is not" if len(alternatives) == 1 else "none of its alternatives is"
    return f"{which} in the corpus"


def details(systems: Systems, queries: Ints) -> Iterator[data.Detail]:
    """Yield details of the given queries in order. Only the first few queries have worked examples."""
    question_of = {at: place for place, at in enumerate(np.sort(queries).tolist())}
    every_ranking = [_rankings(systems, name, queries) for name in systems.evaluations]
    every_mark = [Marks(each) for each in systems.every]
    # In how many trials each group is covered, shape (G,).
    every_count = [
        np.sum([hits.covered(Cut.at(hits, systems.cutoff).top) for hits in each.hits_in_trials], axis=0)
        for each in systems.every
    ]
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
                key = views.query_key(each.first.labelled.hits, at)
                if key not in examples:
                    worked = explanations(each.metrics.values(), each.first.labelled.hits, at)
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
        for evaluation, by_query, marks, times in zip(systems.every, every_ranking, every_mark, every_count):
            several = len(evaluation.repeats)
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


def _rankings(systems: Systems, name: str, queries: Ints) -> Mapping[str, Ranking]:
    """Return a system's results by query with their original ids."""
    evaluation = systems.evaluations[name]
    run = evaluation.first.run.by_original_ids

    def measured(qid: str, ranking: Ranking) -> Ranking:
        return condensed_ranking(ranking, evaluation.truth, qid, evaluation.policy)

    if run.is_remote or int(evaluation.first.labelled.hits.length.sum()) > READ:
        some = [evaluation.truth.qids[at] for at in queries[:FEW].tolist()]
        return {qid: measured(qid, carrier_of(run).ranking(qid, evaluation.policy)) for qid in some}
    return {qid: measured(qid, ranking) for qid, ranking in all_rankings(run, evaluation.policy)}


def groups_figure(systems: Systems, most: int = MOST_GROUPS) -> Figure:
    """Draw covered groups by rank of their first hit for the most informative queries."""
    failures = failures_of(systems.evaluations)
    groups: list[PlacedGroup] = []
    for at in systems.most_telling.tolist():
        if len(groups) >= most:
            break
        groups += failures.groups_of(at)
    shows_all = len(systems.first.truth.group_query) <= most
    note = "" if shows_all else "groups of the queries on which systems differ most"
    return _figure_of(groups, about(systems, RANK, note))


def _figure_of(groups: Sequence[PlacedGroup], about: About) -> Figure:
    """Draw groups by the rank of their first hit in each run, with the number covered (a mean over trials)."""
    found: dict[str, list[float]] = {}
    rows = list[dict[str, Any]]()
    for group in groups:
        for name, place in group.places.items():
            rows.append({"group": f"{group.qid}: {group.group}", "system": name, "rank": place.rank})
            found.setdefault(name, []).append(place.found / place.trials)
    return group_ranks(rows, about, {name: math.fsum(shares) for name, shares in found.items()})
