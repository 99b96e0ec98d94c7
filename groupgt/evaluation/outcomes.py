"""Sets judged answers beside retrieval: how often they are correct where it is complete, and where it is not.

All of it is association over queries; several answers of a query are averaged first. With z = (part − p · whole) ÷
Σ whole for each query and n = (Σ whole)² ÷ Σ whole², a share p = Σ part ÷ Σ whole has Wilson's interval at

    p (1 − p) ÷ (Σ z² · n ÷ (n − 1)) queries: at least n − 1, and at most the answers if each is 0 or 1

(n queries if p is 0 or 1), with t for the normal quantile if a query has several answers or one is neither 0 nor 1. A
difference has Newcombe's interval, with the correlation of the z if queries are on both sides.

Sources: Wilson 1927; Newcombe 1998; Korn & Graubard 1998; Zou & Donner 2008; DeLong, DeLong & Clarke-Pearson 1988.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np
from typing_extensions import Doc

from groupgt.errors import ConfigError, DataError, display
from groupgt.evaluation.estimates import normal_quantile, student_quantile
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.options import Metrics, OneRun, OneRunOptions, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.formats.answers import Answers, read_answers
from groupgt.metrics.language import Metric, parse_metric, split_names
from groupgt.metrics.values import values_of
from groupgt.model.hits import Bools, Floats, Ints
from groupgt.model.values import Budget, summed
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

DEFAULT_METRICS = ("recall", "hit_rate", "precision", "ndcg", "mrr")
# A query whose mean score is at least this counts as correct where queries are listed and classes counted.
CORRECT = 0.5
# The fewest queries of a share, and of each class of answers to compare metrics; the fewest queries, wrong ones, and
# wrong ones with complete retrieval for the excess.
FEWEST, FEWEST_IN_CLASS, FEWEST_FOR_EXCESS = 5, 8, (100, 20, 5)
# How often correct answers need a second answer from gold context, relative to wrong ones.
EVENLY = 0.9


@dataclass(frozen=True)
class Share:
    """A share with its confidence interval, a difference of two, or a concordance.

    A share is `part` ÷ `whole`, sums over queries.
    """

    value: float
    interval: tuple[float, float]
    part: float | None = None
    whole: float | None = None


@dataclass(frozen=True)
class Answered:
    """A query with the mean score of its answers, and of those from gold context, if it has any."""

    qid: str
    complete: bool
    score: float
    oracle: float | None


@dataclass(frozen=True, eq=False)
class Outcomes(Result):
    """Answers beside retrieval, over the queries that have both; retrieval is complete or not within `cutoff`.

    `shares` has correct answers where retrieval is `complete` and `incomplete`, and the `difference`; wrong and correct
    answers with incomplete retrieval (`wrong`, `correct`); wrong answers beyond the rate with complete retrieval
    (`excess`); with an oracle run, wrong answers that it has right (`gross`), minus those newly wrong (`net`).
    `metrics` has the concordance of each metric, best first. The first is the `winner` if it beats all others.
    `refused` says why a share, or `metrics`, is missing. `left_out` counts what is in no share. `is_plain` is True if
    each query has one answer, which is correct or not.
    """

    run: str
    cutoff: str
    confidence: float
    is_plain: bool
    shares: Mapping[str, Share]
    metrics: Mapping[str, Share]
    winner: str | None
    refused: Mapping[str, str]
    left_out: Mapping[str, int]
    queries: tuple[Answered, ...] = field(repr=False)

    def plot(self) -> Figure:
        """Plot the shares of correct answers where retrieval is complete, and where it is not."""
        return self._teller.plot("means")


@takes_options(OneRunOptions, corpus="A path or `{id: text}`, for the labeller.")
def outcomes(
    truth: Truth,
    run: OneRun,
    answers: Annotated[
        Any, Doc("Judged answers: a path or a frame with `qid` and `correct` (0 to 1), or `{qid: score}`.")
    ],
    metrics: Metrics = DEFAULT_METRICS,
    *,
    k: Annotated[int, Doc("Cutoff of completeness, and of metrics without one.")] = 10,
    oracle: Annotated[Any, Doc("Judged answers to the same queries from gold context.")] = None,
    confidence: Annotated[float, Doc("Confidence level.")] = 0.95,
    **options: Unpack[OneRunOptions],
) -> Outcomes:
    """Set judged answers beside retrieval: how often they are correct where it is complete, and where it is not.

    Raises `DataError` or `ConfigError`.

    >>> truth = {f"q{n}": [[f"a{n}"]] for n in range(20)}
    >>> run = {f"q{n}": [f"a{n}" if n < 12 else "x"] for n in range(20)}
    >>> found = outcomes(truth, run, {f"q{n}": n < 10 for n in range(20)})
    >>> [(found.shares[side].part, found.shares[side].whole) for side in ("complete", "incomplete")]
    [(10.0, 12.0), (0.0, 8.0)]
    """
    request = Request.of(beside_complete(metrics), k=k, **options)
    evaluation = evaluate_run(request, request.truth_of(truth), run)
    gold = None if oracle is None else read_answers(oracle, title="oracle")
    return outcomes_of(evaluation, k, read_answers(answers), gold, confidence)


def beside_complete(metrics: Sequence[str | Metric]) -> list[str | Metric]:
    """Return the metrics to set beside answers, which `complete` is always among."""
    return list(dict.fromkeys(["complete", *(split_names(metrics) if isinstance(metrics, str) else metrics)]))


def outcomes_of(
    evaluation: Evaluation,
    cutoff: int | Budget | None,
    answers: Answers,
    oracle: Answers | None = None,
    confidence: float = 0.95,
) -> Outcomes:
    """Set answers beside a run that is already evaluated."""
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence: expected a number above 0 and below 1, found {display(confidence)}")
    truth, hits = evaluation.truth, evaluation.labelled.hits
    metric = replace(parse_metric("complete.coverage"), cutoff=cutoff)
    complete = values_of({"": metric}, hits, evaluation.labelled.present, evaluation.policy)[""]
    places = answers.places(truth)
    score, counts = _by_query(places, answers.scores, len(truth))
    answered, valued = counts > 0, ~np.isnan(complete)
    used = np.flatnonzero(answered & valued)
    if not len(used):
        raise DataError(f"{answers.title}: expected answers to queries with ground truth and results, found none")
    score, counts, complete, scores = score[used], counts[used], complete[used], answers.scores
    gold = np.full(len(used), np.nan)
    if oracle is not None:
        gold, again = (each[used] for each in _by_query(oracle.places(truth), oracle.scores, len(truth)))
        counts, scores = np.maximum(counts, again), np.concatenate([scores, oracle.scores])
    level = Level(confidence, counts, bool(np.isin(scores, (0, 1)).all()))
    shares, refused = _shares(score, complete, score * complete, None if oracle is None else gold, level)
    signs = {text: 1 if each.higher_is_better else -1 for text, each in evaluation.metrics.items()}
    columns = {
        evaluation.label_of(text): signs[text] * column[used]
        for text, column in evaluation.values.items()
        if not np.isnan(column[used]).all()
    }
    metrics: Mapping[str, Share] = {}
    winner = None
    try:
        metrics, winner = ranked(columns, score, level)
    except DataError as error:
        refused["metrics"] = str(error)
    left_out = {
        "unanswerable": int((answered & evaluation.populations.unanswerable).sum()),
        "undefined": int((answered & ~valued & ~evaluation.populations.unanswerable).sum()),
        "unknown": int((places < 0).sum()),
        "unjudged": answers.unjudged,
        "unanswered": int((valued & ~answered).sum()),
    }
    golden = [None if math.isnan(each) else each for each in gold.tolist()]
    rows = zip([truth.qids[place] for place in used.tolist()], (complete == 1).tolist(), score.tolist(), golden)
    return Outcomes(
        evaluation.name,
        "" if cutoff is None else str(cutoff),
        confidence,
        level.is_plain,
        shares,
        metrics,
        winner,
        refused,
        {name: count for name, count in left_out.items() if count},
        tuple(Answered(*row) for row in rows),
    )


def _by_query(places: Ints, scores: Floats, size: int) -> tuple[Floats, Ints]:
    """Return the mean score of each query, NaN without an answer, and the number of its answers, shape (Q,) each."""
    order = np.lexsort((scores, places))  # the order of rows does not change sums
    order = order[places[order] >= 0]
    counts = np.bincount(places[order], minlength=size)
    sums = np.bincount(places[order], weights=scores[order], minlength=size)
    return np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0), counts


@dataclass(frozen=True, eq=False)
class Level:
    """What intervals depend on beside values: confidence, answers per query, and whether all of them are 0 or 1."""

    confidence: float
    answers: Ints
    binary: bool = True

    @property
    def is_plain(self) -> bool:
        """True if every query has one answer, which is 0 or 1."""
        return self.binary and bool((self.answers <= 1).all())

    def student(self, size: float) -> float:
        """Return Student's quantile for a number of queries."""
        return student_quantile(self.confidence, max(1, round(size) - 1))


