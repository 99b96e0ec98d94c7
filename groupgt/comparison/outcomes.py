"""Compare how often judged answers are correct when retrieval is complete and when it is not.

All numbers show associations over queries, not causes. Several answers to a query are averaged, as is completeness over
trials. With z = (part − p · whole) ÷ Σ whole for each query, a share p = Σ part ÷ Σ whole has Wilson's interval at

    p (1 − p) ÷ Σ z² queries: at most the answers if each is 0 or 1, and at least n = (Σ whole)² ÷ Σ whole²

(n if p is 0 or 1, or if each query has one answer that is 0 or 1). A difference has Newcombe's interval, with the
correlation of z between its shares. The gain from gold context is computed like any other difference between two
systems.

Sources: Wilson 1927; Newcombe 1998; Korn & Graubard 1998; Zou & Donner 2008.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np

from groupgt.comparison.intervals import delta_intervals
from groupgt.comparison.tests import infer
from groupgt.errors import ConfigError, DataError, display
from groupgt.evaluation.estimates import wilson
from groupgt.evaluation.evaluate import evaluate_given
from groupgt.evaluation.misses import Failures, failures_of
from groupgt.evaluation.options import OneRun, OneRunOptions, Truth, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluated
from groupgt.formats.answers import Answers, read_answers
from groupgt.metrics.language import parse_metric
from groupgt.metrics.values import values_of
from groupgt.model.hits import Floats, Ints
from groupgt.model.values import Budget, means_over_trials, summed
from groupgt.options import Doc
from groupgt.render.results import Result

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

COMPLETE = "complete.coverage"
# In lists of queries, a query with at least this mean score counts as correct.
CORRECT = 0.5
# Number of random sign flips for the interval of a difference, and the seed.
RESAMPLES, SEED = 10_000, 0


@dataclass(frozen=True)
class Share:
    """A share of `part` ÷ `whole`, summed over queries, or a difference of two shares, with its confidence interval."""

    value: float
    interval: tuple[float, float]
    part: float | None = None
    whole: float | None = None


@dataclass(frozen=True)
class Answered:
    """A query with the mean score of its answers, and of its answers from gold context, if any."""

    qid: str
    complete: bool
    score: float
    oracle: float | None


@dataclass(frozen=True, eq=False)
class Outcomes(Result):
    """Answers compared with retrieval, over evaluated queries with an answer. Completeness is measured within `cutoff`.

    `shares` contains `complete`, `incomplete`, `difference`, `wrong` and, with an oracle run, `gold`, which are
    properties, too. A share with a denominator of 0 is left out, and its property is None. `left_out` counts queries
    and answers that are in no share. `is_plain` is True if each query has one answer, which is correct or not, and one
    ranking. With several `trials`, shares weight a query by its fraction of trials, and an answer with a trial number
    goes with that trial's retrieval. A query in `queries` is complete if at least half of its trials are complete.
    `failures` contains the groups of every query.
    """

    run: str
    cutoff: str
    confidence: float
    is_plain: bool
    shares: Mapping[str, Share]
    left_out: Mapping[str, int]
    queries: tuple[Answered, ...] = field(repr=False)
    failures: Failures = field(repr=False)
    trials: int = 1

    @property
    def wrong(self) -> Share | None:
        """The wrong answers (`whole`), and the wrong answers with incomplete retrieval (`part`)."""
        return self.shares.get("wrong")

    @property
    def complete(self) -> Share | None:
        """The share of correct answers when retrieval is complete."""
        return self.shares.get("complete")

    @property
    def incomplete(self) -> Share | None:
        """The share of correct answers when retrieval is incomplete."""
        return self.shares.get("incomplete")

    @property
    def difference(self) -> Share | None:
        """How much larger the share of correct answers is when retrieval is complete than when it is not."""
        return self.shares.get("difference")

    @property
    def gold(self) -> Share | None:
        """How much gold context increases accuracy, or None without an oracle run."""
        return self.shares.get("gold")

    def plot(self) -> Figure:
        """Plot the shares of correct answers when retrieval is complete and when it is not."""
        return self._teller.plot("means")


@takes_options(OneRunOptions, corpus="The corpus for the labeller: a path, a frame or `{id: text}`.")
def outcomes(
    truth: Truth,
    run: OneRun,
    answers: Annotated[
        Any, Doc("Judged answers: a path or a frame with `qid` and `correct` (0 to 1), or `{qid: score}`.")
    ],
    *,
    k: Annotated[int, Doc("Cutoff for completeness.")] = 10,
    oracle: Annotated[Any, Doc("Judged answers to the same queries from gold context.")] = None,
    confidence: Annotated[float, Doc("Confidence level.")] = 0.95,
    **options: Unpack[OneRunOptions],
) -> Outcomes:
    """Compare how often judged answers are correct when retrieval is complete and when it is not.

    Raises `DataError` or `ConfigError`.

    >>> truth = {f"q{n}": [[f"a{n}"]] for n in range(20)}
    >>> run = {f"q{n}": [f"a{n}" if n < 12 else "x"] for n in range(20)}
    >>> found = outcomes(truth, run, {f"q{n}": n < 10 for n in range(20)})
    >>> found.complete.part, found.complete.whole, found.incomplete.value
    (10.0, 12.0, 0.0)
    """
    request = Request.of([COMPLETE], k=k, **options)
    evaluation = evaluate_given(request, truth, run)
    gold = None if oracle is None else read_answers(oracle, title="oracle")
    return outcomes_of(evaluation, k, read_answers(answers), gold, confidence)


def outcomes_of(
    evaluation: Evaluated,
    cutoff: int | Budget | None,
    answers: Answers,
    oracle: Answers | None = None,
    confidence: float = 0.95,
) -> Outcomes:
    """Compare answers with a run that is already evaluated."""
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence: expected a number above 0 and below 1, found {display(confidence)}")
    truth = evaluation.truth
    in_trials = _complete_in_trials(evaluation, cutoff)
    complete = means_over_trials(in_trials)
    places = answers.places(truth)
    score, counts = _by_query(places, answers.scores, len(truth))
    both = score * complete
    if answers.trials and len(in_trials) > 1:
        # An answer goes with the retrieval of its own trial.
        trial = answers.trial_of(len(in_trials))
        parts = [trial == number for number in range(len(in_trials))]
        scored = np.stack([_by_query(places[part], answers.scores[part], len(truth))[0] for part in parts])
        scored, in_trials = scored + 0 * in_trials, in_trials + 0 * scored  # NaN where either is
        score, complete, both = map(means_over_trials, (scored, in_trials, scored * in_trials))
    answered, valued = counts > 0, ~np.isnan(complete)
    used = np.flatnonzero(answered & valued)
    if not len(used):
        raise DataError(f"{answers.title}: expected answers to queries with ground truth and results, found none")
    score, counts, complete, both, scores = score[used], counts[used], complete[used], both[used], answers.scores
    gold = np.full(len(used), np.nan)
    if oracle is not None:
        gold, again = (each[used] for each in _by_query(oracle.places(truth), oracle.scores, len(truth)))
        counts, scores = np.maximum(counts, again), np.concatenate([scores, oracle.scores])
    level = Level(confidence, counts, bool(np.isin(scores, (0, 1)).all() and np.isin(complete, (0, 1)).all()))
    shares = _shares(score, complete, both, None if oracle is None else gold, level)
    left_out = {
        "unanswerable": int((answered & evaluation.populations.unanswerable).sum()),
        "undefined": int((answered & ~valued & ~evaluation.populations.unanswerable).sum()),
        "unknown": int((places < 0).sum()),
        "unjudged": answers.unjudged,
        "unanswered": int((valued & ~answered).sum()),
    }
    golden = [None if math.isnan(each) else each for each in gold.tolist()]
    rows = zip([truth.qids[place] for place in used.tolist()], (complete >= CORRECT).tolist(), score.tolist(), golden)
    return Outcomes(
        evaluation.name,
        "" if cutoff is None else str(cutoff),
        confidence,
        level.is_plain,
        shares,
        {name: count for name, count in left_out.items() if count},
        tuple(Answered(*row) for row in rows),
        failures_of({evaluation.name: evaluation}, cutoff),
        len(evaluation.each),
    )


def _complete_in_trials(evaluation: Evaluated, cutoff: int | Budget | None) -> Floats:
    """Return 1 for each query with complete retrieval, otherwise 0, in every trial, shape (r, Q)."""
    metric = replace(parse_metric(COMPLETE), cutoff=cutoff)
    columns = [
        values_of({"": metric}, each.labelled.hits, each.labelled.present, each.policy)[""] for each in evaluation.each
    ]
    return np.stack(columns)


def _by_query(places: Ints, scores: Floats, size: int) -> tuple[Floats, Ints]:
    """Return each query's mean score (NaN without an answer) and number of answers, shape (Q,) each."""
    order = np.lexsort((scores, places))  # the order of rows does not change sums
    order = order[places[order] >= 0]
    counts = np.bincount(places[order], minlength=size)
    sums = np.bincount(places[order], weights=scores[order], minlength=size)
    return np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0), counts


