"""Compares systems with a baseline, or in pairs: means, deltas, confidence intervals, tests, wins and losses.

`contrasts_of` tests families of comparisons, `rows_of` builds table rows from the values of all systems, and `pairs_of`
controls the error over all pairs with Tukey's honestly significant difference.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, TypeVar

import numpy as np
from annotated_types import Ge, Le

from groupgt.comparison.intervals import UNBOUNDED, Bounds, delta_intervals, intervals
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import (
    SLACK,
    alpha_at,
    corrected,
    infer,
    on_grid,
    permutations,
    scipy_stats,
    slack_of,
)
from groupgt.evaluation.estimates import estimate_of, plain_of
from groupgt.evaluation.result import mean_of
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats

Interval = tuple[float, float]
NO_INTERVAL: Interval = (math.nan, math.nan)
Share = Annotated[float, Ge(0), Le(1)]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
# Two systems and a metric.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Contrast:
    """A comparison of two systems on one metric, over the `pairs` queries that count for both.

    `delta` is the mean difference (system − other). `unpaired` is the number of queries that count for only one of the
    two systems, and `wins` the number on which the system is better. `p_value` is corrected over its family, but
    `raw_p_value` is not. `spread` is the standard deviation of the differences, and `effect_size` is Cohen's d_z, the
    mean difference ÷ `spread`. Undefined values are NaN. `size` is the mean size of the nonzero differences, or 0;
    `alike` is True if all nonzero differences have this size, as with 0/1 metrics. `significant` is True if `p_value`
    is at most alpha; `confidence` is the level at which `delta_interval` agrees with `significant`.

    With an audit, `delta`, its interval and p are corrected; all other fields are based on the audited ground truth.
    """

    delta: float
    delta_interval: Interval
    pairs: int
    unpaired: int
    wins: int
    ties: int
    losses: int
    spread: float
    effect_size: float
    raw_p_value: Share
    p_value: Share
    size: float = 0.0
    alike: bool = False
    significant: bool = False
    confidence: Share = 0.95

    @property
    def differ(self) -> int:
        """The number of queries on which the systems differ."""
        return self.wins + self.losses


def _of_contrast(value: Callable[[Contrast], T]) -> cached_property[T | None]:
    """Builds a property that reads a value from a row's contrast, or None for the baseline."""
    return cached_property(lambda row: None if row.against is None else value(row.against))


@dataclass(frozen=True)
class Row:
    """A table row for one system and metric: the mean with its CI over `queries`, and the contrast with the baseline.

    The fields of the contrast `against` the baseline can be read from the row: `row.delta`, `row.p_value`, `row.wins` …
    For the baseline itself, `against` and these fields are None. With an audit, the mean and its CI are corrected.
    """

    system: str
    metric: str
    mean: float
    interval: Interval
    queries: int
    against: Contrast | None

    @property
    def significant(self) -> bool:
        """True if the system differs significantly from the baseline."""
        return self.against is not None and self.against.significant

    delta = _of_contrast(lambda contrast: contrast.delta)
    delta_interval = _of_contrast(lambda contrast: contrast.delta_interval)
    pairs = _of_contrast(lambda contrast: contrast.pairs)
    unpaired = _of_contrast(lambda contrast: contrast.unpaired)
    wins = _of_contrast(lambda contrast: contrast.wins)
    ties = _of_contrast(lambda contrast: contrast.ties)
    losses = _of_contrast(lambda contrast: contrast.losses)
    spread = _of_contrast(lambda contrast: contrast.spread)
    effect_size = _of_contrast(lambda contrast: contrast.effect_size)
    raw_p_value = _of_contrast(lambda contrast: contrast.raw_p_value)
    p_value = _of_contrast(lambda contrast: contrast.p_value)
    size = _of_contrast(lambda contrast: contrast.size)
    alike = _of_contrast(lambda contrast: contrast.alike)
    differ = _of_contrast(lambda contrast: contrast.differ)


# By system and metric, shape (Q,) each: NaN if a query does not count. More than one value per query: see `estimates`.
Values = Mapping[str, Mapping[str, Floats]]


def among(values: Values, metrics: Iterable[str], queries: Bools) -> Values:
    """Returns the values of some metrics for the marked queries only."""
    return {name: {text: columns[text][queries] for text in metrics} for name, columns in values.items()}


