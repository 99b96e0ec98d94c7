"""Score thresholds that leave unanswerable queries without results, and the recall that other queries lose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from groupgt.engines.budgets import scores_of
from groupgt.errors import ConfigError
from groupgt.evaluation.depth import METRIC, check_depth
from groupgt.evaluation.evaluate import evaluate_given
from groupgt.evaluation.options import OneRun, OneRunOptions, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.model.hits import Floats
from groupgt.options import Doc
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

# Shares of unanswerable queries in the table.
SHARES = tuple(tenth / 10 for tenth in range(1, 11))
# The most points of a curve, at scores in even intervals.
POINTS = 200


@dataclass(frozen=True)
class Threshold:
    """Effect of returning only results with scores of at least `threshold` (at most, for distances; None returns all).

    `abstains` is the share of unanswerable queries without results, `recall` the mean recall.coverage over answerable
    queries, `answered` the share of answerable queries with a result. `asked` is True if the user requested the share.
    """

    run: str
    threshold: float | None
    abstains: float
    recall: float
    answered: float
    asked: bool = False


@dataclass(frozen=True)
class Thresholds(Result):
    """For each run and share, the lowest threshold at which that share of unanswerable queries returns no results.

    For each run, `thresholds` begins with an entry for all results; `curves` contains points for a plot over all
    scores. `answerable` and `unanswerable` count queries.
    """

    thresholds: tuple[Threshold, ...]
    answerable: int
    unanswerable: int
    curves: tuple[Threshold, ...] = field(repr=False, default=())
    evaluations: tuple[Evaluated, ...] = field(default=(), repr=False, compare=False)

    def plot(self) -> Figure:
        """Plot recall, and the share of unanswerable queries without results, against the threshold."""
        return self._teller.plot("thresholds")


@takes_options(OneRunOptions)
def thresholds(
    truth: Truth,
    run: OneRun,
    share: Annotated[
        float | Sequence[float], Doc("Share of unanswerable queries that must return no results, or several shares.")
    ] = 0.9,
    **options: Unpack[OneRunOptions],
) -> Thresholds:
    """Find the lowest score threshold at which a share of the unanswerable queries returns no results.

    Results with scores below the threshold are removed. The threshold is above the best scores of that share of
    unanswerable queries, and at most the next higher score in the run. Raises `DataError` or `ConfigError`, for example
    if no query is declared unanswerable (`answerable` is false in its row), or if results have no scores.

    >>> import polars as pl
    >>> rows = {"qid": ["a", "b", "c"], "retrieval_gt": [[["x"]], [], []], "answerable": [True, False, False]}
    >>> run = {"a": {"x": 0.8}, "b": {"y": 0.5}, "c": {"z": 0.1}}
    >>> found = thresholds(pl.DataFrame(rows, strict=False), run, 0.5)
    >>> [(each.threshold, each.abstains, each.recall) for each in found.thresholds if each.asked]
    [(0.5, 0.5, 1.0)]
    """
    shares = [share] if isinstance(share, (int, float)) else list(share)
    check_depth(shares, "results", 0.95)
    request = Request.of(METRIC, **options)
    return thresholds_of([evaluate_given(request, truth, run)], shares)


def thresholds_of(evaluations: Sequence[Evaluated], shares: Sequence[float]) -> Thresholds:
    """Compute thresholds for runs that are already labelled."""
    truth = evaluations[0].truth
    if not truth.unanswerable.any():
        way = "declare some with retrieval_gt [] and answerable false"
        raise ConfigError(f"score thresholds: no query is declared unanswerable; {way}")
    thresholds: list[Threshold] = []
    curves: list[Threshold] = []
    for evaluation in evaluations:
        curve = _Curve.of(evaluation)
        requested = {curve.reaching(share) for share in shares}
        chosen = dict.fromkeys([None, *map(curve.reaching, sorted({*SHARES, *shares}))])
        thresholds += [curve.at(threshold, asked=threshold in requested) for threshold in chosen]
        scores = np.unique(curve.scores)
        places = np.unique(np.linspace(0, len(scores) - 1, min(POINTS, len(scores))).round().astype(np.int64))
        curves += map(curve.at, scores[places].tolist())
    counts = evaluations[0].counts
    return Thresholds(tuple(thresholds), counts["evaluated"], counts["unanswerable"], tuple(curves), tuple(evaluations))


def between(below: float, above: float) -> float:
    """Return the number with the fewest digits that is greater than `below` and at most `above`."""
    exact = Decimal(repr(above))
    for digits in range(17):
        number = float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits), rounding=ROUND_FLOOR))
        if below < number <= above:
            return number
    return above


@dataclass(frozen=True, eq=False)
class _Curve:
    """Scores of one run, and the best score of each unanswerable and each answerable query (−∞ without results).

    `covered` contains the sorted scores of results that cover groups, and `weight` their contributions to recall.
    """

    name: str
    scores: Floats
    unanswerable: Floats
    answerable: Floats
    covered: Floats
    weight: Floats
    # −1 if these numbers are negated distances.
    sign: int = 1

    @classmethod
    def of(cls, evaluation: Evaluated) -> _Curve:
        """Pool the trials of a system, each with the same weight."""
        parts = [cls._of_run(each) for each in evaluation.each]
        columns = [np.concatenate(column) for column in zip(*(part.columns for part in parts))]
        scores, unanswerable, answerable, covered, weight = columns
        order = np.lexsort((weight, covered))  # the order of trials changes no sum
        return replace(
            parts[0],
            scores=scores,
            unanswerable=np.sort(unanswerable),
            answerable=np.sort(answerable),
            covered=covered[order],
            weight=weight[order] / len(parts),
        )

    @property
    def columns(self) -> tuple[Floats, ...]:
        return self.scores, self.unanswerable, self.answerable, self.covered, self.weight

    @classmethod
    def _of_run(cls, evaluation: Evaluation) -> _Curve:
        truth = evaluation.truth
        query, scores = scores_of(truth, evaluation.run, evaluation.policy)
        start = np.searchsorted(query, np.arange(len(truth)))
        best = np.full(len(truth), -np.inf)
        has_results = np.bincount(query, minlength=len(truth)) > 0
        best[has_results] = scores[start[has_results]]
        judgments, counts = truth.judgments, evaluation.counting
        ranks = evaluation.labelled.hits.first_ranks
        has_hit = (ranks > 0) & counts[judgments.group_query]
        of_query = judgments.group_query[has_hit]
        covered = scores[start[of_query] + ranks[has_hit] - 1]
        order = np.argsort(covered)
        weight = (1 / judgments.groups[of_query] / max(int(counts.sum()), 1))[order]
        ends = np.sort(best[truth.unanswerable]), best[counts]
        return cls(evaluation.name, scores, *ends, covered[order], weight, evaluation.run.sign)

    def reaching(self, share: float) -> float | None:
        """Return the lowest threshold at which this share of unanswerable queries has no results, or None."""
        needed = math.ceil(share * len(self.unanswerable) - 1e-9)
        below = float(self.unanswerable[needed - 1])
        if below == -math.inf:
            return None
        above = self.scores[self.scores > below]
        return between(below, float(above.min()) if len(above) else below + max(abs(below), 1e-9) / 100)

    def at(self, threshold: float | None, *, asked: bool = False) -> Threshold:
        low = np.nextafter(-np.inf, 0) if threshold is None else threshold
        kept = self.weight[np.searchsorted(self.covered, low) :]
        answered = float((self.answerable >= low).mean()) if len(self.answerable) else math.nan
        abstains = float((self.unanswerable < low).mean())
        recall = math.fsum(kept.tolist()) if len(self.answerable) else math.nan
        as_given = None if threshold is None else self.sign * threshold
        return Threshold(self.name, as_given, abstains, recall, answered, asked)