def _shares(
    score: Floats, complete: Floats, both: Floats, oracle: Floats | None, level: Level
) -> tuple[dict[str, Share], dict[str, str]]:
    """Return every share by name, and the reasons for those that are missing, from arrays of shape (Q,).

    `both` is score · complete, averaged over the answers of a query.
    """
    shares: dict[str, Share] = {}
    refused: dict[str, str] = {}

    def add(name: str, estimate: Callable[..., Share], *arrays: Any) -> None:
        try:
            shares[name] = estimate(*arrays, level)
        except DataError as error:
            refused[name] = str(error)

    wrong = 1 - score
    add("complete", share_of, both, complete)
    add("incomplete", share_of, score - both, 1 - complete)
    if not refused:
        add("difference", difference_of, (both, complete), (score - both, 1 - complete))
    add("wrong", share_of, wrong - complete + both, wrong)
    add("correct", share_of, score - both, score)
    add("excess", excess_of, wrong, complete, complete - both)
    if oracle is not None:
        add("gross", share_of, np.nan_to_num(wrong * oracle), wrong * ~np.isnan(oracle))
        add("net", net_of, score, oracle)
    return shares, refused


def share_of(part: Floats, whole: Floats, level: Level) -> Share:
    """Return Σ part ÷ Σ whole; raise `DataError` if the whole has too few queries.

    >>> share = share_of(np.array([1.0] * 9 + [0.0]), np.ones(10), Level(0.95, np.ones(10, dtype=int)))
    >>> share.value, [round(end, 4) for end in share.interval]  # Wilson's interval of 0.9 at 9 queries
    (0.9, [0.5773, 0.9834])
    """
    if (count := int((whole > 0).sum())) < FEWEST:
        raise DataError(f"expected at least {FEWEST} queries, found {count}")
    top, total = summed(part), summed(whole)
    value, size = top / total, total**2 / summed(whole**2)
    queries, variance = size, summed(_centred(part, whole) ** 2) * size / (size - 1)
    if variance > 0 and 0 < value < 1:
        most = float(level.answers[whole > 0].sum()) if level.binary else math.inf
        queries = min(max(value * (1 - value) / variance, size - 1), most)
    c = (normal_quantile(level.confidence) if level.is_plain else level.student(size)) ** 2 / queries
    middle, half = (value + c / 2) / (1 + c), math.sqrt(c * value * (1 - value) + c * c / 4) / (1 + c)
    return Share(value, (min(max(middle - half, 0.0), value), max(min(middle + half, 1.0), value)), top, total)


