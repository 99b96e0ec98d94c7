"""Measures how well two labellers or annotators agree, and lists the groups on which they disagree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Unpack

import numpy as np

from groupgt.curation.matching import GroupPair, group_pairs, judged_ids
from groupgt.engines.carriers import renamed
from groupgt.errors import ConfigError, DataError, warn
from groupgt.evaluation.evaluate import label_run
from groupgt.evaluation.joined_ids import fault_of_joined, ids_of
from groupgt.evaluation.options import LabelOptions, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.sources import labeller_of
from groupgt.evaluation.unknown_ids import fault_of_lists, warn_of_corpus
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints
from groupgt.model.policy import Policy
from groupgt.model.run import Run
from groupgt.options import Doc
from groupgt.render.results import Result
from groupgt.render.tables import Grid

# The counts of items, by who calls them a hit.
COUNTS = ("both", "only_first", "only_second", "neither")


@dataclass(frozen=True)
class Agreement(Result):
    """Counts of items that are a hit for `both` sides, for `only_first`, for `only_second`, or for `neither`.

    For two labellers, an item is a result paired with a group of its query. For two annotators, an item is a result.
    `groups` lists the counts of each group, most disagreement first. `labellers` names the labellers. For two
    annotators, `pairs` contains both annotators' groups, matched by shared passages.
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
    worst: int = 20
    pairs: list[GroupPair] = field(default_factory=list)

    @property
    def items(self) -> int:
        """Number of items compared."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def observed(self) -> float:
        """The share of items on which both sides agree (p_o), or NaN if there are no items."""
        return (self.both + self.neither) / self.items if self.items else math.nan

    @property
    def expected(self) -> float:
        """The share of items on which both sides would be expected to agree by chance (p_e)."""
        if not self.items:
            return math.nan
        first, second = (self.both + self.only_first) / self.items, (self.both + self.only_second) / self.items
        return first * second + (1 - first) * (1 - second)

    @property
    def kappa(self) -> float:
        """Cohen's kappa, (p_o − p_e) ÷ (1 − p_e), or NaN if both give all items the same label. Source: Cohen 1960."""
        chance = self.expected
        return (self.observed - chance) / (1 - chance) if chance < 1 else math.nan

    @property
    def alpha(self) -> float:
        """Krippendorff's alpha for two coders and nominal data: 1 − (2n − 1)·differences ÷ (hits · others).

        The hits and the others (non-hits) are counted over both coders, and n is the number of items. Alpha is NaN if
        all labels are equal. Source: Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011.
        """
        hits = 2 * self.both + self.only_first + self.only_second
        others = 2 * self.items - hits
        if not hits or not others:
            return math.nan
        return 1 - (2 * self.items - 1) * (self.only_first + self.only_second) / (hits * others)

    @property
    def group_kappa(self) -> float:
        """Cohen's kappa over all judged passages and all pairs of matched groups, or NaN if there are no pairs.

        A passage is a hit for an annotator if it is in that annotator's group in the pair.
        """
        counts = [sum(getattr(pair, name) for pair in self.pairs) for name in COUNTS]
        return replace(self, **dict(zip(COUNTS, counts)), pairs=[]).kappa if self.pairs else math.nan

    @property
    def matched(self) -> int:
        """The number of groups with a counterpart from the other annotator."""
        return sum(pair.first is not None and pair.second is not None for pair in self.pairs)

    @property
    def positive(self) -> float:
        """The share of one side's hits that the other side shares: 2·both ÷ (2·both + only_first + only_second).

        Unlike kappa, this share is not low merely because hits are rare.
        """
        calls = 2 * self.both + self.only_first + self.only_second
        return 2 * self.both / calls if calls else math.nan

    def group_rows(self) -> Grid:
        """Return headers and one row per group, with its agreement counts."""
        has_annotators = any("annotator" in group for group in self.groups)
        names = ["qid", *(["annotator"] if has_annotators else []), "group", "both", "only_first", "only_second"]
        return names, [[group[name] for name in names] for group in self.groups]


