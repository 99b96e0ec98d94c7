"""Labels results held in memory: for each query its result list is probed with the query's own ids, in C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from groupgt.engines.base import Labelled, settled
from groupgt.engines.lists import in_order, ranking_of, text_keys, ties_of
from groupgt.engines.results import Listed
from groupgt.errors import SHOWN, Faults
from groupgt.labellers.base import Labeller, first_hits
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Hits
from groupgt.model.policy import Policy
from groupgt.model.run import Run

# More hits of one query than this are not searched for one by one.
MANY = 32


def label(truth: GroundTruth, run: Run, policy: Policy, labeller: Labeller) -> Labelled:
    """Labels a run of lists; raises `DataError` with everything that is no ranking."""
    return _Probe(run, policy).walk(truth, labeller)


class _Probe:
    def __init__(self, run: Run, policy: Policy) -> None:
        self.policy, self.rules = policy, ties_of(run, policy)
        self.faults = Faults()
        self.run = run
        self.title = run.source or run.name
        self.rankings = text_keys(run.rankings, self.title)
        self.scores = run.lists.scores
        self.duplicated = 0
        self.ties: list[tuple[int, int, int]] = []

    def walk(self, truth: GroundTruth, labeller: Labeller) -> Labelled:
        matches = labeller.match(truth, Listed(truth, self.run, self.policy))
        lengths: list[int] = []
        queries: list[int] = []
        ranks: list[int] = []
        keys: list[int] = []
        known = 0
        penalize = self.policy.duplicates in ("penalize", "keep")
        ranking_of_query, join, key_at = self.rankings.get, "".join, matches.keys.index
        bounds = np.searchsorted(matches.queries, np.arange(len(truth) + 1)).tolist()
        for number, (qid, wanted) in enumerate(zip(truth.qids, matches.sets)):
            ranking = ranking_of_query(qid)
            own: Sequence[float] | None = None
            if ranking is None:
                known += qid in self.rankings
                lengths.append(0)
                continue
            known += 1
            # join raises for anything that is no text, and is the quickest way to look at every id.
            try:
                if type(ranking) is not list:
                    raise TypeError
                join(ranking)
            except TypeError:
                ranking, own = self.read(qid, ranking)
            if self.scores is not None and qid in self.scores:
                ranking, own = in_order(ranking, self.scores[qid], self.rules)
            if not penalize:
                ranking, own = self.without_repeats(qid, ranking, own)
            lengths.append(len(ranking))
            found = list(filter(wanted.__contains__, ranking))
            if not found:
                continue
            # Hits come in rank order, so that each is searched for behind the one before; repeats are found as well.
            places: list[int] = []
            place = -1
            if len(found) <= MANY:
                for name in found:
                    place = ranking.index(name, place + 1)
                    places.append(place)
                    keys.append(key_at(name, bounds[number], bounds[number + 1]))
            else:
                keys += _looked_up(matches.keys, bounds[number], bounds[number + 1], found)
                for name in found:
                    place = ranking.index(name, place + 1)
                    places.append(place)
            queries += [number] * len(places)
            ranks += places
            if own is not None:
                self.note_ties(number, places, own)
        self.faults.stop()
        target = matches.targets[np.array(keys, dtype=np.int64)]
        query, rank = np.array(queries, dtype=np.int64), np.array(ranks, dtype=np.int64) + 1
        length = np.array(lengths, dtype=np.int64)
        hits = settled(truth, labeller, matches, self.policy, query, rank, target, length)
        again = query[first_hits(target, len(matches.keys))]
        return self.labelled(truth, hits, len(self.rankings) - known, len(np.unique(again)))

    def labelled(self, truth: GroundTruth, hits: Hits, extra: int, repeated: int) -> Labelled:
        """The hits with what was seen on the way."""
        looked_at_all = self.policy.duplicates in ("drop", "error")
        ties = np.array(self.ties, dtype=np.int64).reshape(-1, 3)
        return Labelled(
            hits=hits,
            present=hits.length > 0,
            extra=extra,
            duplicated=self.duplicated if looked_at_all else repeated,
            tie_query=ties[:, 0],
            tie_first=ties[:, 1],
            tie_last=ties[:, 2],
            no_match=not len(hits.query) and bool(len(self.rankings)),
            extra_names=self.others(truth) if extra else (),
        )

    def others(self, truth: GroundTruth) -> tuple[str, ...]:
        """The first queries of the run that have no ground truth."""
        return tuple(islice((qid for qid in self.rankings if qid not in truth.index), SHOWN))

    def read(self, qid: str, ranking: Any) -> tuple[list[str], Sequence[float] | None]:
        ids, scores = ranking_of(ranking, self.policy, self.faults, self.where(qid))
        return ids, scores

    def where(self, qid: str) -> str:
        return f"{self.title}: query {qid!r}" if self.title else f"results of query {qid!r}"

    def without_repeats(
        self, qid: str, ranking: list[str], scores: Sequence[float] | None
    ) -> tuple[list[str], Sequence[float] | None]:
        first = dict.fromkeys(ranking)
        if len(first) == len(ranking):
            return ranking, scores
        self.duplicated += 1
        if self.policy.duplicates == "error":
            seen: set[str] = set()
            twice = next(each for each in ranking if each in seen or seen.add(each))  # type: ignore[func-returns-value]  # adds as it looks
            self.faults.add(
                self.where(qid), f"the result {twice!r} stands twice; remove it, or choose the policy duplicates=drop"
            )
        if scores is not None:
            kept = dict(zip(reversed(ranking), reversed(scores)))
            scores = [kept[each] for each in first]
        return list(first), scores

    def note_ties(self, number: int, places: list[int], scores: Sequence[float] | None) -> None:
        """Keeps the blocks of equal scores around hits."""
        if scores is None:
            return
        last = len(scores) - 1
        seen = -1
        for place in places:
            if place <= seen:
                continue  # in the block of the hit before
            score = scores[place]
            low = high = place
            while low > 0 and scores[low - 1] == score:
                low -= 1
            while high < last and scores[high + 1] == score:
                high += 1
            seen = high
            if low < high:
                self.ties.append((number, low + 1, high + 1))


def _looked_up(keys: list[str], low: int, high: int, found: list[str]) -> Iterable[int]:
    """Where each of many stands among the keys of a query; of equal keys the first, which is written last."""
    return map(dict(zip(reversed(keys[low:high]), range(high - 1, low - 1, -1))).__getitem__, found)
