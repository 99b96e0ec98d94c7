"""Power: how large a difference a set of questions can show, and how many questions show a wanted one.

Where all differences are of one size (0/1 metrics) the power is computed for the test itself: of n questions a share
differs, those that differ are won or lost, and the test shows a difference where wins and losses lie far enough apart.
Elsewhere it is that of the paired t test, at most the probability that enough questions differ for the test to show
anything. Needs SciPy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from groupgt.comparison.contrast import Contrast, Row, comparisons
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK, scipy_stats
from groupgt.errors import ConfigError, Faults, display
from groupgt.model.hits import Floats, Ints

# More queries than this are not looked for.
MOST = 10**9
# Noncentral t distributions shifted by more than this are not computed.
FAR = 35.0
# Where more questions than this are expected to differ, the t test's power is near enough.
MANY_DIFFERENCES = 5000
# Up to this many differences the bootstrap test is worked out; beyond, it is as near to the t test as matters.
FEW_DIFFERENCES = 50
# Up to this many differences of which some are tied, SciPy's Wilcoxon test tries every sign.
ALL_SIGNS = 13
# No alpha that is a number needs more questions that differ, and all won, than this.
MOST_NEEDED = 1100
# What is less likely than this is left out of sums.
NEGLIGIBLE = 1e-12
# p-values that equal alpha on paper are significant.
TIE = 1e-9


@dataclass(frozen=True)
class Power:
    """What the differences of one system by one metric allow: their standard deviation `spread` over `queries` pairs.

    `detectable` is the smallest difference that as many questions show with the wanted power (None: none does),
    `needed` how many questions show `difference` with it (None: more than 10^9, or nothing differs), `reached` the
    power with which the questions there are show it. `exact` says that it is the power of the test that is used, and
    not that of the t test. `alpha` is that of each comparison; of a slice, `by` and `value` name it.
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
    """The probability with which a two-sided paired t test at alpha shows a true difference.

    P(|T'| > t), T' noncentral t with n − 1 degrees of freedom and noncentrality √n · difference ÷ spread, t the
    1 − alpha/2 quantile of Student's t. The randomization test has nearly the same power where many questions differ
    (Hoeffding 1952). Source: Cohen 1988; Sakai, Information Retrieval 2016.
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
    # Far out the noncentral distribution is not computed: the shift alone, divided by the spread's own estimate.
    return float(stats.chi2.cdf(degrees * (shift / bound) ** 2, degrees)) if bound > 0 else 1.0


@dataclass(frozen=True)
class Differences:
    """What is known of the differences of two systems: the `share` of questions that differ, their mean `size`.

    `alike` says that all are of that size; `spread` is the standard deviation of all, with those that do not differ.
    """

    share: float
    size: float
    alike: bool
    spread: float

    @classmethod
    def of(cls, contrast: Contrast) -> Differences:
        """Those that a contrast counted."""
        return cls(contrast.differ / contrast.pairs, contrast.size, contrast.alike, contrast.spread)

    def power(self, difference: float, queries: int, alpha: float, test: str) -> float:
        """The probability with which a test at alpha shows a true difference.

        A difference that is larger than the share of differing questions allows comes with more that differ.
        """
        mean = abs(difference) / self.size
        share = min(max(self.share, mean), 1.0)
        if not self.alike:
            return min(power(difference, self.spread, queries, alpha), _enough_differ(share, queries, alpha, test))
        if queries * share > MANY_DIFFERENCES:
            return power(difference, math.sqrt(max(self.size**2 * share - difference**2, 0.0)), queries, alpha)
        return _power_of_counts(share, min(mean / share, 1.0), queries, alpha, test)

    def detectable(self, queries: int, alpha: float, wanted: float, test: str) -> float | None:
        """The smallest difference that this many queries show with the wanted power; None where none does."""
        largest = self.size if self.alike else math.inf
        return smallest_difference(lambda difference: self.power(difference, queries, alpha, test), wanted, largest)

    def needed(self, difference: float, alpha: float, wanted: float, test: str) -> int | None:
        """The number of questions from which on a difference is shown with the wanted power; None where 10^9 do not."""
        if abs(difference) < SLACK or (self.alike and abs(difference) > self.size * (1 + SLACK)):
            return None
        return fewest_queries(lambda queries: self.power(difference, queries, alpha, test), wanted)


def smallest_difference(power_at: Callable[[float], float], wanted: float, largest: float = math.inf) -> float | None:
    """The smallest difference of the wanted power, up to the largest that there can be; None where there is none."""
    low, high = 0.0, min(1.0, largest)
    while power_at(high) < wanted:
        low, high = high, min(high * 2, largest)
        if low == high or high > MOST:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power_at(middle) >= wanted else (middle, high)
    return high


def fewest_queries(power_at: Callable[[int], float], wanted: float) -> int | None:
    """The number of questions with the wanted power, of which one less has not; None where 10^9 have not."""
    low, high = 1, 2
    while power_at(high) < wanted:
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle) >= wanted else (middle, high)
    return high


def _power_of_counts(share: float, balance: float, queries: int, alpha: float, test: str) -> float:
    """The power where differences are of one size: Σ over m of P(m differ) · P(wins and losses lie far enough apart).

    m is binomial, n questions of which each differs with probability `share`; wins are binomial, m of which each is one
    with probability (1 + balance) ÷ 2.
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
    return float(min((binom.pmf(differing, queries, share) * shown).sum(), 1.0))


