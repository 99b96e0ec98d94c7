"""Every two systems compared, with Tukey's honestly significant difference: one bound that holds for all pairs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from groupgt.comparison.contrast import Contrast, Scored, bounds_of, contrast
from groupgt.comparison.draws import SLACK, on_grid, permutations, slack_of
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import corrected, scipy_stats
from groupgt.model.hits import Floats


@dataclass(frozen=True)
class Pair:
    """Two systems by one metric: `first` against `second`.

    `against.p_value` is corrected over all pairs and metrics; `tukey` is the p-value of Tukey's HSD over all systems.
    """

    first: str
    second: str
    metric: str
    against: Contrast
    tukey: float


def pairs_of(systems: Sequence[Scored], settings: Settings) -> list[Pair]:
    """Every two systems by every metric, with Tukey's HSD over the queries that count for all systems."""
    pairs: list[Pair] = []
    places = list(combinations(range(len(systems)), 2))
    for text, metric in systems[0].metrics.items():
        columns = [system.values[text] for system in systems]
        bounds = bounds_of(metric, columns)
        contrasts = contrast([columns[a] for a, _ in places], [columns[b] for _, b in places], metric, bounds, settings)
        values = np.stack(columns, axis=1)
        honest = tukey(values[~np.isnan(values).any(axis=1)], settings)
        for (a, b), against in zip(places, contrasts):
            pairs.append(Pair(systems[a].name, systems[b].name, text, against, float(honest[a, b])))
    p_values = corrected(settings.correction, np.array([pair.against.raw_p_value for pair in pairs]))
    return [replace(pair, against=replace(pair.against, p_value=p)) for pair, p in zip(pairs, p_values.tolist())]


def tukey(values: Floats, settings: Settings) -> Floats:
    """p-values of Tukey's HSD, shape (S, S), from values of shape (n, S): each query is a block.

    With the t test by the studentized range of q = |difference of means| ÷ √(MSE ÷ n), MSE the residual mean square of
    the two-way layout, (S − 1)(n − 1) degrees of freedom (SciPy). With every other test by randomization: values are
    permuted within queries, and p is the share (1 + as far) ÷ (1 + resamples) of ranges of the means that reach the
    difference. Sources: Tukey 1953; Carterette, TOIS 2012.

    >>> tukey(np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.9], [0.1, 0.7]]), Settings(resamples=999)).round(1).tolist()
    [[1.0, 0.1], [0.1, 1.0]]
    """
    count, width = values.shape
    if count < 2 or width < 2:
        return np.full((width, width), np.nan)
    if settings.test == "t":
        return _by_range(values)
    exact = on_grid(values)
    sums = exact.sum(axis=0)
    # Sums that are equal on paper are as far.
    away = np.abs(sums[:, None] - sums[None, :]) - 2 * slack_of(exact).max()
    # Queries on which all systems agree stay what they are.
    moving = exact[np.ptp(exact, axis=1) > SLACK]
    as_far = np.zeros((width, width))
    if len(moving):
        for places in permutations(len(moving), width, settings.resamples, settings.seed):
            shuffled = moving[np.arange(len(moving))[None, :, None], places]
            as_far += (np.ptp(shuffled.sum(axis=1), axis=1)[:, None, None] >= away).sum(axis=0)
    else:
        as_far += settings.resamples
    p_values: Floats = (1 + as_far) / (1 + settings.resamples)
    return p_values


def _by_range(values: Floats) -> Floats:
    stats = scipy_stats("Tukey's HSD with the t test")
    count, width = values.shape
    means = values.mean(axis=0)
    away = np.abs(means[:, None] - means[None, :])
    away[away < SLACK] = 0.0
    residual = values - values.mean(axis=1, keepdims=True) - means + values.mean()
    degrees = (count - 1) * (width - 1)
    error = float((residual**2).sum()) / degrees
    if error < SLACK:
        return np.where(away > 0, 0.0, 1.0)
    # The range's distribution is slow to compute: once for each difference.
    distinct, where = np.unique(away, return_inverse=True)
    with warnings.catch_warnings():
        # SciPy integrates numerically, and warns of digits that no p-value shows.
        warnings.simplefilter("ignore")
        tails = np.array(stats.studentized_range.sf(distinct / np.sqrt(error / count), width, degrees))
    return tails[where].reshape(away.shape)
