"""Compare all pairs of systems, and decide all pairs on one metric together.

With the randomization test, signs are flipped for all systems at once. For a pair with differences d over n queries,
the statistic is

    T = |Σ d| ÷ √(Σ d²)

Flips do not change the denominator of T. Pairs are decided in descending order of T: the p-value of a pair is the share
(1 + as far) ÷ (1 + resamples) of flips in which the largest T of this pair and all pairs after it reaches T, and never
below the p-value of the pair before. If few queries differ, all patterns of signs are counted, instead of drawing some
at random. A pair's interval comes from the pair's own test at alpha ÷ (number of pairs that are not significant), and
is undefined if there are too few resamples for this level. Sources: Westfall & Young 1993; Romano & Wolf, JASA 2005.

With the t test, p comes from the studentized range (Tukey 1953): q = |δ| ÷ √(MSE ÷ n), where MSE is the residual mean
square of the two-way layout of queries and systems, with (S − 1)(n − 1) degrees of freedom, over queries that count for
all systems. Other tests, audits and annotators use Holm's correction by default. A chosen correction applies to every
test.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np

from groupgt.comparison.contrast import Contrast, Key, Values, contrasts_of
from groupgt.comparison.draws import SLACK, on_grid, scipy_stats, signs, step_of
from groupgt.comparison.families import Decide, Decided, Families, decide, decided_together, raw_p_values
from groupgt.comparison.intervals import agreeing, within
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK_OF_T, around
from groupgt.evaluation.estimates import mean_of
from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats, Ints

# Draws at a time.
DRAWS = 64


@dataclass(frozen=True)
class Pair:
    """A comparison of systems `first` and `second` on one metric. All pairs on a metric are decided together."""

    first: str
    second: str
    metric: str
    against: Contrast


def pairs_of(values: Values, metrics: Mapping[str, Metric], settings: Settings) -> list[Pair]:
    """Compare all pairs of systems on every metric."""
    contrasts = contrasts_of_pairs(values, metrics, list(combinations(values, 2)), settings)
    return [Pair(*key, against) for key, against in contrasts.items()]


def contrasts_of_pairs(
    values: Values, metrics: Mapping[str, Metric], twos: Sequence[tuple[str, str]], settings: Settings
) -> dict[Key, Contrast]:
    """Compare pairs of systems. All pairs on a metric are decided together."""
    names = sorted({name for two in twos for name in two})
    tables = {text: np.stack([values[name][text] for name in names], axis=1) for text in metrics if names}
    is_estimated = any(table.ndim > 2 for table in tables.values())
    method = settings.of_pairs(is_estimated=is_estimated)
    how: Decide = decide
    if method == "studentized range":
        for table in tables.values():
            table[np.isnan(table).any(axis=1)] = np.nan
        how = partial(by_studentized_range, tables)
    elif method == "step-down maximum":
        # Draws must not depend on the order of queries.
        tables = {text: table[np.lexsort(table.T)] for text, table in tables.items()}
        place = {name: at for at, name in enumerate(names)}
        how = partial(by_step_down, tables, [(place[first], place[second]) for first, second in twos])
    if how is not decide:
        values = {name: {text: tables[text][:, at] for text in metrics} for at, name in enumerate(names)}
    return contrasts_of(values, metrics, twos, settings, how)


def by_studentized_range(tables: Mapping[str, Floats], families: Families) -> Decided:
    """Decide families by the studentized range. The tables contain the values of all systems, shape (Q, S)."""
    settings, columns = families.settings, families.columns
    raw = raw_p_values(columns, settings)
    decided, ends = np.full(len(columns), np.nan), np.full((len(columns), 2), np.nan)
    for text, family in families:
        table = tables[text]
        decided[family], given = by_range(table[~np.isnan(table[:, 0])], columns[family], raw[family], settings.alpha)
        means = np.array(list(map(mean_of, columns[family])))
        rejected = families.significant(decided[family])
        ends[family] = agreeing(within(given, families.bounds[family]), means, rejected)
    return Decided(raw, decided, np.full(len(columns), settings.alpha), ends)


def by_step_down(tables: Mapping[str, Floats], places: Sequence[tuple[int, int]], families: Families) -> Decided:
    """Decide families by the step-down maximum. `places` are the columns of each pair in the tables, shape (Q, S)."""
    settings, columns = families.settings, families.columns
    first, second = np.array(places, dtype=np.int64).T
    raw, stepped = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    for text, family in families:
        table, pairwise = tables[text], None
        if len(table) and not np.isnan(table).any():
            pairwise = Pairwise.of(table, first, second)
        raw[family] = raw_p_values(columns[family], settings)
        stepped[family] = step_down(columns[family], raw[family], settings, pairwise)
    return decided_together(families, raw, stepped)


@dataclass(frozen=True, eq=False)
class Pairwise:
    """The differences of many pairs, stored by system, so that a product with signs needs one column per system.

    `systems` has shape (n, S), on a grid on which sums are exact. Pair c is system `first[c]` − system `second[c]`. If
    `second` is empty, the columns are already differences.
    """

    systems: Floats
    first: Ints
    second: Ints

    @classmethod
    def of(cls, table: Floats, first: Ints, second: Ints) -> Pairwise:
        """Round values to a grid, so that values of a query that differ only by rounding become equal."""
        order = np.argsort(table, axis=1, kind="stable")
        ordered = np.take_along_axis(table, order, axis=1)
        begins = np.diff(ordered, axis=1, prepend=-np.inf) > SLACK
        begun = np.maximum.accumulate(np.where(begins, np.arange(table.shape[1]), 0), axis=1)
        snapped = np.empty_like(table)
        np.put_along_axis(snapped, order, np.take_along_axis(ordered, begun, axis=1), axis=1)
        step = step_of(np.abs(snapped).max(axis=1, keepdims=True))
        return cls(np.rint(snapped / step) * step, first, second)

    @property
    def differences(self) -> Floats:
        """The differences of all pairs, shape (n, C)."""
        return self.sums(self.systems.T).T

    def sums(self, sums: Floats) -> Floats:
        """Convert sums of systems, shape (S, draws), to sums of pairs, shape (C, draws)."""
        of_pairs = sums[self.first]
        if len(self.second):
            of_pairs -= sums[self.second]
        return of_pairs

    def under(self, drawn: Iterator[Floats]) -> Iterator[Floats]:
        """Yield the sums of all pairs under rows of signs or coins, shape (C, draws), in blocks of draws."""
        for block in drawn:
            sums = self.systems.T @ block.T
            for start in range(0, len(block), DRAWS):
                yield self.sums(np.ascontiguousarray(sums[:, start : start + DRAWS]))


def step_down(columns: Sequence[Floats], raw: Floats, settings: Settings, pairwise: Pairwise | None = None) -> Floats:
    """Return p-values of the step-down maximum, shape (C,). `pairwise` contains the same differences by system."""
    differences = np.stack(columns, axis=1)
    if pairwise is None:
        exact = on_grid(np.where(np.abs(differences) > SLACK, differences, 0.0))
    else:
        exact = pairwise.differences
    differ = exact.any(axis=1)
    exact = exact[differ]
    sizes = np.sqrt(on_grid(exact**2).sum(axis=0))
    sizes[sizes == 0] = 1.0
    observed = np.abs(exact.sum(axis=0)) / sizes * (1 - SLACK_OF_T)
    order = np.argsort(-observed, kind="stable")

    def sizes_under(places: Ints) -> Iterator[Floats]:
        """Yield T for these pairs under all drawn signs, shape (C, draws)."""
        drawn = signs(len(exact), settings.resamples, settings.seed)
        if pairwise is None:
            part = Pairwise(exact[:, places], np.arange(len(places)), np.array([], dtype=np.int64))
        else:
            part = Pairwise(pairwise.systems[differ], pairwise.first[places], pairwise.second[places])
        for sums in part.under(drawn):
            np.abs(sums, out=sums)
            sums /= sizes[places][:, None]
            yield sums

    draws, as_far = 0, np.zeros(len(order))
    for largest in sizes_under(order[::-1]):
        # The largest of this pair and all after it.
        np.maximum.accumulate(largest, axis=0, out=largest)
        as_far += (largest[::-1] >= observed[order][:, None]).sum(axis=1)
        draws += largest.shape[1]
    # Draws never undercut a p-value that was counted.
    stepped = np.maximum.accumulate(np.fmax((1 + as_far) / (1 + draws), raw[order]))
    p_values = np.empty(len(order))
    p_values[order] = np.where(np.isnan(raw[order]), np.nan, stepped)
    return p_values


def by_range(values: Floats, columns: Sequence[Floats], raw: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return p-values of the studentized range, shape (C,), and the intervals, (C, 2), from all values, (n, S)."""
    stats = scipy_stats("the studentized range")
    count, width = values.shape
    means = np.array([mean_of(column) for column in columns])
    nothing = np.full(len(columns), np.nan)
    if count < 2:
        return nothing, around(nothing, nothing)
    residual = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    degrees = (count - 1) * (width - 1)
    error = math.sqrt(float((residual**2).sum()) / degrees / count)
    if error < SLACK:
        return np.where(np.isnan(raw), np.nan, 1.0), around(nothing, nothing)
    # The range's distribution is slow to compute: once for each difference.
    distinct, where = np.unique(np.abs(means), return_inverse=True)
    with warnings.catch_warnings():
        # SciPy integrates numerically and warns about digits that are never shown.
        warnings.simplefilter("ignore")
        tails = np.array(stats.studentized_range.sf(distinct / error, width, degrees))
        half = np.where(np.isnan(raw), np.nan, _range_quantile(alpha, width, degrees) * error)
    return np.where(np.isnan(raw), np.nan, tails[where]), around(means, half)


@lru_cache(maxsize=1024)
def _range_quantile(alpha: float, width: int, degrees: int) -> float:
    """Return the quantile of the studentized range at 1 − alpha, between the quantiles for one pair and for all."""
    from scipy import optimize, stats

    low, high = (math.sqrt(2) * float(stats.t.isf(alpha / 2 / count, degrees)) for count in (1, math.comb(width, 2)))

    def excess(quantile: float) -> float:
        return float(stats.studentized_range.sf(quantile, width, degrees)) - alpha

    return low if width == 2 else float(optimize.brentq(excess, low, high, xtol=1e-6))
