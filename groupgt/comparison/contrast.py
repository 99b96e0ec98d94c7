"""Compare systems with each other: means, deltas, confidence intervals, tests, wins and losses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from annotated_types import Ge, Le

from groupgt.comparison.draws import SLACK
from groupgt.comparison.families import Decide, Families, by_defined_queries, decide
from groupgt.comparison.intervals import UNBOUNDED, Bounds, intervals
from groupgt.comparison.settings import Settings
from groupgt.comparison.trials import OverBuilds, over_builds
from groupgt.evaluation.estimates import estimate_of, mean_of, plain_of
from groupgt.evaluation.trials import Spread
from groupgt.metrics.language import Metric
from groupgt.model.hits import Bools, Floats
from groupgt.render.columns import shown

Interval = tuple[float, float]
NO_INTERVAL: Interval = (math.nan, math.nan)
Share = Annotated[float, Ge(0), Le(1)]
K = TypeVar("K", bound=Hashable)
# Two systems and a metric.
Key = tuple[str, str, str]
Standing = Literal["better", "worse", "not significant"]


# How to reverse each field of a contrast: negate it, or take the value of the named field.
NEGATED = "negated"


@dataclass(frozen=True)
class Contrast:
    """A comparison of two systems on one metric, over the `pairs` queries that count for both.

    `delta` is the mean difference (system − other). `unpaired` is the number of queries that count for only one of the
    two systems, and `wins` is the number of queries on which the system is better. `p_value` is corrected for the
    family of comparisons, `raw_p_value` is not. `spread` is the standard deviation of the differences, and
    `effect_size` is Cohen's d_z, the mean difference ÷ `spread`. The p-values are NaN if the test is undefined, and the
    interval is NaN if there is none. `differ` is the number of queries on which the systems differ. `size` is the mean
    size of the nonzero differences, or 0. `alike` is True if all nonzero differences have this size, as with 0/1
    metrics. `significant` is True if `p_value` is at most alpha. `confidence` is the level at which `delta_interval`
    agrees with `significant`. `ranks` is the quantity that Wilcoxon's test compares, from −1 to 1: (ranks of positive
    differences − ranks of negative ones) ÷ all ranks. `favors` is 1 if the tested mean (with Wilcoxon's test, the
    ranks) favors the system, −1 if it favors the other system, otherwise 0.

    An audit corrects `delta`, its interval and its p-value. All other fields are based on the audited ground truth.

    Every output takes its fields from this class. A field with a `column` is written to JSON, CSV, frames, the schema
    and the page. Fields whose column is None are internal.
    """

    delta: float = field(metadata=shown("delta", "difference", turned=NEGATED))
    delta_interval: Interval = field(metadata=shown("CI of delta", "differences", turned=NEGATED))
    pairs: int = field(metadata=shown("queries", "count"))
    unpaired: int = field(metadata=shown("queries of only one system", "count"))
    wins: int = field(metadata=shown("wins", "count", turned="losses"))
    ties: int = field(metadata=shown("ties", "count"))
    losses: int = field(metadata=shown("losses", "count", turned="wins"))
    spread: float = field(metadata=shown("SD of differences", "value"))
    effect_size: float = field(metadata=shown("effect size", "effect", turned=NEGATED))
    raw_p_value: Share = field(metadata=shown("p", "p"))
    p_value: Share = field(metadata=shown("p, corrected", "p"))
    differ: int = field(init=False, metadata=shown("queries that differ", "count", in_csv=False))
    size: float = field(default=0.0, metadata={"column": None})
    alike: bool = field(default=False, metadata={"column": None})
    significant: bool = field(default=False, metadata={"column": None})
    confidence: Share = field(default=0.95, metadata=shown("level", "level", in_csv=False))
    ranks: float | None = field(default=None, metadata=shown("signed ranks", "share", in_csv=False, turned=NEGATED))
    favors: int = field(default=0, metadata={"column": None, "turned": NEGATED})

    def __post_init__(self) -> None:
        object.__setattr__(self, "differ", self.wins + self.losses)

    @property
    def standing(self) -> Standing:
        """The verdict of the test on the system, which is `better`, `worse` or `not significant`."""
        return "not significant" if not self.significant else "better" if self.favors > 0 else "worse"

    @property
    def turned(self) -> Contrast:
        """The reversed contrast, which compares the second system with the first."""
        return replace(self, **{each.name: self._turned(each) for each in FIELDS.values() if "turned" in each.metadata})

    def _turned(self, each: Field[Any]) -> Any:
        how = each.metadata["turned"]
        value = getattr(self, each.name if how == NEGATED else how)
        if how != NEGATED or value is None:
            return value
        return tuple(-end for end in reversed(value)) if isinstance(value, tuple) else -value


FIELDS = {each.name: each for each in fields(Contrast)}


@dataclass(frozen=True)
class Row:
    """A table row for one system and metric, with the mean, its CI over `queries`, and the contrast with the baseline.

    `significant` is True if the system differs significantly from the baseline. All other fields of the contrast
    `against` the baseline can be read from the row, too: `row.delta`, `row.p_value`, `row.wins` … For the baseline
    itself, `against` and these fields are None. An audit corrects the mean and its CI.
    """

    system: str
    metric: str
    mean: float
    interval: Interval
    queries: int
    significant: bool = field(init=False)
    against: Contrast | None = field(metadata={"key": "against_baseline"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "significant", self.against is not None and self.against.significant)

    def __getattr__(self, name: str) -> Any:
        """Return a field of the contrast, or None for the baseline."""
        if name not in FIELDS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return None if self.against is None else getattr(self.against, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *FIELDS]


# By system and metric, shape (Q,) each: NaN if a query does not count. More than one value per query: see `estimates`.
Values = Mapping[str, Mapping[str, Floats]]


Builds = Mapping[K, Mapping[str, Sequence[Floats]]]
NO_BUILDS: Builds[Any] = {}
NO_TRIALS: Values = {}


def among(values: Values, metrics: Iterable[str], queries: Bools) -> Values:
    """Return the values of the given metrics for the marked queries only."""
    return {name: {text: columns[text][queries] for text in metrics} for name, columns in values.items()}


def rows_of(
    values: Values,
    metrics: Mapping[str, Metric],
    baseline: str,
    settings: Settings,
    contrasts: Mapping[Key, Contrast] | None = None,
    builds: Builds[str] = NO_BUILDS,
    in_trials: Values = NO_TRIALS,
) -> list[Row]:
    """Compute a row for each system and metric. By default, the comparisons on each metric form a family."""
    if contrasts is None:
        twos = [(name, baseline) for name in values if name != baseline]
        contrasts = contrasts_of(values, metrics, twos, settings, builds=builds)
    spans = mean_intervals(values, metrics, settings, in_trials)
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
    values: Values, metrics: Mapping[str, Metric], settings: Settings, in_trials: Values = NO_TRIALS
) -> dict[tuple[str, str], Interval]:
    """Return each mean's confidence interval. The variance is at least the variance over trials, shape (r, Q)."""
    keys = [(name, text) for text in metrics for name in values]
    columns = [values[name][text] for name, text in keys]
    bounds = _bounds(values, metrics)
    within = [bounds[text] for _, text in keys]
    spans = np.full((len(columns), 2), np.nan)
    for place, column in enumerate(columns):
        if column.ndim > 1 and (estimate := estimate_of(column)) is not None:
            spans[place] = estimate.at(settings.confidence, within[place])
    for places, block in by_defined_queries(columns):
        ends = [within[place] for place in places]
        count = max(len(block), 1)
        least = [_chance(in_trials, *keys[place], metrics) / count for place in places] if in_trials else 0.0
        spans[places] = intervals(block, ends, settings.confidence, settings.resamples, settings.seed, least=least)
    return {key: (low, high) for key, (low, high) in zip(keys, spans.tolist())}


