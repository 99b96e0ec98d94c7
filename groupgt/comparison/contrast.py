"""Systems compared with a baseline, and every two with each other: means, deltas, intervals, tests, wins and losses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.comparison.intervals import intervals, on_grid, permutations, slack_of, unseen
from groupgt.comparison.tests import SLACK, Settings, corrected, p_values, scipy_stats
from groupgt.evaluation.result import mean_of
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats

if TYPE_CHECKING:
    from groupgt.evaluation.result import Evaluation

Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Scored:
    """The values of one system, `values[text]` of shape (Q,), NaN where a query does not count."""

    name: str
    qids: Sequence[str]
    metrics: Mapping[str, Metric]
    values: Mapping[str, Floats]
    convention: str

    @classmethod
    def of(cls, name: str, evaluation: Evaluation, texts: Sequence[str]) -> Scored:
        """What an evaluation found by these metrics."""
        metrics = {text: evaluation.metrics[text] for text in texts}
        values = {text: evaluation.values[text] for text in texts}
        return cls(name, evaluation.truth.qids, metrics, values, evaluation.convention)


def bounds_of(metric: Metric, columns: Sequence[Floats]) -> Bounds | None:
    """Between what the values of a metric lie; None where nothing bounds them."""
    highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=0.0)
    return (0.0, 1.0) if metric.definition.bounded and highest <= 1.0 else None


Interval = tuple[float, float]


@dataclass(frozen=True)
class Contrast:
    """One system against another by one metric, over the `pairs` queries that count for both.

    `delta` is the mean of the differences (system − other), `unpaired` counts queries that count for one of the two
    alone, `wins` those where the system is better (lower, where lower is better). `p_value` is corrected for all
    comparisons of its table, `raw_p_value` is not. `spread` is the standard deviation of the differences,
    `effect_size` Cohen's d_z, their mean ÷ `spread`. NaN stands for what cannot be said.
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

    @property
    def differ(self) -> int:
        """The number of queries that differ at all."""
        return self.wins + self.losses


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

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *Contrast.__dataclass_fields__, "differ"]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (name not in Contrast.__dataclass_fields__ and name != "differ"):
            raise AttributeError(f"a row has no {name!r}")
        return None if self.against is None else getattr(self.against, name)


def rows_of(systems: Sequence[Scored], baseline: str, settings: Settings, among: Bools | None = None) -> list[Row]:
    """A row for each system and metric, over all queries or some; p-values are corrected over all of these rows."""
    first = next(each for each in systems if each.name == baseline)
    others = [each for each in systems if each.name != baseline]
    keys = [(each.name, text) for text in first.metrics for each in systems]
    pairs = [(each.name, text) for text in first.metrics for each in others]
    columns = {(each.name, text): _among(each.values[text], among) for text in first.metrics for each in systems}
    bounds = {
        text: bounds_of(metric, [columns[each.name, text] for each in systems])
        for text, metric in first.metrics.items()
    }
    own, base = [columns[key] for key in pairs], [columns[baseline, text] for _, text in pairs]
    # Means and deltas of all metrics are resampled in one go.
    sides = _Sides([columns[key] for key in keys], [bounds[text] for _, text in keys])
    spans = _intervals(sides, _differences(own, base), [_wide(bounds[text]) for _, text in pairs], settings)
    means = dict(zip(keys, spans))
    metrics = [first.metrics[text] for _, text in pairs]
    contrasts = dict(zip(pairs, _contrasts(own, base, metrics, spans[len(keys) :], settings)))
    rows = []
    for each in systems:
        for text in first.metrics:
            column = _among(each.values[text], among)
            counted = int((~np.isnan(column)).sum())
            against = contrasts.get((each.name, text))
            rows.append(Row(each.name, text, mean_of(column), means[each.name, text], counted, against))
    return recorrected(rows, settings)


def comparisons(rows: Sequence[Row]) -> int:
    """How many comparisons a table makes: those that have a p-value."""
    return sum(row.against is not None and not math.isnan(row.raw_p_value) for row in rows)


def recorrected(rows: Sequence[Row], settings: Settings) -> list[Row]:
    """The same rows with p-values corrected over all of them, and what is significant marked."""
    raw = np.array([row.raw_p_value for row in rows if row.against is not None], dtype=np.float64)
    values = iter(corrected(settings.correction, raw).tolist())
    found = []
    for row in rows:
        if row.against is not None:
            against = replace(row.against, p_value=next(values))
            row = replace(row, against=against, significant=against.p_value <= settings.alpha)
        found.append(row)
    return found