def _centred(part: Floats, whole: Floats) -> Floats:
    """Return z, what each query adds to the error of a share."""
    z: Floats = (part - summed(part) / summed(whole) * whole) / summed(whole)
    return z


def difference_of(first: tuple[Floats, Floats], second: tuple[Floats, Floats], level: Level) -> Share:
    """Return the difference of two shares, each given as its part and its whole."""
    one, other = share_of(*first, level), share_of(*second, level)
    z_one, z_other = _centred(*first), _centred(*second)
    scale = math.sqrt(summed(z_one**2) * summed(z_other**2))
    correlation = summed(z_one * z_other) / scale if scale else 0.0

    def reach(up: float, down: float) -> float:
        return math.sqrt(max(up**2 + down**2 - 2 * correlation * up * down, 0.0))

    below = reach(one.value - one.interval[0], other.interval[1] - other.value)
    above = reach(one.interval[1] - one.value, other.value - other.interval[0])
    delta = one.value - other.value
    return Share(delta, (delta - below, delta + above))


def excess_of(wrong: Floats, complete: Floats, both: Floats, level: Level) -> Share:
    """Return 1 − P(wrong | complete) ÷ P(wrong); its interval is that of the log ratio, linearized by query.

    `both` is wrong · complete, averaged over the answers of a query. Raises `DataError` for few queries.
    """
    counts = len(wrong), int((wrong > CORRECT).sum()), int((both > CORRECT).sum())
    if any(count < fewest for count, fewest in zip(counts, FEWEST_FOR_EXCESS)):
        text = "{} queries, {} wrong answers, {} of these with complete retrieval"
        raise DataError(f"expected at least {text.format(*FEWEST_FOR_EXCESS)}, found {text.format(*counts)}")
    size, total, covered = len(wrong), summed(wrong), summed(complete)
    rate = summed(both) / covered
    influence = (both - rate * complete) / (rate * covered) - (wrong - total / size) / total
    reach = normal_quantile(level.confidence) * _error(influence)
    ratio = rate * size / total
    return Share(1 - ratio, (1 - ratio * math.exp(reach), 1 - ratio * math.exp(-reach)), total - rate * size, total)


