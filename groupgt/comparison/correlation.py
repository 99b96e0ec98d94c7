"""Correlate two orders of the same systems, from two ground truths, two metrics, or two result folders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from groupgt.comparison.contrast import Contrast
from groupgt.comparison.draws import resampled_counts
from groupgt.comparison.pairs import contrasts_of_pairs
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.errors import DataError, first_of
from groupgt.evaluation.estimates import mean_of
from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats
from groupgt.render.drawing import Figure
from groupgt.render.results import Result

# With fewer systems, there are too few orders for a meaningful coefficient.
FEWEST = 5
# Means that agree to this many digits are tied.
DIGITS = 12


@dataclass(frozen=True, eq=False)
class Side:
    """One order of systems, with its `label` and the values of one metric by system, shape (Q,) each."""

    label: str
    metric: Metric
    text: str
    qids: Sequence[str]
    values: Mapping[str, Floats]

    def means(self, names: Sequence[str]) -> Floats:
        """Return the means of the named systems, shape (S,)."""
        return np.array([mean_of(self.values[name]) for name in names])

    def queries(self, names: Sequence[str]) -> int:
        """Return the number of queries with a value for any of the named systems."""
        return int((~np.isnan(np.stack([self.values[name] for name in names]))).any(axis=0).sum())

    def only(self, qids: Sequence[str]) -> Side:
        """Return this side with only these queries, in this order."""
        place = {qid: number for number, qid in enumerate(self.qids)}
        places = [place[qid] for qid in qids]
        values = {name: column[places] for name, column in self.values.items()}
        return Side(self.label, self.metric, self.text, qids, values)


@dataclass(frozen=True)
class Swap:
    """Two systems that the two sides rank in opposite orders, with each side's test.

    Deltas are `better` − `worse`, in the first side's order. p-values are corrected over all pairs of a side.
    """

    better: str
    worse: str
    first: Contrast
    second: Contrast


@dataclass(frozen=True, eq=False, repr=False)
class Correlation(Result):
    """Rank correlation of systems between two sides.

    `tau` is Kendall's tau-b. `tau_ap` takes the first side as the reference, `tau_ap_reversed` the second. `ranges`
    contains the 2.5% and 97.5% quantiles of each coefficient over resampled queries, which are not a confidence
    interval. `swaps` lists the pairs of systems in opposite orders. `means` has one array per side, in the order of
    `systems`.
    """

    sides: tuple[Side, Side]
    systems: tuple[str, ...]
    means: tuple[Floats, Floats]
    tau: float
    tau_ap: float
    tau_ap_reversed: float
    ranges: Mapping[str, tuple[float, float]]
    swaps: tuple[Swap, ...]
    shared: int
    left_out: tuple[int, int]
    absent: tuple[str, ...]
    settings: Settings

    @property
    def labels(self) -> tuple[str, str]:
        """The names of the two sides."""
        return self.sides[0].label, self.sides[1].label

    @property
    def pairs(self) -> int:
        """The number of system pairs."""
        return math.comb(len(self.systems), 2)

    def plot(self) -> Figure:
        """Draw the two sides' means against each other, with system names."""
        return self._teller.plot("correlation")

    def __repr__(self) -> str:
        first, second = self.labels
        return f"Correlation({first}, {second}: {len(self.systems)} systems, tau {self.tau:.4f})"


def side_of(table: Systems, text: str, label: str) -> Side:
    """Return the values of one metric in a table as a side."""
    values = {name: each[text] for name, each in table.values.items()}
    return Side(label, table.metrics[text], text, table.qids, values)


def correlation_of(first: Side, second: Side, settings: Settings) -> Correlation:
    """Correlate two sides over the systems and the queries that they have in common."""
    names = [name for name in first.values if name in second.values]
    if len(names) < FEWEST:
        raise DataError(
            f"expected at least {FEWEST} systems on both sides, found {len(names)}"
            f"{f' ({first_of(names, 5)})' if names else ''}; with fewer, a rank correlation hinges on a few swaps"
        )
    known = set(second.qids)
    shared = sorted(qid for qid in first.qids if qid in known)
    left_out = (len(first.qids) - len(shared), len(second.qids) - len(shared)) if shared else (0, 0)
    # Draws do not depend on the order of queries.
    first, second = first.only(shared or sorted(first.qids)), second.only(shared or sorted(second.qids))
    # Higher is better on both sides from here on.
    signs = [1 if side.metric.higher_is_better else -1 for side in (first, second)]
    means = first.means(names), second.means(names)
    for side, column in zip((first, second), means):
        if np.isnan(column).any():
            name = names[int(np.flatnonzero(np.isnan(column))[0])]
            raise DataError(f"{side.label}: {name} has no query with a value for {side.text}")
    one, two = (sign * np.round(column, DIGITS) for sign, column in zip(signs, means))
    swaps = _swaps(names, (first, second), (one, two), settings)
    coefficients = _coefficients(one, two)
    return Correlation(
        (first, second),
        tuple(names),
        means,
        *coefficients,
        ranges=_ranges((first, second), names, signs, settings, is_paired=bool(shared)),
        swaps=swaps,
        shared=len(shared),
        left_out=left_out,
        absent=tuple(name for name in (*first.values, *second.values) if name not in names),
        settings=settings,
    )


