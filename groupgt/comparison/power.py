"""Compute the differences that a set of queries can detect, and the queries needed to detect a difference.

If all differences have the same size (0/1 metrics), the power is computed for the test itself. A share of n queries
differs, each of these is a win or a loss, and the test detects a difference if wins and losses are far enough apart.
Otherwise the power of the paired t test is used, capped at the probability that enough queries differ for the test to
detect anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from groupgt.comparison.contrast import Contrast, Row, comparisons
from groupgt.comparison.draws import SLACK
from groupgt.comparison.gaps import FAR, FEW_DIFFERENCES, chances, likely
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import TESTS
from groupgt.errors import ConfigError, Faults, display
from groupgt.evaluation.estimates import OF_DELTAS, reach_at, student_quantile
from groupgt.metrics.language import Metric
from groupgt.render.results import Result, ResultRows
from groupgt.render.tables import shortlist

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure

# The search for a number of queries stops here.
MOST = 10**9
# Differences at which a power below the target at the largest one is computed.
STEPS = 65
# Standard deviations of an estimated spread over which power is summed, and the number of points.
WIDE, POINTS = 12, 400
# If more queries than this are expected to differ, the t test's power is close enough.
MANY_DIFFERENCES = 5000
# No representable alpha needs more differing queries, all of them wins, than this.
MOST_NEEDED = 1100
# Numbers of audited queries.
SIZES = (20, 50, 100, 200)


@dataclass(frozen=True)
class Power:
    """The power of a comparison for one system and metric. `spread` is the standard deviation of the differences.

    `queries` is the number of pairs. `detectable` is the smallest difference that these pairs detect with the target
    power, if the metric allows one. `needed` is the number of queries needed to detect `difference` (None: over 10^9,
    or no query differs), and `reached` is the power of the available queries. `exact` is True if the power was computed
    for the test in use, not for the t test. `alpha` applies to each single comparison. `by` and `value` name the slice,
    if any.
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
    noncentrality √n · difference ÷ spread, and t is the 1 − alpha/2 quantile of Student's t. P is a sum over the
    estimated spread, because T' is normal for a given spread. The randomization test has nearly the same power if many
    queries differ (Hoeffding 1952). Cohen 1988; Sakai, IRJ 2016.
    """
    if queries < 2:
        return 0.0
    if spread < SLACK:
        return 1.0 if abs(difference) > SLACK else 0.0
    degrees, shift = queries - 1, math.sqrt(queries) * abs(difference) / spread
    bound, reach = student_quantile(1 - alpha, degrees), WIDE / math.sqrt(2 * degrees)
    # The logarithm of the estimated divided by the true spread.
    logs = np.linspace(-reach - 40 / degrees, math.log1p(reach), POINTS)
    ratio, weight = np.exp(logs), np.exp(degrees * (logs - np.expm1(2 * logs) / 2))
    ends = np.concatenate([shift - bound * ratio, -shift - bound * ratio]) / math.sqrt(2)
    shown = np.array([math.erfc(-end) / 2 for end in ends.tolist()]).reshape(2, -1).sum(axis=0)
    return min(float((weight * shown).sum() / weight.sum()), 1.0)


@dataclass(frozen=True)
class Differences:
    """The `share` of queries on which two systems differ, and the mean `size` and the `spread` of the differences."""

    share: float
    size: float
    alike: bool
    spread: float

    @classmethod
    def of(cls, contrast: Contrast) -> Differences:
        """Summarize the differences in a contrast."""
        return cls(contrast.differ / contrast.pairs, contrast.size, contrast.alike, contrast.spread)

    def power(self, difference: float, queries: int, alpha: float, test: str) -> float:
        """Return the probability that a test at alpha detects a difference, assuming that enough queries differ."""
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
        """Return the number of queries needed to detect a difference with the target power, or None if over 10^9."""
        if abs(difference) < SLACK or (self.alike and abs(difference) > self.size * (1 + SLACK)):
            return None
        return enough_queries(lambda queries: self.power(difference, queries, alpha, test), target)


def smallest_difference(power_at: Callable[[float], float], target: float, largest: float = math.inf) -> float | None:
    """Return the smallest difference, up to `largest`, that reaches the target power, or None if there is none."""
    most = min(1.0, largest)
    while power_at(most) < target and most < min(largest, MOST):
        most = min(most * 2, largest)
    # A test that is undefined if all differences are equal has no power at the largest one, where all queries differ.
    low, high = 0.0, next((each for each in np.linspace(most, 0, STEPS).tolist() if power_at(each) >= target), math.nan)
    if math.isnan(high):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power_at(middle) >= target else (middle, high)
    return high


def enough_queries(power_at: Callable[[int], float], target: float) -> int | None:
    """Return the smallest number of queries from which the power stays at the target or above, or None if over 10^9.

    More queries may have less power. At alpha 0.05, all of 6, 7 or 8 differences must have the same sign, which gets
    less likely with each, but one of 9 may differ. So the search continues beyond the first sufficient number.
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

    The number m of differing queries is binomial, because each of n queries differs with probability `share`. The
    number of wins is also binomial, because each differing query is a win with probability (1 + balance) ÷ 2.
    """
    differing, used, chance = likely(queries, share), TESTS[test], (1 + balance) / 2
    reach = math.ceil(FAR * math.sqrt(differing[-1] * chance * (1 - chance))) + FAR
    wins = np.floor(differing * chance).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    lead = np.abs(2 * wins - differing[:, None])
    found = lead >= used.least_gaps(queries, differing, alpha)[:, None]
    if few := used.gaps_of_few:
        for place in np.flatnonzero(differing <= FEW_DIFFERENCES).tolist():
            found[place] = np.isin(lead[place], few(queries, int(differing[place]), alpha))
    if used.undefined_if_equal:
        found &= lead < queries
    shown = np.where(found, chances(wins, differing[:, None], chance), 0.0).sum(axis=1)
    return float(min((chances(differing, queries, share) * shown).sum(), 1.0))


def _enough_differ(share: float, queries: int, alpha: float, test: str) -> float:
    """Return the probability that enough queries differ for a test at alpha to detect any difference."""
    differing, used = np.arange(1, min(queries, MOST_NEEDED) + 1), TESTS[test]
    by_least = used.least_gaps(queries, differing, alpha) <= differing

    def is_enough(m: int) -> bool:
        few = used.gaps_of_few if m <= FEW_DIFFERENCES else None
        return bool(by_least[m - 1] if few is None else few(queries, m, alpha))

    enough = next(filter(is_enough, differing.tolist()), 0)
    numbers = likely(queries, share)
    return float(chances(numbers, queries, share)[numbers >= enough].sum()) if enough else 0.0


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
    """Compute the power for each system to detect `difference` (default: the observed one), or raise `ConfigError`."""
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
            least = detectable_with(contrast, metrics[row.metric], settings.test, alpha, power)
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


def detectable_with(contrast: Contrast, metric: Metric, test: str, alpha: float, power: float = 0.8) -> float | None:
    """Return the smallest difference that the queries of a contrast detect with the target power, or None."""
    largest = 1.0 if metric.definition.bounded else math.inf
    return Differences.of(contrast).detectable(contrast.pairs, alpha, power, test, largest)


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
        """The name of the system that the others are compared with."""
        return self.systems.baseline

    def plot(self) -> Figure:
        """Draw a figure of power against the number of queries for the first metric.

        Raises `ConfigError` if no system differs from the baseline.
        """
        return self._teller.plot("power")


@dataclass(frozen=True)
class AuditWidth:
    """Half the interval width by number of audited queries. `of_delta` is empty for the baseline itself."""

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
        """Compute the widths for audited systems, or raise `ConfigError` without an audit."""
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
