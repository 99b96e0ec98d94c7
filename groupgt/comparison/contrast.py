"""Systems compared with a baseline, and every two with each other: means, deltas, intervals, tests, wins and losses.

`rows_of` makes the rows of a table from the values of every system; `contrast` holds some columns against others, one
by one, for gates; `pairs_of` bounds all pairs at once, by Tukey's honestly significant difference.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Generic, Self, TypeVar, overload

import numpy as np

from groupgt.comparison.intervals import Bounds, intervals, unseen
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK, corrected, on_grid, p_values, permutations, scipy_stats, slack_of
from groupgt.evaluation.result import mean_of
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats

Interval = tuple[float, float]
# Two systems and a metric.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Contrast:
    """One system against another by one metric, over the `pairs` queries that count for both.

    `delta` is the mean of the differences (system − other), `unpaired` counts queries that count for one of the two
    alone, `wins` those where the system is better (lower, where lower is better). `p_value` is corrected for all
    comparisons of its table, `raw_p_value` is not. `spread` is the standard deviation of the differences,
    `effect_size` Cohen's d_z, their mean ÷ `spread`. NaN stands for what cannot be said. Of those that differ `size` is
    the mean size, 0 where none does, and `alike` says whether all are of that size, as those of 0/1 metrics are.
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
    raw_p_value: float
    p_value: float
    size: float = 0.0
    alike: bool = False

    @property
    def differ(self) -> int:
        """The number of queries that differ at all."""
        return self.wins + self.losses


T = TypeVar("T")


class OfContrast(Generic[T]):
    """A field of the contrast that a row holds; None for the baseline."""

    def __init__(self, value: Callable[[Contrast], T]) -> None:
        self.value = value

    @overload
    def __get__(self, row: None, owner: type[Row]) -> Self: ...
    @overload
    def __get__(self, row: Row, owner: type[Row]) -> T | None: ...
    def __get__(self, row: Row | None, owner: type[Row]) -> Self | T | None:
        if row is None:
            return self
        return None if row.against is None else self.value(row.against)


@dataclass(frozen=True)
class Row:
    """One system by one metric: its mean with an interval over `queries`, and how it stands `against` the baseline.

    The fields of `against` (a `Contrast`, None for the baseline itself) can be read from the row: `row.delta`,
    `row.p_value`, `row.wins` …, None for the baseline.
    """

    system: str
    metric: str
    mean: float
    interval: Interval
    queries: int
    against: Contrast | None
    significant: bool = False

    delta = OfContrast(lambda contrast: contrast.delta)
    delta_interval = OfContrast(lambda contrast: contrast.delta_interval)
    pairs = OfContrast(lambda contrast: contrast.pairs)
    unpaired = OfContrast(lambda contrast: contrast.unpaired)
    wins = OfContrast(lambda contrast: contrast.wins)
    ties = OfContrast(lambda contrast: contrast.ties)
    losses = OfContrast(lambda contrast: contrast.losses)
    spread = OfContrast(lambda contrast: contrast.spread)
    effect_size = OfContrast(lambda contrast: contrast.effect_size)
    raw_p_value = OfContrast(lambda contrast: contrast.raw_p_value)
    p_value = OfContrast(lambda contrast: contrast.p_value)
    size = OfContrast(lambda contrast: contrast.size)
    alike = OfContrast(lambda contrast: contrast.alike)
    differ = OfContrast(lambda contrast: contrast.differ)


# By system and metric, shape (Q,) each: NaN where a query does not count.
Values = Mapping[str, Mapping[str, Floats]]


def rows_of(
    values: Values, metrics: Mapping[str, Metric], baseline: str, settings: Settings, among: Bools | None = None
) -> list[Row]:
    """A row for each system and metric, over all queries or some; p-values are corrected over all of these rows."""
    means = [(name, text) for text in metrics for name in values]
    deltas = [(name, text) for name, text in means if name != baseline]
    columns = {(name, text): _among(values[name][text], among) for name, text in means}
    bounds = {text: bounds_of(metric, [columns[name, text] for name in values]) for text, metric in metrics.items()}
    systems, baselines = [columns[key] for key in deltas], [columns[baseline, text] for _, text in deltas]
    # Means and deltas of all metrics are resampled in one go.
    spans = _intervals(
        _Columns([columns[key] for key in means], [bounds[text] for _, text in means]),
        _Columns(_differences(systems, baselines), [_widened(bounds[text]) for _, text in deltas]),
        settings,
    )
    mean_spans = dict(zip(means, spans))
    kinds = [metrics[text] for _, text in deltas]
    contrasts = dict(zip(deltas, _contrasts(systems, baselines, kinds, spans[len(means) :], settings)))
    rows = []
    for key in ((name, text) for name in values for text in metrics):
        counted = int((~np.isnan(columns[key])).sum())
        rows.append(Row(*key, mean_of(columns[key]), mean_spans[key], counted, contrasts.get(key)))
    return recorrected(rows, settings)