def rows_of(
    values: Values,
    metrics: Mapping[str, Metric],
    baseline: str,
    settings: Settings,
    contrasts: Mapping[Key, Contrast] | None = None,
) -> list[Row]:
    """Computes a row for each system and metric; without `contrasts`, the comparisons on each metric form a family."""
    if contrasts is None:
        twos = [(name, baseline) for name in values if name != baseline]
        contrasts = contrasts_of(values, metrics, twos, settings)
    spans = mean_intervals(values, metrics, settings)
    return [
        Row(
            name,
            text,
            mean_of(columns[text]),
            spans[name, text],
            int((~np.isnan(plain_of(columns[text]))).sum()),
            contrasts.get((name, baseline, text)),
        )
        for name, columns in values.items()
        for text in metrics
    ]


def mean_intervals(
    values: Values, metrics: Mapping[str, Metric], settings: Settings
) -> dict[tuple[str, str], Interval]:
    """Returns the confidence interval for the mean of each system and metric."""
    keys = [(name, text) for text in metrics for name in values]
    columns = [values[name][text] for name, text in keys]
    bounds = _bounds(values, metrics)
    within = [bounds[text] for _, text in keys]
    if columns and columns[0].ndim > 1:
        estimates = zip(keys, map(estimate_of, columns), within)
        return {
            key: NO_INTERVAL if each is None else each.at(settings.confidence, ends) for key, each, ends in estimates
        }
    spans = np.full((len(columns), 2), np.nan)
    for places, block in _by_defined_queries(columns):
        within_block = [within[place] for place in places]
        spans[places] = intervals(block, within_block, settings.confidence, settings.resamples, settings.seed)
    return {key: (low, high) for key, (low, high) in zip(keys, spans.tolist())}


def comparisons(contrasts: Iterable[Contrast | None]) -> int:
    """Counts the comparisons in a family that have a p-value."""
    return sum(contrast is not None and not math.isnan(contrast.raw_p_value) for contrast in contrasts)


def _bounds(values: Mapping[K, Mapping[str, Floats]], metrics: Mapping[str, Metric]) -> dict[str, Bounds]:
    """Returns the bounds of each metric's values, which may be infinite."""
    bounds = {}
    for text, metric in metrics.items():
        columns = [each[text] for each in values.values()]
        highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=0.0)
        bounds[text] = (0.0, 1.0) if metric.definition.bounded and highest <= 1.0 else UNBOUNDED
    return bounds


def drop(delta: float, *, higher_is_better: bool) -> float:
    """Returns the loss, which is positive if the system is worse than the baseline."""
    return -delta if higher_is_better else delta


def contrasts_of(
    values: Mapping[K, Mapping[str, Floats]],
    metrics: Mapping[str, Metric],
    twos: Sequence[tuple[K, K]],
    settings: Settings,
) -> dict[tuple[K, K, str], Contrast]:
    """Compares pairs of systems on some metrics, with the same random draws for all.

    The comparisons on one metric form a family, whose p-values are corrected together.
    """
    keys = [(first, second, text) for text in metrics for first, second in twos]
    columns = [values[first][text] - values[second][text] for first, second, text in keys]
    # A difference may be as large as the range of the values.
    widened = {text: (low - high, high - low) for text, (low, high) in _bounds(values, metrics).items()}
    bounds = [widened[text] for *_, text in keys]
    raw, p_values = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    is_estimated = bool(columns) and columns[0].ndim > 1
    estimates = [estimate_of(column, delta=True) for column in columns] if is_estimated else []
    raw[:] = [math.nan if each is None else each.p_value for each in estimates] or raw
    blocks = [
        (places, block, infer(settings.test, block, settings.resamples, settings.seed, settings.alpha))
        for places, block in ([] if is_estimated else _by_defined_queries(columns))
    ]
    for places, _, inference in blocks:
        raw[places] = inference.p_values
    alphas = np.full(len(columns), settings.alpha)
    for start in range(0, len(keys), max(len(twos), 1)):
        family = slice(start, start + len(twos))
        p_values[family] = corrected(settings.correction, raw[family])
        compared, rejected = int((~np.isnan(raw[family])).sum()), int((p_values[family] <= settings.alpha).sum())
        alphas[family] = alpha_at(settings.correction, settings.alpha, compared, rejected)
    ends = np.full((len(columns), 2), np.nan)
    for places, block, inference in blocks:
        within = [bounds[place] for place in places]
        ends[places] = delta_intervals(block, within, inference, alphas[places], settings.resamples, settings.seed)
    for place, (estimate, alpha) in enumerate(zip(estimates, alphas.tolist())):
        if estimate is not None:
            ends[place] = estimate.at(1 - alpha, bounds[place])
    return {
        (first, second, text): _contrast(
            metrics[text],
            values[first][text],
            values[second][text],
            interval=(float(ends[place, 0]), float(ends[place, 1])),
            raw_p_value=float(raw[place]),
            p_value=float(p_values[place]),
            confidence=1 - float(alphas[place]),
            significant=bool(p_values[place] <= settings.alpha),
        )
        for place, (first, second, text) in enumerate(keys)
    }


