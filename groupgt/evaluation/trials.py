"""Combines the trials of one system, which are evaluations of its results when it is queried several times.

A query's value is the mean over the trials in which it has one, so that comparisons, slices and gates can ignore
trials. Identical trials give the values of a single run, bit for bit.

`Noise` measures how much of a mean is due to chance. With m_q and s²_q the mean and variance (÷ r − 1) of a query's
values in r trials, over n queries:

    W = Σ s²_q + c
    these queries, other trials: mean ± t · √(W ÷ r) ÷ n, or Wilson's interval for metrics that are 0 or 1
    noise floor, by which two runs on these queries may differ: t · √(2 W) ÷ n, at most the metric's range
    queries that change: the mean number of queries whose values differ in two trials

t has n (r − 1) degrees of freedom. A new build can shift all queries together. For builds, W is n² times the variance
of their means, unless that is smaller, and t has r − 1 degrees of freedom. c is 1 ÷ r for metrics that are 0 or 1, 1 ÷
4r for other metrics between 0 and 1, and otherwise 0. c stands for one unseen flip, because trials that agree do not
prove that other trials would agree. Wilson's interval takes the mean m as a share of m (1 − m) r n² ÷ W cases, or of r
n where m is 0 or 1. An F test finds trials that differ as a whole. The F test compares the variance between trials with
the variance that remains after removing the means of queries and trials.

Sources: Cochran 1977 and Wilson 1927 (the intervals); Chen et al. 2021, arXiv 2107.03374 (pass_at); Yao et al. 2024,
arXiv 2406.12045 (pass_all); Paulson, Annals of Mathematical Statistics 1942 (quantiles of F).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from groupgt.errors import MetricError
from groupgt.evaluation.estimates import Noise, mean_of, student_quantile, wilson
from groupgt.evaluation.result import Evaluated, Evaluation, Repeated
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats
from groupgt.model.values import means_over_trials


def check_trials(metrics: Iterable[Metric], trials: int) -> None:
    """Raise `MetricError` for metrics that need more trials than there are."""
    for metric in metrics:
        if metric.passes is not None and metric.passes[1] > max(trials, 1):
            expected = f"expected at least {metric.passes[1]} trials"
            raise MetricError(f"metric {str(metric)!r}: {expected}, found {trials if trials > 1 else 'a single run'}")


def over_trials(trials: Sequence[Evaluation], metrics: Mapping[str, Metric]) -> Repeated:
    """Combine the evaluations of a system's trials into one."""
    columns = {text: np.stack([each.values[text] for each in trials]) for text in metrics}
    return Repeated(
        truth=trials[0].truth,
        metrics=dict(metrics),
        values={text: combined(metric, columns[text]) for text, metric in metrics.items()},
        policy=trials[0].policy,
        convention=trials[0].convention,
        by=trials[0].by,
        labeller=trials[0].labeller,
        is_auto=trials[0].is_auto,
        repeats=tuple(trials),
    )


def of_single_trials(evaluation: Evaluated) -> Evaluated:
    """Return a system with single-trial metrics in place of metrics counted over trials, such as `pass_at`."""
    if not evaluation.repeats or all(metric.passes is None for metric in evaluation.metrics.values()):
        return evaluation
    audit = None if evaluation.audit is None else of_single_trials(evaluation.audit)
    annotators = tuple(map(of_single_trials, evaluation.annotators))
    return replace(over_trials(evaluation.repeats, evaluation.repeats[0].metrics), audit=audit, annotators=annotators)


def combined(metric: Metric, values: Floats) -> Floats:
    """Return one value per query, shape (Q,), from its values in all trials, shape (r, Q); NaN if it has none.

    With `pass_at=k`, the value is the probability that at least one of k trials succeeds, with `pass_all=k` that all of
    them do: 1 − C(r − c, k) ÷ C(r, k) and C(c, k) ÷ C(r, k), where c of r trials succeed.
    """
    counts = (~np.isnan(values)).sum(axis=0)
    if metric.passes is None:
        return means_over_trials(values)
    (name, k), successes = metric.passes, np.nansum(values, axis=0).astype(np.int64)
    chosen = successes if name == "pass_all" else counts - successes
    column = np.full(values.shape[1], np.nan)
    for query in np.flatnonzero(counts >= k).tolist():
        share = comb(int(chosen[query]), k) / comb(int(counts[query]), k)
        column[query] = share if name == "pass_all" else 1 - share
    return column


def noise_of(evaluation: Evaluated, text: str, confidence: float = 0.95, among: Bools | None = None) -> Noise | None:
    """Return a metric's noise over all or some queries, or None without trials or if the noise is undefined."""
    values = values_in_trials(evaluation, text)
    if values is None:
        return None
    bounded, is_build = evaluation.metrics[text].definition.bounded, evaluation.is_build
    counting = ~np.isnan(evaluation.shown.get(text, evaluation.values[text]))
    counting = counting if among is None else counting & among
    return noise_in(values[:, counting], confidence, bounded=bounded, is_build=is_build)