@takes_options(LabelOptions, corpus="Passage text for the labellers: a path, a frame or `{id: text}`.")
def agree(
    truth: Truth,
    run: Annotated[Any, Doc("The results to label: `{qid: ranking}`, a `Run`, a path or a frame.")] = None,
    *,
    other_truth: Annotated[Any, Doc("Ground truth from another annotator for the same queries.")] = None,
    other_labeller: Annotated[
        Any, Doc('Another labeller for the same results: a name, or `{"use": name, "with": options}`.')
    ] = None,
    parts: bool = False,
    **options: Unpack[LabelOptions],
) -> Agreement:
    """Compare two labellers on a run's results, or two annotators (the second in `other_truth`).

    For two labellers, every result is paired with every group of its query. For two annotators, each result of a query
    that both judged is relevant for both annotators, for one, or for neither. Without a run, the items are the
    documents judged by both annotators if both include non-relevant judgments, and otherwise the documents judged by
    either. Raises `DataError` or `ConfigError`.

    >>> first, second = {"q": [["a"], ["b"]]}, {"q": [["a", "c"]]}
    >>> agreement = agree(first, {"q": ["a", "b", "c", "d"]}, other_truth=second)  # a: both; b, c: one; d: neither
    >>> agreement.observed, agreement.expected, agreement.kappa
    (0.5, 0.5, 0.0)
    """
    request = Request.of(parts=parts, **options)
    return agreement_of(request, request.truth_of(truth), run, other_truth, other_labeller)


def agreement_of(
    request: Request, grouped: GroundTruth, run: Any, other_truth: Any = None, other_labeller: Any = None
) -> Agreement:
    """Compare two labellers or annotators with the data in a request."""
    other_request = request
    request.reading.require_columns([] if run is None else [run])
    if other_labeller is not None:
        other_request = replace(request, labeller=labeller_of(other_labeller, request.sources))
    if other_truth is None:
        if other_labeller is None:
            others = "another labeller (--other) or another ground truth (--annotator)"
            raise ConfigError(f"agree: expected {others} to compare with")
        if run is None:
            raise ConfigError("agree: comparing labellers requires a run")
        warn_of_corpus(grouped, request)
        warn_of_corpus(grouped, other_request)
        results = request.run_of(run, grouped)
        _check_lists(fault_of_lists(grouped, results, request))
        return _of_labellers(_Judgments.of(grouped, results, request), _Judgments.of(grouped, results, other_request))
    other = request.reading.annotation(other_truth)
    warn_of_corpus(grouped, request)
    warn_of_corpus(other, request, "the other annotator: ")
    shared = [qid for qid in grouped.qids if qid in other.index]
    if not shared:
        raise DataError("agree: the two ground truths have no query in common")
    judged = [judgments.select([judgments.index[qid] for qid in shared]) for judgments in (grouped, other)]
    if run is None:
        names = {request.labeller.name, other_request.labeller.name}
        if grouped.forms or other.forms or names != {"id"}:
            raise ConfigError("agree: without a run, only judgments of ids can be compared; pass a run")
        joined = (fault_of_joined(one.unsplit, ids_of(two)) for one, two in (judged, judged[::-1]))
        _check_lists(*joined)
        run = _judged_by(*judged)
    results = request.run_of(run, grouped)
    _check_lists(*(fault_of_lists(each, results, request) for each in judged))
    first = _Judgments.of(judged[0], results, request)
    agreement = _of_annotators(first, _Judgments.of(judged[1], results, other_request))
    return agreement if grouped.forms or other.forms else replace(agreement, pairs=group_pairs(*judged))


def _check_lists(*faults: str) -> None:
    """Raise `DataError` for the first text that lists several ids, if there is one."""
    if fault := next(filter(None, faults), ""):
        raise DataError(fault)


def _judged_by(first: GroundTruth, second: GroundTruth) -> dict[str, list[str]]:
    """Return the documents judged by both annotators if both give non-relevant judgments, otherwise those of either."""
    ids = {qid: (judged_ids(first, qid), judged_ids(second, qid)) for qid in first.qids}
    if first.irrelevant_groups and second.irrelevant_groups:
        return {qid: [doc for doc in dict.fromkeys(one) if doc in other] for qid, (one, other) in ids.items()}
    lower = "which lowers kappa; pass a run"
    warn(f"agree: without a run, groupgt counts only documents judged by at least one annotator, {lower}")
    return {qid: list(dict.fromkeys(one + other)) for qid, (one, other) in ids.items()}