def contrast(
    systems: Sequence[Floats], others: Sequence[Floats], metric: Metric, bounds: Interval | None, settings: Settings
) -> list[Contrast]:
    """Each system against the other of the same place, all by one metric; p-values are not corrected yet."""
    differences = _differences(systems, others)
    spans = _intervals(_Sides([], []), differences, [_wide(bounds)] * len(differences), settings)
    return _contrasts(systems, others, [metric] * len(differences), spans, settings)


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
    values = np.full(len(columns), np.nan)
    for places, differences in by_mask(columns):
        values[places] = p_values(settings.test, differences, settings.resamples, settings.seed)
    found = []
    for place, (system, other, difference) in enumerate(zip(systems, others, columns)):
        known = difference[~np.isnan(difference)]
        sign = 1 if metrics[place].higher_is_better else -1
        better = sign * known > SLACK
        worse = sign * known < -SLACK
        lone = int((np.isnan(system) != np.isnan(other)).sum())
        delta, (low, high) = _settled(mean_of(difference)), spans[place]
        found.append(
            Contrast(
                delta=delta,
                delta_interval=(low, high) if math.isnan(low) else (min(low, delta), max(high, delta)),
                pairs=len(known),
                unpaired=lone,
                wins=int(better.sum()),
                ties=len(known) - int(better.sum()) - int(worse.sum()),
                losses=int(worse.sum()),
                spread=_spread(known),
                effect_size=_effect(known),
                raw_p_value=float(values[place]),
                p_value=float(values[place]),
            )
        )
    return found


def drop(delta: float, *, higher_is_better: bool) -> float:
    """How much worse: above 0 where the system is worse than the baseline."""
    return -delta if higher_is_better else delta


def by_mask(columns: Sequence[Floats]) -> list[tuple[list[int], Floats]]:
    """Columns that are known for the same queries, together: their places, and their known values, shape (n, C)."""
    groups: dict[bytes, list[int]] = {}
    for place, column in enumerate(columns):
        groups.setdefault(np.packbits(np.isnan(column)).tobytes(), []).append(place)
    found = []
    for places in groups.values():
        known = ~np.isnan(columns[places[0]])
        found.append((places, np.stack([columns[place][known] for place in places], axis=1)))
    return found


def _wide(bounds: Interval | None) -> Interval | None:
    """Between what differences lie."""
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


@dataclass(frozen=True, eq=False)
class _Sides:
    """Columns of values, and between what each lies."""

    columns: Sequence[Floats]
    bounds: Sequence[Interval | None]


def _intervals(
    sides: _Sides, differences: Sequence[Floats], wide: Sequence[Interval | None], settings: Settings
) -> list[Interval]:
    """The interval of the mean of each column of values, then of each column of differences."""
    columns = [*sides.columns, *differences]
    bounds = [*sides.bounds, *wide]
    found: list[Interval] = [(math.nan, math.nan)] * len(columns)
    for places, values in by_mask(columns):
        within = [bounds[place] for place in places]
        added = np.zeros(len(places))
        for at, place in enumerate(places):
            if place >= len(sides.columns):
                most = within[at]
                added[at] = unseen(values[:, [at]], None if most is None else most[1])[0]
        level, drawn = settings.intervals, (settings.resamples, settings.seed)
        for place, (low, high) in zip(places, intervals(values, within, level, *drawn, added).tolist()):
            found[place] = (low, high)
    return found


def _among(column: Floats, among: Bools | None) -> Floats:
    return column if among is None else column[among]


def _settled(delta: float) -> float:
    """A rounding error is no difference."""
    return 0.0 if math.fabs(delta) < SLACK else delta


def _spread(differences: Floats) -> float:
    """The standard deviation (n − 1); NaN for fewer than two queries, a rounding error is 0."""
    if len(differences) < 2:
        return math.nan
    centred = differences - mean_of(differences)
    spread = math.sqrt(math.fsum((centred * centred).tolist()) / (len(differences) - 1))
    return 0.0 if spread < SLACK else spread


def _effect(differences: Floats) -> float:
    """Cohen's d_z; NaN for fewer than two queries, 0 where none differs, infinite where all differ alike."""
    spread, mean = _spread(differences), _settled(mean_of(differences))
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


def pairs_of(systems: Sequence[Scored], settings: Settings) -> list[Pair]:
    """Every two systems by every metric, with Tukey's HSD over the queries that count for all systems."""
    found: list[Pair] = []
    twos = list(combinations(range(len(systems)), 2))
    for text, metric in systems[0].metrics.items():
        columns = [each.values[text] for each in systems]
        bounds = bounds_of(metric, columns)
        contrasts = contrast([columns[a] for a, _ in twos], [columns[b] for _, b in twos], metric, bounds, settings)
        values = np.stack(columns, axis=1)
        honest = tukey(values[~np.isnan(values).any(axis=1)], settings)
        for (a, b), each in zip(twos, contrasts):
            found.append(Pair(systems[a].name, systems[b].name, text, each, float(honest[a, b])))
    values = corrected(settings.correction, np.array([each.against.raw_p_value for each in found]))
    return [replace(each, against=replace(each.against, p_value=p)) for each, p in zip(found, values.tolist())]


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
    found: Floats = (1 + as_far) / (1 + settings.resamples)
    return found


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
