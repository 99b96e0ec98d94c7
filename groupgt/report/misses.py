"""Reports what runs miss: the worst queries of one run, or the groups covered by the fewest of several runs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.comparison.systems import Systems
from groupgt.engines.carriers import all_rankings, carrier_of
from groupgt.engines.excluded import condensed_ranking
from groupgt.errors import first_of
from groupgt.evaluation.marks import Marks
from groupgt.evaluation.misses import PlacedGroup
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
from groupgt.render.tables import ALTERNATIVES, Grid, count_text, counted, snippet
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
    """Reports the worst queries of one run with their groups, or the groups covered by the fewest of several runs."""

    main_figure = "groups"
    fields = ("k", "queries", "by_group", "incomplete", "evaluated")

    @property
    def _is_of_one(self) -> bool:
        return len(self.result.evaluations) == 1

    def blocks(self) -> list[Item]:
        """Return what is complete, the groups that are not, and, for one run as a detail, coverage by group number."""
        misses = self.result
        unit = unit_of(misses.evaluations.values())
        grid = self._grid(misses.texts, GROUPS, ALTERNATIVES)
        texts = {qid: misses.failures.text_of(qid) for qid in {row[0] for row in grid[1]}}
        parts: list[Item] = [Verdict(list(self._sentences()))]
        if grid[1]:
            parts.append(_in_words(grid, unit, texts))
        if not self._is_of_one:
            if not grid[1]:
                parts.append(f"all runs cover all {unit}s")
            unmet = int(misses.failures.unmet.sum())
            if unmet > len(grid[1]):
                parts.append(f"the hardest {len(grid[1]):,} of {unmet:,} {unit}s that at least one run misses")
            return parts
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
        yield from self._of_one() if self._is_of_one else self._of_several()
        yield from map(warning, warnings_about(self.result.evaluations))

    def _of_one(self) -> Iterator[data.Sentence]:
        """Report how many queries are complete, and whether missed groups are retrieved later or not at all."""
        misses = self.result
        ((run, evaluation),) = misses.evaluations.items()
        complete = f"{misses.evaluated - misses.incomplete:,} of {counted(misses.evaluated, 'query')}"
        if trials := len(evaluation.trials):
            complete += f" in all {trials:,} trials"
        unit = unit_of([evaluation])
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
            average = " in an average trial" if evaluation.trials else ""
            sentence += f", and misses {counted(missed, unit)}{average}{where}"
        yield sentence_of("best", *subject(run), f"{sentence}.")
        if misses.harmful:
            queries = counted(len({each["qid"] for each in misses.harmful}), "query")
            yield sentence_of("loss", *subject(run), f" returns harmful passages for {queries}{at_cutoff(misses.k)}.")

    def _of_several(self) -> Iterator[data.Sentence]:
        """Report how many queries each run completes, highest first, and how many no run completes."""
        failures = self.result.failures
        count = counted(int(failures.counted.sum()), "query")
        counts = sorted(failures.solved_counts.items(), key=lambda pair: -pair[1])
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
        in_none = counted(len(failures.nobody), "is complete in no run", "are complete in no run")
        parts[-1] += f"; {in_none if failures.nobody else 'every query is complete in some run'}."
        yield sentence_of("best", *parts)

    def to_dict(self) -> Any:
        """Return the fields to export; harmful results only where the ground truth names some."""
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
        rows = [
            {"group": f"{group.qid}: {group.group}", "system": name, "rank": place.rank}
            for group in self._groups
            for name, place in group.places.items()
        ]
        first = misses.evaluations[misses.run]
        return group_ranks(rows, About(RANK, misses.evaluated, first.convention, policy_text(first.policy), note))

    @cached_property
    def _groups(self) -> list[PlacedGroup]:
        """The groups to list: those of the worst queries of one run, or the hardest of several."""
        return self.result.of_worst if self._is_of_one else self.result.groups

    def csv_rows(self) -> Grid:
        """Return headers and one row for each listed group."""
        return self._grid({} if self._is_of_one else self.result.texts)

    def _grid(self, texts: Mapping[str, str], most: int | None = None, alternatives: int | None = None) -> Grid:
        """Return one row for each listed group, with the text of the first alternative if known.

        `most` limits the groups of one query, and `alternatives` those of a group (default: all).
        """
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
                unmet = sum(not _is_covered(each) for each in groups) - sum(not _is_covered(each) for each in shown)
                rows.append([qid, f"{hidden:,} more", f"{unmet:,} of them not in the first {misses.k}", ""])
        for each in (self._is_of_one and misses.harmful) or ():
            rows.append([each["qid"], "", f"harmful at rank {each['rank']:,}", each["id"]])
        return ["query", "group", *(["first hit"] if self._is_of_one else misses.evaluations), "alternatives"], rows

    def _places(self, group: PlacedGroup) -> list[str]:
        if not self._is_of_one:
            return ["–" if place.rank is None else f"{place.rank:,}" for place in group.places.values()]
        misses = self.result
        query = misses.failures.truth.index[group.qid]
        return [place_of(group, int(misses.evaluations[misses.run].labelled.hits.length[query]), misses.k)]


def _is_covered(group: PlacedGroup) -> bool:
    return all(place.is_covered for place in group.places.values())


def _alternatives(group: PlacedGroup, texts: Mapping[str, str], most: int | None) -> str:
    names = first_of(group.alternatives, most, " or ") or "no alternatives"
    text = texts.get(group.alternatives[0], "") if group.alternatives else ""
    return f"{names}: {snippet(text, SNIPPET_CHARS)}" if text else names


def place_of(group: PlacedGroup, results: int, k: int) -> str:
    """Describe where the only run covers a group, and in how many trials, if there are several."""
    (place,) = group.places.values()
    if not group.alternatives:
        return "cannot be covered"
    if place.trials > 1:
        times = f"covered in {place.covered:,} of {place.trials:,} trials"
        return times if place.rank is None else f"{times}; median rank {place.rank:,}"
    if place.rank is None:
        if results == 1:
            return "not its only result"
        return f"not among its {results:,} results" if results else "no results"
    return f"rank {place.rank:,}" + ("" if place.is_covered else f" (beyond {k:,})")


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