def mean_intervals(
    values: Values, metrics: Mapping[str, Metric], settings: Settings
) -> dict[tuple[str, str], Interval]:
    """The interval of the mean of each system by each metric, as `rows_of` has it."""
    keys = [(name, text) for text in metrics for name in values]
    bounds = {text: bounds_of(metric, [values[name][text] for name in values]) for text, metric in metrics.items()}
    columns = _Columns([values[name][text] for name, text in keys], [bounds[text] for _, text in keys])
    return dict(zip(keys, _intervals(columns, _Columns([], []), settings)))


def _among(column: Floats, among: Bools | None) -> Floats:
    return column if among is None else column[among]


def comparisons(rows: Sequence[Row]) -> int:
    """How many comparisons a table makes: those that have a p-value."""
    return sum(row.against is not None and not math.isnan(row.against.raw_p_value) for row in rows)


def recorrected(rows: Sequence[Row], settings: Settings) -> list[Row]:
    """The same rows with p-values corrected over all of them, and what is significant marked."""
    raw = np.array([row.against.raw_p_value for row in rows if row.against is not None], dtype=np.float64)
    p_values_left = iter(corrected(settings.correction, raw).tolist())
    marked = []
    for row in rows:
        if row.against is not None:
            against = replace(row.against, p_value=next(p_values_left))
            row = replace(row, against=against, significant=against.p_value <= settings.alpha)
        marked.append(row)
    return marked


def contrast(
    systems: Sequence[Floats], others: Sequence[Floats], metric: Metric, bounds: Bounds | None, settings: Settings
) -> list[Contrast]:
    """Each system against the other of the same place, all by one metric; p-values are not corrected yet."""
    differences = _Columns(_differences(systems, others), [_widened(bounds)] * len(systems))
    spans = _intervals(_Columns([], []), differences, settings)
    return _contrasts(systems, others, [metric] * len(systems), spans, settings)


def bounds_of(metric: Metric, columns: Sequence[Floats]) -> Bounds | None:
    """Between what the values of a metric lie; None where nothing bounds them."""
    highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=0.0)
    return (0.0, 1.0) if metric.definition.bounded and highest <= 1.0 else None


def drop(delta: float, *, higher_is_better: bool) -> float:
    """How much worse: above 0 where the system is worse than the baseline."""
    return -delta if higher_is_better else delta


def _differences(systems: Sequence[Floats], others: Sequence[Floats]) -> list[Floats]:
    return [system - other for system, other in zip(systems, others)]


def _contrasts(
    systems: Sequence[Floats],
    others: Sequence[Floats],
    metrics: Sequence[Metric],
    spans: Sequence[Interval],
    settings: Settings,
) -> list[Contrast]:
    columns = _differences(systems, others)
    raw = np.full(len(columns), np.nan)
    for places, differences in _by_known_queries(columns):
        raw[places] = p_values(settings.test, differences, settings.resamples, settings.seed)
    contrasts = []
    for place, (system, other, difference) in enumerate(zip(systems, others, columns)):
        known = difference[~np.isnan(difference)]
        sign = 1 if metrics[place].higher_is_better else -1
        wins, losses = int((sign * known > SLACK).sum()), int((sign * known < -SLACK).sum())
        delta, (low, high) = _without_rounding(mean_of(difference)), spans[place]
        sizes = np.abs(known[np.abs(known) > SLACK])
        contrasts.append(
            Contrast(
                delta=delta,
                delta_interval=(low, high) if math.isnan(low) else (min(low, delta), max(high, delta)),
                pairs=len(known),
                unpaired=int((np.isnan(system) != np.isnan(other)).sum()),
                wins=wins,
                ties=len(known) - wins - losses,
                losses=losses,
                spread=_spread(known),
                effect_size=_effect_size(known),
                raw_p_value=float(raw[place]),
                p_value=float(raw[place]),
                size=mean_of(sizes) if len(sizes) else 0.0,
                alike=bool(len(sizes) and np.ptp(sizes) < SLACK),
            )
        )
    return contrasts