def _chance(in_trials: Values, name: str, text: str, metrics: Mapping[str, Metric]) -> float:
    """Return how much of the variance in a system's summed values is due to its trials."""
    values = in_trials.get(name, {}).get(text)
    if values is None:
        return 0.0
    counts = ~np.isnan(values).all(axis=0)
    spread = Spread.of(values[:, counts], bounded=metrics[text].definition.bounded)
    return 0.0 if spread is None else spread.of_mean


def comparisons(contrasts: Iterable[Contrast | None]) -> int:
    """Count the comparisons in a family that have a p-value."""
    return sum(contrast is not None and not math.isnan(contrast.raw_p_value) for contrast in contrasts)


def _bounds(values: Mapping[K, Mapping[str, Floats]], metrics: Mapping[str, Metric]) -> dict[str, Bounds]:
    """Return the bounds of each metric's values, which may be infinite."""
    bounds = {}
    for text, metric in metrics.items():
        columns = [each[text] for each in values.values()]
        highest = max((float(np.nanmax(column)) for column in columns if not np.isnan(column).all()), default=0.0)
        bounds[text] = (0.0, 1.0) if metric.definition.bounded and highest <= 1.0 else UNBOUNDED
    return bounds


def drop(delta: float, *, higher_is_better: bool) -> float:
    """Return the loss, which is positive if the system is worse than the baseline."""
    return -delta if higher_is_better else delta