def _enough_differ(share: float, queries: int, alpha: float, test: str) -> float:
    """The probability that enough queries differ for a test at alpha to show it, however they are won or lost."""
    differing = np.arange(1, min(queries, MOST_NEEDED) + 1)
    if test == "bootstrap":
        enough = next((m for m in differing.tolist() if _bootstrap_gaps(queries, m, alpha)), 0)
    else:
        enough = next(iter(differing[_least_gaps(test, queries, differing, alpha) <= differing].tolist()), 0)
    return float(scipy_stats("power").binom.sf(enough - 1, queries, share)) if enough else 0.0


def _least_gaps(test: str, queries: int, differing: Ints, alpha: float) -> Ints:
    """How far wins and losses must lie apart for a test to show it, where a number of queries differ by one size.

    More than differ, where nothing is far enough. The bootstrap test's are those of t, which it nears (see there).
    """
    stats = scipy_stats("power")
    # p = 2 P(losses or fewer), binomial with 1/2: what randomization comes to where all sizes are the same.
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
    """The least whole numbers of at least these, above 0, even where the number that differs is even, else odd."""
    whole = np.maximum(np.ceil(gaps * (1 - TIE)).astype(np.int64), 1)
    return whole + (whole - differing) % 2


@lru_cache(maxsize=4096)
def _bootstrap_gaps(queries: int, differing: int, alpha: float) -> tuple[int, ...]:
    """The gaps between wins and losses that the bootstrap test shows.

    The widest may not be among them: of 11 questions won and one tied, a third of all resamples have no variance at
    all, and are as far as can be.
    """
    if differing > FEW_DIFFERENCES:
        least = int(_least_gaps("t", queries, np.array([differing]), alpha)[0])
        return tuple(range(least, differing + 1, 2))
    gaps = range(differing, 0, -2)
    return tuple(gap for gap in gaps if _bootstrap_p(queries, differing, gap) <= alpha * (1 + TIE))


def _bootstrap_p(queries: int, differing: int, gap: int) -> float:
    """The share of all resamples of the centred differences whose t is as far as the observed one."""
    binom = scipy_stats("power").binom
    # What is drawn of those that differ, and of these the wins.
    drawn = np.arange(int(binom.isf(NEGLIGIBLE, queries, differing / queries)) + 1)[:, None]
    wins = np.arange(len(drawn))[None, :]
    chance = binom.pmf(drawn, queries, differing / queries) * binom.pmf(wins, drawn, (differing + gap) / 2 / differing)
    lead = 2 * wins - drawn
    t = _t_of(lead - gap, drawn * queries - lead**2)
    observed = _t_of(np.array([gap]), np.array([differing * queries - gap**2]))
    return float(chance[t >= observed[0] * (1 - TIE)].sum())


def _t_of(away: Ints, variance: Ints) -> Floats:
    """|away| ÷ √variance, up to a factor; infinite for a mean without variance."""
    infinite = np.where(away != 0, np.inf, 0.0)
    t: Floats = np.divide(np.abs(away), np.sqrt(np.maximum(variance, 0)), out=infinite, where=variance > 0)
    return t


def power_of(
    rows: Sequence[Row],
    settings: Settings,
    *,
    difference: float | None = None,
    power: float = 0.8,
    by: str = "",
    value: str = "",
) -> list[Power]:
    """What the observed differences of every system allow; `difference` is the observed one where none is given.

    alpha is divided by the number of comparisons by one metric where they are corrected for. Raises `ConfigError`.
    """
    faults = Faults()
    if isinstance(power, bool) or not isinstance(power, (int, float)) or not 0 < power < 1:
        faults.add("power", f"expected a number above 0 and below 1, found {display(power)}")
    if difference is not None and not (math.isfinite(difference) and difference != 0):
        faults.add("difference", f"expected a number other than 0, found {display(difference)}")
    faults.stop(ConfigError)
    alpha_by = {metric: alpha_of(rows, metric, settings) for metric in dict.fromkeys(row.metric for row in rows)}
    powers = []
    for row in rows:
        contrast = row.against
        if contrast is None:
            continue
        alpha = alpha_by[row.metric]
        asked = contrast.delta if difference is None else difference
        least = reached = needed = None
        # Where nothing differs there is nothing to go by.
        known = contrast.pairs > 1 and contrast.differ > 0
        if known:
            differences = Differences.of(contrast)
            least = differences.detectable(contrast.pairs, alpha, power, settings.test)
            reached = differences.power(asked, contrast.pairs, alpha, settings.test)
            needed = differences.needed(asked, alpha, power, settings.test)
        powers.append(
            Power(
                system=row.system,
                metric=row.metric,
                queries=contrast.pairs,
                delta=contrast.delta,
                spread=contrast.spread,
                detectable=least,
                difference=asked,
                reached=reached,
                needed=needed,
                exact=known and contrast.alike,
                by=by,
                value=value,
                alpha=alpha,
            )
        )
    return powers


def alpha_of(rows: Sequence[Row], metric: str, settings: Settings) -> float:
    """The alpha of one comparison by a metric: Bonferroni's share of its family, where that is corrected."""
    count = comparisons(row.against for row in rows if row.metric == metric) if settings.correction != "none" else 1
    return settings.alpha / max(count, 1)