def _by_known_queries(columns: Sequence[Floats]) -> list[tuple[list[int], Floats]]:
    """Columns that are known for the same queries, together: their places, and their known values, shape (n, C)."""
    groups: dict[bytes, list[int]] = {}
    for place, column in enumerate(columns):
        groups.setdefault(np.packbits(np.isnan(column)).tobytes(), []).append(place)
    blocks = []
    for places in groups.values():
        known = ~np.isnan(columns[places[0]])
        blocks.append((places, np.stack([columns[place][known] for place in places], axis=1)))
    return blocks


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of values, and between what each lies."""

    values: Sequence[Floats]
    bounds: Sequence[Bounds | None]


def _intervals(means: _Columns, differences: _Columns, settings: Settings) -> list[Interval]:
    """The interval of the mean of each column of values, then of each column of differences."""
    columns, bounds = [*means.values, *differences.values], [*means.bounds, *differences.bounds]
    spans: list[Interval] = [(math.nan, math.nan)] * len(columns)
    for places, values in _by_known_queries(columns):
        within = [bounds[place] for place in places]
        added = np.zeros(len(places))
        for at, place in enumerate(places):
            if place >= len(means.values):
                most = within[at]
                added[at] = unseen(values[:, [at]], None if most is None else most[1])[0]
        ends = intervals(values, within, settings.intervals, settings.resamples, settings.seed, added)
        for place, (low, high) in zip(places, ends.tolist()):
            spans[place] = (low, high)
    return spans


def _widened(bounds: Bounds | None) -> Bounds | None:
    """Between what differences of values within bounds lie."""
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def _without_rounding(delta: float) -> float:
    """A rounding error is no difference."""
    return 0.0 if math.fabs(delta) < SLACK else delta


def _spread(differences: Floats) -> float:
    """The standard deviation (n − 1); NaN for fewer than two queries, a rounding error is 0."""
    if len(differences) < 2:
        return math.nan
    centred = differences - mean_of(differences)
    spread = math.sqrt(math.fsum((centred * centred).tolist()) / (len(differences) - 1))
    return 0.0 if spread < SLACK else spread


def _effect_size(differences: Floats) -> float:
    """Cohen's d_z; NaN for fewer than two queries, 0 where none differs, infinite where all differ alike."""
    spread, mean = _spread(differences), _without_rounding(mean_of(differences))
    if spread == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / spread


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


def contrasts_of(
    values: Values,
    metrics: Mapping[str, Metric],
    twos: Sequence[tuple[str, str]],
    settings: Settings,
    among: Bools | None = None,
) -> dict[Key, Contrast]:
    """Some systems against others by some metrics, over all queries or some; p-values are corrected over all."""
    contrasts: dict[Key, Contrast] = {}
    for text, metric in metrics.items() if twos else ():
        columns = {name: _among(of_system[text], among) for name, of_system in values.items()}
        firsts, seconds = [columns[first] for first, _ in twos], [columns[second] for _, second in twos]
        tested = contrast(firsts, seconds, metric, bounds_of(metric, list(columns.values())), settings)
        contrasts |= {(first, second, text): each for (first, second), each in zip(twos, tested)}
    p_values = corrected(settings.correction, np.array([each.raw_p_value for each in contrasts.values()])).tolist()
    return {key: replace(each, p_value=p) for (key, each), p in zip(contrasts.items(), p_values)}


def pairs_of(values: Values, metrics: Mapping[str, Metric], settings: Settings) -> list[Pair]:
    """Every two systems by every metric, with Tukey's HSD over the queries that count for all systems."""
    contrasts = contrasts_of(values, metrics, list(combinations(values, 2)), settings)
    place = {name: number for number, name in enumerate(values)}
    honest = {}
    for text in metrics:
        columns = np.stack([of_system[text] for of_system in values.values()], axis=1)
        honest[text] = tukey(columns[~np.isnan(columns).any(axis=1)], settings)
    return [
        Pair(first, second, text, against, float(honest[text][place[first], place[second]]))
        for (first, second, text), against in contrasts.items()
    ]


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
