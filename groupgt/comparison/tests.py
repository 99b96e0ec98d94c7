"""How systems are compared: paired tests over the queries that count for both, and corrections for many comparisons."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from groupgt.comparison.intervals import halves, on_grid, resampled_counts, slack_of
from groupgt.errors import ConfigError, Faults, listed, near_names
from groupgt.model.hits import Floats
from groupgt.model.validity import shown
from groupgt.render.numbers import counted


def corrected(correction: str, p_values: Floats) -> Floats:
    """p-values corrected over all of them; NaN are no comparisons and stay.

    >>> corrected("holm", np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    found = np.array(p_values, dtype=np.float64)
    known = ~np.isnan(found)
    found[known] = CORRECTIONS[correction](found[known])
    return found


def holm(p_values: Floats) -> Floats:
    """Holm 1979: the i-th smallest times (number − i + 1), none below the one before it, at most 1."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    found = np.empty(len(order))
    found[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0) if len(order) else 0.0
    return found


def bonferroni(p_values: Floats) -> Floats:
    """Bonferroni: times their number, at most 1."""
    return np.minimum(p_values * len(p_values), 1.0)


CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "none": lambda p_values: p_values,
}


# Differences of figures that are equal on paper may differ by a few bits.
SLACK = 1e-12
# The same of t, whose variance is rounded too.
SLACK_OF_T = 1e-9
Test = Callable[[Floats, int, int], Floats]


def p_values(test: str, differences: Floats, resamples: int, seed: int) -> Floats:
    """The p-value of each column by a test of `TESTS`.

    >>> p_values("randomization", np.array([[0.1], [0.2], [0.3], [0.0]]), 10_000, 0).tolist()
    [0.25]
    """
    count, width = differences.shape
    if not count:
        return np.full(width, np.nan)
    exact = on_grid(np.where(np.abs(differences) > SLACK, differences, 0.0))
    found = np.ones(width)
    differing = np.flatnonzero(exact.any(axis=0))
    if len(differing):
        found[differing] = TESTS[test](exact[:, differing], resamples, seed)
    return found


def randomization(differences: Floats, resamples: int, seed: int) -> Floats:
    """Fisher's randomization: signs of the differences are flipped at will, p the share of sums as far from 0.

    All 2^m sign patterns of the m queries that differ where that is no more than `resamples`, else that many random
    ones and p = (1 + as far) ÷ (1 + resamples). Source: Smucker, Allan & Carterette, CIKM 2007; Phipson & Smyth 2010.
    """
    # Sums that are equal on paper are as far.
    bound = np.abs(differences.sum(axis=0)) - slack_of(differences)
    moving = (differences != 0).sum(axis=0)
    found = np.ones(len(bound))
    few = np.flatnonzero(moving <= math.log2(resamples))
    for column in few.tolist():
        sums = np.zeros(1)
        for each in differences[differences[:, column] != 0, column].tolist():
            sums = np.concatenate([sums + each, sums - each])
        found[column] = float((np.abs(sums) >= bound[column]).mean())
    many = np.flatnonzero(moving > math.log2(resamples))
    if len(many):
        own = differences[:, many]
        whole, as_far = own.sum(axis=0), np.zeros(len(many))
        for coins in halves(len(own), resamples, seed):
            # Σ ±d = 2 Σ over heads − Σ d; all of it is exact.
            as_far += (np.abs(2 * (coins @ own) - whole) >= bound[many]).sum(axis=0)
        found[many] = (1 + as_far) / (1 + resamples)
    return found


def bootstrap(differences: Floats, resamples: int, seed: int) -> Floats:
    """The bootstrap test of a mean of 0: t of resamples of the centred differences, p the share as far as the observed.

    p = (1 + as far) ÷ (1 + resamples). Source: Efron & Tibshirani 1993, ch. 16; Sakai, SIGIR 2006.
    """
    count, width = differences.shape
    if count < 2:
        return np.full(width, np.nan)
    whole = differences.sum(axis=0)
    mean = np.where(np.abs(whole) <= slack_of(differences), 0.0, whole) / count
    centred = on_grid(differences - mean)
    squared = on_grid(centred * centred)
    noise = SLACK * np.abs(differences).max(axis=0) ** 2
    observed = _t(mean, squared.sum(axis=0) / count, count, noise) * (1 - SLACK_OF_T)
    both = np.concatenate([centred, squared], axis=1)
    as_far = np.zeros(width)
    for counts in resampled_counts(count, resamples, seed):
        means, squares = np.split(counts @ both / count, 2, axis=1)
        as_far += (_t(means, squares - means * means, count, noise) >= observed).sum(axis=0)
    found: Floats = (1 + as_far) / (1 + resamples)
    return found


def _t(mean: Floats, variance: Floats, count: int, noise: Floats) -> Floats:
    """|mean| ÷ its standard error; infinite for a mean without variance."""
    scale = np.sqrt(np.where(variance <= noise, 0.0, variance) / (count - 1))
    away = np.abs(mean)
    infinite = np.where(away > np.sqrt(noise), np.inf, 0.0)
    t: Floats = np.divide(away, scale, out=infinite, where=scale > 0)
    return t


def student(differences: Floats, resamples: int, seed: int) -> Floats:
    """Student's paired t, by SciPy's `ttest_rel`. Source: Student 1908."""
    stats = scipy_stats("the t test")
    if len(differences) < 2:
        return np.full(differences.shape[1], np.nan)
    with warnings.catch_warnings():
        # Differences that are all the same: t is infinite and p 0, which SciPy says with a warning.
        warnings.simplefilter("ignore")
        return np.array(stats.ttest_rel(differences, np.zeros_like(differences)).pvalue, dtype=np.float64)


def wilcoxon(differences: Floats, resamples: int, seed: int) -> Floats:
    """Wilcoxon's signed ranks, by SciPy's `wilcoxon`, which leaves out queries that do not differ. Wilcoxon 1945."""
    stats = scipy_stats("Wilcoxon's test")
    return np.array([float(stats.wilcoxon(column).pvalue) for column in differences.T])


def scipy_stats(what: str) -> ModuleType:
    """`scipy.stats`; raises `ConfigError` that says how to get it."""
    try:
        from scipy import stats
    except ImportError:
        raise ConfigError(f"{what} needs SciPy, which is not installed: pip install 'groupgt[stats]'") from None
    module: ModuleType = stats
    return module


TESTS: dict[str, Test] = {
    "randomization": randomization,
    "t": student,
    "wilcoxon": wilcoxon,
    "bootstrap": bootstrap,
}


MOST_RESAMPLES = 10**6
HIGHEST_LEVEL = 0.9999


@dataclass(frozen=True)
class Settings:
    """How systems are compared; raises `ConfigError` with everything that is out of range.

    `test` is one of randomization, t, wilcoxon and bootstrap, `correction` one of holm, bonferroni and none; a p-value
    of at most `alpha` is significant. `intervals` is the level of intervals, `resamples` how many are drawn for them
    and for tests, from `seed`. `pairs` compares every two systems as well.
    """

    test: str = "randomization"
    correction: str = "holm"
    alpha: float = 0.05
    intervals: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    pairs: bool = False

    def __post_init__(self) -> None:
        faults = Faults()
        for name, value, known in (("test", self.test, TESTS), ("correction", self.correction, CORRECTIONS)):
            if not isinstance(value, str) or value not in known:
                near = near_names(str(value), known)
                faults.add(name, f"expected {listed(known)}, found {shown(value)}{near}")
        for name, share in (("alpha", self.alpha), ("intervals", self.intervals)):
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
                faults.add(name, f"expected a number above 0 and below 1, found {shown(share)}")
            elif name == "intervals" and share > HIGHEST_LEVEL:
                faults.add(name, f"expected a level of at most {HIGHEST_LEVEL}, found {shown(share)}")
        ranges = (("resamples", self.resamples, 1, MOST_RESAMPLES), ("seed", self.seed, 0, 2**32 - 1))
        for name, number, least, most in ranges:
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
                faults.add(name, f"expected a whole number from {least:,} to {most:,}, found {shown(number)}")
        if not isinstance(self.pairs, bool):
            faults.add("pairs", f"expected true or false, found {shown(self.pairs)}")
        faults.stop(ConfigError)

    @property
    def described(self) -> str:
        """The test, in words; where it draws, how much."""
        drawn = f", {counted(self.resamples, 'resample')}, seed {self.seed}"
        return NAMES[self.test] + (drawn if self.draws else "")

    @property
    def draws(self) -> bool:
        """Whether the test draws at random."""
        return self.test in ("randomization", "bootstrap")


NAMES = {
    "randomization": "paired randomization test",
    "t": "Student's paired t test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "bootstrap": "paired bootstrap test",
}
