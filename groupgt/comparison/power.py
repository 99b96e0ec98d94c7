"""Compute power: the differences that a set of queries can detect, and the queries needed to detect a difference.

If all differences have the same size (0/1 metrics), the power is computed for the test itself: a share of n queries
differs, each of these is a win or a loss, and the test detects a difference if wins and losses are far enough apart.
Otherwise the power of the paired t test is used, capped at the probability that enough queries differ for the test
to detect anything. This module needs SciPy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from groupgt.comparison.contrast import Contrast, Row, comparisons
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import SLACK, in_errors, scipy_stats
from groupgt.errors import ConfigError, Faults, display
from groupgt.evaluation.estimates import OF_DELTAS, reach_at
from groupgt.metrics.language import Metric
from groupgt.model.hits import Floats, Ints
from groupgt.render.results import Result, ResultRows
from groupgt.render.tables import shortlist

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

# The search for a number of queries stops here.
MOST = 10**9
# Noncentral t distributions shifted by more than this are not computed.
FAR = 35.0
# If more queries than this are expected to differ, the t test's power is close enough.
MANY_DIFFERENCES = 5000
# Up to this many differences, the bootstrap test is computed; with more, it is close enough to the t test.
FEW_DIFFERENCES = 50
# Up to this many differences, some of which are tied, SciPy's Wilcoxon test tries every sign.
ALL_SIGNS = 13
# No representable alpha needs more differing queries, all of them wins, than this.
MOST_NEEDED = 1100
# Terms less likely than this are omitted from sums.
NEGLIGIBLE = 1e-12
# Numbers of audited queries.
SIZES = (20, 50, 100, 200)
# p-values that equal alpha in exact arithmetic are significant.
TIE = 1e-9


@dataclass(frozen=True)
class Power:
    """The power of a comparison for one system and metric; `spread` is the standard deviation of the differences.

    `queries` is the number of pairs. `detectable` is the smallest difference that they detect with the target power, if
    the metric allows any. `needed` is the number of queries needed to detect `difference` (None: over 10^9, or no query
    differs), and `reached` is the power of the available queries. `exact` is True if the power was computed for the
    test in use, not for the t test. `alpha` applies to each single comparison; `by` and `value` name the slice, if any.
    """

    system: str
    metric: str
    queries: int
    delta: float
    spread: float
    detectable: float | None
    difference: float
    reached: float | None
    needed: int | None
    exact: bool = False
    by: str = ""
    value: str = ""
    alpha: float = math.nan


def power(difference: float, spread: float, queries: int, alpha: float = 0.05) -> float:
    """Return the probability that a two-sided paired t test at alpha detects a true difference.

    The probability is P(|T'| > t), where T' follows a noncentral t distribution with n − 1 degrees of freedom and
    noncentrality √n · difference ÷ spread, and t is the 1 − alpha/2 quantile of Student's t. The randomization test has
    nearly the same power if many queries differ (Hoeffding 1952). Cohen 1988; Sakai, IRJ 2016.
    """
    stats = scipy_stats("power")
    if queries < 2:
        return 0.0
    if spread < SLACK:
        return 1.0 if abs(difference) > SLACK else 0.0
    degrees, shift = queries - 1, math.sqrt(queries) * abs(difference) / spread
    bound = float(stats.t.isf(alpha / 2, degrees))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = float(stats.nct.sf(bound, degrees, shift)) + float(stats.nct.cdf(-bound, degrees, shift))
    if math.isfinite(shown) and shift < FAR:
        return min(shown, 1.0)
    # Far out, the noncentral distribution is replaced by the shift divided by the estimated spread.
    return float(stats.chi2.cdf(degrees * (shift / bound) ** 2, degrees)) if bound > 0 else 1.0


@dataclass(frozen=True)
class Differences:
    """A summary of the differences between two systems: the `share` of differing queries and their mean `size`.

    `alike` is True if all nonzero differences have this size; `spread` is the standard deviation, zeros included.
    """

    share: float
    size: float
    alike: bool
    spread: float

    @classmethod
    def of(cls, contrast: Contrast) -> Differences:
        """Summarize the differences in a contrast."""
        return cls(contrast.differ / contrast.pairs, contrast.size, contrast.alike, contrast.spread)

    def power(self, difference: float, queries: int, alpha: float, test: str) -> float:
        """Return the probability that a test at alpha detects a true difference.

        If the difference is too large for the share of differing queries, a larger share is assumed.
        """
        mean = abs(difference) / self.size
        share = min(max(self.share, mean), 1.0)
        if not self.alike:
            return min(power(difference, self.spread, queries, alpha), _enough_differ(share, queries, alpha, test))
        if queries * share > MANY_DIFFERENCES:
            return power(difference, math.sqrt(max(self.size**2 * share - difference**2, 0.0)), queries, alpha)
        return _power_of_counts(share, min(mean / share, 1.0), queries, alpha, test)

    def detectable(
        self, queries: int, alpha: float, target: float, test: str, largest: float = math.inf
    ) -> float | None:
        """Return the smallest difference, up to `largest`, that this many queries detect with the target power."""
        largest = min(self.size, largest) if self.alike else largest
        return smallest_difference(lambda difference: self.power(difference, queries, alpha, test), target, largest)

    def needed(self, difference: float, alpha: float, target: float, test: str) -> int | None:
        """Return the number of queries needed to detect a difference with the target power; None if over 10^9."""
        if abs(difference) < SLACK or (self.alike and abs(difference) > self.size * (1 + SLACK)):
            return None
        return enough_queries(lambda queries: self.power(difference, queries, alpha, test), target)


def smallest_difference(power_at: Callable[[float], float], target: float, largest: float = math.inf) -> float | None:
    """Return the smallest difference, up to `largest`, that reaches the target power; None if there is none."""
    low, high = 0.0, min(1.0, largest)
    while power_at(high) < target:
        low, high = high, min(high * 2, largest)
        if low == high or high > MOST:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power_at(middle) >= target else (middle, high)
    return high


def enough_queries(power_at: Callable[[int], float], target: float) -> int | None:
    """Return the number of queries beyond which the power always reaches the target; None if 10^9 are not enough.

    More queries may have less power. At alpha 0.05, 6, 7 or 8 differences must all have one sign, which gets less
    likely with each, until 9 may have one exception. So the search continues beyond the first number that is enough.
    """
    low, high = 1, 2
    while power_at(high) < target:
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle) >= target else (middle, high)
    ahead = high + 1
    while ahead <= min(high + 4 * math.isqrt(high) + 8, MANY_DIFFERENCES):
        high, ahead = (ahead + 1 if power_at(ahead) < target else high), ahead + 1
    return high


def _power_of_counts(share: float, balance: float, queries: int, alpha: float, test: str) -> float:
    """Return the power for differences of one size: Σ_m P(m differ) · P(wins and losses are far enough apart).

    The number m of differing queries is binomial: each of n queries differs with probability `share`. The number of
    wins is binomial too: each differing query is a win with probability (1 + balance) ÷ 2.
    """
    binom = scipy_stats("power").binom
    low, high = (int(end) for end in (binom.ppf(NEGLIGIBLE, queries, share), binom.isf(NEGLIGIBLE, queries, share)))
    differing = np.arange(max(low, 0), high + 1)
    chance = (1 + balance) / 2
    gap = _least_gaps(test, queries, differing, alpha)
    won, lost = (differing + gap) // 2, (differing - gap) // 2
    shown = binom.sf(won - 1, differing, chance) + binom.cdf(lost, differing, chance)
    if test == "bootstrap":
        for place in np.flatnonzero(differing <= FEW_DIFFERENCES).tolist():
            m = int(differing[place])
            gaps = np.array(_bootstrap_gaps(queries, m, alpha), dtype=np.int64)
            shown[place] = (binom.pmf((m + gaps) // 2, m, chance) + binom.pmf((m - gaps) // 2, m, chance)).sum()
    if test in ("t", "bootstrap"):
        # If all queries differ alike, these tests are undefined.
        shown -= np.where(differing == queries, chance**queries + (1 - chance) ** queries, 0.0)
    return float(min((binom.pmf(differing, queries, share) * np.maximum(shown, 0.0)).sum(), 1.0))


def _enough_differ(share: float, queries: int, alpha: float, test: str) -> float:
    """Return the probability that enough queries differ for a test at alpha to detect any difference."""
    differing = np.arange(1, min(queries, MOST_NEEDED) + 1)
    if test == "bootstrap":
        enough = next((m for m in differing.tolist() if _bootstrap_gaps(queries, m, alpha)), 0)
    else:
        enough = next(iter(differing[_least_gaps(test, queries, differing, alpha) <= differing].tolist()), 0)
    return float(scipy_stats("power").binom.sf(enough - 1, queries, share)) if enough else 0.0


def _least_gaps(test: str, queries: int, differing: Ints, alpha: float) -> Ints:
    """Return the minimum gap between wins and losses that a test detects, for each number of differing queries.

    The gap exceeds `differing` if none is large enough. The bootstrap test uses the gaps for the t test, which are
    similar.
    """
    stats = scipy_stats("power")
    # p = 2 P(losses or fewer), binomial with 1/2: this is the randomization test if all sizes are equal.
    losses = stats.binom.ppf(alpha / 2 * (1 + TIE), differing, 0.5).astype(np.int64) - 1
    by_signs = np.where(losses < 0, differing + 2, differing - 2 * losses)
    if test == "randomization":
        return by_signs
    if test == "wilcoxon":
        # All ranks are tied: SciPy tries every sign of a few differences, and takes z = gap ÷ √m of more.
        by_z = _even_with(float(stats.norm.isf(alpha / 2)) * np.sqrt(differing), differing)
        return np.where(differing <= ALL_SIGNS, by_signs, by_z)
    if queries < 2:
        return differing + 2
    # t² = gap² (n − 1) ÷ (n m − gap²).
    bound = float(stats.t.isf(alpha / 2, queries - 1)) ** 2
    return _even_with(np.sqrt(bound * queries * differing / (queries - 1 + bound)), differing)


def _even_with(gaps: Floats, differing: Ints) -> Ints:
    """Round gaps up to positive integers with the same parity as the number of differing queries."""
    integers = np.maximum(np.ceil(gaps * (1 - TIE)).astype(np.int64), 1)
    return integers + (integers - differing) % 2


@lru_cache(maxsize=4096)
def _bootstrap_gaps(queries: int, differing: int, alpha: float) -> tuple[int, ...]:
    """Return the gaps between wins and losses that the bootstrap test detects.

    Even the widest gap may be undetectable: with 11 wins and one tie, a third of all resamples have no variance, so
    their t is infinite.
    """
    if differing > FEW_DIFFERENCES:
        least = int(_least_gaps("t", queries, np.array([differing]), alpha)[0])
        return tuple(range(least, differing + 1, 2))
    gaps = range(differing, 0, -2)
    return tuple(gap for gap in gaps if _bootstrap_p(queries, differing, gap) <= alpha * (1 + TIE))


def _bootstrap_p(queries: int, differing: int, gap: int) -> float:
    """Return the share of resamples of the centred differences with t at least as extreme as the observed t."""
    binom = scipy_stats("power").binom
    # The number of differing queries drawn, and the wins among them.
    counts = np.arange(int(binom.isf(NEGLIGIBLE, queries, differing / queries)) + 1)[:, None]
    wins = np.arange(len(counts))[None, :]
    chance = binom.pmf(counts, queries, differing / queries) * binom.pmf(
        wins, counts, (differing + gap) / 2 / differing
    )
    lead = 2 * wins - counts
    centred, gaps = counts * queries - lead**2, np.array([gap])
    t = in_errors(lead - gap, np.sqrt(np.maximum(centred, 0)), 0.0)
    observed = in_errors(gaps, np.sqrt(np.maximum(differing * queries - gaps**2, 0)), 0.0)
    return float(chance[t >= observed[0] * (1 - TIE)].sum())


def power_of(
    rows: Sequence[Row],
    settings: Settings,
    metrics: Mapping[str, Metric],
    *,
    difference: float | None = None,
    power: float = 0.8,
    by: str = "",
    value: str = "",
) -> list[Power]:
    """Compute the power for each system; `difference` defaults to the observed difference.

    If p-values are corrected, alpha is divided by the number of comparisons per metric. Raises `ConfigError`.
    """
    faults = Faults()
    if isinstance(power, bool) or not isinstance(power, (int, float)) or not 0 < power < 1:
        faults.add("power", f"expected a number above 0 and below 1, found {display(power)}")
    if difference is not None and not (math.isfinite(difference) and difference != 0):
        faults.add("difference", f"expected a number other than 0, found {display(difference)}")
    bounded = [text for text, metric in metrics.items() if metric.definition.bounded]
    if difference is not None and abs(difference) > 1 and bounded:
        reason = f"{shortlist(bounded)} {'lies' if len(bounded) == 1 else 'lie'} between 0 and 1"
        faults.add("difference", f"expected at most 1, because {reason}; found {display(difference)}")
    faults.stop(ConfigError)
    alpha_by = {metric: alpha_of(rows, metric, settings) for metric in dict.fromkeys(row.metric for row in rows)}
    powers = []
    for row in rows:
        contrast = row.against
        if contrast is None:
            continue
        alpha = alpha_by[row.metric]
        target = contrast.delta if difference is None else difference
        least = reached = needed = None
        # If nothing differs, nothing can be estimated.
        is_defined = contrast.pairs > 1 and contrast.differ > 0
        if is_defined:
            differences = Differences.of(contrast)
            largest = 1.0 if row.metric in bounded else math.inf
            least = differences.detectable(contrast.pairs, alpha, power, settings.test, largest)
            reached = differences.power(target, contrast.pairs, alpha, settings.test)
            needed = differences.needed(target, alpha, power, settings.test)
        powers.append(
            Power(
                system=row.system,
                metric=row.metric,
                queries=contrast.pairs,
                delta=contrast.delta,
                spread=contrast.spread,
                detectable=least,
                difference=target,
                reached=reached,
                needed=needed,
                exact=is_defined and contrast.alike,
                by=by,
                value=value,
                alpha=alpha,
            )
        )
    return powers


def alpha_of(rows: Sequence[Row], metric: str, settings: Settings) -> float:
    """Return alpha for a single comparison on a metric, divided by the family size if p-values are corrected."""
    count = comparisons(row.against for row in rows if row.metric == metric) if settings.corrects != "none" else 1
    return settings.alpha / max(count, 1)


@dataclass(frozen=True)
class PowerAnalysis(ResultRows[Power]):
    """Power values for each system and metric, first over all queries, then for each slice.

    `power` is the target power, and `alpha` applies to each single comparison over all queries.
    """

    powers: tuple[Power, ...]
    power: float
    alpha: float
    systems: Systems = field(repr=False, compare=False)

    @property
    def baseline(self) -> str:
        """Name of the system that the others are compared with."""
        return self.systems.baseline

    def plot(self) -> Figure:
        """Draw a figure of power against the number of queries for the first metric.

        Raises `ConfigError` if no system differs from the baseline.
        """
        return self._teller.plot("power")


@dataclass(frozen=True)
class AuditWidth:
    """Half the interval width for one system and metric at several numbers of audited queries.

    `of_mean` is the half-width for the corrected mean, `of_delta` the half-width for the corrected difference from the
    baseline (empty for the baseline itself).
    """

    system: str
    metric: str
    of_mean: dict[int, float]
    of_delta: dict[int, float]


@dataclass(frozen=True)
class AuditPower(Result):
    """Predicted interval widths for each system and metric, computed from the queries audited so far."""

    widths: tuple[AuditWidth, ...]
    level: float
    systems: Systems = field(repr=False, compare=False)

    @classmethod
    def of(cls, systems: Systems) -> AuditPower:
        """Compute the widths for audited systems; raise `ConfigError` without an audit."""
        if systems.audit is None:
            raise ConfigError("audit_power: expected systems with an audit (audit=HUMAN, or --audit)")
        level, rows = systems.settings.confidence, []
        sizes = [size for size in SIZES if size < len(systems.qids)]
        baseline = systems.tested.get(systems.baseline, {})
        for text in systems.first.corrected:
            for name, columns in systems.tested.items():
                difference = columns[text] - baseline[text]
                rows.append(
                    AuditWidth(
                        name,
                        text,
                        {size: reach_at(columns[text], size, level=level) for size in sizes},
                        {}
                        if name == systems.baseline
                        else {size: reach_at(difference, size, OF_DELTAS[1], level) for size in sizes},
                    )
                )
        return cls(tuple(rows), level, systems)