def noise_in(values: Floats, confidence: float = 0.95, *, bounded: bool = True, is_build: bool = False) -> Noise | None:
    """Return the noise of values, shape (r, Q), for a metric that may be `bounded` by 0 and 1."""
    values = values[:, ~np.isnan(values).all(axis=0)]
    if values.shape[1] < 2:
        return None
    spread, queries = Spread.of(values, bounded=bounded, is_build=is_build), values.shape[1]
    if spread is None:
        return None
    mean, trials = mean_of(means_over_trials(values)), len(values)
    t = student_quantile(confidence, spread.degrees)
    reach, floor = t * math.sqrt(spread.of_mean) / queries, t * math.sqrt(2 * spread.of_run) / queries
    interval = mean - reach, mean + reach
    if bounded:
        interval, floor = (max(mean - reach, 0.0), min(mean + reach, 1.0)), min(floor, 1.0)
    if spread.is_binary:
        share = mean * (1 - mean)
        interval = wilson(mean, share * queries**2 / spread.of_mean if share else trials * queries, confidence)
    return Noise(
        trials=trials,
        queries=queries,
        mean=mean,
        interval=interval,
        floor=floor,
        changing=changing_queries(values),
        whole_p_value=p_of_f([values]),
    )


def changing_queries(values: Floats) -> float:
    """Return the mean number of queries whose values, shape (r, Q), differ between two trials with values for both."""
    pairs = list(combinations(values, 2))
    differing = [int((one != other)[~np.isnan(one) & ~np.isnan(other)].sum()) for one, other in pairs]
    return sum(differing) / len(pairs)


def values_in_trials(evaluation: Evaluated, text: str) -> Floats | None:
    """Return the values of a metric in every trial, shape (r, Q), or None without trials or for counts over trials."""
    if not evaluation.repeats or evaluation.metrics[text].passes is not None:
        return None
    return np.stack([trial.values[text] for trial in evaluation.repeats])


@dataclass(frozen=True)
class Spread:
    """Variances of values and of means over trials, summed over queries, with a term for unseen flips."""

    of_run: float
    of_mean: float
    degrees: int
    is_binary: bool
    is_build: bool = False

    @classmethod
    def of(cls, values: Floats, *, bounded: bool, is_build: bool = False) -> Spread | None:
        """Return the spread of values of shape (r, n), or None if no query has two values."""
        counts = (~np.isnan(values)).sum(axis=0)
        several = counts > 1
        if not several.any():
            return None
        deviations = np.where(np.isnan(values), 0.0, values - means_over_trials(values))
        # Trials have no order, not even in the last bit.
        variances = np.sort(deviations**2, axis=0).sum(axis=0) / np.maximum(counts - 1, 1)
        variances[~several] = mean_of(variances[several])
        given = values[~np.isnan(values)]
        is_binary = bool(((given == 0) | (given == 1)).all())
        unseen = (1.0 if is_binary else 0.25 if bounded else 0.0) / len(values)
        of_mean = math.fsum((variances / counts).tolist()) + unseen / len(values)
        of_run = math.fsum(variances.tolist()) + unseen
        if is_build:
            of_builds = values.shape[1] ** 2 * float(np.var(sorted(map(mean_of, values)), ddof=1))
            of_run = max(of_run, of_builds)
            return cls(of_run, of_run / len(values), len(values) - 1, is_binary=False, is_build=True)
        return cls(of_run, of_mean, int((counts - 1).clip(min=0).sum()), is_binary)


def mean_squares(values: Floats) -> tuple[float, float]:
    """Return the mean squares between trials and of the residuals, from queries with a value in every trial."""
    complete = values[:, ~np.isnan(values).any(axis=0)]
    trials, queries = complete.shape
    if queries < 2:
        return math.nan, math.nan
    complete = complete[np.lexsort(complete.T)]  # sums are then the same in any order of trials
    of_trials = complete.mean(axis=1)
    rest = complete - complete.mean(axis=0) - of_trials[:, np.newaxis] + complete.mean()
    return queries * float(of_trials.var(ddof=1)), float((rest**2).sum()) / ((trials - 1) * (queries - 1))


def p_of_f(systems: Sequence[Floats]) -> float:
    """Test whether trials differ as a whole, from the values of one or more systems. Return the p-value, or NaN."""
    squares = np.array([mean_squares(values) for values in systems])
    between, rest = squares.sum(axis=0)
    if not rest > 0:
        return math.nan
    first = sum(len(values) - 1 for values in systems)
    second = sum((len(values) - 1) * ((~np.isnan(values).any(axis=0)).sum() - 1) for values in systems)
    root, of_first, of_second = (between / rest) ** (1 / 3), 2 / (9 * first), 2 / (9 * second)
    from statistics import NormalDist

    return 1 - NormalDist().cdf(((1 - of_second) * root - (1 - of_first)) / math.sqrt(of_second * root**2 + of_first))
