"""How far two labellers, or two annotators, agree: Cohen's kappa, and the groups they differ on."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groupgt.engines.choice import Engine, engine_of
from groupgt.errors import ConfigError, DataError, GroupgtWarning
from groupgt.evaluation.evaluate import label_run
from groupgt.evaluation.request import Sources, as_ground_truth, as_run, labeller_of
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Hits, Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Run


@dataclass(frozen=True)
class Agreement:
    """Two opinions of the same items, counted: `both` say hit, `only_first`, `only_second`, or `neither`.

    An item is a result beside a group of its query (two labellers), or a result by itself (two annotators). `groups`
    lists each group with its own counts, those of most disagreement first; `labellers` are those asked.
    """

    first: str
    second: str
    of: str
    queries: int
    both: int
    only_first: int
    only_second: int
    neither: int
    labellers: tuple[str, str] = ("id", "id")
    groups: list[dict[str, Any]] = field(default_factory=list)

    @property
    def items(self) -> int:
        """How many were looked at."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def observed(self) -> float:
        """p_o: the share on which the two agree; NaN of none."""
        return (self.both + self.neither) / self.items if self.items else math.nan

    @property
    def expected(self) -> float:
        """p_e: the share on which they would agree by chance."""
        if not self.items:
            return math.nan
        first, second = (self.both + self.only_first) / self.items, (self.both + self.only_second) / self.items
        return first * second + (1 - first) * (1 - second)

    @property
    def kappa(self) -> float:
        """Cohen's kappa, (p_o − p_e) ÷ (1 − p_e); NaN where both call all items the same. Source: Cohen 1960."""
        chance = self.expected
        return (self.observed - chance) / (1 - chance) if chance < 1 else math.nan

    @property
    def positive(self) -> float:
        """Of what one of them calls a hit, the share that the other does too: 2·both ÷ (2·both + only one).

        Kappa is low where hits are rare, however well two agree; this is not.
        """
        calls = 2 * self.both + self.only_first + self.only_second
        return 2 * self.both / calls if calls else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python."""
        counts = {name: getattr(self, name) for name in ("both", "only_first", "only_second", "neither")}
        figures = {name: getattr(self, name) for name in ("kappa", "observed", "expected", "positive")}
        head: dict[str, Any] = {"first": self.first, "second": self.second, "of": self.of, "queries": self.queries}
        head["labellers"] = list(self.labellers)
        return {**head, "items": self.items, **counts, **figures, "groups": self.groups}


def agree(
    truth: Any,
    run: Any = None,
    *,
    other_truth: Any = None,
    labeller: Any = "id",
    other_labeller: Any = None,
    corpus: Any = None,
    policy: Policy | str | dict[str, str] | None = None,
    truth_format: str | None = None,
    run_format: str | None = None,
    engine: Any = "auto",
) -> Agreement:
    """Sets two labellers side by side over the results of a run, or two annotators (`other_truth`).

    Of two labellers every result is looked at beside every group of its query. Of two annotators every result of the
    queries both have judged is relevant to one, to both or to neither; without a run, everything that either has judged
    is looked at. Raises `DataError` or `ConfigError`.

    >>> first, second = {"q": [["a"], ["b"]]}, {"q": [["a", "c"]]}
    >>> found = agree(first, {"q": ["a", "b", "c", "d"]}, other_truth=second)  # a: both; b, c: one; d: neither
    >>> found.observed, found.expected, found.kappa
    (0.5, 0.5, 0.0)
    """
    rules, how = Policy.of(policy), engine_of(engine)
    sources = Sources(corpus)
    one = labeller_of(labeller, sources)
    two = one if other_labeller is None else labeller_of(other_labeller, sources)
    given = as_ground_truth(truth, rules, truth_format)
    if other_truth is None:
        if other_labeller is None:
            ways = "another labeller (--other), or another ground truth (--annotator)"
            raise ConfigError(f"agree: expected {ways}, to agree with")
        if run is None:
            raise ConfigError("agree: two labellers are compared over the results of a run, and none was given")
        return _labellers(given, as_run(run, given, run_format, engine=how), (one, two), rules, how)
    other = as_ground_truth(other_truth, rules, truth_format)
    shared = [qid for qid in given.qids if qid in other.index]
    if not shared:
        raise DataError("agree: the two have no query in common")
    pair = tuple(truth.select([truth.index[qid] for qid in shared]) for truth in (given, other))
    if run is None:
        if given.forms or other.forms or one.name != "id" or two.name != "id":
            raise ConfigError("agree: without a run, only judgments of ids can be compared; give one")
        text = "without a run only what one of the two has judged is looked at: kappa is lower than over all results"
        warnings.warn(f"agree: {text}; give a run", GroupgtWarning, stacklevel=2)
        run = {qid: list(dict.fromkeys([*_ids(pair[0], qid), *_ids(pair[1], qid)])) for qid in shared}
    return _annotators(pair, as_run(run, given, run_format, engine=how), (one, two), rules, how)


def _ids(truth: GroundTruth, qid: str) -> list[str]:
    at = truth.index[qid]
    return [truth.ids[a] for a in np.flatnonzero(truth.query_of == at).tolist()]


def _hits(truth: GroundTruth, run: Run, labeller: Labeller, policy: Policy, engine: Engine) -> tuple[GroundTruth, Hits]:
    read = labeller.read(truth)
    # Every result that hits counts here, not the first alone; a place in the ranking is what the two have in common.
    rules = Policy(ties=policy.ties)
    return read, label_run(read, run, rules, labeller, engine=engine).hits


def _relevant(truth: GroundTruth, hits: Hits) -> tuple[Ints, Ints, Ints]:
    """(query, rank, group as given) of every hit of a relevant alternative."""
    chosen = truth.grade[hits.alternative] > 0
    return hits.query[chosen], hits.rank[chosen], truth.group_of[hits.alternative[chosen]]


def _labellers(
    truth: GroundTruth, run: Run, pair: tuple[Labeller, Labeller], policy: Policy, engine: Engine
) -> Agreement:
    found = [_hits(truth, run, each, policy, engine) for each in pair]
    length = found[0][1].length
    deepest = int(length.max()) + 1 if len(length) else 1
    # Groups keep their numbers whatever a labeller makes of their alternatives.
    calls = [np.unique(group * deepest + rank) for _, rank, group in (_relevant(*each) for each in found)]
    asked = np.bincount(truth.group_of[truth.grade > 0], minlength=len(truth.group_query)) > 0
    sizes = len(truth.group_query)
    one, two = calls
    shared, alone, others = (
        np.bincount(own // deepest, minlength=sizes)
        for own in (np.intersect1d(one, two), np.setdiff1d(one, two), np.setdiff1d(two, one))
    )
    total = int(length[truth.group_query[asked]].sum())
    rows = [
        {
            "qid": truth.qids[int(truth.group_query[group])],
            "group": truth.group_label(group),
            "both": int(shared[group]),
            "only_first": int(alone[group]),
            "only_second": int(others[group]),
        }
        for group in np.flatnonzero(asked).tolist()
    ]
    both, first, second = _counted(*calls)
    queries = int((truth.judgments.defined & (length > 0)).sum())
    counts = (both, first, second, total - both - first - second)
    names = (str(pair[0]), str(pair[1]))
    return Agreement(*names, "results beside groups", queries, *counts, names, _sorted(rows))


def _annotators(
    truths: tuple[GroundTruth, ...], run: Run, pair: tuple[Labeller, Labeller], policy: Policy, engine: Engine
) -> Agreement:
    found = [_hits(truth, run, labeller, policy, engine) for truth, labeller in zip(truths, pair)]
    length = found[0][1].length
    deepest = int(length.max()) + 1 if len(length) else 1
    relevant = [_relevant(*each) for each in found]
    calls = [np.unique(query * deepest + rank) for query, rank, _ in relevant]
    both, first, second = _counted(*calls)
    rows: list[dict[str, Any]] = []
    for who, (query, rank, group) in enumerate(relevant):
        code = query * deepest + rank
        # Distinct (group, result), and whether the other calls the result relevant.
        pairs = np.unique(np.stack((group, code)), axis=1)
        known = np.isin(pairs[1], calls[1 - who])
        size = len(found[who][0].group_query)
        own, shared = (np.bincount(pairs[0][mask], minlength=size) for mask in (np.ones_like(known), known))
        for number in np.flatnonzero(own).tolist():
            qid = truths[0].qids[int(found[who][0].group_query[number])]
            rest = int(own[number] - shared[number])
            row = {"qid": qid, "annotator": who + 1, "group": found[who][0].group_label(number)}
            row |= {"both": int(shared[number]), "only_first": 0, "only_second": 0}
            rows.append({**row, ("only_first", "only_second")[who]: rest})
    total = int(length.sum())
    counts = (both, first, second, total - both - first - second)
    queries = int((length > 0).sum())
    names = (str(pair[0]), str(pair[1]))
    return Agreement("the first annotator", "the second annotator", "results", queries, *counts, names, _sorted(rows))


def _counted(first: Ints, second: Ints) -> tuple[int, int, int]:
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both, len(first) - both, len(second) - both


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: -(row["only_first"] + row["only_second"]))