def contrasts_of(
    values: Mapping[K, Mapping[str, Floats]],
    metrics: Mapping[str, Metric],
    twos: Sequence[tuple[K, K]],
    settings: Settings,
    how: Decide = decide,
    builds: Builds[K] = NO_BUILDS,
) -> dict[tuple[K, K, str], Contrast]:
    """Compare pairs of systems on the given metrics, with the same random draws for all pairs.

    `how` decides the family of comparisons on each metric. With `builds`, p-values and intervals cover new builds, too.
    """
    keys = [(first, second, text) for text in metrics for first, second in twos]
    if not keys:
        return {}
    columns = [values[first][text] - values[second][text] for first, second, text in keys]
    # A difference may be as large as the range of the values.
    widened = {text: (low - high, high - low) for text, (low, high) in _bounds(values, metrics).items()}
    bounds = np.array([widened[text] for *_, text in keys])
    families = Families(list(metrics), columns, bounds, len(twos), settings, _over_builds(keys, columns, builds))
    decided = how(families)
    # No interval promises more than the metric can reach.
    ends = np.clip(decided.ends, *bounds.T[:, :, np.newaxis])
    ranks = np.full(len(keys), np.nan) if decided.ranks is None else decided.ranks
    return {
        (first, second, text): _contrast(
            metrics[text],
            values[first][text],
            values[second][text],
            interval=(float(ends[place, 0]), float(ends[place, 1])),
            raw_p_value=float(decided.raw[place]),
            p_value=float(decided.p_values[place]),
            confidence=1 - float(decided.alphas[place]),
            significant=bool(decided.p_values[place] <= settings.alpha),
            ranks=None if math.isnan(ranks[place]) else float(ranks[place]),
        )
        for place, (first, second, text) in enumerate(keys)
    }


def _over_builds(
    keys: Sequence[tuple[K, K, str]], columns: Sequence[Floats], builds: Builds[K]
) -> dict[int, OverBuilds]:
    """Return, by index, the differences between systems if at least one of the two has builds."""
    moved = {}
    for place, (first, second, text) in enumerate(keys if builds else ()):
        sides = [side for name in (first, second) for side in builds.get(name, {}).get(text, ())]
        estimate = over_builds(columns[place], sides, delta=True) if sides else None
        if estimate is not None:
            moved[place] = estimate
    return moved


def contrasts_with(
    others: Sequence[str], values: Values, metrics: Mapping[str, Metric], settings: Settings, builds: Builds[str]
) -> dict[Key, Contrast]:
    """Compare every system with every system in `others`, but each pair only once."""
    names = list(values)
    twos = [
        (name, other)
        for place, name in enumerate(names)
        for other in others
        if name != other and not (name in others and place > names.index(other))
    ]
    return contrasts_of(values, metrics, twos, settings, builds=builds)


def _contrast(
    metric: Metric, system: Floats, other: Floats, *, interval: Interval, ranks: float | None, **tested: Any
) -> Contrast:
    difference = system - other
    if difference.ndim > 1:
        plain = _contrast(metric, plain_of(system), plain_of(other), interval=interval, ranks=ranks, **tested)
        estimate = estimate_of(difference, delta=True)
        delta = math.nan if estimate is None else estimate.mean
        favors = _sign(delta) if metric.higher_is_better else -_sign(delta)
        return replace(plain, delta=delta, delta_interval=interval, favors=favors)
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
        favors=sign * _sign(delta if ranks is None else ranks),
        ranks=ranks,
        **tested,
    )


def _sign(value: float) -> int:
    return (value > SLACK) - (value < -SLACK)


def _spread(differences: Floats) -> float:
    """Return the standard deviation (n − 1): NaN for under two queries, 0 if the spread is only rounding error."""
    if len(differences) < 2:
        return math.nan
    centred = differences - mean_of(differences)
    spread = math.sqrt(math.fsum((centred * centred).tolist()) / (len(differences) - 1))
    return 0.0 if spread < SLACK else spread