def _error(influence: Floats) -> float:
    """Return the standard error of a statistic from the influence of each query."""
    return math.sqrt(summed(influence**2) * len(influence) / (len(influence) - 1))


def net_of(score: Floats, oracle: Floats, level: Level) -> Share:
    """Return (accuracy of the oracle − accuracy) ÷ (1 − accuracy), with a t interval linearized by query.

    As few queries may hide that gold context can fail, one more query is assumed to have turned. Raises `DataError` for
    few wrong answers, and if the oracle (NaN without an answer) ran mostly on these.
    """
    right, again = score >= CORRECT, ~np.isnan(oracle)
    if (count := int((again & ~right).sum())) < FEWEST:
        raise DataError(f"expected at least {FEWEST} queries with wrong answers, found {count}")
    if right.any() and again[right].mean() < EVENLY * again[~right].mean():
        found = (
            f"{count:,} of {(~right).sum():,} wrong and {(again & right).sum():,} of {right.sum():,} correct answers"
        )
        raise DataError(f"expected gold context to be tried on all queries, found it tried on {found}")
    score, oracle = score[again], oracle[again]
    gained, lost = summed(oracle - score), summed(1 - score)
    value = gained / lost
    turned = summed((oracle - score - value * (1 - score)) ** 2) + 1
    reach = level.student(len(score)) * math.sqrt(turned * len(score) / (len(score) - 1)) / lost
    return Share(value, (value - reach, min(value + reach, 1.0)), gained, lost)


def concordance_of(values: Floats, score: Floats) -> tuple[float, Floats]:
    """Return the share of pairs of queries with different scores that values order alike; ties count ½.

    Also returns the influence of each query on it, shape (Q,).

    >>> concordance_of(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 0.0]))[0]  # one pair of two in order
    0.5
    """
    # For each query, pairs that agree minus those that do not; by level of the column that has fewer of them.
    signs = np.zeros(len(score))
    few, many = sorted((values, score), key=lambda column: len(np.unique(column)))
    for level in np.unique(few):
        at = few == level
        for sign, others in ((1, np.sort(many[few < level])), (-1, np.sort(many[few > level]))):
            ends = (np.searchsorted(others, many[at], end) for end in ("left", "right"))
            signs[at] += sign * (sum(ends) - len(others))
    _, level_of, counts = np.unique(score, return_inverse=True, return_counts=True)
    pairs = len(score) - counts[level_of]
    ordered = (pairs + signs) / 2
    concordance = float(ordered.sum() / pairs.sum())
    # Each pair was counted from both ends.
    return concordance, (ordered - concordance * pairs) / (pairs.sum() / 2)


def ranked(columns: Mapping[str, Floats], score: Floats, level: Level) -> tuple[dict[str, Share], str | None]:
    """Return the concordance of each metric (higher is better), best first, and the one that beats all others, if any.

    Intervals and tests, which are not corrected, are Student's by the smaller class of answers, on the queries that
    every metric is defined for. Raises `DataError` for small classes.
    """
    if not columns:
        raise DataError("expected a metric with values for answered queries, found none")
    defined: Bools = np.all([~np.isnan(column) for column in columns.values()], axis=0)
    score = score[defined]
    right, wrong = int((score >= CORRECT).sum()), int((score < CORRECT).sum())
    if min(right, wrong) < FEWEST_IN_CLASS:
        what = f"expected at least {FEWEST_IN_CLASS} correct and as many wrong answers, found {right} and {wrong}"
        raise DataError(f"{what}; not compared: {', '.join(columns)}")
    found = {text: concordance_of(column[defined], score) for text, column in columns.items()}
    order = sorted(found, key=lambda text: -found[text][0])
    t, (best, of_best) = level.student(min(right, wrong)), found[order[0]]
    shares = {}
    for text in order:
        value, influence = found[text]
        reach = t * _error(influence)
        shares[text] = Share(value, (max(value - reach, 0.0), min(value + reach, 1.0)))
    beaten = [best - found[text][0] > t * _error(of_best - found[text][1]) for text in order[1:]]
    return shares, order[0] if beaten and all(beaten) else None