@dataclass(frozen=True, eq=False)
class Level:
    """The values that intervals depend on: the confidence level, the answers per query, and whether all are 0 or 1."""

    confidence: float
    answers: Ints
    binary: bool = True

    @property
    def is_plain(self) -> bool:
        """True if every query has one answer, which is 0 or 1."""
        return self.binary and bool((self.answers <= 1).all())


def _shares(score: Floats, complete: Floats, both: Floats, oracle: Floats | None, level: Level) -> dict[str, Share]:
    """Return, by name, every share whose whole is not 0, from arrays of shape (Q,). `both` is score · complete."""
    parts = {"complete": (both, complete), "incomplete": (score - both, 1 - complete)}
    parts["wrong"] = 1 - score - complete + both, 1 - score
    shares = {name: share_of(*part, level) for name, part in parts.items() if summed(part[1]) > 0}
    if {"complete", "incomplete"} <= shares.keys():
        shares["difference"] = difference_of(parts["complete"], parts["incomplete"], level)
    if oracle is not None and not np.isnan(oracle).all():
        shares["gold"] = gold_of(score, oracle, level.confidence)
    return {name: shares[name] for name in ("complete", "incomplete", "difference", "wrong", "gold") if name in shares}


def share_of(part: Floats, whole: Floats, level: Level) -> Share:
    """Return Σ part ÷ Σ whole, where the whole is above 0."""
    top, total = summed(part), summed(whole)
    value, queries = min(top / total, 1.0), total**2 / summed(whole**2)
    variance = summed(_centred(part, whole) ** 2)
    if not level.is_plain and variance > 0 and 0 < value < 1:
        most = float(level.answers[whole > 0].sum()) if level.binary else math.inf
        queries = max(min(value * (1 - value) / variance, most), queries)
    return Share(value, wilson(value, queries, level.confidence), top, total)


def _centred(part: Floats, whole: Floats) -> Floats:
    """Return z, the contribution of each query to the error of a share."""
    return (part - summed(part) / summed(whole) * whole) / summed(whole)


def difference_of(first: tuple[Floats, Floats], second: tuple[Floats, Floats], level: Level) -> Share:
    """Return the difference of two shares, each given by its part and its whole."""
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


def gold_of(score: Floats, oracle: Floats, confidence: float) -> Share:
    """Return the accuracy gained with gold context, over queries with both kinds of answers, and its interval."""
    both, alpha = ~np.isnan(oracle), np.array([1 - confidence])
    differences = (oracle - score)[both][:, np.newaxis]
    inference = infer("randomization", differences, RESAMPLES, SEED, float(alpha[0]))
    rejected = inference.p_values <= alpha
    bounds = np.array([[-1.0, 1.0]])
    (low, high), *_ = delta_intervals(differences, bounds, inference, alpha, rejected, RESAMPLES, SEED).tolist()
    gained, count = summed(differences[:, 0]), float(both.sum())
    return Share(gained / count, (low, high), gained, count)