def _coefficients(one: Floats, two: Floats) -> tuple[float, float, float]:
    return tau_b(one, two), tau_ap(one, two), tau_ap(two, one)


def tau_b(first: Floats, second: Floats) -> float:
    """Return Kendall's tau-b, (C − D) ÷ √((n₀ − n₁)(n₀ − n₂)), or NaN if all values of a side are tied.

    C counts the pairs in the same order, D those in opposite orders, n₀ all pairs, n₁ and n₂ the ties on each side.
    """
    one, two = (np.sign(values[:, None] - values) for values in (first, second))
    return float(np.divide((one * two).sum(), math.sqrt((one**2).sum() * (two**2).sum()) or math.nan))


def tau_ap(reference: Floats, values: Floats) -> float:
    """Return tau_AP for the order of `values` against the reference: (2 ÷ (n − 1)) Σ_{i>1} C(i) ÷ (i − 1) − 1.

    C(i) counts the systems above rank i that the reference also ranks above the system at rank i. Errors near the top
    count most. With ties, tau_AP is the mean over all orders of tied systems on either side.
    """
    size = len(values)
    above = (reference[:, None] < reference) + 0.5 * ((reference[:, None] == reference) & ~np.eye(size, dtype=bool))
    higher = values[:, None] < values
    tied = (values[:, None] == values) & ~np.eye(size, dtype=bool)
    right_above, right_beside = (above * higher).sum(axis=1), (above * tied).sum(axis=1)
    before, beside = higher.sum(axis=1), tied.sum(axis=1)
    total = 0.0
    # A system among t tied ones has 0 to t − 1 of them above it, each equally often.
    for step in range(int(beside.max(initial=0)) + 1):
        rank = before + step
        counts = (step <= beside) & (rank > 0)
        expected = right_above + step * right_beside / np.maximum(beside, 1)
        total += float((expected / np.maximum(rank, 1) / (beside + 1))[counts].sum())
    return 2 * total / (size - 1) - 1


def _swaps(
    names: Sequence[str], sides: tuple[Side, Side], values: tuple[Floats, Floats], settings: Settings
) -> tuple[Swap, ...]:
    """Return the pairs in opposite orders, starting with pairs that are significant on both sides."""
    opposite = []
    for left, right in combinations(range(len(names)), 2):
        first, second = (each[left] - each[right] for each in values)
        if first * second < 0:
            opposite.append((names[left], names[right]) if first > 0 else (names[right], names[left]))
    if not opposite:
        return ()
    tests = [_tested(side, names, settings) for side in sides]
    swaps = [
        Swap(*pair, *(test[pair] if pair in test else test[pair[::-1]].turned for test in tests)) for pair in opposite
    ]
    return tuple(sorted(swaps, key=lambda swap: -swap.first.significant - swap.second.significant))


def _tested(side: Side, names: Sequence[str], settings: Settings) -> dict[tuple[str, str], Contrast]:
    """Test all pairs of systems on one side as one family, and return their contrasts in the order of names."""
    values = {name: {side.text: side.values[name]} for name in names}
    tested = contrasts_of_pairs(values, {side.text: side.metric}, list(combinations(names, 2)), settings)
    return {(one, other): contrast for (one, other, _), contrast in tested.items()}


def _ranges(
    sides: tuple[Side, Side], names: Sequence[str], signs: Sequence[int], settings: Settings, *, is_paired: bool
) -> dict[str, tuple[float, float]]:
    """Return the 2.5% and 97.5% quantiles of each coefficient over resampled queries."""
    drawn = []
    for number, (side, sign) in enumerate(zip(sides, signs)):
        table = np.stack([side.values[name] for name in names], axis=1)
        is_defined = ~np.isnan(table)
        seed = settings.seed if is_paired else settings.seed + number
        parts = []
        for counts in resampled_counts(len(table), min(settings.resamples, 1000), seed):
            with np.errstate(invalid="ignore"):
                parts.append((counts @ np.where(is_defined, table, 0.0)) / (counts @ is_defined))
        drawn.append(sign * np.round(np.concatenate(parts), DIGITS))
    rows = np.array([_coefficients(one, two) for one, two in zip(*drawn) if not np.isnan([*one, *two]).any()])
    ranges: dict[str, tuple[float, float]] = {}
    for number, name in enumerate(("tau", "tau_ap", "tau_ap_reversed")):
        values = rows[~np.isnan(rows[:, number]), number] if len(rows) else np.empty(0)
        low, high = np.quantile(values, (0.025, 0.975)).tolist() if len(values) else (math.nan, math.nan)
        ranges[name] = low, high
    return ranges