@dataclass(frozen=True, eq=False)
class _Judgments:
    """Labels from one labeller or annotator for the results of a run: each hit, and the length of each ranking."""

    truth: GroundTruth
    labeller: Labeller
    query: Ints
    rank: Ints
    group: Ints
    length: Ints

    @classmethod
    def of(cls, truth: GroundTruth, run: Run, request: Request) -> _Judgments:
        """Label a run. Keep every result with a hit, not only the first, so that both sides match by rank."""
        labeller, policy = request.labeller, Policy(ties=request.policy.ties)
        read = labeller.read(truth)
        run = renamed(read, run, labeller, policy)
        hits = label_run(read, run, policy, labeller, engine=request.engine).hits
        relevant = hits.group >= 0
        group = read.relevant_groups[hits.group[relevant]]
        return cls(read, labeller, hits.query[relevant], hits.rank[relevant], group, hits.length)

    def codes(self, numbers: Ints) -> Ints:
        """Encode the (number, rank) of every hit as a single number."""
        return numbers * self.span + self.rank

    @property
    def span(self) -> int:
        """A number that is larger than every rank."""
        return int(self.length.max(initial=0)) + 1


def _of_labellers(first: _Judgments, second: _Judgments) -> Agreement:
    """Compare two labellers on (result, group) pairs. Group numbers do not depend on the labeller."""
    truth, length = first.truth, first.length
    one, two = (np.unique(side.codes(side.group)) for side in (first, second))
    relevant = np.bincount(truth.group_of[truth.is_relevant], minlength=len(truth.group_query)) > 0
    counts = [
        np.bincount(codes // first.span, minlength=len(truth.group_query)).tolist()
        for codes in (np.intersect1d(one, two), np.setdiff1d(one, two), np.setdiff1d(two, one))
    ]
    rows = []
    for group in np.flatnonzero(relevant).tolist():
        of_group = {name: count[group] for name, count in zip(COUNTS, counts)}
        qid = truth.qids[int(truth.group_query[group])]
        rows.append({"qid": qid, "group": truth.group_label(group), **of_group})
    items = int(length[truth.group_query[relevant]].sum())
    names = (str(first.labeller), str(second.labeller))
    queries = int((truth.judgments.defined & (length > 0)).sum())
    return Agreement(*names, "results beside groups", queries, *_counts(one, two, items), names, _most_first(rows))


def _of_annotators(first: _Judgments, second: _Judgments) -> Agreement:
    """Compare two annotators on results. Each group lists the other annotator's labels for the group's hits."""
    one, two = (np.unique(side.codes(side.query)) for side in (first, second))
    rows: list[dict[str, Any]] = []
    for annotator, (side, others) in enumerate(((first, two), (second, one)), 1):
        # Distinct (group, result) pairs, and whether the result is relevant for the other.
        group, result = np.unique(np.stack((side.group, side.codes(side.query))), axis=1)
        hits = np.bincount(group, minlength=len(side.truth.group_query))
        both = np.bincount(group[np.isin(result, others)], minlength=len(hits))
        for number in np.flatnonzero(hits).tolist():
            only = {"only_first": 0, "only_second": 0}
            only[COUNTS[annotator]] = int(hits[number] - both[number])
            qid = first.truth.qids[int(side.truth.group_query[number])]
            label = side.truth.group_label(number)
            rows.append({"qid": qid, "annotator": annotator, "group": label, "both": int(both[number]), **only})
    titles = ("the first annotator", "the second annotator")
    names = (str(first.labeller), str(second.labeller))
    queries, counts = int((first.length > 0).sum()), _counts(one, two, int(first.length.sum()))
    return Agreement(*titles, "results", queries, *counts, names, _most_first(rows))


def _counts(first: Ints, second: Ints, items: int) -> tuple[int, int, int, int]:
    """Return the four counts in the order of `COUNTS`, given the distinct hits of both sides."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both, len(first) - both, len(second) - both, items - len(first) - len(second) + both


def _most_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: -(row["only_first"] + row["only_second"]))
