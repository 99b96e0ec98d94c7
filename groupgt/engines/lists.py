"""The carrier for results in memory, which looks up each query's relevant ids in its result list."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from groupgt import native
from groupgt.engines.base import TOP, Flat, Labelled, LocalCarrier, RankedHits, matched
from groupgt.engines.choice import Engine
from groupgt.engines.shapes import by_text_keys, carried_cells, ids_and_scores, is_text_list, note_faulty_ids
from groupgt.errors import DataError, Faults
from groupgt.labellers.base import Labeller, Matches
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking, distinct_ranking, places_in_order, ranked_places, repeat_fault
from groupgt.model.run import Lists, Run
from groupgt.model.validity import BLANK_IDS, LONGEST_ID, has_plain_letters, id_text, shown
from groupgt.model.values import CALLS, ORIGINAL_SCORE, SCORE, UNITS, Span, span_of

# Above this number of hits per query, hits are not searched for one by one.
MANY_HITS = 32
# Lists are read and checked in groups that fit the processor's cache.
GLANCE_QUERIES = 32


class ListRow(NamedTuple):
    """The results for one query, in input order, with the scores that order them and the requested fields."""

    where: str
    key: Any
    ids: list[str]
    scores: Sequence[float] | None
    cells: list[Sequence[Any] | None]


class ListCarrier(LocalCarrier):
    """Accesses results in memory."""

    def __init__(self, run: Run, lists: Lists) -> None:
        self.run, self.lists = run, lists

    def label(self, truth: GroundTruth, labeller: Labeller, policy: Policy, engine: Engine) -> Labelled:
        probe = _Probe(self, policy)
        # The probe reports invalid rankings along with all other errors.
        matches = matched(truth, labeller, policy, lambda rules: self._flat(truth, rules, ("text",), Faults()))
        return probe.walk(truth, labeller, matches)

    def rules(self, policy: Policy) -> Policy:
        """Adapt the policy to renamed lists, which are already sorted by their original names."""
        return policy if self.run.original is None else replace(policy, ties="input")

    def rename(self, truth: GroundTruth, labeller: Labeller, policy: Policy) -> Run:
        rankings: dict[Any, Any] = dict(self.lists.rankings)
        scores: dict[str, Sequence[float]] = dict(self.lists.scores or {})
        faults = Faults()
        for row in self._rows(truth, (labeller.column,), faults):
            if row.key not in rankings:
                continue
            if labeller.column:
                named = _names_carried(labeller, row.ids, row.cells[0], row.where, faults)
            else:
                named = list(labeller.names(row.ids))
            if len(named) < len(row.ids):
                continue  # invalid
            order = row.scores
            if order is not None:
                # Equal scores are ordered by the previous names.
                places = places_in_order(row.ids, order, policy)
                named, order = [named[place] for place in places], [order[place] for place in places]
                scores[row.key] = order
            rankings[row.key] = named
        faults.stop(DataError)
        lists = replace(self.lists, rankings=rankings, scores=scores or None)
        return replace(self.run, contents=lists, original=self.run)

    def ranking(self, qid: str, policy: Policy) -> Ranking:
        key = next((key for key in self.lists.rankings if str(key) == qid), qid)
        return distinct_ranking(*self._ordered(key, policy), policy)

    def qids(self) -> list[str]:
        return [str(qid) for qid in self.lists.rankings]

    def rankings(self, policy: Policy) -> Iterator[tuple[str, Ranking]]:
        for key in self.lists.rankings:
            yield str(key), self._ordered(key, policy)

    def _ordered(self, key: Any, policy: Policy) -> Ranking:
        faults = Faults()
        ids, order = ids_and_scores(self.lists.rankings.get(key), faults, f"results of query {str(key)!r}")
        faults.stop()
        scores = (self.lists.scores or {}).get(key, order)
        if scores is None:
            return ids, self._as_given(self.listed_scores(key), len(ids))
        places = places_in_order(ids, scores, self.rules(policy))
        # Scores only order the results of one call.
        in_order = None if self.carries(CALLS) else self._as_given([scores[at] for at in places], len(ids))
        return [ids[at] for at in places], in_order

    def _as_given(self, scores: Sequence[Any] | None, size: int) -> list[float] | None:
        """Return the original scores without negation, or None unless every result has a score."""
        if scores is None or len(scores) != size or None in scores:
            return None
        sign = self.run.sign
        return [sign * float(score) for score in scores]

    def listed_scores(self, key: Any) -> Sequence[float | None] | None:
        """Return the scores of results that are already in order, or None. The scores may contradict the order."""
        return self._listed.get(str(key)) if self._listed else carried_cells(self.lists.rankings.get(key), SCORE)

    @cached_property
    def _listed(self) -> Mapping[str, Sequence[float | None]]:
        return self.lists.fields[SCORE]() if SCORE in self.lists.fields else {}

    def sample(self, limit: int, queries: Collection[str] = ()) -> dict[str, list[str]]:
        """Return result ids for all queries, or only for the given ones. Queries after the limit get no ids."""
        rankings, faults = by_text_keys(self.lists.rankings, self.run.title), Faults()
        most = max(limit // len(queries), TOP) if queries else limit
        results: dict[str, list[str]] = {}
        for qid in queries or rankings:
            ranking: Any = rankings.get(qid) if limit > 0 else None
            ranking = ranking[:most] if type(ranking) is list else ranking
            results[qid] = _ids(ranking, faults)[:most]
            limit -= len(results[qid])
        return results

    def repeating(self, truth: GroundTruth) -> list[int]:
        rankings, faults = by_text_keys(self.lists.rankings, self.run.title), Faults()
        lists = (_ids(ranking, faults) for ranking in map(rankings.get, truth.qids))
        return [query for query, ids in enumerate(lists) if len(set(ids)) < len(ids)]

    def carries(self, field: str) -> bool:
        if field in UNITS:
            return field in self.lists.lengths
        if field in self.lists.fields:
            return True
        return any(carried_cells(ranking, field) is not None for ranking in self.lists.rankings.values())

    def flat(self, truth: GroundTruth, policy: Policy, *fields: str) -> Flat:
        faults = Faults()
        flat = self._flat(truth, policy, fields, faults)
        faults.stop()
        return flat

    def _flat(self, truth: GroundTruth, policy: Policy, fields: Sequence[str], faults: Faults) -> Flat:
        """Read all results in rank order. Add invalid rankings to `faults`."""
        sizes: list[int] = []
        ids: list[str] = []
        columns: list[list[Any]] = [[] for _ in fields]
        rules = self.rules(policy)
        for row in self._rows(truth, fields, faults):
            places = ranked_places(row.ids, row.scores, rules)
            sizes.append(len(places))
            ids += row.ids if isinstance(places, range) else [row.ids[place] for place in places]
            for field, cells, column in zip(fields, row.cells, columns):
                cells = row.scores if field == SCORE and row.scores is not None else cells
                values = [None] * len(row.ids) if cells is None else cells
                chosen = [values[place] for place in places]
                if field not in (*UNITS, ORIGINAL_SCORE, SCORE):
                    chosen = [cell if isinstance(cell, str) else None for cell in chosen]
                column += chosen
        query = np.repeat(np.arange(len(truth)), sizes).astype(np.int64)
        filled: dict[str, Any] = dict(zip(fields, columns))
        lengths = {field: np.array(filled[field], dtype=np.int64) for field in fields if field in UNITS}
        return Flat(query, ids, filled | lengths)

    def _rows(self, truth: GroundTruth, fields: Sequence[str], faults: Faults) -> list[ListRow]:
        """Return the results for each ground truth query, with these fields. Add invalid rankings to `faults`."""
        scores = self.lists.scores or {}
        columns: dict[str, Mapping[str, Sequence[Any]]] = {}
        for field in fields:
            if field in UNITS:
                columns[field] = {str(key): cells for key, cells in self.lists.lengths.get(field, {}).items()}
            else:
                columns[field] = self.lists.fields[field]() if field in self.lists.fields else {}
        keys = {str(name): name for name in self.lists.rankings}
        uneven = Faults()
        rows: list[ListRow] = []
        for qid in truth.qids:
            key = keys.get(qid, qid)
            ranking: Any = self.lists.rankings.get(key)
            where = f"{self.run.title}: query {qid!r}"
            ids, order = (ranking, None) if is_text_list(ranking) else ids_and_scores(ranking, faults, where)
            cells = []
            for field, column in columns.items():
                of_query = column.get(qid)
                if of_query is None and ids is not ranking:
                    of_query = carried_cells(ranking, field)
                _check_cells(field, of_query, len(ids), where, uneven)
                cells.append(of_query)
            rows.append(ListRow(where, key, ids, scores.get(key, order), cells))
        uneven.stop(DataError)
        return rows


def _ids(ranking: Any, faults: Faults) -> list[str]:
    return ranking if is_text_list(ranking) else ids_and_scores(ranking, faults, "")[0]


def _check_cells(field: str, cells: Sequence[Any] | None, size: int, where: str, uneven: Faults) -> None:
    """Record an error if a query does not have one cell, or one length, per result."""
    if field in UNITS:
        cells = cells or []
        count = len(cells) - list(cells).count(None)
        if not count == len(cells) == size:
            what = f"expected a length in {field} (a whole number from 0) for each of {size:,} results"
            uneven.add(where, f"{what}, found {count:,}")
    elif cells is not None and len(cells) != size:
        uneven.add(where, f"expected a {field} for each of {size:,} results, found {len(cells):,}")


def _names_carried(
    labeller: Labeller, ids: list[str], cells: Sequence[Any] | None, where: str, faults: Faults
) -> list[str]:
    """Return result names from their fields or, without fields, the ids, because ids may already be spans."""
    if cells is None:
        if labeller.column == "span" or not ids:
            return ids
        way = f"; options of the {labeller.name} labeller can derive it from ids" if labeller.column == "parent" else ""
        faults.add(where, f"expected a {labeller.column} for every result, found none for {shown(ids[0])}{way}")
        return ids
    names: list[str] = []
    for rank, cell in enumerate(cells, 1):
        name: str | None
        if labeller.column == "span":
            span = cell if isinstance(cell, Span) else span_of(cell) if isinstance(cell, Mapping) else ""
            name = str(span) if isinstance(span, Span) else None
            what = span if isinstance(span, str) and span else f"expected doc, start and end, found {shown(cell)}"
        else:
            name, what = id_text(cell), f"expected a {labeller.column}, found {shown(cell)}"
            name = name if name and name.strip() else None
        if name is None:
            faults.add(where, f"at rank {rank}: {what}")
            break
        names.append(name)
    return names


class _Probe:
    """Looks up each query's relevant ids in its results, in compiled code for plain results, otherwise in Python."""

    def __init__(self, carrier: ListCarrier, policy: Policy) -> None:
        self.policy, self.rules = policy, carrier.rules(policy)
        self.title = carrier.run.source or carrier.run.name
        self.rankings = by_text_keys(carrier.lists.rankings, self.title)
        self.scores = carrier.lists.scores
        self.renamed = carrier.run.original is not None
        self.faults = Faults()
        self.duplicated = 0

    def walk(self, truth: GroundTruth, labeller: Labeller, matches: Matches) -> Labelled:
        length, hits = self.by_module(truth, matches)
        # Rankings that are not plain are read here, and errors in them are reported.
        numbers = np.flatnonzero(length == native.NOT_PLAIN).tolist()
        if numbers:
            hits = np.concatenate((hits, self.by_reading(truth, matches, numbers, length)))
        query, key, rank, low, high = hits.T
        has_others = len(self.rankings) > np.count_nonzero(length != native.NO_RANKING)
        others = [qid for qid in self.rankings if qid not in truth.index] if has_others else []
        sizes, target = np.maximum(length, 0), matches.targets[key]
        ranked = RankedHits(query, target, rank, low, high, sizes, others, self.duplicated)
        return ranked.labelled(truth, labeller, matches, self.policy)

    def by_module(self, truth: GroundTruth, matches: Matches) -> tuple[Ints, Ints]:
        """Return the hits (query, key, rank, and the ranks of equal scores) and the number of results per query."""
        plain = type(self.rankings) is dict and (self.scores is None or type(self.scores) is dict)
        index = matches.compiled if plain else None
        if native.built is None or index is None:
            return np.full(len(truth), native.NOT_PLAIN, dtype=np.int64), np.zeros((0, 5), dtype=np.int64)
        distinct = self.policy.looks_at_all
        arrays = native.built.probe(self.rankings, self.scores, truth.qids, index, self.rules.ties == "id", distinct)
        length, rows = (np.frombuffer(array, dtype=np.int64) for array in arrays)
        return length.copy(), rows.reshape(-1, 5)

    def by_reading(self, truth: GroundTruth, matches: Matches, numbers: list[int], length: Ints) -> Ints:
        """Find the hits for some queries, one ranking at a time, and fill in their `length`."""
        lengths: list[int] = []
        columns: list[list[int]] = [[] for _ in range(5)]
        queries, keys, ranks, lows, highs = columns
        key_at, bounds, sets = matches.keys.index, matches.bounds, matches.sets
        qids = list(map(truth.qids.__getitem__, numbers))
        for (ranking, scores), qid, number in zip(self.read(qids), qids, numbers):
            relevant = sets[number]
            if ranking is None:
                lengths.append(0 if qid in self.rankings else native.NO_RANKING)
                continue
            if self.scores is not None and qid in self.scores:
                scores = self.scores[qid]
            places = ranked_places(ranking, scores, self.rules)
            if not isinstance(places, range):
                self.duplicated += len(places) < len(ranking)
                ranking = [ranking[at] for at in places]
                scores = None if scores is None else [scores[at] for at in places]
            if self.policy.duplicates == "error" and len(set(ranking)) < len(ranking):
                twice = next(name for place, name in enumerate(ranking) if ranking.index(name) < place)
                self.faults.add(self.where(qid), repeat_fault(id_text(twice) or ""))
            lengths.append(len(ranking))
            names = list(filter(relevant.__contains__, ranking))
            if not names:
                continue
            low, high = bounds[number], bounds[number + 1]
            if not BLANK_IDS.isdisjoint(names):
                self.note_faulty_ids([qid])
                names = list(filter(set(matches.keys[low:high]).__contains__, names))
            if len(names) > MANY_HITS:
                keys += _looked_up(matches.keys, low, high, names)
            else:
                keys += [key_at(name, low, high) for name in names]
            # Hits come in rank order, so each search starts after the previous hit; this also finds repeats.
            place = low = high = -1
            last = len(ranking) - 1
            for name in names:
                place = ranking.index(name, place + 1)
                if place > high:  # not among the equal scores around the previous hit
                    low = high = place
                    while scores is not None and low > 0 and scores[low - 1] == scores[place]:
                        low -= 1
                    while scores is not None and high < last and scores[high + 1] == scores[place]:
                        high += 1
                ranks.append(place)
                lows.append(low)
                highs.append(high)
            queries += [number] * len(names)
        self.faults.stop()
        length[numbers] = lengths
        hits = np.array(columns, dtype=np.int64)
        hits[2:] += 1
        return hits.T

    def read(self, qids: list[str]) -> Iterator[tuple[list[str] | None, Sequence[float] | None]]:
        """Yield the results of queries and the scores that order them. Joining ids is the fastest way to check ids."""
        join = "".join
        for first in range(0, len(qids), GLANCE_QUERIES):
            some = qids[first : first + GLANCE_QUERIES]
            rankings: list[Any] = list(map(self.rankings.get, some))
            joined: list[str] = []
            try:
                if not set(map(type, rankings)) <= {list}:
                    raise TypeError
                joined += map(join, rankings)
                yield from zip(rankings, repeat(None))
            except TypeError:
                for qid, ranking in zip(some, rankings):
                    scores = None
                    if ranking is not None and not is_text_list(ranking):
                        ranking, scores = ids_and_scores(ranking, self.faults, self.where(qid))
                    joined.append(join(ranking or ()))
                    yield ranking, scores
            # Ids are checked one by one only if this quick check fails.
            if max(map(len, joined), default=0) > LONGEST_ID // 4 or not has_plain_letters("".join(joined)):
                self.note_faulty_ids(some)

    def note_faulty_ids(self, qids: Sequence[str]) -> None:
        """Record invalid ids in the results of these queries. Names from labellers have already been checked."""
        for qid in qids if not self.renamed else ():
            note_faulty_ids(self.rankings.get(qid), self.faults, self.where(qid))

    def where(self, qid: str) -> str:
        return f"{self.title}: query {qid!r}" if self.title else f"results of query {qid!r}"


def _looked_up(keys: list[str], low: int, high: int, names: list[str]) -> Iterable[int]:
    """Look up the positions of many names in a query's keys. For equal keys, use the first position."""
    return map(dict(zip(reversed(keys[low:high]), range(high - 1, low - 1, -1))).__getitem__, names)