def _contrast(metric: Metric, system: Floats, other: Floats, *, interval: Interval, **tested: Any) -> Contrast:
    difference = system - other
    if difference.ndim > 1:
        plain = _contrast(metric, plain_of(system), plain_of(other), interval=interval, **tested)
        estimate = estimate_of(difference, delta=True)
        return replace(plain, delta=math.nan if estimate is None else estimate.mean, delta_interval=interval)
    deltas = difference[~np.isnan(difference)]
    sign = 1 if metric.higher_is_better else -1
    wins, losses = int((sign * deltas > SLACK).sum()), int((sign * deltas < -SLACK).sum())
    delta, spread, (low, high) = mean_of(difference), _spread(deltas), interval
    delta = 0.0 if math.fabs(delta) < SLACK else delta
    sizes = np.abs(deltas[np.abs(deltas) > SLACK])
    return Contrast(
        delta=delta,
        delta_interval=(low, high) if math.isnan(low) else (min(low, delta), max(high, delta)),
        pairs=len(deltas),
        unpaired=int((np.isnan(system) != np.isnan(other)).sum()),
        wins=wins,
        ties=len(deltas) - wins - losses,
        losses=losses,
        spread=spread,
        effect_size=delta / spread if spread else math.copysign(math.inf, delta) if delta else 0.0,
        size=mean_of(sizes) if len(sizes) else 0.0,
        alike=bool(len(sizes) and np.ptp(sizes) < SLACK),
        **tested,
    )


def _by_defined_queries(columns: Sequence[Floats]) -> list[tuple[list[int], Floats]]:
    """Groups columns defined on the same queries; returns their indices and values, shape (n, C)."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for place, column in enumerate(columns):
        groups.setdefault((len(column), np.packbits(np.isnan(column)).tobytes()), []).append(place)
    blocks = []
    for places in groups.values():
        is_defined = ~np.isnan(columns[places[0]])
        blocks.append((places, np.stack([columns[place][is_defined] for place in places], axis=1)))
    return blocks


def _spread(differences: Floats) -> float:
    """Returns the standard deviation (n − 1); NaN for fewer than two queries, 0 for a rounding error."""
    if len(differences) < 2:
        return math.nan
    centred = differences - mean_of(differences)
    spread = math.sqrt(math.fsum((centred * centred).tolist()) / (len(differences) - 1))
    return 0.0 if spread < SLACK else spread


@dataclass(frozen=True)
class Pair:
    """A comparison of two systems, `first` and `second`, on one metric.

    `against.p_value` is corrected over all pairs for this metric; `tukey` is the p-value from Tukey's HSD.
    """

    first: str
    second: str
    metric: str
    against: Contrast
    tukey: Share


def pairs_of(values: Values, metrics: Mapping[str, Metric], settings: Settings) -> list[Pair]:
    """Compares all pairs of systems on every metric, with Tukey's HSD over queries that count for all systems."""
    contrasts = contrasts_of(values, metrics, list(combinations(values, 2)), settings)
    place = {name: number for number, name in enumerate(values)}
    honest = {}
    for text in metrics:
        columns = np.stack([of_system[text] for of_system in values.values()], axis=1)
        # Tukey's test knows neither audits nor annotators.
        complete = columns[~np.isnan(columns).any(axis=1)] if columns.ndim == 2 else np.empty((0, len(values)))
        honest[text] = tukey(complete, settings)
    return [
        Pair(first, second, text, against, float(honest[text][place[first], place[second]]))
        for (first, second, text), against in contrasts.items()
    ]


def tukey(values: Floats, settings: Settings) -> Floats:
    """Returns p-values from Tukey's HSD, shape (S, S), for values of shape (n, S) with queries as blocks.

    With the t test, p comes from the studentized range of q = |difference of means| ÷ √(MSE ÷ n), where MSE is the
    residual mean square of the two-way layout, with (S − 1)(n − 1) degrees of freedom (SciPy). With any other test, p
    comes from randomization: values are permuted within queries, and p is the share (1 + as far) ÷ (1 + resamples) of
    permutations whose range of means reaches the difference. Sources: Tukey 1953; Carterette, TOIS 2012.

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
    # Sums that are equal in exact arithmetic count as equally far.
    away = np.abs(sums[:, None] - sums[None, :]) - 2 * slack_of(exact).max()
    # Queries on which all systems agree stay unchanged.
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
        # SciPy integrates numerically and warns about digits that are never shown.
        warnings.simplefilter("ignore")
        tails = np.array(stats.studentized_range.sf(distinct / np.sqrt(error / count), width, degrees))
    return tails[where].reshape(away.shape)
